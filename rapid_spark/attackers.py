"""Attackers: scikit-learn estimators fitted on the release alone, with their encoding, ready to be shipped.

An attacker (Templ, Thees, Müller 2026, arXiv:2602.09235) learns the sensitive attribute from the
quasi-identifiers of the release. Nothing here sees the original while fitting. For all attackers:

- *Same figures for any order of rows and columns.* Features are sorted by name, training rows by content and
  then permuted by the seed. Fitting and predicting use one thread of BLAS and OpenMP, so that `n_jobs` (trees
  of a forest grown at once) changes nothing but time.
- *Levels.* A missing categorical value is a level of its own. A level the release never shows is unknown:
  trees send it to the child with more training rows, linear attackers take every level with its share.
- *Numbers.* Missing ones are native to trees; linear attackers and estimators by import path take the median
  of the release, and an indicator where the release has missing values too.
- *Memory.* Trees code a categorical feature of any number of levels as one column. For the others a feature
  has at most `MAX_LEVELS` levels, and all dummies together about `MAX_COLUMNS` columns: the most frequent
  levels stay, the rest is pooled into one, and `Fitted.notes` says so.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.linalg.lapack import dpstrf
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

MAX_LEVELS = 250  # of one feature, in dummies and in histogram boosting (which allows 255)
MAX_COLUMNS = 4_000  # dummy columns of all features together
DENSE_BYTES = 2**29  # a design matrix up to this size is fitted dense, a larger one sparse
BLOCK_BYTES = 2**27  # dense design matrix of one block of rows to predict
NEWTON_WORK, NEWTON_SIZE = 5e10, 3_000  # multiplications and unknowns of a Newton step; lbfgs above
LARGEST = 1e30  # scaled numbers are clipped here: trees hold float32
OURS = ("random_state", "n_jobs")  # the configuration's seed and cores decide these

CATEGORICAL, CONTINUOUS = "categorical", "continuous"


class AttackerError(ValueError):
    """The attacker's name, parameters or training data are at fault; the text says what would be right."""


@dataclass(frozen=True)
class Feature:
    """One quasi-identifier, as the aligned frames hold it.

    Attributes:
        name: column name in the frames.
        kind: "categorical" (text; None or NaN is missing) or "numeric" (float64; NaN is missing).
    """

    name: str
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in (CATEGORICAL, "numeric"):
            raise AttackerError(f"feature {self.name!r}: kind {self.kind!r}, not 'categorical' or 'numeric'")


@dataclass(frozen=True)
class Recipe:
    """How one attacker is made.

    Attributes:
        description: one line for users.
        estimators: scikit-learn class by the target type it serves.
        defaults: parameters where the user gives none.
        encoding: how categories become numbers: "names" (codes in the order of the names), "response" (codes
            in the order of the target's mean), "bins" (codes of at most `MAX_LEVELS` levels), "reduced"
            (dummies without linear dependence) or "dummies".
        distinct: sort rows and predict distinct ones only, which pays off where predicting is slow.
        own: parameters that are ours, not the estimator's.
    """

    description: str
    estimators: Mapping[str, type]
    defaults: Mapping[str, Any]
    encoding: str
    distinct: bool = False
    own: tuple[str, ...] = ()

    @property
    def target_types(self) -> tuple[str, ...]:
        """Kinds of sensitive attribute it serves."""
        return tuple(sorted(self.estimators))


