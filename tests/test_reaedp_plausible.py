"""Mechanism F against exact enumerations, and its planner against the figures that are known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from rapid_spark.reaedp import accounting, noise, plausible
from rapid_spark.reaedp.plausible import PrivacyTest, best_test, plan


def chance(count, k, epsilon0):
    """P(count >= k + L), L discrete Laplace, from its law."""
    x, q = count - k, math.exp(-epsilon0)
    return q**-x / (1 + q) if x < 0 else 1 - q ** (x + 1) / (1 + q)


def law(database, p, test):
    """F's exact probability of each record y: for every seed the count of its class, straight from the definition."""
    out = np.zeros(p.shape[1])
    for y in range(p.shape[1]):
        kind = [math.floor(-math.log(p[s, y], test.gamma)) if p[s, y] > 0 else None for s in database]
        for s, i in zip(database, kind, strict=True):
            if i is not None:
                out[y] += p[s, y] * chance(kind.count(i), test.k, test.epsilon0) / len(database)
    return out


def needed_delta(a, b, epsilon):
    return max(np.maximum(a - math.exp(epsilon) * b, 0).sum(), np.maximum(b - math.exp(epsilon) * a, 0).sum())


def worlds(times, seed):
    """Random tests, models and neighbouring databases, far from and close to the worst."""
    rng = np.random.default_rng(seed)
    for _ in range(times):
        seeds, records = rng.integers(2, 5), rng.integers(2, 5)
        p = rng.dirichlet(np.ones(records) * rng.choice([0.2, 1.0]), seeds)
        if rng.random() < 0.3 and seeds <= records:
            p = np.eye(seeds, records)
        n = int(rng.integers(3, 14))
        k = int(rng.integers(2, n + 1))
        test = PrivacyTest(k, int(rng.integers(1, k)), float(rng.choice([1.5, 2, 4])), float(rng.choice([0.3, 1, 2, 3])))
        database = rng.choice(seeds, n, p=rng.dirichlet(np.ones(seeds) * 0.5))
        yield test, p, database, rng.integers(seeds), rng.integers(seeds)


def ratios(times, seed):
    """Needed delta over claimed delta, for each bound: single shot and until one passes."""
    for test, p, database, extra, _ in worlds(times, seed):
        n = len(database)
        a, b = law(database, p, test), law(np.append(database, extra), p, test)
        least = min(a.sum(), b.sum())
        for bound in ("theorem1", "tight"):
            yield bound, "single", needed_delta(a, b, test.epsilon) / test.delta(bound=bound, n=n)
            until = needed_delta(a / a.sum(), b / b.sum(), test.epsilon)
            yield bound, "until", until / test.delta(least, bound, n)


def largest(times, seed):
    result = {}
    for bound, way, ratio in ratios(times, seed):
        result[bound, way] = max(result.get((bound, way), 0), ratio)
    return result


def test_enumerated_outputs_stay_within_the_claim_and_the_tight_bound_is_attained():
    found = largest(400, seed=1)
    assert max(found.values()) <= 1 + 1e-9
    assert found["tight", "single"] > 0.99
    assert found["theorem1", "until"] < 0.5


@pytest.mark.slow
def test_four_thousand_enumerations_find_nothing_above_the_bounds():
    assert max(largest(4000, seed=2).values()) <= 1 + 1e-9


@pytest.mark.slow
def test_half_of_the_exponential_would_be_too_little_for_discrete_noise():
    """The factor 1/2 belongs to continuous noise; with whole-number noise the tail is 1/(1 + e^-epsilon0)."""
    worst = 0.0
    for test, p, database, extra, _ in worlds(1000, seed=3):
        a, b = law(database, p, test), law(np.append(database, extra), p, test)
        half = math.exp(-test.epsilon0 * (test.k - test.t)) / (2 * (len(database) + 1))
        worst = max(worst, needed_delta(a, b, test.epsilon) / half)
    assert worst > 1.5


def test_under_replace_a_single_shot_stays_within_the_tail_over_n():
    for test, p, database, one, other in worlds(300, seed=4):
        n = len(database) + 1
        a, b = (law(np.append(database, r), p, test) for r in (one, other))
        assert needed_delta(a, b, test.epsilon) <= noise.laplace_tail(test.k - test.t, 1 / test.epsilon0) / n * (1 + 1e-9)


