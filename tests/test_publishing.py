"""Publication rules: what is small is withheld and stays open, zero is told, rates come from rounded counts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rapid_spark.publishing import PUBLISHED, Rule, protect
from rapid_spark.tables import tables

KEYS = {"run_id": "r", "registry": "at", "release_id": "v1", "replicate": 1, "scored_on": "original", "qi_set": "all",
        "sensitive_attribute": "ill", "attacker": "rf", "measure": "normalized_gain", "weighting": "none"}  # fmt: skip


def summary(n=1003, hits=217, **more):
    row = {
        **KEYS, "status": "ok", "n": n, "n_at_risk": hits, "rapid": hits / n, "ci_low": 0.19, "ci_high": 0.243,
        "baseline_rate": 0.1, "excess": hits / n - 0.1, "n_confident_claims": 300, "claims_correct": 0.7,
        "accuracy": 0.81, "n_dropped": 0, "holdout_rate": None, "holdout_difference": None, **more,
    }  # fmt: skip
    return pd.DataFrame([row], dtype=object)


def classes(*cells):
    rows = [
        {**KEYS, "class_label": label, "class_rank": i, "prevalence": n / sum(c[1] for c in cells), "n": n,
         "n_at_risk": hits, "rapid": hits / n, "n_confident_claims": None, "claims_correct": None}
        for i, (label, n, hits) in enumerate(cells, 1)
    ]  # fmt: skip
    return pd.DataFrame(rows, dtype=object)


def groups(columns, *cells):
    rows = [
        {**KEYS, "columns": columns, "level": list(level), "n": n, "n_at_risk": hits,
         "rapid": None if n is None else hits / n, "ci_low": None, "ci_high": None, "suppressed": n is None}
        for level, n, hits in cells
    ]  # fmt: skip
    return pd.DataFrame(rows, dtype=object)


def one(tables, name="risk_summary", rule=None):
    return protect(tables, rule or Rule(10)).tables[name].iloc[0]


@pytest.mark.parametrize(
    ("n", "hits", "told"),
    [
        (1000, 217, True), (1000, 0, True), (1000, 10, True), (1000, 990, True),
        (1000, 1, False), (1000, 9, False), (1000, 991, False), (1000, 1000, False), (9, 0, False), (9, 5, False),
    ],
)  # fmt: skip
def test_small_counts_and_their_complements_are_withheld_and_zero_is_told(n, hits, told):
    row = one({"risk_summary": summary(n, hits)})
    assert (row["n_at_risk"] == hits and row["rapid"] == hits / n) if told else (
        row["n_at_risk"] is None and row["rapid"] is None and row["ci_low"] is None and row["excess"] is None
    )
    assert (row["n"] is None) == (n < 10)


def test_of_every_column_somebody_has_decided_whether_it_is_published():
    """A column that is new in the tables is withheld until it is listed, here and in `publishing.columns`."""
    kept_back = {"risk_summary": {"original_digest"}}
    for name, columns in PUBLISHED.items():
        declared = set(tables()[name].columns) if name in tables() else columns
        assert declared - columns == kept_back.get(name, set()), name


def test_a_figure_in_an_unlisted_column_is_withheld():
    done = protect({"risk_summary": summary(n_of_something=3, original_digest="d")}, Rule(10)).tables["risk_summary"]
    assert done.iloc[0][["n_of_something", "original_digest"]].tolist() == [None, None] and done.iloc[0]["rapid"] is not None


def test_rates_of_parts_of_the_people():
    person = {"n_persons": 500, "person_rapid": 0.2, "person_ci_low": 0.19, "person_ci_high": 0.21}
    row = one({"risk_summary": summary(**person, n_without_known=300, rapid_without_known=0.01)}, rule=Rule(10, 30))
    assert (row["n_persons"], row["person_rapid"]) == (510, 90 / 510) and row["person_ci_low"] <= 0.19
    assert (row["n_without_known"], row["rapid_without_known"]) == (300, None)


def test_exact_figures_pass_unaltered_without_rounding():
    before = summary()
    after = protect({"risk_summary": before}, Rule(10)).tables["risk_summary"]
    pd.testing.assert_frame_equal(after, before)


@pytest.mark.parametrize("base", [3, 5, 10, 50])
def test_rates_are_those_of_the_rounded_counts(base):
    rng = np.random.default_rng(base)
    for n, share in zip(rng.integers(500, 5000, 40), rng.uniform(0.15, 0.85, 40), strict=True):
        hits = int(n * share)
        row = one({"risk_summary": summary(int(n), hits, ci_low=share - 0.01, ci_high=share + 0.01)}, rule=Rule(10, base))
        nearest = {int(base * k) for k in range(int(n) // base + 2) if abs(base * k - n) * 2 <= base}
        assert row["n"] in nearest and row["n_at_risk"] % base == 0 and abs(row["n_at_risk"] - hits) * 2 <= base
        assert row["rapid"] == row["n_at_risk"] / row["n"]
        assert row["excess"] == pytest.approx(row["rapid"] - row["baseline_rate"], abs=1e-12)
        for name in ("ci_low", "ci_high", "accuracy", "baseline_rate"):
            steps = row[name] * row["n"] / base
            assert steps == pytest.approx(round(steps), abs=1e-6)
        assert row["ci_low"] <= row["rapid"] <= row["ci_high"]


def test_no_count_is_rounded_to_zero():
    assert one({"risk_summary": summary(1000, 20)}, rule=Rule(10, 50))["n_at_risk"] is None
    assert one({"risk_summary": summary(1000, 0)}, rule=Rule(10, 50))["n_at_risk"] == 0


def test_a_withheld_class_does_not_follow_from_the_total():
    cells = (("healthy", 700, 150), ("ill", 300, 60), ("rare", 30, 4))
    total = summary(1030, 214)
    shown = protect({"risk_summary": total, "risk_classes": classes(*cells)}, Rule(10)).tables["risk_classes"]
    assert list(shown["class_label"]) == ["healthy"]  # rare is small; ill goes with it
    left = 214 - sum(shown["n_at_risk"])
    assert left >= 10 and 1030 - sum(shown["n"]) - left >= 10


def test_zero_class_is_told():
    tables = {"risk_summary": summary(1000, 150), "risk_classes": classes(("a", 700, 150), ("b", 300, 0))}
    shown = protect(tables, Rule(10)).tables["risk_classes"]
    assert list(shown["n_at_risk"]) == [150, 0]


def test_every_published_table_leaves_withheld_groups_open():
    """Random tables: what is missing in each line is at least two cells with enough at risk and not, or a whole line."""
    rng = np.random.default_rng(4)
    n_hidden = 0
    for _ in range(60):
        r, c = rng.integers(2, 6, 2)
        n = rng.integers(0, 120, (r, c))
        hits = rng.binomial(n, rng.uniform(0.05, 0.6, (r, c)))
        frames = [groups(["a"], *(((f"a{i}",), int(n[i].sum()), int(hits[i].sum())) for i in range(r) if n[i].sum())),
                  groups(["b"], *(((f"b{j}",), int(n[:, j].sum()), int(hits[:, j].sum())) for j in range(c) if n[:, j].sum())),
                  groups(["a", "b"], *(((f"a{i}", f"b{j}"), int(n[i, j]), int(hits[i, j]))
                                       for i in range(r) for j in range(c) if n[i, j]))]  # fmt: skip
        tables = {"risk_summary": summary(int(n.sum()), int(hits.sum())), "risk_subgroups": pd.concat(frames)}
        done = protect(tables, Rule(10)).tables
        shown = {tuple(row["level"]): (row["n"], row["n_at_risk"]) for _, row in done["risk_subgroups"].iterrows()}
        for size, at_risk in shown.values():
            assert size >= 10 and (at_risk == 0 or at_risk >= 10) and size - at_risk >= 10
        lines = [(f"a{i}", [((f"a{i}", f"b{j}"), n[i, j], hits[i, j]) for j in range(c) if n[i, j]]) for i in range(r)]
        lines += [(f"b{j}", [((f"a{i}", f"b{j}"), n[i, j], hits[i, j]) for i in range(r) if n[i, j]]) for j in range(c)]
        for level, cells in lines:
            gone = [cell for cell in cells if cell[0] not in shown]
            if (level,) in shown and 0 < len(gone) < len(cells):
                n_hidden += 1
                lost, risk = sum(x[1] for x in gone), sum(x[2] for x in gone)
                assert len(gone) >= 2 and risk >= 10 and lost - risk >= 10
    assert n_hidden > 50


def test_regression_goes_where_groups_are_withheld_beyond_the_store():
    term = {**KEYS, "term": "sex=f (vs m)", "kind": "coefficient", "estimate": 0.123, "std_error": 0.1, "ci_low": 0.0, "ci_high": 0.2}
    attribution = pd.DataFrame([term, {**term, "kind": "alone", "term": "sex", "estimate": 0.3}], dtype=object)
    base = {"risk_summary": summary(1000, 200), "risk_attribution": attribution}
    fine = base | {"risk_subgroups": groups(["sex"], (("f",), 500, 100), (("m",), 500, 100))}
    small = base | {"risk_subgroups": groups(["sex"], (("f",), 500, 5), (("m",), 500, 195))}
    assert list(protect(fine, Rule(10)).tables["risk_attribution"]["kind"]) == ["coefficient", "alone"]
    assert list(protect(small, Rule(10)).tables["risk_attribution"]["kind"]) == ["alone"]


def test_a_withheld_rate_is_in_no_verdict_and_on_no_curve():
    verdict = {"run_id": "r", "registry": "at", "release_id": "v1", "sensitive_attribute": "ill", "rule": "max_rapid",
               "limit": 0.1, "figure": 0.004, "verdict": "pass", "reason": "0.4 % of 10 %", "evaluated_at": None}  # fmt: skip
    curve = {**KEYS, "threshold": 0.3, "n_at_risk": 4, "rapid": 0.004, "ci_low": 0.0, "ci_high": 0.01, "baseline_rate": 0.1}
    tables = {"risk_summary": summary(1000, 4), "audit_verdicts": pd.DataFrame([verdict], dtype=object),
              "risk_curve": pd.DataFrame([curve, {**curve, "threshold": 0.9, "n_at_risk": 0, "rapid": 0.0}], dtype=object)}  # fmt: skip
    done = protect(tables, Rule(10))
    assert done.tables["audit_verdicts"].iloc[0]["figure"] is None
    assert "0.4" not in done.tables["audit_verdicts"].iloc[0]["reason"]
    assert list(done.tables["risk_curve"]["rapid"]) == [None, 0.0]
    assert done.withheld == {"risk_summary": 1, "risk_curve": 1, "audit_verdicts": 1}


def test_a_small_holdout_hides_what_it_tells():
    both = pd.concat([summary(1000, 200, holdout_rate=0.5, holdout_difference=-0.3), summary(8, 4, scored_on="holdout")])
    original, holdout = (row for _, row in protect({"risk_summary": both}, Rule(10)).tables["risk_summary"].iterrows())
    assert original["rapid"] == 0.2 and original["holdout_rate"] is None and original["holdout_difference"] is None
    assert holdout["n"] is None


@pytest.mark.parametrize("values", [(1, None), (10, 1)])
def test_a_rule_that_protects_nothing_is_refused(values):
    with pytest.raises(ValueError, match="at least 2"):
        Rule(*values)


def test_differences_between_registries_do_not_tell_a_withheld_rate():
    def compared(registry, n, rapid):
        return {"run_id": "r", "registry": registry, "release_id": "v1", "qi_set": "all", "sensitive_attribute": "ill",
                "measure": "normalized_gain", "attacker": "rf", "n": n, "rapid": rapid, "ci_low": rapid, "ci_high": rapid,
                "standardised": rapid, "difference": 0.1, "standardised_difference": 0.1, "note": None}  # fmt: skip

    def shown(*rows, rule=Rule(10)):  # noqa: B008
        tables = {"risk_summary": summary(), "audit_comparison": pd.DataFrame(rows, dtype=object)}
        return protect(tables, rule).tables["audit_comparison"].to_dict("records")

    fine, small = compared("at", 1000, 0.3), compared("de", 1000, 0.004)
    assert shown(fine, fine | {"registry": "it"}) == [fine, fine | {"registry": "it"}]
    first, second = shown(fine, small)
    assert first["rapid"] == 0.3 and second["rapid"] is None and second["standardised"] is None
    assert first["difference"] is None and first["standardised_difference"] is None and second["note"] is None
    rounded = shown(compared("at", 1003, 0.217), rule=Rule(10, 5))[0]
    assert (rounded["n"], rounded["rapid"]) == (1005, 220 / 1005)


def test_a_report_for_readers_outside_shows_no_exact_count():
    from rapid_spark.federation.public import is_asked, protected
    from rapid_spark.report import ReportData, render

    rows = pd.concat([
        summary(20_003, 7_001, target_type="categorical", threshold=0.3, confidence=0.95, ci_method="wilson",
                original_digest="d" * 64),
        summary(20_003, 3, target_type="categorical", threshold=0.3, attacker="lm", reason=None),
    ])  # fmt: skip
    data = ReportData(
        "r", {"risk_summary": rows, "risk_patterns": groups(["sex"], (("zq-level",), 4_711, 1_234))},
        {"publish": {"rounding": 50}, "original": {"path": "/srv/people.csv"}},
        warnings=("4 records were left out", "the release has 20,000 rows"), inputs={"original": {"rows": 20_003}},
    )  # fmt: skip
    text = render(protected(data))
    assert is_asked(data) and "7,000" in text and "rounded to multiples of 50" in text and "20,000 rows" in text
    for exact in ("7,001", "7001", "20,003", "20003", "zq-level", "/srv/people.csv", "4 records", "d" * 64):
        assert exact not in text
