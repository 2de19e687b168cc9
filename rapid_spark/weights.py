"""Survey weights: the rate of the population behind a sample, its linearised variance and interval, on plain numbers.

Prevalences, thresholds and rate are all weighted: the figure is that of the population the weights stand for, as if each
record stood in the file as often as its weight says. Because the thresholds move with the estimated prevalences, a
record's part in the variance is

    z_i = (w_i / W) [(a_i - R) + sum_c D_c (1{y_i = c} - b_c)],    W = sum w,

with D_c = dR / db_c = -(1 - tau) b_c f_c(T_c), f_c the weighted density of g within class c at its threshold T_c
(normalized_gain; D = 0 where the threshold does not depend on the prevalences). Variances by strata and primary sampling
units are those of single-stage sampling with replacement (Särndal, Swensson and Wretman, Model Assisted Survey Sampling,
section 4.6; Binder 1983 for linearisation).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .intervals import wilson_neff

Array = NDArray[np.float64]
# Silverman's rule for a Gaussian kernel, times the ratio of canonical bandwidths of a box of half-width h to it.
SILVERMAN = 0.9
BOX_OF_GAUSSIAN = 1.740


def half_width(sd: Array, n_effective: Array, shift: Array) -> Array:
    """Half-width h of the box over which the density of g is averaged, per class.

    h = 1.740 x 0.9 x sd x n^(-1/5) (Silverman's rule carried over to a box kernel by canonical bandwidths, Marron and
    Nolan 1988), at least the two standard errors within which the threshold itself is known.

    Args:
        sd: weighted standard deviation of g within each class.
        n_effective: (sum w)^2 / sum w^2 of each class.
        shift: standard error of each threshold, (1 - tau) sqrt(b (1 - b) / n).
    """
    n = np.maximum(n_effective, 1.0)
    return np.asarray(np.maximum(BOX_OF_GAUSSIAN * SILVERMAN * sd * n**-0.2, 2.0 * shift))


def density(above_low: Array, above_high: Array, h: Array) -> Array:
    """f_c(T_c) = weighted share of class c with T - h < g <= T + h, over 2 h; 0 where h is 0 (g is constant)."""
    return np.asarray(np.divide(above_low - above_high, 2.0 * h, out=np.zeros_like(h), where=h > 0))


def slopes(tau: float, prevalence: Array, f: Array) -> Array:
    """D_c = -(1 - tau) b_c f_c(T_c): how the rate moves with the prevalence of class c through its threshold."""
    return np.asarray(-(1.0 - tau) * prevalence * f)


def offsets(rate: float, prevalence: Array, slope: Array) -> Array:
    """u_c such that z_i = (w_i / W) (a_i + u_c) for a record of class c."""
    return np.asarray(slope - rate - float(slope @ prevalence))


def variance(units: Array, totals: Array, squares: Array) -> tuple[float, int]:
    """Variance of a total of z over strata: sum_h n_h / (n_h - 1) sum_j (z_hj - mean_h)^2.

    A stratum with one unit has no spread of its own: its unit is set against the mean of all units, which errs on the
    side of a larger variance (as other programs' option "adjust").

    Args:
        units: n_h, primary sampling units (or records) per stratum.
        totals: sum of z_hj per stratum.
        squares: sum of z_hj^2 per stratum.

    Returns:
        The variance, and the number of strata with a single unit.
    """
    n, total, square = (np.asarray(x, dtype=float) for x in (units, totals, squares))
    several = n > 1
    within = np.maximum(square[several] - total[several] ** 2 / n[several], 0.0)
    single = total[~several & (n > 0)]
    mean = float(total.sum() / n.sum()) if n.sum() else 0.0
    found = float((n[several] / (n[several] - 1.0) * within).sum()) + float(((single - mean) ** 2).sum())
    return found, len(single)


def interval(rate: float, n: int, var: float, confidence: float) -> tuple[float | None, float | None, float | None]:
    """Wilson's interval with n_eff = R (1 - R) / V, and n_eff; n stands for it where R is 0 or 1 or V is 0."""
    low, high = wilson_neff(rate, n, var, confidence)
    effective = rate * (1.0 - rate) / var if var > 0 and 0 < rate < 1 else float(n)
    return low, high, effective
