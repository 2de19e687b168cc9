"""A Bayesian network learned from noisy tables: structure from 2-way tables, conditionals from its own noisy
counts.

It reads noisy values, known variances and declared constants, so all of it is post-processing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapid_spark.reaedp import margins, noise
from rapid_spark.reaedp.domain import Categories, Domain, Edges, Table

Cells = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]
WEIGHT_UNIT = 1024
CHUNK = 1 << 22
KINDS: dict[type, Any] = {bool: "boolean", int: "Int64", float: "float64"}


@dataclass(frozen=True)
class Structure:
    """An order of the columns and, for each in that order, its parents: positions before its own."""

    domains: tuple[Domain, ...]
    parents: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.domains) != len(self.parents):
            raise ValueError(
                f"{len(self.domains)} columns and {len(self.parents)} parent sets; each column has one"
            )
        for i, parents in enumerate(self.parents):
            if any(not 0 <= p < i for p in parents):
                raise ValueError(f"a parent of {self.domains[i].column} does not come before it")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(d.column for d in self.domains)

    def family(self, position: int) -> Table:
        """The table of a column's parents and, last, the column."""
        return Table((*(self.domains[p] for p in self.parents[position]), self.domains[position]))


def pair_tables(domains: Sequence[Domain]) -> list[Table]:
    """All 2-way tables (the only 1-way table, where there is one column)."""
    if len(domains) == 1:
        return [Table(tuple(domains))]
    return [Table(pair) for pair in itertools.combinations(domains, 2)]


def associations(domains: Sequence[Domain], pairs: Sequence[Array], variance: float, fourth: float) -> Array:
    """Cramer's V between all columns from noisy 2-way tables, freed of what the noise alone would show.

    The sum of squared differences to independence is reduced by its expectation under noise and by two
    standard deviations, so that pairs without association come out as 0. Expected counts below the noise are
    raised to it.

    Args:
        domains: the columns.
        pairs: noisy counts of `pair_tables(domains)`.
        variance: of the noise in one cell.
        fourth: its fourth moment, over the squared variance (3 for a normal law, about 6 for Laplace).

    Returns:
        A symmetric matrix, in [0, 1], 0 on the diagonal.
    """
    tables = pair_tables(domains)
    result = np.zeros((len(domains), len(domains)))
    if len(domains) == 1:
        return result
    fitted = margins.consistent(tables, list(pairs), [variance] * len(tables))
    total = max(float(fitted[0].sum()), 1.0)
    place = {d.column: i for i, d in enumerate(domains)}
    for table, raw, smooth in zip(tables, pairs, fitted, strict=True):
        cube = np.maximum(smooth.reshape(table.shape), 0.0)
        expected = np.outer(cube.sum(axis=1), cube.sum(axis=0)) / max(cube.sum(), 1.0)
        weight = 1 / np.maximum(expected, math.sqrt(variance))
        excess = weight * ((np.reshape(raw, table.shape) - expected) ** 2 - variance)
        spread = variance * math.sqrt((fourth - 1) * float((weight**2).sum()))
        least = min(table.shape) - 1
        squared = max(float(excess.sum()) - 2 * spread, 0.0) / total / least if least else 0.0
        i, j = (place[c] for c in table.columns)
        result[i, j] = result[j, i] = min(math.sqrt(squared), 1.0)
    return result


