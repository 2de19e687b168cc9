"""A digest of a table's content that does not depend on the order of rows and columns, nor on the file format.

Each cell becomes a 64-bit hash of its value (3 and 3.0, TRUE and true are one value, as in `kinds`); a row two hashes
of its cells in the order of the column names; the table the sums of these over all rows. SHA-256 binds the sums to the
column names and the number of rows. It tells tables apart, it does not hide them: keep it as you keep the tables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from .kinds import Stored, as_label, as_number

SALTS = (20_260, 7_919)
ABSENT = -7_046_029_254_386_353_131  # hash of a missing cell; xxhash64 would pass over a null
LARGE = 10**15  # longer whole numbers are not all doubles: they are hashed as the digits they are written with


def cell_hash(value: Column, stored: Stored, kind: str) -> Column:
    """Hash of one value, null where it is missing.

    Args:
        value: the column, null where it is missing (`kinds.present`).
        stored: how it is stored.
        kind: what its own table's values make it (`kinds.kind_of`).
    """
    number = as_number(value, stored, kind)
    if kind == "number":
        return F.when(number.isNotNull(), F.xxhash64(number))
    label = as_label(value, stored, kind) if stored.kind != "other" else value.cast("string")
    text = F.when(label.isNotNull(), F.xxhash64(label))
    return F.when(number.between(-LARGE, LARGE), F.xxhash64(number)).otherwise(text) if kind == "integer" else text


def value_hash(column: str) -> Column:
    """Hash of a column that is normalised already."""
    return F.when(F.col(column).isNotNull(), F.xxhash64(column))


def row_sums(hashes: Mapping[str, Column]) -> dict[str, Column]:
    """Aggregate columns for `combine`: sums over rows of the halves of two row hashes (so that no sum overflows).

    Args:
        hashes: cell hash by column name.
    """
    cells = [F.coalesce(hashes[name], F.lit(ABSENT)) for name in sorted(hashes)]
    sums = {}
    for salt in SALTS:
        row = F.xxhash64(F.lit(salt), *cells)
        sums[f"low_{salt}"] = F.sum(row.bitwiseAND(F.lit(0xFFFFFFFF)))
        sums[f"high_{salt}"] = F.sum(F.shiftright(row, 32))
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
