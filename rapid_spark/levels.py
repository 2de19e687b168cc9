"""Quasi-identifiers as levels, and scored rows as counts by pattern of levels: the Spark side of the drivers of risk.

Numeric quasi-identifiers are cut at quantiles of the original, rounded so that no bound is a person's value; a missing
value is the level `missing`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from .attribution import OTHER
from .kept import hold, let_go
from .risk import MISSING_LABEL

MAX_LEVELS = 200  # of one quasi-identifier; the rarest beyond are taken together
MAX_PATTERNS = 200_000  # patterns of levels brought to the driver
DIGITS = 3  # of a numeric value's distance from the lowest one, when quantiles are sought


@dataclass(frozen=True)
class Levels:
    """The levels of one quasi-identifier.

    Attributes:
        name: quasi-identifier.
        column: its column.
        labels: of the levels, in their order.
        cuts: upper bounds (inclusive) of all bins but the last; None for a categorical one.
        pooled: whether there are further levels, taken together as OTHER.
    """

    name: str
    column: str
    labels: tuple[str, ...]
    cuts: tuple[float, ...] | None = None
    pooled: bool = False

    def label(self) -> Column:
        """The label of a row's level."""
        column = F.col(self.column)
        if self.cuts is None:
            text = F.coalesce(column.cast("string"), F.lit(MISSING_LABEL))
            known = [label for label in self.labels if label != OTHER]
            return F.when(text.isin(known), text).otherwise(F.lit(OTHER)) if self.pooled else text
        names = bin_labels(self.cuts)
        found = F.when(column.isNull(), F.lit(MISSING_LABEL))
        for cut, name in zip(self.cuts, names[:-1], strict=True):
            found = found.when(column <= F.lit(cut), F.lit(name))
        return found.otherwise(F.lit(names[-1]))


def bin_labels(cuts: Sequence[float]) -> tuple[str, ...]:
    """Ranges in words: 'up to 28', 'over 28 to 37', 'over 37'; 'all values' without a cut."""
    if not cuts:
        return ("all values",)
    text = [f"{cut:.12g}" for cut in cuts]
    between = [f"over {low} to {high}" for low, high in itertools.pairwise(text)]
    return (f"up to {text[0]}", *between, f"over {text[-1]}")


def find_levels(frame: DataFrame, columns: Mapping[str, str], bins: int, min_cell_count: int) -> dict[str, Levels]:
    """Levels of the quasi-identifiers; at most three Spark jobs for all of them.

    Args:
        frame: rows of the original with their count `n`.
        columns: quasi-identifier to column; numeric columns are binned, all others taken as text.
        bins: quantile bins of a numeric one (fewer where values tie).
        min_cell_count: of more than MAX_LEVELS levels, only such with as many records stand alone.
    """
    numeric = {q: c for q, c in columns.items() if isinstance(frame.schema[c].dataType, NumericType)}
    found: dict[str, Levels] = {}
    for name, (values, counts, missing) in _numeric_values(frame, numeric).items():
        cuts = quantile_cuts(values, counts, bins)
        labels = (*(bin_labels(cuts) if len(values) else ()), *((MISSING_LABEL,) if missing else ()))
        found[name] = Levels(name, columns[name], labels, cuts)
    texts = {q: c for q, c in columns.items() if q not in numeric}
    for name, sizes in _frequent_levels(frame, texts).items():
        if len(sizes) <= MAX_LEVELS:
            found[name] = Levels(name, columns[name], tuple(sorted(sizes.index)))
        else:
            kept = sorted(sizes.index[: MAX_LEVELS - 1][sizes.to_numpy()[: MAX_LEVELS - 1] >= min_cell_count])
            found[name] = Levels(name, columns[name], (*kept, OTHER), pooled=True)
    return {name: found[name] for name in columns}


