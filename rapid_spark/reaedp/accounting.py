"""Totals of several releases fixed beforehand, by privacy loss distributions, and conversions between losses.

What is chosen one release after another is not for this module: there the ledger's filter decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rapid_spark.reaedp.budget import Adjacency, check_adjacency, check_delta, check_epsilon, check_integer

Grid = Literal["library", "exact"]
LIBRARY_INTERVAL = 1e-4
FEWEST_STEPS = 64
MOST_COMPOSED = 20_000


def compose(epsilon: float, delta: float, times: int, total_delta: float, grid: Grid = "library") -> float:
    """The epsilon at `total_delta` of `times` releases that are each (epsilon, delta)-private.

    Args:
        epsilon: of one release.
        delta: of one release.
        times: how many there are.
        total_delta: of all together, in (0, 1).
        grid: 'library' composes the privacy loss distribution of the worst mechanism with these parameters on
            the library's grid of 1e-4; losses are rounded up, so the result is never too small. 'exact' is
            the optimal composition in closed form (Kairouz, Oh, Viswanath 2015, Theorem 3.3); 'library' takes
            it too where epsilon is less than 64 steps of the grid, or where there are so many releases that
            rounding would count.

    Returns:
        The total epsilon; infinity where `total_delta` cannot be met by any.
    """
    check_epsilon(epsilon), check_delta(delta), check_integer(times, 1, "times")
    if times == 1 and delta <= total_delta:
        return epsilon
    if grid == "exact" or epsilon < FEWEST_STEPS * LIBRARY_INTERVAL or times > MOST_COMPOSED:
        return _optimal(epsilon, delta, times, total_delta)
    distributions, common = _pld()
    one = distributions.from_privacy_parameters(
        common.DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=LIBRARY_INTERVAL
    )
    return float(one.self_compose(times).get_epsilon_for_delta(total_delta))


def largest_share(
    epsilon: float, delta: float, times: int, delta_each: float, grid: Grid = "library"
) -> float:
    """The largest epsilon of each of `times` releases with `delta_each` that stay within (epsilon, delta).

    Raises:
        ValueError: if the deltas alone use up the total.
    """
    if times * delta_each >= delta and times > 1:
        raise ValueError(
            f"{times} releases with delta {delta_each:g} each do not fit in a total delta of {delta:g}"
        )
    if times == 1:
        return epsilon
    # An epsilon-private release is epsilon^2/2-concentrated: what that allows is a safe and near start.
    low = max(epsilon / times, math.sqrt(2 * zcdp_rho(epsilon, delta - times * delta_each) / times) * 0.99)
    high = min(1.5 * low, epsilon)
    while high < epsilon and compose(high, delta_each, times, delta, grid) <= epsilon:
        low, high = high, min(1.5 * high, epsilon)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if compose(middle, delta_each, times, delta, grid) <= epsilon else (low, middle)
        )
        if high - low < 1e-6 * high:
            break
    return low


def compose_tables(
    laplace_scales: Sequence[float], gaussian_sigmas: Sequence[float], adjacency: Adjacency, delta: float
) -> float:
    """The epsilon at `delta` of noisy tables of the same records, planned together.

    Each table holds a record in one cell: under replace two cells change by one, so each noise counts twice.

    Args:
        laplace_scales: scale of the discrete Laplace noise of each such table.
        gaussian_sigmas: sigma of the discrete Gaussian noise of each such table.
        adjacency: of the result.
        delta: at which epsilon is read, in (0, 1).
    """
    check_adjacency(adjacency)
    distributions, _ = _pld()
    cells = 1 if adjacency == "add_remove" else 2
    steps = [
        distributions.from_discrete_laplace_mechanism(parameter=1 / s, sensitivity=1) for s in laplace_scales
    ]
    steps += [distributions.from_discrete_gaussian_mechanism(sigma=s, sensitivity=1) for s in gaussian_sigmas]
    if not steps:
        raise ValueError("no table is given; name at least one noise scale")
    total = steps[0].self_compose(cells)
    for step in steps[1:]:
        total = total.compose(step.self_compose(cells))
    return float(total.get_epsilon_for_delta(delta))


def advanced(epsilon: float, times: int, slack: float) -> float:
    """sqrt(2 k ln(1/d)) epsilon + k epsilon (e^epsilon - 1) for k = `times`, d = `slack`.

    The advanced composition theorem (Dwork, Rothblum, Vadhan 2010); `slack` adds to the k deltas.
    """
    return math.sqrt(2 * times * math.log(1 / slack)) * epsilon + times * epsilon * math.expm1(epsilon)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The epsilon at `delta` of a rho-zero-concentrated release.

    The smallest over orders a > 1 of a rho + ln(1 - 1/a) - ln(a delta) / (a - 1) (Canonne, Kamath, Steinke
    2020, Proposition 12). Every order gives a valid figure, so a coarse search is safe.
    """
    if not (rho > 0 and 0 < delta < 1):
        raise ValueError(f"rho is {rho} and delta {delta}; rho must be above 0 and delta between 0 and 1")
    from scipy.optimize import minimize_scalar

    def loss(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return order * rho + math.log1p(-1 / order) - math.log(order * delta) / (order - 1)

    best = minimize_scalar(
        loss, bounds=(math.log(1e-6), math.log(1e9)), method="bounded", options={"xatol": 1e-9}
    )
    return max(float(best.fun), 0.0)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose conversion at `delta` stays within `epsilon`."""
    check_epsilon(epsilon)
    if not 0 < delta < 1:
        raise ValueError(f"delta is {delta}; Gaussian noise needs one above 0 and below 1")
    low, high = 0.0, epsilon + 1
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_epsilon(middle, delta) <= epsilon else (low, middle)
    return low


def analytic_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """The standard deviation of Gaussian noise for (epsilon, delta) at an L2 `sensitivity`.

    The analytic Gaussian mechanism (Balle and Wang 2018), valid for every epsilon.
    """
    check_epsilon(epsilon)
    if not 0 < delta < 1:
        raise ValueError(f"delta is {delta}; Gaussian noise needs one above 0 and below 1")
    try:
        from dp_accounting import get_sigma_gaussian
    except ImportError as error:
        raise _missing("dp-accounting") from error
    return float(get_sigma_gaussian(epsilon, delta)) * sensitivity


def _optimal(epsilon: float, delta: float, times: int, total_delta: float) -> float:
    """The loss is (times - 2 l) epsilon, l binomial at 1/(1 + e^epsilon); the deltas are independent."""
    from scipy.optimize import brentq
    from scipy.stats import binom

    failures = np.arange(times + 1)
    loss = (times - 2 * failures) * epsilon
    chance = binom.pmf(failures, times, 1 / (1 + math.exp(epsilon)))
    # 1 - (1 - delta)^times (1 - d) <= total_delta, solved for d, the delta of the losses alone.
    log_kept = times * math.log1p(-delta)
    allowed = -math.expm1(math.log1p(-total_delta) - log_kept)

    def missing(total: float) -> float:
        above = loss > total
        return float((chance[above] * -np.expm1(total - loss[above])).sum()) - allowed

    if allowed < 0:
        return math.inf
    if missing(0.0) <= 0:
        return 0.0
    # A hair upwards, for the root's own tolerance.
    return min(
        float(brentq(missing, 0.0, times * epsilon, xtol=1e-13, rtol=1e-13)) * (1 + 1e-12), times * epsilon
    )


def _pld() -> tuple[Any, Any]:
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError as error:
        raise _missing("dp-accounting") from error
    return privacy_loss_distribution, common


def _missing(library: str) -> ImportError:
    return ImportError(
        f"{library} is not installed; releases need the extra: pip install 'rapid-spark[release]'"
    )
