"""The fit of all tables at once against a direct least-squares solution over the joint table."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from rapid_spark.reaedp import margins
from rapid_spark.reaedp.domain import Categories, tables_over

A, B, C = (Categories(n, tuple(range(k))) for n, k in (("a", 3), ("b", 4), ("c", 2)))
TABLES = tables_over([A, B, C], [["a", "b"], ["c", "b"], ["a"], ["c", "a"]])
VARIANCES = [1.0, 4.0, 2.0, 9.0]
SHAPE = {"a": 3, "b": 4, "c": 2}


def design(table):
    """Cells of a table as sums of cells of the joint table over a, b, c."""
    at = dict(zip("abc", np.indices(tuple(SHAPE.values())).reshape(3, -1), strict=True))
    cell = np.ravel_multi_index([at[c] for c in table.columns], table.shape)
    matrix = np.zeros((table.cells, 24))
    matrix[cell, np.arange(24)] = 1
    return matrix


DESIGN = np.vstack([design(t) for t in TABLES])
WEIGHT = np.sqrt(np.concatenate([np.full(t.cells, 1 / v) for t, v in zip(TABLES, VARIANCES, strict=True)]))


def noisy(mean=20.0, seed=0):
    rng = np.random.default_rng(seed)
    joint = rng.poisson(rng.exponential(mean / 8, 24))
    return [
        design(t) @ joint + rng.normal(0, np.sqrt(v), t.cells) for t, v in zip(TABLES, VARIANCES, strict=True)
    ], int(joint.sum())


def least_squares(values, total=None, nonnegative=False):
    heavy = 0 if total is None else 1e4
    matrix = np.vstack([DESIGN * WEIGHT[:, None], heavy * np.ones((1, 24))])
    target = np.append(np.concatenate(values) * WEIGHT, heavy * (total or 0))
    if nonnegative:
        return DESIGN @ lsq_linear(matrix, target, bounds=(0, np.inf), tol=1e-14).x
    return DESIGN @ np.linalg.lstsq(matrix, target, rcond=None)[0]


@pytest.mark.parametrize("total", [None, 500.0])
def test_consistent_tables_are_the_weighted_least_squares_fit(total):
    values, _ = noisy()
    fitted = np.concatenate(margins.consistent(TABLES, values, VARIANCES, total))
    assert fitted == pytest.approx(least_squares(values, total), abs=1e-4)


def test_margins_agree_and_add_up():
    ab, cb, a, ca = margins.consistent(TABLES, noisy()[0], VARIANCES, 500.0)
    assert ab.reshape(3, 4).sum(axis=1) == pytest.approx(a)
    assert ca.reshape(2, 3).sum(axis=0) == pytest.approx(a)
    assert cb.reshape(2, 4).sum(axis=0) == pytest.approx(ab.reshape(3, 4).sum(axis=0))
    assert a.sum() == pytest.approx(500)


def test_tables_that_agree_are_left_alone():
    joint = np.arange(24)
    exact = [design(t) @ joint for t in TABLES]
    assert np.concatenate(margins.consistent(TABLES, exact, VARIANCES)) == pytest.approx(np.concatenate(exact))


def test_fitted_variance_is_that_of_the_linear_fit():
    weighted = DESIGN * WEIGHT[:, None]
    covariance = DESIGN @ np.linalg.pinv(weighted.T @ weighted) @ DESIGN.T
    first_cells = np.cumsum([0] + [t.cells for t in TABLES])[:-1]
    found = margins.fitted_variance(TABLES, VARIANCES, total_known=False)
    assert found == pytest.approx(np.diag(covariance)[first_cells])
    assert all(f <= v for f, v in zip(found, VARIANCES, strict=True))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nonnegative_tables_are_the_bounded_fit(seed):
    values, total = noisy(mean=6.0, seed=seed)
    assert min(v.min() for v in margins.consistent(TABLES, values, VARIANCES, total)) < 0
    found = np.concatenate(margins.nonnegative(TABLES, values, VARIANCES, total, tolerance=1e-9, rounds=20_000))
    best = least_squares(values, total, nonnegative=True)
    target = np.concatenate(values)

    def misfit(x):
        return (((x - target) * WEIGHT) ** 2).sum()

    assert found.min() >= 0
    # Agreeing margins do not always come from one joint table, so the fit may only be closer.
    assert misfit(found) <= misfit(best) * (1 + 1e-4)


def test_what_the_rounds_leave_negative_is_mixed_away_without_breaking_margins():
    values, total = noisy(mean=3.0, seed=5)
    ab, cb, a, ca = margins.nonnegative(TABLES, values, VARIANCES, total, rounds=1)
    assert min(t.min() for t in (ab, cb, a, ca)) >= 0
    assert ab.reshape(3, 4).sum(axis=1) == pytest.approx(a)
    assert cb.sum() == pytest.approx(total)


@pytest.mark.parametrize("values, total, right", [([3.0, 1.0], 4, [3, 1]), ([5.0, 1.0], 4, [4, 0]), ([-1.0, -1.0, 1.0], 3, [1 / 3, 1 / 3, 7 / 3])])
def test_simplex(values, total, right):
    assert margins.simplex(np.array(values), total) == pytest.approx(right)


def test_simplex_is_the_closest_point():
    rng = np.random.default_rng(0)
    y = rng.normal(0, 3, 8)
    x = margins.simplex(y, 5.0)
    others = 5 * rng.dirichlet(np.ones(8), 500)
    assert ((others - y) ** 2).sum(axis=1).min() >= ((x - y) ** 2).sum()
    assert margins.simplex(y, 0).sum() == 0


@pytest.mark.parametrize("values, right", [([-2.0, 1.0, 3.0], [0, 2, 6]), ([-1.0, -1.0], [4, 4])])
def test_clip_and_rescale(values, right):
    assert margins.clip_and_rescale(np.array(values), 8) == pytest.approx(right)


def test_rounding_keeps_the_total():
    assert margins.rounded(np.array([1.5, 2.4, 0.1]), 4).tolist() == [2, 2, 0]
    with pytest.raises(ValueError, match="add up"):
        margins.rounded(np.array([1.5, 2.4]), 9)
