"""RAPID of one release within one process, for tasks that are many and small: the pipeline's figures from pandas.

The same definitions as the pipeline's (arXiv:2602.09235, section 3): the attacker is fitted on the release alone, the
baselines are prevalences of the whole original, a record is at risk when its value exceeds its threshold strictly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from rapid_spark import attackers
from rapid_spark.config import Threshold
from rapid_spark.risk import MISSING_LABEL, class_threshold, prediction_error_array

CATEGORICAL, NUMERIC = "categorical", "numeric"
TARGET = "s0"


@dataclass(frozen=True)
class Question:
    """What is attacked, and with what.

    Attributes:
        kinds: by quasi-identifier, 'numeric' or 'categorical'.
        target: sensitive attribute.
        target_type: 'categorical' or 'continuous'.
        missing: 'class' or 'drop': what a missing sensitive value is.
        threshold: error, its smoothing and the tolerance, of a continuous attribute.
    """

    kinds: Mapping[str, str]
    target: str
    target_type: str = CATEGORICAL
    missing: str = "class"
    threshold: Threshold = field(default_factory=Threshold)

    @property
    def features(self) -> tuple[attackers.Feature, ...]:
        """Quasi-identifiers under the names they have in `plain`: by their order, as in the pipeline."""
        return tuple(attackers.Feature(f"q{i}", self.kinds[name]) for i, name in enumerate(sorted(self.kinds)))

    def only(self, names: Sequence[str]) -> Question:
        """The same question with fewer quasi-identifiers."""
        kinds = {name: self.kinds[name] for name in names}
        return Question(kinds, self.target, self.target_type, self.missing, self.threshold)


@dataclass(frozen=True)
class Rule:
    """What the original decides: prevalence by class, or the spread of the true values."""

    prevalence: Mapping[str, float]
    spread: float | None

    @classmethod
    def of(cls, original: pd.DataFrame, question: Question) -> Rule:
        """From the whole original, as `plain` gives it."""
        y = original[TARGET].dropna()
        if question.target_type == CATEGORICAL:
            return cls({str(label): float(share) for label, share in y.value_counts(normalize=True).items()}, None)
        whole = question.threshold.normalised_by == "range"
        return cls({}, float(y.max() - y.min()) if whole else float(y.std(ddof=1)))


@dataclass(frozen=True)
class Rates:
    """What an attacker reaches on some people.

    Attributes:
        n: people with a defined outcome.
        rates: share at risk, in the order of the thresholds asked for.
        quality: accuracy (categorical), or the mean absolute error (continuous).
    """

    n: int
    rates: tuple[float, ...]
    quality: float


def plain(frame: pd.DataFrame, question: Question) -> pd.DataFrame:
    """The columns that matter, under safe names and in the types that attackers take.

    Numbers are float64, dates and times days since 1970-01-01; categories are text, None where missing. Rows whose
    sensitive value is missing are left out where the question says drop.
    """
    columns: dict[str, Any] = {
        f"q{i}": _plain(frame[name], question.kinds[name]) for i, name in enumerate(sorted(question.kinds))
    }
    categorical = question.target_type == CATEGORICAL
    columns[TARGET] = _plain(frame[question.target], CATEGORICAL if categorical else NUMERIC)
    found = pd.DataFrame(columns).reset_index(drop=True)
    if categorical and question.missing == "class":
        return found.assign(**{TARGET: found[TARGET].where(found[TARGET].notna(), MISSING_LABEL)})
    return found[found[TARGET].notna()].reset_index(drop=True)


def fit(
    release: pd.DataFrame, question: Question, attacker: str, parameters: Mapping[str, Any], seed: int,
    allow_code: bool = False,
) -> attackers.Fitted:
    """Fit an attacker on a release, as `plain` gives it, with one thread."""
    columns = [f.name for f in question.features] + [TARGET]
    return attackers.fit(
        attacker, parameters, release[columns], question.features, TARGET, question.target_type, seed, 1, allow_code
    )


def rates(
    fitted: attackers.Fitted, people: pd.DataFrame, question: Question, rule: Rule, thresholds: Sequence[float]
) -> Rates:
    """Share of people at risk at each threshold (tau; or the tolerance of a continuous attribute).

    Args:
        fitted: the attacker.
        people: as `plain` gives them.
        question: what was asked.
        rule: of the whole original.
        thresholds: tau of the normalised gain, or tolerances.
    """
    y = people[TARGET]
    if question.target_type != CATEGORICAL:
        truth = y.to_numpy(dtype=float)
        guess = fitted.predict(people)
        error = prediction_error_array(truth, guess, question.threshold, rule.spread)
        known = ~np.isnan(error)
        shares = tuple(float((error[known] < t).mean()) if known.any() else float("nan") for t in thresholds)
        return Rates(int(known.sum()), shares, float(np.abs(truth - guess).mean()))
    place = {label: k for k, label in enumerate(fitted.classes or ())}
    p = np.round(fitted.predict_proba(people), 12)
    at = y.map(place).fillna(-1).to_numpy(dtype=int)
    # a class that the release never shows has probability 0
    g = np.where(at >= 0, p[np.arange(len(p)), at], 0.0)
    b = y.map(rule.prevalence).to_numpy(dtype=float)
    shares = tuple(float((g > class_threshold(b, t)).mean()) for t in thresholds)
    return Rates(len(y), shares, float((p.argmax(axis=1) == at).mean()))


def _plain(series: pd.Series, kind: str) -> np.ndarray:
    if kind == NUMERIC:
        return _numbers(series)
    missing = series.isna().to_numpy(dtype=bool)
    texts = np.array([None if gone else _label(v) for v, gone in zip(series, missing, strict=True)], dtype=object)
    return texts


def _numbers(series: pd.Series) -> np.ndarray:
    if series.dtype == object:
        kind = pd.api.types.infer_dtype(series, skipna=True)
        if kind in ("date", "datetime"):
            series = pd.Series(pd.to_datetime(series), index=series.index)
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        stamps = series.dt.tz_localize(None) if getattr(series.dt, "tz", None) is not None else series
        days: np.ndarray = (stamps - pd.Timestamp(0)).to_numpy() / np.timedelta64(1, "D")
        return days
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan)) + 0.0


def _label(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
