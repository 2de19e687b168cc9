"""The audit: one session, one store and one run for many registries and releases, their verdicts and a fair comparison.

Registries are evaluated side by side; one that fails is told and the others go on. Rows of records are written while
Spark holds them, every other table once, for all registries together. `finished` is the last commit.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from rapid_spark import history, io, policy, preparation, run, session, tracking
from rapid_spark.config import Config, ConfigError, settings_json
from rapid_spark.evaluation import Clock, new_run_id, quiet, settings_digest
from rapid_spark.interruption import Interruption, interruptible
from rapid_spark.policy import Previous, Verdict
from rapid_spark.store import Attempt, Store
from rapid_spark.strictjson import dumps
from rapid_spark.suite import rows_of
from rapid_spark.tracked import library_versions
from rapid_spark.tracking import Tracker

from . import comparison, strata
from .registry import Evaluated, Work, evaluate_registry
from .settings import AuditConfig, attack_settings, evaluation_settings
from .vocabulary import harmonised

EVALUATION_TABLES = ("risk_summary", "risk_curve", "risk_classes", "risk_subgroups", "risk_patterns", "risk_attribution")


@dataclass
class AuditOutcome:
    """What an audit came to.

    Attributes:
        run_id: of every row written.
        status: 'ok' where any release was evaluated, else 'failed'.
        at_fault: nothing could be evaluated, and each time the user's input was the reason.
        store: where the tables are.
        mlflow_run_id, tracking: parent run, and where it is or why there is none.
        verdicts: rows of audit_verdicts.
        failed: releases that could not be evaluated: registry, release_id, reason.
        comparison: rows of audit_comparison.
        seconds: by stage.
        warnings: what the reader must know.
    """

    run_id: str
    status: str
    at_fault: bool
    store: str
    mlflow_run_id: str | None
    tracking: str
    verdicts: pd.DataFrame
    failed: list[dict[str, str]]
    comparison: pd.DataFrame
    seconds: dict[str, float]
    warnings: list[str] = field(default_factory=list)

    @property
    def cleared(self) -> bool:
        """Whether every rule of every release passes."""
        return bool(len(self.verdicts)) and set(self.verdicts["verdict"]) == {"pass"}

    @property
    def not_cleared(self) -> list[dict[str, Any]]:
        """The overall verdicts that are not a pass."""
        overall = self.verdicts[self.verdicts["rule"] == policy.OVERALL]
        return [row for row in rows_of(overall) if row["verdict"] != "pass"]

    def document(self) -> dict[str, Any]:
        """The outcome as `audit --format json` gives it."""
        return {
            "run_id": self.run_id,
            "status": self.status,
            "cleared": self.cleared,
            "store": self.store,
            "mlflow_run_id": self.mlflow_run_id,
            "verdicts": self.verdicts.to_dict("records"),
            "failed": self.failed,
            "comparison": self.comparison.to_dict("records"),
            "seconds": self.seconds,
            "warnings": self.warnings,
        }


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
    run_id = run.checked_id(run_id or new_run_id())
    settings = evaluation_settings(config)
    settings = {name: preparation.with_store(c) for name, c in settings.items()}
    faults = dict.fromkeys(f for c in settings.values() for f in preparation.settings_faults(c))
    if faults:
        raise ConfigError("\n".join(faults))
    clock = Clock(say, {})
    with clock.stage("starting Spark"):
        spark = session.get(config.session, debug)
    watch(spark)
    with interruptible(spark, run_id) as interruption:
        with clock.stage("opening store"):
            store = Store.open(spark, str(next(iter(settings.values())).store.location))
        return _Audit(spark, config, settings, run_id, command, store, clock, interruption).go()


@dataclass
class _Audit:
    spark: Any
    config: AuditConfig
    settings: Mapping[str, Config]
    run_id: str
    command: str
    store: Store
    clock: Clock
    interruption: Interruption
    attempt: Attempt = field(init=False)
    tracker: Tracker | None = None
    no_tracking: str = "tracking is off"
    versions: dict[str, int | None] = field(default_factory=dict)
    write_error: Exception | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def go(self) -> AuditOutcome:
        kept = self.config.model_copy(update={"tracking": run.recorded(next(iter(self.settings.values()))).tracking})
        self.attempt = self.store.begin(
            self.run_id, self.command, settings_json(kept), settings_digest(next(iter(self.settings.values()))), {},
            library_versions(),
        )  # fmt: skip
        try:
            with tracking.without_autologging():
                self._start_tracking()
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

    def _start_tracking(self) -> None:
        first = next(iter(self.settings.values()))
        if not first.tracking.enabled:
            return
        try:
            where = tracking.place(first, self.store.directory, run.user(self.spark))
        except ConfigError as error:
            self.no_tracking = str(error)
            return
        tags = {"registries": str(len(self.settings)), "audience": str(self.config.policy.context.audience or "")}
        self.tracker = Tracker(where, self.config, self.run_id, self.command, tags)
        self.tracker.start()

    def _evaluate(self) -> list[Evaluated]:
        by, bins = self._strata()
        cores = self.config.session.cores or session.cores()
        workers = min(self.config.workers, len(self.settings))
        work = Work(
            self.spark, self.run_id, max(1, cores // workers), by, bins, self.config.grouping == "registry",
            self._keep_records, self.interruption.check,
        )  # fmt: skip
        if self.attempt.number > 1:  # what an earlier attempt left, also of registries that are gone from the file
            self.store.write(self.attempt, "risk_records", pd.DataFrame({"run_id": []}))
        say, many = self.clock.say, len(self.settings)
        with self.clock.stage(f"evaluating {many} registries"), ThreadPoolExecutor(workers, "registry") as pool:
            futures = [
                pool.submit(self._in_thread, lambda r=registry: evaluate_registry(work, r, self.settings[r.name]))  # type: ignore[misc]
                for registry in self.config.registries
            ]
            found = self._gather(futures, lambda done: say(f"evaluating {many} registries, {done} done"))
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

    def _in_thread(self, work: Callable[[], list[Evaluated]]) -> list[Evaluated]:
        session.add_tag(self.spark, self.run_id)  # tags are known to the thread that set them
        found = work()
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
        before = self._history()
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

    def _history(self) -> pd.DataFrame | None:
        if not self.config.policy.asks_for("increase_over_previous"):
            return None
        return history.finished(self.store, list(self.settings))

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
        frames = {name: _together([e.tables[name] for e in found if name in e.tables]) for name in EVALUATION_TABLES}
        frames |= {"audit_verdicts": verdicts, "audit_comparison": compared}
        self.store.need("audit_verdicts", "audit_comparison")
        with ThreadPoolExecutor(2, "writer") as pool:  # commits of different tables wait for different logs
            there = {name: frame for name, frame in frames.items() if frame is not None}
            futures = {name: pool.submit(self._write_one, name, frame) for name, frame in there.items()}
            for name, future in futures.items():
                self.versions[name] = future.result()

    def _write_one(self, table: str, frame: pd.DataFrame) -> int | None:
        session.add_tag(self.spark, self.run_id)
        return self.store.write(self.attempt, table, frame)

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
        self.attempt = replace(self.attempt, row={**self.attempt.row, "inputs": dumps(self._inputs(found))})
        state = "failed" if status == "failed" else "finished"
        mlflow_run = None if self.tracker is None else self.tracker.wait_for_run()
        self.store.end(self.attempt, state, mlflow_run, self.versions)
        if self.tracker is not None:
            self.tracker.end(state.upper())

    def _fail(self) -> None:
        closing = threading.Thread(target=self._close_failed, daemon=True)
        closing.start()
        closing.join(run.LONGEST_CLOSING)

    def _close_failed(self) -> None:
        if self.tracker is not None:
            self.tracker.end("FAILED")
        with contextlib.suppress(Exception):
            self.store.end(self.attempt, "failed", self.tracker.run_id if self.tracker else None, self.versions)

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
        )


def _first(before: pd.DataFrame | None, mine: Sequence[Evaluated], config: Config) -> Previous:
    """The release before the first one of this audit, as the store knows it."""
    if before is None or not mine:
        return Previous()
    first = mine[0]
    return history.previous(
        before, first.registry, first.release_id, first.config.release_date, settings_digest(config),
        [e.release_id for e in mine],
    )  # fmt: skip


def _together(frames: Sequence[pd.DataFrame]) -> pd.DataFrame | None:
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else (frames[0] if frames else None)


def _warnings(found: Sequence[Evaluated]) -> list[str]:
    """Warnings of all registries, each once, under the registry's name."""
    return list(dict.fromkeys(f"{e.registry}: {text}" for e in found for text in e.warnings))
