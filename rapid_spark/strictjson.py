"""Results as strict JSON: null in place of NaN, infinities and every other kind of missing value."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def strict(value: Any) -> Any:
    """A value as strict JSON has it: missing and infinite as null, dates as text, NumPy and decimals as numbers."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return {str(k): strict(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [strict(v) for v in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return strict(float(value))
    if hasattr(value, "asDict"):  # a row of Spark
        return strict(value.asDict())
    if hasattr(value, "tolist"):  # NumPy
        return strict(value.tolist())
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value.isoformat() if isinstance(value, (date, datetime)) else str(value)


def dumps(document: Any) -> str:
    """One strict JSON document on one line."""
    return json.dumps(strict(document), ensure_ascii=False, allow_nan=False)
