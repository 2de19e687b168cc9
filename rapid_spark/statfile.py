"""Files of statistical packages (SPSS, Stata, SAS) as a pandas frame: labels of values as classes, user-missing missing.

They are read on the driver by pyreadstat, an optional extra: such files are written by one program and fit one machine.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from .config import ConfigError

READERS = {"sav": "read_sav", "dta": "read_dta", "sas7bdat": "read_sas7bdat", "xpt": "read_xport"}
SPOKEN = "SPSS (.sav), Stata (.dta), SAS (.sas7bdat, .xpt)"
WHOLE = 2.0**53  # up to here a double tells whole numbers apart


def read(path: Path, kind: str, encoding: str | None = None, value_labels: bool = True) -> pd.DataFrame:
    """All records of one file, in its order.

    These formats know one type of number; one that is whole throughout becomes a whole number, as in a CSV. User-missing
    values of SPSS and Stata are missing. Dates are dates, times of day text.

    Args:
        path: the file, on this machine's file system.
        kind: 'sav', 'dta', 'sas7bdat' or 'xpt'.
        encoding: character encoding; the one the file names when None.
        value_labels: put labels for codes, see `labelled`.

    Raises:
        ConfigError: no such file, pyreadstat is not installed, or the file cannot be read.
    """
    if not path.is_file():
        raise ConfigError(f"{path}: expected one file, as {kind} holds one table")
    reader = getattr(_library(path), READERS[kind])
    try:
        frame, meta = reader(str(path), **({"encoding": encoding} if encoding else {}))
    except Exception as error:  # the library has no common class; its texts may hold what is in the file
        raise ConfigError(
            f"{path} cannot be read as {kind} ({type(error).__name__}): the file is damaged, not what it is named, or in "
            "another encoding than it says (set encoding: for this table)"
        ) from None
    labels = meta.variable_value_labels if value_labels else {}
    names = list(meta.column_names)
    columns = [_column(frame.iloc[:, i], labels.get(name)) for i, name in enumerate(names)]
    return pd.concat(columns, axis=1, keys=names) if columns else pd.DataFrame()


def labelled(values: pd.Series, labels: Mapping[Any, str]) -> pd.Series:
    """The labels in place of codes, where every value that occurs has one; else the values as they are.

    A column with some labels only is a measurement with special codes (99 for "99 or older"), whose other values would
    lose their meaning. Codes with the same label stay apart: the code follows the label in brackets.
    """
    texts = {code: str(text).strip() for code, text in labels.items()}
    present = values.dropna()
    if not len(present) or not present.isin(list(texts)).all() or not all(texts[v] for v in present.unique()):
        return values
    often = pd.Series(list(texts.values())).value_counts()
    names = {code: text if often[text] == 1 else f"{text} ({_code(code)})" for code, text in texts.items()}
    return pd.Series([names[v] if v in names else None for v in values], index=values.index, dtype=object)


def _column(values: pd.Series, labels: Mapping[Any, str] | None) -> pd.Series:
    if labels:
        named = labelled(values, labels)
        if named is not values:
            return named
    if pd.api.types.is_float_dtype(values.dtype):
        return _whole(values)
    if values.dtype == object:
        return values.map(lambda v: v.isoformat() if isinstance(v, datetime.time) else v)
    return values


def _whole(values: pd.Series) -> pd.Series:
    present = values.dropna().to_numpy(dtype=float)
    if not len(present) or not np.isfinite(present).all():
        return values
    if (present != np.floor(present)).any() or (np.abs(present) > WHOLE).any():
        return values
    return values.astype("Int64")


def _code(code: Any) -> str:
    return str(int(code)) if isinstance(code, float) and code.is_integer() else str(code)


def _library(path: Path) -> ModuleType:
    try:
        import pyreadstat
    except ImportError:
        raise ConfigError(
            f"{path}: files of statistical packages need pyreadstat: pip install 'rapid-spark[statistical]', or save the "
            "table as Parquet or CSV"
        ) from None
    module: ModuleType = pyreadstat
    return module
