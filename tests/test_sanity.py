"""Answers that are known beforehand: what a custodian's figures must say where there is nothing, or everything, to find."""

from __future__ import annotations

import numpy as np
import pytest
from plain import result

from rapid_spark import config
from rapid_spark.control import Comparability, difference
from rapid_spark.wording import exceeds_chance


def independent(rng, n, k=2, strength=0.0):
    """Predictions that know the class by `strength`; 0: not at all. Classes in rank order."""
    y = np.sort(rng.choice(k, n, p=np.arange(k, 0, -1) / np.arange(k, 0, -1).sum()))
    order = np.argsort(-np.bincount(y, minlength=k), kind="stable")
    y = np.argsort(order)[y]
    p = rng.dirichlet(np.full(k, 0.8), n)
    p[np.arange(n), y] += strength
    return p / p.sum(axis=1, keepdims=True), y


def test_an_independent_target_is_at_chance_and_finds_no_threshold():
    rng = np.random.default_rng(1)
    found = exploratory = covered = flagged = 0
    for _ in range(80):
        p, y = independent(rng, 250)
        r, _ = result(p, y, threshold={"tau_grid": [0.1, 0.2, 0.4, 0.5]}, intervals={"bootstrap": 100, "permutations": 19})
        found += r.data_driven_threshold is not None
        exploratory += r.exploratory_threshold is not None
        covered += r.ci[0] <= r.baseline_rate <= r.ci[1]
        flagged += r.null.p <= 0.05
    most = 0.05 * 80 + 3 * np.sqrt(0.05 * 0.95 * 80)
    assert found <= most and flagged <= most and covered >= 0.88 * 80
    assert exploratory >= found  # the pointwise reading finds more where there is nothing


def test_a_shuffled_target_loses_all_excess():
    rng = np.random.default_rng(2)
    p, y = independent(rng, 2000, k=3, strength=1.5)
    real, _ = result(p, y, intervals={"permutations": 99})
    shuffled, _ = result(p, rng.permutation(y), intervals={"permutations": 99})
    assert real.rapid - real.baseline_rate > 0.3 and real.null.p == 0.01 and real.data_driven_threshold > 0.5
    assert abs(shuffled.rapid - shuffled.baseline_rate) < 4 * shuffled.null.sd and shuffled.null.p > 0.01


def test_a_constant_guess_has_a_rate_and_no_excess():
    y = np.repeat([0, 1], [600, 400])
    r, _ = result(np.tile([0.9, 0.1], (1000, 1)), y)
    assert (r.rapid, r.baseline_rate, r.null.p) == (0.6, pytest.approx(0.6), 1.0)
    row = {"rapid": r.rapid, "null_q95": r.null.q95, "baseline_rate": r.baseline_rate, "ci_low": r.ci[0]}
    assert not exceeds_chance(row) and r.data_driven_threshold is None


def test_thirty_records_have_wide_intervals_and_no_surprise():
    p, y = independent(np.random.default_rng(3), 30, strength=0.5)
    r, _ = result(p, y)
    assert r.n == 30 and 0 <= r.ci[0] <= r.rapid <= r.ci[1] <= 1 and r.ci[1] - r.ci[0] > 0.2
    assert all(row["n"] >= 10 for row in r.distributions)


def test_an_attacker_who_knows_everything_reaches_one():
    y = np.repeat([0, 1, 2], [50, 30, 20])
    r, _ = result(np.eye(3)[y], y)
    assert r.rapid == 1.0 and r.ci[1] == 1.0 and 0.9 < r.ci[0] < 1.0
    assert all(row["rapid"] == 1.0 for row in r.curve) and r.figures["accuracy"] == 1.0


def test_members_and_others_alike_give_a_difference_of_nothing():
    """One draw of b* per replicate for both: the interval holds 0 about as often as it says."""
    rng, held, few = np.random.default_rng(4), 0, {"tau_grid": [0.3]}
    for i in range(60):
        p, y = independent(rng, 400, strength=1.0)
        asked = {"threshold": few, "intervals": {"bootstrap": 200, "permutations": 0}, "training": {"seed": i}}
        one, plan = result(p[::2], y[::2], **asked)
        other, _ = result(p[1::2], y[1::2], plan=plan, **asked)
        _, low, high = difference((one.n_at_risk, one.n, one.draws), (other.n_at_risk, other.n, other.draws), 0.95)
        held += low <= 0 <= high
    assert held >= 0.95 * 60 - 3 * np.sqrt(0.05 * 0.95 * 60)


def test_a_leak_for_members_alone_is_seen():
    rng = np.random.default_rng(5)
    p, y = independent(rng, 300, strength=0.3)
    leaked = p.copy()
    leaked[np.arange(300), y] += 1.0
    leaked /= leaked.sum(axis=1, keepdims=True)
    one, plan = result(leaked, y)
    other, _ = result(*independent(rng, 300, strength=0.3), plan=plan)
    point, low, high = difference((one.n_at_risk, one.n, one.draws), (other.n_at_risk, other.n, other.draws), 0.95)
    assert point == one.rapid - other.rapid and 0 < low < point < high


@pytest.mark.parametrize("effect", [1.0, 3.0])
def test_clusters_widen_summary_and_curve_alike(effect):
    p, y = independent(np.random.default_rng(6), 300, strength=1.0)
    alone, plan = result(p, y)
    r, _ = result(p, y)
    r.widen(effect, 100, config.parse({}).intervals)
    at = r.curve[plan.at]
    assert r.ci == (at["ci_low"], at["ci_high"]) and r.by_cluster
    for row, before in zip(r.curve, alone.curve, strict=True):
        if 0 < row["rapid"] < 1:
            ratio = (row["ci_high"] - row["ci_low"]) / (before["ci_high"] - before["ci_low"])
            assert ratio == pytest.approx(np.sqrt(effect), rel=0.12)


def test_intervals_by_cluster_are_combined_by_squares():
    point, low, high = difference((50, 100, None), (80, 200, None), 0.95, ((0.40, 0.60), (0.35, 0.46)))
    assert (point, low, high) == pytest.approx((0.1, 0.1 - np.hypot(0.1, 0.06), 0.1 + np.hypot(0.1, 0.05)))


def test_shared_households_make_it_a_difference_between_populations():
    found = Comparability(0.5, 0.5, 0, 0, 100, {"person": 0, "household": 4})
    assert not found.comparable and "4 belong to a household of the original" in found.sentence()


@pytest.mark.parametrize(("auc", "p", "overlap", "comparable"), [
    (0.51, 0.4, 0, True), (0.51, 0.4, None, True), (0.51, 0.4, 3, False), (0.70, 0.4, 0, False), (0.51, 1e-6, 0, False),
])
def test_an_overlap_or_a_shift_makes_it_a_difference_between_populations(auc, p, overlap, comparable):
    found = Comparability(auc, p, overlap, 7, 100)
    assert found.comparable is comparable
    said = found.sentence()
    assert "7 of 100 holdout records equal" in said
    assert ("difference between populations" in said) is not comparable
    assert overlap is None or f"{overlap} have a key of the original" in said
