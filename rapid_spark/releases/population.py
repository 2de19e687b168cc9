"""Who is counted: the declared number of units, the domains as they are recorded, and a key where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from rapid_spark.config import ConfigError, suggest
from rapid_spark.io import quoted

from .settings import ReleaseConfig

CONTENT, NUMBER = "_content", "_occurrence"


def declared_domains(config: ReleaseConfig, columns: Sequence[str]) -> dict[str, Any]:
    """The settings of the columns' domains, for the ledger's parameters."""
    return {c: config.domains[c].model_dump(mode="json", exclude_defaults=True) for c in dict.fromkeys(columns)}


def number_of_units(frame: Any, person: Sequence[str]) -> int:
    """Persons with a key, or records where no key is named. To be known under `replace` only, where it is public."""
    check_columns(frame, person)
    if person:
        frame = frame.select(*[F.col(quoted(c)) for c in person]).dropna().distinct()
    return int(frame.count())


def check_number(frame: Any, config: ReleaseConfig) -> None:
    """Hold n_declared against the table, which `replace` allows, as there the number is public.

    Raises:
        ConfigError: they differ.
    """
    counted = number_of_units(frame, config.columns.person)
    if counted != config.n_declared:
        raise ConfigError(
            f"n_declared is {config.n_declared:,}, and the table has {counted:,} {config.unit}s; under replace their number "
            "is public and must be right"
        )


def check_columns(frame: Any, columns: Sequence[str]) -> None:
    """Raise ConfigError, with near misses, for columns that the table does not have."""
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        raise ConfigError("\n".join(f"no column {c!r} in the table.{suggest(c, frame.columns)}" for c in missing))


def with_own_key(frame: Any, columns: Sequence[str]) -> tuple[Any, list[str]]:
    """A key for records that have none: a hash of their content and the number of the occurrence among its equals.

    One record more or less adds or takes one occurrence number and leaves every other record its key, so that nobody
    moves to another part. Line numbers would not do: all lines after a removed one change theirs.

    Args:
        frame: the records.
        columns: whose content counts.

    Returns:
        The frame with two columns more, and their names.
    """
    check_columns(frame, columns)
    cells = [F.coalesce(F.col(quoted(c)).cast("string"), F.lit("\0")) for c in columns]
    hashed = frame.withColumn(CONTENT, F.sha2(F.to_json(F.struct(*[v.alias(f"c{i}") for i, v in enumerate(cells)])), 256))
    order = Window.partitionBy(CONTENT).orderBy(F.lit(0))  # equal records: it does not matter which is which
    return hashed.withColumn(NUMBER, F.row_number().over(order).cast("string")), [CONTENT, NUMBER]
