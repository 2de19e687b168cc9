"""Ship fitted attackers to the workers and add their predictions: the one place with a broadcast and a pandas UDF."""

from __future__ import annotations

import functools
import hashlib
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DoubleType, StructField, StructType

from .attackers import Fitted

CLOSURE_LIMIT = 32 * 2**20  # bytes; the closure travels again with every action
ARTIFACT_LIMIT = 300 * 2**20  # bytes; a serverless worker has 1 GB for model, copies and batch
BROADCAST_JOIN_ROWS = 500_000  # more patterns than that are joined by a shuffle, not through the driver
DECIMALS = 12  # of a probability: the order of additions in a forest must not show


class TooLarge(ValueError):
    """A fitted attacker cannot be sent to the workers; the text says its size and what would make it smaller."""


@dataclass(frozen=True)
class Task:
    """One fitted attacker to apply, and the order in which its class probabilities are wanted.

    Attributes:
        name: prefix of the result fields.
        fitted: the attacker.
        classes: class labels of the original, by rank; None for a continuous target.
    """

    name: str
    fitted: Fitted
    classes: tuple[str, ...] | None

    def run(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Predict for the rows of `frame`; a class the release never showed has probability 0."""
        result: dict[str, Any] = {f"{self.name}_unseen": self.fitted.unseen(frame)}
        if self.classes is None:
            result[f"{self.name}_value"] = self.fitted.predict(frame)
            return result
        known = self.fitted.predict_proba(frame)
        position = {label: i for i, label in enumerate(self.fitted.classes or ())}
        wanted = np.zeros((len(frame), len(self.classes)))
        for i, label in enumerate(self.classes):
            if label in position:
                wanted[:, i] = known[:, position[label]]
        result[f"{self.name}_p"] = list(np.round(wanted, DECIMALS))
        return result

    def fields(self) -> list[StructField]:
        """Result fields: `NAME_unseen`, and `NAME_p` (categorical) or `NAME_value` (continuous)."""
        value = (
            StructField(f"{self.name}_value", DoubleType())
            if self.classes is None
            else StructField(f"{self.name}_p", ArrayType(DoubleType()))
        )
        return [StructField(f"{self.name}_unseen", BooleanType()), value]


class Carrier(Protocol):
    """How one task reaches a worker; `load` runs there, once per process."""

    def load(self) -> Task: ...


@dataclass(frozen=True)
class _Broadcast:
    variable: Any

    def load(self) -> Task:
        return self.variable.value


@dataclass(frozen=True)
class _Closure:
    payload: bytes
    digest: str

    def load(self) -> Task:
        return _unpickled(self)

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True)
class _Artifact:
    filename: str

    def load(self) -> Task:
        return _from_artifact(self.filename)


@functools.lru_cache(maxsize=64)
def _unpickled(closure: _Closure) -> Task:
    return pickle.loads(closure.payload)


@functools.lru_cache(maxsize=64)
def _from_artifact(filename: str) -> Task:
    from pyspark.core.files import SparkFiles

    return pickle.loads(Path(SparkFiles.get(filename)).read_bytes())


def ship(spark: SparkSession, task: Any) -> Carrier:
    """Make a task available to the workers: broadcast on a classic session; a closure or a file artifact on Connect."""
    if hasattr(spark, "sparkContext"):
        return _Broadcast(spark.sparkContext.broadcast(task))
    payload = pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL)
    digest = hashlib.sha256(payload).hexdigest()
    if len(payload) > ARTIFACT_LIMIT:
        raise TooLarge(
            f"the fitted attacker takes {len(payload) // 2**20} MB, more than the {ARTIFACT_LIMIT // 2**20} MB that a "
            "worker of Spark Connect can hold beside its rows: grow fewer trees or larger leaves"
        )
    if len(payload) <= CLOSURE_LIMIT:
        return _Closure(payload, digest)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"attacker-{digest[:32]}.bin"
        path.write_bytes(payload)
        spark.addArtifacts(str(path), file=True)
    return _Artifact(path.name)


def predictions(columns: Sequence[str], carriers: Sequence[Carrier], fields: Sequence[StructField]) -> Column:
    """A struct column with every task's prediction for the quasi-identifiers in `columns`.

    Only these columns travel to Python; all others of the row stay where they are, so nothing has to be joined back.
    """
    names = list(columns)

    def predict(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        tasks = [carrier.load() for carrier in carriers]
        for batch in batches:
            batch.columns = names
            result: dict[str, Any] = {}
            for task in tasks:
                result.update(task.run(batch))
            yield pd.DataFrame(result)

    predict.__annotations__ = {"batches": Iterator[pd.DataFrame], "return": Iterator[pd.DataFrame]}
    udf = F.pandas_udf(predict, returnType=StructType(list(fields)))  # type: ignore[call-overload]
    return udf(F.struct(*names))


def score_patterns(patterns: DataFrame, prediction: Column, partitions: int) -> DataFrame:
    """Each distinct pattern once, with its prediction, on all cores.

    The explicit repartition keeps adaptive execution from merging the few rows into one task.
    """
    return patterns.repartition(partitions).withColumn("prediction", prediction)


def join_patterns(frame: DataFrame, scored: DataFrame, columns: Sequence[str], name: str, n_patterns: int) -> DataFrame:
    """Give every row of `frame` its pattern's prediction as column `name`; missing values match each other.

    `scored` never went through pandas on the side of its quasi-identifiers, and those are normalised (no NaN, no
    -0.0), so the null-safe join finds each row exactly once.
    """
    renamed = scored.select(*(F.col(c).alias(f"_{c}") for c in columns), F.col("prediction").alias(name))
    if n_patterns <= BROADCAST_JOIN_ROWS:
        renamed = F.broadcast(renamed)
    condition = functools.reduce(lambda a, b: a & b, (F.col(c).eqNullSafe(F.col(f"_{c}")) for c in columns))
    return frame.join(renamed, condition, "inner").drop(*(f"_{c}" for c in columns))
