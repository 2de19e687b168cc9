"""Fit one attacker on the release."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from threadpoolctl import threadpool_limits

from .base import CATEGORICAL, CONTINUOUS, AttackerError, Feature
from .design import cap_of, make_design
from .encoding import Coded, encode, factorize, fit_column, numbers
from .fitted import Fitted
from .suite import Recipe, check, recipe_of

NEWTON_WORK, NEWTON_SIZE = 5e10, 3_000  # multiplications and unknowns of a Newton step; lbfgs above


def fit(
    name: str,
    parameters: Mapping[str, Any],
    frame: pd.DataFrame,
    features: Sequence[Feature],
    target: str,
    target_type: str,
    seed: int,
    n_jobs: int,
    allow_code: bool = False,
) -> Fitted:
    """Fit one attacker on the release.

    Args:
        name: a name in `ATTACKERS`, or with `allow_code` the import path of a scikit-learn estimator.
        parameters: of the estimator; they replace the attacker's defaults one by one.
        frame: training rows of the release; not altered.
        features: quasi-identifiers to use.
        target: column of the sensitive attribute, without missing values.
        target_type: "categorical" or "continuous".
        seed: of everything random in the fit.
        n_jobs: trees of a forest grown at once.
        allow_code: permit import paths.

    Returns:
        The fitted attacker.

    Raises:
        AttackerError: unknown name or parameter, a parameter out of range, an attacker that does not serve
            the target type, or training data that cannot be used (no rows, no feature, a missing target).
    """
    recipe = recipe_of(name, allow_code)
    check(name, parameters, allow_code)
    if target_type not in recipe.estimators:
        served = " and ".join(recipe.target_types)
        raise AttackerError(f"attacker {name} serves a {served} attribute, not a {target_type} one")
    features = tuple(sorted(features, key=lambda f: f.name))
    _check_frame(frame, features, target)
    classes, y = _target(frame[target], target_type)
    columns = tuple(fit_column(f, frame[f.name], cap_of(recipe, features)) for f in features)
    z = encode(columns, frame)
    rows = np.lexsort([y, *z.T])
    rows = rows[np.random.default_rng(seed).permutation(len(rows))]
    z, y = z[rows], y[rows]
    if recipe.encoding == "response":
        columns = tuple(c.reordered(z[:, j], y, classes) for j, c in enumerate(columns))
        z = encode(columns, frame)[rows]
    design = make_design(recipe, columns, z)
    x, chosen = design(z, fitting=True), {**recipe.defaults, **parameters}
    estimator, notes = _fit_estimator(name, recipe, chosen, x, y, columns, classes, seed, n_jobs)
    notes = (*(n for c in columns if (n := c.note())), *notes)
    order = _order(estimator, len(features))
    return Fitted(name, features, classes, estimator, columns, design, order, recipe.distinct, notes)


def _target(column: pd.Series, target_type: str) -> tuple[tuple[str, ...] | None, np.ndarray]:
    n_missing = int(column.isna().sum())
    if n_missing:
        raise AttackerError(
            f"target {column.name!r} is missing in {n_missing:,} training rows: drop or fill them first"
        )
    if target_type == CONTINUOUS:
        y = numbers(str(column.name), column)
        if n_infinite := int(np.isinf(y).sum()):
            raise AttackerError(f"target {column.name!r} is infinite in {n_infinite:,} training rows")
        return None, y + 0.0
    positions, labels = factorize(column)
    classes = tuple(sorted(set(labels)))
    rank = {label: i for i, label in enumerate(classes)}
    return classes, np.array([rank[label] for label in labels])[positions]


def _check_frame(frame: pd.DataFrame, features: Sequence[Feature], target: str) -> None:
    if not features:
        raise AttackerError("no quasi-identifier to learn from; name at least one")
    absent = [c for c in (*(f.name for f in features), target) if c not in frame.columns]
    if absent:
        raise AttackerError(f"the training rows lack {', '.join(map(repr, absent))}")
    if frame.empty:
        raise AttackerError("the release has no row to learn from")


def _fit_estimator(
    name: str, recipe: Recipe, chosen: dict[str, Any], x: Any, y: np.ndarray, columns: Sequence[Coded],
    classes: tuple[str, ...] | None, seed: int, n_jobs: int,
) -> tuple[Any, tuple[str, ...]]:
    if classes is not None and len(classes) == 1:  # most classifiers refuse; the answer is certain
        return DummyClassifier(strategy="prior").fit(np.zeros((len(y), 1)), y), ()
    build = recipe.estimators[CONTINUOUS if classes is None else CATEGORICAL]
    takes = inspect.signature(build).parameters
    if build is LogisticRegression:
        chosen = _logit_parameters(chosen, x.shape, len(classes or ()))
    elif build is LinearRegression and sparse.issparse(x) and "tol" in takes:
        chosen = {"tol": 1e-10, **chosen}
    elif recipe.encoding == "bins":
        chosen = {"categorical_features": [c.feature.kind == CATEGORICAL for c in columns], **chosen}
    chosen |= {k: v for k, v in (("random_state", seed), ("n_jobs", n_jobs)) if k in takes}
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if "cp" in recipe.own:
                chosen = _pruning(chosen, build, x, y)
            estimator = build(**chosen).fit(x, y)
        except (TypeError, ValueError) as error:
            if type(error).__name__ == "InvalidParameterError":  # about a parameter's value
                raise AttackerError(f"attacker {name}: {error}") from None
            raise
    if classes is not None and not hasattr(estimator, "predict_proba"):
        raise AttackerError(f"attacker {name} gives no class probabilities; it needs predict_proba")
    if "n_jobs" in takes:
        estimator.set_params(n_jobs=1)
    stopped = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return estimator, ("the solver stopped before it converged",) if stopped else ()


def _logit_parameters(chosen: dict[str, Any], shape: tuple[int, int], n_classes: int) -> dict[str, Any]:
    """Solver and penalty in the installed scikit-learn's words (1.8 replaced `penalty` by `l1_ratio`)."""
    penalty = chosen.pop("penalty")
    if penalty in ("none", None):
        weight: dict[str, Any] = {"C": np.inf}
    elif penalty in ("l1", "l2"):
        new = inspect.signature(LogisticRegression).parameters["penalty"].default == "deprecated"
        weight = {"l1_ratio": float(penalty == "l1")} if new else {"penalty": penalty}
    else:
        raise AttackerError(f"attacker logit: penalty is {penalty!r}; it is l1, l2 or none")
    if penalty == "l1":
        return {"solver": "saga", "tol": 1e-4, "max_iter": 5_000, **weight, **chosen}
    size = shape[1] * (1 if n_classes == 2 else n_classes)
    newton = size <= NEWTON_SIZE and float(shape[0]) * size**2 <= NEWTON_WORK
    solver = "newton-cholesky" if newton else "lbfgs"
    return {"solver": solver, "tol": 1e-8, "max_iter": 3_000, **weight, **chosen}


def _pruning(chosen: dict[str, Any], build: type, x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Turn cp, a share of the root's impurity, into scikit-learn's absolute `ccp_alpha`, unless given."""
    cp = chosen["cp"]
    chosen = {k: v for k, v in chosen.items() if k != "cp"}
    if "ccp_alpha" in chosen:
        return chosen
    if isinstance(cp, bool) or not isinstance(cp, (int, float)) or not 0 <= cp < 1:
        raise AttackerError(f"attacker cart: cp is {cp!r}; it is a share of at least 0 and below 1")
    root = build(**{**chosen, "max_depth": 1}).fit(x, y)
    return {**chosen, "ccp_alpha": float(cp) * float(root.tree_.impurity[0])}


def _order(estimator: Any, n_features: int) -> tuple[int, ...]:
    weights = getattr(estimator, "feature_importances_", None)
    if weights is None or len(weights) != n_features:
        return tuple(range(n_features))
    return tuple(int(i) for i in np.argsort(-np.asarray(weights), kind="stable"))
