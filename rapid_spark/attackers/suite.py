"""The suite of attackers: their estimators and defaults, and what may be asked of each."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from .base import CATEGORICAL, CONTINUOUS, AttackerError

OURS = ("random_state", "n_jobs")  # the configuration's seed and cores decide these


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
    return target_type in recipe_of(name, allow_code).estimators


def check(name: str, parameters: Mapping[str, Any], allow_code: bool = False) -> None:
    """Check an attacker's name and the names of its parameters, before any data are read.

    Raises:
        AttackerError: unknown name or parameter (a near miss is suggested), or an import path without
            `allow_code`.
    """
    recipe = recipe_of(name, allow_code)
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


def recipe_of(name: str, allow_code: bool) -> Recipe:
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
