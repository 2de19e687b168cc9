"""What MLflow is told of an evaluation: settings as parameters, tables as data sets, figures as metrics. Aggregates only."""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import re
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pandas as pd
from pydantic import BaseModel

from .config import Config
from .results import Assessment
from .strictjson import strict
from .suite import rows_of, suite

LONGEST_PARAMETER = 500  # older backends take no more; longer lists become count, digest and an artifact
METRICS = (
    "rapid",
    "ci_low",
    "ci_high",
    "baseline_rate",
    "excess",
    "claims_correct",
    "accuracy",
    "macro_f1",
    "log_loss",
    "auc",
    "mae",
    "rmse",
    "r2",
    "majority_rate",
    "n",
    "n_undefined",
    "n_at_risk",
    "n_train",
    "fit_seconds",
    "score_seconds",
)
LIBRARIES = ("pyspark", "delta-spark", "pandas", "numpy", "scikit-learn", "pyarrow", "mlflow-skinny", "rapid-spark")


def redact(uri: str) -> str:
    """A URI without user, password and query."""
    parts = urlsplit(uri)
    if "@" not in parts.netloc:
        return uri
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def library_versions() -> dict[str, str]:
    """Versions of Python and of the libraries that decide the figures."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def parameters(config: Config) -> tuple[dict[str, str], dict[str, Any]]:
    """Settings as MLflow parameters: short ones as text, and long ones whose parameter is count and digest.

    Returns:
        Parameters by path, and the full values of those that were too long.
    """
    short: dict[str, str] = {}
    long: dict[str, Any] = {}
    for path, value in _leaves(config, ""):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(text) > LONGEST_PARAMETER:
            long[path] = value
            count = f"{len(value)} values, " if isinstance(value, (list, dict)) else ""
            text = f"{count}sha256 {hashlib.sha256(text.encode()).hexdigest()}"
        short[path] = text
    return short, long


def _leaves(model: BaseModel, prefix: str) -> Iterator[tuple[str, Any]]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, f"{prefix}{name}.")
        elif value is not None and value != () and value != {}:
            value = model.model_dump(mode="json", exclude_none=True)[name]
            yield f"{prefix}{name}", redact(value) if prefix == "tracking." and name == "uri" else value


def datasets(inputs: Mapping[str, Any]) -> list[Any]:
    """Tables as MLflow datasets: name, used columns with their kind, and counts; no rows."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    columns = [{"name": k, "type": v, "required": False} for k, v in inputs.get("columns", {}).items()]
    schema = json.dumps({"mlflow_colspec": columns}, ensure_ascii=False)
    if len(schema) > 60_000:
        schema = json.dumps({"columns": len(columns), "sha256": hashlib.sha256(schema.encode()).hexdigest()})
    tables = [("original", inputs["original"])]
    tables += [(f"release {r}", {"digest": inputs.get("release_digest"), **t}) for r, t in inputs["releases"].items()]
    tables += [("holdout", inputs["holdout"])] if inputs.get("holdout") else []
    found = []
    for context, table in tables:
        source = json.dumps({"name": table["name"], "version": table["version"]}, ensure_ascii=False)
        # a digest is short in MLflow, so the context makes two tables of one digest two data sets
        digest = hashlib.sha256(f"{context} {table.get('digest')}".encode()).hexdigest()[:32]
        found.append(
            DatasetInput(
                Dataset(
                    str(table["name"])[-400:], digest, "rapid_spark", source, schema, json.dumps({"num_rows": table["rows"]})
                ),
                [InputTag("mlflow.data.context", context)],
            )
        )
    return found


def release_metrics(assessment: Assessment) -> dict[str, Any]:
    """Figures of a release: of each combination as `attribute/.../attacker/figure`, and of the suite."""
    summary = assessment.summary
    varying = [c for c in ("qi_set", "measure", "replicate") if summary[c].nunique() > 1]
    figures: dict[str, Any] = {}
    for row in rows_of(summary[summary["status"] == "ok"]):
        name = "/".join(key_part(row[c]) for c in ("sensitive_attribute", *varying, "attacker"))
        name += "/survey" if row["weighting"] == "survey" else ""
        figures |= {f"{name}/{figure}": row[figure] for figure in METRICS}
    for row in rows_of(suite(summary)):
        name = "/".join(key_part(row[c]) for c in ("sensitive_attribute", *(c for c in varying if c != "replicate")))
        figures |= {f"{name}/{c}": row[c] for c in ("rapid_max", "rapid_mean", "rapid_sd", "rapid_pooled")}
    return figures


def key_part(value: Any) -> str:
    """Text as a part of an MLflow key; what had to be altered is told apart by its digest."""
    text = str(value)
    allowed = re.sub(r"[^\w. -]", "_", text)[:60]
    return allowed if allowed == text else f"{allowed}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """A result table with values that JSON has."""
    return pd.DataFrame({c: pd.Series([strict(v) for v in frame[c]], dtype=object) for c in frame.columns})
