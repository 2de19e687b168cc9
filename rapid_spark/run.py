"""The runner: configuration, session, tables, evaluation, store and tracking, in this order.

`started` is the first commit of a run and `finished` the last. Tracking can be missing, results cannot.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from . import assess, attackers, io, models, schema, session, tracking, training
from .assess import Clock, quiet
from .config import Config, ConfigError, check_identifier, settings_json
from .io import Source
from .results import Assessment
from .store import Attempt, Store
from .tracked import library_versions, redact
from .tracking import Tracker
from .strictjson import dumps
from .warehouse import is_writable, resolve

DEFAULT_STORE = "./rapid-store"
TERMINATED = 143  # what a shell reports of a process that SIGTERM ended


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
    """

    run_id: str
    status: str
    store: str
    mlflow_run_id: str | None
    tracking: str
    summary: pd.DataFrame
    seconds: dict[str, float]
    warnings: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """The outcome as `evaluate --format json` gives it."""
        return {
            "run_id": self.run_id,
            "status": self.status,
            "store": self.store,
            "mlflow_run_id": self.mlflow_run_id,
            "results": self.summary.to_dict("records"),
            "seconds": self.seconds,
            "warnings": self.warnings,
        }


@dataclass(frozen=True)
class Tables:
    """The tables of an evaluation as they were found; replicates are numbered from 1."""

    original: Source
    releases: dict[int, Source]
    holdout: Source | None

    @property
    def all(self) -> list[Source]:
        """Every table."""
        return [self.original, *self.releases.values(), *([self.holdout] if self.holdout else [])]

    def named(self) -> dict[str, Any]:
        """Names and Delta versions."""
        return {
            "original": {"name": self.original.name, "version": self.original.version},
            "releases": {str(r): {"name": s.name, "version": s.version} for r, s in self.releases.items()},
            **({"holdout": {"name": self.holdout.name, "version": self.holdout.version}} if self.holdout else {}),
        }


def new_run_id() -> str:
    """The time (UTC) and a random suffix, so that ids sort and two runs of one second differ."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


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
    """
    run_id = _checked_id(run_id or new_run_id())
    config = _ready(config)
    clock = Clock(say, {})
    with _terminable():
        with clock.stage("starting Spark"):
            spark = session.get(config.session, debug)
        watch(spark)
        with _tagged(spark, run_id):
            with clock.stage("opening tables"):
                tables = open_tables(spark, config)
            with clock.stage("opening store"):
                store = Store.open(spark, str(config.store.location))
            return _Run(spark, config, run_id, command, tables, store, clock).go()


