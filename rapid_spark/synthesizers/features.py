"""Columns as the numeric features that a tree splits on.

Trees of scikit-learn split on order alone, so ordered columns enter as the rank of their value (float32 holds
ranks exactly, dates and large numbers it would not). Unordered ones enter by the order of their levels that
suits the target: by its mean, or for several classes by the leading principal components of the class shares
(Coppersmith, Hong, Hosking 1999, "Partitioning nominal attributes in decision trees"); few levels enter one
by one as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rapid_spark.synthesizers.columns import MISSING, Column

ONE_BY_ONE_LEVELS = 12
COMPONENTS = 2


@dataclass(frozen=True)
class Response:
    """What a tree is grown to tell: class codes 0..n_classes - 1, or numbers when n_classes is 0."""

    values: np.ndarray
    n_classes: int = 0

    def sums(self, slots: np.ndarray, n_slots: int) -> np.ndarray:
        """Count of every class, or sum of the numbers, by slot: shape (n_slots, n_classes or 1)."""
        if not self.n_classes:
            return np.bincount(slots, weights=self.values, minlength=n_slots)[:, None]
        cells = np.bincount(slots * self.n_classes + self.values, minlength=n_slots * self.n_classes)
        return cells.reshape(n_slots, self.n_classes).astype(float)


@dataclass(frozen=True)
class RankFeature:
    """An ordered column: its code is its rank; the tree sends missing values to the better side."""

    column: int

    def values(self, codes: np.ndarray) -> np.ndarray:
        """One float32 feature of shape (n, 1)."""
        ranks = codes.astype(np.float32)
        ranks[codes == MISSING] = np.nan
        return ranks[:, None]


@dataclass(frozen=True)
class LevelFeature:
    """An unordered column: a table with one row per level and one column per feature.

    The last row is for missing values, so that the code MISSING, which is -1, finds it.
    """

    column: int
    table: np.ndarray

    def values(self, codes: np.ndarray) -> np.ndarray:
        """Float32 features of shape (n, number of features)."""
        return self.table[codes]


Feature = RankFeature | LevelFeature


def make_features(
    codes: np.ndarray, columns: Sequence[Column], predictors: Sequence[int], response: Response
) -> tuple[Feature, ...]:
    """The features of the predictors, with codes of shape (training rows, columns)."""
    return tuple(
        RankFeature(k)
        if columns[k].ordered
        else _level_feature(k, codes[:, k], columns[k].n_levels, response)
        for k in predictors
    )


def feature_matrix(features: Sequence[Feature], codes: np.ndarray) -> np.ndarray:
    """All features side by side, float32, for codes of shape (rows, columns)."""
    return np.hstack([feature.values(codes[:, feature.column]) for feature in features])


def _level_feature(column: int, codes: np.ndarray, n_levels: int, response: Response) -> LevelFeature:
    slots = np.where(codes == MISSING, n_levels, codes)
    weights = np.bincount(slots, minlength=n_levels + 1)
    tables = [_level_order(weights, response.sums(slots, n_levels + 1))]
    present = np.flatnonzero(weights)
    if 2 < len(present) <= ONE_BY_ONE_LEVELS:
        tables.append(np.eye(n_levels + 1)[:, present])
    return LevelFeature(column, np.hstack(tables).astype(np.float32))


def _level_order(weights: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Positions of the levels, shape (levels, components); one without a training row counts as average."""
    seen = weights > 0
    centred = np.zeros_like(sums)
    centred[seen] = sums[seen] / weights[seen, None] - sums.sum(axis=0) / weights.sum()
    if sums.shape[1] == 1:
        return _dense_ranks(centred)
    scaled = centred * np.sqrt(weights)[:, None]
    _, directions = np.linalg.eigh(scaled.T @ scaled)
    leading = directions[:, ::-1][:, : min(COMPONENTS, sums.shape[1] - 1)]
    signs = np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(leading.shape[1])])
    return _dense_ranks(centred @ (leading * signs))


def _dense_ranks(scores: np.ndarray) -> np.ndarray:
    """Ranks by column; scores equal but for rounding share one: no tie hangs on the last bit."""
    return np.stack([np.unique(column.round(12), return_inverse=True)[1] for column in scores.T], axis=1)
