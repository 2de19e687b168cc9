"""Adapter for the single-table generators of SDV (the Synthetic Data Vault), an optional extra.

SDV itself is not part of this package; it has a licence of its own, and CTGAN and TVAE need PyTorch on top.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from rapid_spark.synthesizers.protocol import Seed

_SUFFIX = "Synthesizer"
_TABLE = "table"
_DATES = ("date", "datetime", "datetime64")


class SdvSynthesizer:
    """A generator of `sdv.single_table`, such as GaussianCopulaSynthesizer, behind the protocol.

    Every column is taken as what its type says (number, date, boolean, category): SDV's own detection may take a
    column for personal data and replace it by invented values, which would not be what is to be judged.

    Example:
        >>> synthesizer = SdvSynthesizer("GaussianCopula", default_distribution="norm")
        >>> release = synthesizer.fit(original).sample(1000, seed=1)
    """

    def __init__(self, model: str = "GaussianCopula", **options: Any) -> None:
        """Set the generator.

        Args:
            model: a class of `sdv.single_table`, with or without 'Synthesizer' at its end.
            options: as the class takes them, besides the metadata.

        Raises:
            ValueError: SDV is not installed, there is no such class, or it does not take an option.
        """
        self.model = model if model.endswith(_SUFFIX) else f"{model}{_SUFFIX}"
        self.options = options
        self._class = _load(self.model)
        self._fitted: Any = None
        self._frame: pd.DataFrame | None = None

    def fit(self, frame: pd.DataFrame) -> SdvSynthesizer:
        """Learn from the original, which is not altered.

        Raises:
            ValueError: if the frame is empty, or the generator refuses an option or cannot learn from the frame.
        """
        if frame.empty:
            raise ValueError(f"the original has {len(frame)} rows and {frame.shape[1]} columns; nothing to learn from")
        metadata = importlib.import_module("sdv.metadata").Metadata.load_from_dict(_metadata(frame))
        try:
            self._fitted = self._class(metadata, **self.options)
        except TypeError as error:
            raise ValueError(f"{self.model} of SDV: {error}") from None
        self._frame = frame.iloc[:0]
        try:
            self._fitted.fit({_TABLE: _simple(frame)})
        except Exception as error:  # of SDV or of a library under it; the text may quote values
            raise ValueError(f"{self.model} of SDV cannot learn from this table ({type(error).__name__})") from None
        return self

    def sample(self, n: int, seed: Seed) -> pd.DataFrame:
        """Draw n records in the original's columns and types.

        Raises:
            ValueError: if n is below 1 or `fit` was not called.
        """
        if n < 1:
            raise ValueError(f"n is {n}; it must be at least 1")
        if self._fitted is None or self._frame is None:
            raise ValueError("this synthesizer has learned nothing yet; call fit with the original first")
        number = int(np.random.SeedSequence(seed).generate_state(1)[0])
        # SDV goes on from where the last sample ended: back to its start, then to our seed
        self._fitted.reset_sampling()
        self._fitted._set_random_state(number)
        kept = np.random.get_state()
        np.random.seed(number)
        try:
            found = self._fitted.sample(num_rows=n)[_TABLE]
        finally:
            np.random.set_state(kept)
        columns = [_typed(found[str(name)], self._frame[name]) for name in self._frame.columns]
        return pd.concat(columns, axis=1).reset_index(drop=True)


def _load(model: str) -> Any:
    try:
        module = importlib.import_module("sdv.single_table")
    except ImportError:
        raise ValueError("SDV is not installed: pip install 'rapid-spark[sdv]'") from None
    found = getattr(module, model, None)
    if found is None:
        known = sorted(name.removesuffix(_SUFFIX) for name in dir(module) if name.endswith(_SUFFIX))
        near = difflib.get_close_matches(model.removesuffix(_SUFFIX), known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"SDV has no single-table generator {model!r}.{hint} There are {', '.join(known)}")
    return found


def _metadata(frame: pd.DataFrame) -> dict[str, Any]:
    columns = {str(name): {"sdtype": _kind(frame[name])} for name in frame.columns}
    return {"METADATA_SPEC_VERSION": "V1", "tables": {_TABLE: {"columns": columns}}, "relationships": []}


def _kind(series: pd.Series) -> str:
    if types.is_bool_dtype(series.dtype):
        return "boolean"
    if types.is_numeric_dtype(series.dtype):
        return "numerical"
    if types.is_datetime64_any_dtype(series.dtype) or _is_dates(series):
        return "datetime"
    return "categorical"


def _is_dates(series: pd.Series) -> bool:
    return series.dtype == object and types.infer_dtype(series, skipna=True) in _DATES


def _simple(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame under text names and in plain types: no categories, nullable or date objects."""
    columns = {}
    for name in frame.columns:
        series = frame[name]
        if _is_dates(series):
            series = pd.to_datetime(series)
        elif types.is_bool_dtype(series.dtype) or isinstance(series.dtype, pd.CategoricalDtype):
            series = series.astype(object)
        elif types.is_extension_array_dtype(series.dtype) and types.is_numeric_dtype(series.dtype):
            series = series.astype("float64")
        elif not (types.is_numeric_dtype(series.dtype) or types.is_datetime64_any_dtype(series.dtype)):
            series = series.astype(object)
        columns[str(name)] = series.where(series.notna(), np.nan) if series.dtype == object else series
    return pd.DataFrame(columns).reset_index(drop=True)


def _typed(found: pd.Series, like: pd.Series) -> pd.Series:
    """A column of the release in the original's type."""
    if types.is_integer_dtype(like.dtype) and not types.is_bool_dtype(like.dtype):
        found = found.round()
    elif types.is_bool_dtype(like.dtype):
        found = found.astype("boolean")
    if like.dtype == object and types.is_datetime64_any_dtype(found.dtype):
        return pd.Series(found.dt.date, name=like.name)
    return pd.Series(found.astype(like.dtype), name=like.name)
