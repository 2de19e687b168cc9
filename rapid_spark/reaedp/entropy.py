"""Entropy of counts, how far one record can move it, and its release: logs base 2, replace adjacency.

Readers of the REAEDP paper (Ma, Wu, Yan 2026, arXiv:2603.13709), note two corrections:

- Shannon: Theorem 3's bound (2 + 1/ln 2 + 2 log2 n) / n is valid, but about twice the exact sensitivity,
  which is used here by default.
- Renyi: the paper's constant 2a / (|1 - a| ln 2) / n is no bound at all. At order 1/2, going from (n, 0) to
  (n - 1, 1) moves H by about 2.885 / sqrt(n); at order 2, one bin of sqrt(n) records among bins of one moves
  it by about 1.44 / sqrt(n). Noise calibrated by it would break the guarantee. `renyi_sensitivity` gives the
  exact worst case.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from rapid_spark.reaedp.budget import Guarantee, check_epsilon, check_integer
from rapid_spark.reaedp.noise import add_laplace_to_value

Bound = Literal["exact", "theorem3"]
# What rounding in the computed entropy may add to its sensitivity, in bits (Renyi: over |1 - a| where that is
# below 1).
ROUNDING = 1e-10
LARGEST_ORDER = 1000.0


def shannon(counts: npt.ArrayLike) -> float:
    """Shannon entropy H = log2 n - (1/n) sum c log2 c of counts, in bits.

    Args:
        counts: one number of at least 0 per bin, not all 0; whole or not (post-processed counts).

    Raises:
        ValueError: if a count is negative or not finite, or all are 0.
    """
    shares = _shares(counts)
    return max(0.0, float(-(shares * np.log2(shares)).sum()))


def renyi(counts: npt.ArrayLike, order: float) -> float:
    """Renyi entropy log2(sum (c/n)^a) / (1 - a) of counts, in bits, at order a.

    Raises:
        ValueError: as `shannon`, and if the order is not above 0, above 1000, or 1 (there it is the Shannon
            entropy).
    """
    _check_order(order)
    logs = order * np.log2(_shares(counts))
    top = logs.max()  # Taken out first, so that no power underflows.
    return max(0.0, float((top + np.log2(np.exp2(logs - top).sum())) / (1 - order)))


def shannon_sensitivity(n: int, bins: int, bound: Bound = "exact") -> float:
    """The most that changing one of n records moves the Shannon entropy, in bits.

    Exact: moving a record from a bin of c1 to one of c2 changes H by (g(c2 - 1) - g(c1)) / n with
    g(c) = (c + 1) log2(c + 1) - c log2 c increasing, so the worst is all records in one bin:
    log2 n - ((n - 1)/n) log2(n - 1).

    Args:
        n: number of records, public, at least 1.
        bins: number of bins, at least 1; with 1 the entropy is always 0.
        bound: 'exact', or 'theorem3' for the paper's (2 + 1/ln 2 + 2 log2 n) / n.
    """
    n, bins = check_integer(n, 1, "n"), check_integer(bins, 1, "bins")
    if bound == "theorem3":
        return (2 + 1 / math.log(2) + 2 * math.log2(n)) / n
    if bound != "exact":
        raise ValueError(f"bound is {bound!r}; it must be 'exact' or 'theorem3'")
    if n == 1 or bins == 1:
        return 0.0
    # The same without cancellation at large n.
    return math.log2(n - 1) / n - math.log1p(-1 / n) / math.log(2)


def renyi_sensitivity(n: int, bins: int, order: float) -> float:
    """The most that changing one of n records moves the Renyi entropy of order a, in bits, exactly.

    A record goes between two bins that hold x + 1 and y before, x and y + 1 after (x >= y without loss), with
    the other r = n - 1 - x - y records placed to make R, their sum of c^a, smallest. With f(c) = (c+1)^a -
    c^a:

    - a < 1: f decreases, R is smallest in one bin, and sum c^a is smallest with all records in one bin. Both
      the change f(y) - f(x) and the sum are at their extreme at x = n - 1, y = 0.
    - a > 1: R is smallest spread evenly. The ratio to maximise is N / B = (f(x) - f(y)) / (x^a + (y+1)^a +
      R). For rho >= 0, N - rho B = g(x) + W(n - 1 - x), where W(s), the largest of -f(y) - rho (y+1)^a - rho
      R(s - y) over y, is decreasing, and concave for a >= 2 (a sup-convolution of concave sequences). As
      functions of X = x^a, g = (X^(1/a) + 1)^a - X - rho X is concave (the first term is an l_p norm with p =
      1/a < 1 of (X, 1)), and so is W(n - 1 - X^(1/a)). So the best ratio at each x rises and then falls in x,
      and for each x it does so in y: two nested searches find the maximum, at any n.
    - 1 < a <= 2 with three bins or more: y = 0 is best, because taking y records from the other bins lowers B
      by at most what Young's inequality a q x^(a-1) <= q^a + (a-1) x^a allows; N is then concave and B convex
      in x.
    - two bins: y = n - 1 - x, and the difference of two neighbouring values of ln(u^a + (n-u)^a) rises and
      then falls in u (for a <= 2 it only rises).

    Args:
        n: number of records, public, at least 1.
        bins: number of bins, at least 1.
        order: a, above 0, at most 1000 and not 1.
    """
    n, bins = check_integer(n, 1, "n"), check_integer(bins, 1, "bins")
    _check_order(order)
    if n == 1 or bins == 1:
        return 0.0
    if order < 1:
        # ((n-1)^a + 1) / n^a - 1, without cancellation.
        gain = math.expm1(order * math.log1p(-1 / n)) + math.exp(-order * math.log(n))
        return math.log1p(gain) / math.log(2) / (1 - order)

    def over_y(x: int) -> float:
        rest = n - 1 - x
        if bins == 2:
            return _gain(x, rest, 0, 0, order)
        if order <= 2:
            return _gain(x, 0, rest, bins - 2, order)
        return _largest(lambda y: _gain(x, y, rest - y, bins - 2, order), 0, min(x, rest))

    # x is never below the other bins: swapping it with a fuller one would raise the ratio.
    gain = _largest(over_y, -(-(n - 1) // bins), n - 1)
    return math.log1p(gain) / math.log(2) / (order - 1)


def smallest_epsilon(
    target_error: float, n: int, bins: int, order: float | None = None, bound: Bound = "exact"
) -> float:
    """The smallest epsilon at which the expected absolute error of the released entropy is `target_error`
    bits.

    The error of Laplace noise is its scale, sensitivity / epsilon, before the value is kept within its range.
    Uses n, bins and nothing of the data.

    Args:
        target_error: in bits, above 0.
        n: number of records, public.
        bins: number of declared bins; `release` adds one for values outside the domain.
        order: Renyi order, or None for Shannon.
        bound: see `shannon_sensitivity`; Renyi knows only 'exact'.
    """
    if not (math.isfinite(target_error) and target_error > 0):
        raise ValueError(f"target_error is {target_error}; it must be a finite number of bits above 0")
    return (_released_sensitivity(n, bins, order, bound)[0] + _rounding(order)) / target_error


@dataclass(frozen=True)
class EntropyRelease:
    """A released entropy: `noisy` as drawn, `value` kept within [0, log2 min(n, bins)], and what it promises.

    `expected_error` is the expected absolute error of `noisy` in bits; that of `value` is at most as large.
    """

    noisy: float
    value: float
    scale: float
    expected_error: float
    n: int
    bins: int
    order: float | None
    guarantee: Guarantee


def release(
    counts: npt.ArrayLike,
    epsilon: float,
    n_declared: int,
    *,
    order: float | None = None,
    bound: Bound = "exact",
    protected_unit: str = "record",
) -> EntropyRelease:
    """Draw the entropy of counts with Laplace noise, once.

    Records outside the declared domain are the difference to `n_declared` and count as one more bin, `other`,
    which is there whether or not anything falls in it. A noisy histogram of the same table gives its entropy
    without a budget.

    Args:
        counts: exact counts of the declared bins.
        epsilon: above 0.
        n_declared: number of records; public under replace, so that counts above it are a fault.
        order: Renyi order, or None for Shannon.
        bound: 'exact', or 'theorem3' for Shannon.
        protected_unit: what one of the n records stands for.

    Raises:
        ValueError: for a bad parameter, or counts that add up to more than `n_declared`.
    """
    exact = np.asarray(counts, dtype=np.int64)
    check_epsilon(epsilon)
    sensitivity, bins = _released_sensitivity(n_declared, len(exact), order, bound)
    other = n_declared - int(exact.sum())
    if other < 0 or (len(exact) and exact.min() < 0):
        raise ValueError(
            f"the counts do not fit n_declared = {n_declared}, which must be the number of records"
        )
    whole = np.append(exact, other)
    entropy = shannon(whole) if order is None else renyi(whole, order)
    noisy, scale = add_laplace_to_value(entropy, sensitivity + _rounding(order), epsilon)
    value = min(max(noisy, 0.0), math.log2(min(n_declared, bins)))
    guarantee = Guarantee(epsilon, 0.0, "replace", "laplace", sensitivity, protected_unit)
    return EntropyRelease(noisy, value, scale, scale, n_declared, bins, order, guarantee)


def released_sensitivity(n: int, bins: int, order: float | None = None, bound: Bound = "exact") -> float:
    """The sensitivity of what `release` draws: of the declared bins and one more, `other`, in bits."""
    return _released_sensitivity(n, bins, order, bound)[0]


def _released_sensitivity(n: int, bins: int, order: float | None, bound: Bound) -> tuple[float, int]:
    with_other = check_integer(bins, 1, "bins") + 1
    if order is None:
        return shannon_sensitivity(n, with_other, bound), with_other
    if bound != "exact":
        raise ValueError(
            f"bound is {bound!r}; the Renyi entropy has only 'exact' (the paper's constant is no bound)"
        )
    return renyi_sensitivity(n, with_other, order), with_other


def _rounding(order: float | None) -> float:
    return ROUNDING if order is None else ROUNDING / min(1.0, abs(1 - order))


def _gain(x: int, y: int, rest: int, bins: int, order: float) -> float:
    """(f(x) - f(y)) / (x^a + (y+1)^a + R): by which share sum c^a is larger before the move than after."""
    top = max(x, y + 1, 1)
    level, fuller = divmod(rest, bins) if bins else (0, 0)
    top = max(top, level + 1)
    others = fuller * ((level + 1) / top) ** order + (bins - fuller) * (level / top) ** order
    after = (x / top) ** order + ((y + 1) / top) ** order + others
    return (_step(x, top, order) - _step(y, top, order)) / after


def _step(c: int, top: int, order: float) -> float:
    """((c+1)^a - c^a) / top^a without cancellation."""
    if c == 0:
        return math.exp(-order * math.log(top))
    return (c / top) ** order * math.expm1(order * math.log1p(1 / c))


def _largest(value: Callable[[int], float], low: int, high: int) -> float:
    """The maximum over whole numbers of a function that rises and then falls."""
    while high - low > 3:
        third = (high - low) // 3
        left, right = low + third, high - third
        if value(left) < value(right):
            low = left
        else:
            high = right
    return max(value(i) for i in range(low, high + 1))


def _shares(counts: npt.ArrayLike) -> npt.NDArray[np.float64]:
    array = np.asarray(counts, dtype=np.float64).ravel()
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError("a count is negative or not a number; counts are finite and at least 0")
    total = array.sum()
    if total <= 0:
        raise ValueError("all counts are 0; the entropy of no records is not defined")
    return array[array > 0] / total


def _check_order(order: float) -> None:
    if not 0 < order <= LARGEST_ORDER:
        raise ValueError(f"order is {order}; it must be above 0 and at most {LARGEST_ORDER:g}")
    if order == 1:
        raise ValueError("order is 1; the Renyi entropy of order 1 is the Shannon entropy: use that")