def choose_structure(
    domains: Sequence[Domain],
    association: Array,
    kept: Sequence[str] = (),
    *,
    max_parents: int = 3,
    max_parent_cells: float = math.inf,
) -> Structure:
    """Order the columns and choose parents, greedily, by correlation-based merit.

    The merit of parents P for a column is sum V(column, p) / sqrt(|P| + sum over p != q of V(p, q)) (Hall
    1999, as Bindschaedler, Shokri, Gunter 2017 use it). Kept columns come first, as given; then always the
    column that the ones before it explain best.

    Args:
        domains: the columns.
        association: matrix as from `associations`.
        kept: columns that come first.
        max_parents: at most this many parents.
        max_parent_cells: at most this many combinations of parents' bins.
    """
    place = {d.column: i for i, d in enumerate(domains)}
    order = [place[c] for c in kept]
    left = [i for i in range(len(domains)) if i not in order]
    if not order and left:
        first = max(left, key=lambda i: (association[i].sum(), -i))
        order.append(first)
        left.remove(first)
    sizes = [d.size for d in domains]

    def parents_of(i: int, before: Sequence[int]) -> tuple[float, list[int]]:
        return _parents(i, before, association, sizes, max_parents, max_parent_cells)

    chosen = {i: parents_of(i, order[:k])[1] for k, i in enumerate(order)}
    while left:
        offers = {i: parents_of(i, order) for i in left}
        best = max(left, key=lambda i: (offers[i][0], -i))
        chosen[best] = offers[best][1]
        order.append(best)
        left.remove(best)
    position = {column: k for k, column in enumerate(order)}
    parents = tuple(tuple(sorted(position[p] for p in chosen[i])) for i in order)
    return Structure(tuple(domains[i] for i in order), parents)


@dataclass(frozen=True)
class Network:
    """A structure with, for each position from `first` on, whole-number weights (parents' cells x bins)."""

    structure: Structure
    first: int
    weights: tuple[Cells, ...]

    def redraw(self, rows: Cells, start: Cells | int) -> Cells:
        """The rows with every column from position `start` on drawn anew, from the operating system's
        generator.

        Args:
            rows: bins, one row per record, one column per position; those before `start` are kept.
            start: one position for all rows, or one per row; at least `first`.
        """
        result = rows.copy()
        starts = np.broadcast_to(np.asarray(start), len(rows))
        if len(rows) and starts.min() < self.first:
            raise ValueError(f"columns before position {self.first} have no conditional to be drawn from")
        for position in range(self.first, len(self.structure.domains)):
            touched = np.flatnonzero(starts <= position)
            if touched.size:
                result[touched, position] = draw_bins(
                    self._weights(position), self._cell(result[touched], position)
                )
        return result

    def log_probability(self, rows: Cells, position: int) -> Array:
        """ln of the probability of each row's bin at `position`, given its parents' bins."""
        weights, cell = self._weights(position), self._cell(rows, position)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(weights[cell, rows[:, position]] / weights.sum(axis=1)[cell]))

    def _weights(self, position: int) -> Cells:
        return self.weights[position - self.first]

    def _cell(self, rows: Cells, position: int) -> Cells:
        parents = self.structure.parents[position]
        sizes = [self.structure.domains[p].size for p in parents]
        if not parents:
            return np.zeros(len(rows), dtype=np.int64)
        return np.ravel_multi_index([rows[:, p] for p in parents], sizes).astype(np.int64)


def fit(structure: Structure, first: int, families: Sequence[npt.NDArray[Any]], scale: float) -> Network:
    """The conditionals of the columns from position `first` on, from noisy counts of their families.

    All families count the same records; their number is estimated from all, the smaller tables weighing more, and each
    table is brought to the simplex of that total. Every parents' cell then gets `scale` records spread as the column
    is over all cells, so that cells with nothing but noise follow the margin.

    Args:
        structure: order and parents.
        first: the first position that is ever drawn.
        families: noisy counts of `structure.family(i)` for i from `first` on.
        scale: of the noise in one cell, in records.
    """
    precision = [1 / np.size(f) for f in families]
    total = max(sum(w * float(np.sum(f)) for w, f in zip(precision, families, strict=True)) / sum(precision), 1.0)
    weights = []
    for position, noisy in zip(range(first, len(structure.domains)), families, strict=True):
        size = structure.domains[position].size
        cells = margins.simplex(np.asarray(noisy, dtype=np.float64), total).reshape(-1, size)
        smoothed = cells + max(scale, 1.0) * cells.sum(axis=0) / total
        whole = np.rint(WEIGHT_UNIT * smoothed).astype(np.int64)
        whole[whole.sum(axis=1) == 0] = 1
        weights.append(whole)
    return Network(structure, first, tuple(weights))


