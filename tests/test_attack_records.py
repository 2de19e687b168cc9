"""Attacks on records: a copy is caught by each of them, an independent release by none; rates against brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rapid_spark import io, shared_columns
from rapid_spark.attack import linkage, records
from rapid_spark.attack.linkage import Setting
from rapid_spark.config import parse
from rapid_spark.disclosure import criteria
from rapid_spark.simulate import registry

N = 500
SETTINGS = {"quasi_identifiers": ["age", "gender", "health_score"], "sensitive_attributes": ["disease_status", "income"], "columns": {"key": "id"}}


def laid(spark, original, release, holdout=None, **settings):
    config = parse({**SETTINGS, **settings})
    held = None if holdout is None else io.from_frame(spark, holdout, "holdout")
    tables = shared_columns.lay(io.from_frame(spark, original, "original"), {1: io.from_frame(spark, release, "release")}, config, held)
    return tables, config


@pytest.fixture(scope="module")
def people():
    # one population, split at random: three registries would each be standardised in itself
    whole = registry(3 * N, kappa=5, seed=1).round({"age": 0, "income": -2, "health_score": 1})
    whole = whole.sample(frac=1, random_state=1, ignore_index=True)
    made = [whole.iloc[i * N : (i + 1) * N].reset_index(drop=True) for i in range(3)]
    return [f.assign(id=[f"{i}-{k}" for k in range(N)]) for i, f in enumerate(made)]


@pytest.fixture(scope="module")
def attacked(spark, people):
    """Every attack on a copy (with the key, as a protected file has it), and on an independent release."""
    original, holdout, independent = people
    found = {}
    for name, release in {"copy": original, "independent": independent.drop(columns="id")}.items():
        tables, config = laid(spark, original, release, holdout)
        rows = records.membership(tables, tables.releases[1], 10_000, 1, {})
        found[name] = [*rows, *linkage.linkage(tables, config)]
        tables.close()
    return found


@pytest.mark.slow
def test_a_copy_is_caught_by_every_attack(attacked):
    rows = attacked["copy"]
    assert {(r.attack, r.attacker) for r in rows} == {
        ("membership_records", "dcr"), ("membership_records", "domias"), ("re_identification", "nearest_match"),
        ("attribute_linkage", "nearest_match"), ("singling_out", "unique_combinations"), ("linkability", "5_nearest"),
    }
    assert all(r.verdict == "leak" for r in rows), [(r.attack, r.attacker, r.verdict, r.accuracy, r.control) for r in rows]
    dcr = next(r for r in rows if r.attacker == "dcr")
    assert dcr.auc == 1.0 and dcr.tpr_at_1pct_fpr == 1.0 and dcr.accuracy > 0.98
    assert next(r for r in rows if r.attack == "singling_out").accuracy == 1.0


@pytest.mark.slow
def test_an_independent_release_is_caught_by_none(attacked):
    rows = attacked["independent"]
    assert [r.attack for r in rows if r.verdict == "leak"] == []
    assert [r.attack for r in rows if r.verdict == "not_tested"] == ["re_identification"]
    for r in rows:
        if r.attack == "membership_records":
            assert abs(r.auc - 0.5) < 0.08 and abs(r.accuracy - 0.5) < 0.12


@pytest.mark.slow
def test_linkage_rates_equal_brute_force(spark):
    original = pd.DataFrame({"id": list("abcd"), "q": [1.0, 2.0, 3.0, 10.0], "z": ["u", "u", "v", "v"], "t": ["x", "y", "x", "y"]})
    release = pd.DataFrame({"id": list("abce"), "q": [1.0, 1.0, 3.0, 9.0], "z": ["u", "u", "v", "v"], "t": ["x", "y", "y", "y"]})
    tables, config = laid(spark, original, release, quasi_identifiers=["q", "z"], sensitive_attributes=["t"])
    setting = Setting(tables, tables.releases[1], config, 2, {})
    keys, target = tables.sets["all"], tables.targets["t"]
    # a and b meet two records with x and y: half each; c finds y, d (nearest 9) finds y
    found = linkage.attribute(setting, keys, target, {})
    assert found.accuracy == pytest.approx((0.5 + 0.5 + 0 + 1) / 4)
    assert found.chance == pytest.approx(0.5 * 1 / 4 + 0.5 * 3 / 4)
    own = linkage.reidentification(setting, keys, {})
    assert own.accuracy == pytest.approx((0.5 + 0.5 + 1 + 0) / 4) and own.chance == 0.25
    single = linkage.singling_out(setting, [*keys, target], {})
    # of the four released combinations, (1, u, x) alone is one person's
    assert (single.n, single.accuracy) == (4, 0.25)


@pytest.mark.slow
def test_a_continuous_attribute_is_right_within_the_tolerance(spark):
    original = pd.DataFrame({"id": ["a", "b", "c"], "q": ["u", "v", "w"], "t": [100.0, 200.0, np.nan]})
    release = pd.DataFrame({"q": ["u", "v", "v"], "t": [104.0, 150.0, 205.0]})
    tables, config = laid(spark, original, release, quasi_identifiers=["q"], sensitive_attributes=["t"])
    found = linkage.attribute(Setting(tables, tables.releases[1], config, 2, {}), tables.sets["all"], tables.targets["t"], {})
    assert found.n == 2 and found.accuracy == pytest.approx((1 + 0.5) / 2)
    assert found.chance == pytest.approx(((1 / 3) + (1 / 3)) / 2)


def test_threshold_is_the_best_one():
    out, inside = np.array([0.0, 1.0, 2.0, 5.0]), np.array([2.0, 3.0, 4.0, 6.0])
    cut = records.best_threshold(out, inside)
    every = {c: np.mean(inside > c) - np.mean(out > c) for c in (-0.5, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5)}
    assert np.mean(inside > cut) - np.mean(out > cut) == max(every.values())


def test_the_three_criteria_say_what_was_not_tested():
    attack = {"attack": "singling_out", "attacker": "unique_combinations", "accuracy": 0.4, "accuracy_low": 0.3,
              "accuracy_high": 0.5, "control": 0.1, "chance": None, "verdict": "leak", "reason": "compared with the holdout"}
    measure = {"name": "dcap", "value": 0.6, "status": "ok", "definition": "d", "reason": None, "sensitive_attribute": "t"}
    rows = criteria.page([measure], [attack])
    assert criteria.conclusions(rows) == {"singling_out": "leak", "linkability": "not_tested", "inference": "figure"}
    by_name = {r["evidence"]: r for r in rows}
    assert by_name["linkability"]["verdict"] == "not_tested" and by_name["dcap"]["verdict"] == "figure"
    page = criteria.html([*rows, {**rows[0], "about": "<b>x</b>"}])
    assert "&lt;b&gt;x" in page and "<b>x" not in page and "not tested" in page and "holdout 0.100" in page
    judged = criteria.judge(rows, {"singling_out": 0.3, "dcap": 0.7, "linkability": 0.1})
    assert [j["verdict"] for j in judged] == ["fail", "pass", "not_evaluated"]
    with pytest.raises(ValueError, match="'dcap'"):
        criteria.judge(rows, {"dcab": 0.1})
