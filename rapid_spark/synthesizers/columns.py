"""Columns as integer codes into their sorted distinct values, and back in the type they came in."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

MISSING = -1

_ORDERED_OBJECTS = frozenset(
    "integer floating mixed-integer-float decimal date datetime datetime64 timedelta timedelta64 time".split()
)


@dataclass(frozen=True)
class Column:
    """The distinct values of one column, in increasing order.

    Attributes:
        name: the column's name.
        values: distinct values without missing ones; text in the order of its letters.
        dtype: the type to give back.
        ordered: whether the order means something (numbers, dates, ordered categories) or is only an order.
    """

    name: Hashable
    values: pd.Index
    dtype: Any
    ordered: bool

    @property
    def n_levels(self) -> int:
        """Number of distinct values, missing not counted."""
        return len(self.values)

    def decode(self, codes: np.ndarray) -> pd.Series:
        """The values that the codes stand for, as a series of the column's own type."""
        if (codes == MISSING).any():
            fill = getattr(self.dtype, "na_value", np.nan)
            taken: Any = pd.api.extensions.take(self.values, codes, allow_fill=True, fill_value=fill)
        else:
            taken = self.values.take(codes)
        return pd.Series(taken, name=self.name, dtype=self.dtype)


def encode(series: pd.Series) -> tuple[Column, np.ndarray]:
    """Find a column's distinct values and every row's code.

    Args:
        series: values of one type; NaN, None, NaT and pandas.NA are all missing.

    Returns:
        The column, and one int64 code a row: a position in `column.values`, or MISSING.

    Raises:
        ValueError: if the values cannot be told apart or put into an order, or one is infinite.
    """
    if types.is_float_dtype(series.dtype):
        # -0.0 and 0.0 are one value; which of them stands for it must not depend on the order of the rows
        series = series + 0.0
    try:
        codes, distinct = pd.factorize(series, use_na_sentinel=True)
        values = pd.Index(distinct)
        ordered = _is_ordered(str(series.name), series.dtype, values)
        order = _increasing(values) if ordered else _by_text(values)
    except TypeError as error:
        raise ValueError(
            f"column {str(series.name)!r} holds values that cannot be compared; give text, numbers or dates"
        ) from error
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order] = np.arange(len(order))
    place[MISSING] = MISSING
    return Column(series.name, values.take(order), series.dtype, ordered), place[codes]


def compact(column: Column, codes: np.ndarray) -> tuple[Column, np.ndarray]:
    """Leave out the values that no code stands for, and give the codes of those that stay."""
    used, place = np.unique(codes[codes != MISSING], return_inverse=True)
    kept = np.full(len(codes), MISSING, dtype=np.int64)
    kept[codes != MISSING] = place
    return replace(column, values=column.values.take(used)), kept


def _is_ordered(name: str, dtype: Any, values: pd.Index) -> bool:
    if isinstance(dtype, pd.CategoricalDtype):
        return bool(dtype.ordered)
    if types.is_bool_dtype(dtype):
        return False
    if types.is_complex_dtype(dtype):
        raise ValueError(
            f"column {name!r} holds complex numbers; give real and imaginary part as two columns"
        )
    if types.is_numeric_dtype(dtype):
        if not np.isfinite(values.to_numpy(dtype=float)).all():
            raise ValueError(f"column {name!r} holds infinite values; make them missing or give a number")
        return True
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return True
    return types.infer_dtype(values, skipna=True) in _ORDERED_OBJECTS


def _increasing(values: pd.Index) -> np.ndarray:
    if isinstance(values.dtype, pd.CategoricalDtype):
        return np.argsort(pd.Categorical(values).codes, kind="stable")
    return np.asarray(values.argsort())


def _by_text(values: pd.Index) -> np.ndarray:
    """Order by text, and by type where 1 and '1' are both values."""
    text = np.empty(len(values), dtype=object)
    text[:] = [(str(value), type(value).__name__) for value in values]
    return np.argsort(text, kind="stable")
