"""Advice on a release that a run judged: from the store's row of the run to ranked steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from ..config import Config, ConfigError, parse
from ..decisions.record import find
from ..decisions.rules import Case
from ..interruption import interruptible
from ..preparation import open_tables
from ..store import Store
from ..tables import quoted
from .ranking import RULES, Limit, Result, combinations, ranked
from .steps import DELETION, Step, propose
from .trial import Bench, cores_of, with_step

MOST_STEPS = 60


@dataclass
class Advice:
    """Steps for one release.

    Attributes:
        case: the release as it was judged.
        config: settings of its evaluation.
        limits: what steps are held to.
        before: the release as it is.
        results: steps, in the order of their ranks.
        warnings: what the reader must know.
        seconds: of all trials.
    """

    case: Case
    config: Config
    limits: Sequence[Limit]
    before: Result
    results: list[Result]
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def result(self, rank: int) -> Result:
        """The step of a rank.

        Raises:
            ConfigError: there is none, or it has no figure.
        """
        if not 1 <= rank <= len(self.results):
            raise ConfigError(f"--step {rank}: there are steps 1 to {len(self.results)}")
        found = self.results[rank - 1]
        if found.reason is not None:
            raise ConfigError(f"--step {rank}: it was not evaluated ({found.reason})")
        return found

    def rows(self) -> list[dict[str, Any]]:
        """The steps as plain rows, the release as it is first (rank 0)."""
        return [_row(r, self.before, bool(self.limits)) for r in (self.before, *self.results)]

    def document(self) -> dict[str, Any]:
        """As `advise --format json` gives it, but for the files."""
        return {
            "run_id": self.case.run_id, "registry": self.case.registry, "release_id": self.case.release_id,
            "limits": [{"rule": x.rule, "sensitive_attribute": x.attribute, "limit": x.value} for x in self.limits],
            "steps": self.rows(), "seconds": self.seconds, "warnings": self.warnings, "not_offered": DELETION,
        }  # fmt: skip


def advise(
    store: Store, run_id: str, *, registry: str | None = None, release_id: str | None = None, limit: float | None = None,
    attackers: Sequence[str] = (), most: int = MOST_STEPS, say: Callable[[str], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> Advice:
    """Try steps on a judged release and rank them.

    Args:
        store: the store of the run.
        run_id, registry, release_id: which release.
        limit: on the rate of every attribute; those of the policy that judged the release when left out.
        attackers: names of those to use; all of the run's when left out.
        most: steps tried at most, combinations aside.
        say: called with the name of each stage.
        note: called with what a reader wants to know before it starts.

    Raises:
        ConfigError, SchemaError: no such run, its tables have changed or are gone, or there is nothing to propose.
    """
    case = find(store, run_id, registry, release_id)
    config = _chosen(config_of(store, case), attackers)
    spark = store.warehouse.spark
    limits = [Limit("rapid", None, limit)] if limit is not None else limits_of(case)
    with interruptible(spark, f"advise-{run_id}"):
        say("opening tables")
        bench = Bench(spark, config, open_tables(spark, config), f"advise-{run_id}"[:128], limits)
        bench.look()
        _check_same(case, bench)
        steps = propose(bench.columns, len(config.release))
        if len(steps) > most:
            bench.warnings.append(f"{len(steps) - most} of {len(steps)} steps are not tried (--most {most})")
            steps = steps[:most]
        say("evaluating the release as it is")
        before = bench.try_all([None], lambda _: None, cores_of(config))[0]
        if before.reason is not None:
            raise ConfigError(f"run {run_id}: the release has no figure to improve: {before.reason}")
        fits = len(config.sets) * len(config.attackers) * len(bench.attributes)
        cores = cores_of(config)
        minutes = before.seconds * len(steps) / max(1, min(4, cores)) / 60
        note(
            f"{len(steps)} steps, {fits} fits each: about {max(1, round(minutes))} minutes, and half as long again for "
            "combinations of them"
        )
        results = bench.try_all(steps, say, cores)
        together = combinations(results, before)
        results += bench.try_all(together, say, cores) if together else []
    found = Advice(case, config, limits, before, ranked(results, before, bool(limits)), bench.warnings)
    found.seconds = sum(r.seconds for r in (before, *results))
    return found


def config_of(store: Store, case: Case) -> Config:
    """The configuration under which a run judged a release.

    Raises:
        ConfigError: it cannot be had from the run's row.
    """
    store.warehouse.use()
    rows = store.warehouse.spark.sql(
        f"select config from runs where run_id = {quoted(case.run_id)} and state = 'finished' order by attempt desc"
    ).collect()
    data = json.loads(rows[0]["config"])
    if "original" not in data or not data["original"]:
        raise ConfigError(
            f"--run {case.run_id}: its tables were frames or are not named in its configuration, so nothing can be tried"
        )
    found: Config = parse(data)
    return found


def limits_of(case: Case) -> list[Limit]:
    """The policy's limits that a step can be held to, from the verdicts on the release."""
    found = [
        Limit(str(v["rule"]), v["sensitive_attribute"], float(v["limit"]))
        for v in case.verdicts
        if v["rule"] in RULES and v["limit"] is not None and v["limit"] == v["limit"]
    ]
    return list(dict.fromkeys(found))


