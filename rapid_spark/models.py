"""Fitted attackers as files, without pickle: an attacker learned from a release is as sensitive as the release."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .attackers import Feature, Fitted
from .attackers.design import Codes, Dummies
from .attackers.encoding import Coded
from .training import FitKey

# Our own classes that a file may name.
PARTS: Mapping[str, Callable[..., Any]] = {part.__name__: part for part in (Fitted, Feature, Coded, Codes, Dummies)}

# What the suite's own estimators hold beyond the types that skops trusts.
TRUSTED = frozenset(
    {
        "functools.partial",
        "scipy.sparse._csr.csr_matrix",
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
    }
)


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

    io.dump(_plain(fitted), path)


def load(path: Path) -> Fitted:
    """Read what `save` wrote.

    Raises:
        ValueError: the file holds a type that no attacker of the suite has.
    """
    from skops import io

    strange = sorted(set(io.get_untrusted_types(file=path)) - TRUSTED)
    if strange:
        raise ValueError(f"{path} holds types that no attacker of the suite has: {', '.join(strange)}")
    fitted = _rebuilt(io.load(path, trusted=sorted(TRUSTED)))
    if not isinstance(fitted, Fitted):
        raise ValueError(f"{path} holds no fitted attacker")
    return fitted


def _plain(value: Any) -> Any:
    """Our own classes as mappings, so that only the estimator's are in the file."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"class": type(value).__name__, "fields": fields}
    if isinstance(value, tuple):
        return {"class": "tuple", "fields": [_plain(v) for v in value]}
    if isinstance(value, Mapping):
        return {"class": "dict", "fields": [[k, _plain(v)] for k, v in value.items()]}
    return value


def _rebuilt(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kind, fields = value["class"], value["fields"]
    if kind == "tuple":
        return tuple(_rebuilt(v) for v in fields)
    if kind == "dict":
        return {k: _rebuilt(v) for k, v in fields}
    if kind not in PARTS:
        raise ValueError(f"{kind!r} is no part of an attacker")
    return PARTS[kind](**{name: _rebuilt(v) for name, v in fields.items()})
