"""Rows of result tables as dictionaries, and the figures that several tables share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from .rule import Rule

COMBINATION = (
    "run_id", "registry", "release_id", "replicate", "scored_on", "qi_set", "sensitive_attribute", "attacker", "measure",
    "weighting",
)
Kept = Mapping[tuple[Any, ...], dict[str, Any]]


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in COMBINATION)


def grouped(rows: Iterable[Any], key: Any) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def clear(row: dict[str, Any], names: Iterable[str]) -> None:
    for name in names:
        if name in row:
            row[name] = None


def digits(value: Any, digits: int) -> Any:
    return None if value is None else float(f"{value:.{digits}g}")


def plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dictionaries, every missing value as None, lists as lists."""
    return [{str(k): _value(v) for k, v in row.items()} for row in frame.to_dict("records")]


def _value(value: Any) -> Any:
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_value(v) for v in value]
    if value is None or value is pd.NaT or (isinstance(value, float) and math.isnan(value)) or value is pd.NA:
        return None
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime()
    return value.item() if isinstance(value, np.generic) else value


def frame_like(rows: list[dict[str, Any]], like: pd.DataFrame) -> pd.DataFrame:
    columns = [str(c) for c in like.columns]
    return pd.DataFrame([{c: row.get(c) for c in columns} for row in rows], columns=columns, dtype=object)


def rates(out: dict[str, Any], n: int, hits: int | None, rule: Rule) -> None:
    """n, n_at_risk, rapid and its interval, rounded together."""
    if not rule.rounding:
        return
    out["n"] = rule.count(n)
    if hits is None:
        return
    out["n_at_risk"] = rule.count(hits)
    out["rapid"] = out["n_at_risk"] / out["n"]
    for name, up in (("ci_low", False), ("ci_high", True)):
        if out.get(name) is not None:
            out[name] = rule.bound(out[name], n, up)


def claims(out: dict[str, Any], rule: Rule) -> None:
    claims, correct = out.get("n_confident_claims"), out.get("claims_correct")
    if claims is None:
        return
    # Claims that are right are the records at risk, or nearly: with that count known, their number tells the share.
    if rule.is_small(claims) or (claims and correct is not None and rule.hides(claims, round(correct * claims))):
        clear(out, ("n_confident_claims", "claims_correct"))
        return
    if correct is not None:
        out["claims_correct"] = rule.share(correct, claims)
    out["n_confident_claims"] = rule.count(claims)
