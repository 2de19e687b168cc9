"""Advice on a release that a run judged: from the store's row of the run to ranked steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .. import history, policy
from ..config import Config, ConfigError, Model, Policy, parse
from ..decisions.record import find
from ..decisions.rules import Case
from ..interruption import interruptible
from ..preparation import open_tables
from ..store import Store
from ..tables import quoted
from .audited import Audited, audited
from .ranking import Limit, Result, combinations, ranked
from .steps import DELETION, propose
from .trial import Bench, cores_of, file_names, leaves_any, with_step

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
        policy: what steps are judged by, where no limit was named.
        audited: the audit that the release is part of.
    """

    case: Case
    config: Config
    limits: Sequence[Limit]
    before: Result
    results: list[Result]
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0
    policy: Policy | None = None
    audited: Audited | None = None

    @property
    def highest(self) -> float | None:
        """The lowest limit on the rate, for the picture."""
        if self.policy is None:
            return min((x.value for x in self.limits), default=None)
        names = self.audited.common if self.audited else {}
        rules = [self.policy.limits_for(names.get(a, a)).rapid_max for a in self.before.rates]
        return min((r.fail for r in rules if r is not None and r.fail is not None), default=None)

    @property
    def limited(self) -> bool:
        """Whether steps are held to anything."""
        return bool(self.limits) or self.policy is not None

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
        return [_row(r, self.before, self.limited) for r in (self.before, *self.results)]

    def document(self) -> dict[str, Any]:
        """As `advise --format json` gives it, but for the files."""
        return {
            "run_id": self.case.run_id, "registry": self.case.registry, "release_id": self.case.release_id,
            "limits": [{"rule": x.rule, "sensitive_attribute": x.attribute, "limit": x.value} for x in self.limits],
            "policy": None if self.policy is None else self.policy.model_dump(mode="json"),
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
    own, audit = config_of(store, case)
    config = _chosen(own, attackers)
    spark = store.warehouse.spark
    limits = [Limit("rapid", None, limit)] if limit is not None else []
    judge = None if limits else audit.audit.policy if audit else config.policy
    before_it = _previous(store, case, config, judge)
    with interruptible(spark, f"advise-{run_id}"):
        say("opening tables")
        bench = Bench(
            spark, config, open_tables(spark, config), f"advise-{run_id}"[:128], limits, judge, before_it,
            audit.common if audit else {},
        )
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
        together = [step for step in combinations(results, before) if leaves_any(config, step)]
        results += bench.try_all(together, say, cores) if together else []
    limited = bool(limits) or judge is not None
    seconds = sum(r.seconds for r in (before, *results))
    return Advice(
        case, config, limits, before, ranked(results, before, limited), bench.warnings, seconds, judge, audit
    )


def config_of(store: Store, case: Case) -> tuple[Config, Audited | None]:
    """The configuration under which a run judged a release, and its place in the audit that the run was.

    Raises:
        ConfigError: it cannot be had from the run's row.
    """
    store.warehouse.use()
    rows = store.warehouse.spark.sql(
        f"select config from runs where run_id = {quoted(case.run_id)} and state = 'finished' order by attempt desc"
    ).collect()
    data = json.loads(rows[0]["config"])
    if "registries" in data:
        found = audited(data, case.registry, case.release_id)
        return found.config, found
    if "original" not in data or not data["original"]:
        raise ConfigError(
            f"--run {case.run_id}: its tables were frames or are not named in its configuration, so nothing can be tried"
        )
    config: Config = parse(data)
    return config, None


def _previous(store: Store, case: Case, config: Config, judge: Policy | None) -> policy.Previous | None:
    """The registry's release before, where the policy asks for it."""
    if judge is None or not judge.asks_for("increase_over_previous"):
        return None
    store.warehouse.use()
    digests = store.warehouse.spark.sql(
        f"select settings_digest from risk_summary where run_id = {quoted(case.run_id)} "
        f"and registry = {quoted(case.registry)} and release_id = {quoted(case.release_id)} limit 1"
    ).collect()
    rows = history.finished(store, [case.registry])
    return history.previous(rows, case.registry, case.release_id, config.release_date, digests[0][0])


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


def audit_configuration(advice: Advice, result: Result, folder: Path) -> str:
    """The audit of the registry with the coarser release in place of the one that was judged.

    Args:
        advice: of a release of an audit.
        result: the step taken.
        folder: where `rapid-spark recode` writes the coarser files.
    """
    assert advice.audited is not None and result.step is not None
    taken = with_step(advice.config, result.step)
    places = [folder / f"{name}" for name in file_names(taken.release)]
    tables = [t.model_copy(update={"path": str(p), "format": None}) for t, p in zip(taken.release, places, strict=True)]
    new_id = f"{advice.case.release_id}-recoded"[:128]
    whole = advice.audited.coarser(result.step.recode, tables, new_id)
    head = f"# Release {advice.case.release_id} of {advice.case.registry} made coarser: {result.step.text}.\n"
    return head + dumped(whole)


def dumped(config: Model) -> str:
    """What a configuration says beyond the defaults, as YAML."""
    plain: Mapping[str, Any] = config.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(dict(plain), sort_keys=False, allow_unicode=True)


