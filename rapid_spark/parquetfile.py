"""What must be known of Parquet files before Spark reads them: that they are whole, and types that Spark refuses.

pandas writes times to the nanosecond, which Spark does not read. Given a schema that calls them whole numbers it does,
and they are turned into times to the microsecond afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type

from .config import ConfigError
from .csvfile import check_names

UNSIGNED = {
    pa.uint8(): T.ShortType(), pa.uint16(): T.IntegerType(), pa.uint32(): T.LongType(), pa.uint64(): T.DecimalType(20, 0),
}  # fmt: skip


@dataclass(frozen=True)
class Nanoseconds:
    """How to read files with times to the nanosecond.

    Attributes:
        schema: for Spark's reader; those times are whole numbers in it.
        zoned: by their columns' names, whether they are instants (True) or times on a clock on the wall.
    """

    schema: T.StructType
    zoned: dict[str, bool]

    def right(self, column: Column, name: str) -> Column:
        """A column as it was meant; others than those times stay as they are."""
        if name not in self.zoned:
            return column
        micros = F.floor(column / F.lit(1000).cast("decimal(20,0)")).cast("bigint")
        if self.zoned[name]:
            return F.timestamp_micros(micros)
        start = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        return F.timestamp_add("MICROSECOND", micros, start)


def look(files: Sequence[Path], name: str) -> Nanoseconds | None:
    """Check the first file, and find out whether times to the nanosecond are in them.

    Raises:
        ConfigError: a file is damaged or no Parquet, or has columns of the same name.
    """
    first = _schema(files[0], name)
    check_names(first.names, name)
    if not any(_is_nanosecond(f.type) for f in first):
        return None
    try:
        whole = first if len(files) == 1 else pa.unify_schemas([_schema(f, name) for f in files])
    except pa.ArrowException:
        raise ConfigError(f"{name}: the files of the folder differ in their columns' types") from None
    fields = [T.StructField(f.name, _spark_type(f, name)) for f in whole]
    zoned = {f.name: f.type.tz is not None for f in whole if _is_nanosecond(f.type)}
    return Nanoseconds(T.StructType(fields), zoned)


def _schema(file: Path, name: str) -> pa.Schema:
    try:
        return pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        kind = "damaged, or not Parquet" if isinstance(error, pa.ArrowException) else error.strerror or "no access"
        raise ConfigError(f"{name}: {file.name} cannot be read: {kind}") from None


def _is_nanosecond(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.unit == "ns"


def _spark_type(field: pa.Field, name: str) -> T.DataType:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if _is_nanosecond(kind):
        return T.LongType()
    if kind in UNSIGNED:
        return UNSIGNED[kind]
    try:
        return from_arrow_type(kind, prefer_timestamp_ntz=True)
    except Exception:  # whatever it is, Spark has no type for it
        raise ConfigError(f"{name}: column {field.name!r} is stored as {kind}, which Spark does not read") from None
