"""From decided types to frames: values normalised, columns under safe names, record ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from . import keyed
from .agreement import Decision
from .config import Config, SensitiveAttribute
from .io import Source
from .kept import hold
from .kinds import SPOKEN, as_label, as_number, is_infinite, present
from .profiles import TableTypes
from .roles import ROLES, Found

RECORD_ID = "record_id"


@dataclass(frozen=True)
class Variable:
    """A quasi-identifier or target, and its column in the frames."""

    column: str
    decision: Decision

    @property
    def numeric(self) -> bool:
        """Whether its column is double; otherwise it is string."""
        return self.decision.scale == "numeric"

    @property
    def type(self) -> Literal["categorical", "continuous"]:
        """What it is as a target."""
        return "continuous" if self.numeric else "categorical"


@dataclass(frozen=True)
class Plan:
    """What becomes of the named columns, in all tables alike.

    Attributes:
        config: the configuration.
        quasi_identifiers: `q0`, `q1`, .. in the order of their names.
        targets: `s0`, `s1`, .. in the configuration's order.
    """

    config: Config
    quasi_identifiers: list[Variable]
    targets: list[Variable]

    @property
    def variables(self) -> list[Variable]:
        """Quasi-identifiers, then targets."""
        return [*self.quasi_identifiers, *self.targets]

    @property
    def attributes(self) -> list[tuple[Variable, SensitiveAttribute]]:
        """Each target with its settings."""
        return list(zip(self.targets, self.config.sensitive_attributes, strict=True))


def frame_of(found: Found, types: TableTypes, plan: Plan, replicate: int | None = None) -> DataFrame:
    """A table's rows with its record id and roles (of real people only), `q*` and `s*`. Runs no job.

    Args:
        found: the table.
        types: of its columns.
        plan: what they are.
        replicate: only this one's rows, where the table has a replicate column.
    """
    frame = found.source.frame
    if found.replicate_column is not None and replicate is not None:
        frame = frame.where(replicate_of(found).try_cast("double") == replicate)
    columns = columns_of(found, types, plan)
    return frame.select(*(value.alias(name) for name, value in columns.items()))


def columns_of(found: Found, types: TableTypes, plan: Plan) -> dict[str, Column]:
    """The columns of `frame_of` by name."""
    identity = _identity(found, types, plan.config) if found.real else {}
    return identity | {v.column: _value(found, types, v, plan.config) for v in plan.variables}


def infinite_flags(found: Found, types: TableTypes, plan: Plan) -> dict[str, Column]:
    """For numeric columns stored as floating point, whether the value is infinite, by column of the frame."""
    flags = {}
    for v in plan.variables:
        column = found.columns[v.decision.name]
        if v.numeric and types.columns[column].stored.kind in ("float", "double"):
            flags[v.column] = is_infinite(found.source.column(column))
    return flags


def replicate_of(found: Found) -> Column:
    """The replicate column as text."""
    return F.trim(found.source.column(str(found.replicate_column)).cast("string"))


def keep(frame: DataFrame, source: Source) -> DataFrame:
    """Keep the converted rows of a CSV in memory or on disk, so that it is not parsed again with every pass."""
    return hold(frame) if source.is_text else frame


def _value(found: Found, types: TableTypes, variable: Variable, config: Config) -> Column:
    decision = variable.decision
    column = found.columns[decision.name]
    stored = types.columns[column].stored
    value = present(found.source.column(column), stored, config.missing_codes(decision.name))
    return (as_number if variable.numeric else as_label)(value, stored, decision.kind)


def _identity(found: Found, types: TableTypes, config: Config) -> dict[str, Column]:
    """`record_id` and the roles. A key of several columns is a JSON list of texts, so that no two look alike.

    With `columns.key_hmac` that text is the message of the HMAC.
    """
    parts = [_own_value(found, types, key, config) for key in config.columns.key]
    if not parts:
        record_id = F.col(str(found.source.row_number)).cast("string")
    elif len(parts) == 1:
        record_id = parts[0]
    else:
        whole = parts[0].isNotNull()
        for part in parts[1:]:
            whole = whole & part.isNotNull()
        record_id = F.when(whole, F.to_json(F.array(*parts)))
    if found.source.pads is not None:
        inner, outer = (F.col(name) for name in found.source.pads)
        record_id = keyed.record_id(record_id, inner, outer, [found.source.column(c) for c in found.source.columns])
    identity = {RECORD_ID: record_id}
    for role in ROLES:
        name = getattr(config.columns, role)
        if name is not None and name in found.columns:
            identity[role] = _own_value(found, types, name, config, numeric=role == "weight")
    return identity


def _own_value(found: Found, types: TableTypes, name: str, config: Config, numeric: bool = False) -> Column:
    column = types.columns[found.columns[name]]
    raw = found.source.column(found.columns[name])
    value = present(raw, column.stored, config.missing_codes(name))
    return as_number(value, column.stored, "number") if numeric else as_label(value, column.stored, column.kind)


def identity_faults(found: Found, types: TableTypes, config: Config) -> list[str]:
    """Keys and roles of the wrong type. Runs no job."""
    faults = []
    for key in config.columns.key:
        column = types.columns[found.columns[key]]
        if column.kind in ("number", "other"):
            what = SPOKEN.get(column.kind, column.stored.name)
            faults.append(f"columns.key: {key!r} of {found.spoken} holds {what}: a key is text or whole numbers")
    for role in ROLES:
        name = getattr(config.columns, role)
        if name is None or name not in found.columns:
            continue
        column = types.columns[found.columns[name]]
        what = SPOKEN.get(column.kind, column.stored.name)
        if role == "weight" and column.kind not in ("integer", "number", "empty"):
            faults.append(f"columns.weight: {name!r} of {found.spoken} holds {what}: expected numbers")
        elif column.kind == "other":
            faults.append(f"columns.{role}: {name!r} of {found.spoken} holds {what}: expected text or numbers")
    return faults
