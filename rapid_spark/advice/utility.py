"""What a step costs: information lost by column, and associations between columns that change. NumPy alone."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

BINS = 10  # quantile bins of a numeric column, where associations are measured


@dataclass(frozen=True)
class Loss:
    """What a coarser release has lost against the release it was made from.

    Attributes:
        information: mean over all columns of 1 - H(coarser) / H(before), H the Shannon entropy of its values; 0 to 1.
        association: mean over all pairs of columns of the absolute change of Cramer's V; 0 to 1.
    """

    information: float
    association: float


def entropy(values: pd.Series) -> float:
    """Shannon entropy of a column's values in bits; missing is a value of its own."""
    counts = np.unique(_codes(values), return_counts=True)[1]
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def cramers_v(x: np.ndarray, y: np.ndarray) -> float:
    """Cramer's V of two coded columns (Cramer 1946): sqrt(chi2 / n / min(rows - 1, columns - 1)); 0 if one is constant."""
    rows, columns = int(x.max()) + 1, int(y.max()) + 1
    table = np.bincount(x * columns + y, minlength=rows * columns).reshape(rows, columns).astype(float)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return 0.0
    n = table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    chi2 = float((((table - expected) ** 2) / expected).sum())
    return float(np.sqrt(chi2 / n / (min(table.shape) - 1)))


def loss(before: pd.DataFrame, after: pd.DataFrame) -> Loss:
    """What `after` has lost; it holds the same rows in the same order, and lacks the columns that were dropped.

    Args:
        before: the release.
        after: the coarser release.
    """
    lost = []
    for name in before.columns:
        whole = entropy(before[name])
        kept = entropy(after[name]) if name in after else 0.0
        lost.append(0.0 if whole == 0 else max(0.0, 1 - kept / whole))
    codes, coarser = _binned(before), _binned(after)
    changes = []
    for a, b in itertools.combinations(before.columns, 2):
        there = cramers_v(codes[a], codes[b])
        left = cramers_v(coarser[a], coarser[b]) if a in coarser and b in coarser else 0.0
        changes.append(abs(there - left))
    return Loss(float(np.mean(lost)) if lost else 0.0, float(np.mean(changes)) if changes else 0.0)


def _binned(frame: pd.DataFrame) -> Mapping[str, np.ndarray]:
    return {str(name): _codes(_bins(frame[name])) for name in frame.columns}


def _bins(values: pd.Series) -> pd.Series:
    if not pd.api.types.is_numeric_dtype(values) or values.nunique() <= BINS:
        return values
    return pd.qcut(values, BINS, labels=False, duplicates="drop")


def _codes(values: pd.Series) -> np.ndarray:
    return pd.factorize(values, use_na_sentinel=False)[0]
