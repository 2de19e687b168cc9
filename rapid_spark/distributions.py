"""How scores and probabilities are spread: the score's histogram by true class, and the calibration curve; NumPy only.

Both come from counts that are there anyway. Bins that could tell of a person are joined to their neighbours, so that
nothing is held back that could be subtracted out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .suppression import is_sensitive

LOWEST_SCORES = {"normalized_gain": -1.0, "rcs_conditional": 0.0, "nce": 0.0}
HIGHEST_SCORES = {"normalized_gain": 1.0, "rcs_conditional": 4.0, "nce": 1.0}
BINS_PER_UNIT = {"normalized_gain": 20, "rcs_conditional": 5, "nce": 20}
CALIBRATION_BINS = 10
MOST_CLASSES = 20  # the most frequent ones; of the others the table of classes tells


def score_edges(measure: str, threshold: float) -> np.ndarray:
    """Ends of the bins between the lowest and the highest one, which are open; the threshold is one of them."""
    low, high, per = LOWEST_SCORES[measure], HIGHEST_SCORES[measure], BINS_PER_UNIT[measure]
    inner = low + np.arange(1, round((high - low) * per)) / per
    inner = inner[np.abs(inner - threshold) > 0.2 / per]
    return np.sort(np.append(inner.round(12), threshold))


def joined(n: np.ndarray, hits: np.ndarray | None, smallest: int, border: int | None = None) -> list[tuple[int, int]]:
    """Neighbouring bins joined until none could tell of a person; empty ones between them stay as they are.

    Args:
        n: records per bin.
        hits: records with the property that is told of a bin; None where nothing but n is told.
        smallest: fewest records of a bin.
        border: bins before and from this one are joined only where one of the two sides has too few for a bin.

    Returns:
        (first, last + 1) of each bin with records, in order; none where all together are too few.
    """
    n = np.asarray(n)

    def bad(i: int, j: int) -> bool:
        if hits is None:
            return bool(n[i:j].sum() < smallest)
        return bool(is_sensitive(n[i:j].sum(), np.asarray(hits)[i:j].sum(), smallest))

    sides = [(0, len(n))]
    if border is not None and 0 < border < len(n):
        parts = [(0, border), (border, len(n))]
        if all(not n[i:j].sum() or not bad(i, j) for i, j in parts):
            sides = parts
    found: list[tuple[int, int]] = []
    for first, end in sides:
        own: list[tuple[int, int]] = []
        start = first
        for i in range(first, end):
            if not n[start : i + 1].sum():
                start = i + 1  # nobody yet
            elif not bad(start, i + 1):
                own.append((start, i + 1))
                start = i + 1
        if n[start:end].sum():
            while own and bad(start, end):
                start = own.pop()[0]
            if bad(start, end):
                continue
            own.append((start, end))
        found += own
    return found


def histogram(
    measure: str, labels: Sequence[str], above: Sequence[np.ndarray], sizes: np.ndarray, edges: np.ndarray,
    lowest: np.ndarray, highest: np.ndarray, threshold: float, smallest: int,
) -> list[dict[str, Any]]:
    """Rows of the score's histogram.

    Args:
        measure: a categorical measure.
        labels: of the classes, by rank.
        above: per class, records whose score exceeds each of `edges`.
        sizes: records per class.
        edges: of `score_edges`.
        lowest, highest: per class, the lowest and highest score there can be.
        threshold: an element of edges.
        smallest: fewest records of a bin.

    Returns:
        Per class (the most frequent MOST_CLASSES) and bin with records: class_label, bin_low, bin_high, n; a score s is
        in a bin when bin_low < s <= bin_high.
    """
    rows = []
    border = int(np.searchsorted(edges, threshold)) + 1
    for k, label in enumerate(labels[:MOST_CLASSES]):
        cumulated = np.concatenate([[sizes[k]], above[k], [0]])
        n = (cumulated[:-1] - cumulated[1:]).astype(np.int64)
        bounds = np.concatenate([[min(lowest[k], edges[0])], edges, [max(highest[k], edges[-1])]])
        for i, j in joined(n, None, smallest, border):
            rows.append({"kind": "score", "class_label": label, "bin_low": float(bounds[i]), "bin_high": float(bounds[j]),
                         "n": int(n[i:j].sum())})
    return rows


def score_range(
    measure: str, prevalence: np.ndarray, mean_true_prob: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest score that each class can have."""
    one = np.ones(len(prevalence))
    if measure == "normalized_gain":
        return -prevalence / np.where(prevalence < 1, 1 - prevalence, 1.0), one
    if measure == "nce":
        return one * (1.0 + np.log(1e-10) / np.log(max(2, n_classes))), one
    mean = np.asarray(mean_true_prob, dtype=float)
    return 0.0 * one, np.divide(1.0, mean, out=one.copy(), where=mean > 0)


def calibration(
    label: str, p: np.ndarray, n: np.ndarray, positives: np.ndarray, smallest: int
) -> list[dict[str, Any]]:
    """Rows of the calibration curve of one class: what the attacker says, and how often it is so.

    Args:
        label: of the class.
        p: ascending or not, probabilities of the class (rounded ones).
        n, positives: records with this probability, and those of them whose class it is.
        smallest: fewest records of a bin; also neither positives nor the others may be a few.

    Returns:
        Per bin: class_label, bin_low, bin_high, n, mean_prob, observed.
    """
    place = np.minimum((np.asarray(p, dtype=float) * CALIBRATION_BINS).astype(np.int64), CALIBRATION_BINS - 1)
    size, right, total = (
        np.bincount(place, weights=w, minlength=CALIBRATION_BINS) for w in (n, positives, np.asarray(p) * np.asarray(n))
    )
    rows = []
    for i, j in joined(size.astype(np.int64), right.astype(np.int64), smallest):
        records = size[i:j].sum()
        rows.append({
            "kind": "calibration", "class_label": label, "bin_low": i / CALIBRATION_BINS, "bin_high": j / CALIBRATION_BINS,
            "n": int(records), "mean_prob": float(total[i:j].sum() / records), "observed": float(right[i:j].sum() / records),
        })
    return rows
