"""Track a run afterwards, from what the store holds: where MLflow could not be reached while it ran."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from . import report, tracking
from .config import Config, ConfigError, parse
from .policy.verdicts import OVERALL
from .results import CLASSES, CURVE, SUMMARY, Assessment
from .store import Store, StoreError
from .tables import quoted
from .tracking import Tracker

COMMANDS = ("evaluate", "demo")  # whose tracking is the settings and results of one release


def track(
    store: Store,
    run_id: str,
    tracking_settings: Mapping[str, Any] | None = None,
    user: str | None = None,
    again: bool = False,
) -> dict[str, Any]:
    """Give a finished run the MLflow run that it lacks, and write its id into `runs`.

    What it logs is what the evaluation would have logged: settings, data sets, figures, plots and Delta versions, from
    the store's tables. Seconds by stage and fitted attackers are not in the store, so they are not logged. A run whose
    MLflow run is there and closed is left as it is.

    Args:
        store: the store.
        run_id: of the run.
        tracking_settings: settings of `tracking` in place of those recorded with the run (a password in an address is
            not recorded).
        user: name of the Databricks user, whose folder holds the experiment by default.
        again: track also where a closed MLflow run is there, as one that broke off half-way.

    Returns:
        `run_id`, `mlflow_run_id`, `tracking` (place), `status` ('tracked', or 'already tracked').

    Raises:
        ConfigError: there is no such finished run, its command is tracked in another way, or there is no place for runs.
        StoreError: MLflow does not answer, or refuses; the text says which.
    """
    data = report.read(store, run_id)
    if data.command not in COMMANDS:
        known = " and ".join(COMMANDS)
        raise ConfigError(f"run {run_id} is of the command {data.command!r}: only {known} are tracked afterwards")
    row = _finished(store, run_id)
    config = _config(data.settings, tracking_settings)
    where = tracking.place(config, store.directory, user)
    found = {"run_id": run_id, "tracking": where.shown}
    if not again and row["mlflow_run_id"] and tracking.is_complete(where, row["mlflow_run_id"]):
        return found | {"mlflow_run_id": row["mlflow_run_id"], "status": "already tracked"}
    tracker = Tracker(where, config, run_id, data.command)
    tracker.start()
    tracker.log(_assessment(data, row), json.loads(row["table_versions"] or "{}"))
    verdicts = data.tables.get("audit_verdicts", pd.DataFrame())
    if len(verdicts):
        (overall,) = verdicts.loc[verdicts["rule"] == OVERALL, "verdict"]
        tracker.log_tables({"audit_verdicts": verdicts}, {}, {"verdict": str(overall)})
    tracker.end("FINISHED")
    if tracker.problem is not None or tracker.run_id is None:
        raise StoreError(f"run {run_id} could not be tracked, its results are in the store as before: {tracker.problem}")
    name = store.qualified("runs")
    place = f"run_id = {quoted(run_id)} AND attempt = {int(row['attempt'])} AND state = 'finished'"
    update = f"UPDATE {name} SET mlflow_run_id = {quoted(tracker.run_id)} WHERE {place}"
    store.warehouse.commit("runs", lambda: store.warehouse.spark.sql(update))
    return found | {"mlflow_run_id": tracker.run_id, "status": "tracked"}


def _finished(store: Store, run_id: str) -> dict[str, Any]:
    """The row of `runs` for the end of the latest attempt, which `report.read` has found to be finished."""
    rows = store.query(f"SELECT * FROM finished_runs WHERE run_id = {quoted(run_id)}").collect()
    found: dict[str, Any] = rows[0].asDict()
    return found


def _config(settings: Mapping[str, Any], tracking_settings: Mapping[str, Any] | None) -> Config:
    own = {k: v for k, v in (tracking_settings or {}).items() if v is not None}
    recorded = dict(settings.get("tracking") or {})
    config: Config = parse({**settings, "tracking": {**recorded, **own, "enabled": True, "log_model": False}})
    return config


def _assessment(data: report.ReportData, row: Mapping[str, Any]) -> Assessment:
    summary = _table(data, "risk_summary", SUMMARY)
    if not len(summary):
        raise ConfigError(f"run {data.run_id}: the store holds no rows of it in risk_summary: there is nothing to track")
    first = summary.iloc[0]
    return Assessment(
        run_id=data.run_id, registry=str(first["registry"]), release_id=str(first["release_id"]), summary=summary,
        curve=_table(data, "risk_curve", CURVE), classes=_table(data, "risk_classes", CLASSES),
        tables={}, records=None, warnings=list(data.warnings), seconds={}, inputs=dict(data.inputs),
        evaluated_at=row["ended_at"],
    )  # fmt: skip


def _table(data: report.ReportData, name: str, columns: tuple[str, ...]) -> pd.DataFrame:
    frame = data.tables.get(name, pd.DataFrame(columns=list(columns)))
    return frame.astype(object).where(frame.notna(), None)
