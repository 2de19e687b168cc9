"""Types decided on the original and held against the other tables: what each column is, or why the tables disagree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .config import Config, SensitiveAttribute
from .profiles import ColumnProfile
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

NUMERIC_TEXT = NUMBERS | CODE | NAN | INFINITE
ALLOWED = {"number": NUMERIC_TEXT, "boolean": BOOLEAN, "time": DATE | TIMESTAMP}
FEW_VALUES = 10
NEAR_UNIQUE_FROM = 50  # levels; below that, half as many levels as records means a small table
Scale = Literal["numeric", "categorical"]


@dataclass(frozen=True)
class Seen:
    """One column in one table."""

    table: str
    profile: ColumnProfile


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


class Notes:
    """Faults and warnings of one alignment, in the order they came up."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.warnings: list[str] = []


def decide_quasi_identifier(name: str, seen: Sequence[Seen], config: Config, notes: Notes) -> Decision | None:
    """What a quasi-identifier is; None (and a fault) where the tables disagree. The first of `seen` is the original."""
    declared = config.columns.types.get(name)
    kind = _kind(name, seen, declared, "columns.types", notes)
    if kind is None:
        return None
    if declared is None:
        scale: Scale = "numeric" if FAMILIES[kind] in ("number", "time") else "categorical"
    else:
        scale = declared
    original = seen[0].profile
    if scale == "categorical" and original.distinct > max(NEAR_UNIQUE_FROM, original.n / 2):
        notes.warnings.append(
            f"{name!r} is categorical with about {original.distinct} levels for {original.n} records: nearly every "
            "record has its own, from which nothing can be learnt. Leave it out, group its levels, or declare it numeric "
            "under columns.types if it is a number"
        )
    return _noted(Decision(name, kind, scale), seen, notes)


def decide_target(attribute: SensitiveAttribute, seen: Sequence[Seen], error: str, notes: Notes) -> Decision | None:
    """What a sensitive attribute is; None (and a fault) where the tables disagree or its type must be declared."""
    name = attribute.name
    declared: Scale | None = {"categorical": "categorical", "continuous": "numeric"}.get(attribute.type or "")  # type: ignore[assignment]
    kind = _kind(name, seen, declared, "sensitive_attributes (type)", notes)
    if kind is None:
        return None
    family = FAMILIES[kind]
    if family == "time" and declared is None:
        notes.faults.append(
            f"sensitive_attributes: {name!r} holds {SPOKEN[kind]}: declare its type, either categorical, or continuous "
            "with threshold.error: absolute and a tolerance in days"
        )
        return None
    if family == "time" and declared == "numeric" and error != "absolute":
        notes.faults.append(
            f"sensitive_attributes: {name!r} is a date used as a number of days, so a relative error means nothing: set "
            f"threshold.error: absolute and a tolerance in days (now: {error}), or declare it categorical"
        )
        return None
    if family == "boolean" and declared == "numeric":
        notes.faults.append(f"sensitive_attributes: {name!r} holds booleans: it is categorical, not continuous")
        return None
    original = seen[0].profile
    if family == "number" and declared is None and original.distinct <= FEW_VALUES:
        notes.warnings.append(
            f"sensitive_attributes: {name!r} is a number with only {original.distinct} different values and is used as "
            "continuous; if they are codes of categories, declare type: categorical"
        )
    scale: Scale = declared or ("numeric" if family == "number" else "categorical")
    return _noted(Decision(name, kind, scale), seen, notes)


def mostly_numbers(profile: ColumnProfile) -> bool:
    """Whether a text column is made of numbers and a few texts, as where a text stands for 'missing'."""
    mixed = bool(profile.classes & (TEXT | COMMA)) and not profile.classes & CODE
    return mixed and profile.n_numbers > 0 and 2 * profile.n_numbers >= profile.n_present


