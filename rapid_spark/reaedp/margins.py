"""Noisy tables made consistent: one weighted least-squares fit from the noisy values and their known
variances only.

A table's values split into orthogonal effects, one per subset of its columns: the margin on the subset,
centred along every axis. Equal, independent noise within a table stays uncorrelated between effects, so the
fit of all tables at once is, effect by effect, the mean of what the tables say of it, weighted by the inverse
of its variance there (the decomposition of an analysis of variance). Everything here is post-processing: it
costs no budget.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from rapid_spark.reaedp.domain import Table

Array = npt.NDArray[np.float64]
Subset = tuple[str, ...]


def consistent(
    tables: Sequence[Table], values: Sequence[Array], variances: Sequence[float], total: float | None = None
) -> list[Array]:
    """The closest tables, by least squares weighted with 1 / variance, that agree on every shared margin.

    Args:
        tables: what the values are counts of.
        values: one vector per table, in the order of its cells.
        variances: of the noise in one cell, per table.
        total: what every table adds up to; None estimates it from the tables.

    Returns:
        One vector per table. Values may be negative.
    """
    sums: dict[Subset, Array] = {}
    weights: dict[Subset, float] = {}
    for table, value, variance in zip(tables, values, variances, strict=True):
        for subset in _subsets(table):
            weight = 1 / (variance * _outside(table, subset))
            sums[subset] = sums.get(subset, 0.0) + weight * _effect(table, value, subset)
            weights[subset] = weights.get(subset, 0.0) + weight
    effects = {s: sums[s] / weights[s] for s in sums}
    if total is not None:
        effects[()] = np.asarray(float(total))
    return [_rebuild(table, effects) for table in tables]


def fitted_variance(tables: Sequence[Table], variances: Sequence[float], total_known: bool) -> list[float]:
    """The variance of one cell of each table after `consistent`: at most that of its own noise.

    Args:
        tables: as in `consistent`.
        variances: as in `consistent`.
        total_known: a total was given.
    """
    weights: dict[Subset, float] = {}
    for table, variance in zip(tables, variances, strict=True):
        for subset in _subsets(table):
            weights[subset] = weights.get(subset, 0.0) + 1 / (variance * _outside(table, subset))
    result = []
    for table in tables:
        sizes = dict(zip(table.columns, table.shape, strict=True))
        terms = [
            math.prod(1 - 1 / sizes[c] for c in subset) / weights[subset] / _outside(table, subset) ** 2
            for subset in _subsets(table)
            if subset or not total_known
        ]
        result.append(math.fsum(terms))
    return result


def nonnegative(
    tables: Sequence[Table],
    values: Sequence[Array],
    variances: Sequence[float],
    total: float,
    *,
    tolerance: float = 1e-6,
    rounds: int = 500,
) -> list[Array]:
    """The closest tables by weighted least squares that agree on margins, add up to `total`, and have no
    negative cell.

    One table: the projection on the simplex, in closed form. Several: alternating projections with Dykstra's
    correction, ended when no cell is below -tolerance * total / cells, or after `rounds`; what is then still
    negative is removed by mixing in the uniform table, which is consistent itself, so that the result is so
    exactly.
    """
    if total < 0:
        raise ValueError(f"total is {total}; it must be at least 0")
    if len(tables) == 1:
        return [simplex(values[0], total)]
    uniform = [np.full(t.cells, total / t.cells) for t in tables]
    fitted = consistent(tables, values, variances, total)
    correction = [np.zeros_like(f) for f in fitted]
    for _ in range(rounds):
        if all(f.min() >= -tolerance * u[0] for f, u in zip(fitted, uniform, strict=True)):
            break
        shifted = [f + c for f, c in zip(fitted, correction, strict=True)]
        clipped = [np.maximum(s, 0.0) for s in shifted]
        correction = [s - c for s, c in zip(shifted, clipped, strict=True)]
        fitted = consistent(tables, clipped, variances, total)
    share = max(
        float(np.max(-f / (u - f), where=f < 0, initial=0.0)) for f, u in zip(fitted, uniform, strict=True)
    )
    return [np.maximum((1 - share) * f + share * u, 0.0) for f, u in zip(fitted, uniform, strict=True)]


def simplex(values: Array, total: float) -> Array:
    """The closest vector, by least squares, with no negative entry and the given sum."""
    if total == 0:
        return np.zeros(len(values))
    falling = np.sort(np.asarray(values, dtype=np.float64))[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    shift = shifts[np.flatnonzero(falling > shifts)[-1]]
    return np.maximum(values - shift, 0.0)


def clip_and_rescale(values: Array, total: float) -> Array:
    """Negative entries to 0, the rest scaled to the sum `total`: simple, but too much in empty cells."""
    clipped = np.maximum(values, 0.0)
    mass = clipped.sum()
    return clipped * (total / mass) if mass > 0 else np.full(len(values), total / len(values))


def rounded(values: Array, total: int) -> npt.NDArray[np.int64]:
    """Whole numbers with the sum `total`, each within 1 of the value: the largest remainders go up."""
    floor = np.floor(values).astype(np.int64)
    left = total - int(floor.sum())
    if not 0 <= left <= len(values):
        raise ValueError(f"the values add up to {values.sum():g}; to round them they must add up to {total}")
    floor[np.argsort(floor - values, kind="stable")[:left]] += 1
    return floor


def _subsets(table: Table) -> Iterator[Subset]:
    """The subsets of its columns, each in alphabetical order."""
    names = sorted(table.columns)
    return itertools.chain.from_iterable(itertools.combinations(names, k) for k in range(len(names) + 1))


def _outside(table: Table, subset: Subset) -> int:
    return math.prod(size for c, size in zip(table.columns, table.shape, strict=True) if c not in subset)


def _effect(table: Table, values: Array, subset: Subset) -> Array:
    """The margin on `subset`, axes in its order, centred along each."""
    cube = np.asarray(values, dtype=np.float64).reshape(table.shape)
    margin = cube.sum(axis=tuple(i for i, c in enumerate(table.columns) if c not in subset))
    kept = [c for c in table.columns if c in subset]
    margin = np.transpose(margin, [kept.index(c) for c in subset])
    for axis in range(len(subset)):
        margin = margin - margin.mean(axis=axis, keepdims=True)
    return np.asarray(margin)


def _rebuild(table: Table, effects: dict[Subset, Array]) -> Array:
    cube = np.zeros(table.shape)
    for subset in _subsets(table):
        kept = [c for c in table.columns if c in subset]
        part = np.transpose(effects[subset], [subset.index(c) for c in kept])
        shape = [size if c in subset else 1 for c, size in zip(table.columns, table.shape, strict=True)]
        cube += part.reshape(shape) / _outside(table, subset)
    return cube.ravel()
