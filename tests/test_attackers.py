"""Attackers against R's figures, plain formulas, and inputs on which other tools failed."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rapid_spark import attackers
from rapid_spark.attackers import ATTACKERS, AttackerError, Feature, Fitted, fit
from rapid_spark.attackers.encoding import distinct_rows, encode

DATA = Path(__file__).parent / "data"
SMALL: dict[str, dict[str, Any]] = {"rf": {"n_estimators": 20}, "gbm": {"max_iter": 10}}
QIS = (Feature("job", "categorical"), Feature("age", "numeric"), Feature("town", "categorical"))


def people(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Job and age say much about `ill` and `income`, town says nothing; some jobs and ages are missing."""
    rng = np.random.default_rng(seed)
    job = rng.integers(4, size=n)
    age = rng.integers(20, 80, size=n).astype(float)
    frame = pd.DataFrame({
        "job": np.array(["clerk", "cook", "nurse", "smith"], dtype=object)[job],
        "age": age,
        "town": np.array(["A", "B", "C"], dtype=object)[rng.integers(3, size=n)],
        "ill": np.where(rng.random(n) < 1 / (1 + np.exp((50 - age) / 8 - job + 1.5)), "yes", "no"),
        "income": 1000.0 + 500 * job + 20 * age + rng.normal(0, 50, n),
    })
    frame.loc[rng.random(n) < 0.05, "job"] = None
    frame.loc[rng.random(n) < 0.05, "age"] = np.nan
    return frame


def fitted(name: str, frame: pd.DataFrame, qis: tuple[Feature, ...] = QIS, **settings: Any) -> Fitted:
    kind = settings.pop("kind", "continuous" if name == "lm" else "categorical")
    target = settings.pop("target", "ill" if kind == "categorical" else "income")
    settings = {"parameters": SMALL.get(name, {}), "seed": 7, "n_jobs": 1, **settings}
    return fit(name, frame=frame, features=qis, target=target, target_type=kind, **settings)


def answer(attacker: Fitted, frame: pd.DataFrame) -> np.ndarray:
    return attacker.predict(frame) if attacker.classes is None else attacker.predict_proba(frame)


def kinds(names: Any = ATTACKERS) -> list[tuple[str, str]]:
    return [(n, kind) for n in names for kind in ATTACKERS[n].target_types]





def simulated() -> tuple[pd.DataFrame, pd.DataFrame]:
    folder = DATA / "simulated"
    return pd.read_csv(folder / "k1_original.csv.gz"), pd.read_csv(folder / "k1_release.csv.gz")


def as_features(frame: pd.DataFrame, names: list[str]) -> list[Feature]:
    numeric = pd.api.types.is_numeric_dtype
    return [Feature(c, "numeric" if numeric(frame[c]) else "categorical") for c in names]


def test_logit_gives_the_probabilities_of_r_record_by_record() -> None:
    original, release = simulated()
    expected = pd.read_csv(DATA / "simulated" / "k1_expected_logit_ill.csv.gz")
    qis = as_features(release, ["gender", "age", "education", "income", "health_score"])
    attacker = fit("logit", {}, release, qis, "ill", "categorical", 1, 1)
    p = attacker.predict_proba(original)
    g = p[np.arange(len(p)), [(attacker.classes or ()).index(v) for v in original["ill"]]]
    np.testing.assert_allclose(g, expected["true_prob"], rtol=1e-5)
    assert attacker.notes == ()


def test_lm_gives_the_predictions_of_r_record_by_record() -> None:
    original, release = simulated()
    expected = pd.read_csv(DATA / "simulated" / "k1_expected_lm_income.csv.gz")
    qis = as_features(release, ["gender", "age", "education", "health_score"])
    attacker = fit("lm", {}, release, qis, "income", "continuous", 1, 1)
    np.testing.assert_allclose(attacker.predict(original), expected["predicted"], rtol=1e-9)


