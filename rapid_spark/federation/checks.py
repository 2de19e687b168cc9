"""What a file's rows must be before one of them is written: of one run, in the tables' types and ranges, each once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from rapid_spark.config import ConfigError, check_identifier
from rapid_spark.publishing import COMBINATION, COMPARED, TABLES
from rapid_spark.tables import arrow, tables

from .document import Document

KEYS = {
    "risk_summary": COMBINATION,
    "risk_curve": (*COMBINATION, "threshold"),
    "risk_classes": (*COMBINATION, "class_label"),
    "risk_subgroups": (*COMBINATION, "columns", "level"),
    "risk_attribution": (*COMBINATION, "term", "kind"),
    "audit_comparison": ("registry", "release_id", *COMPARED),
}
SHARES = ("rapid", "ci_low", "ci_high", "baseline_rate", "prevalence", "accuracy", "holdout_rate", "claims_correct",
          "standardised", "coverage")  # fmt: skip
WORDS = {
    "status": ("ok", "undefined", "failed"),
    "scored_on": ("original", "holdout"),
    "weighting": ("none", "survey"),
    "verdict": ("pass", "review", "fail", "not_evaluated"),
}


def check(document: Document) -> list[tuple[str, str]]:
    """Hold a document's rows to the contract.

    Returns:
        Registry and release of the run, each pair once.

    Raises:
        ConfigError: with every kind of fault found; no value of the file is repeated but names of tables and columns.
    """
    faults = list(_faults(document))
    if faults:
        raise ConfigError("the file does not hold what an export holds:\n" + "\n".join(f"- {f}" for f in faults))
    return [(item["registry"], item["release_id"]) for item in document.manifest["releases"]]


def _faults(document: Document) -> Iterator[str]:
    manifest = document.manifest
    releases = manifest.get("releases")
    listed = [item for item in releases if isinstance(item, Mapping)] if isinstance(releases, list) else []
    ids = [manifest.get("run_id"), *(item.get(k) for item in listed for k in ("registry", "release_id"))]
    if not listed or not all(_is_id(value) for value in ids):
        yield "manifest: run_id, registry and release_id are not all names of [A-Za-z0-9._-]{1,128}"
        return
    places = {(item["registry"], item["release_id"]) for item in listed}
    if "risk_summary" not in document.tables:
        yield "risk_summary is missing"
    for name, frame in document.tables.items():
        if name not in TABLES:
            yield f"{name} is never exported"
            continue
        yield from _table_faults(name, frame, manifest["run_id"], places)


def _table_faults(name: str, frame: pd.DataFrame, run_id: str, places: set[tuple[str, str]]) -> Iterator[str]:
    table = tables()[name]
    needed = [c for c, column in table.columns.items() if not column.nullable]
    lacking = [c for c in needed if c not in frame or frame[c].isna().any()]
    if lacking:
        yield f"{name}: {', '.join(lacking)} must not be null"
        return
    try:
        arrow(table, frame)
    except ValueError as error:
        yield str(error)
        return
    rows = frame.to_dict("records")
    if any(row["run_id"] != run_id or (row["registry"], row["release_id"]) not in places for row in rows):
        yield f"{name}: rows of another run, registry or release than the manifest names"
    keys = [repr([row.get(k) for k in KEYS[name]]) for row in rows] if name in KEYS else []
    if len(set(keys)) != len(keys):
        yield f"{name}: a combination occurs twice"
    for column, words in WORDS.items():
        if column in frame and not set(frame[column]) <= set(words):
            yield f"{name}.{column}: other values than {', '.join(words)}"
    for column in SHARES if name != "risk_attribution" else ():  # there, ends of intervals of coefficients
        if any(_given(row.get(column)) and not 0 <= row[column] <= 1 for row in rows):
            yield f"{name}.{column}: not between 0 and 1"
    if any(_given(row.get("n_at_risk")) and _given(row.get("n")) and not 0 <= row["n_at_risk"] <= row["n"] for row in rows):
        yield f"{name}: more at risk than there are"
    if any(row.get("suppressed") and _given(row.get("n")) for row in rows):
        yield f"{name}: a suppressed cell has figures"


def _is_id(value: Any) -> bool:
    try:
        return isinstance(value, str) and check_identifier(value) == value
    except ValueError:
        return False


def _given(value: Any) -> bool:
    return value is not None and value == value