def _numeric_values(
    frame: DataFrame, columns: Mapping[str, str]
) -> dict[str, tuple[np.ndarray, np.ndarray, bool]]:
    """Per quasi-identifier: values to DIGITS digits from the lowest one, ascending, their counts, whether any is null.

    Exact counts of rounded values do not depend on the order of the rows, as a sketch of quantiles would.
    """
    if not columns:
        return {}
    lowest = frame.agg(*(F.min(c).cast("double").alias(f"m{i}") for i, c in enumerate(columns.values()))).toPandas()
    structs = []
    for i, c in enumerate(columns.values()):
        low = lowest[f"m{i}"].iloc[0]
        distance = F.col(c).cast("double") - F.lit(0.0 if pd.isna(low) else float(low))
        power = F.when(distance > 0, F.floor(F.log10(distance)) - (DIGITS - 1)).otherwise(0).cast("int")
        digits = F.round(distance * F.pow(F.lit(10.0), -power))
        structs.append(F.struct(F.lit(i).alias("q"), power.alias("power"), digits.alias("digits")))
    counted = (
        frame.select("n", F.inline(F.array(*structs))).groupBy("q", "power", "digits").agg(F.sum("n").alias("n"))
        .toPandas()
    )
    found = {}
    for i, name in enumerate(columns):
        mine = counted[counted["q"] == i]
        known = mine[mine["digits"].notna()]
        values = np.array([
            float(d) * 10.0 ** int(p) if p >= 0 else float(d) / 10.0 ** -int(p)
            for d, p in zip(known["digits"], known["power"], strict=True)
        ])
        low = lowest[f"m{i}"].iloc[0]
        merged = pd.Series(known["n"].to_numpy(), index=values + (0.0 if pd.isna(low) else float(low)), dtype="int64")
        merged = merged.groupby(level=0).sum().sort_index()
        found[name] = merged.index.to_numpy(dtype=float), merged.to_numpy(), len(known) < len(mine)
    return found


def quantile_cuts(values: np.ndarray, counts: np.ndarray, bins: int) -> tuple[float, ...]:
    """Upper bounds of all quantile bins but the last.

    A bound is rounded to a tenth of the order of magnitude of the distance to its neighbours: no person's exact value
    shows in it, small whole numbers stay what they are, and it never reaches a neighbour.

    Args:
        values: ascending.
        counts: records of each.
        bins: as many as ties allow.
    """
    if len(values) < 2:
        return ()
    cumulated = np.cumsum(counts)
    at = np.searchsorted(cumulated, cumulated[-1] * np.arange(1, bins) / bins, side="left")
    exact = np.unique(values[at[at < len(values) - 1]])
    if not len(exact):  # more than one bin's share is at the highest value
        return (_rounded(float(values[-2]), float(values[-1] - values[-2])),)
    gaps = np.diff(np.concatenate([values[:1], exact, values[-1:]]))
    gaps = np.where(gaps > 0, gaps, np.inf)
    return tuple(sorted({
        _rounded(float(cut), float(min(before, after)))
        for cut, before, after in zip(exact, gaps[:-1], gaps[1:], strict=True)
    }))


def _rounded(value: float, gap: float) -> float:
    return round(value, 1 - math.floor(math.log10(gap)))


def _frequent_levels(frame: DataFrame, columns: Mapping[str, str]) -> dict[str, pd.Series]:
    """Per quasi-identifier the records by label, the most frequent first, MAX_LEVELS + 1 at most."""
    if not columns:
        return {}
    structs = [
        F.struct(F.lit(i).alias("q"), F.coalesce(F.col(c).cast("string"), F.lit(MISSING_LABEL)).alias("label"))
        for i, c in enumerate(columns.values())
    ]
    counted = frame.select("n", F.inline(F.array(*structs))).groupBy("q", "label").agg(F.sum("n").alias("n"))
    rank = F.row_number().over(Window.partitionBy("q").orderBy(F.desc("n"), "label"))
    found = counted.withColumn("rank", rank).where(F.col("rank") <= MAX_LEVELS + 1).toPandas().sort_values(["q", "rank"])
    return {
        name: pd.Series(mine["n"].to_numpy(), index=mine["label"].to_numpy(dtype=object))
        for i, name in enumerate(columns)
        for mine in [found[found["q"] == i]]
    }