@pytest.mark.slow
def test_adult_curves_lie_where_r_has_them() -> None:
    folder = DATA / "adult"
    original, release = (pd.read_csv(folder / f"{n}.csv.gz") for n in ("original", "release_1"))
    expected = pd.read_csv(folder / "expected_r.csv").query("release == 1 and quasi_identifiers == 'all 12'")
    qis = as_features(release, [str(c) for c in release if c != "income"])
    true = (original["income"] == ">50K").to_numpy()
    b = np.where(true, true.mean(), 1 - true.mean())
    at_default, on_average = {}, {}
    for name in ("rf", "cart", "logit"):
        rows = expected[expected["attacker"] == name].sort_values("tau")
        attacker = fit(name, {}, release, qis, "income", "categorical", 1, 2)
        p = attacker.predict_proba(original)[:, (attacker.classes or ()).index(">50K")]
        g = np.where(true, p, 1 - p)
        ours = [np.mean(g > b + tau * (1 - b)) for tau in rows["tau"]]
        away = pd.Series(np.abs(ours - rows["rapid"].to_numpy()), index=rows["tau"].round(1))
        at_default[name], on_average[name] = away[0.3], away[0.1:].mean()
    assert at_default["rf"] < 0.008 and on_average["rf"] < 0.006
    assert at_default["cart"] < 0.005 and on_average["cart"] < 0.012
    assert at_default["logit"] < 1e-4 and on_average["logit"] < 1e-4


# Plain formulas ----------------------------------------------------------------------------


def test_lm_solves_the_normal_equations_also_where_columns_depend_on_each_other() -> None:
    frame = people().assign(twin=lambda d: 3 * d["age"] - 7, both=lambda d: d["job"])
    qis = (*QIS, Feature("twin", "numeric"), Feature("both", "categorical"))
    x = np.column_stack([
        np.ones(len(frame)), *(frame["job"].fillna("?") == v for v in ("clerk", "cook", "nurse", "?")),
        frame["age"].fillna(frame["age"].median()), frame["age"].isna(),
        frame["town"] == "A", frame["town"] == "B",
    ]).astype(float)
    plain = x @ np.linalg.lstsq(x, frame["income"], rcond=None)[0]
    np.testing.assert_allclose(fitted("lm", frame, qis).predict(frame), plain, rtol=1e-9)


@pytest.mark.parametrize("target", ["ill", "town"])
def test_logit_meets_the_score_equations(target: str) -> None:
    frame = people()
    attacker = fitted("logit", frame, QIS[:2], target=target)
    p = attacker.predict_proba(frame)
    truth = np.column_stack([frame[target] == c for c in attacker.classes or ()])
    x = np.column_stack([
        np.ones(len(frame)), *(frame["job"].fillna("?") == v for v in ("clerk", "cook", "nurse", "?")),
        frame["age"].fillna(frame["age"].median()), frame["age"].isna(),
    ]).astype(float)
    np.testing.assert_allclose(x.T @ (truth - p), 0, atol=1e-3)


def test_two_pruned_leaves_of_cart_hold_the_shares_of_their_rows() -> None:
    job = np.repeat(np.array(["a", "b", "c", "d"], dtype=object), 30)
    ill = np.where(np.isin(job, ["a", "c"]) == (np.arange(120) % 10 > 0), "yes", "no")  # 90 % in a and c
    frame = pd.DataFrame({"job": job, "ill": ill})
    attacker = fitted("cart", frame, QIS[:1])
    assert attacker.estimator.get_n_leaves() == 2  # one split parts {a, c} from {b, d}
    np.testing.assert_allclose(attacker.predict_proba(frame)[[0, 30, 60, 90], 1], [0.9, 0.1, 0.9, 0.1])


def test_forest_has_leaves_of_at_least_two_rows_and_splits_no_node_of_ten() -> None:
    forest = fitted("rf", people()).estimator
    for tree in (e.tree_ for e in forest.estimators_):
        leaf = tree.children_left < 0
        assert tree.n_node_samples[leaf].min() >= 2 and tree.n_node_samples[~leaf].min() > 10
    assert ATTACKERS["rf"].defaults["n_estimators"] == 500 and forest.max_features == "sqrt"


@pytest.mark.parametrize(("name", "kind"), kinds(["rf", "gbm", "cart"]))
def test_trees_learn_what_there_is_to_learn(name: str, kind: str) -> None:
    train, test = people(2000, 1), people(1000, 2)
    p = answer(fitted(name, train, kind=kind), test)
    if kind == "continuous":
        assert np.mean((p - test["income"]) ** 2) < 0.3 * test["income"].var()
    else:
        assert np.mean((p[:, 1] > 0.5) == (test["ill"] == "yes")) > (test["ill"] == "yes").mean() + 0.1


# The same figures in any order, type and process -------------------------------------------


