"""A recode as a Spark column: what becomes of one value."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from ..config import Bands, Mask, Recode
from ..granularity import cut_labels
from ..kinds import Stored, as_label, as_number, present

DIGITS = 9  # of a position among bands: 0.3 / 0.1 is the begin of the fourth band of width 0.1, not the third's end


def recoded(
    raw: Column, stored: Stored, kind: str, recode: Recode, codes: Sequence[str | int | float] = (),
    mapped: Column | None = None,
) -> Column:
    """The recoded value: a double or a text; null where the value is missing, suppressed, or has no place.

    Args:
        raw: the value as it was found.
        stored: how it is stored.
        kind: what the column holds (`kinds.kind_of`).
        recode: what is done.
        codes: declared codes of missing values.
        mapped: of a hierarchy, the level that its file gives (null where it has none).
    """
    value = present(raw, stored, (*codes, *recode.suppressed))
    if recode.for_numbers:
        return _number(as_number(value, stored, kind), stored, kind, recode)
    label = as_label(value, stored, kind)
    if recode.mask is not None:
        return masked(label, recode.mask)
    if recode.merge:
        other = label if recode.other is None else F.lit(recode.other)
        found = F.when(label.isNull(), F.lit(None).cast("string"))
        for new, old in recode.merge.items():
            found = found.when(label.isin([_label_of(level) for level in old]), F.lit(new))
        return found.otherwise(other)
    if mapped is not None:
        kept = mapped if recode.other is None else F.coalesce(mapped, F.lit(recode.other))
        return F.when(label.isNotNull(), kept)
    return value


def _label_of(level: str | int | float | bool) -> str:
    """A level of the configuration as labels show it (`kinds.as_label`): 3.0 is 3, true is true."""
    if isinstance(level, bool):
        return str(level).lower()
    return str(int(level)) if isinstance(level, float) and level.is_integer() else str(level).strip()


def _number(x: Column, stored: Stored, kind: str, recode: Recode) -> Column:
    number = x
    if recode.bottom is not None:
        number = F.greatest(number, F.lit(recode.bottom)) if recode.bottom_label is None else number
    if recode.top is not None:
        number = F.least(number, F.lit(recode.top)) if recode.top_label is None else number
    number = F.when(x.isNotNull(), number)  # greatest and least pass over a null
    if recode.round is not None:
        number = F.floor(F.round(number / recode.round, DIGITS) + 0.5) * F.lit(recode.round)
    if recode.bands is not None:
        return banded(number, recode.bands)
    if recode.top_label is None and recode.bottom_label is None:
        return number
    text = F.when(x.isNull(), F.lit(None).cast("string"))
    if recode.top_label is not None:
        text = text.when(x >= F.lit(recode.top), F.lit(recode.top_label))
    if recode.bottom_label is not None:
        text = text.when(x <= F.lit(recode.bottom), F.lit(recode.bottom_label))
    return text.otherwise(number_text(number))


def banded(x: Column, bands: Bands) -> Column:
    """The band of a number: its label, or its middle or lowest number."""
    if bands.width is None:
        return _between_cuts(x, bands)
    place = F.floor(F.round((x - F.lit(bands.origin)) / F.lit(bands.width), DIGITS))
    low = F.round(place * F.lit(bands.width) + F.lit(bands.origin), DIGITS)
    if bands.numeric:
        return low + (bands.width / 2 if bands.style == "midpoint" else 0.0)
    last = F.round(low + F.lit(bands.width - 1 if bands.style == "range" else bands.width), DIGITS)
    if bands.style == "range":
        return F.concat(number_text(low), F.lit("-"), number_text(last))
    return F.concat(F.lit("["), number_text(low), F.lit(","), number_text(last), F.lit(")"))


def _between_cuts(x: Column, bands: Bands) -> Column:
    labels = bands.labels or cut_labels(bands.cuts, bands.style, bands.closed)
    found = F.when(x.isNull(), F.lit(None).cast("string"))
    for cut, label in zip(bands.cuts, labels, strict=False):
        found = found.when(x < F.lit(cut) if bands.closed == "left" else x <= F.lit(cut), F.lit(label))
    return found.otherwise(F.lit(labels[-1]))


def number_text(x: Column) -> Column:
    """A number as labels show it: whole ones without decimals."""
    whole = (x == F.floor(x)) & (F.abs(x) < 1e15)
    return F.when(whole, x.cast("bigint").cast("string")).otherwise(x.cast("string"))


def masked(label: Column, mask: Mask) -> Column:
    """A code of which some characters are kept; a shorter one stays as it is."""
    hidden = F.length(label) - mask.keep
    kept = F.right(label, F.lit(mask.keep)) if mask.end else F.left(label, F.lit(mask.keep))
    filled = F.repeat(F.lit(mask.character), hidden) if mask.fill else F.lit(mask.character)
    both = F.concat(filled, kept) if mask.end else F.concat(kept, filled)
    return F.when(hidden > 0, both).otherwise(label)


def is_suppressed(raw: Column, stored: Stored, recode: Recode) -> Column:
    """Whether a cell holds one of the markers."""
    there = present(raw, stored)
    return there.isNotNull() & present(raw, stored, recode.suppressed).isNull()


def labels_in_order(bands: Bands) -> tuple[str, ...]:
    """Labels of the bands between cuts, the lowest first."""
    return bands.labels or cut_labels(bands.cuts, bands.style, bands.closed)