def test_two_records_drawn_until_they_pass_stay_within_the_composed_claim():
    for test, p, database, extra, _ in worlds(150, seed=5):
        a, b = law(database, p, test), law(np.append(database, extra), p, test)
        each = test.delta(min(a.sum(), b.sum()), n=len(database))
        if each > 0.2:
            continue
        pairs = [np.outer(x / x.sum(), x / x.sum()).ravel() for x in (a, b)]
        epsilon = accounting.compose(test.epsilon, each, 2, 2 * each, grid="exact")
        assert needed_delta(*pairs, epsilon) <= 2 * each + 1e-12


def test_the_division_by_the_pass_probability_is_needed():
    """n = 40, k = 12, t = 8, gamma = 2, epsilon0 = 1: without it the claim would be broken."""
    test = PrivacyTest(12, 8, 2.0, 1.0)
    assert test.delta() == pytest.approx(0.018, abs=5e-4)
    p = np.eye(5)
    database = np.concatenate([np.repeat(range(4), 8), np.repeat(4, 8)])
    a, b = law(database, p, test), law(np.append(database, 0), p, test)
    assert needed_delta(a / a.sum(), b / b.sum(), test.epsilon) <= test.delta(min(a.sum(), b.sum()), n=40)
    few = np.repeat(range(8), 5)
    eight = np.eye(9)
    a, b = law(few, eight, test), law(np.append(few, 8), eight, test)
    assert needed_delta(a / a.sum(), b / b.sum(), test.epsilon) > noise.laplace_tail(4, 1.0) / 41


@pytest.mark.parametrize("k, delta", [(6366, 2.5e-10), (50, 1e-3), (10, 0.01), (3, 0.2)])
@pytest.mark.parametrize("gamma", [1.0001, 4.0, 30.0])
def test_best_test_is_the_best_of_all_t(k, delta, gamma):
    best = min(math.log(1 / delta) / (k - t) + math.log1p(gamma / t) for t in range(1, k))
    found = best_test(k, delta, gamma)
    assert found.epsilon == pytest.approx(best, rel=1e-9)
    assert found.delta() == pytest.approx(delta)


@pytest.mark.parametrize("bound, until", list(itertools.product(["theorem1", "tight"], [None, 0.3])))
def test_best_test_meets_its_delta(bound, until):
    test = best_test(400, 1e-8, 4.0, until, bound)
    assert test.delta(until, bound) == pytest.approx(1e-8, rel=1e-4)


@pytest.mark.parametrize("records, epsilon, k", [(1, 1, 32), (100, 1, 1757), (1000, 8, 930)])
def test_planner_finds_the_known_k(records, epsilon, k):
    found = plan(records, epsilon, 1e-6, 4)
    assert k - 2 <= found["k"] <= k
    assert found["epsilon_total"] <= epsilon and found["delta_total"] == 1e-6


def test_a_thousand_records_need_6366_and_more_until_they_pass():
    single = plan(1000, 1, 1e-6, 4)
    until = plan(1000, 1, 1e-6, 4, pass_probability=0.5)
    assert 6360 <= single["k"] <= 6366 < until["k"]
    for k, fits in ((6366, True), (5000, False)):
        each = 1e-6 / 2 / 1000
        total = accounting.compose(best_test(k, each, 4).epsilon, each, 1000, 1e-6)
        assert (total <= 1) == fits
    # ln(1 / P) / epsilon0 more plausible seeds, give or take the other terms.
    assert until["k"] - single["k"] == pytest.approx(math.log(2) / single["epsilon0"], rel=0.1)


def test_until_they_pass_6366_is_no_longer_enough():
    each = 1e-6 / 2 / 1000
    total = accounting.compose(best_test(6366, each, 4, pass_probability=0.5).epsilon, each, 1000, 1e-6)
    assert total == pytest.approx(1.018, abs=0.003)


@pytest.mark.parametrize("options", [{"grid": "exact"}, {"bound": "tight"}])
def test_finer_accounting_needs_fewer_seeds_and_keeps_its_word(options):
    found = plan(1000, 1, 1e-6, 4, **options)
    assert found["k"] < 6300
    total = accounting.compose(found["epsilon_per_record"], found["delta_per_record"], 1000, 1e-6, options.get("grid", "library"))
    assert total <= 1 and total == pytest.approx(found["epsilon_total"])


