import itertools

import numpy as np
import pytest
from plain import normalized_gain

from rapid_spark import resampling
from rapid_spark.resampling import bootstrap_hits, categorical_moments, categorical_null, fixed_sequence, plan_bootstrap


def scores(n=60, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(0, k, n))
    p = rng.dirichlet(np.ones(k), n)
    p[np.arange(n), y] += 0.4
    return p / p.sum(axis=1, keepdims=True), y


def test_bootstrap_agrees_with_resampling_records():
    p, y = scores()
    taus = [0.1, 0.3, 0.6]
    g, counts = p[np.arange(len(y)), y], np.bincount(y)
    plan = plan_bootstrap(counts, taus, 4000, seed=1)
    survival = [np.array([[np.mean(g[y == k] > t) for t in row] for row in plan.thresholds[:, :, k]]) for k in range(3)]
    fast = bootstrap_hits(plan, survival, seed=2) / len(y)
    rng = np.random.default_rng(3)
    draws = [rng.integers(0, len(y), len(y)) for _ in range(4000)]
    naive = np.array([[normalized_gain(p[i], y[i], t).mean() for t in taus] for i in draws])
    error = naive.std(axis=0) / np.sqrt(4000)
    assert np.all(abs(fast.mean(axis=0) - naive.mean(axis=0)) < 5 * np.sqrt(2) * error)
    np.testing.assert_allclose(fast.std(axis=0), naive.std(axis=0), rtol=0.06)
    assert np.all(np.diff(fast, axis=1) <= 0)


def test_moments_equal_enumeration_of_all_shuffles():
    y = np.array([0, 0, 1, 2, 2])
    over = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0], [1, 0, 0]], bool)
    hits = [sum(over[i, t[i]] for i in range(5)) for t in itertools.permutations(y)]
    mean, variance = categorical_moments(np.bincount(y), over, np.ones(5))
    assert (mean, variance) == pytest.approx((np.mean(hits), np.var(hits)))


def test_drawn_null_agrees_with_shuffling():
    p, y = scores()
    over = p > np.bincount(y)[None, :] / len(y) + 0.2
    masks, counts = np.unique(over, axis=0, return_counts=True)
    null = categorical_null(np.bincount(y), masks, counts, observed=30, draws=3000, seed=1)
    rng = np.random.default_rng(2)
    naive = np.array([over[np.arange(60), rng.permutation(y)].mean() for _ in range(3000)])
    assert null.mean == pytest.approx(naive.mean(), abs=5 * naive.std() / np.sqrt(1500))
    assert null.sd == pytest.approx(naive.std(), rel=0.06)
    expected = (1 + np.sum(naive >= 0.5)) / 3001
    assert null.p == pytest.approx(expected, abs=5 * np.sqrt(expected / 1500) + 1 / 3000)


def test_p_value_counts_the_observed_draw():
    assert resampling.null_from_draws(np.array([0.1, 0.2, 0.3]), 0.3).p == 0.5
    assert resampling.null_from_draws(np.array([0.1, 0.2, 0.3]), 0.4).p == 0.25


@pytest.mark.parametrize(
    ("observed", "expected"), [([0.9, 0.8, 0.1, 0.9], 0.1), ([0.1, 0.9, 0.9, 0.9], None), ([0.9] * 4, 0.3)]
)
def test_fixed_sequence_stops_at_the_first_failure(observed, expected):
    assert fixed_sequence([0.0, 0.1, 0.2, 0.3], observed, [0.5] * 4) == expected


def conditional_cells(g, taus):
    x = g / g.mean()
    edges = resampling.conditional_edges(taus, x.std(), len(x))
    place = np.searchsorted(edges, x)
    sums = [np.bincount(place, weights=w, minlength=len(edges) + 1) for w in (np.ones(len(x)), x, x * x)]
    return resampling.ValueCells(edges, sums[0].astype(np.int64), sums[1], sums[2])


@pytest.mark.parametrize("atoms", [False, True])
def test_conditional_bootstrap_agrees_with_resampling_records(atoms):
    p, y = scores(n=300)
    g = p[np.arange(300), y].round(1 if atoms else 12)
    taus = [0.75, 1.0, 1.25]
    sizes = np.random.default_rng(1).multinomial(300, np.bincount(y) / 300, size=4000)
    fast = resampling.conditional_hits(sizes, [conditional_cells(g[y == k], taus) for k in range(3)], taus, seed=2) / 300
    rng = np.random.default_rng(3)

    def rates(i):
        h, z = g[i], y[i]
        mean = np.bincount(z, h, 3) / np.bincount(z, minlength=3)
        return [np.mean(h / mean[z] > t) for t in taus]

    naive = np.array([rates(rng.integers(0, 300, 300)) for _ in range(4000)])
    np.testing.assert_allclose(fast.mean(axis=0), naive.mean(axis=0), atol=6 * np.sqrt(2) * naive.std(axis=0).max() / np.sqrt(4000))
    np.testing.assert_allclose(fast.std(axis=0), naive.std(axis=0), rtol=0.08)
    assert np.all(np.diff(fast, axis=1) <= 0)


def test_conditional_bootstrap_where_all_are_alike():
    cells = [conditional_cells(np.full(20, 0.5), [0.5, 1.25])]
    hits = resampling.conditional_hits(np.full((5, 1), 20), cells, [0.5, 1.25], seed=1)
    assert hits.tolist() == [[20, 0]] * 5