@pytest.mark.parametrize(("name", "kind"), kinds())
def test_order_of_rows_and_columns_and_the_number_of_cores_change_nothing(name: str, kind: str) -> None:
    frame = people()
    mixed = frame.sample(frac=1, random_state=3).reset_index(drop=True)[list(frame)[::-1]]
    one, two = fitted(name, frame, kind=kind), fitted(name, mixed, QIS[::-1], kind=kind, n_jobs=2)
    np.testing.assert_array_equal(answer(one, frame), answer(two, frame))
    assert one.features == two.features and one.importances() == two.importances()


@pytest.mark.parametrize(("name", "kind"), kinds())
def test_a_prediction_does_not_depend_on_the_rows_around_it(name: str, kind: str) -> None:
    frame = people()
    attacker = fitted(name, frame, kind=kind)
    alone = np.concatenate([answer(attacker, frame.iloc[[i]]) for i in range(30)])
    np.testing.assert_array_equal(answer(attacker, frame)[:30], alone)
    assert len(answer(attacker, frame.iloc[:0])) == 0


def test_sorting_and_distinct_rows_give_each_row_its_own_prediction() -> None:
    frame = people()
    attacker = fitted("rf", frame)
    z = encode(attacker.columns, frame)
    plain = attacker.estimator.predict_proba(attacker.design(z))
    np.testing.assert_array_equal(attacker.predict_proba(frame), plain)
    once, back = distinct_rows(z, attacker.order)
    np.testing.assert_array_equal(once[back], z)
    assert len(once) == len(frame[["job", "age", "town"]].drop_duplicates()) < len(frame)
    assert attacker.importances()[-1] == "town"


def test_another_seed_gives_another_forest() -> None:
    frame = people()
    one, two = (fitted("rf", frame, seed=s).predict_proba(frame) for s in (7, 8))
    assert (one != two).any()


@pytest.mark.parametrize("name", ATTACKERS)
def test_category_and_string_types_equal_object(name: str) -> None:
    frame = people()
    for dtype in ("category", "string"):
        other = frame.astype({"job": dtype, "town": dtype})
        before = other.copy(deep=True)
        attacker = fitted(name, other)
        np.testing.assert_array_equal(answer(attacker, other), answer(fitted(name, frame), frame))
        pd.testing.assert_frame_equal(other, before)


def test_brackets_and_spaces_in_levels_are_plain_text_and_integer_categories_match_text() -> None:
    frame = people().replace({"job": {"clerk": "[a] one", "cook": "[b] two"}})
    coded = frame.assign(town=frame["town"].map({"A": 4, "B": 9, "C": -1}).astype("category"))
    text = frame.assign(town=frame["town"].map({"A": "4", "B": "9", "C": "-1"}))
    attacker = fitted("rf", coded)
    np.testing.assert_array_equal(attacker.predict_proba(coded), attacker.predict_proba(text))
    assert not attacker.unseen(text).any()


@pytest.mark.parametrize(("name", "kind"), kinds())
def test_a_pickled_attacker_predicts_the_same_and_needs_one_thread(name: str, kind: str) -> None:
    frame = people()
    attacker = fitted(name, frame, kind=kind, n_jobs=2)
    copy = pickle.loads(pickle.dumps(attacker))
    np.testing.assert_array_equal(answer(copy, frame), answer(attacker, frame))
    assert copy.estimator.get_params().get("n_jobs", 1) == 1


# Missing values, unknown levels, odd columns -----------------------------------------------


