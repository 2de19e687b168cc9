"""Totals against closed forms, the library's distributions and OpenDP's own conversion."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from rapid_spark.reaedp import accounting


def delta_of(epsilon, delta, times, total):
    """The optimal composition's delta (Kairouz, Oh, Viswanath 2015), straight from the theorem."""
    wins = np.arange(times + 1)
    loss = (2 * wins - times) * epsilon
    p = binom.pmf(wins, times, math.exp(epsilon) / (1 + math.exp(epsilon)))
    return 1 - (1 - delta) ** times * (1 - (p * np.maximum(0, -np.expm1(total - loss))).sum())


@pytest.mark.parametrize("epsilon, delta, times", [(0.0069, 2e-10, 1000), (0.3, 1e-8, 20), (0.05, 1e-9, 200)])
def test_exact_composition_is_optimal_and_the_librarys_grid_is_never_below(epsilon, delta, times):
    exact = accounting.compose(epsilon, delta, times, 1e-6, grid="exact")
    assert delta_of(epsilon, delta, times, exact) == pytest.approx(1e-6, rel=1e-4)
    assert accounting.compose(epsilon, delta, times, 1e-6) >= exact - 1e-9


def test_exact_composition_agrees_with_the_librarys_distribution_on_a_grid_that_fits():
    from dp_accounting.pld import common, privacy_loss_distribution

    one = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(0.01, 1e-10), value_discretization_interval=0.01
    )
    library = one.self_compose(500).get_epsilon_for_delta(1e-6)
    assert accounting.compose(0.01, 1e-10, 500, 1e-6, grid="exact") == pytest.approx(library, rel=1e-5)


@pytest.mark.parametrize("times, delta, total", [(1, 1e-7, 0.5), (10, 0.0, 5.0), (10, 1e-6, math.inf)])
def test_composition_at_the_edges(times, delta, total):
    found = accounting.compose(0.5, delta, times, 1e-6, grid="exact")
    assert found == pytest.approx(total, rel=1e-5) if math.isinf(total) or times == 1 else found <= total


def test_largest_share_fits_and_a_larger_one_does_not():
    share = accounting.largest_share(1.0, 1e-6, 1000, 5e-10, grid="exact")
    assert accounting.compose(share, 5e-10, 1000, 1e-6, grid="exact") <= 1.0
    assert accounting.compose(share * 1.001, 5e-10, 1000, 1e-6, grid="exact") > 1.0
    with pytest.raises(ValueError, match="do not fit"):
        accounting.largest_share(1.0, 1e-6, 1000, 1e-9)


@pytest.mark.parametrize("rho, delta", list(itertools.product([0.001, 0.02436, 0.5, 3.0], [1e-9, 1e-6, 1e-3])))
def test_zcdp_conversion_equals_opendps(rho, delta):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64), size=1), dp.l2_distance(T=float)
    curve = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=1.0)).map(math.sqrt(2 * rho))
    assert accounting.zcdp_epsilon(rho, delta) == pytest.approx(curve.epsilon(delta), rel=1e-6)


def test_rho_is_the_inverse_of_its_conversion():
    rho = accounting.zcdp_rho(1.0, 1e-6)
    assert rho == pytest.approx(0.02436, abs=5e-6)
    assert accounting.zcdp_epsilon(rho, 1e-6) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_analytic_sigma_meets_delta_exactly(epsilon):
    sigma = accounting.analytic_sigma(epsilon, 1e-6, 3.0) / 3.0
    delta = norm.cdf(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * norm.cdf(-0.5 / sigma - epsilon * sigma)
    assert delta == pytest.approx(1e-6, rel=1e-3)


def test_tables_compose_tighter_than_they_add_up():
    ten = accounting.compose_tables([10.0] * 10, [], "add_remove", 1e-6)
    assert ten < 1.0
    assert ten < accounting.advanced(0.1, 10, 1e-6)
    # Ten tables and their noise twice each, as one table of two cells would have it.
    assert accounting.compose_tables([20.0] * 10, [], "replace", 1e-6) == pytest.approx(
        accounting.compose_tables([20.0] * 20, [], "add_remove", 1e-6), rel=1e-3
    )
    assert accounting.compose_tables([], [5.0], "replace", 1e-6) == pytest.approx(1.212, abs=0.01)


def test_advanced_composition_is_its_formula():
    assert accounting.advanced(0.1, 100, 1e-6) == pytest.approx(
        math.sqrt(200 * math.log(1e6)) * 0.1 + 10 * (math.exp(0.1) - 1)
    )


@pytest.mark.parametrize(
    "call", [lambda: accounting.zcdp_rho(1.0, 0), lambda: accounting.analytic_sigma(1.0, 0, 1), lambda: accounting.zcdp_epsilon(0, 1e-6)]
)
def test_conversions_without_delta_or_rho_are_refused(call):
    with pytest.raises(ValueError, match="delta"):
        call()
