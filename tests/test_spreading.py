"""Attackers fitted as Spark tasks: groups of trees make one forest, and figures are those of the driver."""

from __future__ import annotations

import numpy as np
import pytest

from rapid_spark import attackers, spreading
from rapid_spark.attackers import Feature, fit, groups, merged
from rapid_spark.simulate import registry

FEATURES = (Feature("age", "numeric"), Feature("gender", "categorical"))


def grown(parameters, seed=1):
    return fit("rf", parameters, registry(300, 5, 1), FEATURES, "disease_status", "categorical", seed, 1)


def test_a_forest_is_split_into_groups_whatever_the_number_of_workers():
    made = groups("rf", {"n_estimators": 60, "max_depth": 3}, 7)
    assert [p["n_estimators"] for p, _ in made] == [25, 25, 10]
    assert all(p["max_depth"] == 3 for p, _ in made)
    assert len({seed for _, seed in made}) == 3
    assert made == groups("rf", {"n_estimators": 60, "max_depth": 3}, 7)
    assert sum(p["n_estimators"] for p, _ in groups("rf", {}, 7)) == attackers.ATTACKERS["rf"].defaults["n_estimators"]


def test_what_is_small_or_no_forest_stays_whole():
    assert groups("rf", {"n_estimators": 20}, 7) == [({"n_estimators": 20}, 7)]
    assert groups("logit", {}, 7) == [({}, 7)]


def test_a_merged_forest_averages_over_all_trees():
    people = registry(50, 5, 2)
    parts = [grown({"n_estimators": 4}, 1), grown({"n_estimators": 2}, 2)]
    whole = merged(parts)
    expected = (4 * parts[0].predict_proba(people) + 2 * parts[1].predict_proba(people)) / 6
    np.testing.assert_allclose(whole.predict_proba(people), expected, atol=1e-12)
    assert whole.estimator.n_estimators == 6 and parts[0].estimator.n_estimators == 4
    assert merged(parts[:1]) is parts[0]


@pytest.mark.slow
def test_spark_tasks_fit_what_the_driver_fits(spark):
    rows = {(1, "disease_status"): registry(300, 5, 1)}
    asked = [
        spreading.Request(name, parameters, 1, FEATURES, "disease_status", "categorical", 3, False)
        for name, parameters in (("cart", {}), ("rf", {"n_estimators": 30}), ("rf", {"max_depth": -1}), ("logit", {}))
    ]
    cart, forest, wrong, logit = spreading.fit_all(spark, asked, rows)
    people = registry(40, 5, 2)
    for answer, name in ((cart, "cart"), (logit, "logit")):
        here = fit(name, {}, rows[1, "disease_status"], FEATURES, "disease_status", "categorical", 3, 1)
        np.testing.assert_array_equal(answer.fitted.predict_proba(people), here.predict_proba(people))
    expected = merged([
        fit("rf", p, rows[1, "disease_status"], FEATURES, "disease_status", "categorical", s, 1)
        for p, s in groups("rf", {"n_estimators": 30}, 3)
    ])
    np.testing.assert_array_equal(forest.fitted.predict_proba(people), expected.predict_proba(people))
    assert wrong.fitted is None and isinstance(wrong.error, attackers.AttackerError) and "max_depth" in str(wrong.error)
