"""Types decided on the original and held against the other tables: what each column is, or how the tables disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .config import Config, SensitiveAttribute
from .granularity import fitting, shown
from .kinds import (
    BOOLEAN,
    CODE,
    COMMA,
    DATE,
    FAMILIES,
    INFINITE,
    NAN,
    NUMBERS,
    SPOKEN,
    TEXT,
    TIMESTAMP,
    only,
)
from .profiles import ColumnType

NUMERIC_TEXT = NUMBERS | CODE | NAN | INFINITE
CLASSES = {"number": NUMERIC_TEXT, "boolean": BOOLEAN, "time": DATE | TIMESTAMP}  # of a family's text values
Scale = Literal["numeric", "categorical"]


@dataclass(frozen=True)
class Seen:
    """One column in one table.

    Attributes:
        table: how messages name the table.
        column: what was seen of it.
        is_empty: looks whether it has no value at all; asked only where the tables disagree.
        labels: some of its values as text; asked only where the tables disagree.
    """

    table: str
    column: ColumnType
    is_empty: Callable[[], bool] = field(default=lambda: False, repr=False)
    labels: Callable[[], list[str]] = field(default=lambda: [], repr=False)

    @property
    def spoken(self) -> str:
        """What it holds, for messages."""
        stored = "" if self.column.is_text else f" ({self.column.stored.name})"
        return f"{SPOKEN.get(self.column.kind, self.column.kind)}{stored} in {self.table}"


@dataclass(frozen=True)
class Decision:
    """What a column is, in all tables.

    Attributes:
        name: its name in the configuration.
        kind: as in `kinds.kind_of`, decided on the original.
        scale: whether it is used as a number or as a category.
    """

    name: str
    kind: str
    scale: Scale


@dataclass
class Notes:
    """Faults and warnings of one alignment, in the order they came up."""

    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def decide_quasi_identifier(name: str, seen: Sequence[Seen], config: Config, notes: Notes) -> Decision | None:
    """What a quasi-identifier is; None, and a fault, where the tables disagree.

    Args:
        name: its name in the configuration.
        seen: the column in each table, the original first.
        config: with declared types.
        notes: faults and warnings are added here.
    """
    declared = config.columns.types.get(name)
    kind = _kind(name, seen, declared, f"columns.types: {{{name}: categorical}}", notes)
    if kind is None:
        return None
    _note_markers(name, kind, seen, notes)
    scale: Scale = declared or ("numeric" if FAMILIES[kind] in ("number", "time") else "categorical")
    return Decision(name, kind, scale)


def decide_target(
    attribute: SensitiveAttribute, seen: Sequence[Seen], error: str, notes: Notes
) -> Decision | None:
    """What a sensitive attribute is; None, and a fault, where the tables disagree or its type must be declared.

    Args:
        attribute: its settings.
        seen: the column in each table, the original first.
        error: threshold.error.
        notes: faults and warnings are added here.
    """
    name = attribute.name
    scales: dict[str | None, Scale] = {"categorical": "categorical", "continuous": "numeric"}
    declared = scales.get(attribute.type)
    kind = _kind(name, seen, declared, f"sensitive_attributes: {name}:categorical", notes)
    if kind is None:
        return None
    family, where = FAMILIES[kind], f"sensitive_attributes: {name!r}"
    if family == "time" and declared is None:
        notes.faults.append(
            f"{where} holds {SPOKEN[kind]}: declare its type, either categorical, or continuous with "
            "threshold.error: absolute and a tolerance in days"
        )
    elif family == "time" and declared == "numeric" and error != "absolute":
        notes.faults.append(
            f"{where} is a date used as a number of days, for which the error {error} means nothing: set "
            "threshold.error: absolute and a tolerance in days, or declare it categorical"
        )
    elif family == "boolean" and declared == "numeric":
        notes.faults.append(f"{where} holds booleans: declare it categorical, not continuous")
    else:
        _note_markers(name, kind, seen, notes)
        return Decision(name, kind, declared or ("numeric" if family == "number" else "categorical"))
    return None


def mostly_numbers(column: ColumnType) -> bool:
    """Whether a text column is made of numbers and a few texts, as where a text stands for 'missing'."""
    mixed = bool(column.classes & (TEXT | COMMA)) and not column.classes & CODE
    return mixed and column.n_numbers > 0 and 2 * column.n_numbers >= column.n_present


def _kind(
    name: str, seen: Sequence[Seen], declared: Scale | None, remedy: str, notes: Notes
) -> str | None:
    others = [s for s in seen if s.column.kind == "other"]
    if others:
        notes.faults += [
            f"{name!r} in {s.table} is stored as {s.column.stored.name}: expected numbers, text, booleans or dates"
            for s in others
        ]
        return None
    original = seen[0].column
    if original.kind == "empty":
        return next((s.column.kind for s in seen if s.column.kind != "empty"), "text")
    if declared == "numeric":
        return _declared_numeric(name, seen, notes)
    if declared == "categorical":
        # As labels 4 and '4' meet; but a code such as 01 must not become 1 on the way.
        return "text" if any(s.column.classes & CODE for s in seen) else original.kind
    if original.kind == "text" and _with_commas(original):
        count = original.n_present - original.n_numbers
        notes.faults.append(
            f"{name!r} in {seen[0].table}: {count} values are numbers with a comma: write them with a point, or "
            f"declare {remedy}"
        )
        return None
    kind = original.kind
    if kind == "text" and only(original.classes, BOOLEAN) and any(s.column.kind == "boolean" for s in seen[1:]):
        kind = "boolean"
    differing = [s for s in seen[1:] if not _fits(kind, original, s.column)]
    if differing and seen[0].is_empty():
        return differing[0].column.kind
    differing = [s for s in differing if not s.is_empty()]
    for other in differing:
        notes.faults.append(
            f"{name!r}: {seen[0].spoken}, {other.spoken}{_why(kind, other.column)}. {_recode(name, kind, other)}Make "
            f"them the same, or declare {remedy}"
        )
    return None if differing else kind


def _declared_numeric(name: str, seen: Sequence[Seen], notes: Notes) -> str | None:
    fits = True
    for s in seen:
        if FAMILIES[s.column.kind] == "text" and not only(s.column.classes, NUMERIC_TEXT):
            fits = False
            notes.faults.append(
                f"{name!r} is declared to be a number, but {s.column.n_present - s.column.n_numbers} of "
                f"{s.column.n_present} values in {s.table} are none{_marked(s.column)}. If they mean missing, declare "
                f"columns.missing_codes: {{{name}: [...]}}"
            )
    families = {FAMILIES[s.column.kind]: s for s in seen if FAMILIES[s.column.kind] not in ("empty", "text")}
    if len(families) > 1 or "time" in families and any(s.column.kind == "text" for s in seen):
        notes.faults.append(f"{name!r}: {', '.join(s.spoken for s in seen)}. Make them the same")
        return None
    kind = next(iter(families.values())).column.kind if families else "number"
    return kind if fits else None


def _fits(kind: str, original: ColumnType, other: ColumnType) -> bool:
    """Whether another table's values can be read as what the original's are."""
    family, own = FAMILIES[kind], FAMILIES[other.kind]
    if own == "empty" or family == own:
        return True
    if other.stored.kind != "string":
        return False
    if family == "text":
        # CSV numbers are text here if the original's texts hold numbers too; 'a', 'b' against 1, 2 is a mistake.
        return bool(original.classes & CLASSES[own])
    return (other.is_text or family == "boolean") and only(other.classes, CLASSES[family])


def _why(kind: str, other: ColumnType) -> str:
    if FAMILIES[kind] != "number" or not other.is_text:
        return ""
    count = other.n_present - other.n_numbers
    if _with_commas(other):
        return f" ({count} of {other.n_present} are numbers with a comma in place of a point)"
    return (
        f" ({count} of {other.n_present} values are no numbers{_marked(other)}; if they mean missing, declare "
        "columns.missing_codes)"
    )


def _recode(name: str, kind: str, other: Seen) -> str:
    """The recode that would turn the original's numbers into another table's texts, if its labels tell."""
    if FAMILIES[kind] != "number" or other.column.stored.kind != "string":
        return ""
    found = fitting(other.labels(), numeric=True)
    return f"These look like recoded numbers: recode: {{{name}: {shown(found)}}} does so to the original. " if found else ""


def _with_commas(column: ColumnType) -> bool:
    return bool(column.classes & COMMA) and only(column.classes, COMMA | NUMERIC_TEXT)


def _marked(column: ColumnType) -> str:
    return f" (such as {column.marker!r})" if column.marker else ""


def _note_markers(name: str, kind: str, seen: Sequence[Seen], notes: Notes) -> None:
    for s in seen:
        if kind == "text" and mostly_numbers(s.column):
            notes.warnings.append(
                f"{name!r} in {s.table}: {s.column.n_numbers} of {s.column.n_present} values are numbers, "
                f"{s.column.n_present - s.column.n_numbers} are text{_marked(s.column)}, so it is categorical. If that "
                f"text means missing, declare columns.missing_codes: {{{name}: [...]}}"
            )
