"""Read a table of people: CSV, Parquet, Delta, a statistical file, a table of the catalog, a frame. The only reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from . import parquetfile, statfile
from .config import ConfigError, Table, suggest
from .csvfile import Encoding, check_names, encoding_of, header_faults, look, name_columns
from .frames import arrow_table
from .keyed import with_pads
from .places import Location, location_of

ENDINGS = {
    ".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet", ".pq": "parquet", **{f".{k}": k for k in statfile.READERS},
}  # fmt: skip
FORMATS_KNOWN = f"CSV (.csv, .csv.gz), Parquet (.parquet), Delta (a folder with _delta_log), {statfile.SPOKEN}"
SPREAD_FROM = 2**23  # bytes; a file that cannot be split is dealt out to all cores from this size on
# Names of Spark's errors and Java's exceptions that say: the file is at fault.
UNREADABLE = re.compile(
    r"FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER|ParquetDecodingException|is not a Parquet file|EOFException|"
    r"ZipException|FileNotFoundException|not a gzip|incorrect header check|CANNOT_MERGE_SCHEMAS|"
    r"UNABLE_TO_INFER_SCHEMA|PATH_NOT_FOUND|BlockMissingException|PARQUET_TYPE|DELTA_FILE_NOT_FOUND"
)


@dataclass(frozen=True)
class Source:
    """One table as it was found, nothing of it converted or dropped.

    Attributes:
        frame: all columns under their own names, and the technical ones named below. A CSV's are all strings.
        columns: names of the table's own columns.
        name: how messages and records speak of it.
        is_text: types are undecided (CSV).
        version: Delta version that is read.
        replicate_column: column that numbers the replicates.
        row_number: technical column with each row's number, where `numbered` or a pandas frame gave one.
        pads: technical columns with the padded keys of `keyed`.
        corrupt: technical column that is not null where a CSV record has more or fewer fields than the header.
        number: gives the frame with row numbers, where the rows have a fixed order; None elsewhere.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    name: str
    is_text: bool = False
    version: int | None = None
    replicate_column: str | None = None
    row_number: str | None = None
    corrupt: str | None = None
    number: Callable[[], DataFrame] | None = field(default=None, repr=False)
    pads: tuple[str, str] | None = None

    @property
    def line_numbers_possible(self) -> bool:
        """Whether rows can be told apart by their place: one single file, or a pandas frame."""
        return self.row_number is not None or self.number is not None

    def numbered(self) -> Source:
        """The same table with `row_number`: 1, 2, .. for the records of a file; 0, 1, .. for a pandas frame's rows.

        Runs no job. A CSV file is then read by one task, which makes the numbers the same each time.
        """
        if self.row_number is not None or self.number is None:
            return self
        return Source(
            self.number(), self.columns, self.name, self.is_text, self.version, self.replicate_column,
            technical("row_number", self.columns), self.corrupt,
        )  # fmt: skip

    def keyed(self, key: str) -> Source:
        """The same table with the padded keys from which `keyed.record_id` makes record ids. Runs no job."""
        names = technical("inner_pad", self.columns), technical("outer_pad", self.columns)
        return replace(self, frame=with_pads(self.frame.sparkSession, self.frame, names, key), pads=names)

    def column(self, name: str) -> Column:
        """The column of this name, whatever characters are in it."""
        return F.col(quoted(name))

    def check_records(self) -> None:
        """Refuse a CSV with records of more or fewer fields than its header. Jobs: one for a CSV, else none.

        Raises:
            ConfigError: with the number of such records.
        """
        if self.corrupt is None:
            return
        # Spark does not answer a query about this column alone.
        both = [F.count(self.column(c)).alias(f"n{i}") for i, c in enumerate((self.corrupt, self.columns[0]))]
        n = self.frame.agg(*both).collect()[0]["n0"]
        if n:
            raise ConfigError(f"{self.name}: {miscounted(n)} than the header: repair the file")


def miscounted(n: int) -> str:
    """How many records of a CSV do not have its header's fields, in words."""
    return f"{n:,} {'record has' if n == 1 else 'records have'} more or fewer fields"


def quoted(name: str) -> str:
    """A name in backticks, as Spark takes any name."""
    return "`" + name.replace("`", "``") + "`"