def _kind(name: str, seen: Sequence[Seen], declared: Scale | None, setting: str, notes: Notes) -> str | None:
    others = [s for s in seen if s.profile.kind == "other"]
    if others:
        notes.faults += [
            f"{name!r} in {s.table} is stored as {s.profile.stored.name}: expected a number, text, boolean or date"
            for s in others
        ]
        return None
    original = seen[0].profile
    if declared == "numeric":
        return _declared_numeric(name, seen, setting, notes)
    if declared == "categorical":
        # As labels 4 and '4' meet; codes such as 01 must not become 1 on the way.
        codes = any(s.profile.classes & CODE for s in seen)
        return "text" if codes or original.kind == "empty" else original.kind
    if original.kind == "text" and original.classes & COMMA and only(original.classes, COMMA | NUMERIC_TEXT):
        notes.faults.append(
            f"{name!r} in {seen[0].table}: {original.n_present - original.n_numbers} values are numbers with a comma: "
            f"write them with a point, or declare it categorical under {setting}"
        )
        return None
    kind = original.kind
    if kind == "text" and only(original.classes, BOOLEAN) and any(s.profile.kind == "boolean" for s in seen[1:]):
        kind = "boolean"
    differing = [s for s in seen[1:] if not _fits(kind, original, s.profile)]
    for other in differing:
        notes.faults.append(
            f"{name!r}: {_spoken(kind, original)} in {seen[0].table}, "
            f"{_spoken(other.profile.kind, other.profile)} in {other.table}{_why(kind, other.profile)}. "
            f"Make them the same, or declare {name!r} under {setting}"
        )
    return None if differing else kind


def _declared_numeric(name: str, seen: Sequence[Seen], setting: str, notes: Notes) -> str | None:
    kind = "number"
    fits = True
    for s in seen:
        family = FAMILIES[s.profile.kind]
        if family in ("number", "time", "boolean", "empty"):
            continue
        if not only(s.profile.classes, NUMERIC_TEXT):
            fits = False
            count = s.profile.n_present - s.profile.n_numbers
            notes.faults.append(
                f"{setting}: {name!r} is declared to be a number, but {count} of {s.profile.n_present} values in "
                f"{s.table} are none. If they mean missing, declare them under columns.missing_codes"
            )
    families = {FAMILIES[s.profile.kind] for s in seen} - {"empty", "text"}
    if len(families) > 1:
        fits = False
        notes.faults.append(
            f"{name!r}: " + ", ".join(f"{_spoken(s.profile.kind, s.profile)} in {s.table}" for s in seen)
            + ". Make them the same"
        )
    if families == {"time"} or families == {"boolean"}:
        kind = next(s.profile.kind for s in seen if FAMILIES[s.profile.kind] in families)
    return kind if fits else None


def _fits(kind: str, original: ColumnProfile, other: ColumnProfile) -> bool:
    """Whether another table's values can be read as what the original's are."""
    family, own = FAMILIES[kind], FAMILIES[other.kind]
    if "empty" in (family, own) or family == own and family != "text":
        return True
    if other.stored.kind != "string":
        return False
    if family == "text":
        # CSV numbers are text here if the original's texts hold numbers too; 'a', 'b' against 1, 2 is a mistake.
        bits = {"number": NUMERIC_TEXT, "boolean": BOOLEAN, "time": DATE | TIMESTAMP}.get(own)
        return bits is None or bool(original.classes & bits)
    return (other.is_text or family == "boolean") and only(other.classes, ALLOWED[family])


def _spoken(kind: str, profile: ColumnProfile) -> str:
    stored = "" if profile.is_text else f" ({profile.stored.name})"
    return f"{SPOKEN[kind]}{stored}"


def _why(kind: str, other: ColumnProfile) -> str:
    if FAMILIES[kind] != "number" or other.stored.kind != "string" or not other.is_text:
        return ""
    count = other.n_present - other.n_numbers
    if other.classes & COMMA and only(other.classes, COMMA | NUMERIC_TEXT):
        return f" ({count} numbers with a comma in place of a point)"
    shown = f" (such as {other.marker!r})" if other.marker else ""
    return f": {count} of {other.n_present} values{shown} are no numbers; if they mean missing, see columns.missing_codes"


def _noted(decision: Decision, seen: Sequence[Seen], notes: Notes) -> Decision:
    """Add what is worth knowing of the values to the warnings."""
    for s in seen:
        infinite = s.profile.n_infinite if decision.scale == "numeric" else 0
        if infinite:
            notes.warnings.append(f"{decision.name!r} in {s.table}: {infinite} infinite values are taken as missing")
        if decision.kind == "text" and mostly_numbers(s.profile):
            rest = s.profile.n_present - s.profile.n_numbers
            marker = f" (such as {s.profile.marker!r})" if s.profile.marker else ""
            notes.warnings.append(
                f"{decision.name!r} in {s.table}: {s.profile.n_numbers} of {s.profile.n_present} values are numbers, "
                f"{rest} are text{marker}, so it is categorical. If that text means missing, declare it: "
                f"columns.missing_codes: {{{decision.name}: [...]}}"
            )
    return decision
