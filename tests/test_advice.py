"""Advice: which steps are proposed, what they cost, how they are ranked; and the way from a rejected release to a cleared one."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rapid_spark.advice.picture import draw_steps
from rapid_spark.advice.ranking import Limit, Result, benefit, combinations, exceeded, figures, ranked
from rapid_spark.advice.steps import DELETION, Column, Step, combine, nice, propose
from rapid_spark.advice.utility import Loss, cramers_v, entropy, loss
from rapid_spark.cli import entry
from rapid_spark.config import Recode, parse_as

RNG = np.random.default_rng(5)
AGES = pd.Series(RNG.integers(18, 90, 3000).astype(float))


def proposed(values: pd.Series, numeric: bool) -> dict[str, Any]:
    steps = propose([Column("x", numeric, values)])
    for step in steps:  # each is a valid setting
        for recode in step.recode.values():
            parse_as(Recode, dict(recode))
    return {s.text: s.recode["x"] for s in steps}


def test_numbers_get_bands_rounding_limits() -> None:
    assert proposed(AGES, True) == {
        "x in bands of 10": {"bands": {"width": 10.0, "style": "range"}},
        "x in bands of 20": {"bands": {"width": 20.0, "style": "range"}},
        "x rounded to 5": {"round": 5.0},
        "x cut off below 22 and above 86": {"bottom": 22.0, "top": 86.0},
        "drop x": {"drop": True},
    }
    assert list(proposed(pd.Series([1.0, 2.0, 3.0] * 9), True)) == ["drop x"]  # few numbers need no bands
    assert list(proposed(pd.Series([np.nan, 4.0]), True)) == ["drop x"]


def test_levels_are_merged_and_codes_masked() -> None:
    levels = pd.Series(["a"] * 50 + ["b"] * 30 + ["c"] * 10 + ["d"] * 8 + ["e", "f"])
    assert proposed(levels, False) == {
        "x: 2 rare levels merged": {"merge": {"other": ["e", "f"]}},
        "x: all but the 3 largest levels merged": {"merge": {"other": ["d", "e", "f"]}},
        "drop x": {"drop": True},
    }
    codes = pd.Series([f"{i:05d}" for i in range(100, 120)] * 9)
    assert proposed(codes, False)["x: the first 2 characters only"] == {"mask": {"keep": 2}}
    # a level that is called so already is not taken for the new one
    taken = pd.Series(["other"] * 50 + ["b"] * 45 + ["e", "f", "g"])
    assert proposed(taken, False)["x: 3 rare levels merged"] == {"merge": {"all others": ["e", "f", "g"]}}


def test_a_step_that_drops_every_quasi_identifier_is_seen() -> None:
    from rapid_spark.advice.trial import leaves_any
    from rapid_spark.config import parse

    config = parse({"qi_sets": {"x": ["a"], "y": ["a", "b"]}, "sensitive_attributes": "ill:categorical"})
    assert leaves_any(config, Step("drop a", {"a": {"drop": True}}))
    assert not leaves_any(config, Step("drop both", {"a": {"drop": True}, "b": {"drop": True}}))


def test_fewer_copies_are_proposed_where_there_are_several() -> None:
    assert [s.text for s in propose([], 5)] == ["publish one copy of 5", "publish 2 copies of 5"]
    assert propose([], 1) == []


@pytest.mark.parametrize(("width", "up", "down"), [(7.2, 10, 5), (10, 10, 10), (0.03, 0.05, 0.02), (1234, 2000, 1000)])
def test_nice_widths(width: float, up: float, down: float) -> None:
    assert (nice(width), nice(width, up=False)) == (up, down)


def test_losses_equal_what_the_definitions_give() -> None:
    x, y = pd.Series(list("aabbbbcc")), pd.Series(list("uuvvuuvv"))
    assert entropy(x) == pytest.approx(0.25 * 2 * 2 + 0.5 * 1)
    table = pd.crosstab(x, y).to_numpy(float)
    n, expected = table.sum(), np.outer(table.sum(1), table.sum(0)) / table.sum()
    v = np.sqrt(((table - expected) ** 2 / expected).sum() / n)  # one of them has two levels
    assert cramers_v(pd.factorize(x)[0], pd.factorize(y)[0]) == pytest.approx(v)
    before = pd.DataFrame({"x": x, "y": y})
    merged = before.assign(x=x.replace({"a": "z", "c": "z"}))
    found = loss(before, merged)
    assert found.information == pytest.approx(np.mean([1 - 1 / 1.5, 0]))
    assert found.association == pytest.approx(abs(v - cramers_v(*(pd.factorize(merged[c])[0] for c in "xy"))))
    gone = loss(before, before[["y"]])
    assert (gone.information, gone.association) == (pytest.approx(0.5), pytest.approx(v))
    assert loss(before, before) == Loss(0.0, 0.0)


# --- ranks ---------------------------------------------------------------------------------------------------------


def summary(rows: list[dict[str, Any]]) -> pd.DataFrame:
    common = {"scored_on": "original", "qi_set": "all", "measure": "normalized_gain", "target_type": "categorical",
              "threshold": 0.3, "status": "ok", "reason": None, "replicate": 1, "sensitive_levels_rate": None}  # fmt: skip
    frame = pd.DataFrame([{**common, "ci_high": r.get("rapid"), "excess": r.get("rapid"), **r} for r in rows])
    return frame.astype(object).where(frame.notna(), None)


def test_the_figure_is_the_largest_of_suite_and_pooled_and_unknown_where_anything_failed() -> None:
    one = {"sensitive_attribute": "ill"}
    both = [{**one, "attacker": "rf", "rapid": 0.4}, {**one, "attacker": "gbm", "rapid": 0.5}]
    pooled = {**one, "attacker": "rf", "rapid": 0.6, "replicate": 0}
    found = figures(summary([*both, pooled]))["ill"]
    assert (found["rapid"], found["rapid_max"], found["rapid_pooled"], found["interval_upper"]) == (0.6, 0.5, 0.6, 0.6)
    failed = {**one, "attacker": "cart", "rapid": None, "status": "failed", "reason": "broke"}
    other = {**failed, "status": "undefined", "reason": "attacker lm does not serve a categorical attribute"}
    assert figures(summary([*both, failed])) == {}
    assert figures(summary([*both, other]))["ill"]["rapid"] == 0.5
    limits = [Limit("rapid_max", "ill", 0.45), Limit("rapid", None, 0.55)]
    assert exceeded({"ill": found}, limits, ["ill", "pay"]) == (
        "rapid_max of ill: 0.500 over 0.45", "rapid of ill: 0.600 over 0.55", "rapid of pay is not known",
    )  # fmt: skip


def result(text: str, rapid: float, information: float, over: tuple[str, ...] = (), column: str | None = None) -> Result:
    step = Step(text, {column or text: {"mask": {"keep": len(text)}}}, kind="mask")
    return Result(step, {"ill": rapid}, {"ill": rapid - 0.2}, Loss(information, 0.0), over)


BEFORE = Result(None, {"ill": 0.7}, {"ill": 0.5}, Loss(0.0, 0.0))


def test_the_cheapest_step_under_the_limit_is_first_then_the_best_bargains() -> None:
    over = ("too high",)
    results = [
        result("strong", 0.3, 0.4), result("cheap", 0.35, 0.2), result("bargain", 0.5, 0.05, over),
        result("poor", 0.65, 0.3, over), Result(Step("broken"), {}, {}, Loss(0, 0), reason="no"),
    ]  # fmt: skip
    found = ranked(results, BEFORE, True)
    assert [r.step.text for r in found if r.step] == ["cheap", "strong", "bargain", "poor", "broken"]
    assert [r.rank for r in found] == [1, 2, 3, 4, 5]
    assert {r.step.text for r in found if r.step and r.on_front} == {"cheap", "strong", "bargain"}
    # without a limit: share of the excess removed less information lost, by hand
    worth = {"strong": 0.4 / 0.5 - 0.4, "cheap": 0.35 / 0.5 - 0.2, "bargain": 0.2 / 0.5 - 0.05, "poor": 0.05 / 0.5 - 0.3}
    for r in results[:4]:
        assert r.step and benefit(r, BEFORE) == pytest.approx(worth[r.step.text])
    free = [r.step.text for r in ranked(results, BEFORE, False) if r.step]
    assert free == [*sorted(worth, key=lambda t: -worth[t]), "broken"]


def test_combinations_take_one_step_a_column() -> None:
    results = [
        result("a mild", 0.5, 0.05, column="a"), result("a strong", 0.4, 0.5, column="a"), result("b", 0.55, 0.1),
        result("useless", 0.7, 0.0),
    ]  # fmt: skip
    found = combinations(results, BEFORE)
    assert [s.text for s in found] == ["a mild; b", "a strong; b"]
    both = combine([Step("x", {"a": {"round": 5}}), Step("y", {"a": {"drop": True}}, replicates=2), Step("z", replicates=3)])
    assert (both.recode, both.replicates) == ({"a": {"round": 5}}, 2)


def test_the_picture_has_no_labels_on_top_of_each_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [{"rapid": 0.74, "information_lost": 0.0, "rank": 0, "on_front": None}]
    rows += [
        {"rapid": float(r), "information_lost": float(x), "rank": i, "on_front": i < 6}
        for i, (r, x) in enumerate(zip(rng.random(40) * 0.6, rng.random(40) * 0.3, strict=True), 1)
    ]
    figure = draw_steps(rows, 0.5)
    figure.savefig(tmp_path / "x.png")
    boxes = [t.get_window_extent() for t in figure.axes[0].texts]
    assert len(boxes) >= 6
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


# --- from a rejected release to a cleared one ----------------------------------------------------------------------


def run(*words: str) -> tuple[int, dict[str, Any], str]:
    from click.testing import CliRunner

    from rapid_spark.cli.terminal import Terminal

    found = CliRunner().invoke(entry.cli, [*words, "--format", "json", "--quiet"], obj=Terminal(), standalone_mode=False)
    if found.exception is not None:
        code, message = entry.fault(found.exception)
        return code, {}, message
    return int(found.return_value or 0), json.loads(found.stdout), found.stderr


@pytest.mark.slow
@pytest.mark.long
def test_advice_lowers_the_rate_under_the_limit_and_exactly_that_file_is_cleared(spark: Any, tmp_path: Path) -> None:
    """The release is the original: a forest remembers who is ill at which age and place. Bands leave it nothing."""
    rng = np.random.default_rng(8)
    n = 300
    people = pd.DataFrame({
        "id": np.arange(n), "age": rng.integers(20, 80, n), "place": rng.choice(list("abcd"), n),
        "ill": rng.choice(["yes", "no"], n),
    })  # fmt: skip
    people.to_csv(tmp_path / "original.csv", index=False)
    people.drop(columns="id").to_csv(tmp_path / "release.csv", index=False)
    store = ("--store", str(tmp_path / "store"))
    quick = ("--set", "intervals.permutations=0", "--set", "intervals.bootstrap=50", "--set", "drivers.subgroups=false",
             "--set", "drivers.attribution=false", "--set", "drivers.patterns=0", "--no-tracking")  # fmt: skip
    forest = '[{name: rf, parameters: {n_estimators: 15, min_samples_split: 2, min_samples_leaf: 1}}]'
    code, judged, said = run(
        "evaluate", "--original", str(tmp_path / "original.csv"), "--release", str(tmp_path / "release.csv"), "--key", "id",
        "--quasi-identifiers", "age,place", "--sensitive-attribute", "ill", "--set", f"attackers={forest}", *quick, *store,
        "--run-id", "first",
    )  # fmt: skip
    assert code == 0, said
    before = judged["results"][0]["rapid"]
    assert before > 0.4
    assert run("decide", "--run", "first", "--outcome", "reject", "--by", "A", "--reason", "too much is known", *store)[0] == 0

    advice = ("advise", "--run", "first", "--limit", "0.3", "--most", "5", "--output", str(tmp_path / "advice"), *store)
    code, found, said = run(*advice)
    assert code == 0, said
    first = found["steps"][1]
    assert found["steps"][0]["rapid"] == pytest.approx(before)  # the release as it is, by the same attackers
    assert (first["rank"], first["meets_limits"], first["status"]) == (1, True, "ok") and first["rapid"] < 0.3 < before
    assert 0 < first["information_lost"] < 1 and found["not_offered"] == DELETION
    # by entropy in plain NumPy: what the first step costs
    assert (tmp_path / "advice" / "advice.png").stat().st_size > 10_000

    code, made, said = run("recode", "--config", found["configuration"], "--output", str(tmp_path / "coarser"))
    assert code == 0, said
    code, again, said = run("evaluate", "--config", made["config"], *quick, "--run-id", "second")
    assert code == 0, said
    assert again["results"][0]["rapid"] == pytest.approx(first["rapid"])  # the step gives what was promised
    file = Path(made["releases"][0])
    assert run("verify", str(file), *store)[0] == 1
    code, decided, said = run("decide", "--run", "second", "--outcome", "approve", "--by", "A", "--reason", "under 0.3", *store)
    assert (code, decided["cleared"], decided["release_id"]) == (0, True, "release-recoded"), said
    with gzip.open(file, "rt") as opened:
        rows = pd.read_csv(opened, dtype=str, keep_default_na=False)
    rows.sample(frac=1, random_state=2)[rows.columns[::-1]].to_csv(tmp_path / "permuted.csv", index=False)
    assert run("verify", str(tmp_path / "permuted.csv"), *store)[0] == 0
    rows.assign(ill=rows["ill"].where(rows.index != 5, "maybe")).to_csv(tmp_path / "changed.csv", index=False)
    assert run("verify", str(tmp_path / "changed.csv"), *store)[0] == 1
    # what is refused
    code, _, said = run("recode", "--config", found["configuration"], "--output", str(tmp_path / "coarser"))
    assert code == 2 and "is there already" in said
    pd.read_csv(tmp_path / "release.csv").iloc[1:].to_csv(tmp_path / "release.csv", index=False)
    code, _, said = run(*advice)
    assert code == 2 and "has changed since it was judged" in said


def test_settings_of_an_audit_are_told_in_the_registrys_own_names() -> None:
    from rapid_spark.advice.audited import own_names
    from rapid_spark.config import Config, parse

    common = parse({
        "columns": {"key": "record_id", "missing_codes": {"gender": ["?"]}},
        "quasi_identifiers": ["age", "gender", "education"], "baseline": {"by": ["gender"]},
        "sensitive_attributes": [{"name": "disease", "type": "categorical", "sensitive_levels": ["diabetic"]}],
        "recode": {"education": {"merge": {"some": ["low", "medium"]}}, "age": {"bands": 10}},
    })  # fmt: skip
    own = parse(own_names(
        common.model_dump(mode="json"), {"sex": "gender", "id": "record_id", "diagnosis": "disease", "edu": "education"},
        {"gender": {"f": "female"}, "education": {"1": "low", "2": "medium"}, "disease": {"E11": "diabetic"}},
    ))  # fmt: skip
    assert isinstance(own, Config)
    assert (own.columns.key, own.sets["all"], own.baseline.by) == (("id",), ("age", "edu", "sex"), ("sex",))
    assert own.columns.types == {"edu": "categorical", "sex": "categorical"} and own.columns.missing_codes == {"sex": ("?",)}
    (attribute,) = own.sensitive_attributes
    assert (attribute.name, attribute.sensitive_levels) == ("diagnosis", ("E11",))
    assert own.recode["edu"].merge == {"some": ("1", "2")} and own.recode["age"].bands is not None


def test_in_an_audit_the_coarser_release_stands_where_the_judged_one_was(tmp_path: Path) -> None:
    from rapid_spark.advice.audited import audited
    from rapid_spark.audit.settings import AuditConfig
    from rapid_spark.config import Table

    for year in (2025, 2026):
        (tmp_path / f"c_{year}.csv").write_text("id,schooling,diagnosis\n")
    audit = parse_as(AuditConfig, {
        "defaults": {"quasi_identifiers": ["education"], "sensitive_attributes": ["disease:categorical"]},
        "policy": {"limits": {"rapid_max": 0.5}, "approvals": 2, "attributes": {"disease": {"rapid_max": 0.4}}},
        "registries": [
            {"name": "other", "original": "x.csv", "releases": "y_*.csv"},
            {"name": "c", "original": str(tmp_path / "c.csv"), "releases": str(tmp_path / "c_*.csv"), "vocabulary": {
                "columns": {"schooling": "education", "diagnosis": "disease"},
                "levels": {"education": {"p": "low", "s": "medium"}}}},
        ],
    })  # fmt: skip
    found = audited(audit.model_dump(mode="json"), "c", "2026")
    assert (found.config.all_quasi_identifiers, found.config.release_id) == (("schooling",), "2026")
    assert found.config.columns.types == {"schooling": "categorical"} and found.common["schooling"] == "education"
    new = found.coarser({"schooling": {"merge": {"other": ["p", "s"]}}}, [Table(path="z.csv.gz")], "2026-recoded")
    (registry,) = new.registries
    assert [r.id for r in registry.releases if not isinstance(r, str)] == ["2025", "2026-recoded"]
    last = registry.releases[-1]
    assert not isinstance(last, str)
    assert (last.tables[0].path, last.recode["education"].merge) == ("z.csv.gz", {"other": ("low", "medium")})
    assert new.policy.approvals == 2
