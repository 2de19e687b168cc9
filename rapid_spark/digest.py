"""A digest of a table's content that does not depend on the order of rows and columns, nor on the file format.

Each cell becomes a 64-bit hash of its value (3 and 3.0, TRUE and true are one value, as in `kinds`); a row two hashes
of its cells in the order of the column names; the table the sums of these over all rows. SHA-256 binds the sums to the
column names and the number of rows. It tells tables apart, it does not hide them: keep it as you keep the tables.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

from .kinds import Stored, as_label, as_number, present

SALTS = (20_260, 7_919)
ABSENT = -7_046_029_254_386_353_131  # hash of a missing cell
WIDE = 50  # columns
LARGE = 10**15  # longer whole numbers are not all doubles: they are hashed as the digits they are written with


def cell_hash(value: Column, stored: Stored, kind: str) -> Column:
    """Hash of one value, `ABSENT` where it is missing.

    Args:
        value: the column.
        stored: how it is stored.
        kind: what its own table's values make it (`kinds.kind_of`).
    """
    value = present(value, stored)
    number = as_number(value, stored, kind)
    if kind == "number":
        return F.when(number.isNotNull(), F.xxhash64(number)).otherwise(F.lit(ABSENT))
    label = as_label(value, stored, kind) if stored.kind != "other" else value.cast("string")
    text = F.when(label.isNotNull(), F.xxhash64(label)).otherwise(F.lit(ABSENT))
    return F.when(number.between(-LARGE, LARGE), F.xxhash64(number)).otherwise(text) if kind == "integer" else text


def content_row(columns: Mapping[str, Column], stored: Mapping[str, Stored], kinds: Mapping[str, str]) -> Column:
    """Hash of a row's cells, each bound to the name of its column; the order of columns does not matter.

    A wide table's cells are laid into one array for each type, so that the expression does not grow with the columns.

    Args:
        columns: values by name.
        stored: how each is stored.
        kinds: what its own table's values make it.
    """
    if len(columns) <= WIDE:
        hashes = [
            F.xxhash64(F.lit(_number_of(name)).cast("bigint"), cell_hash(c, stored[name], kinds[name]))
            for name, c in columns.items()
        ]
        return functools.reduce(lambda x, y: x.bitwiseXOR(y), hashes)
    alike: dict[tuple[Stored, str], list[str]] = {}
    for name in columns:
        alike.setdefault((stored[name], kinds[name]), []).append(name)
    return functools.reduce(
        lambda x, y: x.bitwiseXOR(y),
        (_array_hash({n: columns[n] for n in names}, *types) for types, names in alike.items()),
    )


def _array_hash(columns: Mapping[str, Column], stored: Stored, kind: str) -> Column:
    names = F.lit(np.array([_number_of(name) for name in columns], dtype=np.int64))

    def hashed(value: Column, place: Column) -> Column:
        return F.xxhash64(F.element_at(names, place + 1), cell_hash(value, stored, kind))

    cells = F.transform(F.array(*columns.values()), hashed)
    return F.aggregate(cells, F.lit(0).cast("bigint"), lambda x, y: x.bitwiseXOR(y))


def _number_of(name: str) -> int:
    """A 64-bit number that stands for a column's name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


def row_sums(cells: Sequence[Column]) -> list[Column]:
    """Aggregate columns for `combine`: sums over rows of the halves of two row hashes (so that no sum overflows).

    Args:
        cells: cells of a row in a fixed order, none of them null: xxhash64 would pass over a null.
    """
    sums = []
    for salt in SALTS:
        row = F.xxhash64(F.lit(salt), *cells)
        sums.append(F.sum(row.bitwiseAND(F.lit(0xFFFFFFFF))).alias(f"low_{salt}"))
        sums.append(F.sum(F.shiftright(row, 32)).alias(f"high_{salt}"))
    return sums


def combine(columns: Iterable[str], figures: Mapping[str, int | None], n: int) -> str:
    """The digest, 64 hexadecimal digits.

    Args:
        columns: names of the columns.
        figures: the sums of `row_sums`, among others.
        n: rows.
    """
    totals = [((figures[f"high_{s}"] or 0) * 2**32 + (figures[f"low_{s}"] or 0)) % 2**64 for s in SALTS]
    content = json.dumps([sorted(columns), n, totals], ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()
