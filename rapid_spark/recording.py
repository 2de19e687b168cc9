"""A run of a command other than `evaluate`: session, tables, store, tracking, and the commits that open and close it.

`started` is the first commit and `finished` the last, as for evaluations; tracking can be missing, results cannot.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from . import evaluation, session, tracking
from .config import Config, ConfigError, settings_json
from .preparation import Tables, open_tables, unnamed, with_store
from .run import recorded
from .store import Attempt, Store
from .strictjson import dumps
from .tracked import library_versions
from .tracking import Tracker
from .underway import Clock, checked_id, new_run_id, quiet, started


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
    run_id = checked_id(run_id or new_run_id())
    if reads and (faults := unnamed(config)):
        raise ConfigError("\n".join(faults))
    config = with_store(config)
    with started(config.session, config.tables, run_id, debug, say, watch) as (spark, clock, _):
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
                run.tracker, missing = tracking.started(spark, config, store.directory, run_id, command)
                if run.tracker is None and config.tracking.enabled:
                    run.warnings.append(f"tracking is missing, the results are in the store: {missing}")
                yield run
        except BaseException as error:
            _close(run, "failed")
            raise (tables.explained(error) if tables else error) from error
        else:
            _close(run, "finished")


def _close(run: Recording, state: str) -> None:
    if run.tracker is not None:
        if state == "finished":
            run.mlflow_run_id = run.tracker.wait_for_run()
        run.tracker.end(state.upper())
        if run.tracker.problem:
            run.warnings.append(f"tracking is missing or incomplete, the results are in the store: {run.tracker.problem}")
    with contextlib.suppress(Exception) if state == "failed" else contextlib.nullcontext():
        run.store.end(run.attempt, state, run.mlflow_run_id, run.versions)


__all__ = ["Recording", "dumps", "recording"]
