"""Texts of table cells: rates with intervals, figures, what is not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from .. import wording
from ..wording import count, interval, number, percent, plain

LONGEST_CELL = 120
Columns = Mapping[str, Callable[[dict[str, Any]], str]]  # heading: text of a row


def rate(row: Mapping[str, Any], low: str = "ci_low", high: str = "ci_high", rate: str = "rapid") -> str:
    return f"{percent(row.get(rate))} {interval(row.get(low), row.get(high))}".strip()


def any_of(frame: pd.DataFrame, column: str) -> bool:
    return column in frame and bool(frame[column].notna().any())


def claims(row: Mapping[str, Any]) -> str:
    if number(row.get("claims_correct")) is None:
        return wording.NOT_KNOWN
    return f"{percent(row['claims_correct'])} of {count(row['n_confident_claims'])}"


def decimal(column: str) -> Callable[[dict[str, Any]], str]:
    """A figure that is no share, with four digits that count."""

    def shown(row: Mapping[str, Any]) -> str:
        value = number(row.get(column))
        if value is None:
            return wording.NOT_KNOWN
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

    return shown


def given(value: Any) -> bool:
    return value is not None and value == value and value is not pd.NaT


def text_of(value: Any) -> str:
    """A value of any kind, in a cell."""
    if not given(value):
        return wording.NOT_KNOWN
    return f"{value:.4g}" if isinstance(value, float) else plain(value, LONGEST_CELL)
