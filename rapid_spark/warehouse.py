"""Where a store's tables are: a directory or a schema of the catalog; making, opening and extending it."""

from __future__ import annotations

import hashlib
import random
import re
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from .config import ConfigError
from .locks import held
from .tables import OF_EVALUATIONS, SCHEMA_VERSION, Table, quoted, tables, views

FORMS = "a directory holds a '/' or starts with '.' (./rapid-store); a schema is schema:[catalog.]schema"
# A conflict of two writers, by Delta's error conditions and by the names of its exceptions.
CONFLICT = re.compile(
    r"DELTA_CONCURRENT_|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED|Concurrent\w*Exception"
    r"|MetadataChangedException|ProtocolChangedException|ALREADY_EXISTS"
)
VIOLATED = re.compile(r"CHECK constraint (\w+)|NOT NULL constraint violated for column: (\w+)")
NO_DELTA = re.compile(r"DATA_SOURCE_NOT_FOUND|data source: delta|DELTA_CONFIGURE_SPARK_SESSION")
TRIES = 10
T = TypeVar("T")


class StoreError(RuntimeError):
    """A table could not be read or written; the text holds no value of a row."""


@dataclass(frozen=True)
class Warehouse:
    """The schema of a store and what is in it.

    Attributes:
        spark: the session.
        location: as the user wrote it.
        schema: the schema that holds tables and views, quoted for SQL.
        directory: of a local store; None for a schema of the catalog.
    """

    spark: Any = field(repr=False)
    location: str
    schema: str
    directory: Path | None = None

    @classmethod
    def at(cls, spark: Any, location: str) -> Warehouse:
        """The warehouse a location stands for; nothing is made or looked at.

        Raises:
            ConfigError: it is neither a directory nor `schema:[catalog.]schema`.
        """
        directory, schema = resolve(location)
        return cls(spark, location, schema, directory)

    def open(self, create: bool, wanted: Collection[str] = OF_EVALUATIONS) -> None:
        """Make the tables known to the session; with `create`, make what is missing of those wanted.

        Raises:
            ConfigError: there is no store here (without `create`), or the place cannot be written.
        """
        try:
            if self.directory is None:
                self._open_schema(create, wanted)
            else:
                self._open_directory(self.directory, create, wanted)
        except Exception as error:
            if NO_DELTA.search(str(error)):
                raise ConfigError("the Spark session in use has no Delta: start it with Delta") from None
            raise

    def existing(self) -> set[str]:
        """Names of the tables and views."""
        rows = self.spark.sql(f"SHOW TABLES IN {self.schema}").where("not isTemporary").collect()
        return {row["tableName"] for row in rows}

    def qualified(self, name: str) -> str:
        """A table's name with its schema, quoted for SQL."""
        return f"{self.schema}.`{name}`"

    def use(self) -> None:
        """Make the schema the session's current one."""
        self.spark.sql(f"USE {self.schema}")

    def make_views(self) -> None:
        """Make the views anew, those whose tables are there."""
        self._make_views(views())

    def show_views(self, sql: str) -> None:
        """Make the views that a statement names, and those they read, where the session lacks them.

        Tables that only some commands write, such as `audit_verdicts`, are made too, empty, so that the view answers
        that there is nothing.
        """
        wanted = named_views(sql)
        if not wanted:
            return
        there = self.existing()
        lacking = {read for name in wanted for read in read_by(views()[name])} & set(tables()) - there
        if lacking and (self.directory is None or is_writable(self.directory)):
            self.open(create=True, wanted=lacking)
        self._make_views(wanted - there)

    def _make_views(self, names: Collection[str]) -> None:
        if not names:
            return
        self.use()
        there = self.existing()
        for name, statement in views().items():
            if name in names and read_by(statement) <= there:
                self._run(name, statement)
                there.add(name)

    def commit(self, what: str, action: Callable[[], T]) -> T:
        """Run one commit; conflicts with other writers are tried again after growing, random pauses.

        Raises:
            StoreError: a constraint refused a row, or conflicts did not end.
        """
        for attempt in range(TRIES):
            try:
                return action()
            except Exception as error:
                text = str(error)
                if "DELTA_VIOLATE_CONSTRAINT" in text or "DELTA_NOT_NULL_CONSTRAINT" in text:
                    raise StoreError(f"{self.location}: table {what}: {_violated(text)}") from None
                if not CONFLICT.search(text):
                    raise
            time.sleep(random.uniform(0.5, 1.0) * min(10.0, 0.2 * 2**attempt))
        raise StoreError(f"{self.location}: {what} was written by others {TRIES} times in a row; try later")

    def _run(self, what: str, statement: str) -> None:
        self.commit(what, lambda: self.spark.sql(statement))

    def _open_directory(self, directory: Path, create: bool, wanted: Collection[str]) -> None:
        if create:
            _make(directory, self.location)
        elif not (directory / "runs" / "_delta_log").is_dir():
            raise ConfigError(f"there is no store at {self.location}: evaluate or init-db makes one")
        writable = create or is_writable(directory)
        # Spark empties a schema's own directory when the schema is dropped: it must not be the store's.
        own = directory / ".catalog" if writable else Path(tempfile.mkdtemp(prefix="rapid_spark-"))
        self.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self.schema} LOCATION {quoted(str(own))}")
        if writable:
            with held(directory / ".locks" / "init"):
                self._register(directory, wanted)
        else:
            self._register(directory, ())

    def _register(self, directory: Path, wanted: Collection[str]) -> None:
        registered = self.existing()

        def one(table: Table) -> None:
            name, place = self.qualified(table.name), directory / table.name
            if (place / "_delta_log").is_dir():
                if table.name not in registered:
                    self.spark.sql(f"CREATE TABLE {name} USING delta LOCATION {quoted(str(place))}")
                if table.name in wanted:
                    self._evolve(table)
            elif table.name in wanted:
                if table.name in registered:  # its files went after this session had seen them
                    self.spark.sql(f"DROP TABLE {name}")
                self._run(table.name, table.create_at(name, str(place)))

        _at_once(one, tables().values())

    def _open_schema(self, create: bool, wanted: Collection[str]) -> None:
        there = self.existing() if self._has_schema() else None
        if not create:
            if "runs" not in (there or ()):
                raise ConfigError(f"there is no store at {self.location}: evaluate or init-db makes one")
            return
        if there is None:
            self._run(self.schema, f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
            there = set()
        self.use()
        for table in (t for name, t in tables().items() if name in wanted):
            if table.name in there:
                self._evolve(table)
                continue
            self._run(table.name, table.create)
            for statement in table.add_constraints(self.qualified(table.name)):
                self._run(table.name, statement)
        self._make_views(views().keys() - there)

    def _has_schema(self) -> bool:
        *catalog, name = [part.strip("`") for part in self.schema.split(".")]
        place = f" IN `{catalog[0]}`" if catalog else ""
        return bool(self.spark.sql(f"SHOW SCHEMAS{place} LIKE {quoted(name)}").take(1))

    def _evolve(self, table: Table) -> None:
        """Add the columns that a store of an earlier version lacks; they are null in its rows."""
        name = self.qualified(table.name)
        there = set(self.spark.table(name).columns)
        added = [
            f"`{key}` {column.type} COMMENT {quoted(column.comment)}"
            for key, column in table.columns.items()
            if key not in there
        ]
        if added:
            self._run(table.name, f"ALTER TABLE {name} ADD COLUMNS ({', '.join(added)})")
            version = f"'rapid.schema_version' = '{SCHEMA_VERSION}'"
            self._run(table.name, f"ALTER TABLE {name} SET TBLPROPERTIES ({version})")


def read_by(statement: str) -> set[str]:
    """The tables and views that the statement of a view reads itself."""
    return set(re.findall(r"(?:FROM|JOIN) (\w+)", statement)) & {*tables(), *views()}


def named_views(sql: str) -> set[str]:
    """Views whose names occur in a statement, and those they are made of."""
    known = views()
    wanted: set[str] = set()
    texts = [sql]
    while texts:
        more = (set(re.findall(r"\w+", texts.pop().lower())) & set(known)) - wanted
        wanted |= more
        texts += [known[name] for name in more]
    return wanted


def _at_once(action: Callable[[Table], None], several: Iterable[Table]) -> None:
    """Do the same for several tables side by side: most of the time of each goes into waiting for its log."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(action, several))


def resolve(location: str) -> tuple[Path | None, str]:
    """The directory (None for a catalog) and the schema, quoted for SQL, that a location stands for.

    Raises:
        ConfigError: it is neither a directory nor `schema:[catalog.]schema`.
    """
    if location.startswith("schema:"):
        parts = location.removeprefix("schema:").split(".")
        if len(parts) <= 2 and all(re.fullmatch(r"[\w-]+", part) for part in parts):
            return None, ".".join(f"`{part}`" for part in parts)
    elif ("/" in location or location.startswith(".")) and not re.match(r"\w+:", location):
        directory = Path(location).expanduser().resolve()
        return directory, f"`rapid_{hashlib.sha256(str(directory).encode()).hexdigest()[:16]}`"
    raise ConfigError(f"store {location!r} is not a place for results: {FORMS}")


def is_writable(directory: Path) -> bool:
    """Whether files can be made in a directory; rights alone do not tell, a file system may be read-only."""
    try:
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def _make(directory: Path, location: str) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"store {location} cannot be made: {error.strerror}") from None
    if not is_writable(directory):
        raise ConfigError(f"store {location} cannot be written: choose another place with --store")


def _violated(text: str) -> str:
    found = VIOLATED.search(text)
    rule = "a constraint" if found is None else f"constraint {found[1] or 'NOT NULL of column ' + found[2]}"
    return f"{rule} refused a row"
