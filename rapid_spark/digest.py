"""A digest of a table's content that does not depend on the order of rows and columns, nor on the file format.

Each cell becomes a 64-bit hash of its value (3 and 3.0, TRUE and true are one value, as in `kinds`); a row two hashes of
its cells in the order of the column names; the table the sums of these over all rows. SHA-256 binds the sums to the
column names and the number of rows. It tells tables apart, it does not hide them: keep it as you keep the tables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from .kinds import BOOLEAN, DECIMAL, INFINITE, INTEGER, NAN, Stored, as_double, stored_text

SALTS = (20_260, 7_919)
ABSENT = -7_046_029_254_386_353_131  # hash of a missing cell; xxhash64 would pass over a null
LARGE = 10**15


def cell_hash(value: Column, stored: Stored, text_class: Column | None = None) -> Column:
    """Hash of one value, null where it is missing.

    Args:
        value: the column, null where it is missing.
        stored: how it is stored.
        text_class: class of each value, for strings.
    """
    if stored.kind == "string":
        assert text_class is not None
        return _text_hash(value, text_class)
    if stored.kind in ("float", "double") or (stored.kind == "decimal" and stored.scale):
        return _number_hash(as_double(value, stored))
    if stored.kind in ("integer", "decimal"):
        # Longer ones would not all be doubles, so they are hashed as the digits they are written with.
        return F.when(value.between(-LARGE, LARGE), F.xxhash64(value.cast("double"))).when(
            value.isNotNull(), F.xxhash64(value.cast("string"))
        )
    return F.when(value.isNotNull(), F.xxhash64(stored_text(value, stored)))


def _text_hash(value: Column, text_class: Column) -> Column:
    trimmed = F.trim(value)
    number = trimmed.try_cast("double")
    long = (text_class == INTEGER) & (F.abs(number) > LARGE)
    is_number = text_class.isin(INTEGER, DECIMAL, INFINITE)
    text = F.when(text_class == BOOLEAN, F.lower(trimmed)).otherwise(value)
    return F.when(is_number & ~long, F.xxhash64(number + 0.0)).when(text_class != NAN, F.xxhash64(text))


def _number_hash(number: Column) -> Column:
    return F.when(~F.isnan(number), F.xxhash64(number + 0.0))


def row_sums(hashes: Mapping[str, Column]) -> dict[str, Column]:
    """Aggregate columns for `combine`: sums over rows of the halves of two row hashes (halves, so that none overflows).

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


def combine(columns: Sequence[str], sums: Mapping[str, int | None], n: int) -> str:
    """The digest, 64 hexadecimal digits."""
    totals = [((sums[f"high_{s}"] or 0) * 2**32 + (sums[f"low_{s}"] or 0)) % 2**64 for s in SALTS]
    content = json.dumps([sorted(columns), n, totals], ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()
