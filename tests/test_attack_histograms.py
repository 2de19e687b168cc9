"""Membership on histograms: figures against exact optima, brute force and SciPy's own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rapid_spark.attack import histograms, optima, rates
from rapid_spark.attack.mechanisms import Pair, claim_for, mechanism, neighbours
from rapid_spark.config import ConfigError

HISTOGRAM = np.array([0, 3, 40])


def test_rates_by_hand():
    out, inside = np.array([-1.0, 0.0, 0.0, 2.0]), np.array([1.0, 0.0, 3.0, 3.0])
    assert rates.balanced_accuracy(out, inside) == ((1 + 1) / 4 + (3 + 0.5) / 4) / 2
    pairs = [(a < b) + (a == b) / 2 for a in out for b in inside]
    assert rates.auc(out, inside) == np.mean(pairs)
    # a threshold of 1 has 1 of 4 false and 3 of 4 true positives, one of 3 none and 2 of 4
    assert rates.tpr_at(out, inside, 0.25) == 0.75 and rates.tpr_at(out, inside, 0.125) == 0.5
    assert rates.tpr_at(np.zeros(100), np.zeros(100)) == pytest.approx(0.01)  # knows nothing: one in a hundred


def test_auc_equals_scikit_learn():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(1)
    out, inside = rng.integers(0, 20, 300) * 1.0, rng.integers(4, 24, 200) * 1.0
    expected = roc_auc_score(np.repeat([0, 1], [300, 200]), np.concatenate([out, inside]))
    assert rates.auc(out, inside) == pytest.approx(expected, abs=1e-12)
    low, high = rates.auc_interval(expected, 300, 200)
    assert low < expected < high and high - low < 0.1


def test_optima_are_those_of_the_laws():
    exact = {
        ("laplace", "add_remove"): math.e / (1 + math.e),
        ("laplace", "replace"): 1 / (1 + math.exp(-0.5)),
        ("continuous_laplace", "add_remove"): 1 - math.exp(-0.5) / 2,
    }
    for (name, adjacency), expected in exact.items():
        assert optima.optimum(mechanism(name, 1.0, 0.0, adjacency), adjacency) == pytest.approx(expected, rel=1e-9)
    for adjacency, sigma in (("add_remove", 4.531), ("replace", 6.408)):
        found = mechanism("gaussian", 1.0, 1e-6, adjacency)
        assert found.scale == pytest.approx(sigma, abs=1e-3)
        delta_2 = 1.0 if adjacency == "add_remove" else math.sqrt(2)
        normal = 0.5 * (1 + math.erf(delta_2 / (2 * sigma) / math.sqrt(2)))
        assert optima.optimum(found, adjacency) == pytest.approx(normal, abs=2e-4)  # discrete against continuous


def test_optimum_of_two_laplace_bins_by_simulation():
    """The one optimum that no paper gives: 2 million draws of both sides."""
    rng, b, n = np.random.default_rng(5), 2.0, 1_000_000
    loss = lambda x, y: (np.abs(x) - np.abs(x - 1) + np.abs(y) - np.abs(y + 1)) / b  # noqa: E731
    x, y = rng.laplace(0, b, (2, n)), rng.laplace(0, b, (2, n))
    out, inside = loss(x[0], x[1]), loss(y[0] + 1, y[1] - 1)
    assert rates.balanced_accuracy(np.round(out, 9), np.round(inside, 9)) == pytest.approx(
        optima.optimum(mechanism("continuous_laplace", 1.0, 0.0, "replace"), "replace"), abs=0.0015
    )


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
@pytest.mark.parametrize("name", ["laplace", "continuous_laplace", "gaussian"])
def test_likelihood_ratio_meets_the_optimum(name, adjacency):
    """Within four standard errors, so that a right program fails about once in 10,000 runs of a case."""
    chosen = mechanism(name, 1.0, 1e-6, adjacency)
    plays, repetitions = 1_000, 5
    found = histograms.membership(
        neighbours(HISTOGRAM, adjacency), chosen, plays=plays, repetitions=repetitions, attackers=("likelihood_ratio",)
    )[0]
    best = optima.optimum(chosen, adjacency)
    error = math.sqrt(best * (1 - best) / (2 * plays * repetitions))
    assert found.n == 2 * plays * repetitions
    assert found.accuracy.value == pytest.approx(best, abs=4 * error)
    assert found.accuracy.value <= optima.claim_bound(1.0, 1e-6) + 4 * error


def test_sensitivity_one_under_replace_sits_on_the_bound():
    """Accuracy never catches it: it has exactly what epsilon allows."""
    chosen = mechanism("sensitivity_one", 1.0, 0.0, "replace")
    found = histograms.membership(neighbours(HISTOGRAM, "replace"), chosen, repetitions=5, attackers=("likelihood_ratio",))
    assert found[0].accuracy.value == pytest.approx(optima.claim_bound(1.0), abs=0.02)
    assert optima.claim_bound(1.0) == pytest.approx(0.7311, abs=1e-4)


def test_learning_attackers_find_what_there_is_and_no_more():
    strong = histograms.membership(
        neighbours(HISTOGRAM, "add_remove"), mechanism("laplace", 4.0, 0.0, "add_remove"), plays=300, repetitions=2,
        attackers=("summary_logistic", "histogram_forest", "nearest_reference"),
    )  # fmt: skip
    best = 1 / (1 + math.exp(-4))
    assert all(0.7 < m.accuracy.value < best + 0.03 for m in strong), strong
    weak = histograms.membership(
        neighbours(HISTOGRAM, "add_remove"), mechanism("laplace", 0.01, 0.0, "add_remove"), plays=300, repetitions=2
    )
    assert all(abs(m.accuracy.value - 0.5) < 0.1 for m in weak), weak


def test_pairs_are_neighbours():
    added, replaced = neighbours(HISTOGRAM, "add_remove"), neighbours(HISTOGRAM, "replace")
    assert added.inside.tolist() == [1, 3, 40] and replaced.inside.tolist() == [1, 3, 39]
    assert (added.adjacency, replaced.adjacency) == ("add_remove", "replace")
    with pytest.raises(ValueError, match="differ by one record"):
        Pair(np.array([1, 2]), np.array([3, 2]))
    with pytest.raises(ConfigError, match="has none that could be replaced"):
        neighbours(np.array([0, 0]), "replace")


def test_a_claim_for_another_pair_is_two_steps():
    assert claim_for("replace", 1.0, 1e-6, "add_remove") == pytest.approx((2.0, (1 + math.e) * 1e-6))
    assert claim_for("replace", 1.0, 0.0, "replace") == (1.0, 0.0)
    with pytest.raises(ConfigError, match="says nothing"):
        claim_for("add_remove", 1.0, 0.0, "replace")
    with pytest.raises(ConfigError, match="laplace"):
        mechanism("laplase", 1.0, 0.0, "replace")