def test_one_k_less_would_not_do():
    found = plan(50, 2, 1e-7, 4, grid="exact")
    each = 1e-7 / 2 / 50
    total = accounting.compose(best_test(found["k"] - 1, each, 4).epsilon, each, 50, 1e-7, "exact")
    assert found["epsilon_total"] <= 2 < total


@pytest.mark.parametrize("n, until, word", [(5000, None, "5,000 persons"), (10_000, 0.4, "cannot be proved"), (100_000, 0.4, None)])
def test_plans_that_the_persons_cannot_carry_are_infeasible(n, until, word):
    found = plan(1000, 1, 1e-6, 4, until, n_declared=n)
    assert found["feasible"] == (word is None)
    assert word is None or word in found["reason"]


@pytest.mark.parametrize(
    "change, word",
    [
        ({"records": 0}, "records"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"gamma": 1}, "gamma"),
        ({"pass_probability": 0}, "pass_probability"),
        ({"pass_probability": 1.1}, "pass_probability"),
        ({"bound": "lemma"}, "theorem1, tight"),
    ],
)
def test_wrong_plans_are_refused(change, word):
    with pytest.raises(ValueError, match=word):
        plan(**({"records": 10, "epsilon": 1.0, "delta": 1e-6, "gamma": 4.0} | change))


@pytest.mark.parametrize("k, t, word", [(5, 5, "t below k"), (5, 6, "t below k"), (5, 0, "t is 0"), (1, 1, "k is 1"), (5, 1.5, "whole")])
def test_k_and_t_must_fit_the_theorem(k, t, word):
    with pytest.raises(ValueError, match=word):
        PrivacyTest(k, t, 4.0, 1.0)


def test_the_test_passes_as_often_as_its_law_says():
    test = PrivacyTest(10, 2, 4.0, 0.5)
    for count in (5, 9, 10, 13):
        seen = test.passes(np.full(8000, count)).mean()
        assert seen == pytest.approx(chance(count, 10, 0.5), abs=0.03)


def test_support_moves_by_one_record_at_most():
    rng = np.random.default_rng(0)
    for counts in rng.integers(0, 12, (50, 6)):
        for group in range(6):
            more = counts.copy()
            more[group] += 1
            assert plausible.support(more, 5) - plausible.support(counts, 5) in (0, 1)
    assert plausible.support([12, 4, 5, 6], 5) == 8


def test_support_proves_the_pass_probability_of_both_neighbours():
    p = np.eye(4)
    test = PrivacyTest(5, 2, 4.0, 1.0)
    database = np.repeat([0, 1, 2], [12, 8, 3])
    exact = plausible.support(np.bincount(database), 5)
    for neighbour in (database, np.append(database, 3), database[1:]):
        assert law(neighbour, p, test).sum() >= (exact - 1) / (2 * 24)


def test_noisy_support_is_too_high_no_more_often_than_beta():
    drawn = [plausible.release_support(np.array([500, 3]), 100, 1.0, 0.2, 1000) for _ in range(3000)]
    proved = np.array([d.pass_probability for d in drawn])
    assert (proved > (400 - 1) / 2000).mean() <= 0.2 + 0.03
    assert drawn[0].pass_probability == pytest.approx((drawn[0].noisy - 1 - math.log(5)) / 2000)
    assert (drawn[0].guarantee.epsilon, drawn[0].guarantee.delta) == (1.0, 0.2)


@pytest.mark.parametrize("records, passing, failure", [(1, 0.01, 1e-3), (100, 0.3, 1e-6), (5000, 0.5, 1e-9)])
def test_enough_attempts_are_made(records, passing, failure):
    from scipy.stats import binom

    attempts = plausible.attempts_for(records, passing, failure)
    assert binom.cdf(records - 1, attempts, passing) <= failure
    assert attempts < 30 * (records + 20) / passing


def test_classes_hold_probabilities_within_gamma():
    logs = np.append(np.log(np.geomspace(1e-6, 1, 2000)), -np.inf)
    classes = plausible.plausible_class(logs, 4.0)
    assert classes[-1] == -1
    for i in range(1, 8):
        inside = np.exp(logs[:-1][classes[:-1] == i])
        assert inside.max() / inside.min() < 4
        assert 4.0 ** -(i + 1) * 0.999 < inside.min() and inside.max() <= 4.0**-i * 1.001
