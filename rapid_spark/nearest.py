"""Exact nearest neighbours among records of mixed type: SciPy's trees, built and asked inside Spark tasks.

Distance (Gower 1971), a mean over columns: |x - y| / range for numbers, 0 or 1 for categories; a missing value equals a
missing one and is 1 away from a category, 1/2 to 1 from a number. With categories as indicator columns of weight 1/2 it is
an L1 distance, which a k-d tree searches exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
MOST_DIMENSIONS = 400  # of a tree; with more levels all pairs of a block are looked at
BLOCK = 2_000


@dataclass(frozen=True)
class Space:
    """Columns and the scale of their distances.

    Attributes:
        numeric: numeric columns.
        categorical: the others.
        low: of each numeric column, subtracted before scaling.
        width: range of each numeric column; 1 where all values are one.
        levels: of each categorical column, those known; others differ from all of them.
    """

    numeric: tuple[str, ...]
    categorical: tuple[str, ...]
    low: tuple[float, ...]
    width: tuple[float, ...]
    levels: tuple[tuple[str, ...], ...]

    @property
    def size(self) -> int:
        """How many columns there are."""
        return len(self.numeric) + len(self.categorical)

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        return [*self.numeric, *self.categorical]

    def encode(self, frame: pd.DataFrame) -> Points:
        """Rows as points; the frame has at least the space's columns."""
        numbers = np.full((len(frame), len(self.numeric)), np.nan)
        for i, (c, low, width) in enumerate(zip(self.numeric, self.low, self.width, strict=True)):
            numbers[:, i] = (pd.to_numeric(frame[c]).to_numpy(dtype=float, na_value=np.nan) - low) / width
        codes = np.zeros((len(frame), len(self.categorical)), dtype=np.int64)
        for i, (c, levels) in enumerate(zip(self.categorical, self.levels, strict=True)):
            values = frame[c].astype(object)
            found = pd.Index(levels, dtype=object).get_indexer(pd.Index(values))
            codes[:, i] = np.where(values.isna(), len(levels), found)  # -1 where unknown
        return Points(numbers, codes)


@dataclass(frozen=True)
class Points:
    """Encoded rows: scaled numbers (NaN where missing), and codes of levels (-1: unknown, differs from every level)."""

    numbers: Floats
    codes: Whole

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: npt.NDArray[Any]) -> Points:
        """Some of the rows."""
        return Points(self.numbers[rows], self.codes[rows])


def space(
    frames: Sequence[pd.DataFrame], columns: Sequence[tuple[str, bool]], ranges: dict[str, tuple[float, float]]
) -> Space:
    """The space of some tables.

    Args:
        frames: tables whose levels are known ones.
        columns: names, and whether each is numeric.
        ranges: smallest and largest value of each numeric column.
    """
    numeric = tuple(c for c, number in columns if number)
    categorical = tuple(c for c, number in columns if not number)
    width = {c: ranges[c][1] - ranges[c][0] for c in numeric}
    levels = []
    for c in categorical:
        seen: set[str] = set()
        for frame in frames:
            seen |= set(frame[c].dropna().unique())
        levels.append(tuple(sorted(seen)))
    return Space(
        numeric, categorical, tuple(ranges[c][0] for c in numeric),
        tuple(width[c] if width[c] > 0 else 1.0 for c in numeric), tuple(levels),
    )  # fmt: skip


class Index:
    """Points that can be asked for the nearest of them.

    One of the two sides, the points or those that ask, must hold known levels only.
    """

    def __init__(self, of: Space, points: Points) -> None:
        self._space, self._points = of, points
        self._dimensions = 2 * len(of.numeric) + sum(len(levels) + 1 for levels in of.levels) + 1
        self._tree: Any = None
        if self._dimensions <= MOST_DIMENSIONS and len(points):
            from scipy.spatial import cKDTree

            self._tree = cKDTree(self._flat(points))

    def nearest(self, asked: Points, k: int = 1) -> tuple[Floats, Whole]:
        """Distances (mean over columns, ascending) and positions of the k nearest points (rows x k).

        Where there are fewer than k points, distances are infinite and positions the number of points.
        """
        if not len(self._points) or not len(asked):
            return np.full((len(asked), k), np.inf), np.full((len(asked), k), len(self._points))
        if self._tree is not None:
            distance, at = self._tree.query(self._flat(asked), k=list(range(1, k + 1)), p=1)
            return np.asarray(distance) / self._space.size, np.asarray(at, dtype=np.int64)
        parts = [self._pairs(asked.take(np.arange(i, min(i + BLOCK, len(asked)))), k) for i in range(0, len(asked), BLOCK)]
        return np.vstack([d for d, _ in parts]), np.vstack([a for _, a in parts])

    def _flat(self, points: Points) -> Floats:
        """L1 coordinates: numbers (a missing one in the middle) with an indicator, levels at 1/2, unknown levels."""
        missing = np.isnan(points.numbers)
        parts = [np.where(missing, 0.5, points.numbers), 0.5 * missing]
        for i, levels in enumerate(self._space.levels):
            shown = np.zeros((len(points), len(levels) + 1))
            known = points.codes[:, i] >= 0
            shown[np.flatnonzero(known), points.codes[known, i]] = 0.5
            parts.append(shown)
        unknown = (points.codes < 0).sum(axis=1, keepdims=True)
        return np.hstack([*parts, 0.5 * unknown])

    def _pairs(self, asked: Points, k: int) -> tuple[Floats, Whole]:
        """All pairs with a block of points at a time; exact, for columns with very many levels."""
        best, at = np.full((len(asked), k), np.inf), np.full((len(asked), k), len(self._points), dtype=np.int64)
        for start in range(0, len(self._points), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(self._points)))
            distance = distances(asked, self._points.take(rows))
            both = np.hstack([best, distance])
            places = np.hstack([at, np.broadcast_to(rows, distance.shape)])
            order = np.argsort(both, axis=1, kind="stable")[:, :k]
            best, at = np.take_along_axis(both, order, 1), np.take_along_axis(places, order, 1)
        return best, at