@dataclass
class _Run:
    spark: Any
    config: Config
    run_id: str
    command: str
    tables: Tables
    store: Store
    clock: Clock
    attempt: Attempt = field(init=False)
    tracker: Tracker | None = None
    no_tracking: str = "tracking is off"
    versions: dict[str, int | None] = field(default_factory=dict)

    def go(self) -> Outcome:
        self.attempt = self.store.begin(
            self.run_id, self.command, settings_json(recorded(self.config)), assess.settings_digest(self.config),
            self.tables.named(), library_versions(), quasi_identifiers=self.config.all_quasi_identifiers,
            release_date=self.config.release_date,
        )
        assessment: Assessment | None = None
        try:
            self._start_tracking()
            with tempfile.TemporaryDirectory(prefix="rapid-spark-") as folder:
                keep = models.keeper(Path(folder)) if self._stores_models else None
                assessment = assess.evaluate(
                    self.spark, self.tables.original, self.tables.releases, self.config, self.run_id,
                    self.tables.holdout, self.config.session.cores or session.cores(), self.clock.say, keep,
                )
                self.clock.seconds |= {k: v for k, v in assessment.seconds.items()}
                with self.clock.stage("writing results"):
                    self._write(assessment)
                with self.clock.stage("tracking"):
                    self._track(assessment, Path(folder) if keep else None)
            status = _status(assessment.summary)
            with self.clock.stage("finishing"):
                self._end(assessment, status)
        except BaseException as error:
            self._fail(error)
            raise self._explained(error) from error
        finally:
            if assessment is not None:
                assessment.close()
        return self._outcome(assessment, status)

    @property
    def _stores_models(self) -> bool:
        return self.config.tracking.enabled and self.config.tracking.log_model

    def _start_tracking(self) -> None:
        if not self.config.tracking.enabled:
            return
        try:
            where = tracking.place(self.config, self.store.directory, _user(self.spark))
        except ConfigError as error:
            self.no_tracking = str(error)
            return
        self.tracker = Tracker(where, self.config, self.run_id, self.command)
        self.tracker.start()

    def _write(self, assessment: Assessment) -> None:
        # Records last: they are the largest, and what fails before them costs least.
        frames = {
            "risk_summary": assessment.summary, "risk_curve": assessment.curve, "risk_classes": assessment.classes,
            **assessment.tables, "risk_records": assessment.records,
        }
        for table, frame in frames.items():
            if frame is not None:
                self.versions[table] = self.store.write(
                    self.attempt, table, frame, assessment.registry, assessment.release_id
                )

    def _track(self, assessment: Assessment, folder: Path | None) -> None:
        if self.tracker is not None:
            assessment.seconds = self.clock.seconds
            self.tracker.log(assessment, self.versions, folder)

    def _end(self, assessment: Assessment, status: str) -> None:
        inputs = assessment.inputs
        n_release = sum(r["rows"] or 0 for r in inputs["releases"].values())
        self.attempt = replace(self.attempt, row={
            **self.attempt.row, "inputs": dumps(inputs), "n_release": n_release,
        })
        state = "failed" if status == "failed" else "finished"
        self.store.end(self.attempt, state, self.tracker.run_id if self.tracker else None, self.versions)
        if self.tracker is not None:
            self.tracker.end(state.upper())

    def _fail(self, error: BaseException) -> None:
        """Stop what runs, and say everywhere that the run failed; the first error stays the one that is told."""
        if not isinstance(error, Exception):
            with contextlib.suppress(Exception):
                self.spark.interruptTag(self.run_id)
        if self.tracker is not None:
            self.tracker.end("FAILED")
        with contextlib.suppress(Exception):
            self.store.end(self.attempt, "failed", self.tracker.run_id if self.tracker else None, self.versions)

    def _explained(self, error: BaseException) -> BaseException:
        """The user's fault behind an error of Spark, where a file turned out to be unreadable."""
        if isinstance(error, Exception):
            for source in self.tables.all:
                fault = io.fault_of(error, source)
                if fault is not None:
                    return fault
        return error

    def _outcome(self, assessment: Assessment, status: str) -> Outcome:
        warnings = list(assessment.warnings)
        missing = self.tracker.problem if self.tracker else self.no_tracking
        if missing and self.config.tracking.enabled:
            warnings.append(f"tracking is missing or incomplete, the results are in the store: {missing}")
        return Outcome(
            self.run_id, status, str(self.store), self.tracker.run_id if self.tracker else None,
            self.tracker.where.shown if self.tracker and self.tracker.run_id else str(missing),
            assessment.summary, self.clock.seconds, warnings,
        )


def check(
    config: Config, *, debug: bool = False, say: Callable[[str], None] = quiet,
    watch: Callable[[Any], None] = lambda _: None,
) -> dict[str, Any]:
    """Check settings and tables without fitting anything.

    Returns:
        `status`, `tables` (name, version, rows), `columns` (role, kind, missing), `combinations`, `warnings`; plain data.

    Raises:
        ConfigError, SchemaError, AttackerError: with every fault found.
    """
    config = _ready(config)
    clock = Clock(say, {})
    with clock.stage("starting Spark"):
        spark = session.get(config.session, debug)
    watch(spark)
    with clock.stage("opening tables"):
        tables = open_tables(spark, config)
    with clock.stage("checking tables"):
        aligned = schema.align(tables.original, tables.releases, config, tables.holdout)
    try:
        return plan(aligned, config, tables) | {"warnings": aligned.warnings}
    finally:
        aligned.close()


def plan(aligned: schema.Aligned, config: Config, tables: Tables) -> dict[str, Any]:
    """What an evaluation would do: tables, columns as they are taken, combinations; plain data, no values."""
    rows = {"original": aligned.n_original, **{f"release {r}": n for r, n in aligned.n_release.items()}}
    names = {"original": tables.original, **{f"release {r}": tables.releases.get(r) for r in aligned.n_release}}
    if tables.holdout is not None:
        rows["holdout"], names["holdout"] = aligned.n_holdout, tables.holdout
    first = next(iter(tables.releases.values()))
    listed = [
        {"table": place, "name": (names[place] or first).name, "version": (names[place] or first).version, "rows": n}
        for place, n in rows.items()
    ]
    columns: list[dict[str, Any]] = [
        {"column": q.name, "role": "quasi-identifier", "kind": q.kind, "missing": q.n_missing, "levels": None}
        for q in aligned.quasi_identifiers
    ]
    columns += [
        {"column": t.name, "role": "sensitive attribute", "kind": t.type, "missing": t.n_missing,
         "levels": len([level for level in t.levels if level is not None]) or None}
        for t in aligned.targets
    ]
    combinations = [
        {"qi_set": key.qi_set, "patterns": aligned.patterns[key.qi_set], "sensitive_attribute": target.name,
         "replicate": key.replicate, "attacker": attacker.name, "measure": measure,
         "computed": attackers.serves(attacker.name, target.type)}
        for key, target, attacker in training.keys(aligned, training.replicate_numbers(aligned.n_release, config), config)
        for measure in (config.measures if target.type == "categorical" else (config.threshold.error,))
    ]
    return {"status": "ok", "tables": listed, "columns": columns, "combinations": combinations}


