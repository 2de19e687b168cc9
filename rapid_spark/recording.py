"""A run of a command other than `evaluate`: session, tables, store, tracking, and the commits that open and close it.

`started` is the first commit and `finished` the last, as for evaluations; tracking can be missing, results cannot.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from . import evaluation, io, session, tracking
from .config import Config, ConfigError, check_identifier, settings_json
from .evaluation import Clock, quiet
from .interruption import interruptible
from .preparation import Tables, open_tables, with_store
from .run import recorded
from .store import Attempt, Store
from .strictjson import dumps
from .tracked import library_versions
from .tracking import Tracker


@dataclass
class Recording:
    """One run under way.

    Attributes:
        spark: session.
        config: settings, the store's place filled in.
        run_id: of every row.
        clock: seconds by stage.
        tables: as opened; None where the command reads none.
        store: where results go.
        warnings: what the reader must know; more may be added.
    """

    spark: Any
    config: Config
    run_id: str
    clock: Clock
    tables: Tables | None
    store: Store
    attempt: Attempt
    tracker: Tracker | None
    warnings: list[str] = field(default_factory=list)
    versions: dict[str, int | None] = field(default_factory=dict)
    mlflow_run_id: str | None = None

    @property
    def cores(self) -> int:
        """Tasks at once."""
        return self.config.session.cores or session.cores()

    def write(
        self, table: str, rows: list[dict[str, Any]], release_id: str | None = None, registry: str | None = None
    ) -> None:
        """Write rows of one release into one table, in one commit; registry and release are the configuration's."""
        with self.clock.stage("writing results"):
            self.versions[table] = self.store.write(
                self.attempt, table, pd.DataFrame(rows), registry or self.config.registry,
                release_id or self.config.release_id,
            )  # fmt: skip

    def track(self, tables: Mapping[str, list[dict[str, Any]]], figures: Mapping[str, float | None]) -> None:
        """Aggregates to MLflow: tables as JSON, figures as metrics."""
        if self.tracker is not None:
            with self.clock.stage("tracking"):
                self.tracker.log_tables({k: pd.DataFrame(v) for k, v in tables.items()}, figures, {})

    def document(self, **more: Any) -> dict[str, Any]:
        """What every command's JSON says."""
        return {"run_id": self.run_id, "status": "ok", "store": str(self.store), "mlflow_run_id": self.mlflow_run_id,
                **more, "seconds": self.clock.seconds, "warnings": self.warnings}  # fmt: skip


@contextlib.contextmanager
def recording(
    config: Config,
    command: str,
    run_id: str | None = None,
    *,
    reads: bool = True,
    needs: tuple[str, ...] = (),
    debug: bool = False,
    say: Callable[[str], None] = quiet,
    watch: Callable[[Any], None] = lambda _: None,
) -> Iterator[Recording]:
    """Open a run; whatever ends the block ends the run, as 'finished' or 'failed'.

    Args:
        config: settings.
        command: recorded in `runs`.
        run_id: the same id again replaces its rows.
        reads: whether the command reads the tables that the configuration names.
        needs: result tables to be made where they are missing.
        debug: show Spark's log.
        say, watch: as for evaluations.

    Raises:
        ConfigError: no table named, an unusable store, an id that is none.
    """
    run_id = run_id or evaluation.new_run_id()
    try:
        check_identifier(run_id)
    except ValueError as error:
        raise ConfigError(f"--run-id: {error}") from None
    if reads:
        faults = [f"{n}: name a table, in the file or by --{n}" for n in ("original", "release") if not getattr(config, n)]
        if faults:
            raise ConfigError("\n".join(faults))
    config = with_store(config)
    clock = Clock(say, {})
    with clock.stage("starting Spark"):
        spark = session.get(config.session, debug)
    watch(spark)
    with interruptible(spark, run_id) as interruption:

        def stage(name: str) -> None:
            interruption.check()
            say(name)

        clock = Clock(stage, clock.seconds)
        tables = None
        if reads:
            with clock.stage("opening tables"):
                tables = open_tables(spark, config)
        with clock.stage("opening store"):
            store = Store.open(spark, str(config.store.location))
            store.need(*needs)
        attempt = store.begin(
            run_id, command, settings_json(recorded(config)), evaluation.settings_digest(config),
            tables.named() if tables else {}, library_versions(), quasi_identifiers=config.all_quasi_identifiers,
            release_date=config.release_date,
        )  # fmt: skip
        run = Recording(spark, config, run_id, clock, tables, store, attempt, None)
        try:
            with tracking.without_autologging():
                run.tracker = _tracker(run, command)
                yield run
        except BaseException as error:
            _close(run, "failed")
            raise _explained(error, tables) from error
        else:
            _close(run, "finished")


def _tracker(run: Recording, command: str) -> Tracker | None:
    if not run.config.tracking.enabled:
        return None
    user = None
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        user = str(run.spark.sql("select current_user()").first()[0])
    try:
        where = tracking.place(run.config, run.store.directory, user)
    except ConfigError as error:
        run.warnings.append(f"tracking is missing, the results are in the store: {error}")
        return None
    tracker = Tracker(where, run.config, run.run_id, command)
    tracker.start()
    return tracker


def _close(run: Recording, state: str) -> None:
    if run.tracker is not None:
        if state == "finished":
            run.mlflow_run_id = run.tracker.wait_for_run()
        run.tracker.end(state.upper())
        if run.tracker.problem:
            run.warnings.append(f"tracking is missing or incomplete, the results are in the store: {run.tracker.problem}")
    with contextlib.suppress(Exception) if state == "failed" else contextlib.nullcontext():
        run.store.end(run.attempt, state, run.mlflow_run_id, run.versions)


def _explained(error: BaseException, tables: Tables | None) -> BaseException:
    """The user's fault behind an error of Spark, where a file turned out to be unreadable."""
    if isinstance(error, Exception) and tables is not None:
        for source in tables.all:
            fault = io.fault_of(error, source)
            if fault is not None:
                return fault
    return error


__all__ = ["Recording", "dumps", "recording"]
