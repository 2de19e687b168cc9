"""A tree whose leaves hold donors: how one variable is drawn given those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from rapid_spark.synthesizers.columns import Column
from rapid_spark.synthesizers.features import Feature, Response, feature_matrix, make_features

GROWING_CLASSES = 64


@dataclass(frozen=True)
class Growth:
    """How far a tree grows: records in a leaf, records in a node that may split, depth (None: any)."""

    min_leaf: int
    min_split: int
    max_depth: int | None
    seed: int


@dataclass(frozen=True)
class DonorTree:
    """Donors (codes of one variable) by leaf, and the features and the tree that lead a record to its leaf.

    Leaf j holds donors[starts[j]] and the counts[j] - 1 after it. Without a tree there is one leaf with all
    donors.
    """

    features: tuple[Feature, ...]
    tree: Any
    donors: np.ndarray
    starts: np.ndarray
    counts: np.ndarray

    def draw(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One donor a record, with replacement from the leaf it falls into; codes has shape (n, columns)."""
        if self.tree is None:
            return self.donors[rng.integers(len(self.donors), size=len(codes))]
        leaf = self.tree.apply(feature_matrix(self.features, codes))
        place = (rng.random(len(leaf)) * self.counts[leaf]).astype(np.int64)
        return self.donors[self.starts[leaf] + place]


def pool(donors: np.ndarray) -> DonorTree:
    """One leaf with all donors."""
    return DonorTree((), None, donors, np.zeros(1, dtype=np.int64), np.array([len(donors)]))


def grow(
    target: np.ndarray,
    kind: str,
    codes: np.ndarray,
    columns: Sequence[Column],
    predictors: Sequence[int],
    how: Growth,
) -> DonorTree:
    """Grow a tree for a target and file the target's codes by leaf.

    Args:
        target: codes of the target, row by row; none is missing when kind is 'number'.
        kind: 'number' grows by squared error of the target's ranks, 'class' by the Gini index.
        codes: all columns' codes, shape (rows, columns).
        columns: the columns.
        predictors: positions of the columns to split on.
        how: how far to grow.
    """
    if not predictors or len(target) < how.min_split or (target == target[0]).all():
        return pool(target)
    response = Response(_mid_ranks(target)) if kind == "number" else _classes(target)
    features = make_features(codes, columns, predictors, response)
    matrix = feature_matrix(features, codes)
    family = DecisionTreeRegressor if kind == "number" else DecisionTreeClassifier
    tree = family(
        min_samples_leaf=how.min_leaf,
        min_samples_split=how.min_split,
        max_depth=how.max_depth,
        random_state=how.seed,
    ).fit(matrix, response.values)
    leaf = tree.apply(matrix)
    counts = np.bincount(leaf, minlength=tree.tree_.node_count)
    return DonorTree(features, tree, target[np.lexsort((target, leaf))], np.cumsum(counts) - counts, counts)


def _mid_ranks(codes: np.ndarray) -> np.ndarray:
    """Ranks between 0 and 1, ties in the middle of theirs: long tails do not decide the splits."""
    counts = np.bincount(codes)
    return ((np.cumsum(counts) - counts / 2) / len(codes))[codes]


def _classes(codes: np.ndarray) -> Response:
    """Class codes; beyond GROWING_CLASSES the rarest share one, for growing only: donors keep their own."""
    _, classes, counts = np.unique(codes, return_inverse=True, return_counts=True)
    if len(counts) > GROWING_CLASSES:
        rank = np.empty(len(counts), dtype=np.int64)
        rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        classes = np.minimum(rank, GROWING_CLASSES - 1)[classes]
    return Response(classes, min(len(counts), GROWING_CLASSES))