def distances(a: Points, b: Points) -> Floats:
    """All distances between two sets of points (rows of a x rows of b)."""
    from scipy.spatial.distance import cdist

    total = np.zeros((len(a), len(b)))
    if a.numbers.shape[1]:
        missing = [np.isnan(p.numbers) for p in (a, b)]
        filled = [np.where(m, 0.5, p.numbers) for m, p in zip(missing, (a, b), strict=True)]
        total += cdist(*filled, "cityblock") + 0.5 * cdist(missing[0] * 1.0, missing[1] * 1.0, "cityblock")
    if a.codes.shape[1]:
        # an unknown level differs also from an unknown one
        one, other = (np.where(p.codes < 0, -1 - i, p.codes) for i, p in enumerate((a, b)))
        total += a.codes.shape[1] * cdist(one, other, "hamming")
    return np.asarray(total / (a.numbers.shape[1] + a.codes.shape[1]))


def ask(frame: Any, keep: Sequence[str], of: Space, points: Points, k: int = 1, tasks: int = 0) -> Any:
    """A Spark frame's rows with their nearest points: `keep`, `distance` and `at` (arrays of k).

    Every task builds the index for itself: what travels is the encoded points. Nothing is brought to the driver.

    Args:
        frame: Spark frame with the space's columns.
        keep: further columns of the result.
        of: the space.
        points: what is searched, of known levels only.
        k: neighbours.
        tasks: partitions to ask in; as they are, when 0.
    """
    schema = ", ".join([*(f"`{c}` {frame.schema[c].dataType.simpleString()}" for c in keep),
                        "distance array<double>", "at array<bigint>"])  # fmt: skip

    def search(batches: Iterator[pd.DataFrame]) -> Iterable[pd.DataFrame]:
        index = None
        for batch in batches:
            index = index or Index(of, points)
            distance, at = index.nearest(of.encode(batch), k)
            yield batch[list(keep)].assign(distance=list(distance), at=list(at))

    wanted = frame.select(*keep, *(c for c in of.columns if c not in keep))
    return (wanted.repartition(tasks) if tasks else wanted).mapInPandas(search, schema)


def among(frame: Any, of: Space, asked: Points, tasks: int) -> Floats:
    """For each asked point the distance to the nearest row of a Spark frame; infinite where the frame is empty.

    Every task searches its own rows, so that none of them reaches the driver; the smallest distances do.

    Args:
        frame: Spark frame with the space's columns, searched.
        of: the space.
        asked: points of known levels only.
        tasks: partitions of the frame.
    """
    from pyspark.sql import functions as F

    def search(batches: Iterator[pd.DataFrame]) -> Iterable[pd.DataFrame]:
        parts = [of.encode(batch) for batch in batches if len(batch)]
        if parts:
            own = Points(np.vstack([p.numbers for p in parts]), np.vstack([p.codes for p in parts]))
            distance, _ = Index(of, own).nearest(asked)
            yield pd.DataFrame({"row": np.arange(len(asked)), "distance": distance[:, 0]})

    found = frame.select(*of.columns).repartition(tasks).mapInPandas(search, "row bigint, distance double")
    least = found.groupBy("row").agg(F.min("distance").alias("distance")).toPandas()
    result = np.full(len(asked), np.inf)
    result[least["row"].to_numpy(dtype=np.int64)] = least["distance"].to_numpy(dtype=float)
    return result
