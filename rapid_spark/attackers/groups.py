"""Grow a forest in groups of trees that can be grown apart, and put it together again."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .fitted import Fitted
from .suite import recipe_of

TREES = 25  # of one group; fixed, so that the forest does not depend on how many machines grow it


def groups(name: str, parameters: Mapping[str, Any], seed: int) -> list[tuple[dict[str, Any], int]]:
    """Parameters and seed of each group; one group, as given, for what is no forest or a small one."""
    total = {**recipe_of(name, True).defaults, **parameters}.get("n_estimators") if name == "rf" else None
    if not isinstance(total, int) or isinstance(total, bool) or total <= TREES:
        return [(dict(parameters), seed)]
    sizes = [min(TREES, total - first) for first in range(0, total, TREES)]
    seeds = np.random.SeedSequence(seed).generate_state(len(sizes)) % 2**31
    return [({**parameters, "n_estimators": size}, int(s)) for size, s in zip(sizes, seeds, strict=True)]


def merged(parts: Sequence[Fitted]) -> Fitted:
    """One attacker with the trees of all parts, in their order: its probabilities are the mean over all trees.

    Every part drew its bootstrap samples from the whole release, so the encoding is the same in all.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    estimator = copy.copy(first.estimator)
    estimator.estimators_ = [tree for part in parts for tree in part.estimator.estimators_]
    estimator.n_estimators = len(estimator.estimators_)
    weights = np.mean([part.estimator.feature_importances_ for part in parts], axis=0)
    order = tuple(int(i) for i in np.argsort(-weights, kind="stable")) if len(weights) == len(first.order) else first.order
    return replace(first, estimator=estimator, order=order, notes=tuple(dict.fromkeys(n for p in parts for n in p.notes)))