def read(spark: SparkSession, table: Table) -> Source:
    """Open a table. Jobs: none for CSV on a local disk; Spark's own look at Parquet footers and Delta logs.

    Raises:
        ConfigError: the place does not exist, is no table, cannot be read, or has duplicate columns.
    """
    if table.table is not None:
        source = _read_catalog(spark, table)
    else:
        location = location_of(str(table.path))
        kind = table.format or _format_of(location, table.name)
        _check_format(kind, location, table)
        reader = {"csv": _read_csv, "parquet": _read_parquet, "delta": _read_delta}.get(kind)
        source = reader(spark, table, location) if reader else _read_statistical(spark, table, location, kind)
    return source


def from_frame(spark: SparkSession, frame: Any, name: str = "frame") -> Source:
    """A pandas or Spark frame as a table. It is never altered; a pandas frame's rows are numbered by their position.

    Category, object, nullable and Arrow-backed columns of pandas give the same as plain ones; NaN, NA and None are
    null; column names that are no text (0, 1, ..) become text. Jobs: none.

    Raises:
        ConfigError: no such frame, or duplicate columns.
    """
    if isinstance(frame, DataFrame):
        check_names(frame.columns, name)
        return Source(frame, tuple(frame.columns), name)
    if not hasattr(frame, "iloc") and hasattr(frame, "to_pandas"):
        frame = frame.to_pandas()
    if not (hasattr(frame, "iloc") and hasattr(frame, "columns")):
        raise ConfigError(f"{name}: expected a pandas or Spark data frame, found a {type(frame).__name__}")
    columns = tuple(str(c) for c in frame.columns)
    check_names(columns, name)
    row_number = technical("row_number", columns)
    data = spark.createDataFrame(arrow_table(frame, columns, row_number))
    return Source(data, columns, name, row_number=row_number)


def fault_of(error: Exception, source: Source) -> ConfigError | None:
    """The user's fault behind an error that came up while a table was read; None if it is something else."""
    if isinstance(error, PySparkException) or type(error).__name__ == "Py4JJavaError":
        found = UNREADABLE.search(str(error))
        if found:
            return ConfigError(f"{source.name} cannot be read ({found.group()}): the file is damaged, or not what it is "
                               "named; copy or write it again")  # fmt: skip
    return None


def _format_of(location: Location, name: str) -> str:
    ending = re.search(r"(\.csv)?\.[^./\\]+$", location.given.lower())
    path = location.local
    if path is None or path.is_file():
        if ending and ending.group() in ENDINGS:
            return ENDINGS[ending.group()]
        raise ConfigError(f"{name}: the format cannot be told from the name. Known are {FORMATS_KNOWN}; set format:")
    _check_exists(path, name)
    if (path / "_delta_log").is_dir():
        return "delta"
    for kind, pattern in (("parquet", "*.parquet"), ("csv", "*.csv"), ("csv", "*.csv.gz")):
        if any(_visible(f, path) for f in path.rglob(pattern)):
            return kind
    raise ConfigError(f"{name}: the folder holds no table. Known are {FORMATS_KNOWN}")


def _check_format(kind: str, location: Location, table: Table) -> None:
    path = location.local
    if path is None:
        return
    _check_exists(path, table.name)
    is_delta = path.is_dir() and (path / "_delta_log").is_dir()
    if is_delta and kind != "delta":
        raise ConfigError(f"{table.name}: a Delta table; read as {kind} it would show removed rows: leave format out")
    if kind == "delta" and not is_delta:
        raise ConfigError(f"{table.name}: not a Delta table (there is no folder _delta_log in it)")
    if table.version is not None and kind != "delta":
        raise ConfigError(f"{table.name}: version is for Delta tables, this is {kind}")


def _check_exists(path: Path, name: str) -> None:
    if path.exists():
        return
    folder = path.parent
    if not folder.is_dir():
        raise ConfigError(f"{name}: no such file or folder; there is no folder {folder} either")
    here = [p.name for p in folder.iterdir()]
    raise ConfigError(f"{name}: no such file or folder.{suggest(path.name, here)}")


def _visible(file: Path, folder: Path) -> bool:
    return not any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)


def technical(name: str, columns: tuple[str, ...]) -> str:
    """A name for a column of ours that none of the table's has."""
    taken = {c.lower() for c in columns}
    while name in taken:
        name = f"_{name}"
    return name