def open_tables(spark: Any, config: Config) -> Tables:
    """Open every table that the configuration names.

    Raises:
        ConfigError: with the faults of all of them.
    """
    faults: list[str] = []

    def opened(table: Any) -> Any:
        try:
            return io.read(spark, table)
        except ConfigError as error:
            faults.append(str(error))

    original = opened(config.original)
    releases = [opened(table) for table in config.release]
    holdout = opened(config.holdout) if config.holdout is not None else None
    if faults:
        raise ConfigError("\n".join(dict.fromkeys(faults)))
    return Tables(original, assess.replicates(releases), holdout)


def recorded(config: Config) -> Config:
    """The configuration as it is kept: without a password in an address."""
    uri = config.tracking.uri
    return config.model_copy(update={"tracking": config.tracking.model_copy(update={"uri": uri and redact(uri)})})


def _ready(config: Config) -> Config:
    """What can be said before Spark starts: all tables named, attackers known, the store's place usable."""
    faults = [
        f"{name}: name a table, in the file or by --{name}" for name in ("original", "release")
        if not getattr(config, name)
    ]
    for part in (_check_store, _check_attackers, tracking.check):
        try:
            part(config)
        except (ConfigError, attackers.AttackerError) as error:
            faults.append(str(error))
    if faults:
        raise ConfigError("\n".join(faults))
    return with_store(config)


def with_store(config: Config) -> Config:
    """The configuration with the store's place filled in.

    Raises:
        ConfigError: on Databricks there is no default.
    """
    if config.store.location:
        return config
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        raise ConfigError("store.location: there is no default on Databricks: schema:[catalog.]schema, or a volume's path")
    return config.model_copy(update={"store": config.store.model_copy(update={"location": DEFAULT_STORE})})


def _check_store(config: Config) -> None:
    """Refuse a store that cannot be written, before anything starts; nothing is made."""
    location = str(with_store(config).store.location)
    directory, _ = resolve(location)
    if directory is None:
        return
    place = directory
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise ConfigError(f"store {location}: {place} is a file, a directory is needed: name another with --store")
    if not is_writable(place):
        raise ConfigError(f"store {location} cannot be written: choose another place with --store")


def _check_attackers(config: Config) -> None:
    """Refuse attackers or parameters that do not exist; all faults at once."""
    faults = []
    for attacker in config.attackers:
        kinds = [kind for kind in ("categorical", "continuous") if attackers.serves(attacker.name, kind)]
        for kind in kinds:
            try:
                attackers.build(attacker.name, attacker.parameters, kind, 0, 1, config.allow_code)
            except attackers.AttackerError as error:
                faults.append(str(error))
    if faults:
        raise attackers.AttackerError("\n".join(dict.fromkeys(faults)))


def _checked_id(run_id: str) -> str:
    try:
        return check_identifier(run_id)
    except ValueError as error:
        raise ConfigError(f"--run-id: {error}") from None


def _status(summary: pd.DataFrame) -> str:
    statuses = set(summary["status"])
    return next((s for s in ("ok", "failed") if s in statuses), "undefined")


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end a run like any error does, so that it is marked as failed and its jobs are stopped."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def terminate(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(TERMINATED)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def _tagged(spark: Any, tag: str) -> Iterator[None]:
    """Tag the jobs of this run: only they are stopped when it is, not those of others in a shared session."""
    spark.addTag(tag)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            spark.removeTag(tag)


def _user(spark: Any) -> str | None:
    """The Databricks user, whose folder holds the experiment by default."""
    if "DATABRICKS_RUNTIME_VERSION" not in os.environ:
        return None
    return str(spark.sql("select current_user()").first()[0])
