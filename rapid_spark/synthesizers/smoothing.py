"""Numbers and dates that are near to values of the original instead of equal to them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from pandas.api import types

from rapid_spark.synthesizers.columns import MISSING, Column

_DECIMALS = 6


def smooth(
    column: Column, codes: np.ndarray, counts: np.ndarray, width: int, rng: np.random.Generator
) -> pd.Series:
    """Move every value to a random place among the `width` records below and above it.

    The column's values are laid out by size, one place for every record of the original. A drawn value starts
    at one of its own places, moves by a uniform distance of at most `width` places, turned back at either
    end, and becomes the linear interpolation between the neighbouring places. So the distribution and the
    range stay, and a value that more than `width` records share is mostly kept. Results are rounded to the
    whole numbers, decimals or days that the column is given in.

    Args:
        column: numbers, datetimes or timedeltas; any other kind is returned as it is.
        codes: the drawn values.
        counts: records of the original by code.
        width: largest move in records, at least 1.
        rng: where the moves come from; it is used up equally whatever the column's kind.

    Returns:
        The values, in the column's own type.
    """
    moves = rng.random((2, len(codes)))
    drawn = column.decode(codes)
    present = codes != MISSING
    if not (_is_smoothable(column) and present.any()):
        return drawn
    ends = np.cumsum(counts)
    starts = ends - counts
    some = codes[present]
    place = starts[some] + moves[0, present] * counts[some] + (2 * moves[1, present] - 1) * width
    n = float(ends[-1])
    place = n - np.abs(n - np.abs(place) % (2 * n))
    numbers = _numbers(column.values)
    knots = np.stack([starts + 0.5, ends - 0.5], axis=1).ravel()
    # relative to the smallest value, so that nanoseconds since 1970 keep their digits
    offsets = np.interp(place, knots, np.repeat((numbers - numbers[0]).astype(float), 2))
    drawn.iloc[np.flatnonzero(present)] = pd.Series(_on_grid(offsets, numbers)).astype(column.dtype).array
    return drawn


def _is_smoothable(column: Column) -> bool:
    if not column.ordered or isinstance(column.dtype, pd.CategoricalDtype):
        return False
    return isinstance(column.values, pd.DatetimeIndex | pd.TimedeltaIndex) or types.is_numeric_dtype(
        column.dtype
    )


def _numbers(values: pd.Index) -> np.ndarray:
    if isinstance(values, pd.DatetimeIndex | pd.TimedeltaIndex):
        return np.asarray(values.asi8)
    return values.to_numpy(dtype=float if types.is_float_dtype(values.dtype) else "int64")


def _on_grid(offsets: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Offsets from the smallest number, as numbers on the grid that all of them lie on."""
    if numbers.dtype.kind == "i":
        step = max(int(np.gcd.reduce(numbers - numbers[0])), 1)
        return numbers[0] + np.rint(offsets / step).astype("int64") * step
    values = numbers[0] + offsets
    for decimals in range(_DECIMALS + 1):
        if (numbers.round(decimals) == numbers).all():
            return values.round(decimals)
    return values
