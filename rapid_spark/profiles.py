"""One aggregation over a table's text columns: what their values are, so that types can be decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as F

from .io import Source, fault_of
from .kinds import INFINITE, MARKERS, NUMBERS, Stored, kind_of, present, text_class

Codes = Mapping[str, Sequence[str | int | float]]


@dataclass(frozen=True)
class ColumnType:
    """What a column's storage and, for text, its values tell of its type.

    Attributes:
        stored: how it is stored.
        is_text: its type is undecided (CSV).
        classes: classes of its text values, as bits (`kinds`); 0 where it is not text or has no value.
        n_present: text values that are neither empty nor a declared code.
        n_numbers: text values that are numbers.
        n_infinite: text values that are infinite.
        marker: a well-known text for "no value" among the values, such as '?', if there is one.
    """

    stored: Stored
    is_text: bool = False
    classes: int = 0
    n_present: int = 0
    n_numbers: int = 0
    n_infinite: int = 0
    marker: str | None = None

    @property
    def kind(self) -> str:
        """What the column holds, by its own values alone (`kinds.kind_of`)."""
        return kind_of(self.stored, self.is_text, self.classes)


@dataclass(frozen=True)
class TableTypes:
    """Types of a table's columns.

    Attributes:
        columns: by name.
        n_corrupt: CSV records with more or fewer fields than the header.
        found: by name, of the columns with declared codes, what they are with these among their values. A digest of the
            content goes by it, so that it does not depend on the configuration.
    """

    columns: dict[str, ColumnType]
    n_corrupt: int
    found: dict[str, ColumnType] = field(default_factory=dict)

    @property
    def as_found(self) -> dict[str, ColumnType]:
        """Types by name as if no code had been declared."""
        return self.columns | self.found


def stored_types(source: Source) -> dict[str, Stored]:
    """How each column of a table is stored, the technical ones too. Runs no job."""
    by_name = {field.name: field.dataType for field in source.frame.schema.fields}
    return {name: Stored.of(data_type) for name, data_type in by_name.items()}


def column_types(source: Source, columns: Iterable[str], codes: Codes | None = None) -> TableTypes:
    """Look at a table's text columns. Jobs: one; none where there are no such columns.

    The values are laid one below the other, so that one piece of code looks at all columns: a wide table makes it
    neither longer nor slower a value.

    Args:
        source: the table.
        columns: columns wanted.
        codes: per column, values that mean missing.

    Raises:
        ConfigError: the file turned out to be unreadable.
    """
    stored = stored_types(source)
    types = {name: ColumnType(stored[name], source.is_text) for name in columns}
    texts = [name for name in types if stored[name].kind == "string"]
    if not texts:
        return TableTypes(types, 0)
    codes = codes or {}
    coded = [name for name in texts if codes.get(name)]
    cells = [present(source.column(n), stored[n], codes[n]) if n in coded else source.column(n) for n in texts]
    cells += [source.column(name) for name in coded]
    if source.corrupt:
        cells.append(F.when(source.column(source.corrupt).isNotNull(), F.lit("corrupt")))
    values = source.frame.select(F.posexplode(F.array(*cells)).alias("i", "text"))
    values = values.select("i", F.trim("text").alias("text")).where("text is not null and text <> ''")
    looked = values.select("i", text_class(F.col("text")).alias("class"), _marker().alias("marker"))
    counts = looked.groupBy("i").agg(
        F.bit_or("class").alias("classes"),
        F.count(F.lit(1)).alias("n_present"),
        F.count_if(F.col("class").bitwiseAND(F.lit(NUMBERS)) != 0).alias("n_numbers"),
        F.count_if(F.col("class") == INFINITE).alias("n_infinite"),
        F.max("marker").alias("marker"),
    )
    try:
        rows = {row["i"]: row for row in counts.collect()}
    except Exception as error:
        fault = fault_of(error, source)
        if fault is None:
            raise
        raise fault from None
    found = {name: types[name] for name in coded}
    for i, name in enumerate([*texts, *coded]):
        if i in rows:
            row = rows[i].asDict()
            marker = MARKERS[row.pop("marker") - 1] if row["marker"] else None
            row.pop("i")
            whose = types if i < len(texts) else found
            whose[name] = ColumnType(stored[name], source.is_text, **{**row, "marker": marker})
    last = len(texts) + len(coded)
    return TableTypes(types, rows[last]["n_present"] if last in rows else 0, found)


def _marker() -> Column:
    # The look at the first character spares nearly all values the comparisons with each marker.
    text = F.col("text")
    like_one = F.ascii(text).isin(sorted({ord(m[0]) for m in MARKERS})) & (F.length(text) <= max(map(len, MARKERS)))
    return F.when(like_one, F.array_position(F.array(*map(F.lit, MARKERS)), text))