def _chosen(config: Config, attackers: Sequence[str]) -> Config:
    if not attackers:
        return config
    known = {a.name: a for a in config.attackers}
    missing = [a for a in attackers if a not in known]
    if missing:
        raise ConfigError(f"--attacker {missing[0]!r}: the run used {', '.join(known)}")
    return config.model_copy(update={"attackers": tuple(known[a] for a in dict.fromkeys(attackers))})


def _check_same(case: Case, bench: Bench) -> None:
    """Refuse tables that are not those that were judged."""
    judged = {r: d for r, d in case.digests.items() if r}
    changed = [r for r, d in judged.items() if bench.digests.get(r) not in (None, d)]
    if changed or (judged and not set(judged) & set(bench.digests)):
        raise ConfigError(
            f"run {case.run_id}: the release has changed since it was judged, so advice on it would be about another file: "
            "evaluate it again"
        )


def _row(result: Result, before: Result, limited: bool) -> dict[str, Any]:
    step = result.step
    known = result.reason is None
    return {
        "rank": result.rank,
        "step": step.text if step else "the release as it is",
        "kind": step.kind if step else None,
        "columns": list(step.columns) if step else [],
        "rapid": result.rapid if known else None,
        "change": (result.rapid or 0.0) - (before.rapid or 0.0) if known else None,
        "excess": result.highest_excess if known else None,
        "by_attribute": dict(result.rates) if known else {},
        "information_lost": result.loss.information if known else None,
        "association_change": result.loss.association if known else None,
        "meets_limits": (not result.over if known else False) if limited else None,
        "over": list(result.over),
        "on_front": result.on_front if step else None,
        "status": "ok" if known else "undefined",
        "reason": result.reason,
        "recode": {name: dict(change) for name, change in step.recode.items()} if step else {},
        "replicates": step.replicates if step else None,
        "seconds": result.seconds,
    }


def configuration(advice: Advice, result: Result) -> str:
    """A configuration that takes a step: `rapid-spark recode --config` applies it to the release."""
    assert result.step is not None
    taken = with_step(advice.config, result.step)
    lines = [
        f"# Advice on release {advice.case.release_id} of {advice.case.registry}, run {advice.case.run_id}: "
        f"{result.step.text}.",
        f"# Rate {result.rapid:.3f} (before {advice.before.rapid:.3f}), information lost {result.loss.information:.3f}.",
        "# rapid-spark recode --config THIS --output FOLDER writes the coarser release, and a configuration to evaluate it.",
    ]
    return "\n".join(lines) + "\n" + dumped(taken)


def dumped(config: Config) -> str:
    """What a configuration says beyond the defaults, as YAML."""
    plain: Mapping[str, Any] = config.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(dict(plain), sort_keys=False, allow_unicode=True)


__all__ = ["Advice", "Step", "advise", "config_of", "configuration", "dumped", "limits_of"]
