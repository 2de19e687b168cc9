"""One row of an attack, as table `risk_attacks` holds it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .rates import Rate

# Of the interval that decides a verdict: several attacks are judged at once, and at 95 % a release without any leak would
# be accused by one of them every few runs. A wrong verdict has a chance of 1 in 1,000, as in the test of a claim.
VERDICT_CONFIDENCE = 0.998
LEAK, NONE, UNTESTED = "leak", "no_leak_found", "not_tested"


@dataclass(frozen=True)
class Attack:
    """What one attacker achieved.

    Attributes:
        attack, attacker: kind and name.
        n: plays, records or predicates.
        accuracy, accuracy_low, accuracy_high: balanced accuracy, or the rate of success, with its interval.
        auc, auc_low, auc_high, tpr_at_1pct_fpr: of a membership attack.
        chance: success of guessing.
        control: success of the same attack on people who were not used to make the release.
        difference, difference_low, difference_high: rate less control, with its interval.
        verdict: 'leak', 'no_leak_found' or 'not_tested'; of a claim 'violated', 'not_violated' or 'not_evaluated'.
        status, reason: as in the store; a reason is also given where a figure needs one.
    """

    attack: str
    attacker: str
    n: int | None = None
    accuracy: float | None = None
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    auc: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None
    tpr_at_1pct_fpr: float | None = None
    chance: float | None = None
    control: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    epsilon_claimed: float | None = None
    delta_claimed: float | None = None
    adjacency: str | None = None
    mechanism: str | None = None
    bound: float | None = None
    optimum: float | None = None
    epsilon_lower_bound: float | None = None
    p_value: float | None = None
    replicate: int | None = None
    qi_set: str | None = None
    sensitive_attribute: str | None = None
    verdict: str | None = None
    status: str = "ok"
    reason: str | None = None

    def row(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def untested(attack: str, attacker: str, reason: str, about: dict[str, Any]) -> Attack:
    """A row that says why there is no figure."""
    return Attack(attack, attacker, verdict=UNTESTED, status="undefined", reason=reason, **about)


def against_control(
    attack: str,
    attacker: str,
    hits: float,
    n: int,
    chance: float | None,
    control: tuple[float, int] | None,
    about: dict[str, Any],
    confidence: float = 0.95,
) -> Attack:
    """A rate of success beside chance and, where there is a holdout, the same attack on it.

    The verdict is 'leak' where the interval of the difference from the control (Newcombe 1998) is above 0 at
    VERDICT_CONFIDENCE; without a holdout, where the rate's is above chance, which may be inference from the population
    alone.

    Args:
        attack, attacker: names.
        hits, n: successes (shares of a tie count) among n.
        chance: success of guessing.
        control: successes and number on the holdout.
        about: further fields.
        confidence: of the intervals that are reported.
    """
    from ..intervals import proportion

    low, high = proportion(hits, n, confidence, "wilson")
    rate = hits / n
    figures: dict[str, Any] = {"n": n, "accuracy": rate, "accuracy_low": low, "accuracy_high": high, "chance": chance}
    if control is None:
        least = proportion(hits, n, VERDICT_CONFIDENCE, "wilson")[0]
        above = chance is not None and least is not None and least > chance
        reason = "compared with guessing: without a holdout inference and membership cannot be told apart"
        return Attack(attack, attacker, **figures, verdict=LEAK if above else NONE, reason=reason, **about)
    change = difference((hits, n), control, confidence)
    figures |= {"control": control[0] / control[1], "difference": change.value, "difference_low": change.low,
                "difference_high": change.high}  # fmt: skip
    least = difference((hits, n), control, VERDICT_CONFIDENCE).low
    verdict = LEAK if least is not None and least > 0 else NONE
    return Attack(attack, attacker, **figures, verdict=verdict, reason="compared with the holdout", **about)


def difference(one: tuple[float, int], other: tuple[float, int], confidence: float = 0.95) -> Rate:
    """Difference of two rates with Newcombe's interval (1998, method 10), of two Wilson intervals."""
    import math

    from ..intervals import proportion

    p, q = one[0] / one[1], other[0] / other[1]
    a, b = (proportion(c, n, confidence, "wilson") for c, n in (one, other))
    below = math.hypot(p - float(a[0] or 0), float(b[1] or 0) - q)
    above = math.hypot(float(a[1] or 0) - p, q - float(b[0] or 0))
    return Rate(p - q, p - q - below, p - q + above)
