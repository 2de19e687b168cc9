"""The private mean of curves: kernel, clipping, sensitivity and error against direct computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import get_sigma_gaussian

from rapid_spark.reaedp import wiener

GRID = np.linspace(0, 1, 21)
FINE = np.linspace(0, 1, 200_001)


def integral(values):
    """Trapezoids on the fine grid."""
    return float(((values[1:] + values[:-1]) / 2 * np.diff(FINE)).sum())


def test_kernel_is_the_sum_over_its_eigenfunctions():
    s, t = 0.3, 0.7
    v = wiener.eigenfunctions([s, t], 20_000)
    assert (wiener.eigenvalues(20_000) * v[:, 0] * v[:, 1]).sum() == pytest.approx(min(s, t), abs=1e-4)


@pytest.mark.parametrize("grid", [GRID, np.array([0.1, 0.15, 0.6, 0.9])])
def test_coefficients_and_norm_equal_numerical_integrals(grid):
    curve = np.random.default_rng(1).normal(size=len(grid))
    fine = np.interp(FINE, grid, curve)
    expected = [integral(fine * row) for row in wiener.eigenfunctions(FINE, 6)]
    assert wiener.coefficients(curve, grid, 6) == pytest.approx(expected, abs=1e-6)
    m = wiener.mass(grid)
    squared = (m[0] * curve**2).sum() + 2 * (m[1, :-1] * curve[:-1] * curve[1:]).sum()
    assert squared == pytest.approx(integral(fine**2), rel=1e-6)


def test_clipped_curves_have_the_limit_as_their_norm_and_short_ones_stay():
    curves = np.array([np.full(len(GRID), 3.0), np.full(len(GRID), 0.5), np.zeros(len(GRID))])
    clipped = wiener.clip(curves, GRID, 1.0)
    assert clipped[0] == pytest.approx(np.ones(len(GRID)))
    assert clipped[1:] == pytest.approx(curves[1:])


@pytest.mark.parametrize("rho", [1.0, 0.05, 0.01, 1e-3])
def test_sensitivity_equals_a_direct_maximisation_over_pairs_of_curves(rho):
    """Two means differ by d = (x - x') / n with |x|, |x'| <= tau; the change is quadratic in (x, x'): power iteration."""
    n, tau, components = 50, 2.0, 60
    values = wiener.eigenvalues(components)
    # squared kernel norm of the change: sum (lambda/(lambda+rho))^2 d_j^2 / lambda_j
    form = values / (values + rho) ** 2
    rng = np.random.default_rng(3)
    best = 0.0
    for _ in range(4):
        x, other = rng.normal(size=(2, components))
        x, other = tau * x / np.linalg.norm(x), tau * other / np.linalg.norm(other)
        for _ in range(1000):  # move each curve along the gradient and back onto the ball
            gradient = form * (x - other)
            x, other = x + gradient, other - gradient
            x, other = tau * x / np.linalg.norm(x), tau * other / np.linalg.norm(other)
        best = max(best, math.sqrt(float((form * ((x - other) / n) ** 2).sum())))
    assert wiener.sensitivity(n, tau, rho, components=components) == pytest.approx(best, rel=1e-3)
    assert best <= wiener.sensitivity(n, tau, rho) * (1 + 1e-12) <= tau / (n * math.sqrt(rho)) * (1 + 1e-9)


@pytest.mark.parametrize("rho, ratio", [(0.01, 3.2), (1e-4, 10.0)])
def test_the_papers_bound_is_the_whole_sum_and_costs_as_the_notes_say(rho, ratio):
    values = wiener.eigenvalues(2_000_000)
    summed = 2 / 100 * math.sqrt(float((values / (values + rho) ** 2).sum()))
    paper = wiener.sensitivity(100, 1.0, rho, "paper")
    assert paper == pytest.approx(summed, rel=1e-3)
    assert paper / wiener.sensitivity(100, 1.0, rho) == pytest.approx(ratio, rel=0.05)


def test_released_mean_spreads_around_the_penalised_mean_as_sigma_says():
    rng = np.random.default_rng(5)
    curves = wiener.clip(rng.normal(size=(30, len(GRID))).cumsum(axis=1) / 4, GRID, 1.0)
    n, rho, components = len(curves), 0.02, 8
    drawn = np.array(
        [
            wiener.release(curves.sum(axis=0), GRID, n, 1.0, rho, 1.0, 1e-6, components=components).coefficients
            for _ in range(150)
        ]
    )
    values = wiener.eigenvalues(components)
    exact = wiener.coefficients(curves.mean(axis=0), GRID, components) * values / (values + rho)
    sigma = get_sigma_gaussian(1.0, 1e-6) * wiener.sensitivity(n, 1.0, rho, components=components)
    standard = (drawn - exact) / (sigma * np.sqrt(values))
    assert np.abs(standard.mean(axis=0)).max() < 5 / math.sqrt(150)
    assert np.abs(standard.std(axis=0) - 1).max() < 5 / math.sqrt(2 * 150)


def test_error_splits_into_bias_sampling_and_noise_as_simulated():
    """Curves with known mean and coefficient variances; the mean squared error of many releases is the sum of the parts."""
    rng = np.random.default_rng(7)
    n, rho, components, epsilon, delta, runs = 400, 0.05, 5, 2.0, 1e-4, 600
    mean, sd = np.array([0.3, -0.1, 0.05, 0.0, 0.02]), np.array([0.05, 0.04, 0.03, 0.02, 0.02])
    values = wiener.eigenvalues(components)
    sigma = get_sigma_gaussian(epsilon, delta) * wiener.sensitivity(n, 1.0, rho, components=components)
    errors = []
    for _ in range(runs):
        sample = mean + rng.normal(size=(n, components)) * sd
        released = sample.mean(axis=0) * values / (values + rho) + sigma * np.sqrt(values) * rng.normal(size=components)
        errors.append(((released - mean) ** 2).sum())
    split = wiener.error_split(mean, sd**2, n, rho, sigma)
    assert split["total"] == pytest.approx(np.mean(errors), abs=5 * np.std(errors) / math.sqrt(runs))
    assert split["bias"] == pytest.approx(sum((rho / (v + rho)) ** 2 * m**2 for v, m in zip(values, mean, strict=True)))


def test_larger_penalty_has_less_noise_and_more_bias_under_one_guarantee():
    mean = wiener.coefficients(np.sin(math.pi * GRID), GRID, 50)
    splits = []
    for rho in (1e-3, 1e-2, 1e-1, 1.0):
        released = wiener.release(np.sin(math.pi * GRID) * 100, GRID, 100, 1.0, rho, 1.0, 1e-6, components=50)
        splits.append(wiener.error_split(mean, np.zeros(50), 100, rho, released.sigma))
        assert (released.guarantee.epsilon, released.guarantee.delta) == (1.0, 1e-6)
        assert released.noise_error == pytest.approx(splits[-1]["noise"])
    assert [s["noise"] for s in splits] == sorted((s["noise"] for s in splits), reverse=True)
    assert [s["bias"] for s in splits] == sorted(s["bias"] for s in splits)
    # noise falls with epsilon as sigma^2 does
    less = wiener.release(np.sin(math.pi * GRID) * 100, GRID, 100, 1.0, 0.01, 4.0, 1e-6, components=50).noise_error
    ratio = (get_sigma_gaussian(4.0, 1e-6) / get_sigma_gaussian(1.0, 1e-6)) ** 2
    assert less / splits[1]["noise"] == pytest.approx(ratio)


def test_frame_carries_the_guarantee():
    frame = wiener.release(np.zeros(21), GRID, 100, 1.0, 0.1, 1.0, 1e-6).frame(GRID)
    assert {"t", "mean", "noise_sd", "epsilon", "delta", "adjacency", "mechanism", "sensitivity"} <= set(frame)
    assert set(frame["adjacency"]) == {"replace"}


@pytest.mark.parametrize(
    "change, message",
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0.5}, "1 / n_declared"),
        ({"delta": 0}, "delta"),
        ({"rho": 0}, "rho"),
        ({"norm_limit": -1}, "norm_limit"),
        ({"grid": GRID[::-1]}, "grid"),
        ({"bound": "loose"}, "bound"),
        ({"curve_sum": np.full(21, np.nan)}, "finite"),
    ],
)
def test_wrong_requests_are_refused(change, message):
    asked = {
        "curve_sum": np.zeros(21), "grid": GRID, "n": 100, "norm_limit": 1.0, "rho": 0.1, "epsilon": 1.0, "delta": 1e-6
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        wiener.release(**{**asked, **change})
