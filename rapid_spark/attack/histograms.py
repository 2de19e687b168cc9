"""Membership on histograms: two neighbours, a noisy release of one of them, and attackers who guess which."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from . import rates
from .mechanisms import Counts, Floats, Mechanism, Pair
from .rates import Rate

PLAYS = 1_000  # per side and repetition: with 20 plays nothing above epsilon 1.6 can be shown
REPETITIONS = 20
Score = Callable[[Floats], Floats]
Fit = Callable[[Pair, Mechanism, Floats, Floats, int], Score]


def summary_features(releases: Floats) -> Floats:
    """Total, spread, extremes, share of negative bins and entropy of each release (plays x 6)."""
    kept = np.clip(releases, 0, None)
    shares = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1.0)
    entropy = -(shares * np.log2(shares, out=np.zeros_like(shares), where=shares > 0)).sum(axis=1)
    parts = [releases.sum(axis=1), releases.std(axis=1), releases.min(axis=1), releases.max(axis=1)]
    return np.column_stack([*parts, (releases < 0).mean(axis=1), entropy])


def summary_logistic(pair: Pair, mechanism: Mechanism, out: Floats, inside: Floats, seed: int) -> Score:
    """Logistic regression on summary features of the release, fitted on plays of its own."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    model.fit(summary_features(np.vstack([out, inside])), _sides(out, inside))
    return lambda x: np.asarray(model.decision_function(summary_features(x)))


def histogram_forest(pair: Pair, mechanism: Mechanism, out: Floats, inside: Floats, seed: int) -> Score:
    """A random forest on the released bins, fitted on plays of its own; the score is its vote less a half."""
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(100, min_samples_leaf=10, random_state=seed, n_jobs=-1)
    model.fit(np.vstack([out, inside]), _sides(out, inside))
    return lambda x: np.round(model.predict_proba(x)[:, 1], 12) - 0.5


def likelihood_ratio(pair: Pair, mechanism: Mechanism, out: Floats, inside: Floats, seed: int) -> Score:
    """The optimal attacker (Neyman and Pearson 1933): log P(x | inside) - log P(x | out) under the claimed law."""
    at = pair.changed

    def score(x: Floats) -> Floats:
        ratio = mechanism.loss(x[:, at] - pair.inside[at]) - mechanism.loss(x[:, at] - pair.out[at])
        return np.round(ratio.sum(axis=1), 9)  # ratios of two bins that cancel are a tie

    return score


def nearest_reference(pair: Pair, mechanism: Mechanism, out: Floats, inside: Floats, seed: int) -> Score:
    """Guess the histogram that is nearer (Euclidean), as a linkage attacker without knowledge of the noise would."""

    def score(x: Floats) -> Floats:
        return np.round(((x - pair.out) ** 2).sum(axis=1) - ((x - pair.inside) ** 2).sum(axis=1), 9)

    return score


ATTACKERS: dict[str, Fit] = {
    "summary_logistic": summary_logistic, "histogram_forest": histogram_forest,
    "likelihood_ratio": likelihood_ratio, "nearest_reference": nearest_reference,
}  # fmt: skip


@dataclass(frozen=True)
class Membership:
    """How well one attacker tells two neighbours apart.

    Attributes:
        attacker: its name.
        n: plays of both sides over all repetitions.
        accuracy, auc, tpr_at_1pct_fpr: means over repetitions with Student's interval.
    """

    attacker: str
    n: int
    accuracy: Rate
    auc: Rate
    tpr_at_1pct_fpr: Rate


def releases(mechanism: Mechanism, counts: Counts, plays: int, post: Callable[[Floats], Floats] | None = None) -> Floats:
    """`plays` releases of one histogram, each with noise of its own (plays x bins)."""
    drawn = mechanism.draw(np.tile(counts, (plays, 1)))
    return drawn if post is None else post(drawn)


def membership(
    pair: Pair,
    mechanism: Mechanism,
    *,
    plays: int = PLAYS,
    repetitions: int = REPETITIONS,
    seed: int = 0,
    attackers: Iterator[str] | tuple[str, ...] = tuple(ATTACKERS),
    post: Callable[[Floats], Floats] | None = None,
    confidence: float = 0.95,
) -> list[Membership]:
    """Play the membership game with each attacker.

    In a repetition the attackers that learn are fitted on `plays` releases a side and all are judged on as many new
    ones. Noise has no seed, so figures vary from run to run within their intervals.

    Args:
        pair: the two histograms.
        mechanism: what draws the noise.
        plays: releases per side in a repetition.
        repetitions: how often.
        seed: of the forest.
        attackers: names of `ATTACKERS`.
        post: post-processing of the releases (plays x bins), such as setting negative bins to 0.
        confidence: of the intervals.
    """
    names = tuple(attackers)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in names}
    learn = bool({"summary_logistic", "histogram_forest"} & set(names))
    for repetition in range(repetitions):
        trained = [releases(mechanism, c, plays if learn else 1, post) for c in (pair.out, pair.inside)]
        judged = [releases(mechanism, c, plays, post) for c in (pair.out, pair.inside)]
        for name in names:
            score = ATTACKERS[name](pair, mechanism, trained[0], trained[1], seed + repetition)
            out, inside = score(judged[0]), score(judged[1])
            found[name].append((rates.balanced_accuracy(out, inside), rates.auc(out, inside), rates.tpr_at(out, inside)))
    return [
        Membership(name, 2 * plays * repetitions, *(rates.over_repetitions(v, confidence) for v in zip(*of, strict=True)))
        for name, of in found.items()
    ]


def _sides(out: Floats, inside: Floats) -> np.ndarray:
    return np.repeat([0, 1], [len(out), len(inside)])