ATTACKERS: Mapping[str, Recipe] = MappingProxyType({
    # As R's ranger: nodes of more than 10 rows are split, on the best of floor(sqrt(p)) features drawn, with
    # categories in the order of their names. Where all drawn are constant in a node ranger stops, while
    # scikit-learn draws on and splits; at least two rows in a leaf make up for that.
    "rf": Recipe(
        "random forest of 500 trees, leaves not grown to purity",
        {CATEGORICAL: RandomForestClassifier, CONTINUOUS: RandomForestRegressor},
        {"n_estimators": 500, "min_samples_split": 11, "min_samples_leaf": 2, "max_features": "sqrt"},
        "names", distinct=True,
    ),
    "gbm": Recipe(
        "histogram gradient boosting, 100 rounds",
        {CATEGORICAL: HistGradientBoostingClassifier, CONTINUOUS: HistGradientBoostingRegressor},
        {"max_iter": 100, "learning_rate": 0.1, "early_stopping": False},
        "bins", distinct=True,
    ),
    # As R's rpart: its limits, and its cp as a share of the root's impurity (just as rpart's for numbers).
    "cart": Recipe(
        "one classification or regression tree, pruned by cost and complexity (cp)",
        {CATEGORICAL: DecisionTreeClassifier, CONTINUOUS: DecisionTreeRegressor},
        {"min_samples_split": 20, "min_samples_leaf": 7, "max_depth": 30, "cp": 0.01},
        "response", own=("cp",),
    ),
    # As R's glm: no regularisation, and a tolerance at which the estimates have settled.
    "logit": Recipe(
        "multinomial logistic regression without regularisation (penalty: l1 or l2 with C regularises)",
        {CATEGORICAL: LogisticRegression},
        {"penalty": None},
        "reduced",
    ),
    "lm": Recipe(
        "linear regression by least squares", {CONTINUOUS: LinearRegression}, {}, "reduced",
    ),
})


def serves(name: str, target_type: str, allow_code: bool = False) -> bool:
    """Whether an attacker can be fitted to a "categorical" or "continuous" sensitive attribute.

    An import path is looked into only where `allow_code` is true; otherwise it is True, and `fit` refuses it.

    Raises:
        AttackerError: the name is unknown.
    """
    if "." in name and not allow_code:
        return True
    return target_type in _recipe(name, allow_code).estimators


