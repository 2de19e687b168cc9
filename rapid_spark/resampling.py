"""Bootstrap and permutation null of RAPID, exact from counts and independent of n; NumPy only.

Source: the derivation rests on RAPID's definition (Templ, Thees, Mueller 2026, section 3): the thresholds of a
bootstrap replicate depend on its prevalences alone, and given the class sizes n*_c the hits of class c are binomial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .risk import class_threshold


@dataclass(frozen=True)
class BootstrapPlan:
    """Thresholds drawn before any record is looked at.

    Attributes:
        sizes: (draws, classes) records of each class in each replicate.
        thresholds: (draws, taus, classes) class thresholds of each replicate.
    """

    sizes: np.ndarray
    thresholds: np.ndarray


def plan_bootstrap(counts: np.ndarray, taus: Sequence[float], draws: int, seed: int) -> BootstrapPlan:
    """Draw n* ~ Multinomial(n, n_c / n) and T*_c = b*_c + tau (1 - b*_c) for every replicate and tau.

    Args:
        counts: records per class.
        taus: ascending thresholds of the curve.
        draws: replicates.
        seed: of the generator.
    """
    n = int(counts.sum())
    sizes = np.random.default_rng(seed).multinomial(n, counts / n, size=draws)
    share = sizes / n
    return BootstrapPlan(sizes, class_threshold(share[:, None, :], np.asarray(taus)[None, :, None]))


def bootstrap_hits(plan: BootstrapPlan, survival: Sequence[np.ndarray], seed: int) -> np.ndarray:
    """Hits of every replicate at every tau.

    Args:
        plan: sizes and thresholds.
        survival: per class (draws, taus): share of the class whose g exceeds the replicate's threshold.
        seed: of the generator.

    Returns:
        (draws, taus) hits; within a replicate they do not increase with tau.
    """
    generator = np.random.default_rng(seed)
    hits = np.zeros(plan.thresholds.shape[:2], dtype=np.int64)
    for k, above in enumerate(survival):
        # gaps between ascending thresholds: below the first, ..., above the last
        edges = np.concatenate([np.ones((len(above), 1)), above, np.zeros((len(above), 1))], axis=1)
        gaps = np.clip(edges[:, :-1] - edges[:, 1:], 0.0, 1.0)
        drawn = generator.multinomial(plan.sizes[:, k], gaps / gaps.sum(axis=1, keepdims=True))
        hits += np.cumsum(drawn[:, ::-1], axis=1)[:, ::-1][:, 1:]
    return hits


SPAN, STEP = 4.0, 0.1  # how far, and how densely, cells lie around a moving threshold, in sd of the mean


def conditional_edges(taus: Sequence[float], cv: float, n: int) -> np.ndarray:
    """Edges of cells around every threshold tau m*, with m* the mean (or other scale) of a replicate over the observed one.

    Args:
        taus: thresholds.
        cv: relative sd of one record's part in the scale: sd of g over its mean within the class (`rcs_conditional`).
        n: records of the class.
    """
    around = 1.0 + cv / np.sqrt(max(1, n)) * np.arange(-SPAN, SPAN + STEP / 2, STEP)
    return np.unique(np.outer(taus, around[around > 0]))


@dataclass(frozen=True)
class ValueCells:
    """Records of one class by cell of their value x; cell j holds edges[j - 1] < x <= edges[j].

    Attributes:
        edges: ascending, J.
        n: records, J + 1.
        total, squares: sums of m and of m^2, J + 1; the mean of m over all records is 1, and its mean in a replicate says
            how far the thresholds move. For `rcs_conditional` x = m = g / mean g.
    """

    edges: np.ndarray
    n: np.ndarray
    total: np.ndarray
    squares: np.ndarray


def conditional_hits(
    sizes: np.ndarray, cells: Sequence[ValueCells], taus: Sequence[float], seed: int, power: float = 1.0
) -> np.ndarray:
    """Values above the threshold in every bootstrap replicate where that is tau times the replicate's own scale.

    So for `rcs_conditional` (scale: the mean of g in the class), and by power 1/2 for errors over the sd of the target.

    The records of a class fall into the cells by a multinomial draw; their sum is that of the cells' means, with a
    normal remainder for the spread within cells; the hits are the cells above tau m*, and of the cell that the
    threshold cuts the proportional part. With cells a tenth of the mean's sd wide (`conditional_edges`) the cut moves
    the result by no more than that.

    Args:
        sizes: (draws, classes) records of each class in each replicate.
        cells: per class.
        taus: ascending thresholds.
        seed: of the generator.
        power: the scale is the mean of m to this power.

    Returns:
        (draws, taus) records above; within a replicate they do not increase with tau.
    """
    generator = np.random.default_rng(seed)
    hits = np.zeros((len(sizes), len(taus)), dtype=np.int64)
    for k, cell in enumerate(cells):
        if not cell.n.sum():
            continue
        n = np.maximum(cell.n, 1)
        mean = cell.total / n
        spread = np.maximum(cell.squares / n - mean**2, 0.0)
        drawn = generator.multinomial(sizes[:, k], cell.n / cell.n.sum())
        noise = generator.standard_normal(len(sizes)) * np.sqrt(drawn @ spread)
        size = sizes[:, k]
        centre = np.where(size > 0, (drawn @ mean + noise) / np.maximum(size, 1), 1.0)
        above = np.cumsum(drawn[:, ::-1], axis=1)[:, ::-1]
        above = np.concatenate([above, np.zeros((len(sizes), 1), dtype=np.int64)], axis=1)
        low, high = np.concatenate([[0.0], cell.edges]), np.append(cell.edges, cell.edges[-1])
        rows = np.arange(len(sizes))
        for j, tau in enumerate(taus):
            cut = tau * np.maximum(centre, 0.0) ** power
            at = np.searchsorted(cell.edges, cut)
            width = high[at] - low[at]
            part = np.clip(np.divide(high[at] - cut, width, out=np.zeros(len(cut)), where=width > 0), 0.0, 1.0)
            hits[:, j] += above[rows, at + 1] + np.rint(drawn[rows, at] * part).astype(np.int64)
    return hits


@dataclass(frozen=True)
class Null:
    """Permutation null of a rate: targets shuffled against predictions.

    Attributes:
        mean, sd, q95: of the rate under the null.
        p: share of the null at or above the observed rate. At large n it is small for any effect: no measure of size.
        method: 'drawn' or 'moments'.
    """

    mean: float
    sd: float
    q95: float
    p: float
    method: str


def categorical_moments(counts: np.ndarray, masks: np.ndarray, mask_counts: np.ndarray) -> tuple[float, float]:
    """Exact mean and variance of the hits when targets are shuffled.

    Args:
        counts: n_k, records per class.
        masks: (patterns, classes) bool: for which classes p_k exceeds its threshold.
        mask_counts: records per pattern.

    Returns:
        Mean and variance of the number of hits.
    """
    n = float(counts.sum())
    m = mask_counts @ masks
    r = masks @ counts
    return moments(n, float(counts @ m), float(mask_counts @ (r.astype(float) ** 2)), float(counts @ (m.astype(float) ** 2)))


def moments(n: float, a: float, row_squares: float, column_squares: float) -> tuple[float, float]:
    """Mean A/n and variance [A - sum r^2/n - sum c^2/n + A^2/n^2]/(n - 1) of the hits under shuffling.

    Args:
        n: records.
        a: pairs (prediction, target) that would be a hit.
        row_squares: sum over predictions of r_i^2, r_i = targets that prediction i would hit.
        column_squares: sum over targets of c_j^2, c_j = predictions that would hit target j.
    """
    mean = a / n
    if n < 2:
        return mean, 0.0
    variance = (a - row_squares / n - column_squares / n + (a / n) ** 2) / (n - 1.0)
    return mean, max(0.0, variance)


def null_from_moments(mean: float, variance: float, n: int, observed: int) -> Null:
    """Normal tail, with the continuity correction of a count."""
    from scipy.stats import norm

    sd = float(np.sqrt(variance))
    p = float(norm.sf((observed - 0.5 - mean) / sd)) if sd > 0 else float(observed <= mean + 1e-9)
    return Null(mean / n, sd / n, (mean + float(norm.ppf(0.95)) * sd) / n, p, "moments")


def categorical_null(
    counts: np.ndarray, masks: np.ndarray, mask_counts: np.ndarray, observed: int, draws: int, seed: int
) -> Null:
    """Null of a categorical rate from draws of the table classes x patterns with both margins fixed.

    Given the class sizes and the pattern sizes, shuffling makes the table of class by pattern multivariate
    hypergeometric, class after class.
    """
    generator = np.random.default_rng(seed)
    hits = np.zeros(draws, dtype=np.int64)
    n = int(counts.sum())
    # by pattern, unless patterns hardly repeat: then by record costs less
    method: Literal["count", "marginals"] = "count" if n < 4 * len(mask_counts) else "marginals"
    for d in range(draws):
        left = mask_counts.astype(np.int64)
        for k, size in enumerate(counts[:-1]):
            if not size:
                continue
            drawn = generator.multivariate_hypergeometric(left, int(size), method=method)
            hits[d] += int(drawn @ masks[:, k])
            left = left - drawn
        hits[d] += int(left @ masks[:, len(counts) - 1])
    return null_from_draws(hits / n, observed / n)


def null_from_draws(draws: np.ndarray, observed: float) -> Null:
    """p = (1 + #{null >= observed}) / (1 + draws), and mean, sd and 95 % point of the draws."""
    p = (1 + int(np.sum(draws >= observed))) / (1 + len(draws))
    return Null(float(draws.mean()), float(draws.std(ddof=1)), float(np.quantile(draws, 0.95)), p, "drawn")


def fixed_sequence(thresholds: Sequence[float], observed: Sequence[float], null_q95: Sequence[float]) -> float | None:
    """The data-driven threshold: the last one reached while the observed rate exceeds the null's 95 % point.

    Args:
        thresholds: in testing order: the smallest tau upwards, or the configured tolerance downwards.
        observed, null_q95: rates at these thresholds.

    Returns:
        The last threshold of the unbroken run, or None; the error rate is 5 % over the whole sequence.
    """
    found = None
    for threshold, rate, limit in zip(thresholds, observed, null_q95, strict=True):
        if not rate > limit:
            break
        found = threshold
    return found
