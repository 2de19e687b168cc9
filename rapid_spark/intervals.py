"""Intervals of a rate, on plain numbers.

What all of them mean: the release and the fitted attacker are held fixed; the interval says only how the rate would
vary if the original were a random sample of a larger population. For a complete register there is no such error.
Variation over releases and attackers is not in it.
"""

from __future__ import annotations

import numpy as np

MEANING = (
    "release and fitted attacker held fixed; says how the rate would vary if the original were a random sample of a "
    "larger population; variation over releases and attackers is not in it"
)


def proportion(count: float, n: float, confidence: float, method: str) -> tuple[float | None, float | None]:
    """Interval of count / n by `wilson`, `clopper_pearson` or `wald` (statsmodels' implementations).

    The thresholds of `normalized_gain` move with the estimated prevalences, and these three hold them fixed: they
    cover less than they say (see `wilson_neff`). Where the flags do not move they are right.

    Args:
        count: hits; a fraction is allowed for `wilson` (effective counts).
        n: trials; an interval of 0 trials is (None, None).
        confidence: e.g. 0.95.

    Returns:
        Lower and upper end, as shares.
    """
    from statsmodels.stats.proportion import proportion_confint

    if n <= 0:
        return None, None
    name = {"wilson": "wilson", "clopper_pearson": "beta", "wald": "normal"}[method]
    low, high = proportion_confint(count, n, alpha=1.0 - confidence, method=name)
    # the closed forms miss 0 and 1 by a rounding
    return (0.0 if count <= 0 else max(0.0, float(low))), (1.0 if count >= n else min(1.0, float(high)))


def wilson_neff(rate: float, n: int, variance: float, confidence: float) -> tuple[float | None, float | None]:
    """Wilson's interval with the effective sample size n_eff = p (1 - p) / Var_boot.

    Args:
        rate: observed rate p.
        n: records.
        variance: bootstrap variance of the rate; where it is 0 (a rate of 0 or 1), n stands for n_eff.
        confidence: e.g. 0.95.
    """
    effective = rate * (1.0 - rate) / variance if variance > 0 and 0 < rate < 1 else float(n)
    return proportion(rate * effective, effective, confidence, "wilson")


def percentile(draws: np.ndarray, confidence: float) -> tuple[float, float]:
    """Percentile interval of bootstrap draws."""
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(draws, [tail, 100.0 - tail])
    return float(low), float(high)