def check(name: str, parameters: Mapping[str, Any], allow_code: bool = False) -> None:
    """Check an attacker's name and the names of its parameters, before any data are read.

    Raises:
        AttackerError: unknown name or parameter (a near miss is suggested), or an import path without
            `allow_code`.
    """
    recipe = _recipe(name, allow_code)
    allowed: set[str] = set(recipe.own)
    for estimator in recipe.estimators.values():
        signature = inspect.signature(estimator).parameters.values()
        if any(p.kind is p.VAR_KEYWORD for p in signature):
            return
        allowed |= {p.name for p in signature}
    for parameter in parameters:
        if parameter in OURS:
            raise AttackerError(f"attacker {name}: leave out {parameter}, the run's seed and cores decide it")
        if parameter not in allowed:
            raise AttackerError(
                f"attacker {name} has no parameter {parameter!r}{_near(parameter, allowed)}; "
                f"it takes {', '.join(sorted(allowed - set(OURS)))}"
            )


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
    columns: tuple[_Column, ...]
    design: _Codes | _Dummies
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

    def _apply(self, frame: pd.DataFrame, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        z = _encode(self.columns, frame)
        back = None
        if self.distinct:
            z, back = _distinct(z, self.order)
        step = max(1, BLOCK_BYTES // (8 * self.design.width))
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            blocks = [function(self.design(z[i : i + step])) for i in range(0, len(z), step)]
        result = np.concatenate(blocks).astype(np.float64, copy=False)
        return result if back is None else result[back]


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
    recipe = _recipe(name, allow_code)
    check(name, parameters, allow_code)
    if target_type not in recipe.estimators:
        served = " and ".join(recipe.target_types)
        raise AttackerError(f"attacker {name} serves a {served} attribute, not a {target_type} one")
    features = tuple(sorted(features, key=lambda f: f.name))
    _check_frame(frame, features, target)
    classes, y = _target(frame[target], target_type)
    columns = tuple(_fit_column(f, frame[f.name], _cap(recipe, features)) for f in features)
    z = _encode(columns, frame)
    rows = np.lexsort([y, *z.T])
    rows = rows[np.random.default_rng(seed).permutation(len(rows))]
    z, y = z[rows], y[rows]
    if recipe.encoding == "response":
        columns = tuple(c.reordered(z[:, j], y, classes) for j, c in enumerate(columns))
        z = _encode(columns, frame)[rows]
    design = _design(recipe, columns, z)
    x, chosen = design(z, fitting=True), {**recipe.defaults, **parameters}
    estimator, notes = _fit_estimator(name, recipe, chosen, x, y, columns, classes, seed, n_jobs)
    notes = (*(n for c in columns if (n := c.note())), *notes)
    order = _order(estimator, len(features))
    return Fitted(name, features, classes, estimator, columns, design, order, recipe.distinct, notes)


@dataclass(frozen=True)
class _Column:
    """One feature as a number: the code of its level, NaN if unknown; or a scaled value, NaN if missing."""

    feature: Feature
    levels: Mapping[str, int]
    missing: int  # code of a missing value; -1 where the release has none
    size: int  # number of codes
    center: float = 0.0
    scale: float = 1.0

    def code(self, column: pd.Series) -> np.ndarray:
        if self.feature.kind == CATEGORICAL:
            positions, labels = _factorize(column)
            codes = np.array([*(self.levels.get(x, -1) for x in labels), self.missing], dtype=np.float64)
            codes[codes < 0] = np.nan
            return codes[positions]  # position -1, a missing value, takes the last code
        if self.scale == 0:  # the release has no value at all: nothing can be learnt from one
            return np.zeros(len(column))
        with np.errstate(over="ignore"):
            scaled = (_numbers(self.feature.name, column) - self.center) / self.scale
        return np.clip(scaled, -LARGEST, LARGEST) + 0.0

    def reordered(self, codes: np.ndarray, y: np.ndarray, classes: tuple[str, ...] | None) -> _Column:
        """The same column with codes in the order of the target's mean.

        One split then finds the best of all subsets of levels: exactly so for two classes and for numbers
        (Fisher 1958); for more classes the order is along the first principal component of their shares
        (Coppersmith, Hong and Hosking 1999).
        """
        if self.feature.kind != CATEGORICAL:
            return self
        at = codes.astype(int)
        counts = np.bincount(at, minlength=self.size).astype(float)
        if classes is None:
            score = np.bincount(at, weights=y - y.mean(), minlength=self.size) / counts
        else:
            k = len(classes)
            table = np.bincount(at * k + y, minlength=self.size * k).reshape(self.size, k)
            away = table / counts[:, None] - table.sum(axis=0) / counts.sum()
            axis = np.linalg.svd(away * np.sqrt(counts)[:, None], full_matrices=False)[2][0]
            score = np.round(away @ axis * np.sign(axis[np.abs(axis).argmax()]), 12)
        rank = np.empty(self.size, dtype=int)
        rank[np.argsort(score, kind="stable")] = np.arange(self.size)
        missing = int(rank[self.missing]) if self.missing >= 0 else -1
        return replace(self, levels={x: int(rank[c]) for x, c in self.levels.items()}, missing=missing)

    def note(self) -> str:
        kept = self.size - (self.missing >= 0)
        if kept >= len(self.levels):
            return ""
        return f"{self.feature.name}: top {kept - 1:,} of {len(self.levels):,} levels kept, the others pooled"


def _fit_column(feature: Feature, column: pd.Series, cap: int | None) -> _Column:
    if feature.kind != CATEGORICAL:
        values = _numbers(feature.name, column)
        values = values[np.isfinite(values)]
        if not len(values):
            return _Column(feature, {}, -1, 0, scale=0.0)
        center = float(np.median(values))
        away = np.abs(values - center)
        # Not the standard deviation: one absurd value must not press all others into one float32.
        scale = float(np.median(away[away > 0])) if (away > 0).any() else 1.0
        return _Column(feature, {}, -1, 0, center, scale if np.isfinite(scale) else 1.0)
    positions, labels = _factorize(column)
    names = sorted(set(labels))
    code = {label: i for i, label in enumerate(names)}
    known = len(names)
    if cap is not None and len(names) > cap:
        each = np.bincount(positions[positions >= 0], minlength=len(labels))
        counts = np.bincount([code[label] for label in labels], weights=each, minlength=len(names))
        kept = np.sort(np.argsort(-counts, kind="stable")[:cap])
        code = dict.fromkeys(names, cap) | {names[i]: c for c, i in enumerate(kept)}
        known = cap + 1
    has_missing = bool((positions < 0).any())
    return _Column(feature, code, known if has_missing else -1, known + has_missing)


def _cap(recipe: Recipe, features: Sequence[Feature]) -> int | None:
    if recipe.encoding in ("names", "response"):
        return None
    if recipe.encoding == "bins":
        return MAX_LEVELS
    categorical = sum(f.kind == CATEGORICAL for f in features)
    return min(MAX_LEVELS, max(2, MAX_COLUMNS // max(categorical, 1) - 2))  # less pooled and missing


def _encode(columns: Iterable[_Column], frame: pd.DataFrame) -> np.ndarray:
    return np.column_stack([c.code(frame[c.feature.name]) for c in columns])


def _factorize(column: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Position of each row's label (-1: missing) and the labels, as text."""
    positions, uniques = pd.factorize(column)
    return positions, [str(u) for u in uniques]


def _numbers(name: str, column: pd.Series) -> np.ndarray:
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise AttackerError(f"column {name!r} has type {column.dtype} where numbers are needed") from None


def _distinct(z: np.ndarray, order: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows sorted by the features in `order`, and where each row of `z` is among them.

    Neighbouring rows then take the same way through a tree, which keeps it in the cache: about twice as fast.
    """
    keys = np.where(np.isnan(z), np.inf, z)[:, list(order)]
    rows = np.lexsort(keys.T[::-1])
    keys = keys[rows]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    back = np.empty(len(rows), dtype=np.intp)
    back[rows] = np.cumsum(new) - 1
    return z[rows[new]], back


@dataclass(frozen=True)
class _Codes:
    """Codes and numbers as they are, for trees."""

    width: int
    dtype: str

    def __call__(self, z: np.ndarray, fitting: bool = False) -> np.ndarray:
        return np.ascontiguousarray(z, dtype=self.dtype)


@dataclass(frozen=True, eq=False)
class _Dummies:
    """Dummy columns.

    Attributes:
        tables: per categorical feature a row per code and a last one, the shares, for unknown; else None.
        kept: per numeric feature, which of (value, is missing) stay.
        scales: factor per column that stays.
        width: number of columns, at least 1.
        dense: predict dense, too. Linear attackers predict sparse: a row's sum then does not depend on the
            rows around it.
    """

    tables: tuple[Any, ...]
    kept: tuple[np.ndarray, ...]
    scales: tuple[np.ndarray, ...]
    width: int
    dense: bool

    def __call__(self, z: np.ndarray, fitting: bool = False) -> Any:
        blocks = []
        for j, table in enumerate(self.tables):
            empty = np.isnan(z[:, j])
            if table is not None:
                blocks.append(table[np.where(empty, table.shape[0] - 1, z[:, j]).astype(int)])
            else:
                block = np.column_stack([np.where(empty, 0.0, z[:, j]), empty])[:, self.kept[j]]
                blocks.append(sparse.csr_matrix(block * self.scales[j]))
        matrix = sparse.hstack(blocks, format="csr")
        if matrix.shape[1] < self.width:  # nothing varies: an estimator still wants a column
            matrix = sparse.csr_matrix((len(z), self.width))
        small = len(z) * self.width * 8 <= DENSE_BYTES
        return matrix.toarray() if small and (fitting or self.dense) else matrix


def _design(recipe: Recipe, columns: Sequence[_Column], z: np.ndarray) -> _Codes | _Dummies:
    if recipe.encoding not in ("reduced", "dummies"):
        return _Codes(z.shape[1], "float64" if recipe.encoding == "bins" else "float32")
    tables: list[Any] = []
    widths = []
    for j, column in enumerate(columns):
        if column.feature.kind == CATEGORICAL:
            shares = np.bincount(z[:, j].astype(int), minlength=column.size) / len(z)
            tables.append(sparse.csr_matrix(np.vstack([np.eye(column.size), shares])))
            widths.append(column.size)
        else:
            tables.append(None)
            widths.append(1 + bool(np.isnan(z[:, j]).any()))
    everything, ones = tuple(np.arange(w) for w in widths), tuple(np.ones(w) for w in widths)
    x = sparse.csr_matrix(_Dummies(tuple(tables), everything, ones, sum(widths), False)(z))
    means = np.asarray(x.mean(axis=0)).ravel()
    covariance = (x.T @ x).toarray() / len(z) - np.outer(means, means)
    sd = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = sd > 1e-10 * (1.0 + np.abs(means))
    reduced = recipe.encoding == "reduced"
    stays = _independent(covariance, sd, varies) if reduced else np.ones(len(sd), dtype=bool)
    factors = 1.0 / np.where(varies, sd, 1.0)
    kept, scales = [], []
    for start, w, (j, table) in zip(np.cumsum([0, *widths]), widths, enumerate(tables), strict=False):
        part = np.flatnonzero(stays[start : start + w])
        kept.append(part)
        scales.append(factors[start + part] if reduced or table is None else np.ones(len(part)))
        if table is not None:
            tables[j] = sparse.csr_matrix(table[:, part].multiply(scales[j][None, :]))
    return _Dummies(tuple(tables), tuple(kept), tuple(scales), max(1, int(stays.sum())), not reduced)


def _independent(covariance: np.ndarray, sd: np.ndarray, varies: np.ndarray) -> np.ndarray:
    """Columns that with an intercept are linearly independent, by pivoted Cholesky of their correlations.

    The others add nothing on the release (R reports their coefficients as NA) and would stop Newton steps.
    """
    stays = np.zeros(len(sd), dtype=bool)
    if varies.any():
        s = sd[varies]
        correlation = covariance[np.ix_(varies, varies)] / np.outer(s, s)
        _, pivots, rank, _ = dpstrf(correlation, tol=1e-9, lower=1)
        stays[np.flatnonzero(varies)[pivots[:rank] - 1]] = True
    return stays


def _target(column: pd.Series, target_type: str) -> tuple[tuple[str, ...] | None, np.ndarray]:
    n_missing = int(column.isna().sum())
    if n_missing:
        raise AttackerError(
            f"target {column.name!r} is missing in {n_missing:,} training rows: drop or fill them first"
        )
    if target_type == CONTINUOUS:
        y = _numbers(str(column.name), column)
        if n_infinite := int(np.isinf(y).sum()):
            raise AttackerError(f"target {column.name!r} is infinite in {n_infinite:,} training rows")
        return None, y + 0.0
    positions, labels = _factorize(column)
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


def _recipe(name: str, allow_code: bool) -> Recipe:
    if name in ATTACKERS:
        return ATTACKERS[name]
    known = ", ".join(ATTACKERS)
    if "." not in name:
        raise AttackerError(
            f"unknown attacker {name!r}{_near(name, ATTACKERS)}; known are {known}, "
            "and the import path of a scikit-learn estimator with allow_code"
        )
    if not allow_code:
        raise AttackerError(
            f"attacker {name!r} is an import path, which runs code: set allow_code, or use {known}"
        )
    module_name, _, class_name = name.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except ImportError:
        raise AttackerError(f"attacker {name!r}: there is no module {module_name!r} to import") from None
    found = getattr(module, class_name, None)
    if not (inspect.isclass(found) and hasattr(found, "fit")):
        raise AttackerError(
            f"attacker {name!r}: no estimator {class_name!r} in {module_name}{_near(class_name, dir(module))}"
        )
    mixins = {CATEGORICAL: ClassifierMixin, CONTINUOUS: RegressorMixin}
    types = [t for t, mixin in mixins.items() if issubclass(found, mixin)]
    if not types:
        types = [CATEGORICAL if hasattr(found, "predict_proba") else CONTINUOUS]
    return Recipe(f"{class_name} of {module_name}", dict.fromkeys(types, found), {}, "dummies", distinct=True)


def _near(word: str, words: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(word), list(words), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _fit_estimator(
    name: str, recipe: Recipe, chosen: dict[str, Any], x: Any, y: np.ndarray, columns: Sequence[_Column],
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
