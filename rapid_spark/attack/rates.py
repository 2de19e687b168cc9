"""Accuracy, AUC, true positives at few false ones, and their intervals: plain numbers from scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
FEW = 0.01  # false positives at which true ones are reported


@dataclass(frozen=True)
class Rate:
    """A rate and its interval, all shares; low and high are None where no interval is known."""

    value: float
    low: float | None = None
    high: float | None = None


def balanced_accuracy(out: Floats, inside: Floats, threshold: float = 0.0) -> float:
    """Mean share of right guesses over both sides, 'inside' being guessed above the threshold; a tie is half right.

    Args:
        out: scores where the record is not in the data.
        inside: scores where it is.
        threshold: in units of the scores.
    """
    right = np.mean(inside > threshold) + np.mean(out < threshold)
    ties = np.mean(inside == threshold) + np.mean(out == threshold)
    return float(right + ties / 2) / 2


def auc(out: Floats, inside: Floats) -> float:
    """Chance that a score of `inside` is above one of `out`, ties half (Mann and Whitney 1947)."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([out, inside]))
    n, m = len(out), len(inside)
    return float((ranks[n:].sum() - m * (m + 1) / 2) / (n * m))


def auc_interval(area: float, n_out: int, n_inside: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of an AUC by Hanley and McNeil (1982), equation 1; ends within [0, 1]."""
    from scipy.special import ndtri

    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (n_inside - 1) * (q1 - area**2) + (n_out - 1) * (q2 - area**2)
    half = float(ndtri(0.5 + confidence / 2)) * math.sqrt(max(variance, 0.0) / (n_out * n_inside))
    return max(0.0, area - half), min(1.0, area + half)


def roc(out: Floats, inside: Floats) -> tuple[Floats, Floats]:
    """Shares of false and true positives at every threshold, from (0, 0) to (1, 1); tied scores are one step."""
    values = np.unique(np.concatenate([out, inside]))[::-1]
    false = np.searchsorted(np.sort(-out), -values, side="right") / len(out)
    true = np.searchsorted(np.sort(-inside), -values, side="right") / len(inside)
    return np.concatenate([[0.0], false]), np.concatenate([[0.0], true])


def tpr_at(out: Floats, inside: Floats, share: float = FEW) -> float:
    """True positives at a share of false ones; between two thresholds the guess is randomised, which is a straight line."""
    false, true = roc(out, inside)
    at = np.flatnonzero(false <= share)[-1]  # the last threshold that stays within the share
    if at + 1 == len(false):
        return float(true[at])
    step = (share - false[at]) / (false[at + 1] - false[at])
    return float(true[at] + step * (true[at + 1] - true[at]))


def over_repetitions(values: Sequence[float], confidence: float = 0.95) -> Rate:
    """Mean over repetitions with Student's interval: it holds the variation of plays and of the fitted attacker."""
    from scipy.stats import t

    n, mean = len(values), float(np.mean(values))
    if n < 2:
        return Rate(mean)
    half = float(t.ppf(0.5 + confidence / 2, n - 1)) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Rate(mean, max(0.0, mean - half), min(1.0, mean + half))


def balanced_interval(
    right_out: float, n_out: int, right_inside: float, n_inside: int, confidence: float = 0.95
) -> Rate:
    """Balanced accuracy with the sum of two Wilson intervals' halves in squares (Newcombe 1998, method 10, halved).

    Args:
        right_out, right_inside: right guesses per side; halves of ties are allowed.
        n_out, n_inside: guesses per side.
        confidence: e.g. 0.95.
    """
    from ..intervals import proportion

    p, q = right_out / n_out, right_inside / n_inside
    (p_low, p_high), (q_low, q_high) = (
        proportion(c, n, confidence, "wilson") for c, n in ((right_out, n_out), (right_inside, n_inside))
    )
    below = math.hypot(p - float(p_low or 0), q - float(q_low or 0))
    above = math.hypot(float(p_high or 0) - p, float(q_high or 0) - q)
    mean = (p + q) / 2
    return Rate(mean, max(0.0, mean - below / 2), min(1.0, mean + above / 2))
