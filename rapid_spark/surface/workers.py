"""What runs on the workers: fit the cheap attacker on the release, and sum up its hits over partitions of the original.

Models are small trees. They travel from the fitting tasks to the driver and, a group at a time, to the tasks that go over
the original; nothing of the original's size leaves its partition.
"""

from __future__ import annotations

import functools
import pickle
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..attackers import Feature, Fitted, fit
from ..config import Threshold
from ..risk import MISSING_LABEL, class_threshold, prediction_error_array
from ..scoring import DECIMALS

LARGEST = 2**62  # of a code of several columns


@dataclass(frozen=True)
class Target:
    """An attribute as the workers see it.

    Attributes:
        column: of the aligned frames.
        labels: its classes in the original, by rank; None where it is continuous.
        counts: records of each class.
        threshold: tau, or the tolerance.
        settings: of a continuous one's error.
        spread: sd or range of its true values, where the error needs it.
    """

    column: str
    labels: tuple[str, ...] | None
    counts: tuple[int, ...]
    threshold: float
    settings: Threshold
    spread: float | None = None

    @property
    def type(self) -> str:
        """Kind of target."""
        return "continuous" if self.labels is None else "categorical"


@dataclass(frozen=True)
class Job:
    """One surface.

    Attributes:
        index: its number.
        target: the attribute.
        columns: columns known, of the aligned frames, in the order of their own names.
        features: the same under the names q0, q1, .. that an evaluation of this surface alone would give them, so that the
            attacker is the very same.
    """

    index: int
    target: Target
    columns: tuple[str, ...]
    features: tuple[Feature, ...]

    def known(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns known, under the names of the features."""
        return frame[list(self.columns)].set_axis([f.name for f in self.features], axis=1)


@dataclass(frozen=True)
class Packed:
    """Rows of the release, small enough to travel with a function."""

    payload: bytes
    digest: str

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Packed:
        """Pack rows; text columns as codes."""
        texts = {c: "category" for c in rows.columns if not pd.api.types.is_numeric_dtype(rows[c])}
        payload = zlib.compress(pickle.dumps(rows.astype(texts), protocol=pickle.HIGHEST_PROTOCOL), 1)
        return cls(payload, f"{zlib.crc32(payload):08x}-{len(payload)}")

    def __hash__(self) -> int:
        return hash(self.digest)


@functools.lru_cache(maxsize=2)
def _unpacked(packed: Packed) -> pd.DataFrame:
    rows: pd.DataFrame = pickle.loads(zlib.decompress(packed.payload))  # made by this program, in this run
    texts = [c for c in rows.columns if isinstance(rows[c].dtype, pd.CategoricalDtype)]
    return rows.astype(dict.fromkeys(texts, object))


def fit_job(rows: pd.DataFrame, job: Job, attacker: str, parameters: Mapping[str, Any], seed: int) -> Fitted:
    """Fit the attacker of one surface as an evaluation does (`training`): missing classes are a class of their own, records
    without a number are left out.

    Raises:
        ValueError: no row is left.
    """
    frame = job.known(rows).assign(s0=rows[job.target.column])
    empty = frame["s0"].isna()
    if job.target.labels is None:
        frame = frame[~empty].reset_index(drop=True)
    elif empty.any():
        frame["s0"] = frame["s0"].where(~empty, MISSING_LABEL)
    if not len(frame):
        raise ValueError("the release has no row with a value of this attribute")
    return fit(attacker, dict(parameters), frame, job.features, "s0", job.target.type, seed, 1)


def fit_batches(
    batches: Iterator[pd.DataFrame], packed: Packed, jobs: Mapping[int, Job], attacker: str,
    parameters: Mapping[str, Any], seed: int,
) -> Iterator[pd.DataFrame]:
    """For batches of surface numbers: `i`, `model` (null where fitting broke), `reason`, `seconds`."""
    for batch in batches:
        rows, found = _unpacked(packed), []
        for i in batch["i"]:
            started, model, reason = time.perf_counter(), None, None
            try:
                fitted = fit_job(rows, jobs[int(i)], attacker, parameters, seed)
                model = zlib.compress(pickle.dumps(fitted, protocol=pickle.HIGHEST_PROTOCOL), 1)
            except Exception as error:  # one broken surface must not take the others with it
                reason = f"fitting ended with {type(error).__name__}"
            found.append((int(i), model, reason, time.perf_counter() - started))
        yield pd.DataFrame(found, columns=["i", "model", "reason", "seconds"])


class Codes:
    """Columns of a batch as whole numbers, and patterns of several of them."""

    def __init__(self, batch: pd.DataFrame) -> None:
        """Code every column; missing values match each other."""
        self.batch = batch
        self._codes = {c: pd.factorize(batch[c], use_na_sentinel=False)[0].astype(np.int64) for c in batch.columns}
        self._last: tuple[tuple[str, ...], np.ndarray, np.ndarray] | None = None

    def patterns(self, columns: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Rows that stand for the distinct patterns, and per row of the batch the number of its pattern."""
        wanted = tuple(columns)
        if self._last is not None and self._last[0] == wanted:
            return self._last[1], self._last[2]
        code, size = np.zeros(len(self.batch), dtype=np.int64), 1
        for column in wanted:
            levels = int(self._codes[column].max(initial=0)) + 1
            if size * levels > LARGEST // 2:
                code = np.unique(code, return_inverse=True)[1].astype(np.int64)
                size = int(code.max(initial=0)) + 1
            code, size = code * levels + self._codes[column], size * levels
        _, first, number = np.unique(code, return_index=True, return_inverse=True)
        self._last = (wanted, first, number)
        return first, number


@dataclass
class Sums:
    """Sums of one surface: records with an outcome, at risk, and above the threshold of each class."""

    n: int = 0
    hits: int = 0
    exceeding: np.ndarray | None = None


def add_batch(sums: Sums, codes: Codes, job: Job, fitted: Fitted) -> None:
    """Add one batch of the original to the sums of a surface."""
    target = job.target
    first, number = codes.patterns(job.columns)
    patterns = job.known(codes.batch.iloc[first]).reset_index(drop=True)
    truth = codes.batch[target.column]
    if target.labels is None:
        y = truth.to_numpy(dtype=float)
        error = prediction_error_array(y, fitted.predict(patterns)[number], target.settings, target.spread)
        defined = ~np.isnan(error)
        sums.n += int(defined.sum())
        sums.hits += int((error[defined] < target.threshold).sum())
        return
    known = {label: j for j, label in enumerate(fitted.classes or ())}
    p = np.zeros((len(patterns), len(target.labels)))
    probabilities = fitted.predict_proba(patterns)
    for k, label in enumerate(target.labels):
        if label in known:
            p[:, k] = probabilities[:, known[label]]
    p = np.round(p, DECIMALS)
    counts = np.array(target.counts, dtype=np.int64)
    above = p > class_threshold(counts / counts.sum(), target.threshold)[None, :]
    place = {label: k for k, label in enumerate(target.labels)}
    y_class = truth.astype(object).where(truth.notna(), MISSING_LABEL).map(place).fillna(-1).to_numpy(dtype=np.int64)
    sums.n += int((y_class >= 0).sum())
    sums.hits += int(above[number[y_class >= 0], y_class[y_class >= 0]].sum())
    weights = np.bincount(number, minlength=len(patterns))
    exceeding = (above * weights[:, None]).sum(axis=0)
    sums.exceeding = exceeding if sums.exceeding is None else sums.exceeding + exceeding


def score_batches(
    batches: Iterator[pd.DataFrame], jobs: Sequence[Job], models: Mapping[int, bytes]
) -> Iterator[pd.DataFrame]:
    """For a partition of the original: `i`, `n`, `hits`, `exceeding` of every surface."""
    fitted = {i: pickle.loads(zlib.decompress(model)) for i, model in models.items()}  # made by this program, in this run
    sums = {job.index: Sums() for job in jobs}
    for batch in batches:
        codes = Codes(batch)
        for job in sorted(jobs, key=lambda j: j.columns):
            add_batch(sums[job.index], codes, job, fitted[job.index])
    rows = [(i, s.n, s.hits, [] if s.exceeding is None else [int(x) for x in s.exceeding]) for i, s in sums.items()]
    yield pd.DataFrame(rows, columns=["i", "n", "hits", "exceeding"])
