"""Mechanism F, its privacy test and what it costs: plausible deniability (Bindschaedler et al., VLDB 2017).

A seed s is drawn uniformly from the n records of D; a record y is drawn from p_s; I_s(y) = floor(-log_gamma
p_s(y)); c is the number of records of D whose I equals the seed's; y is released when c >= k + L, with L
discrete Laplace noise of scale 1/epsilon0, fresh for each candidate.

Theorem 1 (`bound="theorem1"`, the default): under add_remove, for n >= k, gamma > 1 and any whole 1 <= t < k,
a released record is (epsilon, delta)-private with epsilon = epsilon0 + ln(1 + gamma/t), delta = exp(-epsilon0
(k - t)). Drawing until one passes costs (epsilon, delta (1 + 1/n) / P), P the smaller pass probability of the
two neighbours. "No output" is outside: nothing about failures, attempts or run time may be published.

A smaller delta (`bound="tight"`), at the same epsilon, with T(c) = P(L <= c - k), the chance to pass with c
records: single shot T(t) / (n + 1); until one passes T(t) / ((n + 1) P). For discrete noise T(t) =
exp(-epsilon0 (k - t)) / (1 + exp(-epsilon0)); for continuous noise it is half of exp(-epsilon0 (k - t)). No
published proof is known; here is ours.

Proof. Let D' = D + d. For a record y put the records of D in classes by I, with Q_i the sum of p_s(y) over a
class and c_i its size, so n F_D(y) = sum_i Q_i T(c_i). In (n + 1) F_D'(y) only the class of d differs, from Q
T(c) to (Q + p) T(c + 1), p = p_d(y).
(1) Growing. If c >= t: T(c + 1) <= e^epsilon0 T(c), and p <= gamma Q/c <= gamma Q/t because p differs from
each member of the class by a factor below gamma. So (n + 1) F_D'(y) <= e^epsilon n F_D(y). If c < t: Q T(c +
1) <= e^epsilon Q T(c), and p T(c + 1) <= p T(t). Together (n + 1) F_D'(y) <= e^epsilon n F_D(y) + p_d(y)
T(t), and the sum of p_d(y) over any set of records is at most 1: F_D'(Y) <= (n/(n+1)) e^epsilon F_D(Y) +
T(t)/(n + 1).
(2) Shrinking. (Q + p) T(c + 1) >= Q T(c), so F_D(Y) <= (1 + 1/n) F_D'(Y), and 1 + 1/n <= 1 + gamma/t <=
e^epsilon as n >= k > t. There delta is 0.
(3) Until one passes the law is F/P with P the sum over all y. By (2) P_D <= (1 + 1/n) P_D', so with (1)
F_D'(Y)/P_D' <= e^epsilon F_D(Y)/P_D + T(t)/((n + 1) P_D'). By (1) on all records P_D' <= (n/(n+1)) e^epsilon
P_D + eta, eta = T(t)/(n + 1); by (2) e^epsilon F_D'(Y)/P_D' >= (e^epsilon n/(n+1)) F_D(Y)/P_D' >=
(F_D(Y)/P_D) (P_D' - eta)/P_D', so F_D(Y)/P_D <= e^epsilon F_D'(Y)/P_D' + eta/P_D'. Both have delta T(t)/((n +
1) P_D') <= T(t)/((n + 1) P).
(4) Replace, single shot: D = E + d, D' = E + d' with n - 1 records in E. As in (1) n F_D'(y) <= e^epsilon
sum_i Q_i T(c_i) + p_d'(y) T(t), the sum over E, which is at most n F_D(y): the same epsilon, delta = T(t)/n.

Where the redrawn columns depend on y alone, all records of a class have the same p, and gamma may be as close
to 1 as one likes: nothing but the count of records that agree with y on the kept columns is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from rapid_spark.reaedp import noise
from rapid_spark.reaedp.accounting import Grid, compose, largest_share
from rapid_spark.reaedp.budget import Guarantee, check_delta, check_epsilon, check_integer

Bound = Literal["theorem1", "tight"]
LARGEST_K = 10**9


@dataclass(frozen=True)
class PrivacyTest:
    """The parameters of F's test: pass when the count of plausible seeds is at least k + Laplace noise.

    Attributes:
        k: wanted number of plausible seeds.
        t: whole number from 1 to k - 1, used in the analysis only.
        gamma: width of the classes, above 1.
        epsilon0: of the noise in the test.
    """

    k: int
    t: int
    gamma: float
    epsilon0: float

    def __post_init__(self) -> None:
        check_integer(self.k, 2, "k"), check_integer(self.t, 1, "t")
        if self.k <= self.t:
            raise ValueError(f"k is {self.k} and t is {self.t}; Theorem 1 needs t below k")
        check_gamma(self.gamma)
        check_epsilon(self.epsilon0, "epsilon0")

    @property
    def epsilon(self) -> float:
        """Of one released record under add_remove: epsilon0 + ln(1 + gamma/t)."""
        return self.epsilon0 + math.log1p(self.gamma / self.t)

    def delta(
        self, pass_probability: float | None = None, bound: Bound = "theorem1", n: int | None = None
    ) -> float:
        """Of one released record under add_remove.

        Args:
            pass_probability: a lower bound on P where records are drawn until one passes; None for a single
                shot.
            bound: 'theorem1' or 'tight'.
            n: a lower bound on the number of seed records, in the smaller database; k where it is not known.
        """
        _check_bound(bound)
        records = self.k if n is None else check_integer(n, self.k, "n")
        if pass_probability is not None:
            check_probability(pass_probability)
        chance = 1.0 if pass_probability is None else pass_probability
        if bound == "tight":
            return noise.laplace_tail(self.k - self.t, 1 / self.epsilon0) / (records + 1) / chance
        until = 1.0 if pass_probability is None else 1 + 1 / records
        return math.exp(-self.epsilon0 * (self.k - self.t)) * until / chance

    def passes(self, plausible: noise.Counts) -> npt.NDArray[np.bool_]:
        """Run the test on exact counts of plausible seeds; neither counts nor failures may be published."""
        return noise.add_laplace(plausible, 1 / self.epsilon0) >= self.k


def best_test(
    k: int, delta: float, gamma: float, pass_probability: float | None = None, bound: Bound = "theorem1"
) -> PrivacyTest:
    """The epsilon0 and t with the smallest epsilon of one record for a k and a delta.

    With A = epsilon0 (k - t) fixed by delta, A/(k - t) + ln(1 + gamma/t) is convex in t, smallest where
    A t (t + gamma) = gamma (k - t)^2.
    """
    chance = 1.0 if pass_probability is None else pass_probability
    factor = 1 / (k + 1) if bound == "tight" else (1.0 if pass_probability is None else 1 + 1 / k)
    best = _best_t(k, math.log(factor / chance / delta), gamma)
    if bound == "tight":
        # The tail's own factor 1/(1 + e^-epsilon0) falls with epsilon0: inserting a larger one is safe.
        for _ in range(3):
            tail = 1 / (1 + math.exp(-best.epsilon0))
            best = _best_t(k, math.log(factor * tail / chance / delta), gamma)
    return best


def plan(
    records: int,
    epsilon: float,
    delta: float,
    gamma: float,
    pass_probability: float | None = None,
    *,
    bound: Bound = "theorem1",
    grid: Grid = "library",
    n_declared: int | None = None,
) -> dict[str, Any]:
    """Which k lets `records` released records stay within (epsilon, delta) under add_remove, from declared
    constants.

    Half of delta goes to the records, half to their composition. Without a pass probability the records are
    single shots by Theorem 1 as printed; with one they are drawn until they pass.

    Args:
        records: N, fixed beforehand.
        epsilon: total of all records.
        delta: total of all records, in (0, 1).
        gamma: width of the classes, above 1.
        pass_probability: P, given or bought (see `release_support`).
        bound: 'theorem1' or 'tight' (see the module).
        grid: of the accountant, see `accounting.compose`: 'exact' needs a slightly smaller k.
        n_declared: number of persons; a k that they cannot carry is infeasible.

    Returns:
        feasible, k, epsilon_per_record, delta_per_record, epsilon_total, delta_total, reason (None when
        feasible), and t, epsilon0, gamma of the test. Figures are None where there is no k.

    Raises:
        ValueError: for a parameter out of range.
    """
    records = check_integer(records, 1, "records")
    check_epsilon(epsilon), check_delta(delta), check_gamma(gamma)
    _check_bound(bound)
    if delta == 0:
        raise ValueError("delta is 0; the privacy test needs one above 0")
    if pass_probability is not None:
        check_probability(pass_probability)
    each = delta / 2 / records
    epsilon_each = largest_share(epsilon, delta, records, each, grid)

    def affordable(k: int) -> bool:
        return best_test(k, each, gamma, pass_probability, bound).epsilon <= epsilon_each

    k = _smallest(affordable, 2, LARGEST_K)
    if k is None:
        return _infeasible(
            f"no k up to {LARGEST_K:,} is enough; release fewer records, or raise epsilon or delta"
        )
    test = best_test(k, each, gamma, pass_probability, bound)
    per_record = min(test.delta(pass_probability, bound), each)  # They differ by rounding only.
    result: dict[str, Any] = {
        "feasible": True,
        "k": k,
        "epsilon_per_record": test.epsilon,
        "delta_per_record": per_record,
        "epsilon_total": compose(test.epsilon, per_record, records, delta, grid),
        "delta_total": delta,
        "reason": None,
        "t": test.t,
        "epsilon0": test.epsilon0,
        "gamma": gamma,
    }
    if n_declared is not None and (reason := _too_few(k, pass_probability, n_declared)):
        result |= {"feasible": False, "reason": reason}
    return result


@dataclass(frozen=True)
class Support:
    """What was bought of the pass probability: noisy support, the lower bound it gives, and its price.

    `pass_probability` is at most 1/2, and not above 0 where the support shows nothing.
    """

    noisy: int
    pass_probability: float
    guarantee: Guarantee


def support(kept_counts: noise.Counts, k: int) -> int:
    """S = sum of max(0, c_g - k) over groups alike on the kept columns; add/remove sensitivity 1."""
    return int(np.maximum(np.asarray(kept_counts, dtype=np.int64) - k, 0).sum())


def release_support(
    kept_counts: noise.Counts,
    k: int,
    epsilon: float,
    beta: float,
    n_declared: int,
    protected_unit: str = "record",
) -> Support:
    """Release S with discrete Laplace noise, and the pass probability it proves.

    P >= S/(2n), since a candidate from a group of c >= k records passes with at least 1/2. Of two neighbours
    the smaller S is at most 1 less, so P >= (S~ - 1 - ln(1/beta)/epsilon) / (2 n_declared), except with
    probability beta: the price is (epsilon, beta). `n_declared` must not be below the number of seed records.

    Args:
        kept_counts: exact counts of the groups of seed records.
        k: of the privacy test.
        epsilon: for the support.
        beta: probability that the bound is wrong, charged as delta.
        n_declared: number of persons.
        protected_unit: as in the guarantee.
    """
    check_epsilon(epsilon)
    if not 0 < beta < 1:
        raise ValueError(f"beta is {beta}; it must lie between 0 and 1")
    scale = noise.laplace_scale(1, epsilon)
    noisy = int(noise.add_laplace(np.array([support(kept_counts, k)]), scale)[0])
    guarantee = Guarantee(epsilon, beta, "add_remove", "discrete_laplace", 1.0, protected_unit)
    return Support(noisy, pass_probability(noisy, epsilon, beta, n_declared), guarantee)


def pass_probability(noisy_support: float, epsilon: float, beta: float, n_declared: int) -> float:
    """The lower bound on P from a noisy support; at most 1/2, and possibly not above 0."""
    return min(0.5, (noisy_support - 1 - math.log(1 / beta) / epsilon) / (2 * n_declared))


def largest_pass_probability(k: int, epsilon: float, beta: float, n_declared: int) -> float:
    """What `release_support` gives at best: all declared persons are seeds, alike on the kept columns."""
    return pass_probability(max(n_declared - k, 0), epsilon, beta, n_declared)


def attempts_for(records: int, chance: float, failure: float) -> int:
    """So many candidates that fewer than `records` pass with probability at most `failure`, if each does with
    `chance`.

    By Chernoff's bound, m chance - sqrt(2 m chance ln(1/failure)) >= records. Needed as an end to the
    drawing: that it is reached would show, so `failure` is charged to delta.
    """
    log = math.log(1 / failure)
    return math.ceil(((math.sqrt(log / 2) + math.sqrt(log / 2 + records)) ** 2) / chance)


def plausible_class(log_probability: npt.ArrayLike, gamma: float) -> npt.NDArray[np.int64]:
    """I = floor(-log_gamma p) for probabilities given by their natural logarithms; -1 for p = 0, which is in
    no class.

    Classes are made a hair narrower than gamma, so that rounding never puts two records into one class whose
    probabilities differ by gamma or more.
    """
    logs = np.asarray(log_probability, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        index = np.floor(-logs / (math.log(gamma) * (1 - 1e-9)))
    return np.where(np.isneginf(logs), -1, np.where(np.isfinite(index), index, 0)).astype(np.int64)


def check_gamma(gamma: float) -> float:
    """Return gamma as it came, or raise ValueError unless it is finite and above 1."""
    if not (math.isfinite(gamma) and gamma > 1):
        raise ValueError(f"gamma is {gamma}; it must be a finite number above 1")
    return gamma


def check_probability(probability: float) -> float:
    """Return a pass probability as it came, or raise ValueError unless it lies in (0, 1]."""
    if not 0 < probability <= 1:
        raise ValueError(f"pass_probability is {probability}; it must be above 0 and at most 1")
    return probability


def _best_t(k: int, exponent: float, gamma: float) -> PrivacyTest:
    exponent = max(exponent, 1e-9)
    a, b, c = exponent - gamma, gamma * (exponent + 2 * k), -gamma * k * k
    root = -2 * c / (b + math.sqrt(b * b - 4 * a * c))
    near = {min(max(t, 1), k - 1) for t in (math.floor(root), math.ceil(root))}
    return min((PrivacyTest(k, t, gamma, exponent / (k - t)) for t in near), key=lambda test: test.epsilon)


def _smallest(good: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest whole number that is good, where all above it are."""
    if good(low):
        return low
    reach = low
    while not good(min(2 * reach, high)):
        reach *= 2
        if reach >= high:
            return None
    bad, enough = reach, min(2 * reach, high)
    while enough - bad > 1:
        middle = (bad + enough) // 2
        bad, enough = (bad, middle) if good(middle) else (middle, enough)
    return enough


def _too_few(k: int, chance: float | None, n_declared: int) -> str | None:
    n = check_integer(n_declared, 1, "n_declared")
    if k >= n:
        return (
            f"k is {k:,}, and only {n:,} persons are declared; release fewer records, raise epsilon or "
            "delta, "
            "or draw without seeds"
        )
    most = (n - k) / (2 * n)
    if chance is not None and chance > most:
        return (
            f"with k = {k:,} of {n:,} persons a pass probability above {most:.3g} cannot be proved, and "
            f"{chance:g} is asked for; give a smaller one, release fewer records, raise epsilon or delta, or "
            "draw "
            "without seeds"
        )
    return None


def _infeasible(reason: str) -> dict[str, Any]:
    names = (
        "k",
        "epsilon_per_record",
        "delta_per_record",
        "epsilon_total",
        "delta_total",
        "t",
        "epsilon0",
        "gamma",
    )
    return {"feasible": False, **dict.fromkeys(names), "reason": reason}


def _check_bound(bound: str) -> None:
    if bound not in get_args(Bound):
        raise ValueError(f"bound is {bound!r}; it must be one of {', '.join(get_args(Bound))}")
