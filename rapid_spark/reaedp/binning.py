"""Bins of values in a pandas frame: the driver's counterpart of counting by Spark, for synthetic records."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapid_spark.reaedp.domain import Categories, Domain, Table, text_of

Bins = npt.NDArray[np.int64]
OUTSIDE = -1


def bins_of(values: pd.Series, domain: Domain) -> Bins:
    """The number of each value's bin, -1 outside of the domain."""
    missing = values.isna().to_numpy()
    if isinstance(domain, Categories):
        place = {text_of(level): i for i, level in enumerate(domain.levels)}
        found = [
            OUTSIDE if absent else place.get(text_of(_plain(v)), OUTSIDE) for v, absent in zip(values, missing, strict=True)
        ]
        result = np.array(found, dtype=np.int64)
    else:
        x = pd.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        edges = np.array(domain.edges)
        result = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
        result = np.where((x >= edges[0]) & (x <= edges[-1]), result, OUTSIDE)
    return np.where(missing, domain.size - 1 if domain.missing else OUTSIDE, result).astype(np.int64)


def count(frame: pd.DataFrame, table: Table) -> Bins:
    """Dense counts of a table, of the records inside every domain of its columns."""
    bins = np.stack([bins_of(frame[d.column], d) for d in table.domains], axis=1)
    known = bins[(bins >= 0).all(axis=1)]
    return np.bincount(np.ravel_multi_index(list(known.T), table.shape), minlength=table.cells).astype(np.int64)


def _plain(value: object) -> str | int | float | bool:
    return value.item() if hasattr(value, "item") else value  # type: ignore[return-value]
