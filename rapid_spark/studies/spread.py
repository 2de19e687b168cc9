"""Run many small, independent tasks over Spark, one a Spark task, and collect their small results."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession

from rapid_spark import strictjson
from rapid_spark.scoring import ship

Task = Mapping[str, Any]
PACKAGE = __name__.split(".")[0]


@dataclass(frozen=True)
class Failure:
    """A task that broke.

    Attributes:
        kind: name of the exception's class.
        message: its text where the package itself raised it; None for a library's, which may quote a value.
        is_input: the user's input is at fault.
    """

    kind: str
    message: str | None
    is_input: bool

    def __str__(self) -> str:
        return self.message or f"ended with {self.kind}"


def spread(
    spark: SparkSession, function: Callable[[Task, Any], Any], tasks: Sequence[Task], shared: Any = None
) -> list[Any]:
    """Call `function(task, shared)` for every task on the workers.

    A task that raises does not stop the others: its place in the result is a `Failure`.

    Args:
        spark: session, classic or Connect.
        function: of a module of this package, so that workers can import it; returns plain data (JSON).
        tasks: plain data; each is one Spark task.
        shared: what all tasks read, pickled once (a broadcast on a classic session).

    Returns:
        Results in the order of the tasks.
    """
    if not tasks:
        return []
    carrier = ship(spark, shared)
    texts = [json.dumps(task) for task in tasks]

    def run(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            numbers = [int(i) for i in batch["id"]]
            found = [_called(function, json.loads(texts[i]), carrier.load()) for i in numbers]
            yield pd.DataFrame({"id": numbers, "found": found})

    # one partition a task, without a shuffle that adaptive execution could merge
    places = spark.range(0, len(tasks), 1, len(tasks))
    rows = places.mapInPandas(run, "id bigint, found string").collect()
    results = {row["id"]: json.loads(row["found"]) for row in rows}
    return [Failure(**r["failed"]) if "failed" in (r := results[i]) else r["value"] for i in range(len(tasks))]


def _called(function: Callable[[Task, Any], Any], task: Task, shared: Any) -> str:
    try:
        return strictjson.dumps({"value": function(task, shared)})
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = bool(frames) and f"/{PACKAGE}/" in frames[-1].filename.replace("\\", "/")
        user = own and isinstance(error, ValueError)
        failed = {"kind": type(error).__name__, "message": str(error) if user else None, "is_input": user}
        return json.dumps({"failed": failed})
