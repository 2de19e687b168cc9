"""The test of a claimed epsilon: its formula, its verdicts on broken and right mechanisms, its false alarms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from rapid_spark.attack import claims
from rapid_spark.attack.mechanisms import mechanism, neighbours

HISTOGRAM = np.array([0, 3, 40])


def test_lower_bound_is_the_formula():
    from statsmodels.stats.proportion import proportion_confint

    true, false, plays, delta, alpha = 540, 70, 1000, 1e-5, 0.05
    low, _ = proportion_confint(true, plays, alpha, method="beta")  # two-sided at alpha: alpha / 2 on each side
    _, high = proportion_confint(false, plays, alpha, method="beta")
    expected = max(math.log((low - delta) / high), math.log((1 - high - delta) / (1 - low)))
    assert claims.lower_bound(true, false, plays, delta, alpha) == pytest.approx(expected, rel=1e-9)
    assert claims.lower_bound(0, 0, 10, 0.0, alpha) < 0 and claims.lower_bound(0, 10, 10, 0.0, alpha) == -math.inf


def test_twenty_plays_prove_no_more_than_1_6():
    assert claims.provable(20) == pytest.approx(1.6, abs=0.01)
    assert claims.provable(claims.least_plays(3.0), 0.0, 1e-3) > 3.0


def test_p_value_is_the_alpha_at_which_the_bound_meets_the_claim():
    p = claims.p_value(540, 120, 1000, 1.0, 0.0)
    assert 1e-12 < p < 0.05
    assert claims.lower_bound(540, 120, 1000, 0.0, p * 1.001) > 1.0 >= claims.lower_bound(540, 120, 1000, 0.0, p * 0.999)


@pytest.mark.parametrize(
    ("name", "adjacency", "delta", "caught"),
    [
        ("half_noise", "add_remove", 0.0, True),
        ("float_noise", "add_remove", 0.0, True),
        ("reused_noise", "add_remove", 0.0, True),
        ("sensitivity_one", "replace", 0.0, True),
        ("laplace", "add_remove", 0.0, False),
        ("laplace", "replace", 0.0, False),
        ("gaussian", "replace", 1e-6, False),
    ],
)
def test_broken_mechanisms_are_caught_and_right_ones_pass(name, adjacency, delta, caught):
    testers = ("likelihood_ratio", "low_bits", "common_noise")
    found = claims.challenge(
        neighbours(HISTOGRAM, adjacency), mechanism(name, 1.0, delta, adjacency), 1.0, delta, plays=800, tests=21,
        attackers=testers,
    )  # fmt: skip
    verdicts = [row["verdict"] for row in claims.family(found)]
    assert ("violated" in verdicts) == caught, claims.family(found)


def test_false_alarms_of_a_right_mechanism_over_200_runs():
    """At the family's level none is expected (2 of 200 would have a chance of 2 %); at 95 % a few are."""
    rng, q = np.random.default_rng(1), 1 - math.exp(-1)
    alarms = nominal = 0
    for _ in range(200):
        out, inside = ((rng.geometric(q, 1_000) - rng.geometric(q, 1_000)) + side for side in (0.0, 1.0))
        found = claims.judge("ratio", "laplace", abs(out) - abs(out - 1), abs(inside) - abs(inside - 1), 1.0, 0.0, 1e-3)
        alarms += claims.family([found])[0]["verdict"] == "violated"
        nominal += found.epsilon_lower_bound > 1.0
    assert alarms <= 1
    assert nominal <= 12


def test_holm_by_hand():
    assert claims.holm([0.01, 0.04, 0.03], 0.05) == [True, False, False]
    assert claims.holm([0.01, 0.024, 0.04], 0.05) == [True, True, True]


def test_power_equals_a_sum_over_all_counts():
    plays, alpha = 60, 0.05
    expected = sum(
        binom.pmf(t, plays, 0.9) * binom.pmf(f, plays, 0.1)
        for t in range(plays + 1) for f in range(plays + 1) if claims.lower_bound(t, f, plays, 0.0, alpha) > 1.0
    )  # fmt: skip
    assert claims.power_of(plays, 1.0, 0.9, 0.1, 0.0, alpha) == pytest.approx(expected, abs=1e-9)


def test_how_many_plays_a_claim_needs():
    """Claim 1 against a true 2, power 0.9 at 1e-3: within 200 judged plays for half the noise, 400 for sensitivity 1."""
    q, r = math.exp(-2), math.exp(-1)
    assert 100 <= claims.plays_needed(1.0, 1 / (1 + q), q / (1 + q)) <= 200
    both = 1 / (1 + r) ** 2, (r / (1 + r)) ** 2  # both bins moved the telling way
    assert both == pytest.approx((0.535, 0.072), abs=1e-3)
    assert 250 <= claims.plays_needed(1.0, *both) <= 400
    with pytest.raises(ValueError, match="do not break"):
        claims.plays_needed(2.5, 1 / (1 + q), q / (1 + q))
    few = claims.judge("x", "laplace", np.zeros(20), np.ones(20), 3.0, 0.0, 1e-3)
    row = claims.family([few])[0]
    assert row["verdict"] == "not_evaluated" and str(claims.least_plays(3.0)) in row["reason"]
