"""A registry's own column names and codes, brought to the common vocabulary before anything else looks at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, DoubleType, FloatType

from rapid_spark.config import ConfigError, suggest
from rapid_spark.io import Source, quoted

from .settings import Vocabulary


def harmonised(source: Source, vocabulary: Vocabulary, partial: bool = False) -> Source:
    """A table in common names and levels; a code without a common level stays as it is. Jobs: none.

    Args:
        source: the table as it was read.
        vocabulary: what its names and codes become.
        partial: columns may be missing, as the key is in a release.

    Raises:
        ConfigError: a column to rename is not there, its new name is taken, or levels are given for no column.
    """
    if not vocabulary.columns and not vocabulary.levels:
        return source
    names = {c: vocabulary.columns.get(c, c) for c in source.columns}
    _check(source, vocabulary, names, partial)
    number = source.number

    def renamed(frame: DataFrame) -> DataFrame:
        own = set(source.columns)
        columns = [
            _coded(frame, c, vocabulary.levels.get(names[c], {})).alias(names[c]) if c in own else F.col(quoted(c))
            for c in frame.columns
        ]
        return frame.select(*columns)

    return replace(
        source,
        frame=renamed(source.frame),
        columns=tuple(names[c] for c in source.columns),
        replicate_column=None if source.replicate_column is None else names[source.replicate_column],
        number=None if number is None else lambda: renamed(number()),
    )


def _check(source: Source, vocabulary: Vocabulary, names: Mapping[str, str], partial: bool) -> None:
    faults = []
    if not partial:
        for own in vocabulary.columns:
            if own not in source.columns:
                faults.append(f"vocabulary.columns: {source.name} has no column {own!r}.{suggest(own, source.columns)}")
    technical = {c for c in (source.row_number, source.corrupt) if c}
    common = list(names.values())
    for own, name in names.items():
        if own != name and (common.count(name) > 1 or name in technical):
            faults.append(f"vocabulary.columns: {own!r} cannot become {name!r}, {source.name} has such a column already")
    for name in vocabulary.levels:
        if name not in common and not partial:
            faults.append(f"vocabulary.levels: {source.name} has no column {name!r}.{suggest(name, common)}")
    if faults:
        raise ConfigError("\n".join(faults))


def _coded(frame: DataFrame, column: str, levels: Mapping[str, str]) -> Column:
    """A column with its codes replaced; one without levels is untouched, one with levels becomes text."""
    value = F.col(quoted(column))
    if not levels:
        return value
    kind = frame.schema[column].dataType
    text = value.cast("string")
    if isinstance(kind, (DoubleType, FloatType, DecimalType)):  # the code 1 may be stored as 1.0
        whole = (value == F.floor(value)) & (F.abs(value) < F.lit(1e15))
        text = F.when(whole, value.cast("bigint").cast("string")).otherwise(text)
    pairs = F.create_map(*(F.lit(part) for pair in levels.items() for part in pair))
    return F.coalesce(F.try_element_at(pairs, F.trim(text)), text)
