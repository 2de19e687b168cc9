"""A run's report for readers outside: the same page, from figures that may leave the house."""

from __future__ import annotations

import re
from dataclasses import replace

from rapid_spark.publishing import WITHHELD, Rule, protect
from rapid_spark.report import ReportData

from .outgoing import rule_of, without_places

NUMBER = re.compile(r"\d[\d,]*")


def protected(data: ReportData, rounding: int | None = None, min_cell_count: int | None = None) -> ReportData:
    """A report's data with small counts withheld and counts rounded, without places and the original's digest.

    Args:
        data: of a run.
        rounding: base of rounded counts; never below the run's own `publish.rounding`.
        min_cell_count: fewest people a count tells of; never below the run's own `drivers.min_cell_count`.
    """
    rule = rule_of(data.settings, rounding, min_cell_count)
    tables = protect(data.tables, rule).tables
    summary = tables["risk_summary"].copy()
    hidden = (summary["status"] == "ok") & summary["n_at_risk"].isna()
    summary.loc[hidden, ["status", "reason"]] = ["undefined", WITHHELD]
    rounded = f" and rounded to multiples of {rule.rounding}" if rule.rounding else ""
    said = f"For readers outside: counts of fewer than {rule.limit} people are withheld{rounded}; 0 is told."
    return replace(
        data, tables={**tables, "risk_summary": summary}, settings=without_places(data.settings), inputs={},
        warnings=(said, *(text for text in data.warnings if not _tells_few(text, rule))),
    )  # fmt: skip


def is_asked(data: ReportData) -> bool:
    """Whether the run's settings ask for figures that are fit to be published."""
    return rule_of(data.settings).rounding is not None


def _tells_few(text: str, rule: Rule) -> bool:
    """Whether a warning holds a number that could be a small or an exact count."""
    numbers = [int(found.replace(",", "")) for found in NUMBER.findall(text)]
    return any(0 < n < rule.limit or (rule.rounding and n % rule.rounding) for n in numbers)
