"""The whole pipeline against plain NumPy and scikit-learn, on small frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from plain import error, normalized_gain

from rapid_spark import attackers, config, evaluation, io

pytestmark = pytest.mark.slow
TREES = [{"name": "rf", "parameters": {"n_estimators": 20}}]


def people(n=240, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, n).astype(float)
    town = rng.choice(["a b", "c`d", 'e"f'], n)
    ill = np.where(rng.random(n) < 0.2 + 0.5 * (age > 45), "yes", "no")
    return pd.DataFrame({"id": np.arange(n) + 2**53, "age": age, "home.town": town, "ill": ill, "pay": age * 100 + rng.normal(0, 400, n)})


def evaluate(spark, original, release, holdout=None, **settings):
    defaults = {"quasi_identifiers": ["age", "home.town"], "sensitive_attributes": ["ill"], "attackers": TREES,
                "columns": {"key": "id"}, "tracking": {"enabled": False}}
    parsed = config.parse(defaults | settings)
    frames = release if isinstance(release, list) else [release]
    releases = {i + 1: io.from_frame(spark, f.drop(columns="id", errors="ignore"), "release") for i, f in enumerate(frames)}
    held_out = None if holdout is None else io.from_frame(spark, holdout, "holdout")
    return evaluation.evaluate(spark, io.from_frame(spark, original, "original"), releases, parsed, "run", held_out)


def plain_probabilities(original, release, classes):
    """The same attacker without Spark."""
    rename = {"age": "q0", "home.town": "q1", "ill": "s0"}
    features = [attackers.Feature("q0", "numeric"), attackers.Feature("q1", "categorical")]
    fitted = attackers.fit("rf", {"n_estimators": 20}, release.rename(columns=rename), features, "s0", "categorical",
                           config.Training().seed, 1)
    p = fitted.predict_proba(original.rename(columns=rename)).round(12)
    return p[:, [fitted.classes.index(c) for c in classes]]


@pytest.fixture(scope="module")
def simple(spark):
    original, release = people(), people(seed=1)
    assessment = evaluate(spark, original, release)
    records = assessment.records.toPandas().set_index("record_id")
    return original, release, assessment, records


def test_every_record_equals_plain_numpy(simple):
    original, release, assessment, records = simple
    y = (original["ill"] == "yes").to_numpy().astype(int)
    classes = ["no", "yes"]
    p = plain_probabilities(original, release, classes)
    ordered = records.loc[original["id"].astype(str)]
    assert len(records) == len(original)
    np.testing.assert_allclose(ordered["true_prob"], p[np.arange(len(y)), y], atol=1e-12)
    flags = normalized_gain(p, y, 0.3)
    np.testing.assert_array_equal(ordered["at_risk"].astype(bool), flags)
    row = assessment.summary.iloc[0]
    assert (row["n"], row["n_at_risk"], row["status"]) == (240, flags.sum(), "ok")
    b = np.bincount(y) / len(y)
    np.testing.assert_allclose(ordered["score"], (p[np.arange(len(y)), y] - b[y]) / (1 - b[y]), atol=1e-12)


def test_curve_at_the_configured_threshold_equals_the_summary(simple):
    curve, row = simple[2].curve, simple[2].summary.iloc[0]
    at = curve[curve["threshold"] == 0.3].iloc[0]
    assert (at["n_at_risk"], at["ci_low"], at["ci_high"]) == (row["n_at_risk"], row["ci_low"], row["ci_high"])


def test_order_of_rows_columns_and_partitions_does_not_matter(spark, simple):
    original, release, assessment, _ = simple
    shuffled = original.sample(frac=1, random_state=3)[original.columns[::-1]]
    again = evaluate(
        spark, spark.createDataFrame(shuffled).repartition(7), release.sample(frac=1, random_state=4)[release.columns[::-1]],
        quasi_identifiers=["home.town", "age"],
    )
    drop = ["evaluated_at", "fit_seconds", "score_seconds"]
    pd.testing.assert_frame_equal(again.summary.drop(columns=drop), assessment.summary.drop(columns=drop))
    pd.testing.assert_frame_equal(again.curve.drop(columns="evaluated_at", errors="ignore"),
                                  assessment.curve.drop(columns="evaluated_at", errors="ignore"))


def test_records_instead_of_patterns_give_the_same(spark, simple, monkeypatch):
    from rapid_spark import pipeline

    monkeypatch.setattr(pipeline, "REPEATS", 0.0)
    original, release, assessment, records = simple
    again = evaluate(spark, original, release)
    assert again.summary["n_at_risk"].tolist() == assessment.summary["n_at_risk"].tolist()
    left = again.records.toPandas().set_index("record_id").sort_index()
    pd.testing.assert_series_equal(left["score"], records.sort_index()["score"])


def test_missing_values_of_all_kinds_are_one_pattern(spark):
    original = people(60)
    original.loc[:9, "age"] = np.nan
    original.loc[10:14, "home.town"] = None
    original.loc[15:16, "age"] = [-0.0, 0.0]
    assessment = evaluate(spark, original, people(seed=1))
    records = assessment.records.toPandas()
    assert sorted(records["record_id"]) == sorted(original["id"].astype(str))
    same = records.set_index("record_id").loc[original["id"].astype(str)].iloc[:10]
    keys = original.iloc[:10]["home.town"].astype(str) + original.iloc[:10]["ill"]
    assert (same.assign(k=keys.to_numpy()).groupby("k")["true_prob"].nunique() == 1).all()


def test_continuous_attribute_equals_plain_numpy(spark):
    original, release = people(), people(seed=1)
    assessment = evaluate(spark, original, release, sensitive_attributes=["pay"], attackers=["lm"])
    x = np.column_stack([np.ones(240), release["age"], pd.get_dummies(release["home.town"]).iloc[:, 1:]]).astype(float)
    z = np.column_stack([np.ones(240), original["age"], pd.get_dummies(original["home.town"]).iloc[:, 1:]]).astype(float)
    guess = z @ np.linalg.lstsq(x, release["pay"], rcond=None)[0]
    e = error(original["pay"], guess, "symmetric")
    row = assessment.summary.iloc[0]
    assert row["n_at_risk"] == (e < 0.1).sum()
    records = assessment.records.toPandas().set_index("record_id").loc[original["id"].astype(str)]
    np.testing.assert_allclose(records["error"], e, rtol=1e-9)


def test_unseen_level_and_unseen_class_are_scored_and_counted(spark):
    original, release = people(90), people(200, seed=1)
    original.loc[:4, "home.town"] = "elsewhere"
    original.loc[5:7, "ill"] = "perhaps"
    row = evaluate(spark, original, release).summary.iloc[0]
    assert (row["n"], row["n_unseen_level"], row["n_unseen_class"], row["status"]) == (90, 5, 3, "ok")


@pytest.mark.parametrize(("change", "reason"), [({"ill": "no"}, "one class"), ({"pay": 3.0}, "constant")])
def test_constants_are_undefined_and_the_others_finish(spark, change, reason):
    original = people(60).assign(**change)
    found = evaluate(spark, original, people(seed=1), sensitive_attributes=["ill", "pay"],
                     attackers=[*TREES]).summary.set_index("sensitive_attribute")
    broken, fine = ("ill", "pay") if "ill" in change else ("pay", "ill")
    assert found.loc[broken, "status"] == "undefined" and reason in found.loc[broken, "reason"]
    assert found.loc[broken, "rapid"] is None and found.loc[fine, "status"] == "ok"


def test_replicates_each_and_pooled(spark):
    original = people()
    found = evaluate(spark, original, [people(seed=1), people(seed=2)]).summary
    assert sorted(found["replicate"]) == [0, 1, 2]
    assert found.set_index("replicate")["n_train"].to_dict() == {0: 480, 1: 240, 2: 240}


def test_several_sets_and_attributes_are_scored_in_one_go(spark):
    found = evaluate(spark, people(), people(seed=1), quasi_identifiers=[], sensitive_attributes=["ill", "pay"],
                     qi_sets={"neighbour": ["age", "home.town"], "employer": ["age"]}).summary
    assert len(found) == 4 and set(found["status"]) == {"ok"}
    assert found.set_index(["qi_set", "sensitive_attribute"]).loc[("employer", "ill"), "quasi_identifiers"] == ["age"]


def test_release_that_is_the_original_reaches_the_copy_ceiling(spark):
    original = people()
    row = evaluate(spark, original, original, training={"references": True}).summary.iloc[0]
    assert row["copy_ceiling"] == pytest.approx(row["rapid"])
    assert row["population_reference"] < row["copy_ceiling"]


def test_holdout_shows_a_leak_only_for_members(spark):
    rng = np.random.default_rng(1)
    original, holdout = people(300), people(300, seed=5).assign(id=np.arange(300))
    for frame in (original, holdout):
        frame["ill"] = rng.choice(["no", "yes"], len(frame))
        frame["age"] = rng.uniform(20, 60, len(frame))
    found = evaluate(spark, original, original, holdout)
    row = found.summary[found.summary["scored_on"] == "original"].iloc[0]
    assert row["holdout_difference"] == pytest.approx(row["rapid"] - row["holdout_rate"])
    assert row["holdout_difference_low"] > 0
    assert any("random split" in w for w in found.warnings)


def test_holdout_from_elsewhere_is_called_a_difference_between_populations(spark):
    holdout = people(300, seed=5).assign(id=np.arange(300))
    holdout["age"] += 30
    both = pd.concat([holdout, people().head(5)])  # and five people are in both tables
    found = evaluate(spark, people(), people(seed=1), both)
    said = next(w for w in found.warnings if "difference between populations" in w)
    in_use = ["age", "home.town", "ill"]
    alike = len(both.merge(people()[in_use].drop_duplicates(), on=in_use))  # the five, and others by chance
    assert f"{alike} of 305 holdout records equal an original record" in said and "5 have a key of the original" in said


def test_persons_with_several_rows(spark):
    original = people(60)
    doubled = pd.concat([original, original.assign(id=original["id"] + 1000)]).assign(person=np.tile(np.arange(60), 2))
    found = evaluate(spark, doubled, people(seed=1), columns={"key": "id", "person": "person"}).summary.iloc[0]
    plain = evaluate(spark, original, people(seed=1)).summary.iloc[0]
    assert found["n_persons"] == 60
    assert found["person_rapid"] == pytest.approx(plain["rapid"]) == pytest.approx(found["rapid"])
    assert found["ci_high"] - found["ci_low"] > 0.95 * (plain["ci_high"] - plain["ci_low"])


def test_a_holdout_by_household(spark):
    """Every person three times over: the difference is as sure as that of the people, not of the rows."""
    def thrice(frame, prefix):
        rows = pd.concat([frame.assign(id=frame["id"] + i * 10_000) for i in range(3)])
        return rows.assign(household=[f"{prefix}{i}" for i in np.tile(np.arange(len(frame)), 3)])

    original, holdout = people(80), people(80, seed=5).assign(id=np.arange(80))
    settings = {"intervals": {"permutations": 0}, "drivers": {"subgroups": False, "patterns": 0, "attribution": False}}
    once = evaluate(spark, original, people(seed=1), holdout, **settings).summary
    found = evaluate(spark, thrice(original, "a"), people(seed=1), thrice(holdout, "b"),
                     columns={"key": "id", "household": "household"}, **settings).summary
    one, other = (f[f["scored_on"] == "original"].iloc[0] for f in (once, found))
    width = [r["holdout_difference_high"] - r["holdout_difference_low"] for r in (one, other)]
    assert other["holdout_difference"] == pytest.approx(one["holdout_difference"])
    assert width[1] == pytest.approx(width[0], rel=0.25)
    assert set(found["n_households"]) == {80}


def test_prevalence_within_strata(spark):
    original, release = people(), people(seed=1)
    row = evaluate(spark, original, release, baseline={"by": ["home.town"]}).summary.iloc[0]
    classes = ["no", "yes"]
    p = plain_probabilities(original, release, classes)
    y = (original["ill"] == "yes").to_numpy().astype(int)
    g = p[np.arange(240), y]
    b = original.groupby(["home.town", "ill"])["id"].transform("count") / original.groupby("home.town")["id"].transform("count")
    assert row["rapid_within_strata"] == pytest.approx(np.mean(g > b + 0.3 * (1 - b)))


def test_predictions_are_made_once(spark, tmp_path, monkeypatch):
    original, release = people(), people(seed=1)
    log = tmp_path / "calls"
    log.mkdir()
    import sys

    from pyspark import cloudpickle

    from rapid_spark import scoring

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers cannot import a test module
    run = scoring.Task.run

    def counted(self, frame):
        (log / f"{frame.index.size}-{id(frame)}-{np.random.default_rng().integers(1 << 60)}").touch()
        return run(self, frame)

    monkeypatch.setattr(scoring, "predictions", _with_run(scoring.predictions, counted))
    found = evaluate(spark, original, release)
    found.records.toPandas()
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    rows = sum(int(p.name.split("-")[0]) for p in log.iterdir())
    assert rows == len(original[["age", "home.town"]].drop_duplicates())


def _with_run(predictions, run):
    """The task's run is taken by value, so that the workers see the counting one."""
    def build(columns, carriers, fields):
        return predictions(columns, [_Counting(c, run) for c in carriers], fields)

    return build


class _Counting:
    def __init__(self, carrier, run):
        self.carrier, self.counted = carrier, run

    def load(self):
        task = self.carrier.load()
        return _Runs(task, self.counted)


class _Runs:
    def __init__(self, task, run):
        self.task, self.counted = task, run

    def run(self, frame):
        return self.counted(self.task, frame)


def test_drivers_and_refits_are_reported_under_the_set_that_was_asked_for(spark):
    found = evaluate(spark, people(), people(seed=1), drivers={"refits": True})
    assert set(found.summary["qi_set"]) == {"all"}
    groups = found.tables["risk_subgroups"]
    assert set(groups["run_id"]) == {"run"} and {tuple(c) for c in groups["columns"]} == {("age",), ("home.town",)}
    refits = found.tables["risk_attribution"].query("kind in ('alone', 'left_out')")
    estimates = refits.set_index(["kind", "term"])["estimate"]
    assert estimates["alone", "age"] == estimates["left_out", "home.town"] > estimates["alone", "home.town"]