@dataclass(frozen=True)
class Counts:
    """Counts of one quasi-identifier set, for several combinations.

    Attributes:
        levels: the quasi-identifiers, in order.
        patterns: one row per pattern: level numbers `l0`.., and per combination index `n0`.., `a0`.. (records with a
            defined outcome, and at risk). All patterns, or where they are more than MAX_PATTERNS the frequent ones.
        sample: the same of all patterns, or of a seeded sample of them, where `share` is below 1.
        share: of the patterns in `sample`.
        pairs: where not all patterns are here, the counts by level numbers `x`, `y` of columns `i` < `j`.
    """

    levels: tuple[Levels, ...]
    patterns: pd.DataFrame
    sample: pd.DataFrame
    share: float = 1.0
    pairs: pd.DataFrame | None = None

    def cross(self, i: int, j: int, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Records, and records at risk, of combination `index` by the levels of columns i < j."""
        shape = len(self.levels[i].labels), len(self.levels[j].labels)
        if self.pairs is None:
            rows, x, y = self.patterns, self.patterns[f"l{i}"], self.patterns[f"l{j}"]
        else:
            rows = self.pairs[(self.pairs["i"] == i) & (self.pairs["j"] == j)]
            x, y = rows["x"], rows["y"]
        cell = x.to_numpy(dtype=np.int64) * shape[1] + y.to_numpy(dtype=np.int64)
        return (_summed(cell, rows[f"n{index}"], shape), _summed(cell, rows[f"a{index}"], shape))

    def single(self, i: int, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Records, and records at risk, of combination `index` by the levels of column i."""
        if self.pairs is None:
            size = len(self.levels[i].labels)
            cell = self.patterns[f"l{i}"].to_numpy(dtype=np.int64)
            return (_summed(cell, self.patterns[f"n{index}"], (size,)), _summed(cell, self.patterns[f"a{index}"], (size,)))
        n, hits = self.cross(0, max(i, 1), index)
        axis = 1 if i == 0 else 0
        return n.sum(axis=axis), hits.sum(axis=axis)


def _summed(cell: np.ndarray, counts: pd.Series, shape: tuple[int, ...]) -> np.ndarray:
    total = np.bincount(cell, weights=counts.to_numpy(dtype=float), minlength=int(np.prod(shape)))
    return total.round().astype(np.int64).reshape(shape)


def count_patterns(
    frame: DataFrame, levels: Sequence[Levels], flags: Mapping[int, Column], min_cell_count: int, seed: int
) -> Counts:
    """Reduce scored rows to counts by pattern of levels: one pass over the rows for all combinations.

    Args:
        frame: scored rows with their count `n`.
        levels: the quasi-identifiers of the set.
        flags: at_risk (null where undefined) per combination index.
        min_cell_count: of more than MAX_PATTERNS patterns, those with as many records are listed.
        seed: of the sample of patterns, where they are too many.
    """
    names = [f"l{d}" for d in range(len(levels))]
    flat = frame.select(
        "n", *(level.label().alias(name) for level, name in zip(levels, names, strict=True)),
        *(flag.alias(f"f{i}") for i, flag in flags.items()),
    )
    kept = hold(flat.groupBy(*names).agg(*sums(flags)))
    try:
        return _collected(kept, levels, names, list(flags), min_cell_count, seed)
    finally:
        let_go(kept)


def sums(indices: Iterable[int]) -> list[Column]:
    """`n0`.. (records with a defined outcome) and `a0`.. (at risk) of flag columns `f0`.., weighted by `n`."""
    return [
        F.sum(F.when(where, F.col("n")).otherwise(0)).alias(f"{kind}{i}")
        for i in indices
        for kind, where in (("n", F.col(f"f{i}").isNotNull()), ("a", F.col(f"f{i}")))
    ]


def _collected(
    kept: DataFrame, levels: Sequence[Levels], names: list[str], indices: list[int], min_cell_count: int, seed: int
) -> Counts:
    n_patterns = kept.count()
    if n_patterns <= MAX_PATTERNS:
        patterns = numbered(kept.toPandas(), dict(zip(names, levels, strict=True)))
        return Counts(tuple(levels), patterns, patterns)
    largest = F.greatest(*(F.col(f"n{i}") for i in indices), F.lit(0))
    frequent = kept.where(largest >= min_cell_count).orderBy(largest.desc(), *names).limit(MAX_PATTERNS)
    one_in = math.ceil(n_patterns / MAX_PATTERNS)
    sample = kept.where(F.pmod(F.xxhash64(F.lit(seed), *names), F.lit(one_in)) == 0)
    structs = [
        F.struct(F.lit(i).alias("i"), F.lit(j).alias("j"), F.col(names[i]).alias("x"), F.col(names[j]).alias("y"))
        for i, j in itertools.combinations(range(len(names)), 2)
    ]
    figures = [f"{kind}{i}" for i in indices for kind in "na"]
    pairs = (
        kept.select(*figures, F.inline(F.array(*structs))).groupBy("i", "j", "x", "y")
        .agg(*(F.sum(f).alias(f) for f in figures)).toPandas()
    )
    by_column = dict(zip(names, levels, strict=True))
    parts = [
        numbered(pairs[(pairs["i"] == i) & (pairs["j"] == j)], {"x": levels[i], "y": levels[j]})
        for i, j in itertools.combinations(range(len(names)), 2)
    ]
    return Counts(tuple(levels), numbered(frequent.toPandas(), by_column), numbered(sample.toPandas(), by_column),
                  1.0 / one_in, pd.concat(parts, ignore_index=True))


def numbered(frame: pd.DataFrame, columns: Mapping[str, Levels]) -> pd.DataFrame:
    """Labels replaced by level numbers, rows in their order."""
    numbers = {
        column: pd.Index(levels.labels, dtype=object).get_indexer(pd.Index(frame[column].to_numpy(dtype=object)))
        for column, levels in columns.items()
    }
    return frame.assign(**numbers).sort_values(list(columns), ignore_index=True)
