"""Which release is the one before, as the rows of earlier runs tell."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pandas as pd
import pytest

from rapid_spark.history import COLUMNS, previous
from rapid_spark.policy import Previous

GROUP = ("all", "ill", "normalized_gain")
ROW: dict[str, Any] = {
    "run_id": "x", "registry": "r", "release_id": "1", "release_date": dt.date(2024, 1, 1), "replicate": 1,
    "scored_on": "original", "qi_set": "all", "sensitive_attribute": "ill", "target_type": "categorical",
    "measure": "normalized_gain", "attacker": "rf", "weighting": "none", "threshold": 0.3, "rapid": 0.2, "status": "ok",
    "reason": None, "settings_digest": "s", "evaluated_at": pd.Timestamp("2024-02-01"),
}  # fmt: skip
NEXT = {"run_id": "y", "release_id": "2", "release_date": dt.date(2025, 1, 1), "rapid": 0.3}
LATER = {"run_id": "z", "release_id": "3", "release_date": dt.date(2027, 1, 1), "rapid": 0.9}


def before(*changes: dict[str, Any], released: dt.date | None = dt.date(2026, 1, 1), without: tuple[str, ...] = ()) -> Previous:
    rows = pd.DataFrame([{**ROW, **c} for c in changes], columns=list(COLUMNS), dtype=object)
    return previous(rows, "r", "now", released, "s", without)


def test_the_newest_earlier_release_is_the_one_before() -> None:
    found = before({}, NEXT, LATER)
    assert (found.release_id, dict(found.rates), found.problem) == ("2", {GROUP: 0.3}, None)


def test_its_latest_run_under_the_same_settings_counts() -> None:
    again = {**NEXT, "run_id": "y2", "rapid": 0.4, "evaluated_at": pd.Timestamp("2026-01-01")}
    other = {**NEXT, "run_id": "y3", "rapid": 0.8, "evaluated_at": pd.Timestamp("2026-06-01"), "settings_digest": "t"}
    assert before(NEXT, again, other).rates == {GROUP: 0.4}
    assert "under other settings" in str(before(other).problem)


@pytest.mark.parametrize("rows", [[], [{"registry": "another"}], [{"release_id": "now"}], [LATER]])
def test_without_an_earlier_release_there_is_none(rows: list[dict[str, Any]]) -> None:
    assert before(*rows) == Previous()


def test_without_dates_it_is_not_known_which() -> None:
    assert "release_date tells" in str(before({}, released=None).problem)
    assert "all without release_date" in str(before({"release_date": None}).problem)
    assert before({}, released=None, without=("1",)) == Previous()


def test_a_combination_without_a_figure_leaves_its_group_out() -> None:
    assert before({}, {"attacker": "gbm", "status": "failed", "rapid": None}).rates == {}
