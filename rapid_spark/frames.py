"""A pandas frame as an Arrow table with the types Spark knows, so that dtypes of pandas make no difference."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

LONG = 2**63


def arrow_table(frame: pd.DataFrame, columns: Sequence[str], row_number: str) -> pa.Table:
    """The rows of `frame` under the names in `columns`, and each row's position 0, 1, .. in column `row_number`.

    The frame is read, never altered; its index is not looked at.
    """
    arrays = [arrow_array(frame.iloc[:, i]) for i in range(len(columns))]
    arrays.append(pa.array(range(len(frame)), pa.int64()))
    return pa.table(arrays, names=[*columns, row_number])


def arrow_array(series: pd.Series) -> pa.Array:
    """One column: NaN, NA, NaT and None are null; a category gives its values; mixed objects give text."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy()
        places = pa.array(codes.astype("int64"), mask=codes < 0)
        return arrow_array(pd.Series(series.cat.categories)).take(places)
    if isinstance(series.dtype, pd.SparseDtype):
        series = pd.Series(series.to_numpy())
    if isinstance(series.dtype, (pd.PeriodDtype, pd.IntervalDtype)):
        series = series.astype(object)
    if series.dtype == object:
        return _plain(_objects(series))
    return _plain(_one(pa.array(series, from_pandas=True)))


def _one(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _objects(series: pd.Series) -> pa.Array:
    values = [None if _missing(v) else v for v in series]
    kinds = {_kind(v) for v in values if v is not None}
    if kinds <= {"bool"} or kinds <= {"text"} or kinds <= {"date"} or kinds <= {"time"}:
        return pa.array(values, type=None if kinds else pa.string())
    if kinds <= {"date", "time"}:
        return pa.array([v if v is None or _kind(v) == "time" else pd.Timestamp(v) for v in values])
    if kinds == {"integer"}:
        if all(v is None or -LONG <= v < LONG for v in values):
            return pa.array([None if v is None else int(v) for v in values], pa.int64())
        if all(v is None or abs(v) < 10**38 for v in values):
            return pa.array([None if v is None else decimal.Decimal(int(v)) for v in values], pa.decimal128(38, 0))
    if kinds <= {"integer", "number"}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    if kinds == {"other"}:
        # lists, bytes and the like keep their type, so that a column that cannot be used is refused by it
        with contextlib.suppress(pa.ArrowException):
            array = pa.array(values)
            if not isinstance(array.type, pa.BaseExtensionType):
                return array
    return pa.array([None if v is None else _text(v) for v in values], pa.string())


def _missing(value: Any) -> bool:
    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))


def _kind(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, str):
        return "text"
    if isinstance(value, datetime.datetime):
        return "time"
    if isinstance(value, datetime.date):
        return "date"
    if isinstance(value, numbers.Integral):
        return "integer"
    if isinstance(value, (numbers.Real, decimal.Decimal)):
        return "number"
    return "other"


def _text(value: Any) -> str:
    """As a CSV file would show it, so that 3 and 3.0 among text are one value."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _plain(array: pa.Array) -> pa.Array:
    """The same values in a type Spark has."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pa.types.is_null(kind):
        return array.cast(pa.string())
    if pa.types.is_uint64(kind):
        try:
            return array.cast(pa.int64())
        except pa.ArrowInvalid:
            return array.cast(pa.decimal128(20, 0))
    if pa.types.is_integer(kind):
        return array.cast(pa.int64())
    if pa.types.is_float16(kind):
        return array.cast(pa.float32())
    if pa.types.is_timestamp(kind):
        return array.cast(pa.timestamp("us", kind.tz), safe=False)
    if pa.types.is_date64(kind):
        return array.cast(pa.date32())
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.string())
    if pa.types.is_decimal(kind) and not pa.types.is_decimal128(kind):
        return array.cast(pa.decimal128(38, kind.scale))
    return array