@pytest.mark.parametrize(("name", "kind"), kinds())
def test_unknown_levels_and_missing_values_score_without_a_warning(name: str, kind: str) -> None:
    frame = people().dropna().reset_index(drop=True)
    odd = pd.DataFrame({"job": ["pilot", None, "cook", "cook"], "age": [30.0, 40.0, np.nan, np.inf],
                        "town": ["A", "A", "Z", "A"]})
    attacker = fitted(name, frame, kind=kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = answer(attacker, odd)
    assert np.isfinite(p).all()
    assert attacker.unseen(odd).tolist() == [True, True, True, False]
    if kind == "categorical":
        np.testing.assert_allclose(p.sum(axis=1), 1)


def test_an_unknown_level_counts_for_a_linear_attacker_as_the_mean_over_the_levels() -> None:
    frame = people().dropna().reset_index(drop=True)
    attacker = fitted("lm", frame)
    row = pd.DataFrame({"job": ["pilot"], "age": [40.0], "town": ["A"]})
    each = attacker.predict(row.loc[[0] * 4].assign(job=["clerk", "cook", "nurse", "smith"]))
    shares = frame["job"].value_counts(normalize=True).sort_index().to_numpy()
    np.testing.assert_allclose(attacker.predict(row), each @ shares, rtol=1e-9)


def test_missing_is_a_level_of_its_own() -> None:
    frame = pd.DataFrame({"job": [None, "a"] * 50, "ill": ["yes", "no"] * 50, "income": [1.0, 2.0] * 50})
    for name, kind in kinds():
        p = answer(fitted(name, frame, QIS[:1], kind=kind), frame.iloc[:2])
        spread = p[1] - p[0] if kind == "continuous" else p[0, 1] - p[1, 1]
        assert spread > 0.5, name


def test_missing_numbers_are_told_from_the_others() -> None:
    frame = pd.DataFrame({"age": [np.nan, 1.0, 2.0] * 50, "ill": ["yes", "no", "no"] * 50})
    for name in ("rf", "gbm", "cart", "logit"):
        p = fitted(name, frame, QIS[1:2]).predict_proba(frame.iloc[:2])
        assert p[0, 1] > 0.7 > 0.3 > p[1, 1], name


@pytest.mark.parametrize(("name", "kind"), kinds())
def test_columns_without_any_information_are_harmless(name: str, kind: str) -> None:
    frame = people(60).assign(job=None, age=np.nan, town="A")
    p = answer(fitted(name, frame, kind=kind), frame)
    shares = [(frame["ill"] == c).mean() for c in ("no", "yes")]
    expected = frame["income"].mean() if kind == "continuous" else shares
    np.testing.assert_allclose(p, np.broadcast_to(expected, p.shape), rtol=0.2 if name == "rf" else 1e-4)


@pytest.mark.parametrize("name", ["rf", "cart", "gbm", "logit"])
def test_one_absurd_number_does_not_hide_the_others(name: str) -> None:
    age = np.tile([1e-9, 2e-9, 3e-9, 4e-9], 100)
    frame = pd.DataFrame({"age": age, "ill": ["no", "no", "yes", "yes"] * 100})
    frame.loc[0, "age"] = 1e12
    p = fitted(name, frame, QIS[1:2]).predict_proba(frame.iloc[4:8])[:, 1]
    assert name == "logit" or (p > 0.5).tolist() == [False, False, True, True]
    assert np.isfinite(p).all()


def test_ten_thousand_levels_fit_in_one_column_or_are_pooled_with_a_note() -> None:
    rng = np.random.default_rng(0)
    job, age = rng.integers(10_000, size=20_000).astype(str).astype(object), rng.normal(size=20_000)
    frame = pd.DataFrame({"job": job, "age": age})
    frame.loc[:9_999, "job"] = "common"
    frame["ill"] = np.where(frame["job"] == "common", "yes", "no")
    for name in ("rf", "gbm", "cart", "logit"):
        attacker = fitted(name, frame, QIS[:2])
        p = attacker.predict_proba(frame.iloc[[0, 15_000]])[:, 1]
        assert p[0] > 0.8 > 0.2 > p[1], name
        assert not attacker.unseen(frame).any()
        assert ("job: top 250" in " ".join(attacker.notes)) == (name in ("gbm", "logit")), name
        assert len(pickle.dumps(attacker)) < 40e6


# Classes and targets -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rf", "gbm", "cart", "logit"])
def test_classes_are_labels_in_sorted_order_whatever_they_look_like(name: str) -> None:
    age = people()["age"]
    frame = people().assign(ill=np.select([age > 60, age > 40], ["10", "-3"], "[b] 9"))
    attacker = fitted(name, frame)
    assert attacker.classes == ("-3", "10", "[b] 9")
    odd = pd.DataFrame({"job": ["cook"] * 3, "age": [50.0, 75.0, 25.0], "town": ["A"] * 3})
    p = attacker.predict_proba(odd)
    assert p.argmax(axis=1).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["rf", "gbm", "cart", "logit"])
def test_a_release_of_one_class_gives_it_probability_one(name: str) -> None:
    attacker = fitted(name, people().assign(ill="no"))
    assert attacker.classes == ("no",)
    np.testing.assert_array_equal(attacker.predict_proba(people(5, 9)), np.ones((5, 1)))


@pytest.mark.parametrize("name", ["rf", "gbm", "cart", "lm"])
def test_a_constant_number_is_predicted_exactly(name: str) -> None:
    attacker = fitted(name, people().assign(income=5.0), kind="continuous")
    np.testing.assert_allclose(attacker.predict(people(5, 9)), 5.0)


# Parameters and faults ---------------------------------------------------------------------


