import numpy as np
import pytest

from rapid_spark.distributions import calibration, joined, score_edges


@pytest.mark.parametrize("seed", range(5))
def test_every_bin_is_large_enough_and_nobody_is_lost(seed):
    rng = np.random.default_rng(seed)
    n = rng.poisson(4, 30) * rng.integers(0, 2, 30)
    bins = joined(n, None, 10, border=20)
    assert sum(n[i:j].sum() for i, j in bins) == n.sum()
    assert all(n[i:j].sum() >= 10 for i, j in bins)
    if min(n[:20].sum(), n[20:].sum()) >= 10:
        assert all(j <= 20 or i >= 20 for i, j in bins)


def test_a_side_with_few_people_is_joined_with_the_other():
    assert joined(np.array([8, 0, 9, 0, 2]), None, 10, border=4) == [(0, 5)]


def test_too_few_people_make_no_bin():
    assert joined(np.array([3, 4]), None, 10) == []


def test_bins_where_all_are_alike_are_joined_until_they_are_not():
    assert joined(np.array([50, 50, 50, 9]), np.array([0, 20, 50, 1]), 10) == [(0, 2), (2, 4)]
    assert joined(np.array([50, 50, 50]), np.array([0, 20, 50]), 10) == [(0, 3)]


@pytest.mark.parametrize(("measure", "tau"), [("normalized_gain", 0.3), ("normalized_gain", 0.303), ("nce", 0.6), ("rcs_conditional", 1.25)])
def test_the_threshold_is_an_end_of_a_bin(measure, tau):
    edges = score_edges(measure, tau)
    assert tau in edges and np.all(np.diff(edges) > 0)


def test_calibration_of_a_calibrated_guess():
    rng = np.random.default_rng(1)
    p = rng.random(20_000).round(4)
    rows = calibration("ill", p, np.ones(20_000), (rng.random(20_000) < p).astype(float), 10)
    assert len(rows) == 10 and sum(row["n"] for row in rows) == 20_000
    assert all(abs(row["mean_prob"] - row["observed"]) < 0.05 for row in rows)
