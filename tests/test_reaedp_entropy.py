"""Entropy, and its exact sensitivities against every histogram there is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rapid_spark.reaedp import entropy
from rapid_spark.reaedp.entropy import renyi, renyi_sensitivity, shannon, shannon_sensitivity


def histograms(n, bins):
    """All histograms of n records, up to the order of the bins."""
    if bins == 1:
        yield (n,)
        return
    for most in range(n + 1):
        for rest in histograms(n - most, bins - 1):
            if most >= rest[0]:
                yield (most, *rest)


def neighbours(counts):
    for i in range(len(counts)):
        for j in range(len(counts)):
            if i != j and counts[i] > 0:
                moved = list(counts)
                moved[i] -= 1
                moved[j] += 1
                yield moved


def plain(counts, order):
    p = np.array([c for c in counts if c], float) / sum(counts)
    return -(p * np.log2(p)).sum() if order is None else np.log2((p**order).sum()) / (1 - order)


def brute_force(n, bins, order):
    return max(
        (abs(plain(h, order) - plain(m, order)) for h in histograms(n, bins) for m in neighbours(h)), default=0.0
    )


@pytest.mark.parametrize("counts, bits", [([4], 0.0), ([1, 1], 1.0), ([2, 2, 2, 2, 0], 2.0), ([3, 1], 0.8112781245)])
def test_shannon(counts, bits):
    assert shannon(counts) == pytest.approx(bits)


@pytest.mark.parametrize("order", [0.5, 1.5, 2, 5, 900])
def test_renyi_is_its_definition_and_log_of_the_bins_when_uniform(order):
    assert renyi([5, 3, 0, 2], 2) == pytest.approx(-math.log2(0.38))
    assert renyi([7, 7, 7], order) == pytest.approx(math.log2(3))
    assert renyi([5, 3, 0, 2], 1 + 1e-7) == pytest.approx(shannon([5, 3, 2]), abs=1e-5)


@pytest.mark.parametrize("counts", [[0, 0], [], [1, -1], [1, math.nan]])
def test_entropy_of_no_histogram_is_refused(counts):
    with pytest.raises(ValueError, match="count"):
        shannon(counts)


@pytest.mark.parametrize("order", [0, -1, 1, math.inf, math.nan, 1001])
def test_orders_without_a_meaning_are_refused(order):
    with pytest.raises(ValueError, match="order is"):
        renyi([1, 2], order)
    with pytest.raises(ValueError, match="order is"):
        renyi_sensitivity(10, 3, order)


@pytest.mark.parametrize("order", [None, 0.5, 1.5, 2, 5])
def test_sensitivity_equals_brute_force_for_few_records(order):
    for n in range(1, 8):
        for bins in range(1, 6):
            exact = shannon_sensitivity(n, bins) if order is None else renyi_sensitivity(n, bins, order)
            assert exact == pytest.approx(brute_force(n, bins, order), abs=1e-12), (n, bins)


@pytest.mark.slow
@pytest.mark.parametrize("order", [None, 0.5, 1.5, 2, 5, 0.9, 1.1, 2.5])
def test_sensitivity_equals_brute_force_up_to_twelve_records(order):
    for n in range(8, 13):
        for bins in range(2, 6):
            exact = shannon_sensitivity(n, bins) if order is None else renyi_sensitivity(n, bins, order)
            assert exact == pytest.approx(brute_force(n, bins, order), abs=1e-12), (n, bins)


def every_move(n, bins, order):
    """The largest change over all (x, y) with the other records spread evenly (order above 1)."""
    best = 0.0
    for x in range(n):
        y = np.array([n - 1 - x]) if bins == 2 else np.arange(n - x)
        level, fuller = np.divmod(n - 1 - x - y, max(bins - 2, 1))
        rest = 0 if bins == 2 else fuller * (level + 1.0) ** order + (bins - 2 - fuller) * level.astype(float) ** order
        before = (x + 1.0) ** order + y.astype(float) ** order + rest
        after = float(x) ** order + (y + 1.0) ** order + rest
        best = max(best, np.abs(np.log2(before / after)).max() / (order - 1))
    return best


@pytest.mark.parametrize("order", [1.2, 1.5, 2, 2.1, 3, 8, 50])
@pytest.mark.parametrize("n, bins", [(60, 2), (97, 3), (200, 7), (150, 40), (80, 500)])
def test_search_finds_the_worst_move_among_many_records(n, bins, order):
    assert renyi_sensitivity(n, bins, order) == pytest.approx(every_move(n, bins, order), rel=1e-11)


def test_the_papers_renyi_constant_is_no_bound():
    def papers(n, order):
        return 2 * order / (abs(1 - order) * math.log(2)) / n

    n = 10_000
    one_bin = abs(renyi([n, 0], 0.5) - renyi([n - 1, 1], 0.5))
    among_singletons = abs(renyi([101] + [1] * (n - 101), 2) - renyi([100, 2] + [1] * (n - 102), 2))
    assert one_bin == pytest.approx(2.885 / math.sqrt(n), rel=0.01)
    assert one_bin > 90 * papers(n, 0.5)
    assert among_singletons == pytest.approx(1.44 / math.sqrt(n), rel=0.02)
    assert among_singletons > 20 * papers(n, 2)
    assert renyi_sensitivity(n, 2, 0.5) >= one_bin - 1e-12
    assert renyi_sensitivity(n, n, 2) >= among_singletons - 1e-12


@pytest.mark.parametrize("n, published", [(100_000, 0.00037), (10_000, 0.00300), (1460, 0.01676), (601, 0.03645)])
def test_theorem_3_gives_the_published_errors_and_the_exact_one_about_half(n, published):
    assert round(shannon_sensitivity(n, 30, bound="theorem3"), 5) == published
    assert 0.4 < shannon_sensitivity(n, 30) / published < 0.55


@pytest.mark.parametrize("n", [2, 50, 1000, 10**7])
def test_shannon_sensitivity_is_the_step_out_of_one_bin(n):
    formula = math.log2(n) - (n - 1) / n * math.log2(n - 1)
    assert shannon_sensitivity(n, 2) == pytest.approx(formula, abs=1e-13)


def test_large_n_is_answered_and_decreasing():
    values = [renyi_sensitivity(10**k, 30, 5) for k in range(1, 10)]
    assert all(a > b > 0 for a, b in zip(values, values[1:], strict=False))


@pytest.mark.parametrize(
    "n, bins, bound", [(0, 2, "exact"), (1.5, 2, "exact"), (10, 0, "exact"), (10, 2, "theorem4"), (True, 2, "exact")]
)
def test_bad_sensitivity_requests_are_refused(n, bins, bound):
    with pytest.raises(ValueError, match="n is|bins is|bound is"):
        shannon_sensitivity(n, bins, bound)


@pytest.mark.parametrize("order, bound", [(None, "exact"), (None, "theorem3"), (2, "exact"), (0.5, "exact")])
def test_smallest_epsilon_meets_the_target_and_no_smaller_one_does(order, bound):
    epsilon = entropy.smallest_epsilon(0.01, 1460, 30, order, bound)
    drawn = entropy.release([1460] + [0] * 29, epsilon, 1460, order=order, bound=bound)
    assert drawn.expected_error == pytest.approx(0.01)


def test_smallest_epsilon_by_theorem_3_at_the_published_error_is_about_one():
    assert entropy.smallest_epsilon(0.01676, 1460, 30, bound="theorem3") == pytest.approx(1, rel=1e-3)


def test_released_entropy_spreads_as_its_scale_says():
    counts = [400, 300, 200, 100]
    drawn = [entropy.release(counts, 1.0, 1000) for _ in range(2000)]
    errors = np.array([d.noisy for d in drawn]) - shannon(counts)
    assert drawn[0].scale == pytest.approx(shannon_sensitivity(1000, 5))
    assert abs(errors).mean() == pytest.approx(drawn[0].expected_error, rel=0.12)
    assert len(set(errors)) == 2000
    assert all(0 <= d.value <= math.log2(5) for d in drawn)


def test_a_release_says_what_it_promises():
    promise = entropy.release([3, 2], 0.5, 5).guarantee
    assert (promise.epsilon, promise.delta, promise.adjacency, promise.mechanism) == (0.5, 0, "replace", "laplace")
    assert promise.sensitivity == shannon_sensitivity(5, 3)


def test_records_outside_the_domain_are_one_more_bin():
    drawn = entropy.release([50, 0], 1000.0, 100)
    assert drawn.bins == 3
    assert drawn.noisy == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("change", [{"epsilon": 0}, {"epsilon": -1}, {"n_declared": 4}, {"order": 2, "bound": "theorem3"}])
def test_wrong_entropy_requests_are_refused(change):
    with pytest.raises(ValueError):
        entropy.release(**({"counts": [3, 2], "epsilon": 1.0, "n_declared": 5} | change))
