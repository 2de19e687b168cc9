"""The audit: one session, one store and one run for many registries and releases, their verdicts and a fair comparison.

Registries are evaluated side by side; one that fails is told and the others go on. Rows of records are written while
Spark holds them, every other table once, for all registries together. `finished` is the last commit.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pandas as pd

from rapid_spark import history, io, policy, preparation, run, session, tracking
from rapid_spark.config import Config, ConfigError, settings_json
from rapid_spark.evaluation import settings_digest
from rapid_spark.interruption import Interruption, interruptible
from rapid_spark.policy import Previous, Verdict
from rapid_spark.report import ReportData
from rapid_spark.sidebyside import at_once, beside, inherited
from rapid_spark.store import Attempt, Store
from rapid_spark.strictjson import dumps
from rapid_spark.suite import rows_of
from rapid_spark.tracked import library_versions
from rapid_spark.tracking import Tracker
from rapid_spark.underway import Clock, checked_id, new_run_id, quiet

from . import comparison, strata
from .outcome import AuditOutcome
from .registry import Evaluated, Work, evaluate_registry
from .settings import AuditConfig, Registry, attack_settings, evaluation_settings
from .vocabulary import harmonised


def audit(
    config: AuditConfig,
    run_id: str | None = None,
    *,
    command: str = "audit",
    debug: bool = False,
    say: Callable[[str], None] = quiet,
    watch: Callable[[Any], None] = lambda _: None,
) -> AuditOutcome:
    """Evaluate and judge every release of every registry, store what was found, and track it.

    Args:
        config: registries, policy, and what they share.
        run_id: the same id again replaces its rows; a new one when left out.
        command: recorded in `runs`.
        debug: show Spark's log.
        say: called with the name of each stage.
        watch: called once with the session.

    Raises:
        ConfigError, AttackerError: the configuration is at fault; nothing was started. What is wrong with a registry's
            tables is no error: the release fails, and the others go on.
        StoreError, SessionError: the machine's.
    """
    run_id = checked_id(run_id or new_run_id())
    settings = evaluation_settings(config)
    settings = {name: preparation.with_store(c) for name, c in settings.items()}
    faults = dict.fromkeys(f for c in settings.values() for f in preparation.settings_faults(c))
    if faults:
        raise ConfigError("\n".join(faults))
    clock = Clock(say, {})
    with clock.stage("starting Spark"):
        spark = session.get(config.session, debug, [t for c in settings.values() for t in c.tables])
    watch(spark)
    with interruptible(spark, run_id) as interruption:
        return _Audit(spark, config, settings, run_id, command, clock, interruption).go()


@dataclass(frozen=True)
class _Opened:
    """The store, this attempt at the run, and what earlier runs say of these registries, where a rule asks for it."""

    store: Store
    attempt: Attempt
    earlier: pd.DataFrame | None


@dataclass
class _Audit:
    spark: Any
    config: AuditConfig
    settings: Mapping[str, Config]
    run_id: str
    command: str
    clock: Clock
    interruption: Interruption
    opening: Future[_Opened] = field(default_factory=Future)
    tracker: Tracker | None = None
    no_tracking: str = "tracking is off"
    versions: dict[str, int | None] = field(default_factory=dict)
    write_error: Exception | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def go(self) -> AuditOutcome:
        try:
            with tracking.without_autologging():
                self.opening = beside(self.spark, self._open, "opening store")
                found = self._evaluate()
            evaluated_at = datetime.now(UTC).replace(tzinfo=None)
            with self.clock.stage("judging"):
                verdicts = self._judge(found, evaluated_at)
                compared = self._compare(found, evaluated_at)
            with self.clock.stage("writing results"):
                self._write(found, verdicts, compared)
            with self.clock.stage("tracking"):
                self._track(found, verdicts, compared)
            status = "ok" if any(e.failed is None for e in found) else "failed"
            with self.clock.stage("finishing"):
                self._end(found, status)
        except BaseException:
            self._fail()
            raise
        return self._outcome(found, verdicts, compared, status)

    @property
    def _kept(self) -> AuditConfig:
        """The configuration as it is kept: without a password in an address."""
        first = next(iter(self.settings.values()))
        return self.config.model_copy(update={"tracking": run.recorded(first).tracking})

    @property
    def store(self) -> Store:
        """The store, once it is open."""
        return self.opening.result().store

    @property
    def attempt(self) -> Attempt:
        """This attempt, once it stands in the store."""
        return self.opening.result().attempt

    def _open(self) -> _Opened:
        """The store, the first commit of the run, tracking, earlier figures: beside the checks of the first tables."""
        attempt = None
        try:
            first = next(iter(self.settings.values()))
            store = Store.open(self.spark, str(first.store.location))
            attempt = store.begin(
                self.run_id, self.command, settings_json(self._kept), settings_digest(first), {}, library_versions()
            )
            tags = {"registries": str(len(self.settings)), "audience": str(self.config.policy.context.audience or "")}
            self.tracker, self.no_tracking = tracking.started(
                self.spark, first, store.directory, self.run_id, self.command, tags, self.config
            )
            if attempt.number > 1:  # what an earlier attempt left, also of registries that are gone from the file
                store.write(attempt, "risk_records", pd.DataFrame({"run_id": []}))
            asked = self.config.policy.asks_for("increase_over_previous")
            return _Opened(store, attempt, history.finished(store, list(self.settings)) if asked else None)
        except BaseException:
            if attempt is not None:
                with contextlib.suppress(Exception):
                    store.end(attempt, "failed")
            raise

    def _before(self, stage: str) -> None:
        """Before a stage of an evaluation: nothing long begins before the run stands in the store."""
        self.interruption.check()
        if stage != "checking tables":
            self.opening.result()

    def _evaluate(self) -> list[Evaluated]:
        by, bins = self._strata()
        cores = self.config.session.cores or session.cores()
        workers = min(self.config.workers, len(self.settings))
        work = Work(
            self.spark, self.run_id, max(1, cores // workers), by, bins, self.config.grouping == "registry",
            self._keep_records, self._before,
        )  # fmt: skip
        say, many = self.clock.say, len(self.settings)
        with self.clock.stage(f"evaluating {many} registries"), ThreadPoolExecutor(workers, "registry") as pool:
            futures = [
                pool.submit(inherited(self.spark, partial(self._one, work, registry)))
                for registry in self.config.registries
            ]
            found = self._gather(futures, lambda done: say(f"evaluating {many} registries, {done} done"))
        self.opening.result()  # where every registry failed at once, nobody has waited for it
        if self.write_error is not None:
            raise self.write_error
        return found

    def _gather(self, futures: Sequence[Future[list[Evaluated]]], tell: Callable[[int], None]) -> list[Evaluated]:
        try:
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                if done < len(futures):
                    tell(done)
            return [evaluated for future in futures for evaluated in future.result()]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def _one(self, work: Work, registry: Registry) -> list[Evaluated]:
        found = evaluate_registry(work, registry, self.settings[registry.name])
        self.interruption.check()
        return found

    def _strata(self) -> tuple[Sequence[str], dict[str, tuple[float, ...]]]:
        """Quasi-identifiers to standardise over, and cut points of the numeric ones."""
        compare, first = self.config.compare, self.config.registries[0]
        if not compare.enabled or len(self.settings) < 2:
            return (), {}
        shared = [c.sets for c in self.settings.values()]
        by = strata.dimensions(compare.by, shared[0]) if all(s == shared[0] for s in shared) else (compare.by or ())
        bins = dict(compare.bins)
        open_ones = [name for name in by if name not in bins]
        if open_ones:
            with contextlib.suppress(Exception):  # a first registry that cannot be read fails where it is evaluated
                source = harmonised(io.read(self.spark, first.original), first.vocabulary)
                bins |= strata.quartiles(source, [c for c in open_ones if c in source.columns])
        return by, bins

    def _keep_records(self, records: Any) -> None:
        # an error here is not the registry's: it ends the audit
        try:
            if self.write_error is None:
                version = self.store.write(self.attempt, "risk_records", records, append=True)
                with self.lock:
                    self.versions["risk_records"] = max(version or 0, self.versions.get("risk_records") or 0)
        except Exception as error:
            self.write_error = error

    def _judge(self, found: Sequence[Evaluated], evaluated_at: datetime) -> pd.DataFrame:
        limits = self.config.policy
        before = self.opening.result().earlier
        verdicts: list[Verdict] = []
        for registry, config in self.settings.items():
            mine = [e for e in found if e.registry == registry]
            previous = _first(before, mine, config)
            for evaluated in mine:
                if evaluated.failed is not None:
                    verdicts += policy.unevaluated(registry, evaluated.release_id, evaluated.failed)
                    previous = Previous(
                        evaluated.release_id, problem=f"release {evaluated.release_id} could not be evaluated"
                    )
                    continue
                verdicts += policy.judge(
                    limits, evaluated.summary, evaluated.tables.get("risk_subgroups"), previous, evaluated.comparable,
                    evaluated_at.date(),
                )  # fmt: skip
                previous = Previous(evaluated.release_id, policy.decisive(evaluated.summary))
        return policy.rows(verdicts, limits, self.run_id, evaluated_at)

    def _compare(self, found: Sequence[Evaluated], evaluated_at: datetime) -> pd.DataFrame:
        latest = {e.registry: e for e in found if e.failed is None}  # releases come in the order of their dates
        if not self.config.compare.enabled or len(latest) < 2:
            return pd.DataFrame(columns=list(comparison.COLUMNS))
        table = comparison.table(
            {name: e.summary for name, e in latest.items()},
            {name: e.strata for name, e in latest.items() if e.strata is not None},
            {name: attack_settings(self.settings[name]) for name in latest},
            self.config.compare,
        )
        return table.assign(run_id=self.run_id, evaluated_at=evaluated_at)

    def _write(self, found: Sequence[Evaluated], verdicts: pd.DataFrame, compared: pd.DataFrame) -> None:
        frames = _tables(found) | {"audit_verdicts": verdicts, "audit_comparison": compared}
        there = {name: frame for name, frame in frames.items() if frame is not None}
        self.store.need(*there)
        calls = [partial(self.store.write, self.attempt, name, frame) for name, frame in there.items()]
        versions = at_once(self.spark, calls)
        self.versions |= dict(zip(there, versions, strict=True))

    def _track(self, found: Sequence[Evaluated], verdicts: pd.DataFrame, compared: pd.DataFrame) -> None:
        if self.tracker is None:
            return
        overall = verdicts[verdicts["rule"] == policy.OVERALL]
        of_release = {(r["registry"], r["release_id"]): str(r["verdict"]) for r in rows_of(overall)}
        for e in found:
            self.tracker.log(
                replace(e, seconds={}), {}, tags={"verdict": of_release[e.registry, e.release_id]}, wait=False  # type: ignore[arg-type]
            )
        counts = overall["verdict"].value_counts()
        figures = {f"releases/{v}": float(counts.get(v, 0)) for v in policy.VERDICTS}
        figures |= {f"seconds/{k}": v for k, v in self.clock.seconds.items()}
        gravest = policy.gravest(map(str, overall["verdict"]))
        self.tracker.log_tables({"audit_verdicts": verdicts, "audit_comparison": compared}, figures, {"verdict": gravest})

    def _inputs(self, found: Sequence[Evaluated]) -> dict[str, Any]:
        return {
            "registries": {
                name: {e.release_id: e.inputs for e in found if e.registry == name} for name in self.settings
            },
            "warnings": _warnings(found),
        }

    def _end(self, found: Sequence[Evaluated], status: str) -> None:
        attempt = replace(self.attempt, row={**self.attempt.row, "inputs": dumps(self._inputs(found))})
        state = "failed" if status == "failed" else "finished"
        mlflow_run = None if self.tracker is None else self.tracker.wait_for_run()
        self.store.end(attempt, state, mlflow_run, self.versions)
        if self.tracker is not None:
            self.tracker.end(state.upper())

    def _fail(self) -> None:
        closing = threading.Thread(target=self._close_failed, daemon=True)
        closing.start()
        closing.join(run.LONGEST_CLOSING)

    def _close_failed(self) -> None:
        opened = None
        with contextlib.suppress(Exception):
            opened = self.opening.result(run.LONGEST_CLOSING)
        if self.tracker is not None:
            self.tracker.end("FAILED")
        if opened is not None:
            with contextlib.suppress(Exception):
                opened.store.end(opened.attempt, "failed", self.tracker.run_id if self.tracker else None, self.versions)

    def _outcome(
        self, found: Sequence[Evaluated], verdicts: pd.DataFrame, compared: pd.DataFrame, status: str
    ) -> AuditOutcome:
        warnings = _warnings(found)
        missing = self.tracker.problem if self.tracker else self.no_tracking
        if missing and self.config.tracking.enabled:
            warnings.append(f"tracking is missing or incomplete, the results are in the store: {missing}")
        failed = [e for e in found if e.failed is not None]
        return AuditOutcome(
            self.run_id,
            status,
            len(failed) == len(found) and all(e.at_fault for e in failed),
            str(self.store),
            self.tracker.run_id if self.tracker else None,
            self.tracker.where.shown if self.tracker and self.tracker.run_id else str(missing),
            verdicts,
            [{"registry": e.registry, "release_id": e.release_id, "reason": str(e.failed)} for e in failed],
            compared,
            self.clock.seconds,
            warnings,
            self._report(found, verdicts, compared),
        )

    def _report(self, found: Sequence[Evaluated], verdicts: pd.DataFrame, compared: pd.DataFrame) -> ReportData:
        tables = {**_tables(found), "audit_verdicts": verdicts, "audit_comparison": compared}
        return ReportData(
            self.run_id, {k: t for k, t in tables.items() if t is not None}, json.loads(settings_json(self._kept)),
            tuple(_warnings(found)), self._inputs(found), library_versions(), self.command,
            verdicts["evaluated_at"].iloc[0],
        )  # fmt: skip


def _first(before: pd.DataFrame | None, mine: Sequence[Evaluated], config: Config) -> Previous:
    """The release before the first one of this audit, as the store knows it."""
    if before is None or not mine:
        return Previous()
    first = mine[0]
    return history.previous(
        before, first.registry, first.release_id, first.config.release_date, settings_digest(config),
        [e.release_id for e in mine],
    )  # fmt: skip


def _tables(found: Sequence[Evaluated]) -> dict[str, pd.DataFrame | None]:
    names = dict.fromkeys(name for e in found for name in e.tables)
    return {name: _together([e.tables[name] for e in found if name in e.tables]) for name in names}


def _together(frames: Sequence[pd.DataFrame]) -> pd.DataFrame | None:
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else (frames[0] if frames else None)


def _warnings(found: Sequence[Evaluated]) -> list[str]:
    """Warnings of all registries, each once, under the registry's name."""
    return list(dict.fromkeys(f"{e.registry}: {text}" for e in found for text in e.warnings))
