"""The tables of a store as `conf/sql/` declares them: columns, constraints, views, and rows to fit them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from .resources import conf_path

SCHEMA_VERSION = 1
# Made with a store; the others when a command first writes into them, as each costs a second or so.
OF_EVALUATIONS = (
    "runs",
    "risk_records",
    "risk_summary",
    "risk_curve",
    "risk_classes",
    "risk_subgroups",
    "risk_patterns",
    "risk_attribution",
    "risk_relations",
    "risk_distributions",
    "risk_joint",
)
COLUMN = re.compile(r"^  `?(\w+)`? (\w+(?:<\w+>)?)( NOT NULL)? COMMENT '([^']*)',?$", re.MULTILINE)
CONSTRAINT = re.compile(r"^ALTER TABLE (\w+) ADD CONSTRAINT (\w+) CHECK \((.*)\)$", re.DOTALL)
ARROW = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
    "array<bigint>": pa.list_(pa.int64()),
}


@dataclass(frozen=True)
class Column:
    """One column: its SQL type, whether it may be null, and its comment."""

    type: str
    nullable: bool
    comment: str


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        name: as in the DDL.
        create: its CREATE TABLE statement.
        columns: by name, in order.
        constraints: CHECK expressions by name.
    """

    name: str
    create: str
    columns: Mapping[str, Column]
    constraints: Mapping[str, str]

    def create_at(self, name: str, location: str) -> str:
        """CREATE TABLE under another name at a location, constraints and all in one commit."""
        properties = {f"delta.constraints.{key}": check for key, check in self.constraints.items()}
        listed = ", ".join(f"{quoted(key)} = {quoted(check)}" for key, check in properties.items())
        statement = re.sub(rf"\b{self.name} \(", lambda _: f"{name} (", self.create, count=1)
        if listed:
            statement = statement.replace("TBLPROPERTIES (", f"TBLPROPERTIES ({listed}, ", 1)
        return f"{statement}\nLOCATION {quoted(location)}"

    def add_constraints(self, name: str) -> list[str]:
        """ALTER TABLE statements for catalogs that know no constraints as properties."""
        return [f"ALTER TABLE {name} ADD CONSTRAINT {k} CHECK ({c})" for k, c in self.constraints.items()]


def tables() -> dict[str, Table]:
    """The tables by name, as `conf/sql/tables.sql` declares them."""
    found: dict[str, Table] = {}
    checks: dict[str, dict[str, str]] = {}
    for statement in statements("sql/tables.sql"):
        constraint = CONSTRAINT.match(statement)
        if constraint:
            checks.setdefault(constraint[1], {})[constraint[2]] = constraint[3]
            continue
        name = re.match(r"CREATE TABLE IF NOT EXISTS (\w+) \(", statement)
        if name is None:
            raise ValueError(f"tables.sql: neither a table nor a constraint: {statement[:60]}")
        columns = {c[0]: Column(c[1], not c[2], c[3]) for c in COLUMN.findall(statement)}
        found[name[1]] = Table(name[1], statement, columns, checks.setdefault(name[1], {}))
    return found


def views() -> dict[str, str]:
    """The statements that make the views, by name, in an order in which each finds what it reads."""
    made = {}
    for statement in statements("sql/views.sql"):
        name = re.match(r"CREATE OR REPLACE VIEW (\w+)", statement)
        if name is None:
            raise ValueError(f"views.sql: not a view: {statement[:60]}")
        made[name[1]] = statement
    return made


def statements(name: str) -> list[str]:
    """The statements of an SQL file of `conf/`; each ends with a semicolon at the end of a line."""
    text = conf_path(name).read_text(encoding="utf-8")
    bare = re.sub(r"^--.*\n", "", text, flags=re.MULTILINE)
    return [part.strip() for part in re.split(r";[ \t]*(?:\n|$)", bare) if part.strip()]


def arrow(table: Table, frame: pd.DataFrame) -> pa.Table:
    """A pandas frame as rows of a table: every column, by name; NaN, NaT and NA as null, naive times as UTC.

    Raises:
        ValueError: a column that the table does not have, or one whose values do not fit its type.
    """
    unknown = [str(c) for c in frame.columns if c not in table.columns]
    if unknown:
        raise ValueError(f"table {table.name} has no column {', '.join(unknown)}")
    arrays = {}
    for name, column in table.columns.items():
        values = [_plain(v) for v in frame[name]] if name in frame else [None] * len(frame)
        try:
            arrays[name] = pa.array(_whole(values) if "int" in column.type else values, ARROW[column.type])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            kinds = ", ".join(sorted({type(v).__name__ for v in values if v is not None}))
            found = f"table {table.name}, column {name}: {kinds}"
            raise ValueError(f"{found} does not fit {column.type}") from None
    return pa.table(arrays)


def quoted(text: str) -> str:
    """A text as an SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return None if value is None or pd.isna(value) else value


def _whole(values: list[Any]) -> list[Any]:
    # Arrow would cut decimals off.
    if any(isinstance(v, float) and not v.is_integer() for v in values):
        raise ValueError("not a whole number")
    return values
