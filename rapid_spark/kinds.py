"""Kinds of columns: what a value is, what a column is, and how it becomes a number or a label.

A value in a text column falls into one *class*; classes are bits, so that one `bit_or` tells all classes of a column.
A column's *kind* follows from its stored type, or for a CSV from the classes of all its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

INTEGER, CODE, DECIMAL, NAN, INFINITE, BOOLEAN, DATE, TIMESTAMP, COMMA, TEXT = (1 << i for i in range(10))
NUMBERS = INTEGER | DECIMAL
EXACT = 2.0**53  # whole numbers beyond it are not all doubles
DAY = 86_400_000_000  # microseconds
# Texts that stand for "no value" in many files. They are no one's data, so a message may show them.
MARKERS = ("?", "*", ".", "-", "--", "NA", "N/A", "#N/A", "NULL", "null", "None", "none", "n/a", "na", "nan", "NaN", "<NA>")

# Java's \z is the very end; $ would allow a line break before it.
_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,4})?\z"
_WHOLE = r"^[-+]?[0-9]+\z"
_LEADING_ZERO = r"^[-+]?0[0-9]"
_SIGNED_WORD = r"^[-+](?i:nan|inf|infinity)\z"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_TIMESTAMP = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?"
    r"(Z|[-+][0-9]{2}:?[0-9]{2})?\z"
)
_COMMA = r"^[-+]?([0-9]+|[0-9]{1,3}([.][0-9]{3})+),[0-9]+\z"

FAMILIES = {
    "integer": "number", "number": "number", "boolean": "boolean", "date": "time", "timestamp": "time",
    "text": "text", "empty": "empty", "other": "other",
}  # fmt: skip
SPOKEN = {
    "integer": "whole numbers", "number": "decimal numbers", "boolean": "booleans", "date": "dates",
    "timestamp": "times", "text": "text", "empty": "no value at all",
}  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """How a column is stored.

    Attributes:
        kind: 'string', 'integer', 'float', 'double', 'decimal', 'boolean', 'date', 'timestamp', 'void' or 'other'.
        scale: digits after the point of a decimal.
        name: Spark's name of the type, for messages.
    """

    kind: str
    name: str
    scale: int = 0

    @classmethod
    def of(cls, data_type: T.DataType) -> Stored:
        """The storage of a Spark type."""
        names: list[tuple[type | tuple[type, ...], str]] = [
            ((T.StringType, T.CharType, T.VarcharType), "string"), (T.IntegralType, "integer"),
            (T.FloatType, "float"), (T.DoubleType, "double"), (T.DecimalType, "decimal"), (T.BooleanType, "boolean"),
            (T.DateType, "date"), ((T.TimestampType, T.TimestampNTZType), "timestamp"), (T.NullType, "void"),
        ]  # fmt: skip
        kind = next((name for types, name in names if isinstance(data_type, types)), "other")
        scale = data_type.scale if isinstance(data_type, T.DecimalType) else 0
        return cls(kind, data_type.simpleString(), scale)


def text_class(trimmed: Column) -> Column:
    """The class of a text value (an int with one bit), null for null.

    Ordered so that most values cost a look at their first character, and whole numbers one cast.
    """
    first = F.ascii(trimmed)
    return (
        F.when(trimmed.isNull(), F.lit(None))
        .when(first.between(ord("+"), ord("9")), _class_of_digits(trimmed))
        .when(first.isin([ord(c) for c in "tTfFnNiI"]), _class_of_word(F.lower(trimmed)))
        .otherwise(F.lit(TEXT))
    )


def _class_of_digits(trimmed: Column) -> Column:
    # Regular expressions, not casts: a cast that fails throws inside, which costs a hundred times as much.
    code = (F.length(trimmed) > 1) & trimmed.rlike(_LEADING_ZERO)
    signed_word = F.when(F.lower(trimmed).endswith("nan"), F.lit(NAN)).otherwise(F.lit(INFINITE))
    return (
        F.when(trimmed.rlike(_WHOLE), F.when(code, F.lit(CODE)).otherwise(F.lit(INTEGER)))
        .when(trimmed.rlike(_NUMBER), F.when(code, F.lit(CODE)).otherwise(F.lit(DECIMAL)))
        .when(trimmed.rlike(_DATE) & trimmed.try_cast("date").isNotNull(), F.lit(DATE))
        .when(trimmed.rlike(_TIMESTAMP) & trimmed.try_cast("timestamp").isNotNull(), F.lit(TIMESTAMP))
        .when(trimmed.rlike(_COMMA), F.lit(COMMA))
        .when(trimmed.rlike(_SIGNED_WORD), signed_word)
        .otherwise(F.lit(TEXT))
    )


def _class_of_word(lower: Column) -> Column:
    return (
        F.when(lower.isin("true", "false"), F.lit(BOOLEAN))
        .when(lower == "nan", F.lit(NAN))
        .when(lower.isin("inf", "infinity"), F.lit(INFINITE))
        .otherwise(F.lit(TEXT))
    )


def kind_of(stored: Stored, is_text: bool, classes: int) -> str:
    """The kind of a column: 'integer', 'number', 'boolean', 'date', 'timestamp', 'text', 'empty' or 'other'.

    Only an undecided source (CSV) has its strings looked into: a column is numeric when all its values are numbers and
    none has leading zeros (01 is a code, so text), boolean when all are true or false, and so on; otherwise text. A
    string column without any value is empty; whether another column is takes a look at its values.
    """
    if stored.kind == "other":
        return "other"
    if stored.kind == "void" or stored.kind == "string" and classes == 0:
        return "empty"
    if stored.kind == "decimal":
        return "number" if stored.scale else "integer"
    if stored.kind != "string":
        return {"float": "number", "double": "number"}.get(stored.kind, stored.kind)
    if not is_text:
        return "text"
    if classes == INTEGER:
        return "integer"
    if classes & NUMBERS and only(classes, NUMBERS | NAN | INFINITE):
        return "number"
    for bits, kind in ((BOOLEAN, "boolean"), (DATE, "date"), (DATE | TIMESTAMP, "timestamp")):
        if only(classes, bits):
            return kind
    return "text"


def only(classes: int, allowed: int) -> bool:
    """Whether there are values, and none of another class."""
    return bool(classes) and not classes & ~allowed


def present(column: Column, stored: Stored, codes: Sequence[str | int | float] = ()) -> Column:
    """The value, or null where it is missing: null, NaN, empty or blank text, or one of the declared codes.

    A code stands for its number too: -9 is also -9.0.
    """
    if stored.kind == "string":
        trimmed = F.trim(column)
        missing = trimmed == ""
        if codes:
            missing = missing | trimmed.isin([str(c).strip() for c in codes])
            numbers = _numbers(codes)
            if numbers:
                missing = missing | F.coalesce(_parsed(trimmed).isin(numbers), F.lit(False))
        return F.when(~missing, column)
    if stored.kind in ("float", "double"):
        number = as_double(column, stored)
        missing = F.isnan(number)
        return F.when(~(missing | number.isin(_numbers(codes)) if _numbers(codes) else missing), column)
    if stored.kind in ("integer", "decimal") and _numbers(codes):
        return F.when(~_equals_any(column, stored, _numbers(codes)), column)
    if stored.kind in ("date", "timestamp") and codes:
        return F.when(~day_text(column, stored).isin([str(c) for c in codes]), column)
    return column


def _numbers(codes: Sequence[str | int | float]) -> list[int | float]:
    found: list[int | float] = []
    for code in codes:
        try:
            found.append(code if isinstance(code, (int, float)) else float(code))
        except ValueError:
            continue
    return [n for n in found if n == n]


def _equals_any(column: Column, stored: Stored, numbers: Sequence[int | float]) -> Column:
    if stored.kind == "decimal" and stored.scale:
        return column.cast("double").isin([float(n) for n in numbers])
    whole = [int(n) for n in numbers if n == int(n) and abs(n) < 10**18]
    return column.isin(whole) if whole else F.lit(False)


def as_double(column: Column, stored: Stored) -> Column:
    """A stored number as double. A single-precision 0.1 is the 0.1 that a file shows, not 0.10000000149."""
    return column.cast("string").cast("double") if stored.kind == "float" else column.cast("double")


def as_number(column: Column, stored: Stored, kind: str) -> Column:
    """A present value as a finite double, never -0.0; null where it is none. Dates and times are days since 1970-01-01.

    Args:
        column: the value, or null (`present`).
        stored: how it is stored.
        kind: what it is, as decided on the original.
    """
    if kind in ("date", "timestamp"):
        return days(column, stored)
    if stored.kind == "string":
        trimmed = F.trim(column)
        number = F.lower(trimmed).try_cast("boolean").cast("double") if kind == "boolean" else trimmed.try_cast("double")
    else:
        number = as_double(column, stored)
    return F.when(number == 0, F.lit(0.0)).when(~(F.isnan(number) | is_infinite(number)), number)


def is_infinite(number: Column) -> Column:
    """Whether a floating-point value is infinite."""
    return F.abs(number) == float("inf")


def as_label(column: Column, stored: Stored, kind: str) -> Column:
    """A present value as text that is the same whichever way it was stored: 3 for 3.0, true for TRUE.

    Whole numbers keep every digit, also beyond 2^53. Text stays as it is.
    """
    if stored.kind != "string":
        return stored_text(column, stored)
    trimmed = F.trim(column)
    if kind in ("integer", "number"):
        return number_text(trimmed)
    if kind == "boolean":
        return F.lower(trimmed)
    if kind in ("date", "timestamp"):
        return day_text(column, stored)
    return column


def stored_text(column: Column, stored: Stored) -> Column:
    """A value that is no string, as text."""
    if stored.kind in ("float", "double"):
        number = as_double(column, stored)
        return F.when(~F.isnan(number), _double_text(number))
    if stored.kind == "decimal" and stored.scale:
        whole = F.when(column == F.floor(column), F.floor(column).cast("string"))
        return F.coalesce(whole, _double_text(column.cast("double")))
    if stored.kind in ("date", "timestamp"):
        return day_text(column, stored)
    return column.cast("string")


def number_text(trimmed: Column) -> Column:
    """A number written as text, in the one form each number has; other text as it is."""
    whole = trimmed.rlike(_WHOLE) & ~trimmed.rlike(_LEADING_ZERO)
    digits = F.regexp_replace(F.regexp_replace(trimmed, r"^\+", ""), r"^-0\z", "0")
    return F.when(whole, digits).otherwise(F.coalesce(_double_text(_parsed(trimmed)), trimmed))


def _parsed(trimmed: Column) -> Column:
    return F.when(trimmed.rlike(_NUMBER), trimmed.try_cast("double"))


def _double_text(number: Column) -> Column:
    whole = (number == F.floor(number)) & (F.abs(number) < 1e37)
    exact = F.when(whole, number.try_cast("decimal(38,0)").cast("string"))
    return F.when(number == 0, F.lit("0")).otherwise(F.coalesce(exact, number.cast("string")))


def wall_clock(column: Column, stored: Stored) -> Column:
    """A date or time as the session's clock on the wall shows it (a timestamp without zone)."""
    if stored.kind == "string":
        return F.trim(column).try_cast("timestamp").cast("timestamp_ntz")
    return column.cast("timestamp_ntz")


def days(column: Column, stored: Stored) -> Column:
    """Days since 1970-01-01 with their fraction, as double."""
    if stored.kind == "date":
        return F.unix_date(column).cast("double")
    clock = wall_clock(column, stored)
    micros = F.round(F.extract(F.lit("SECOND"), clock) * 1_000_000).cast("long")
    in_day = (F.hour(clock) * 60 + F.minute(clock)).cast("long") * 60_000_000 + micros
    return (F.unix_date(clock.cast("date")).cast("long") * DAY + in_day) / float(DAY)


def day_text(column: Column, stored: Stored) -> Column:
    """A date as 2021-12-31, a time as 2021-12-31 10:30:00; midnight is the date alone."""
    if stored.kind == "date":
        return column.cast("string")
    return F.regexp_replace(wall_clock(column, stored).cast("string"), r" 00:00:00\z", "")