def _read_csv(spark: SparkSession, table: Table, location: Location) -> Source:
    encoding = encoding_of(table.encoding)
    path = location.local
    files = _csv_files(path, table.name) if path else []
    if path:
        facts = look(files, table.delimiter, encoding)
        columns, multi_line, size = facts.columns, facts.multi_line, facts.size
    else:
        columns = _remote_header(spark, table, encoding, location)
        multi_line, size = True, SPREAD_FROM  # not looked through, so taken as files that must not be split
    paths = [Location(str(f), f).for_spark for f in files] or [location.given]
    corrupt = technical("corrupt_record", columns)

    def frame(unsplit: bool, row_number: str | None = None) -> DataFrame:
        # The fields are read by their place, under names that Spark cannot mistake for each other.
        places = [f"f{i}" for i in range(len(columns))]
        fields = [StructField(p, StringType()) for p in (*places, "corrupt")]
        data = (
            _csv_reader(spark, table, encoding)
            # Without pruning: otherwise a line's fields are counted only where every column is asked for.
            .options(header=True, multiLine=unsplit, mode="PERMISSIVE", columnNameOfCorruptRecord="corrupt",
                     columnPruning=False)
            .schema(StructType(fields))
            .csv(paths)
        )
        if row_number is not None:
            data = data.withColumn("row_number", F.monotonically_increasing_id() + 1)
        if size >= SPREAD_FROM and (unsplit or paths[0].lower().endswith(".gz")):
            data = data.repartition(_cores(spark))
        named = [_right(F.col(p), encoding).alias(c) for p, c in zip(places, columns, strict=True)]
        number = [F.col("row_number").alias(row_number)] if row_number is not None else []
        return data.select(*named, *number, F.col("corrupt").alias(corrupt))

    number = (lambda: frame(True, technical("row_number", columns))) if path and len(files) == 1 else None
    return Source(
        frame(multi_line), columns, table.name, is_text=True, replicate_column=table.replicate_column,
        corrupt=corrupt, number=number,
    )  # fmt: skip


def _csv_files(path: Path, name: str) -> list[Path]:
    if path.is_file():
        return [path]
    files = [f for f in path.rglob("*") if f.is_file() and f.name.lower().endswith((".csv", ".csv.gz"))]
    files = sorted(f for f in files if _visible(f, path))
    if not files:
        raise ConfigError(f"{name}: the folder holds no .csv or .csv.gz file")
    if any("=" in part for f in files for part in f.relative_to(path).parts[:-1]):
        raise ConfigError(f"{name}: the folder is split by a column (folders like column=value): write it as Parquet")
    return files


def _csv_reader(spark: SparkSession, table: Table, encoding: Encoding) -> Any:
    return spark.read.options(
        sep=table.delimiter, encoding=encoding.spark, quote='"', escape='"', nullValue="", emptyValue="",
        ignoreLeadingWhiteSpace=False, ignoreTrailingWhiteSpace=False, maxColumns=200_000,
    )  # fmt: skip


def _remote_header(spark: SparkSession, table: Table, encoding: Encoding, location: Location) -> tuple[str, ...]:
    try:
        rows = _csv_reader(spark, table, encoding).options(header=False).csv(location.given).limit(1).collect()
    except (AnalysisException, PySparkException) as error:
        raise ConfigError(f"{table.name} cannot be read ({error.getCondition() or type(error).__name__})") from None
    if not rows:
        raise ConfigError(f"{table.name}: the file is empty: expected a header line and one line per person")
    columns = name_columns("" if v is None else v for v in rows[0])
    columns = (columns[0].removeprefix("\ufeff"), *columns[1:])
    header_faults(columns, table.delimiter, table.name)
    return columns


def _right(column: Column, encoding: Encoding) -> Column:
    return F.translate(column, *encoding.translation) if encoding.translation else column


def _cores(spark: SparkSession) -> int:
    try:
        return max(1, min(64, int(spark.conf.get("spark.sql.shuffle.partitions") or 8)))
    except ValueError:  # 'auto'
        return 8


def _read_parquet(spark: SparkSession, table: Table, location: Location) -> Source:
    path = location.local
    files: list[Path] = []
    if path is not None:
        files = [path] if path.is_file() else sorted(f for f in path.rglob("*.parquet") if _visible(f, path))
        if not files:
            raise ConfigError(f"{table.name}: the folder holds no .parquet file")
    nanoseconds = parquetfile.look(files, table.name) if files else None
    try:
        reader = spark.read if nanoseconds is None else spark.read.schema(nanoseconds.schema)
        found = reader.option("mergeSchema", path is None or path.is_dir()).parquet(location.for_spark)
        columns = tuple(found.columns)
    except Exception as error:
        raise _unreadable(error, table.name) from None
    check_names(columns, table.name)
    row_number = technical("row_number", columns)

    def frame(*further: str) -> DataFrame:
        rows = found
        if further:
            rows = found.withColumn(row_number, found.metadataColumn("_metadata").getField("row_index") + 1)
        if nanoseconds is None:
            return rows
        return rows.select(*(nanoseconds.right(F.col(quoted(c)), c).alias(c) for c in (*columns, *further)))

    single = path is not None and path.is_file()
    return Source(
        frame(), columns, table.name, replicate_column=table.replicate_column,
        number=(lambda: frame(row_number)) if single else None,
    )  # fmt: skip


