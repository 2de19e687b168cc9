"""What an audit came to: verdicts, what failed, the comparison, and what a report is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from rapid_spark import policy
from rapid_spark.report import ReportData
from rapid_spark.suite import rows_of


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
        report: what a report of it is made of, all result tables among it.
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
    warnings: list[str]
    report: ReportData = field(repr=False)

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
