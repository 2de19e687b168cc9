"""Fit attackers as Spark tasks: independent combinations side by side, large forests by groups of trees."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from . import attackers
from .scoring import ship

WAVE = 64  # tasks whose results are on the driver at once
SCHEMA = "task int, fitted binary, kind string, reason string, seconds double"


@dataclass(frozen=True)
class Request:
    """One fit: everything `attackers.fit` takes but the rows.

    Attributes:
        replicate: whose rows to train on.
    """

    name: str
    parameters: Mapping[str, Any]
    replicate: int
    features: tuple[attackers.Feature, ...]
    target: str
    target_type: str
    seed: int
    allow_code: bool


@dataclass(frozen=True)
class Answer:
    """What came of a request: an attacker, or why there is none.

    Attributes:
        fitted: None where it broke.
        error: AttackerError where the user's input is at fault, otherwise a RuntimeError that names the kind.
        seconds: of all its tasks together.
    """

    fitted: attackers.Fitted | None
    error: Exception | None
    seconds: float


def fit_all(
    spark: SparkSession, requests: Sequence[Request], rows: Mapping[tuple[int, str], pd.DataFrame]
) -> Iterator[Answer]:
    """Answers in the order of the requests; the release travels once per worker.

    One Spark job per wave of tasks, no shuffle. The figures do not depend on the number of workers: groups of trees
    and their seeds are fixed by the request.

    Args:
        spark: session.
        requests: fits.
        rows: training rows by replicate and target.
    """
    parts = [(i, parameters, seed) for i, r in enumerate(requests)
             for parameters, seed in attackers.groups(r.name, r.parameters, r.seed)]  # fmt: skip
    carrier = ship(spark, (dict(rows), list(requests), parts))

    def work(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        whole: Any = carrier.load()
        shipped, asked, tasks = whole
        for batch in batches:
            for number in batch["task"]:
                yield pd.DataFrame([_fit(number, shipped, asked, tasks)])

    open_parts: dict[int, list[attackers.Fitted]] = {}
    seconds: dict[int, float] = {}
    failed: dict[int, Exception] = {}
    done = 0
    for first in range(0, len(parts), WAVE):
        last = min(first + WAVE, len(parts))
        numbers = spark.range(first, last, 1, last - first).select(F.col("id").cast("int").alias("task"))
        found = numbers.mapInPandas(work, SCHEMA).toPandas().sort_values("task")
        answers: list[Any] = list(found.itertuples())
        for row in answers:
            request = parts[int(row.task)][0]
            seconds[request] = seconds.get(request, 0.0) + float(row.seconds)
            if row.fitted is None:
                error = attackers.AttackerError if row.kind == "AttackerError" else RuntimeError
                failed.setdefault(request, error(row.reason or row.kind))
            else:
                open_parts.setdefault(request, []).append(pickle.loads(row.fitted))
        complete = parts[last][0] if last < len(parts) else len(requests)
        for request in range(done, complete):
            mine = open_parts.pop(request, [])
            error_of = failed.get(request)
            yield Answer(None if error_of else attackers.merged(mine), error_of, seconds.get(request, 0.0))
        done = complete


def _fit(
    number: int, rows: Mapping[tuple[int, str], pd.DataFrame], requests: Sequence[Request],
    parts: Sequence[tuple[int, dict[str, Any], int]],
) -> dict[str, Any]:  # fmt: skip
    index, parameters, seed = parts[number]
    request = requests[index]
    started = time.perf_counter()
    answer: dict[str, Any] = {"task": number, "fitted": None, "kind": None, "reason": None}
    try:
        frame = rows[request.replicate, request.target][[*(f.name for f in request.features), request.target]]
        fitted = attackers.fit(
            request.name, parameters, frame, request.features, request.target, request.target_type, seed, 1,
            allow_code=request.allow_code,
        )
        answer["fitted"] = pickle.dumps(fitted, protocol=pickle.HIGHEST_PROTOCOL)
    except attackers.AttackerError as error:
        answer |= {"kind": "AttackerError", "reason": str(error)}
    except Exception as error:  # its text may hold a value of a row
        answer |= {"kind": type(error).__name__}
    return {**answer, "seconds": time.perf_counter() - started}
