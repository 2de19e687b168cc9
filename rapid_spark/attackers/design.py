"""From codes to what an estimator takes: the codes themselves, or dummies without linear dependence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpstrf

from .base import CATEGORICAL, Feature
from .encoding import Coded
from .suite import Recipe

MAX_LEVELS = 250  # of one feature, in dummies and in histogram boosting (which allows 255)
MAX_COLUMNS = 4_000  # dummy columns of all features together
DENSE_BYTES = 2**29  # a design matrix up to this size is fitted dense, a larger one sparse


@dataclass(frozen=True)
class Codes:
    """Codes and numbers as they are, for trees."""

    width: int
    dtype: str

    def __call__(self, z: np.ndarray, fitting: bool = False) -> np.ndarray:
        return np.ascontiguousarray(z, dtype=self.dtype)


@dataclass(frozen=True, eq=False)
class Dummies:
    """Dummy columns.

    Attributes:
        tables: per categorical feature a row per code and a last one, the shares, for unknown; else None.
        kept: per numeric feature, which of (value, is missing) stay.
        scales: factor per column that stays.
        width: number of columns, at least 1.
        dense: predict dense, too. Linear attackers predict sparse: a row's sum then does not depend on the
            rows around it.
    """

    tables: tuple[Any, ...]
    kept: tuple[np.ndarray, ...]
    scales: tuple[np.ndarray, ...]
    width: int
    dense: bool

    def __call__(self, z: np.ndarray, fitting: bool = False) -> Any:
        blocks = []
        for j, table in enumerate(self.tables):
            empty = np.isnan(z[:, j])
            if table is not None:
                blocks.append(table[np.where(empty, table.shape[0] - 1, z[:, j]).astype(int)])
            else:
                block = np.column_stack([np.where(empty, 0.0, z[:, j]), empty])[:, self.kept[j]]
                blocks.append(sparse.csr_matrix(block * self.scales[j]))
        matrix = sparse.hstack(blocks, format="csr")
        if matrix.shape[1] < self.width:  # nothing varies: an estimator still wants a column
            matrix = sparse.csr_matrix((len(z), self.width))
        small = len(z) * self.width * 8 <= DENSE_BYTES
        return matrix.toarray() if small and (fitting or self.dense) else matrix


def cap_of(recipe: Recipe, features: Sequence[Feature]) -> int | None:
    if recipe.encoding in ("names", "response"):
        return None
    if recipe.encoding == "bins":
        return MAX_LEVELS
    categorical = sum(f.kind == CATEGORICAL for f in features)
    return min(MAX_LEVELS, max(2, MAX_COLUMNS // max(categorical, 1) - 2))  # less pooled and missing


def make_design(recipe: Recipe, columns: Sequence[Coded], z: np.ndarray) -> Codes | Dummies:
    if recipe.encoding not in ("reduced", "dummies"):
        return Codes(z.shape[1], "float64" if recipe.encoding == "bins" else "float32")
    tables: list[Any] = []
    widths = []
    for j, column in enumerate(columns):
        if column.feature.kind == CATEGORICAL:
            shares = np.bincount(z[:, j].astype(int), minlength=column.size) / len(z)
            tables.append(sparse.csr_matrix(np.vstack([np.eye(column.size), shares])))
            widths.append(column.size)
        else:
            tables.append(None)
            widths.append(1 + bool(np.isnan(z[:, j]).any()))
    everything, ones = tuple(np.arange(w) for w in widths), tuple(np.ones(w) for w in widths)
    x = sparse.csr_matrix(Dummies(tuple(tables), everything, ones, sum(widths), False)(z))
    means = np.asarray(x.mean(axis=0)).ravel()
    covariance = (x.T @ x).toarray() / len(z) - np.outer(means, means)
    sd = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = sd > 1e-10 * (1.0 + np.abs(means))
    reduced = recipe.encoding == "reduced"
    stays = _independent(covariance, sd, varies) if reduced else np.ones(len(sd), dtype=bool)
    factors = 1.0 / np.where(varies, sd, 1.0)
    kept, scales = [], []
    for start, w, (j, table) in zip(np.cumsum([0, *widths]), widths, enumerate(tables), strict=False):
        part = np.flatnonzero(stays[start : start + w])
        kept.append(part)
        scales.append(factors[start + part] if reduced or table is None else np.ones(len(part)))
        if table is not None:
            tables[j] = sparse.csr_matrix(table[:, part].multiply(scales[j][None, :]))
    return Dummies(tuple(tables), tuple(kept), tuple(scales), max(1, int(stays.sum())), not reduced)


def _independent(covariance: np.ndarray, sd: np.ndarray, varies: np.ndarray) -> np.ndarray:
    """Columns that with an intercept are linearly independent, by pivoted Cholesky of their correlations.

    The others add nothing on the release (R reports their coefficients as NA) and would stop Newton steps.
    """
    stays = np.zeros(len(sd), dtype=bool)
    if varies.any():
        s = sd[varies]
        correlation = covariance[np.ix_(varies, varies)] / np.outer(s, s)
        _, pivots, rank, _ = dpstrf(correlation, tol=1e-9, lower=1)
        stays[np.flatnonzero(varies)[pivots[:rank] - 1]] = True
    return stays