def decode(network_domains: Sequence[Domain], rows: Cells) -> pd.DataFrame:
    """Bins as values: a level, or a number drawn uniformly within its bin; the level `missing` becomes null.

    Raises:
        ValueError: if a bin with an infinite edge is to be drawn from.
    """
    return pd.DataFrame({d.column: _values(d, rows[:, i]) for i, d in enumerate(network_domains)})


def check_drawable(domains: Sequence[Domain]) -> None:
    """Raise ValueError where values cannot be drawn: an infinite edge, or no whole number in a bin."""
    for domain in domains:
        if not isinstance(domain, Edges):
            continue
        if math.isinf(domain.edges[0]) or math.isinf(domain.edges[-1]):
            raise ValueError(
                f"the domain of {domain.column} has an infinite edge; synthetic values need finite ones"
            )
        if domain.integer and (_whole_bounds(domain)[1] < 1).any():
            raise ValueError(f"a bin of {domain.column} holds no whole number, and it is declared integer")


def _values(domain: Domain, bins: Cells) -> pd.Series:
    if isinstance(domain, Categories):
        kinds = {type(v) for v in domain.levels}
        kind = KINDS.get(kinds.pop(), "object") if len(kinds) == 1 else "object"
        # Levels of several kinds become texts; the last place is that of `missing`.
        levels = domain.labels[: len(domain.levels)] if kind == "object" else domain.levels
        return pd.Series(np.array([*levels, None], dtype=object)[bins]).astype(kind)  # type: ignore[arg-type]
    check_drawable([domain])
    missing = bins == len(domain.edges) - 1
    at = np.where(missing, 0, bins)
    if domain.integer:
        low, count = _whole_bounds(domain)
        whole = pd.Series(low[at] + noise.uniform_below(count[at]), dtype="Int64")
        return whole.mask(missing)
    low_edge, high_edge = np.array(domain.edges)[at], np.array(domain.edges)[at + 1]
    values = low_edge + noise.uniform(len(bins)) * (high_edge - low_edge)
    return pd.Series(np.where(missing, np.nan, np.minimum(values, np.nextafter(high_edge, low_edge))))


def _whole_bounds(domain: Edges) -> tuple[Cells, Cells]:
    """The first whole number of each bin and how many it holds; the last bin is closed."""
    low = np.ceil(domain.edges[:-1]).astype(np.int64)
    high = np.ceil(domain.edges[1:]).astype(np.int64)
    high[-1] = math.floor(domain.edges[-1]) + 1
    return low, high - low


def _parents(
    column: int, before: Sequence[int], association: Array, sizes: Sequence[int], most: int, most_cells: float
) -> tuple[float, list[int]]:
    merit, parents, cells = 0.0, list[int](), 1
    while len(parents) < most:
        offers = [
            (_merit(column, [*parents, p], association), -p)
            for p in before
            if p not in parents and cells * sizes[p] <= most_cells and association[column, p] > 0
        ]
        if not offers or max(offers)[0] <= merit:
            break
        merit, parent = max(offers)
        parents.append(-parent)
        cells *= sizes[-parent]
    return merit, parents


def _merit(column: int, parents: list[int], association: Array) -> float:
    between = float(association[np.ix_(parents, parents)].sum())
    return float(association[column, parents].sum()) / math.sqrt(len(parents) + between)


def draw_bins(weights: Cells, cell: Cells) -> Cells:
    """For each entry of `cell` a column of that row of whole-number weights, as likely as its weight says."""
    cumulative = weights.cumsum(axis=1)
    result = np.empty(len(cell), dtype=np.int64)
    step = max(1, CHUNK // weights.shape[1])
    for start in range(0, len(cell), step):
        rows = cumulative[cell[start : start + step]]
        u = noise.uniform_below(rows[:, -1])
        result[start : start + step] = (rows <= u[:, None]).sum(axis=1)
    return result