def _read_statistical(spark: SparkSession, table: Table, location: Location, kind: str) -> Source:
    if location.local is None:
        raise ConfigError(f"{table.name}: a file of format {kind} is read from this machine's file system: copy it there")
    encoding = table.encoding if "encoding" in table.model_fields_set else None
    found = from_frame(spark, statfile.read(location.local, kind, encoding, table.value_labels), table.name)
    row_number = str(found.row_number)
    # records of a file are numbered from 1, whatever its format
    frame = found.frame.withColumn(row_number, F.col(quoted(row_number)) + 1)
    return replace(found, frame=frame, replicate_column=table.replicate_column)


def _read_delta(spark: SparkSession, table: Table, location: Location) -> Source:
    path = str(location.local) if location.local else location.given
    try:
        version = table.version
        if version is None:
            version = _newest_version(spark, f"delta.{quoted(path)}")
        frame = spark.read.format("delta").option("versionAsOf", version).load(path)
        columns = tuple(frame.columns)
    except Exception as error:
        raise _unreadable(error, table.name, table.version) from None
    check_names(columns, table.name)
    return Source(frame, columns, table.name, version=version, replicate_column=table.replicate_column)


def _read_catalog(spark: SparkSession, table: Table) -> Source:
    parts = [p.strip("`").replace("``", "`") for p in re.findall(r"`(?:[^`]|``)+`|[^.`]+", str(table.table))]
    identifier = ".".join(quoted(p) for p in parts)
    if not parts or len(parts) > 3:
        raise ConfigError(f"{table.name}: expected [catalog.]schema.table")
    try:
        there = spark.catalog.tableExists(identifier)
    except Exception as error:
        raise _unreadable(error, table.name) from None
    if not there:
        raise ConfigError(f"no table {table.name} in the catalog.{_similar_tables(spark, parts)}")
    try:
        version = table.version if table.version is not None else _newest_version(spark, identifier)
    except Exception:  # a view, or a table that is not Delta: it has no versions
        version = None
    try:
        at = f" VERSION AS OF {version}" if version is not None else ""
        frame = spark.sql(f"SELECT * FROM {identifier}{at}")
        columns = tuple(frame.columns)
    except Exception as error:
        raise _unreadable(error, table.name, table.version) from None
    check_names(columns, table.name)
    return Source(frame, columns, table.name, version=version, replicate_column=table.replicate_column)


def _newest_version(spark: SparkSession, identifier: str) -> int:
    return int(spark.sql(f"DESCRIBE HISTORY {identifier} LIMIT 1").collect()[0]["version"])


def _similar_tables(spark: SparkSession, parts: list[str]) -> str:
    try:
        known = spark.catalog.listTables(".".join(quoted(p) for p in parts[:-1]) or None)
    except Exception:  # no such schema
        return f" There is no schema {'.'.join(parts[:-1])!r} either." if len(parts) > 1 else ""
    return suggest(parts[-1], [t.name for t in known])


def _unreadable(error: Exception, name: str, version: int | None = None) -> Exception:
    """ConfigError for what Spark could not open; its condition is named, its text never shown. Others pass as they are."""
    if not isinstance(error, PySparkException) and type(error).__name__ != "Py4JJavaError":
        return error
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    text = str(error)
    if "DATA_SOURCE_NOT_FOUND" in text or "Failed to find data source: delta" in text:
        return ConfigError(f"{name}: this Spark session cannot read Delta: start it with Delta's jars")
    if "COLUMN_ALREADY_EXISTS" in text:
        return ConfigError(f"{name}: two columns have the same name, or differ only in case. Rename them")
    known = re.search(r"DELTA_[A-Z_]+", text) or UNREADABLE.search(text)
    reason = condition or (known.group() if known else type(error).__name__)
    if version is not None:
        return ConfigError(f"{name}: version {version} cannot be read ({reason}): leave version out for the newest")
    return ConfigError(f"{name} cannot be read ({reason}): the file is damaged, or not what it is named")
