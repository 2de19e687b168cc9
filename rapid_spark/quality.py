"""Quality of an attacker from counts: accuracy, macro F1, log loss, AUC; NumPy only."""

from __future__ import annotations

import numpy as np

AUC_DECIMALS = 4  # probabilities are ranked after rounding; ties count half


def accuracy(confusion: np.ndarray) -> float:
    """Share on the diagonal of a (true, predicted) count matrix."""
    return float(np.trace(confusion) / confusion.sum())


def macro_f1(confusion: np.ndarray) -> float:
    """Unweighted mean of the F1 of the classes that occur as truth or prediction; F1 of a class never hit is 0."""
    hits = np.diag(confusion).astype(float)
    size = confusion.sum(axis=1) + confusion.sum(axis=0)
    seen = size > 0
    return float(np.mean(2.0 * hits[seen] / size[seen]))


def auc(positives: np.ndarray, negatives: np.ndarray) -> float | None:
    """Area under the ROC curve from counts per ascending score; ties count half. None without both classes."""
    n_pos, n_neg = float(positives.sum()), float(negatives.sum())
    if not n_pos or not n_neg:
        return None
    below = np.cumsum(negatives) - negatives
    return float(np.sum(positives * (below + negatives / 2.0)) / (n_pos * n_neg))


def macro_auc(per_class: list[float | None]) -> float | None:
    """Binary: the one value; several classes: unweighted mean of each against the rest."""
    known = [a for a in per_class if a is not None]
    return float(np.mean(known)) if known else None
