"""Rules of a policy on result rows: what passes, what fails, and that nothing unknown ever passes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import date
from typing import Any

import pandas as pd
import pytest

from rapid_spark import policy as rules
from rapid_spark.config import ConfigError, parse_as
from rapid_spark.config.policy import Policy
from rapid_spark.policy import Previous, Verdict, cleared, judge
from rapid_spark.policy.figures import NOT_SERVED

ROW: dict[str, Any] = {
    "registry": "r", "release_id": "2", "replicate": 1, "scored_on": "original", "qi_set": "all", "weighting": "none",
    "sensitive_attribute": "illness", "target_type": "categorical", "attacker": "rf", "measure": "normalized_gain",
    "threshold": 0.3, "n": 1000, "rapid": 0.4, "ci_low": 0.37, "ci_high": 0.43, "excess": 0.15, "accuracy": 0.7,
    "majority_rate": 0.6, "auc": 0.72, "r2": None, "sensitive_levels_rate": 0.2, "holdout_difference": 0.02,
    "status": "ok", "reason": None,
}  # fmt: skip
GBM = {"attacker": "gbm", "rapid": 0.5, "ci_high": 0.53, "excess": 0.12, "auc": 0.6, "accuracy": 0.61}
BROKEN = {"attacker": "gbm", "status": "failed", "reason": "fitting ended with MemoryError", **dict.fromkeys(
    ("rapid", "ci_low", "ci_high", "excess", "auc", "accuracy", "n", "sensitive_levels_rate", "holdout_difference")
)}  # fmt: skip
GROUP: dict[str, Any] = {
    **{k: ROW[k] for k in ("registry", "release_id", "replicate", "scored_on", "qi_set", "weighting", "sensitive_attribute",
                           "attacker", "measure")},
    "columns": ["age"], "level": ["20 to 30"], "n": 100, "n_at_risk": 40, "rapid": 0.4, "suppressed": False,
}  # fmt: skip
HIDDEN = {"n": None, "n_at_risk": None, "rapid": None, "suppressed": True, "level": ["over 90"]}


def summary(*changes: Mapping[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([{**ROW, **c} for c in changes or ({},)], dtype=object)


def groups(*changes: Mapping[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([{**GROUP, **c} for c in changes or ({},)], dtype=object)


def policy(limits: Mapping[str, Any], **more: Any) -> Policy:
    return parse_as(Policy, {"limits": dict(limits), **more})


def verdict(rule: str, limit: Any, *changes: Mapping[str, Any], **more: Any) -> Verdict:
    """What one rule says."""
    found = judge(policy({rule.split(".")[0]: limit}), summary(*changes), **more)
    return next(v for v in found if v.rule == rule)


# the rule, and a limit just above and just below its figure of ROW and GBM
FIGURES = {
    "rapid_max": 0.5, "rapid_pooled": 0.5, "interval_upper": 0.53, "excess": 0.15, "sensitive_levels_rate": 0.2,
    "holdout_difference": 0.02, "subgroup_rapid": 0.4, "increase_over_previous": 0.1,
}  # fmt: skip
BEFORE = Previous("1", {("all", "illness", "normalized_gain"): 0.4})


@pytest.mark.parametrize("rule", FIGURES)
@pytest.mark.parametrize(("limit", "expected", "decided"), [
    ({"fail": +0.001}, "pass", "fail"),
    ({"fail": -0.001}, "fail", "fail"),
    ({"review": +0.001, "fail": +0.002}, "pass", "review"),
    ({"review": -0.001, "fail": +0.001}, "review", "review"),
    ({"review": -0.002, "fail": -0.001}, "fail", "fail"),
    ({"review": -0.001}, "review", "review"),
])  # fmt: skip
def test_each_rule_compares_its_figure(rule: str, limit: dict[str, float], expected: str, decided: str) -> None:
    limits = {k: FIGURES[rule] + v for k, v in limit.items()}
    every = groups({}, {"attacker": "gbm", "rapid": 0.3})
    found = verdict(rule, limits, {}, GBM, subgroups=every, previous=BEFORE)
    assert (found.verdict, found.limit) == (expected, limits[decided])
    assert found.figure == pytest.approx(FIGURES[rule])


def test_a_figure_at_its_limit_is_within_it() -> None:
    assert verdict("rapid_max", 0.4).verdict == "pass"


@pytest.mark.parametrize("rule", FIGURES)
@pytest.mark.parametrize("status", ["failed", "undefined"])
def test_a_combination_without_a_figure_never_lets_a_rule_pass(rule: str, status: str) -> None:
    found = verdict(rule, 0.99, {}, {**BROKEN, "status": status}, subgroups=groups(), previous=BEFORE)
    assert found.verdict == "not_evaluated" and "1 of 2 combinations has no figure (gbm: fitting ended" in found.reason
    assert verdict(rule, 0.99, BROKEN, subgroups=groups()).verdict == "not_evaluated" or rule == "increase_over_previous"


@pytest.mark.parametrize("rule", ["rapid_max", "interval_upper", "excess", "sensitive_levels_rate", "subgroup_rapid"])
def test_what_is_known_fails_a_rule_also_where_something_is_not(rule: str) -> None:
    found = verdict(rule, 0.01, {}, BROKEN, subgroups=groups())
    assert found.verdict == "fail" and "over the limit" in found.reason and "besides" in found.reason


def test_an_incomplete_figure_over_its_review_limit_is_not_evaluated() -> None:
    assert verdict("rapid_max", {"review": 0.3, "fail": 0.6}, {}, BROKEN).verdict == "not_evaluated"


def test_an_attacker_made_for_another_kind_was_not_asked_for() -> None:
    other = {"attacker": "lm", "status": "undefined", "reason": f"attacker lm {NOT_SERVED} a categorical attribute"}
    found = judge(policy({"rapid_max": 0.5}), summary({}, {**BROKEN, **other}))
    assert cleared(found)
    alone = judge(policy({"rapid_max": 0.5}), summary({**BROKEN, **other}))
    assert alone[-1].verdict == "not_evaluated"


def test_training_names_that_reason_with_the_words_the_policy_knows() -> None:
    import inspect

    from rapid_spark import training

    assert NOT_SERVED in inspect.getsource(training)


def test_copies_count_by_their_mean_and_the_pooled_attacker_apart() -> None:
    copies = ({"rapid": 0.3}, {"rapid": 0.5, "replicate": 2}, {"rapid": 0.7, "replicate": 0})
    assert verdict("rapid_max", 0.41, *copies).figure == pytest.approx(0.4)
    assert verdict("rapid_max", 0.41, *copies).verdict == "pass"
    assert verdict("rapid_pooled", 0.41, *copies).figure == pytest.approx(0.7)
    assert verdict("increase_over_previous", 0.2, *copies, previous=BEFORE).figure == pytest.approx(0.3)


def test_several_copies_without_a_pooled_attacker_are_not_evaluated() -> None:
    found = verdict("rapid_pooled", 0.9, {}, {"replicate": 2})
    assert found.verdict == "not_evaluated" and "all copies together was not computed" in found.reason


def test_a_withheld_subgroup_never_passes_and_a_shown_one_can_fail() -> None:
    hidden = verdict("subgroup_rapid", 0.9, subgroups=groups({}, HIDDEN))
    assert hidden.verdict == "not_evaluated" and "1 of 2 subgroup figures are withheld" in hidden.reason
    assert hidden.figure == pytest.approx(0.4)
    assert verdict("subgroup_rapid", 0.3, subgroups=groups({}, HIDDEN)).verdict == "fail"
    assert verdict("subgroup_rapid", 0.9, subgroups=groups(HIDDEN)).verdict == "not_evaluated"
    assert verdict("subgroup_rapid", 0.9).verdict == "not_evaluated"


def test_the_reason_of_a_subgroup_names_its_column_and_no_level() -> None:
    reason = verdict("subgroup_rapid", 0.3, subgroups=groups()).reason
    assert "by age" in reason and "20 to 30" not in reason


def test_a_combination_without_subgroups_leaves_the_rule_open() -> None:
    found = verdict("subgroup_rapid", 0.9, {}, GBM, subgroups=groups())
    assert found.verdict == "not_evaluated" and "1 of 2 combinations have no subgroups" in found.reason


def test_without_a_holdout_its_rule_is_not_evaluated() -> None:
    found = verdict("holdout_difference", 0.9, {"holdout_difference": None})
    assert (found.verdict, found.figure) == ("not_evaluated", None) and "no holdout" in found.reason


def test_a_holdout_of_another_population_cannot_pass_but_can_fail() -> None:
    assert verdict("holdout_difference", 0.1, comparable=False).verdict == "not_evaluated"
    assert verdict("holdout_difference", 0.1, comparable=True).verdict == "pass"
    assert verdict("holdout_difference", 0.01, comparable=False).verdict == "fail"


def test_a_first_release_increases_nothing_and_an_unknown_one_before_it_is_not_evaluated() -> None:
    assert verdict("increase_over_previous", 0.0).verdict == "pass"
    unknown = verdict("increase_over_previous", 0.9, previous=Previous("1", {}))
    assert unknown.verdict == "not_evaluated" and "release 1 has no complete figure" in unknown.reason
    assert verdict("increase_over_previous", 0.9, previous=Previous(problem="no date")).verdict == "not_evaluated"


def test_a_fall_is_no_increase() -> None:
    lower = Previous("1", {("all", "illness", "normalized_gain"): 0.9})
    found = verdict("increase_over_previous", 0.0, previous=lower)
    assert found.verdict == "pass" and found.figure == pytest.approx(-0.5)


def test_too_few_records_are_not_evaluated_and_say_how_many_are_needed() -> None:
    found = verdict("min_n", 1001)
    assert (found.verdict, found.figure, found.limit) == ("not_evaluated", 1000, 1001)
    assert found.reason == "records with a defined outcome: 1,000, 1,001 are needed for a verdict"
    assert verdict("min_n", 1000).verdict == "pass"
    assert verdict("min_n", 1, BROKEN).verdict == "not_evaluated"


@pytest.mark.parametrize(("kind", "reached", "missed", "changes"), [
    ("auc", 0.72, 0.73, {}), ("accuracy_gain", 0.09, 0.11, {}), ("r2", 0.3, 0.4, {"target_type": "continuous", "r2": 0.35}),
])  # fmt: skip
def test_a_weak_attack_is_not_called_safe(kind: str, reached: float, missed: float, changes: dict[str, Any]) -> None:
    rule = f"attacker_quality.{kind}"
    assert verdict(rule, {kind: reached}, changes, {**changes, **GBM, "r2": 0.1}).verdict == "pass"
    weak = verdict(rule, {kind: missed}, changes, {**changes, **GBM, "r2": 0.1})
    assert weak.verdict == "not_evaluated" and "does not show that the release is safe" in weak.reason


def test_quality_is_asked_of_the_kind_it_is_made_for() -> None:
    limits = {"rapid_max": 0.9, "attacker_quality": {"auc": 0.9, "r2": 0.9}}
    assert {v.rule for v in judge(policy(limits), summary())} == {"complete", "rapid_max", "attacker_quality.auc", "overall"}


def test_a_continuous_attribute_has_no_levels_to_judge_and_so_no_limit_here() -> None:
    found = judge(policy({"sensitive_levels_rate": 0.9}), summary({"target_type": "continuous"}))
    assert [v.rule for v in found] == ["complete", "limits", "overall"] and found[-1].verdict == "not_evaluated"


def test_an_attribute_without_any_limit_is_not_cleared() -> None:
    found = judge(policy({"min_n": 10}, attributes={"income": {"rapid_max": 0.3}}), summary())
    assert not cleared(found) and [v.verdict for v in found if v.rule == "limits"] == ["not_evaluated"]


def test_a_policy_that_has_run_out_fails_and_on_its_last_day_holds() -> None:
    limited = policy({"rapid_max": 0.9}, valid_until="2026-06-30")
    held = {v.rule: v for v in judge(limited, summary(), on=date(2026, 6, 30))}
    assert (held["valid_until"].verdict, held["valid_until"].figure, held["overall"].verdict) == ("pass", 0, "pass")
    over = {v.rule: v for v in judge(limited, summary(), on=date(2026, 7, 2))}
    assert (over["valid_until"].verdict, over["valid_until"].figure, over["overall"].verdict) == ("fail", 2, "fail")


def test_audience_and_attribute_take_the_place_of_common_limits_rule_by_rule() -> None:
    many = parse_as(Policy, {
        "context": {"audience": "public"}, "limits": {"rapid_max": 0.6, "excess": 0.2},
        "audiences": {"public": {"rapid_max": 0.3}, "named_recipients": {"rapid_max": 0.9}},
        "attributes": {"income": {"excess": 0.05}},
    })  # fmt: skip
    limits = {a: many.limits_for(a) for a in ("illness", "income")}
    assert [r.fail if (r := limits[a].rapid_max) else None for a in limits] == [0.3, 0.3]
    assert [r.fail if (r := limits[a].excess) else None for a in limits] == [0.2, 0.05]
    assert judge(many, summary())[-1].verdict == "fail"


def test_overall_is_the_gravest_and_names_what_decided() -> None:
    found = judge(policy({"rapid_max": {"review": 0.3, "fail": 0.6}, "holdout_difference": 0.5, "excess": 0.1}),
                  summary({"holdout_difference": None}))  # fmt: skip
    assert {v.rule: v.verdict for v in found} == {
        "complete": "pass", "rapid_max": "review", "holdout_difference": "not_evaluated", "excess": "fail", "overall": "fail"
    }  # fmt: skip
    assert found[-1].reason == "excess of illness" and found[-1].sensitive_attribute is None


@pytest.mark.parametrize("others", list(itertools.combinations_with_replacement(rules.VERDICTS, 2)))
def test_the_order_of_verdicts(others: tuple[str, str]) -> None:
    order = ["pass", "review", "not_evaluated", "fail"]
    assert rules.gravest(others) == order[max(map(order.index, others))]


def test_only_passes_clear_and_nothing_judged_does_not() -> None:
    assert not cleared([])
    assert cleared(judge(policy({"rapid_max": 0.4}), summary()))
    assert not cleared(judge(policy({"rapid_max": {"review": 0.3}}), summary()))
    assert not cleared(rules.unevaluated("r", "1", "broken file"))


def test_a_holdout_or_weighted_row_is_not_judged() -> None:
    others = ({"scored_on": "holdout", "rapid": 0.9}, {"weighting": "survey", "rapid": 0.9})
    assert verdict("rapid_max", 0.4, {}, *others).verdict == "pass"


def test_the_worst_set_and_measure_decide() -> None:
    assert verdict("rapid_max", 0.45, {}, {"qi_set": "wide", "rapid": 0.6}).figure == 0.6
    assert verdict("excess", 0.45, {}, {"measure": "nce", "excess": 0.6}).figure == 0.6


def test_one_release_at_a_time() -> None:
    with pytest.raises(ValueError, match="2 releases"):
        judge(policy({"rapid_max": 0.4}), summary({}, {"release_id": "3"}))


def test_the_figure_to_decide_by_leaves_incomplete_groups_out() -> None:
    frame = summary({}, {"replicate": 0, "rapid": 0.6}, {"sensitive_attribute": "income"},
                    {**BROKEN, "sensitive_attribute": "income"})  # fmt: skip
    assert rules.decisive(frame) == {("all", "illness", "normalized_gain"): 0.6}


def test_rows_have_the_columns_of_the_table() -> None:
    from rapid_spark.tables import tables

    limited = policy({"rapid_max": 0.9}, context={"audience": "public", "purpose": "teaching"}, valid_until="2030-01-01")
    frame = rules.rows(judge(limited, summary()), limited, "run", pd.Timestamp("2026-11-30"))
    assert set(frame.columns) == set(tables()["audit_verdicts"].columns)
    assert set(frame["audience"]) == {"public"} and set(frame["valid_until"]) == {date(2030, 1, 1)}


@pytest.mark.parametrize(("data", "said"), [
    ({}, "at least one limit"),
    ({"limits": {"rapid_max": {}}}, "give fail, review, or both"),
    ({"limits": {"rapid_max": {"fail": 0.3, "review": 0.4}}}, "review 0.4 is above fail 0.3"),
    ({"limits": {"rapid_max": 30}}, "limits.rapid_max"),
    ({"limits": {"rapid_maxx": 0.3}}, "Did you mean 'rapid_max'"),
    ({"limits": {"min_n": 0}}, "limits.min_n"),
    ({"limits": {"rapid_max": 0.3}, "audiences": {"public": {}}}, "name one of public"),
    ({"context": {"audience": "pubic"}, "audiences": {"public": {"rapid_max": 0.3}}}, "Did you mean 'public'"),
    ({"limits": {"attacker_quality": {"auc": 1.5}}}, "limits.attacker_quality.auc"),
])  # fmt: skip
def test_a_wrong_policy_is_refused_under_its_path(data: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_as(Policy, data)
