"""What a report is made of, from an `Assessment` or from the tables of a store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pandas as pd

from ..config import ConfigError, check_identifier

TABLES = (
    "risk_summary", "risk_curve", "risk_classes", "risk_subgroups", "risk_patterns", "risk_attribution",
    "risk_relations", "risk_distributions", "risk_joint", "audit_verdicts", "audit_comparison",
    "release_decisions",
)


class Readable(Protocol):
    """A store, as far as a report needs it."""

    def names(self) -> list[str]: ...  # noqa: D102
    def query(self, sql: str) -> Any: ...  # noqa: D102


@dataclass(frozen=True)
class ReportData:
    """What a report is made of.

    Attributes:
        run_id: of the run.
        tables: result tables by name (`risk_summary` at least), with the contract's columns.
        settings: the configuration of the run, as plain data.
        warnings: what the reader must know.
        inputs: names, versions and row counts of what was read.
        versions: of the libraries.
        command: that was run.
        evaluated_at: UTC.
        comparable: whether holdout and original look like a random split of one population; None: not known.
    """

    run_id: str
    tables: Mapping[str, pd.DataFrame]
    settings: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    evaluated_at: Any = None
    comparable: bool | None = None

    @property
    def summary(self) -> pd.DataFrame:
        """Rows of risk_summary."""
        return self.tables["risk_summary"]

    @property
    def curve(self) -> pd.DataFrame:
        """Rows of risk_curve."""
        return self.tables.get("risk_curve", pd.DataFrame())

    @property
    def classes(self) -> pd.DataFrame:
        """Rows of risk_classes."""
        return self.tables.get("risk_classes", pd.DataFrame())


def of_assessment(
    assessment: Any, versions: Mapping[str, str] | None = None, command: str = ""
) -> ReportData:
    """The report's data from an `Assessment`.

    Args:
        assessment: result of an evaluation.
        versions: of the libraries.
        command: that was run.
    """
    tables = {
        **assessment.tables, "risk_summary": assessment.summary, "risk_curve": assessment.curve,
        "risk_classes": assessment.classes,
    }
    return ReportData(
        run_id=assessment.run_id, tables=tables, settings=_loaded(assessment.settings),
        warnings=tuple(assessment.warnings), inputs=assessment.inputs, versions=versions or {},
        command=command, evaluated_at=assessment.evaluated_at, comparable=_comparable(assessment.inputs),
    )


def read(store: Readable, run_id: str) -> ReportData:
    """The report's data of a finished run from a store's tables.

    Args:
        store: a `Store`, or anything with its `names` and `query` (a frame of Spark or pandas).
        run_id: of the run.

    Raises:
        ConfigError: there is no such run, or its latest attempt is not finished.
    """
    check_identifier(run_id)
    runs = _pandas(store.query("SELECT * FROM runs ORDER BY started_at DESC"))
    mine = runs[runs["run_id"] == run_id]
    if not len(mine):
        there = ", ".join(runs["run_id"].drop_duplicates().head(5)) or "none"
        raise ConfigError(f"run {run_id}: the store has no such run; its latest are: {there}")
    latest = mine[mine["attempt"] == mine["attempt"].max()]
    if "finished" not in set(latest["state"]):
        raise ConfigError(f"run {run_id}: its latest attempt is not finished, no figure of it counts: run it again")
    row = latest[latest["state"] == "finished"].iloc[0]
    present = set(store.names())
    tables = {t: _pandas(store.query(f"SELECT * FROM {t} WHERE run_id = '{run_id}'")) for t in TABLES if t in present}
    inputs = _loaded(row.get("inputs"))
    return ReportData(
        run_id=run_id, tables=tables, settings=_loaded(row.get("config")), inputs=inputs,
        warnings=tuple(map(str, inputs.get("warnings", ()))),
        versions=_loaded(row.get("package_versions")), command=str(row.get("command") or ""),
        evaluated_at=row.get("ended_at"), comparable=_comparable(inputs),
    )


def _pandas(frame: Any) -> pd.DataFrame:
    found: pd.DataFrame = frame.toPandas() if hasattr(frame, "toPandas") else frame
    return found


def _loaded(text: Any) -> dict[str, Any]:
    return json.loads(text) if isinstance(text, str) and text else {}


def _comparable(inputs: Mapping[str, Any]) -> bool | None:
    holdout = inputs.get("holdout")
    found = holdout.get("comparable") if isinstance(holdout, Mapping) else None
    return found if isinstance(found, bool) else None
