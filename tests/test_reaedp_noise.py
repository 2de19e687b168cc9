"""Noise has the law it claims, and the scale that its guarantee needs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rapid_spark.reaedp import noise

DRAWS = 20_000
CERTAIN = 1e-6  # A right sampler fails one run in a million.


def chi_square(values, law, low, high):
    """p-value of whole numbers against a law on low..high, both tails pooled into the ends."""
    x = np.arange(-400, 401)
    p = law(x)
    p = p / p.sum()
    expected = np.array([p[x <= low].sum(), *p[(x > low) & (x < high)], p[x >= high].sum()])
    seen = np.bincount(np.clip(values, low, high) - low, minlength=high - low + 1)
    return stats.chisquare(seen, expected * len(values)).pvalue


@pytest.mark.parametrize("sensitivity, epsilon, scale", [(1, 1.0, 1.0), (2, 1.0, 2.0), (1, 0.1, 10.0), (3, 1.0, 3.0)])
def test_laplace_scale_is_sensitivity_over_epsilon(sensitivity, epsilon, scale):
    assert noise.laplace_scale(sensitivity, epsilon) == pytest.approx(scale, rel=1e-12)


@pytest.mark.parametrize("sensitivity, sigma", [(1.0, 4.531), (math.sqrt(2), 6.408)])
def test_gaussian_sigma_for_epsilon_1_and_delta_1e_6(sensitivity, sigma):
    found, rho = noise.gaussian_scale_for(sensitivity, 1.0, 1e-6)
    assert found == pytest.approx(sigma, abs=5e-4)
    assert rho == pytest.approx(0.02436, abs=5e-6)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_discrete_laplace_noise_matches_its_law(scale):
    drawn = noise.add_laplace(np.full(DRAWS, 7), scale) - 7
    assert chi_square(drawn, lambda x: np.exp(-abs(x) / scale), -4, 4) > CERTAIN


@pytest.mark.parametrize("sigma", [1.0, 4.531])
def test_discrete_gaussian_noise_matches_its_law(sigma):
    drawn = noise.add_gaussian(np.zeros(DRAWS, dtype=np.int64), sigma)
    assert chi_square(drawn, lambda x: np.exp(-0.5 * (x / sigma) ** 2), -6, 6) > CERTAIN


def test_real_noise_matches_its_laws():
    laplace = [noise.add_laplace_to_value(1.5, 0.2, 0.4)[0] - 1.5 for _ in range(3000)]
    gaussian = noise.add_gaussian_to_values(np.full(5000, 3.0), 0.7) - 3
    assert stats.kstest(laplace, stats.laplace(scale=0.5).cdf).pvalue > CERTAIN
    assert stats.kstest(gaussian, stats.norm(scale=0.7).cdf).pvalue > CERTAIN


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_laplace_moments_and_tail_are_those_of_the_law(scale):
    x = np.arange(-2000, 2001)
    p = np.exp(-abs(x) / scale)
    p /= p.sum()
    assert noise.laplace_error(scale) == pytest.approx((p * abs(x)).sum())
    assert noise.laplace_variance(scale) == pytest.approx((p * x**2).sum())
    assert noise.laplace_tail(3, scale) == pytest.approx(p[x <= -3].sum())


@pytest.mark.parametrize("sigma", [0.4, 3.0, 60.0])
def test_gaussian_moments_are_those_of_the_law(sigma):
    x = np.arange(-3000, 3001)
    p = np.exp(-0.5 * (x / sigma) ** 2)
    p /= p.sum()
    assert noise.gaussian_moments(sigma) == pytest.approx(((p * abs(x)).sum(), (p * x**2).sum()), rel=1e-4)


@pytest.mark.parametrize("replace, excess", [(False, 0.425), (True, 0.96)])
def test_clipping_at_zero_adds_to_an_empty_bin(replace, excess):
    scale = noise.laplace_scale(2 if replace else 1, 1.0)
    assert noise.laplace_error(scale) / 2 == pytest.approx(excess, abs=5e-4)
    assert np.maximum(noise.add_laplace(np.zeros(DRAWS, int), scale), 0).mean() == pytest.approx(excess, abs=0.06)


@pytest.mark.parametrize("gaussian", [False, True])
def test_approximate_noise_has_the_same_spread(gaussian):
    drawn = noise.approximate(DRAWS, 5.0, gaussian=gaussian)
    variance = 25 if gaussian else noise.laplace_variance(5.0)
    assert drawn.var() == pytest.approx(variance, rel=0.1)
    assert abs(drawn.mean()) < 0.3


def test_uniform_numbers_are_uniform():
    bounds = np.tile([1, 2, 3, 7], 4000)
    drawn = noise.uniform_below(bounds)
    assert (drawn >= 0).all() and (drawn < bounds).all()
    assert stats.chisquare(np.bincount(drawn[bounds == 7], minlength=7)).pvalue > CERTAIN
    assert stats.kstest(noise.uniform(5000), "uniform").pvalue > CERTAIN
    assert noise.uniform_below(np.full(50, 2**62)).max() > 2**55


@pytest.mark.parametrize("counts", [np.array([1.0, 2.0]), np.ones((2, 2), dtype=int)])
def test_noise_is_added_to_one_vector_of_whole_numbers_only(counts):
    with pytest.raises(ValueError, match="counts are"):
        noise.add_laplace(counts, 1.0)


def test_counts_of_any_integer_width_and_no_counts_are_taken():
    assert noise.add_laplace(np.array([5], dtype=np.int32), 1e-9).tolist() == [5]
    assert len(noise.add_gaussian(np.array([], dtype=np.int64), 1.0)) == 0


@pytest.mark.parametrize("bound", [0, 2**62 + 1])
def test_bounds_that_cannot_be_drawn_below_are_refused(bound):
    with pytest.raises(ValueError, match="bound"):
        noise.uniform_below(np.array([bound]))
