"""The test of a claimed epsilon: what plays of a membership game prove about it, at a family-wise level.

A claim of (epsilon, delta) says of every event S: P(S | inside) <= e^epsilon P(S | out) + delta, and the same with the
sides changed and for the complement. Plays that break it by more than chance allows disprove the claim; plays that do
not, prove nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .histograms import ATTACKERS, Fit, Score, releases
from .mechanisms import Counts, Floats, Mechanism, Pair

FAMILY_LEVEL = 1e-3  # at a nominal 5 % a right mechanism alarms in about one test of a hundred, in 45 % of 60 tests
PLAYS = 2_000  # per side for each of: fitting, choice of the threshold, judgement
MOST_THRESHOLDS = 200


def lower_bound(true: int, false: int, plays: int, delta: float, alpha: float, plays_out: int | None = None) -> float:
    """The epsilon that an event's counts prove at confidence 1 - alpha.

    max(ln((TPR_L - delta) / FPR_U), ln((1 - FPR_U - delta) / (1 - TPR_L))), TPR_L and FPR_U one-sided Clopper-Pearson
    limits at alpha / 2 each; -inf where neither says anything.

    Args:
        true: plays with the record in which the event occurred.
        false: plays without it in which it did.
        plays: with the record.
        delta: claimed.
        alpha: error that is allowed.
        plays_out: without the record, `plays` when left out.
    """
    low, high = _limits(true, plays, false, plays_out or plays, alpha)
    return _epsilon(low, high, delta)


def _limits(true: int, plays: int, false: int, plays_out: int, alpha: float) -> tuple[float, float]:
    from scipy.special import betaincinv

    low = float(betaincinv(true, plays - true + 1, alpha / 2)) if true else 0.0
    high = float(betaincinv(false + 1, plays_out - false, 1 - alpha / 2)) if false < plays_out else 1.0
    return low, high


def _epsilon(low: float, high: float, delta: float) -> float:
    found = [-math.inf]
    if low > delta:
        found.append(math.log((low - delta) / high))
    if 1 - high > delta and low < 1:
        found.append(math.log((1 - high - delta) / (1 - low)))
    return max(found)


def p_value(true: int, false: int, plays: int, epsilon: float, delta: float) -> float:
    """The smallest alpha at which the counts disprove the claim; 1 where none does."""
    if lower_bound(true, false, plays, delta, 1.0) <= epsilon:
        return 1.0
    low, high = -16.0, 0.0  # powers of ten
    if lower_bound(true, false, plays, delta, 10**low) > epsilon:
        return float(10**low)
    for _ in range(50):
        middle = (low + high) / 2
        if lower_bound(true, false, plays, delta, 10**middle) > epsilon:
            high = middle
        else:
            low = middle
    return float(10**high)


@dataclass(frozen=True)
class Event:
    """A score above a threshold (or below it, where `sign` is -1), chosen on plays of its own."""

    threshold: float
    sign: int

    def count(self, scores: Floats) -> int:
        """Plays in which it occurred."""
        return int(np.sum(self.sign * scores > self.threshold))


def choose(out: Floats, inside: Floats, delta: float, alpha: float) -> Event:
    """The event that proves most on these plays; it is then judged on others.

    Args:
        out, inside: scores of plays without and with the record.
        delta: claimed.
        alpha: the error at which the judgement will be made.
    """
    best, chosen = -math.inf, Event(0.0, 1)
    for sign in (1, -1):
        values = np.unique(sign * np.concatenate([out, inside]))
        if len(values) > MOST_THRESHOLDS:
            values = np.quantile(values, np.linspace(0, 1, MOST_THRESHOLDS))
        between = (values[1:] + values[:-1]) / 2
        for threshold in between:
            event = Event(float(threshold), sign)
            found = lower_bound(event.count(inside), event.count(out), len(inside), delta, alpha, len(out))
            if found > best:
                best, chosen = found, event
    return chosen


@dataclass(frozen=True)
class Tested:
    """What one attacker proves about one claim.

    Attributes:
        attacker, mechanism: names.
        epsilon, delta: the claim, for the very pair that was attacked.
        plays: judged, per side.
        tpr, fpr: shares of plays with and without the record in which the chosen event occurred.
        epsilon_lower_bound: proved at confidence 95 %, for this test alone.
        p_value: of this test alone.
        provable: the largest epsilon that a perfect attack could prove with as many plays at the family's level.
    """

    attacker: str
    mechanism: str
    epsilon: float
    delta: float
    plays: int
    tpr: float
    fpr: float
    epsilon_lower_bound: float
    p_value: float
    provable: float


def judge(
    attacker: str, mechanism: str, out: Floats, inside: Floats, epsilon: float, delta: float, level: float
) -> Tested:
    """Choose an event on the first half of the plays, judge it on the second.

    Args:
        out, inside: scores of independent plays without and with the record, as many of each.
        epsilon, delta: the claim for this pair.
        level: at which the event is to be judged (the family's level over the number of tests).
    """
    half = len(out) // 2
    event = choose(out[:half], inside[:half], delta, level)
    plays = len(out) - half
    true, false = event.count(inside[half:]), event.count(out[half:])
    return Tested(
        attacker, mechanism, epsilon, delta, plays, true / plays, false / plays,
        lower_bound(true, false, plays, delta, 0.05), p_value(true, false, plays, epsilon, delta),
        provable(plays, delta, level),
    )  # fmt: skip


def low_bits(pair: Pair, mechanism: Mechanism, out: Floats, inside: Floats, seed: int) -> Score:
    """Values that floating-point noise on one of the two counts cannot give (Mironov 2012); 0 where both can."""
    at = pair.changed

    def impossible(x: Floats, counts: Counts) -> Floats:
        return np.asarray(((x - counts) + counts != x).sum(axis=1), dtype=np.float64)

    return lambda x: impossible(x[:, at], pair.out[at]) - impossible(x[:, at], pair.inside[at])


def common_noise(pair: Pair, mechanism: Mechanism, out: Floats, inside: Floats, seed: int) -> Score:
    """Noise that several bins share cancels in their differences: which of the two leaves a smoother rest?"""
    return lambda x: np.round((x - pair.out).std(axis=1) - (x - pair.inside).std(axis=1), 9)


TESTERS: dict[str, Fit] = {
    "likelihood_ratio": ATTACKERS["likelihood_ratio"], "nearest_reference": ATTACKERS["nearest_reference"],
    "histogram_forest": ATTACKERS["histogram_forest"], "low_bits": low_bits, "common_noise": common_noise,
}  # fmt: skip


def challenge(
    pair: Pair,
    mechanism: Mechanism,
    epsilon: float,
    delta: float = 0.0,
    *,
    plays: int = PLAYS,
    tests: int | None = None,
    family_level: float = FAMILY_LEVEL,
    attackers: Sequence[str] = tuple(TESTERS),
    seed: int = 0,
) -> list[Tested]:
    """Attack one mechanism with every tester.

    Args:
        pair: neighbours.
        mechanism: what draws the noise.
        epsilon, delta: the claim for this pair (`mechanisms.claim_for`).
        plays: per side, for each of fitting, choice and judgement.
        tests: size of the family that will be judged together; the number of attackers when left out.
        family_level: error allowed over the family.
        attackers: names of `TESTERS`.
        seed: of the forest.
    """
    level = family_level / (tests or len(attackers))
    fitted = [releases(mechanism, c, plays) for c in (pair.out, pair.inside)]
    played = [releases(mechanism, c, 2 * plays) for c in (pair.out, pair.inside)]
    found = []
    for name in attackers:
        score = TESTERS[name](pair, mechanism, fitted[0], fitted[1], seed)
        scores = [np.asarray(score(x), dtype=np.float64) for x in played]
        found.append(judge(name, mechanism.name, scores[0], scores[1], epsilon, delta, level))
    return found


def holm(p_values: Sequence[float], level: float = FAMILY_LEVEL) -> list[bool]:
    """Which tests of a family are significant (Holm 1979): a wrong one among them with a chance of at most `level`."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    significant = [False] * len(p_values)
    for rank, i in enumerate(order):
        if p_values[i] > level / (len(p_values) - rank):
            break
        significant[i] = True
    return significant


def verdict(tested: Tested, significant: bool) -> tuple[str, str]:
    """Verdict and reason: 'violated', 'not_violated', or 'not_evaluated' where no attack could have proved anything."""
    if significant:
        return "violated", (
            f"an event has {100 * tested.tpr:.3g} % with the record against {100 * tested.fpr:.3g} % without it: "
            f"epsilon is above {tested.epsilon:g} at the family's level"
        )
    if tested.provable <= tested.epsilon:
        return "not_evaluated", (
            f"{tested.plays} plays a side can prove no epsilon above {tested.provable:.3g}: "
            f"{least_plays(tested.epsilon, tested.delta)} or more are needed at the very least"
        )
    return "not_violated", "no attack broke the claim; that is no proof of it"


def provable(plays: int, delta: float = 0.0, alpha: float = 0.05) -> float:
    """The largest epsilon that a perfect attack proves with so many plays a side (20 plays at 5 %: 1.6)."""
    return lower_bound(plays, 0, plays, delta, alpha)


def least_plays(epsilon: float, delta: float = 0.0, alpha: float = FAMILY_LEVEL) -> int:
    """The fewest judged plays a side with which even a perfect attack could disprove a claim."""
    return _smallest(lambda n: provable(n, delta, alpha) > epsilon)


def plays_needed(
    epsilon: float, tpr: float, fpr: float, delta: float = 0.0, alpha: float = FAMILY_LEVEL, power: float = 0.9
) -> int:
    """Judged plays a side with which an event of these true rates disproves the claim with the given power.

    Raises:
        ValueError: the event does not break the claim, so no number of plays is enough.
    """
    if _epsilon(tpr, fpr, delta) <= epsilon:
        raise ValueError(f"rates of {tpr:g} and {fpr:g} do not break epsilon {epsilon:g}: no number of plays shows it")
    return _smallest(lambda n: power_of(n, epsilon, tpr, fpr, delta, alpha) >= power)


def power_of(plays: int, epsilon: float, tpr: float, fpr: float, delta: float, alpha: float) -> float:
    """Chance that an event of these true rates disproves the claim; summed exactly over both binomial counts."""
    from scipy.special import betaincinv
    from scipy.stats import binom

    counts = np.arange(plays + 1)
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), plays - counts + 1, alpha / 2), 0.0)
    high = np.where(counts < plays, betaincinv(counts + 1, np.maximum(plays - counts, 1), 1 - alpha / 2), 1.0)
    weights = binom.pmf(counts, plays, fpr)
    usual = weights > 1e-12
    # The bound grows with the true positives: find the fewest that are enough for each number of false ones.
    needed = np.minimum(delta + math.exp(epsilon) * high, 1 - (1 - high - delta) * math.exp(-epsilon))
    enough = np.searchsorted(low, needed[usual], side="right")
    return float((weights[usual] * binom.sf(enough - 1, plays, tpr)).sum())


def _smallest(reached: Callable[[int], bool]) -> int:
    """The smallest number of plays, to two digits, from which on a growing condition holds."""
    high = 2
    while not reached(high):
        high *= 2
        if high > 2**24:
            raise ValueError("more than 16 million plays a side would be needed")
    low = high // 2
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        if reached(middle):
            high = middle
        else:
            low = middle
    return high


def family(found: Sequence[Tested], level: float = FAMILY_LEVEL) -> list[dict[str, Any]]:
    """Every test with its verdict, judged together by Holm's rule; plain data."""
    significant = holm([t.p_value for t in found], level)
    rows = []
    for tested, is_violated in zip(found, significant, strict=True):
        status, reason = verdict(tested, is_violated)
        rows.append({**tested.__dict__, "verdict": status, "reason": reason})
    return rows

