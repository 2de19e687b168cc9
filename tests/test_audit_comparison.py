"""The comparison of registries: standardised rates and differences against direct computations and known laws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep

from rapid_spark.audit import comparison
from rapid_spark.audit.comparison import Rate, Side
from rapid_spark.audit.settings import Compare
from rapid_spark.intervals import proportion

PLAIN = Compare(min_n=1, min_stratum=1, min_coverage=0.5)


def rate(hits: float, n: int) -> Rate:
    low, high = proportion(hits, n, 0.95, "wilson")
    return Rate(hits / n, float(low or 0), float(high or 0))


def strata(n: list[int], hits: list[int], names: str = "abcdef") -> pd.DataFrame:
    return pd.DataFrame({"n": n, "hits": hits}, index=list(names[: len(n)]))


def side(name: str, n: list[int], hits: list[int], **more: Any) -> Side:
    return Side(name, "1", sum(n), rate(sum(hits), sum(n)), strata(n, hits), **more)


def test_a_difference_of_two_has_newcombes_interval() -> None:
    ours = comparison.difference(rate(30, 100), [rate(25, 150)])
    low, high = confint_proportions_2indep(30, 100, 25, 150, method="newcomb", compare="diff")
    assert (ours.value, ours.low, ours.high) == pytest.approx((0.3 - 1 / 6, low, high))


def test_a_difference_to_the_mean_of_others_is_as_sure_as_their_mean() -> None:
    one, others = Rate(0.5, 0.4, 0.6), [Rate(0.2, 0.1, 0.3), Rate(0.4, 0.3, 0.5)]
    found = comparison.difference(one, others)
    half = math.sqrt(0.1**2 + 2 * (0.1 / 2) ** 2)
    assert (found.value, found.low, found.high) == pytest.approx((0.2, 0.2 - half, 0.2 + half))


def test_registries_that_differ_only_in_their_people_have_the_same_standardised_rate() -> None:
    young = side("young", [900, 100], [90, 50])  # 10 % of the young, 50 % of the old
    old = side("old", [200, 800], [20, 400])
    rows = {r["registry"]: r for r in comparison.compare([young, old], PLAIN)}
    assert rows["young"]["rapid"] == pytest.approx(0.14) and rows["old"]["rapid"] == pytest.approx(0.42)
    weight_of_old = (0.1 + 0.8) / 2
    expected = 0.1 * (1 - weight_of_old) + 0.5 * weight_of_old
    assert [r["standardised"] for r in rows.values()] == pytest.approx([expected, expected])
    assert rows["young"]["difference_high"] < 0 < rows["old"]["difference_low"]
    assert rows["young"]["standardised_difference"] == pytest.approx(0)
    assert rows["young"]["standardised_difference_low"] < 0 < rows["young"]["standardised_difference_high"]


def test_equal_distributions_leave_the_raw_rate() -> None:
    rows = comparison.compare([side("a", [50, 50], [10, 30]), side("b", [500, 500], [50, 100])], PLAIN)
    assert [r["standardised"] for r in rows] == pytest.approx([0.4, 0.15])
    assert all(r["coverage"] == pytest.approx(1) for r in rows)


def test_a_large_registry_does_not_decide_the_common_distribution() -> None:
    weights, coverage = comparison.common_weights([strata([10, 90], [0, 0]), strata([90_000, 10_000], [0, 0])], 1)
    assert list(weights) == pytest.approx([0.5, 0.5]) and coverage == pytest.approx(1)


def test_only_strata_that_every_registry_fills_count() -> None:
    one, two = strata([40, 40, 20], [4, 8, 20]), strata([50, 50], [5, 5])
    weights, coverage = comparison.common_weights([one, two], 5)
    assert list(weights.index) == ["a", "b"] and coverage == pytest.approx((0.8 + 1.0) / 2)
    assert weights.sum() == pytest.approx(1)


def test_too_little_in_common_gives_raw_rates_with_a_note() -> None:
    narrow = Compare(min_n=1, min_coverage=0.95)
    rows = comparison.compare([side("a", [40, 40, 20], [4, 8, 20]), side("b", [50, 50], [5, 5])], narrow)
    assert all(r.get("standardised") is None and r["difference"] is not None for r in rows)
    assert all("hold 90.0 % of the common distribution" in r["note"] for r in rows)


def test_a_registry_that_is_too_small_is_told_and_not_compared() -> None:
    rows = comparison.compare(
        [side("a", [300], [30]), side("b", [400], [80]), side("tiny", [20], [19])], Compare(min_n=100)
    )
    assert "20 records: fewer than 100" in rows[2]["note"] and rows[2].get("difference") is None
    assert rows[0]["difference"] == pytest.approx(-0.1) and rows[0]["compared_with"] == "b"


def test_other_attackers_are_no_fair_comparison() -> None:
    rows = comparison.compare([side("a", [300], [30], settings="rf"), side("b", [400], [80], settings="gbm")], PLAIN)
    assert all(r.get("difference") is None and "set differently" in r["note"] for r in rows)


def test_a_reference_is_compared_with_nobody_and_the_others_with_it() -> None:
    sides = [side("a", [300], [30]), side("b", [400], [80]), side("c", [500], [50])]
    rows = {r["registry"]: r for r in comparison.compare(sides, Compare(reference="b", min_n=1))}
    assert rows["b"].get("difference") is None and rows["b"]["standardised"] == pytest.approx(0.2)
    assert rows["a"]["compared_with"] == "b" and rows["c"]["difference"] == pytest.approx(-0.1)


def test_without_strata_raw_rates_are_compared_and_a_note_says_so() -> None:
    bare = [Side("a", "1", 300, rate(30, 300), None), Side("b", "1", 400, rate(80, 400), None)]
    rows = comparison.compare(bare, PLAIN)
    assert rows[0]["difference"] == pytest.approx(-0.1) and "raw rates only" in rows[0]["note"]


def test_effective_n_gives_back_the_size_behind_an_interval() -> None:
    for p, n in ((0.3, 137.0), (0.02, 900.0), (0.97, 50.0)):
        low, high = proportion(p * n, n, 0.95, "wilson")
        assert comparison.effective_n(Rate(p, float(low or 0), float(high or 0)), 5000, 0.95) == pytest.approx(n, rel=1e-4)
    assert comparison.effective_n(rate(30, 100), 100, 0.95) == 100


def test_the_interval_of_a_standardised_rate_covers_as_it_says() -> None:
    rng = np.random.default_rng(3)
    weights = pd.Series([0.5, 0.3, 0.2], index=list("abc"))
    n, p = np.array([400, 60, 20]), np.array([0.1, 0.4, 0.7])
    true = float(weights.to_numpy() @ p)
    inside = 0
    for _ in range(2000):
        found = comparison.standardised(strata(list(n), list(rng.binomial(n, p))), weights, 1.0, 0.95)
        inside += found.low <= true <= found.high
    assert stats.binomtest(inside, 2000, 0.95).pvalue > 0.001 or inside / 2000 > 0.95


def test_wider_raw_intervals_widen_the_standardised_one() -> None:
    weights = pd.Series([1.0], index=["a"])
    narrow, wide = (comparison.standardised(strata([100], [30]), weights, f, 0.95) for f in (1.0, 4.0))
    assert (wide.high - wide.low) == pytest.approx(2 * (narrow.high - narrow.low), rel=0.05)


def test_the_table_takes_each_attacker_and_means_over_copies() -> None:
    keys = {"qi_set": "all", "sensitive_attribute": "ill", "measure": "normalized_gain", "attacker": "rf"}
    base = {**keys, "scored_on": "original", "status": "ok", "weighting": "none", "release_id": "1", "n": 100}

    def rows(*rates: float) -> pd.DataFrame:
        return pd.DataFrame([
            {**base, "replicate": i, "rapid": r, "ci_low": r - 0.1, "ci_high": r + 0.1} for i, r in enumerate(rates, 1)
        ], dtype=object)  # fmt: skip

    def counts(*hits: int) -> pd.DataFrame:
        return pd.DataFrame([{**keys, "replicate": i, "stratum": "x", "n": 100, "hits": h} for i, h in enumerate(hits, 1)])

    pooled = pd.DataFrame([{**base, "replicate": 0, "rapid": 0.9, "ci_low": 0.8, "ci_high": 1.0}], dtype=object)
    found = comparison.table(
        {"a": pd.concat([rows(0.2, 0.4), pooled]), "b": rows(0.5)}, {"a": counts(20, 40), "b": counts(50)}, {}, PLAIN
    )
    assert list(found["rapid"]) == pytest.approx([0.3, 0.5])
    assert list(found["standardised"]) == pytest.approx([0.3, 0.5])
    assert list(found["difference"]) == pytest.approx([-0.2, 0.2])
    assert list(found.columns) == list(comparison.COLUMNS)


def test_the_columns_are_those_of_the_table() -> None:
    from rapid_spark.tables import tables

    assert set(comparison.COLUMNS) == set(tables()["audit_comparison"].columns)
