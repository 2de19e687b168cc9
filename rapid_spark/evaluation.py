"""The pipeline: original, release and configuration in, an Assessment out; it reads and writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession

from . import attribution, control, drivers, io, joint, report, schema, session, training
from .attackers import Feature, Fitted
from .config import Config, Table, parse, settings_json
from .io import Source
from .pipeline import Found, Scored, State, check_relations, flags, score, summarise, summarise_holdout
from .results import Assessment
from .rows import Rows, settings_digest
from .schema import Aligned
from .sidebyside import at_once
from .suite import rows_of as rows_of_frame
from .training import FitKey
from .underway import Clock, new_run_id, quiet

__all__ = ["assess", "evaluate", "replicates", "settings_digest"]


def assess(
    original: Any,
    release: Any,
    config: Config | Mapping[str, Any],
    holdout: Any = None,
    *,
    run_id: str | None = None,
) -> Assessment:
    """RAPID of a release, from frames or files; nothing is stored or tracked.

    Args:
        original: real people: a pandas or Spark frame, or a path.
        release: what is published, likewise; a list of them is the replicates of one release.
        config: settings, as `load` gives them or as a mapping.
        holdout: real people who were not used to make the release.
        run_id: written into every row; a new one when left out.

    Returns:
        The assessment; its `close` frees what Spark holds for the records.

    Raises:
        ConfigError, SchemaError, AttackerError: the input is at fault, with every fault found.

    Example:
        >>> from rapid_spark import assess
        >>> from rapid_spark.simulate import registry
        >>> people, published = registry(300, kappa=5, seed=1), registry(300, kappa=5, seed=2)
        >>> found = assess(people, published, {
        ...     "quasi_identifiers": ["age", "gender"], "sensitive_attributes": ["disease_status"],
        ...     "attackers": ["cart"], "intervals": {"bootstrap": 50, "permutations": 0},
        ... })
        >>> found.summary[["sensitive_attribute", "attacker", "status"]].values.tolist()
        [['disease_status', 'cart', 'ok']]
        >>> found.close()
    """
    settings = config if isinstance(config, Config) else parse(config)
    spark = session.get(settings.session)

    def opened(table: Any, name: str) -> Source:
        if isinstance(table, str):
            return io.read(spark, Table.model_validate({"path": table}))
        return io.from_frame(spark, table, name)

    several = list(release) if isinstance(release, (list, tuple)) else [release]
    names = ["release"] if len(several) == 1 else [f"release {i + 1}" for i in range(len(several))]
    releases = [opened(table, name) for table, name in zip(several, names, strict=True)]
    held = None if holdout is None else opened(holdout, "holdout")
    return evaluate(
        spark, opened(original, "original"), replicates(releases), settings, run_id or new_run_id(), held,
        settings.session.cores or session.cores(),
    )  # fmt: skip


def evaluate(
    spark: SparkSession,
    original: Source,
    releases: dict[int, Source],
    config: Config,
    run_id: str,
    holdout: Source | None = None,
    cores: int = 2,
    say: Callable[[str], None] = quiet,
    keep: Callable[[FitKey, Fitted], None] | None = None,
    look: Callable[[State, Scored, Found], None] | None = None,
    apart: bool = False,
) -> Assessment:
    """Evaluate one release (all its replicates, attributes, quasi-identifier sets and attackers).

    Args:
        spark: session.
        original, releases, holdout: tables as read; replicates are numbered from 1.
        config: settings.
        run_id: written into every row.
        cores: threads of fitting.
        say: called with the name of each stage.
        keep: given each fitted attacker, where they are to be stored.
        look: given the scored original and its figures while they are held, for further counts.
        apart: what stands as replicates are releases of their own, so that nothing is taken over them.

    Raises:
        SchemaError, ConfigError, AttackerError: the user's input is at fault, with every fault found.
    """
    clock = Clock(say, {})
    asked = config
    refits: list[attribution.Refit] = []
    if config.drivers.refits:
        extra, refits = attribution.refit_sets(config.sets)
        config = config.model_copy(update={"quasi_identifiers": (), "qi_sets": {**config.sets, **extra}})
    with clock.stage("checking tables"):
        aligned = schema.align(original, releases, config, holdout)
        check_relations(aligned, config)
    with clock.stage("reading release"):
        rows, warnings = training.release_rows(aligned, config)
    with clock.stage("fitting attackers"):
        fits, missing = training.fit_all(spark, aligned, rows, config, cores, say, keep)
    warnings = list(dict.fromkeys([*aligned.warnings, *warnings, *(n for fit in fits.values() for n in fit.notes)]))
    state = State(spark, aligned, config, fits, missing, cores, warnings, frozenset(asked.sets))
    scored = {}
    with clock.stage("scoring original"):
        scored["original"] = score(state, aligned.original)
    with clock.stage("summing up"):
        found = summarise(state, scored["original"])
    other = compared = None
    if aligned.holdout is not None:
        with clock.stage("scoring holdout"):
            scored["holdout"] = score(state, aligned.holdout)
            other = summarise_holdout(state, scored["holdout"], found)
            keyed = bool(config.columns.key)
            compared = control.compare(aligned, state.classes, config.training.seed, keyed)
            state.warnings.append(compared.sentence())
    references = {}
    if config.training.references:
        with clock.stage("fitting references"):
            references = _references(state, found)
    evaluated_at = datetime.now(UTC).replace(tzinfo=None)
    common = {"run_id": run_id, "registry": config.registry, "release_id": config.release_id, "weighting": "none",
              "evaluated_at": evaluated_at}
    rows_of = Rows(state, common, found, other, references, clock.seconds["scoring original"], asked)
    with clock.stage("finding drivers"):
        tables = _drivers(state, scored["original"], found, common, apart)
        if refits:
            unweighted = rows_of.summary(every_set=True).query("scored_on == 'original' and weighting == 'none'")
            taken_apart = attribution.refit_rows(refits, unweighted)
            tables["risk_attribution"] = pd.concat(
                [tables["risk_attribution"], taken_apart[list(tables["risk_attribution"].columns)]], ignore_index=True
            )
        tables["risk_distributions"] = rows_of.distributions()

    if look is not None:
        look(state, scored["original"], found)

    def free() -> None:
        for part in scored.values():
            part.free()
        aligned.close()

    return Assessment(
        run_id=run_id, registry=config.registry, release_id=config.release_id,
        summary=rows_of.summary(), curve=rows_of.curve(), classes=rows_of.classes(), tables=tables,
        records=rows_of.records(scored), warnings=state.warnings, seconds=clock.seconds,
        inputs=_inputs(aligned, original, releases) | {
            "warnings": state.warnings,
            **({"holdout": {"rows": aligned.n_holdout, "comparable": compared.comparable}} if compared else {}),
        }, evaluated_at=evaluated_at, settings=settings_json(asked),
        release_resources=free, html=report.assessment_html,
    )


def _drivers(
    state: State, scored: Scored, found: Found, common: dict[str, Any], apart: bool
) -> dict[str, pd.DataFrame]:
    """Subgroups, patterns, attribution, relations and joint risk of the reported combinations with a result."""
    columns = {q.name: q.column for q in state.aligned.quasi_identifiers}
    reported = [c for _, c in state.reported if c.index in found.results]
    key = {k: common[k] for k in ("run_id", "registry", "release_id")} | {"scored_on": "original"}
    at_risk, whole = flags(state, found), scored.cells if all(c.categorical for c in reported) else scored.records
    counted: list[Any] = at_once(state.spark, [
        lambda: drivers.find(
            scored.cells, scored.records, reported, at_risk, columns, state.classes, state.config,
            {**{k: v for k, v in common.items() if k != "evaluated_at"}, "scored_on": "original"},
        ),
        lambda: joint.find(whole, reported, at_risk, key, apart),
    ])
    drivers_found, (together, notes) = counted
    for row in rows_of_frame(drivers_found.exclusions):
        for c in reported:
            if all(row[k] == getattr(c, k) for k in ("qi_set", "sensitive_attribute", "measure", "attacker", "replicate")):
                found.results[c.index].figures |= {
                    "n_without_known": row["n_without"], "rapid_without_known": row["rapid_without"]
                }
    state.warnings += [*drivers_found.warnings, *notes]
    return {**drivers_found.tables, "risk_joint": together}


def _references(state: State, found: Found) -> dict[int, tuple[float, float]]:
    """Population reference and copy ceiling of every attacker, attribute and set; the same for every replicate."""
    rows = control.reference_rows(state.aligned, state.config)
    known: dict[tuple[str, str, str], tuple[float, float]] = {}
    result = {}
    for key, c in state.combinations:
        if c.index not in found.results or (c.categorical and c.measure != "normalized_gain"):
            continue
        place = (key.qi_set, key.sensitive_attribute, key.attacker)
        if place not in known:
            features = [Feature(q.column, q.kind) for q in state.aligned.quasi_identifiers
                        if q.column in state.aligned.sets[key.qi_set]]
            target = next(t for t in state.aligned.targets if t.name == key.sensitive_attribute)
            attacker = next(a for a in state.config.attackers if a.name == key.attacker)
            known[place] = control.references(
                rows[[*(f.name for f in features), target.column]], features, target, attacker, state.config,
                state.classes.get(target.name), found.targets.get(target.name, {}).get("spread"), state.cores,
            )
        result[c.index] = known[place]
    return result


def _inputs(aligned: Aligned, original: Source, releases: dict[int, Source]) -> dict[str, Any]:
    return {
        "original": {"name": original.name, "version": original.version, "rows": aligned.n_original,
                     "digest": aligned.original_digest},
        "releases": {
            str(r): {"name": s.name, "version": s.version, "rows": aligned.n_release.get(r)}
            for r, s in releases.items()
        },
        "release_digest": aligned.release_digest,
        "columns": {
            **{q.name: q.kind for q in aligned.quasi_identifiers}, **{t.name: t.type for t in aligned.targets},
        },
    }


def replicates(sources: Sequence[Source]) -> dict[int, Source]:
    """Number the files of a release 1..m."""
    return {i + 1: source for i, source in enumerate(sources)}
