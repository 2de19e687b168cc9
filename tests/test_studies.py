"""Simulation studies and cross-validation: folds, intervals, rates, checks; little of it needs Spark."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rapid_spark import assess
from rapid_spark.cli import entry
from rapid_spark.config import Attacker, ConfigError
from rapid_spark.simulate import registry
from rapid_spark.studies import comparison, figures, local, published, simulation, validation
from rapid_spark.studies.spread import Failure, spread
from rapid_spark.synthesizers import CartSynthesizer, Generator

QUESTION = local.Question(simulation.KINDS, simulation.TARGET)
TREE = Attacker(name="rf", parameters={"n_estimators": 20})


def test_interval_is_that_of_nadeau_and_bengio() -> None:
    values = [0.70, 0.72, 0.75, 0.69, 0.74]
    found = validation.interval(values, 0.95)
    variance = np.var(values, ddof=1) * (1 / 5 + 1 / 4)
    reach = stats.t(4).ppf(0.975) * np.sqrt(variance)
    assert (found["mean"], found["sd"]) == pytest.approx((0.72, np.std(values, ddof=1)))
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((0.72 - reach, 0.72 + reach))
    assert validation.interval(values, 0.95, whole=False)["ci_low"] is None
    assert validation.interval([0.5], 0.95)["sd"] is None and validation.interval([], 0.95)["mean"] is None


def test_folds_are_even_within_every_class() -> None:
    target = pd.Series(["a"] * 53 + ["b"] * 31 + ["c"] * 7 + [None] * 4)
    fold = validation.assign_folds(target, 5, seed=3, stratified=True)
    for label in ("a", "b", "c", None):
        of_class = target.isna() if label is None else target == label
        counts = np.bincount(fold[of_class.to_numpy()], minlength=5)
        assert counts.max() - counts.min() <= 1
    counts = np.bincount(fold)
    assert counts.max() - counts.min() <= 1
    assert (fold == validation.assign_folds(target, 5, seed=3, stratified=True)).all()
    assert (fold != validation.assign_folds(target, 5, seed=4, stratified=True)).any()


@pytest.mark.parametrize("folds", [1, 96])
def test_folds_that_cannot_be_made_are_refused(folds: int) -> None:
    with pytest.raises(ConfigError, match="2 to the number of records, 95"):
        validation.assign_folds(pd.Series(range(95)), folds, seed=1, stratified=False)


def test_rates_are_the_definition_record_by_record() -> None:
    original, release = registry(300, 3, seed=1), registry(200, 3, seed=2)
    release = release[release["disease_status"] != "diabetic"].reset_index(drop=True)  # a class it never shows
    people = local.plain(original, QUESTION)
    fitted = local.fit(local.plain(release, QUESTION), QUESTION, "rf", TREE.parameters, 1)
    found = local.rates(fitted, people, QUESTION, local.Rule.of(people, QUESTION), [0.0, 0.3])
    p = fitted.predict_proba(people)
    at_risk, right = {0.0: 0, 0.3: 0}, 0
    for i, truth in enumerate(original["disease_status"]):
        b = (original["disease_status"] == truth).mean()
        g = dict(zip(fitted.classes or (), p[i], strict=True)).get(truth, 0.0)
        right += (fitted.classes or ())[int(np.argmax(p[i]))] == truth
        for tau in at_risk:
            at_risk[tau] += round(g, 12) > b + tau * (1 - b)
    assert found.n == 300 and found.quality == right / 300
    assert found.rates == tuple(n / 300 for n in at_risk.values())
    assert 0 < found.rates[1] < found.rates[0] < 1


def test_continuous_rates_are_the_definition() -> None:
    question = local.Question({"age": "numeric", "education": "categorical"}, "income", "continuous", "drop")
    original, release = registry(200, 3, seed=1), registry(200, 3, seed=2)
    original.loc[:9, "income"] = np.nan
    people = local.plain(original, question)
    fitted = local.fit(local.plain(release, question), question, "lm", {}, 1)
    found = local.rates(fitted, people, question, local.Rule.of(people, question), [0.1, 0.5])
    y, guess = original["income"].dropna().to_numpy(), fitted.predict(people)
    error = 2 * np.abs(y - guess) / (np.abs(y) + np.abs(guess) + 0.02)
    assert found.n == 190 and found.rates == ((error < 0.1).mean(), (error < 0.5).mean())


def test_columns_become_numbers_of_days_and_text_whatever_their_type() -> None:
    frame = pd.DataFrame({
        "day": [dt.date(1970, 1, 3), None],
        "time": pd.to_datetime(["1970-01-01 12:00", "1970-01-02 00:00"]),
        "flag": pd.array([True, None], dtype="boolean"),
        "code": [3.0, np.nan],
        "y": ["a", None],
    })
    kinds = {"day": "numeric", "time": "numeric", "flag": "categorical", "code": "categorical"}
    found = local.plain(frame, local.Question(kinds, "y"))  # in the order of the names: code, day, flag, time
    assert found.columns.tolist() == ["q0", "q1", "q2", "q3", "s0"]
    assert found.iloc[0].tolist() == ["3", 2.0, "true", 0.5, "a"]
    assert found["q0"][1] is None and np.isnan(found["q1"][1]) and found["q2"][1] is None and found["s0"][1] == "missing"
    assert len(local.plain(frame, local.Question(kinds, "y", missing="drop"))) == 1


@pytest.mark.parametrize(
    ("text", "kind", "options"),
    [
        ("cart", "cart", {}),
        ("cart:min_leaf=20,smoothing=true", "cart", {"min_leaf": 20, "smoothing": True}),
        ("cart:visit_order=[a, b],seed=3", "cart", {"visit_order": ["a", "b"], "seed": 3}),
        ("command:program --x=1,2 {original} {release}", "command", {"command": "program --x=1,2 {original} {release}"}),
    ],
)
def test_generators_are_read_from_their_text(text: str, kind: str, options: dict[str, Any]) -> None:
    assert Generator.parse(text) == Generator(text, kind, options)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cart:min_leaf", "expected OPTION=VALUE"),
        ("cart:min_lea=3", "no option min_lea"),
        ("cart:min_leaf=0", "min_leaf is 0"),
        ("forest", "there is no synthesizer 'forest'"),
        ("command:program {original} {release}", "--allow-code"),
        ("os.path.join", "--allow-code"),
    ],
)
def test_generators_that_cannot_be_made_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Generator.parse(text).make()


def test_code_is_imported_only_where_it_is_allowed() -> None:
    path = "rapid_spark.synthesizers.cart.CartSynthesizer:min_leaf=9"
    assert Generator.parse(path).make(allow_code=True).min_leaf == 9  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="no class with fit"):
        Generator.parse("os.path.join").make(allow_code=True)


def test_a_copy_gives_away_those_it_holds_and_less_of_others() -> None:
    frame = registry(400, 2, seed=5)
    plan = validation.Plan((Generator.parse("rows"), Generator.parse("cart")), QUESTION, TREE, 0.3, 4)
    fold = validation.assign_folds(frame["disease_status"], 4, plan.seed, True)
    shared = {"frame": frame, "fold": fold, "plan": plan}
    rows, cart = (
        [validation.one_fold({"generator": g, "fold": j}, shared) for j in range(4)] for g in range(2)
    )
    assert sum(r["n"] for r in rows) == 400 and all(r["n"] + r["n_used"] == 400 for r in rows)
    assert np.mean([r["rapid_used"] - r["rapid"] for r in rows]) > 0.2  # a forest remembers the records it grew on
    assert np.mean([r["rapid_used"] - r["rapid"] for r in cart]) < 0.15
    # the same by hand: release, forest, baselines of the whole original
    held = fold == 1
    seeds = np.random.SeedSequence([plan.seed, 1]).generate_state(3)
    used, people = frame[~held].reset_index(drop=True), local.plain(frame, QUESTION)
    release = CartSynthesizer(seed=int(seeds[0])).fit(used).sample(len(used), int(seeds[1]))
    fitted = local.fit(local.plain(release, QUESTION), QUESTION, "rf", TREE.parameters, int(seeds[2]) % 2**31)
    p = pd.DataFrame(fitted.predict_proba(people), columns=list(fitted.classes or ()))
    g = np.array([p[c][i] for i, c in enumerate(frame["disease_status"])]).round(12)
    b = frame["disease_status"].map(frame["disease_status"].value_counts(normalize=True)).to_numpy()
    assert cart[1]["rapid"] == (g > b + 0.3 * (1 - b))[held].mean()


def test_a_fold_that_broke_leaves_a_mean_without_interval() -> None:
    plan = validation.Plan((Generator.parse("cart"),), QUESTION, TREE, 0.3, 3)
    good = {"n": 10, "n_used": 20, "rapid": 0.5, "rapid_used": 0.6, "quality": 0.7, "seconds": 1.0}
    rows = [validation._row(0, good), validation._row(1, {**good, "rapid": 0.7}), validation._row(2, Failure("X", None, False))]
    found = validation.summarise("cart", rows, plan)
    assert found["status"] == "partial" and found["mean"] == pytest.approx(0.6) and found["ci_low"] is None
    assert found["folds"][2]["reason"] == "ended with X"


@pytest.mark.parametrize(
    ("number", "options", "said"),
    [
        (5, {}, "there are 1, 2, 3, 4"),
        (2, {"repetitions": 0}, "at least 1 is needed"),
        (2, {"kappas": [-1]}, "--kappa is -1"),
        (2, {"taus": [1]}, "--tau is 1"),
    ],
)
def test_studies_that_make_no_sense_are_refused(number: int, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        simulation.plan(number, **options)


def test_one_repetition_hangs_on_seed_kappa_and_repetition_alone() -> None:
    shared = {"attackers": ["rf"], "settings": [("all", "all", tuple(simulation.KINDS)), ("age", "alone", ("age",))],
              "thresholds": (0.2, 0.5), "parameters": {"rf": {"n_estimators": 20}}}
    first = simulation.simulate({"kappa": 10, "seed": 1, "repetition": 0}, shared)
    assert first == simulation.simulate({"kappa": 10.0, "seed": 1, "repetition": 0}, shared)
    assert first != simulation.simulate({"kappa": 10, "seed": 1, "repetition": 1}, shared)
    whole, age = first
    assert whole["rates"][0] >= whole["rates"][1] and whole["rates"][0] > age["rates"][0] > 0.3


def _outcome(number: int, shift: float = 0.0) -> simulation.Outcome:
    """A study whose means are the published ones, all but the first moved by `shift`."""
    study = simulation.plan(number, 10)
    rates, results = {}, []
    for variable, setting, _ in simulation._settings(study):
        for attacker in study.attackers:
            for kappa in study.kappas:
                known = [simulation.known(study, kappa, t, variable, setting, attacker) for t in study.taus]
                values = np.array([[k.mean if k else 0.5 for k in known]] * 10)
                values[:, 0] += shift if not results else 0.0
                key = (kappa, variable, setting, attacker)
                rates[key] = values
                results += [simulation._row(study, key, t, values[:, i], np.full(10, 0.9)) for i, t in enumerate(study.taus)]
    return simulation.Outcome(study, results, rates, study.taus)


@pytest.mark.parametrize("number", [3, 4])
def test_published_figures_hold_against_themselves_and_a_shift_shows(number: int) -> None:
    checks = comparison.checks(_outcome(number))
    assert checks and not comparison.open_questions(checks)
    if number == 4:
        moved = comparison.checks(_outcome(4, shift=-0.04))
        assert [c.holds for c in moved] == [False] and "cart -0.040" in comparison.open_questions(moved)[0]


def test_study_3_notices_a_wrong_order_and_says_what_jumps() -> None:
    outcome = _outcome(3)
    assert [note.split(" ")[0] for note in comparison.notes(outcome)] == ["education", "gender"]
    assert "Repetitions: 0.24, 0.24" in comparison.notes(outcome)[0] and not comparison.notes(_outcome(4))
    for row in outcome.results:
        if row["variable"] == "income" and row["setting"] == "alone":
            row["mean"], row["difference"] = 0.70, 0.70 - 0.492
    said = comparison.open_questions(comparison.checks(outcome))
    assert len(said) == 2 and "income and health_score" in said[1]


def test_bending_tells_convex_from_concave() -> None:
    x = np.linspace(0, 1, 11)
    assert comparison.bending(x, (1 - x) ** 2) == pytest.approx(float((1 - x - (1 - x) ** 2).mean()))
    assert comparison.bending(x, 1 - x**2) < 0 == pytest.approx(comparison.bending(x, 1 - x))


def test_figures_are_whole_files_or_none(tmp_path: Path) -> None:
    for number in (2, 3, 4):
        figures.save(figures.draw(_outcome(number)), tmp_path / f"{number}.png")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["2.png", "3.png", "4.png"]
    for name in ("a.jpg", "absent/a.png"):
        with pytest.raises(ConfigError, match="--figure"):
            figures.check_place(tmp_path / name)


def test_published_means_are_those_of_the_table() -> None:
    assert published.STUDY_2[5.0, 0.3] == published.Published(0.763, 0.015) and len(published.STUDY_2) == 20
    assert published.STUDY_2[50.0, 0.5].mean == 0.925 and published.STUDY_4["gbm"].accuracy == 0.881


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["study", "2", "--tau", "2"], "--tau is 2.0"),
        (["study", "2", "--figure", "a.jpg"], "ending must be one of"),
        (["cv"], "original: name a table"),
        (["cv", "--original", "o.csv", "--quasi-identifiers", "a"], "takes one, found 0"),
        (["cv", "--original", "o.csv", "--generator", "cart:leaf=3"], "takes one, found 0"),
        (["cv", "--original", "o.csv", "--quasi-identifiers", "a", "--sensitive-attribute", "b", "--generator", "x"], "'x'"),
        (["synthesize", "--original", "o.csv", "--output", "x.xls"], "ending must be"),
        (["synthesize", "--original", "o.csv", "--output", "x.csv", "--min-leaf", "0"], "min_leaf is 0"),
        (["synthesize", "--original", "o.csv", "--output", "x.csv", "--generator", "rows", "--proper"], "--proper: for"),
        (["synthesize", "--original", "o.csv", "--output", "x.csv", "--generator", "a.B"], "--allow-code"),
    ],
)
def test_faults_of_the_user_end_with_2_before_anything_starts(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert entry.run(words) == 2
    shown = capsys.readouterr()
    assert said in shown.err and shown.out == "" and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_tasks_come_back_in_order_and_one_that_breaks_stops_no_other(spark: Any) -> None:
    frame = registry(60, 2, seed=1)
    plan = validation.Plan((Generator.parse("rows"), Generator.parse("forest")), QUESTION, TREE, 0.3, 2)
    shared = {"frame": frame, "fold": np.arange(60) % 2, "plan": plan}
    tasks = [{"generator": g, "fold": j} for g in (0, 1) for j in (0, 1)]
    found = spread(spark, validation.one_fold, tasks, shared)
    for task, result in zip(tasks[:2], found[:2], strict=True):
        here = validation.one_fold(task, shared)
        assert {**result, "seconds": 0} == {**here, "seconds": 0}
    assert all(isinstance(r, Failure) and r.is_input and "no synthesizer 'forest'" in str(r) for r in found[2:])


@pytest.mark.slow
def test_the_commands_give_the_documents_of_the_contract(
    spark: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert entry.run(["study", "2", "--repetitions", "2", "--kappa", "5", "--tau", "0.3", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    row = document["results"][0]
    assert document["study"] == 2 and len(document["results"]) == 1
    assert (row["kappa"], row["tau"], row["attacker"], row["published_mean"], row["published_sd"]) == (5, 0.3, "rf", 0.763, 0.015)
    assert row["mean"] == pytest.approx(0.763, abs=0.05) and row["sd"] > 0

    registry(300, 5, seed=3, key=True).to_csv(tmp_path / "o.csv", index=False)
    words = ["cv", "--original", str(tmp_path / "o.csv"), "--key", "record_id", "--quasi-identifiers", "age,income,gender",
             "--sensitive-attribute", "disease_status", "--attacker", "cart", "--folds", "3", "--generator", "cart",
             "--generator", "rows", "--figure", str(tmp_path / "cv.png"), "--format", "json"]
    assert entry.run(words) == 0
    document = json.loads(capsys.readouterr().out)
    rates = [fold["rapid"] for fold in document["folds"]]
    assert len(rates) == 3 and document["mean"] == pytest.approx(np.mean(rates))
    assert document["ci_low"] <= document["mean"] <= document["ci_high"]
    assert [g["generator"] for g in document["generators"]] == ["cart", "rows"]
    assert (tmp_path / "cv.png").stat().st_size > 10_000


@pytest.mark.slow
def test_rates_of_one_process_are_those_of_the_pipeline(spark: Any) -> None:
    original, release = registry(250, 4, seed=11), registry(250, 4, seed=12)
    original.loc[3:9, "education"], original.loc[2, "income"] = None, np.nan
    attributes = {"disease_status": "categorical", "income": "continuous"}
    known = {name: kind for name, kind in simulation.KINDS.items() if name != "income"}
    assessment = assess(original, release, {
        "quasi_identifiers": list(known), "sensitive_attributes": list(attributes),
        "attackers": [{"name": "rf", "parameters": TREE.parameters}], "training": {"seed": 5},
        "intervals": {"bootstrap": 50, "permutations": 0},
        "drivers": {"subgroups": False, "patterns": 0, "attribution": False},
    })
    assessment.close()
    for (name, kind), row in zip(attributes.items(), assessment.summary.to_dict("records"), strict=True):
        question = local.Question(known, name, kind, "class" if kind == "categorical" else "drop")
        people, published_rows = local.plain(original, question), local.plain(release, question)
        fitted = local.fit(published_rows, question, "rf", TREE.parameters, 5)
        found = local.rates(fitted, people, question, local.Rule.of(people, question), [row["threshold"]])
        assert (found.n, found.rates[0]) == (row["n"], pytest.approx(row["rapid"], abs=1e-12))
        assert found.quality == pytest.approx(row["accuracy" if kind == "categorical" else "mae"], abs=1e-9)
