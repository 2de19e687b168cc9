"""A fitted attacker: what is shipped to the workers and predicts there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from .base import CATEGORICAL, Feature
from .design import Codes, Dummies
from .encoding import Coded, distinct_rows, encode

BLOCK_BYTES = 2**27  # dense design matrix of one block of rows to predict


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted attacker with its encoding: what is shipped to the workers.

    Attributes:
        name: attacker.
        features: quasi-identifiers, sorted by name.
        classes: labels of the release in sorted order; None for a continuous target.
        estimator: the fitted scikit-learn estimator.
        columns: how each feature is coded.
        design: from codes to what the estimator takes.
        order: positions of the features, the most important one first.
        distinct: predict distinct rows only.
        notes: what a reader of the result should know (pooled levels, a solver that stopped early).
    """

    name: str
    features: tuple[Feature, ...]
    classes: tuple[str, ...] | None
    estimator: Any
    columns: tuple[Coded, ...]
    design: Codes | Dummies
    order: tuple[int, ...]
    distinct: bool
    notes: tuple[str, ...] = ()

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Class probabilities, (n, len(classes)) float64, columns in the order of `classes`."""
        if self.classes is None:
            raise TypeError("fitted to a continuous target, which has no class probabilities: use predict")
        if frame.empty:
            return np.zeros((0, len(self.classes)))
        return self._apply(frame, self.estimator.predict_proba)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Predicted values of a continuous target, (n,) float64, in its own unit."""
        if self.classes is not None:
            raise TypeError("fitted to a categorical target: use predict_proba")
        return self._apply(frame, self.estimator.predict).reshape(-1) if len(frame) else np.zeros(0)

    def unseen(self, frame: pd.DataFrame) -> np.ndarray:
        """Rows with a categorical level that no training row had, (n,) bool; missing counts as a level."""
        hidden = np.zeros(len(frame), dtype=bool)
        for column in self.columns:
            if column.feature.kind == CATEGORICAL:
                hidden |= np.isnan(column.code(frame[column.feature.name]))
        return hidden

    def importances(self) -> tuple[str, ...]:
        """Names of the features, the most important first; by name where the estimator does not rank them."""
        return tuple(self.features[i].name for i in self.order)

    def codes(self, frame: pd.DataFrame) -> np.ndarray:
        """Rows as numbers, (n, len(features)): codes of levels and scaled values; NaN is unknown or missing."""
        return encode(self.columns, frame)

    def _apply(self, frame: pd.DataFrame, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        z = self.codes(frame)
        back = None
        if self.distinct:
            z, back = distinct_rows(z, self.order)
        step = max(1, BLOCK_BYTES // (8 * self.design.width))
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            blocks = [function(self.design(z[i : i + step])) for i in range(0, len(z), step)]
        result = np.concatenate(blocks).astype(np.float64, copy=False)
        return result if back is None else result[back]
