"""Counts by stratum of the common quasi-identifiers, for standardised rates; they stay in memory and are never stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rapid_spark.io import Source
from rapid_spark.pipeline import Found, Scored, State, flags

MOST_STRATA = 5_000
MISSING = "missing"
KEYS = ("qi_set", "sensitive_attribute", "measure", "attacker", "replicate")


def quartiles(source: Source, columns: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Cut points of the columns that hold numbers: the quartiles of this table. Jobs: one."""
    numbers = {c: source.column(c).try_cast("double") for c in columns}
    found = source.frame.agg(
        *(F.percentile_approx(value, [0.25, 0.5, 0.75]).alias(f"q{i}") for i, value in enumerate(numbers.values())),
        *(F.count(value).alias(f"n{i}") for i, value in enumerate(numbers.values())),
        *(F.count(source.column(c)).alias(f"all{i}") for i, c in enumerate(numbers)),
    ).first()
    cuts = {}
    for i, column in enumerate(numbers):
        # as many numbers as values: a column of codes with a few numbers among them is none of numbers
        if found is not None and found[f"n{i}"] and 2 * found[f"n{i}"] > found[f"all{i}"]:
            cuts[column] = tuple(sorted(set(map(float, found[f"q{i}"]))))
    return cuts


def count(
    state: State, scored: Scored, found: Found, by: Sequence[str], bins: Mapping[str, Sequence[float]]
) -> pd.DataFrame | None:
    """Records and hits of every combination, by stratum. Jobs: one.

    Args:
        state, scored, found: of the evaluation, while its frames are held.
        by: quasi-identifiers by name.
        bins: cut points of the numeric ones; others are taken by their levels.

    Returns:
        Columns `stratum`, those of KEYS, `n` (defined outcomes) and `hits`; None where there are too many strata, or a
        quasi-identifier is not among the usable ones.
    """
    columns = {q.name: q.column for q in state.aligned.quasi_identifiers}
    if any(name not in columns for name in by):
        return None
    known = flags(state, found)
    at_risk = {c.index: known[c.index] for _, c in state.reported if c.index in known}
    strata = {f"g{i}": _stratum(scored.records, columns[name], bins.get(name)) for i, name in enumerate(by)}
    sums = [
        part
        for i, flag in at_risk.items()
        for part in (F.count(flag).alias(f"n{i}"), F.sum(flag.cast("int")).alias(f"h{i}"))
    ]
    if not sums:
        return None
    grouped = scored.records.groupBy(*(value.alias(g) for g, value in strata.items())).agg(*sums)
    counted = grouped.limit(MOST_STRATA + 1).toPandas()
    if len(counted) > MOST_STRATA:
        return None
    name_of = [" | ".join(map(str, row)) for row in counted[list(strata)].itertuples(index=False, name=None)]
    parts = []
    for c in (c for _, c in state.reported if c.index in at_risk):
        figures = {"stratum": name_of, "n": counted[f"n{c.index}"], "hits": counted[f"h{c.index}"].fillna(0)}
        parts.append(pd.DataFrame(figures).assign(**{k: getattr(c, k) for k in KEYS}))
    return pd.concat(parts, ignore_index=True).astype({"n": int, "hits": int}) if parts else None


def _stratum(frame: DataFrame, column: str, cuts: Sequence[float] | None) -> Column:
    value = F.col(column)
    if cuts is None or frame.schema[column].dataType.typeName() not in ("double", "float"):
        return F.coalesce(value.cast("string"), F.lit(MISSING))
    place = sum((value >= F.lit(float(cut))).cast("int") for cut in cuts)
    return F.coalesce(F.when(F.isnan(value), None).otherwise(place).cast("string"), F.lit(MISSING))  # type: ignore[union-attr]


def by_release(counts: pd.DataFrame, releases: Mapping[int, str]) -> dict[str, pd.DataFrame]:
    """Counts by release, where copies of one pass stand for releases."""
    found = {}
    for replicate, release in releases.items():
        found[release] = counts[counts["replicate"] == replicate].assign(replicate=1)
    return found


def dimensions(by: Sequence[str] | None, sets: Mapping[str, Sequence[str]], most: int = 4) -> tuple[str, ...]:
    """Quasi-identifiers to standardise over: those named, or all where they are few; none where they are many."""
    if by is not None:
        return tuple(by)
    every = sorted({c for columns in sets.values() for c in columns})
    return tuple(every) if len(every) <= most else ()


