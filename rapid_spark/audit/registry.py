"""One registry of an audit: its releases in one pass over its original where that is possible, each alone otherwise."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rapid_spark import evaluation, io, results, schema
from rapid_spark.attackers import AttackerError
from rapid_spark.config import Config, ConfigError, Table
from rapid_spark.evaluation import settings_digest
from rapid_spark.io import Source
from rapid_spark.results import Assessment
from rapid_spark.training import replicate_numbers
from rapid_spark.version import __version__

from . import strata
from .releases import listed
from .settings import Registry, Release, for_release
from .vocabulary import harmonised

logger = logging.getLogger(__name__)
MOST_FITS = 24  # attackers that one pass holds; more releases are evaluated in several
UNKNOWN = "unknown"  # release of a registry whose releases could not be listed
USER_FAULTS = (ConfigError, schema.SchemaError, AttackerError)


@dataclass
class Evaluated:
    """What came of one release.

    Attributes:
        registry, release_id, config: what was evaluated, and how.
        tables: result tables by name, as pandas frames; `risk_summary` has its rows also where nothing could be computed.
        strata: counts for the comparison (`strata.count`); None where there are none.
        inputs: names, versions, rows, digests.
        warnings: what the reader must know.
        failed: why it could not be evaluated; None where it was.
        at_fault: whether that is the user's fault.
        seconds: by stage, of the pass that it was part of.
    """

    registry: str
    release_id: str
    config: Config
    tables: dict[str, pd.DataFrame]
    strata: pd.DataFrame | None = None
    inputs: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    failed: str | None = None
    at_fault: bool = False
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def summary(self) -> pd.DataFrame:
        """Rows of risk_summary."""
        return self.tables["risk_summary"]

    @property
    def comparable(self) -> bool | None:
        """Whether holdout and original look like a random split; None: not known."""
        return (self.inputs.get("holdout") or {}).get("comparable")

    @property
    def curve(self) -> pd.DataFrame:
        """Rows of risk_curve."""
        return self.tables["risk_curve"]


@dataclass
class Work:
    """What all registries of an audit share.

    Attributes:
        spark: session.
        run_id: of the audit.
        cores: threads of one fit.
        by, bins: strata of the comparison; no `by`: none are counted.
        whole: evaluate the releases of a registry in one pass.
        keep_records: writes rows of risk_records while Spark holds them.
        before: called with the name of each stage; raises what a signal asked for, and waits for the store.
    """

    spark: SparkSession
    run_id: str
    cores: int
    by: Sequence[str]
    bins: Mapping[str, Sequence[float]]
    whole: bool
    keep_records: Callable[[DataFrame], None]
    before: Callable[[str], None]


@dataclass
class Opened:
    """A release with its tables in the common vocabulary.

    Attributes:
        release: which.
        sources: its tables.
        digests: of the tables as they were found, where a vocabulary changed them.
    """

    release: Release
    sources: list[Source]
    digests: list[str] = field(default_factory=list)


def evaluate_registry(work: Work, registry: Registry, config: Config) -> list[Evaluated]:
    """Evaluate every release of a registry; what fails is told, and the others go on.

    Args:
        work: shared by the registries.
        registry: its tables and vocabulary.
        config: settings of its evaluations.

    Returns:
        One per release, the earliest first.
    """
    releases: tuple[Release, ...] = (Release(id=UNKNOWN, tables=(Table(path=UNKNOWN),)),)
    try:
        releases = listed(registry)
        original = _open(work, registry, registry.original)
        holdout = _open(work, registry, registry.holdout) if registry.holdout else None
    except Exception as error:
        reason, at_fault = _reason(error, [])
        return [_failed(work, config, r, reason, at_fault) for r in releases]
    found: dict[str, Evaluated] = {}
    opened = []
    for release in releases:
        try:
            opened.append(_open_release(work, registry, release))
        except Exception as error:
            found[release.id] = _failed(work, config, release, *_reason(error, []))
    for part in _passes(opened, config, work.whole):
        found |= _try(work, config, (original, holdout), part)
    return [found[r.id] for r in releases]


def _passes(opened: Sequence[Opened], config: Config, whole: bool) -> list[list[Opened]]:
    """Releases by pass: several of one table each together, as far as their attackers fit; others alone."""
    fits = len(config.sets) * len(config.sensitive_attributes) * len(config.attackers)
    size = max(1, MOST_FITS // fits) if whole else 1
    single = [o for o in opened if _single(o)]
    together = [single[i : i + size] for i in range(0, len(single), size)]
    return together + [[o] for o in opened if not _single(o)]


def _try(
    work: Work, config: Config, real: tuple[Source, Source | None], opened: Sequence[Opened]
) -> dict[str, Evaluated]:
    """Evaluate a pass; where it fails, each of its releases alone, as only some may be at fault."""
    try:
        return {e.release_id: e for e in _evaluate(work, config, real, opened)}
    except Exception as error:
        logger.debug("evaluation failed", exc_info=True)
        if len(opened) > 1:
            return {k: e for one in opened for k, e in _try(work, config, real, [one]).items()}
        tables = [t for t in (*real, *opened[0].sources) if t is not None]
        return {opened[0].release.id: _failed(work, config, opened[0].release, *_reason(error, tables))}


def _open(work: Work, registry: Registry, table: Table) -> Source:
    return harmonised(io.read(work.spark, table), registry.vocabulary)


def _open_release(work: Work, registry: Registry, release: Release) -> Opened:
    plain = [io.read(work.spark, table) for table in release.tables]
    sources = [harmonised(source, registry.vocabulary, partial=True) for source in plain]
    changed = any(common is not own for common, own in zip(sources, plain, strict=True))
    # the digest is of the file that is published, not of what the vocabulary makes of it
    digests = [schema.content_digest(own) for own in plain] if changed and _plain(plain) else []
    return Opened(release, sources, digests)


def _plain(sources: Sequence[Source]) -> bool:
    return all(s.replicate_column is None for s in sources)


def _single(opened: Opened) -> bool:
    # one that was coarsened in a way of its own needs an original of its own
    return len(opened.sources) == 1 and _plain(opened.sources) and not opened.release.recode


def _evaluate(work: Work, config: Config, real: tuple[Source, Source | None], opened: Sequence[Opened]) -> list[Evaluated]:
    """Evaluate one release with its copies, or several of one table each, which then stand where copies do."""
    several = len(opened) > 1
    first = for_release(config, opened[0].release)
    names = {i + 1: o.release.id for i, o in enumerate(opened)}
    if several:
        training = config.training.model_copy(update={"replicates": "each"})
        first = first.model_copy(update={"training": training, "release_date": None})
    sources = [source for o in opened for source in o.sources]
    counted: list[pd.DataFrame | None] = []

    def look(state: Any, scored: Any, found: Any) -> None:
        counted.append(strata.count(state, scored, found, work.by, work.bins))

    assessment = evaluation.evaluate(
        work.spark, real[0], evaluation.replicates(sources), first, work.run_id, real[1], work.cores,
        work.before, look=look if work.by else None, apart=several,
    )  # fmt: skip
    try:
        found = _taken_apart(assessment, config, opened, names, counted[0] if counted else None)
        if assessment.records is not None:  # last: what fails before leaves no rows behind
            work.keep_records(_of_releases(assessment.records, names) if several else assessment.records)
    finally:
        assessment.close()
    return found


def _taken_apart(
    assessment: Assessment,
    config: Config,
    opened: Sequence[Opened],
    names: Mapping[int, str],
    counts: pd.DataFrame | None,
) -> list[Evaluated]:
    if len(opened) == 1:
        return [_alone(assessment, config, opened[0], counts)]
    by_release = {} if counts is None else strata.by_release(counts, names)
    return [_part(assessment, config, o, i, by_release.get(o.release.id), names) for i, o in enumerate(opened, 1)]


def _of_releases(records: DataFrame, names: Mapping[int, str]) -> DataFrame:
    pairs = F.create_map(*(F.lit(part) for pair in names.items() for part in pair))
    release = F.element_at(pairs, F.col("replicate"))
    return records.withColumn("release_id", release).withColumn("replicate", F.lit(1))


def _alone(assessment: Assessment, config: Config, opened: Opened, counts: pd.DataFrame | None) -> Evaluated:
    own = for_release(config, opened.release)
    tables = _tables(assessment)
    summary = tables["risk_summary"] = tables["risk_summary"].assign(settings_digest=settings_digest(config))
    for replicate, digest in enumerate(opened.digests, 1):
        if len(opened.digests) == 1 or replicate_numbers(range(1, len(opened.digests) + 1), config) != [0]:
            summary.loc[summary["replicate"] == replicate, "release_digest"] = digest
    return Evaluated(
        config.registry, opened.release.id, own, tables, counts, assessment.inputs, assessment.warnings,
        seconds=assessment.seconds,
    )  # fmt: skip


def _part(
    assessment: Assessment,
    config: Config,
    opened: Opened,
    replicate: int,
    counts: pd.DataFrame | None,
    names: Mapping[int, str],
) -> Evaluated:
    """One release out of a pass over several."""
    release = opened.release
    tables = {
        k: t[t["replicate"] == replicate].assign(release_id=release.id, replicate=1) for k, t in _tables(assessment).items()
    }
    if len(tables.get("risk_joint", ())):  # what is taken over all copies names none, as of a release alone
        across = tables["risk_joint"]["across"]
        one = pd.Series([None if a == "everything" else 1 for a in across], across.index, dtype=object)
        tables["risk_joint"] = tables["risk_joint"].assign(replicate=one)
    changes: dict[str, Any] = {"release_date": release.date, "settings_digest": settings_digest(config)}
    if opened.digests:
        changes["release_digest"] = opened.digests[0]
    tables["risk_summary"] = tables["risk_summary"].assign(**changes)
    inputs = {**assessment.inputs, "releases": {"1": assessment.inputs["releases"][str(replicate)]}}
    inputs["release_digest"] = tables["risk_summary"]["release_digest"].iloc[0]
    return Evaluated(
        config.registry, release.id, for_release(config, release), tables, counts, inputs,
        _warnings(assessment.warnings, replicate, names), seconds=assessment.seconds,
    )  # fmt: skip


def _warnings(texts: Sequence[str], replicate: int, names: Mapping[int, str]) -> list[str]:
    """Warnings of a pass over several releases that are about this one, or about none of them."""
    kept = []
    for text in texts:
        about = {int(number) for number in re.findall(r"\brelease (\d+)\b", text)} & set(names)
        if not about or replicate in about:
            kept.append(re.sub(r"\brelease (\d+)\b", lambda m: f"release {names.get(int(m[1]), m[1])}", text))
    return kept


def _tables(assessment: Assessment) -> dict[str, pd.DataFrame]:
    found = {"risk_summary": assessment.summary, "risk_curve": assessment.curve, "risk_classes": assessment.classes}
    return {k: t for k, t in {**found, **assessment.tables}.items() if t is not None}


def _failed(work: Work, config: Config, release: Release, reason: str, at_fault: bool) -> Evaluated:
    """A release that could not be evaluated: a failed row for every combination that was asked for."""
    own = for_release(config, release)
    common = {
        "run_id": work.run_id, "registry": config.registry, "release_id": release.id, "release_date": release.date,
        "scored_on": "original", "weighting": "none", "status": "failed", "reason": reason, "package_version": __version__,
        "seed": config.training.seed, "confidence": config.intervals.confidence, "settings_digest": settings_digest(config),
        "evaluated_at": datetime.now(UTC).replace(tzinfo=None),
    }  # fmt: skip
    copies = replicate_numbers(range(1, len(release.tables) + 1), config)
    rows = []
    for (qi_set, known), attribute, replicate, attacker in itertools.product(
        config.sets.items(), config.sensitive_attributes, copies, config.attackers
    ):
        continuous = attribute.type == "continuous"
        for measure in (config.threshold.error,) if continuous else config.measures:
            threshold = config.threshold.tolerance if continuous else config.threshold.tau[measure]
            rows.append({
                **common, "qi_set": qi_set, "quasi_identifiers": list(known), "sensitive_attribute": attribute.name,
                "target_type": attribute.type, "replicate": replicate, "attacker": attacker.name, "measure": measure,
                "threshold": threshold,
            })  # fmt: skip
    summary = results.frame(rows, results.SUMMARY)
    empty = {"risk_curve": results.frame([], results.CURVE), "risk_classes": results.frame([], results.CLASSES)}
    return Evaluated(
        config.registry, release.id, own, {"risk_summary": summary, **empty}, failed=reason, at_fault=at_fault
    )


def _reason(error: Exception, tables: Sequence[Source]) -> tuple[str, bool]:
    """What is said of an error, and whether it is the user's fault; an unknown error's own text may hold values."""
    if isinstance(error, USER_FAULTS):
        return " ".join(str(error).split()), True
    for source in tables:
        fault = io.fault_of(error, source)
        if fault is not None:
            return str(fault), True
    kind = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", str(error))
    return f"evaluation ended with {type(error).__name__}{f' ({kind.group(1)})' if kind else ''}", False
