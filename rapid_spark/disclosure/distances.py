"""Distances from the release to real people: dcr_median and dcr_holdout_ratio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .. import nearest
from ..shared_columns import SharedTables
from .measures import Measure, measure

ROWS_PER_TASK = 50_000


def sample(frame: DataFrame, columns: Sequence[str], n: int, most: int, seed: int, key: str | None = None) -> DataFrame:
    """The rows, or `most` of them chosen by a seeded hash of their content: the same for any order of rows and partitions.

    Args:
        frame: rows.
        columns: that make the content.
        n: how many there are.
        most: how many are wanted.
        seed: of the choice.
        key: a column that tells equal rows apart; without it equal rows are taken in any order, which changes nothing.
    """
    if n <= most:
        return frame
    order = F.xxhash64(F.lit(seed), F.to_json(F.struct(*columns), {"ignoreNullFields": "false"}), *([key] if key else []))
    return frame.orderBy(order, *columns).limit(most)


def ranges(frames: Sequence[DataFrame], columns: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of numeric columns over all frames; (0, 0) where there is none."""
    if not columns:
        return {}
    ends = [end(c).alias(f"{name}{i}") for i, c in enumerate(columns) for name, end in (("l", F.min), ("h", F.max))]
    found = [f.agg(*ends).toPandas().iloc[0] for f in frames]
    result = {}
    for i, c in enumerate(columns):
        low = [float(row[f"l{i}"]) for row in found if not pd.isna(row[f"l{i}"])]
        high = [float(row[f"h{i}"]) for row in found if not pd.isna(row[f"h{i}"])]
        result[c] = (min(low), max(high)) if low else (0.0, 0.0)
    return result


def space_of(
    tables: SharedTables, frames: Sequence[DataFrame], known: Sequence[pd.DataFrame], columns: Sequence[str]
) -> nearest.Space:
    """The space of some of the shared columns.

    Args:
        tables: with the columns.
        frames: tables whose ranges count.
        known: tables, on the driver, whose levels are known.
        columns: columns of the frames.
    """
    shared = tables.of(*columns)
    numeric = [s.column for s in shared if s.numeric]
    return nearest.space(known, [(s.column, s.numeric) for s in shared], ranges(frames, numeric))


def of_release(
    tables: SharedTables, release: DataFrame, most: int, seed: int, about: dict[str, Any], cores: int = 2
) -> list[Measure]:
    """dcr_median and dcr_holdout_ratio of one replicate.

    Args:
        tables: original and holdout.
        release: the replicate.
        most: release records that ask, a stated sample above it.
        seed: of the samples.
        about: replicate.
        cores: tasks at once.
    """
    columns = [s.column for s in tables.columns]
    n_original, n_release = tables.original.count(), release.count()
    asked = sample(release, columns, n_release, most, seed).select(*columns).toPandas()
    frames = [tables.original, release, *([tables.holdout] if tables.holdout is not None else [])]
    space = space_of(tables, frames, [asked], columns)
    points = space.encode(asked)

    def least(frame: DataFrame, n: int) -> nearest.Floats:
        return nearest.among(frame, space, points, max(cores, n // ROWS_PER_TASK))

    whole = least(tables.original, n_original)
    found = [measure("dcr_median", float(np.median(whole)), len(points), **about)]
    if tables.holdout is None:
        why = "there is no holdout: name people who were not used to make the release by --holdout"
        return [*found, measure("dcr_holdout_ratio", None, None, why, "not_evaluated", **about)]
    n_holdout = tables.holdout.count()
    size = min(n_original, n_holdout)
    own = whole if n_original == size else least(sample(tables.original, columns, n_original, size, seed), size)
    other = least(sample(tables.holdout, columns, n_holdout, size, seed + 1), size)
    nearer = np.mean(own < other - TINY) + np.mean(np.abs(own - other) <= TINY) / 2
    return [*found, measure("dcr_holdout_ratio", float(nearer), len(points), **about)]


TINY = 1e-9  # distances that differ by less are a tie: they are sums in another order
