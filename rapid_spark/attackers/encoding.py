"""From the columns of a release to numbers: levels to codes, numbers scaled, and what is unknown or missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from .base import CATEGORICAL, AttackerError, Feature

LARGEST = 1e30  # scaled numbers are clipped here: trees hold float32


@dataclass(frozen=True)
class Coded:
    """One feature as a number: the code of its level, NaN if unknown; or a scaled value, NaN if missing."""

    feature: Feature
    levels: Mapping[str, int]
    missing: int  # code of a missing value; -1 where the release has none
    size: int  # number of codes
    center: float = 0.0
    scale: float = 1.0

    def code(self, column: pd.Series) -> np.ndarray:
        if self.feature.kind == CATEGORICAL:
            positions, labels = factorize(column)
            codes = np.array([*(self.levels.get(x, -1) for x in labels), self.missing], dtype=np.float64)
            codes[codes < 0] = np.nan
            return codes[positions]  # position -1, a missing value, takes the last code
        if self.scale == 0:  # the release has no value at all: nothing can be learnt from one
            return np.zeros(len(column))
        with np.errstate(over="ignore"):
            scaled = (numbers(self.feature.name, column) - self.center) / self.scale
        return np.clip(scaled, -LARGEST, LARGEST) + 0.0

    def reordered(self, codes: np.ndarray, y: np.ndarray, classes: tuple[str, ...] | None) -> Coded:
        """The same column with codes in the order of the target's mean.

        One split then finds the best of all subsets of levels: exactly so for two classes and for numbers
        (Fisher 1958); for more classes the order is along the first principal component of their shares
        (Coppersmith, Hong and Hosking 1999).
        """
        if self.feature.kind != CATEGORICAL:
            return self
        at = codes.astype(int)
        counts = np.bincount(at, minlength=self.size).astype(float)
        if classes is None:
            score = np.bincount(at, weights=y - y.mean(), minlength=self.size) / counts
        else:
            k = len(classes)
            table = np.bincount(at * k + y, minlength=self.size * k).reshape(self.size, k)
            away = table / counts[:, None] - table.sum(axis=0) / counts.sum()
            axis = np.linalg.svd(away * np.sqrt(counts)[:, None], full_matrices=False)[2][0]
            score = np.round(away @ axis * np.sign(axis[np.abs(axis).argmax()]), 12)
        rank = np.empty(self.size, dtype=int)
        rank[np.argsort(score, kind="stable")] = np.arange(self.size)
        missing = int(rank[self.missing]) if self.missing >= 0 else -1
        return replace(self, levels={x: int(rank[c]) for x, c in self.levels.items()}, missing=missing)

    def note(self) -> str:
        kept = self.size - (self.missing >= 0)
        if kept >= len(self.levels):
            return ""
        return f"{self.feature.name}: top {kept - 1:,} of {len(self.levels):,} levels kept, the others pooled"


def fit_column(feature: Feature, column: pd.Series, cap: int | None) -> Coded:
    if feature.kind != CATEGORICAL:
        values = numbers(feature.name, column)
        values = values[np.isfinite(values)]
        if not len(values):
            return Coded(feature, {}, -1, 0, scale=0.0)
        center = float(np.median(values))
        away = np.abs(values - center)
        # Not the standard deviation: one absurd value must not press all others into one float32.
        scale = float(np.median(away[away > 0])) if (away > 0).any() else 1.0
        return Coded(feature, {}, -1, 0, center, scale if np.isfinite(scale) else 1.0)
    positions, labels = factorize(column)
    names = sorted(set(labels))
    code = {label: i for i, label in enumerate(names)}
    known = len(names)
    if cap is not None and len(names) > cap:
        each = np.bincount(positions[positions >= 0], minlength=len(labels))
        counts = np.bincount([code[label] for label in labels], weights=each, minlength=len(names))
        kept = np.sort(np.argsort(-counts, kind="stable")[:cap])
        code = dict.fromkeys(names, cap) | {names[i]: c for c, i in enumerate(kept)}
        known = cap + 1
    has_missing = bool((positions < 0).any())
    return Coded(feature, code, known if has_missing else -1, known + has_missing)


def encode(columns: Iterable[Coded], frame: pd.DataFrame) -> np.ndarray:
    return np.column_stack([c.code(frame[c.feature.name]) for c in columns])


def factorize(column: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Position of each row's label (-1: missing) and the labels, as text."""
    positions, uniques = pd.factorize(column)
    return positions, [str(u) for u in uniques]


def numbers(name: str, column: pd.Series) -> np.ndarray:
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise AttackerError(f"column {name!r} has type {column.dtype} where numbers are needed") from None


def distinct_rows(z: np.ndarray, order: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows sorted by the features in `order`, and where each row of `z` is among them.

    Neighbouring rows then take the same way through a tree, which keeps it in the cache: about twice as fast.
    """
    keys = np.where(np.isnan(z), np.inf, z)[:, list(order)]
    rows = np.lexsort(keys.T[::-1])
    keys = keys[rows]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    back = np.empty(len(rows), dtype=np.intp)
    back[rows] = np.cumsum(new) - 1
    return z[rows[new]], back
