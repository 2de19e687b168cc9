"""Synthetic records from noisy tables: post-processing of a histogram release, which costs no budget.

The table with the most columns is drawn as a whole. Then, one after another, the column that the columns drawn so far
explain best in one of the tables (by mutual information there) is drawn given its neighbours in that table. With 2-way
tables this is the maximum spanning tree of Chow and Liu (1968).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapid_spark.reaedp import model, noise
from rapid_spark.reaedp.domain import Domain, Table

Array = npt.NDArray[np.float64]
UNIT = 1024


@dataclass(frozen=True)
class Step:
    """One column, drawn given others that stand before it: `weights` has their cells as rows, its bins as columns."""

    column: str
    given: tuple[str, ...]
    weights: Array


def records(tables: Sequence[Table], estimates: Sequence[Array], size: int) -> pd.DataFrame:
    """Draw records whose margins are about those of post-processed tables.

    Args:
        tables: declared tables.
        estimates: one vector per table, no entry below 0, as `tables.post_process` gives.
        size: how many records, a declared number.

    Returns:
        One row per record, one column per column of any table, in the order in which the tables name them.

    Raises:
        ValueError: if values cannot be drawn from a domain (an infinite edge).
    """
    domains = {d.column: d for t in tables for d in t.domains}
    model.check_drawable(list(domains.values()))
    first = max(range(len(tables)), key=lambda i: len(tables[i].domains))
    whole = _whole(np.asarray(estimates[first]))[None, :]
    cells = _draw(whole, np.zeros(size, dtype=np.int64))
    bins = dict(zip(tables[first].columns, np.unravel_index(cells, tables[first].shape), strict=True))
    for step in _steps(tables, estimates, tables[first].columns, domains):
        shape = [domains[c].size for c in step.given]
        at = np.ravel_multi_index([bins[c] for c in step.given], shape) if step.given else np.zeros(size, dtype=np.int64)
        bins[step.column] = _draw(_whole(step.weights), np.asarray(at, dtype=np.int64))
    return model.decode(list(domains.values()), np.stack([bins[c] for c in domains], axis=1).astype(np.int64))


def mutual_information(joint: Array) -> float:
    """Mutual information in bits between rows and columns of a table of weights."""
    p = joint / max(joint.sum(), 1e-300)
    expected = np.outer(p.sum(axis=1), p.sum(axis=0))
    seen = p > 0
    return float((p[seen] * np.log2(p[seen] / expected[seen])).sum())


def _steps(
    tables: Sequence[Table], estimates: Sequence[Array], drawn: Sequence[str], domains: dict[str, Domain]
) -> list[Step]:
    steps: list[Step] = []
    there = list(drawn)
    while left := [c for c in domains if c not in there]:
        offers = [
            (mutual_information(joint), -i, column, given, joint)
            for i, (table, values) in enumerate(zip(tables, estimates, strict=True))
            for column in left
            if column in table.columns
            for given, joint in [_conditional(table, np.asarray(values, dtype=np.float64), column, there)]
        ]
        _, _, column, given, joint = max(offers, key=lambda offer: offer[:3])
        steps.append(Step(column, given, joint))
        there.append(column)
    return steps


def _conditional(table: Table, values: Array, column: str, there: Sequence[str]) -> tuple[tuple[str, ...], Array]:
    given = tuple(c for c in table.columns if c in there)
    axes = tuple(i for i, c in enumerate(table.columns) if c not in (*given, column))
    margin = values.reshape(table.shape).sum(axis=axes)
    kept = [c for c in table.columns if c in (*given, column)]
    margin = np.moveaxis(margin, kept.index(column), -1)
    return given, margin.reshape(-1, margin.shape[-1])


def _whole(weights: Array) -> npt.NDArray[np.int64]:
    """Whole-number weights; a row without any takes those of the column over all rows."""
    whole = np.rint(UNIT * np.atleast_2d(weights)).astype(np.int64)
    over_all = whole.sum(axis=0)
    whole[whole.sum(axis=1) == 0] = over_all if over_all.any() else 1
    return whole if np.ndim(weights) > 1 else whole[0]


def _draw(weights: npt.NDArray[np.int64], cell: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if len(weights) > 1:
        return model.draw_bins(weights, cell)
    cumulative = weights[0].cumsum()  # One row: looked up, which a table of millions of cells needs.
    return np.searchsorted(cumulative, noise.uniform_below(np.full(len(cell), cumulative[-1])), side="right")
