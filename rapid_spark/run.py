"""The runner: configuration, session, tables, evaluation, store and tracking, in this order.

`started` is the first commit of a run and `finished` the last. Tracking can be missing, results cannot.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from . import evaluation, history, models, policy, session, tracking
from .config import Config, settings_json
from .preparation import Tables, open_tables, ready
from .results import Assessment
from .sidebyside import at_once, beside
from .store import Attempt, Store
from .strictjson import dumps
from .tracked import library_versions, redact
from .tracking import Tracker
from .underway import Clock, checked_id, new_run_id, quiet, started

LONGEST_CLOSING = 60.0  # seconds that an end by error or signal may take; schedulers do not wait for ever


@dataclass
class Outcome:
    """What an evaluation came to.

    Attributes:
        run_id: of every row written.
        status: 'ok' where any combination has a figure, else 'undefined', or 'failed' where any broke.
        store: where the tables are.
        mlflow_run_id: parent run; None where tracking is missing.
        tracking: where runs go, or why there is none.
        summary: rows of risk_summary.
        seconds: by stage.
        warnings: what the reader must know.
        verdicts: rows of audit_verdicts; None without a policy.
        untracked: why MLflow lacks this run or a part of it; None where it was not asked for, or all is there.
    """

    run_id: str
    status: str
    store: str
    mlflow_run_id: str | None
    tracking: str
    summary: pd.DataFrame
    seconds: dict[str, float]
    warnings: list[str] = field(default_factory=list)
    verdicts: pd.DataFrame | None = None
    untracked: str | None = None

    @property
    def cleared(self) -> bool | None:
        """Whether every rule of the policy passes; None without a policy."""
        return None if self.verdicts is None else set(self.verdicts["verdict"]) == {"pass"}

    def document(self) -> dict[str, Any]:
        """The outcome as `evaluate --format json` gives it."""
        judged = {} if self.verdicts is None else {"cleared": self.cleared, "verdicts": self.verdicts.to_dict("records")}
        return {
            "run_id": self.run_id,
            "status": self.status,
            **judged,
            "store": self.store,
            "mlflow_run_id": self.mlflow_run_id,
            "results": self.summary.to_dict("records"),
            "seconds": self.seconds,
            "warnings": self.warnings,
        }


def evaluate(
    config: Config,
    run_id: str | None = None,
    *,
    command: str = "evaluate",
    debug: bool = False,
    say: Callable[[str], None] = quiet,
    watch: Callable[[Any], None] = lambda _: None,
) -> Outcome:
    """Evaluate one release, store what was found, and track it.

    Args:
        config: settings with the tables' places.
        run_id: the same id again replaces its rows; a new one when left out.
        command: recorded in `runs`.
        debug: show Spark's log.
        say: called with the name of each stage.
        watch: called once with the session.

    Raises:
        ConfigError, SchemaError, AttackerError: the user's input is at fault. Found before the tables' values are
            read, it leaves nothing behind; found later, the run's state is 'failed'.
        StoreError, SessionError: the machine's.

    Example:
        >>> from rapid_spark import evaluate, load
        >>> from rapid_spark.simulate import registry
        >>> registry(200, kappa=5, seed=1).to_csv("people.csv", index=False)
        >>> registry(200, kappa=5, seed=2).to_csv("published.csv", index=False)
        >>> outcome = evaluate(load(overrides={
        ...     "original": "people.csv", "release": ["published.csv"], "quasi_identifiers": ["age", "gender"],
        ...     "sensitive_attributes": ["disease_status"], "attackers": ["cart"], "store.location": "./rapid-store",
        ...     "tracking.enabled": False, "intervals.permutations": 0,
        ... }))
        >>> outcome.status, outcome.summary["attacker"].tolist()
        ('ok', ['cart'])
    """
    run_id = checked_id(run_id or new_run_id())
    config = ready(config)
    with started(config.session, config.tables, run_id, debug, say, watch) as (spark, clock, _):
        with clock.stage("opening tables"):
            tables = open_tables(spark, config)
        return _Run(spark, config, run_id, command, tables, clock).go()


@dataclass
class _Run:
    spark: Any
    config: Config
    run_id: str
    command: str
    tables: Tables
    clock: Clock
    store: Store = field(init=False)
    attempt: Attempt | None = None
    opening: Future[None] = field(init=False)
    tracker: Tracker | None = None
    no_tracking: str = "tracking is off"
    versions: dict[str, int | None] = field(default_factory=dict)
    verdicts: pd.DataFrame | None = None

    def _open(self) -> None:
        """The store, the first commit of the run, and tracking: what does not need the tables."""
        self.store = Store.open(self.spark, str(self.config.store.location))
        self.attempt = self.store.begin(
            self.run_id,
            self.command,
            settings_json(recorded(self.config)),
            evaluation.settings_digest(self.config),
            self.tables.named(),
            library_versions(),
            quasi_identifiers=self.config.all_quasi_identifiers,
            release_date=self.config.release_date,
        )
        self.tracker, self.no_tracking = tracking.started(
            self.spark, self.config, self.store.directory, self.run_id, self.command
        )

    def _stage(self, name: str) -> None:
        """Progress of the evaluation; nothing long begins before the run stands in the store."""
        if name == "checking tables":
            return self.clock.say(name)
        if self.opening.done():
            self.opening.result()
        else:
            with self.clock.stage("opening store"):
                self.opening.result()
        self.clock.say(name)

    def go(self) -> Outcome:
        assessment: Assessment | None = None
        try:
            with tempfile.TemporaryDirectory(prefix="rapid-spark-") as folder:
                keep = models.keeper(Path(folder)) if self._stores_models else None
                with tracking.without_autologging():
                    # only now: MLflow's modules import each other, so two threads must not import them at once
                    self._begin_opening()
                    assessment = evaluation.evaluate(
                        self.spark,
                        self.tables.original,
                        self.tables.releases,
                        self.config,
                        self.run_id,
                        self.tables.holdout,
                        self.config.session.cores or session.cores(),
                        self._stage,
                        keep,
                    )
                self.clock.seconds |= {k: v for k, v in assessment.seconds.items()}
                if self.config.policy is not None:
                    with self.clock.stage("judging"):
                        self.verdicts = self._judge(assessment, self.config.policy)
                with self.clock.stage("writing results"):
                    self._write(assessment)
                with self.clock.stage("tracking"):
                    self._track(assessment, Path(folder) if keep else None)
            status = _status(assessment.summary)
            with self.clock.stage("finishing"):
                self._end(assessment, status)
        except BaseException as error:
            self._fail()
            raise self.tables.explained(error) from error
        finally:
            if assessment is not None:
                assessment.close()
        return self._outcome(assessment, status)

    def _begin_opening(self) -> None:
        """Open the store while the tables are checked; both mostly wait for their first Spark jobs."""
        self.opening = beside(self.spark, self._open, "opening store")

    @property
    def _stores_models(self) -> bool:
        return self.config.tracking.enabled and self.config.tracking.log_model

    def _judge(self, assessment: Assessment, limits: policy.Policy) -> pd.DataFrame:
        """The policy's verdicts; the release before is looked up in the store where a rule asks for it."""
        before = None
        if limits.asks_for("increase_over_previous"):
            before = history.previous(
                history.finished(self.store, [assessment.registry]), assessment.registry, assessment.release_id,
                self.config.release_date, evaluation.settings_digest(self.config),
            )  # fmt: skip
        held = assessment.inputs.get("holdout") or {}
        verdicts = policy.judge(
            limits, assessment.summary, assessment.tables.get("risk_subgroups"), before, held.get("comparable"),
            assessment.evaluated_at.date(),
        )  # fmt: skip
        return policy.rows(verdicts, limits, self.run_id, assessment.evaluated_at)

    def _write(self, assessment: Assessment) -> None:
        # Records first: they take longest, and the small tables are written beside them.
        frames = {
            "risk_records": assessment.records,
            "risk_summary": assessment.summary,
            "risk_curve": assessment.curve,
            "risk_classes": assessment.classes,
            **assessment.tables,
            "audit_verdicts": self.verdicts,
        }
        attempt = self._attempt
        written = [table for table, frame in frames.items() if frame is not None]
        versions = at_once(self.spark, [
            partial(self.store.write, attempt, table, frames[table], assessment.registry, assessment.release_id)
            for table in written
        ])  # fmt: skip
        self.versions |= dict(zip(written, versions, strict=True))

    def _track(self, assessment: Assessment, folder: Path | None) -> None:
        if self.tracker is not None:
            assessment.seconds = self.clock.seconds
            self.tracker.log(assessment, self.versions, folder)
            if self.verdicts is not None:
                verdict = str(self.verdicts["verdict"].iloc[-1])  # overall comes last
                self.tracker.log_tables({"audit_verdicts": self.verdicts}, {}, {"verdict": verdict})

    def _end(self, assessment: Assessment, status: str) -> None:
        inputs = assessment.inputs
        n_release = sum(r["rows"] or 0 for r in inputs["releases"].values())
        attempt = replace(
            self._attempt,
            row={
                **self._attempt.row,
                "inputs": dumps(inputs),
                "n_release": n_release,
            },
        )
        state = "failed" if status == "failed" else "finished"
        self.store.end(attempt, state, self.tracker.run_id if self.tracker else None, self.versions)
        if self.tracker is not None:
            self.tracker.end(state.upper())

    @property
    def _attempt(self) -> Attempt:
        self.opening.result()
        assert self.attempt is not None
        return self.attempt

    def _fail(self) -> None:
        """Stop what runs, and say everywhere that the run failed; the first error stays the one that is told."""
        closing = threading.Thread(target=self._close_failed, daemon=True)
        closing.start()
        closing.join(LONGEST_CLOSING)

    def _close_failed(self) -> None:
        with contextlib.suppress(Exception):
            self.opening.result(LONGEST_CLOSING)
        if self.tracker is not None:
            self.tracker.end("FAILED")
        if self.attempt is not None:
            with contextlib.suppress(Exception):
                self.store.end(self.attempt, "failed", self.tracker.run_id if self.tracker else None, self.versions)

    def _outcome(self, assessment: Assessment, status: str) -> Outcome:
        warnings = list(assessment.warnings)
        missing = self.tracker.problem if self.tracker else self.no_tracking
        if missing and self.config.tracking.enabled:
            remedy = f" `rapid-spark track --run {self.run_id}` adds it." if self.tracker else ""
            warnings.append(f"tracking is missing or incomplete, the results are in the store: {missing}.{remedy}")
        return Outcome(
            self.run_id,
            status,
            str(self.store),
            self.tracker.run_id if self.tracker else None,
            self.tracker.where.shown if self.tracker and self.tracker.run_id else str(missing),
            assessment.summary,
            self.clock.seconds,
            warnings,
            self.verdicts,
            untracked=self.tracker.problem if self.tracker else None,
        )


def recorded(config: Config) -> Config:
    """The configuration as it is kept: without a password in an address."""
    uri = config.tracking.uri
    return config.model_copy(update={"tracking": config.tracking.model_copy(update={"uri": uri and redact(uri)})})


def _status(summary: pd.DataFrame) -> str:
    statuses = set(summary["status"])
    return next((s for s in ("ok", "failed") if s in statuses), "undefined")