def test_parameters_reach_the_estimator() -> None:
    frame = people()
    few = fitted("rf", frame, parameters={"n_estimators": 3, "max_samples": 50}).estimator.estimators_
    assert len(few) == 3 and all(e.tree_.n_node_samples[0] <= 50 for e in few)
    assert fitted("cart", frame, parameters={"cp": 0.9}).estimator.get_n_leaves() == 1
    assert fitted("cart", frame, parameters={"ccp_alpha": 0.0}).estimator.get_n_leaves() > 5
    options: tuple[dict[str, Any], ...] = ({}, {"penalty": "l1", "C": 0.02}, {"penalty": "l2", "C": 0.02})
    free, l1, l2 = (fitted("logit", frame, parameters=p).estimator.coef_ for p in options)
    assert (l1 == 0).any() and not (free == 0).any() and not (l2 == 0).any()
    assert np.linalg.norm(l2) < 0.9 * np.linalg.norm(free)


def test_an_estimator_by_import_path_runs_only_with_allow_code() -> None:
    frame = people()
    path = "sklearn.neighbors.KNeighborsClassifier"
    with pytest.raises(AttackerError, match="allow_code"):
        fitted(path, frame, kind="categorical")
    attacker = fitted(path, frame, kind="categorical", allow_code=True, parameters={"n_neighbors": 1})
    p = attacker.predict_proba(frame)[:, 1]
    alone = ~frame.duplicated(["job", "age", "town"], keep=False)
    assert ((p == 1) == (frame["ill"] == "yes"))[alone].all()
    assert not attackers.serves(path, "continuous", allow_code=True)
    assert attackers.serves("sklearn.neighbors.KNeighborsRegressor", "continuous", allow_code=True)


def test_naming_an_import_path_imports_nothing_without_allow_code() -> None:
    with pytest.raises(AttackerError, match="allow_code"):
        attackers.check("this_is_no_module.Thing", {})
    assert attackers.serves("this_is_no_module.Thing", "categorical")


@pytest.mark.parametrize(("name", "kind", "parameters", "text"), [
    ("rff", "categorical", {}, "did you mean 'rf'"),
    ("boost", "categorical", {}, "known are rf, gbm, cart, logit, lm"),
    ("rf", "categorical", {"n_estimator": 5}, "did you mean 'n_estimators'"),
    ("rf", "categorical", {"cp": 0.1}, "no parameter 'cp'"),
    ("rf", "categorical", {"random_state": 5}, "random_state"),
    ("rf", "categorical", {"n_estimators": -5}, "n_estimators"),
    ("cart", "categorical", {"cp": 2}, "cp is 2"),
    ("logit", "categorical", {"penalty": "l3"}, "l1, l2 or none"),
    ("logit", "continuous", {}, "serves a categorical attribute"),
    ("lm", "categorical", {}, "serves a continuous attribute"),
    ("sklearn.neighbors.KNeighborClassifier", "categorical", {}, "did you mean 'KNeighborsClassifier'"),
    ("sklearn.svm.LinearSVC", "categorical", {}, "predict_proba"),
    ("no_such_module.Thing", "categorical", {}, "no_such_module"),
])
def test_faults_are_named_with_what_would_be_right(
    name: str, kind: str, parameters: dict[str, Any], text: str
) -> None:
    with pytest.raises(AttackerError, match=text):
        fitted(name, people(60), kind=kind, parameters=parameters, allow_code=True)


@pytest.mark.parametrize(("change", "text"), [
    ({"frame": people(50).iloc[:0]}, "no row"),
    ({"features": []}, "at least one"),
    ({"features": [Feature("height", "numeric")]}, "'height'"),
    ({"features": [Feature("job", "numeric")]}, "numbers are needed"),
    ({"frame": people(50).assign(ill=None)}, "missing in 50"),
    ({"frame": people(50).assign(income=np.inf), "target": "income", "target_type": "continuous"}, "infin"),
])
def test_training_data_that_cannot_be_used_are_refused(change: dict[str, Any], text: str) -> None:
    usual: dict[str, Any] = {"frame": people(50), "features": QIS, "target": "ill"}
    usual["target_type"] = "categorical"
    with pytest.raises(AttackerError, match=text):
        fit("cart", {}, seed=1, n_jobs=1, **(usual | change))


def test_a_feature_is_categorical_or_numeric() -> None:
    with pytest.raises(AttackerError, match="'categorical' or 'numeric'"):
        Feature("age", "integer")


def test_the_module_needs_no_spark() -> None:
    code = "import sys, rapid_spark.attackers; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent)
