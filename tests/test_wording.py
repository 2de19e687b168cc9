"""Findings in plain words: what is said of a figure, and what is not."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rapid_spark import wording
from rapid_spark.wording import findings

ROW: dict[str, Any] = {
    "registry": "r", "release_id": "1", "replicate": 1, "scored_on": "original", "qi_set": "all", "weighting": "none",
    "sensitive_attribute": "illness", "target_type": "categorical", "attacker": "rf", "measure": "normalized_gain",
    "threshold": 0.3, "n": 1000, "n_at_risk": 400, "rapid": 0.4, "ci_low": 0.37, "ci_high": 0.43, "confidence": 0.95,
    "baseline_rate": 0.25, "excess": 0.15, "null_q95": 0.28, "null_mean": 0.25, "holdout_rate": None,
    "holdout_difference": None, "holdout_difference_low": None, "holdout_difference_high": None, "status": "ok",
    "reason": None, "quasi_identifiers": ["age", "sex"],
}
UNDEFINED = {"status": "undefined", "reason": "one class", "rapid": None, "n_at_risk": None, "ci_low": None, "ci_high": None}


def summary(*changes: dict[str, Any]) -> pd.DataFrame:
    """Rows of risk_summary as an evaluation gives them: object columns with None."""
    return pd.DataFrame([{**ROW, **c} for c in changes or ({},)], dtype=object)


def only(*changes: dict[str, Any], comparable: bool | None = None) -> wording.Finding:
    found = findings(summary(*changes), comparable)
    assert len(found) == 1
    return found[0]


def test_a_finding_says_what_how_sure_and_against_chance() -> None:
    what, sure, chance = only().sentences
    assert "(rf) who knows age and sex" in what and "illness" in what and "40.0 % of the 1,000 people, 400 of them" in what
    assert "more than 30 % of the way" in what
    assert "95 % interval is [37.0 %, 43.0 %]" in sure and "complete register" in sure
    assert "25.0 %" in chance and "adds 15.0 percentage points" in chance


def test_no_word_of_a_verdict() -> None:
    for outcome in (only(), only({"rapid": 0.25, "null_q95": 0.3}), only(UNDEFINED)):
        assert not {"pass", "fail", "fails", "safe", "unsafe", "acceptable", "cleared"} & set(outcome.text.lower().split())


@pytest.mark.parametrize(("change", "outcome"), [
    ({}, "above_chance"),
    ({"rapid": 0.27}, "no_better_than_chance"),
    ({"rapid": 0.0, "n_at_risk": 0, "baseline_rate": 0.0, "null_q95": 0.0}, "no_better_than_chance"),
    ({"null_q95": None, "ci_low": 0.26}, "above_chance"),
    ({"null_q95": None, "ci_low": 0.24}, "no_better_than_chance"),
    ({"null_q95": None, "baseline_rate": None, "null_mean": None}, "chance_unknown"),
    ({"target_type": "continuous", "measure": "symmetric", "baseline_rate": 0.5}, "no_better_than_chance"),
    ({"target_type": "continuous", "measure": "symmetric"}, "above_chance"),
    (UNDEFINED, "undefined"),
])
def test_outcome_against_chance(change: dict[str, Any], outcome: str) -> None:
    assert only(change).outcome == outcome


def test_no_better_than_chance_is_a_low_risk_result() -> None:
    chance = only({"rapid": 0.26, "excess": 0.01}).sentences[2]
    assert "no better than chance" in chance and "low-risk result" in chance and "no failure" in chance


def test_a_weaker_attacker_above_its_own_chance_is_named() -> None:
    constant = {"attacker": "constant", "rapid": 0.6, "baseline_rate": 0.6, "null_q95": 0.6, "excess": 0.0}
    found = only(constant, {"attacker": "gbm", "rapid": 0.5, "excess": 0.25})
    assert found.attacker == "constant" and found.outcome == "above_chance"
    assert "attacker gbm is right for 50.0 %, 25.0 percentage points more than its own chance" in found.sentences[2]


def test_the_figure_is_the_mean_over_copies_of_the_strongest_attacker() -> None:
    found = only(*({"replicate": i, "rapid": r, "ci_high": r + 0.03} for i, r in ((1, 0.4), (2, 0.5), (3, 0.6))),
                 {"attacker": "cart", "rapid": 0.45})
    assert found.rate == pytest.approx(0.5) and found.basis == "mean" and found.attacker == "rf"
    assert "mean over the 3 published copies" in found.sentences[0] and "of them" not in found.sentences[0]
    assert "40.0 % to 60.0 % (standard deviation 10.0 points)" in found.sentences[1]
    assert found.row["replicate"] == 3 and found.high == pytest.approx(0.63)


def test_the_pooled_attacker_decides_where_it_is_stronger() -> None:
    found = only({"replicate": 1}, {"replicate": 2}, {"replicate": 0, "rapid": 0.49, "n_at_risk": 490})
    assert (found.basis, found.rate) == ("pooled", 0.49) and "all copies together" in found.sentences[0]
    assert only({"replicate": 1}, {"replicate": 0, "rapid": 0.39}).basis == "single"


HELD = {"holdout_rate": 0.39, "holdout_difference": 0.01, "holdout_difference_low": -0.02, "holdout_difference_high": 0.04}


@pytest.mark.parametrize(("change", "comparable", "said"), [
    (HELD, True, "no more than that of people who are not in the data"),
    (HELD, None, "if the two are a random split"),
    (HELD, False, "difference between populations"),
    ({**HELD, "holdout_difference_low": 0.005}, True, "being in the data adds to the risk."),
    ({**HELD, "holdout_difference_low": 0.005}, False, "difference between populations"),
])
def test_in_comparison_with_people_not_in_the_data(change: dict[str, Any], comparable: bool | None, said: str) -> None:
    control = only(change, comparable=comparable).control
    assert control is not None and said in control and "39.0 % (difference +1.0 percentage points" in control
    assert ("low-risk" in control) == ("no more than" in said or "random split" in said)


def test_another_attacker_who_finds_members_is_named() -> None:
    other = {**HELD, "attacker": "cart", "rapid": 0.35, "holdout_difference": 0.1, "holdout_difference_low": 0.06}
    control = only(HELD, other, comparable=True).control
    assert control is not None and "for attacker cart being in the data adds 10.0 percentage points" in control
    assert "low-risk" not in control


def test_undefined_says_the_reason_and_no_figure() -> None:
    found = only(UNDEFINED)
    assert found.rate is None and "is undefined: one class." in found.sentences[0] and "%" not in found.text
    assert "could not be computed: out of memory." in only({**UNDEFINED, "status": "failed", "reason": "out of memory"}).text


def test_a_failed_attacker_does_not_hide_the_others() -> None:
    assert only({}, {**UNDEFINED, "attacker": "lm"}).rate == 0.4


def test_findings_come_per_attribute_set_measure_and_release_highest_first_undefined_last() -> None:
    rows = [
        {"sensitive_attribute": "a", **UNDEFINED}, {"sensitive_attribute": "b", "rapid": 0.1},
        {"release_id": "2", "rapid": 0.6}, {"qi_set": "neighbour", "rapid": 0.3},
        {"measure": "nce", "threshold": 0.6, "rapid": 0.2},
    ]
    assert [f.rate for f in findings(summary(*rows))] == [0.6, 0.3, 0.2, 0.1, None]


def test_holdout_and_weighted_rows_make_no_finding() -> None:
    assert len(findings(summary({}, {"scored_on": "holdout", "rapid": 0.9}, {"weighting": "survey", "rapid": 0.9}))) == 1
    assert findings(summary({"scored_on": "holdout"})) == []


def test_combinations_without_a_figure_are_grouped_by_reason() -> None:
    failed = {**UNDEFINED, "status": "failed", "reason": None}
    rows = ({}, {**UNDEFINED, "attacker": "lm"}, {**UNDEFINED, "attacker": "gbm"}, failed)
    assert wording.not_computed(summary(*rows)) == [
        ("undefined", "one class", ["illness, lm", "illness, gbm"]), ("failed", "no reason was recorded", ["illness, rf"]),
    ]


@pytest.mark.parametrize(("measure", "threshold", "said"), [
    ("normalized_gain", 0.07, "more than 7 % of the way"), ("rcs_conditional", 1.25, "1.25 times"),
    ("nce", 0.6, "above 0.6"),
    ("symmetric", 0.1, "less than 10 % of their mean size"), ("relative", 0.125, "12.5 % of the true value"),
    ("absolute", 5000, "less than 5,000, in the unit"), ("normalised", 0.1, "0.1 of the spread"),
    ("stabilised_relative", 0.1, "smoothed near 0"),
])
def test_the_rule_is_told_in_words(measure: str, threshold: float, said: str) -> None:
    assert said in wording.rule({"measure": measure, "threshold": threshold}) and measure in wording.MEASURES


@pytest.mark.parametrize(("share", "shown"), [
    (0, "0.0 %"), (0.0004, "< 0.1 %"), (0.0005, "0.1 %"), (0.71932, "71.9 %"), (0.9996, "> 99.9 %"), (1, "100.0 %"),
    (None, "–"), (float("nan"), "–"), (pd.NA, "–"),
])
def test_percent_never_rounds_some_to_none_or_all(share: Any, shown: str) -> None:
    assert wording.percent(share) == shown


def test_points_and_intervals() -> None:
    assert [wording.points(x) for x in (0.012, -0.012, 0.0, -0.0001, None)] == ["+1.2", "−1.2", "0.0", "0.0", "–"]
    assert wording.interval(0.714, 0.725) == "[71.4 %, 72.5 %]" and wording.interval(None, 0.5) == ""
    assert wording.interval(-0.002, 0.009, signed=True) == "[−0.2, +0.9]"
    assert [wording.p_value(p) for p in (4e-224, 0, 0.005, 1, None)] == ["< 0.001", "< 0.001", "0.005", "1.000", "–"]


def test_names_are_made_showable() -> None:
    assert wording.plain("a\x00b\nc\u202ed\ud800") == "a\ufffdb cd\ufffd"
    assert len(wording.name("x" * 500)) == wording.LONGEST_NAME


def test_many_quasi_identifiers_are_counted_in_the_sentence() -> None:
    assert wording.known([f"q{i}" for i in range(12)], "all") == "q0, q1, q2, q3, q4 and 7 more columns"
    assert wording.known(["age"], "all") == "age" and "set all" in wording.known(None, "all")


def test_the_meaning_of_the_interval_is_said_in_full() -> None:
    assert wording.INTERVAL_MEANING == (
        "Release and fitted attacker are held fixed; the interval says only how the rate would vary if the original were a "
        "random sample of a larger population. For a complete register there is no such error. Variation over releases and "
        "attackers is not in it."
    )


@pytest.mark.parametrize("module", ["wording", "plots", "report", "suite"])
def test_reporting_needs_neither_spark_nor_pyplot(module: str) -> None:
    folder = Path(wording.__file__).parent
    files = [folder / f"{module}.py"] if (folder / f"{module}.py").exists() else sorted((folder / module).glob("*.py"))
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    names = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert names and not any(n.startswith(("pyspark", "matplotlib.pyplot")) for n in names)
