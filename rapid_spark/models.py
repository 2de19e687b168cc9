"""Fitted attackers as files, without pickle: an attacker learned from a release is as sensitive as the release."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from .attackers import Encoder, Feature, Fitted
from .training import FitKey

# What the suite's own estimators hold beyond the types that skops trusts.
TRUSTED = frozenset({
    "functools.partial",
    "sklearn.utils.validation.check_array",
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn._loss._loss.CyHalfBinomialLoss",
    "sklearn._loss._loss.CyHalfMultinomialLoss",
    "sklearn._loss._loss.CyHalfSquaredError",
    "sklearn._loss.link.HalfLogitLink",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn._loss.link.IdentityLink",
    "sklearn._loss.link.MultinomialLogit",
    "sklearn._loss.loss.HalfBinomialLoss",
    "sklearn._loss.loss.HalfMultinomialLoss",
    "sklearn._loss.loss.HalfSquaredError",
})


def keeper(folder: Path) -> Callable[[FitKey, Fitted], None]:
    """A function that writes each fitted attacker into `folder`, under a name of its combination."""

    def keep(key: FitKey, fitted: Fitted) -> None:
        parts = [key.sensitive_attribute, key.qi_set, f"replicate-{key.replicate}", key.attacker]
        whole = "\x00".join(parts)
        name = re.sub(r"[^\w.-]", "_", "-".join(parts), flags=re.ASCII)[:100]
        save(fitted, folder / f"{name}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}.skops")

    return keep


def save(fitted: Fitted, path: Path) -> None:
    """Write a fitted attacker: estimator, encoding, classes; no training row."""
    from skops import io

    encoder = fitted.encoder
    io.dump({
        "features": [[f.name, f.kind] for f in fitted.features],
        "classes": None if fitted.classes is None else list(fitted.classes),
        "encoding": encoder.encoding,
        "levels": {name: [str(level) for level in levels] for name, levels in encoder.levels.items()},
        "means": encoder.means,
        "numbers": {name: list(values) for name, values in encoder.numbers.items()},
        "order": None if fitted.order is None else list(fitted.order),
        "estimator": fitted.estimator,
    }, path)


def load(path: Path) -> Fitted:
    """Read what `save` wrote.

    Raises:
        ValueError: the file holds a type that no attacker of the suite has.
    """
    from skops import io

    strange = sorted(set(io.get_untrusted_types(file=path)) - TRUSTED)
    if strange:
        raise ValueError(f"{path} holds types that no attacker of the suite has: {', '.join(strange)}")
    data: dict[str, Any] = io.load(path, trusted=sorted(TRUSTED))
    encoder = Encoder.__new__(Encoder)
    features = tuple(Feature(*pair) for pair in data["features"])
    encoder.features, encoder.encoding, encoder.means = features, data["encoding"], data["means"]
    encoder.levels = {name: pd.Index(levels) for name, levels in data["levels"].items()}
    encoder.numbers = {name: tuple(values) for name, values in data["numbers"].items()}  # type: ignore[misc]
    classes, order = data["classes"], data["order"]
    return Fitted(
        features, None if classes is None else tuple(classes), encoder, data["estimator"],
        None if order is None else tuple(order),
    )
