"""The Markdown report and the table of what was tested: every cell escaped, nothing claimed that has no row."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from rapid_spark import evidence, markdown
from rapid_spark.evidence import NOT_TESTED, PARTLY, TESTED
from rapid_spark.report import ReportData
from rapid_spark.results import SUMMARY

NASTY = "<script>a|b</script>\n# `x` [y](z) *w* _v_ 医師"
ROW = {
    "run_id": "r", "registry": "reg", "release_id": "rel", "replicate": 1, "scored_on": "original", "qi_set": "all",
    "sensitive_attribute": "ill", "target_type": "categorical", "attacker": "rf", "measure": "normalized_gain",
    "weighting": "none", "threshold": 0.3, "n": 200, "n_undefined": 0, "n_at_risk": 60, "rapid": 0.3, "ci_low": 0.24,
    "ci_high": 0.37, "ci_method": "wilson", "confidence": 0.95, "baseline_rate": 0.2, "excess": 0.1, "seed": 7, "status": "ok",
    "release_digest": "d" * 64, "original_digest": "o" * 64, "settings_digest": "s" * 64, "package_version": "1",
    "quasi_identifiers": ["age"], "n_train": 200,
}  # fmt: skip


def summary(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([{**dict.fromkeys(SUMMARY), **ROW, **row} for row in rows or ({},)], dtype=object)


def run(frame: pd.DataFrame | None = None, **more: Any) -> ReportData:
    tables = {"risk_summary": summary() if frame is None else frame, **more.pop("tables", {})}
    return ReportData(run_id="r", tables=tables, **more)


def state(data: ReportData) -> dict[str, str]:
    return {i.what: i.state for i in evidence.tested(data)}


def test_a_bare_run_claims_the_attack_alone() -> None:
    found = state(run())
    assert {what for what, s in found.items() if s == TESTED} == {
        "inference of ill", "all published copies together", "sampling error of the rates",
    }  # fmt: skip
    assert all(s == NOT_TESTED for what, s in found.items() if "membership" in what or "policy" in what or "holdout" in what)


LM = {"attacker": "lm", "status": "undefined", "reason": "attacker lm does not serve a categorical attribute"}
FAILED = {"attacker": "gbm", "status": "failed", "reason": "fitting ended with MemoryError", "rapid": None}
# what a run has, what it is about, and its state
CASES = {
    "one failed": ([{}, FAILED], {}, "inference of ill", PARTLY),
    "all failed": ([FAILED], {}, "inference of ill", NOT_TESTED),
    "an attacker of another kind": ([{}, LM], {}, "inference of ill", TESTED),
    "holdout": ([{"holdout_rate": 0.2}], {}, "effect of being in the data (holdout)", TESTED),
    "another population": ([{"holdout_rate": 0.2}], {"comparable": False}, "effect of being in the data (holdout)", PARTLY),
    "copies one by one": ([{}, {"replicate": 2}], {}, "all published copies together", NOT_TESTED),
    "pooled": ([{}, {"replicate": 2}, {"replicate": 0}], {}, "all published copies together", TESTED),
    "references": ([{"population_reference": 0.1}], {}, "what can be said of people outside the data", TESTED),
    "passed": ([{}], {"tables": {"audit_verdicts": pd.DataFrame({"verdict": ["pass"]})}}, "limits of a policy", TESTED),
    "not all judged": (
        [{}], {"tables": {"audit_verdicts": pd.DataFrame({"verdict": ["pass", "not_evaluated"]})}}, "limits of a policy", PARTLY,
    ),
    "membership": (
        [{}], {"tables": {"risk_attacks": pd.DataFrame({"attack": ["membership_dcr"]})}},
        "whether somebody is in the data (membership)", TESTED,
    ),
    "recode": ([{}], {"settings": {"recode": {"age": {"bands": {"width": 10}}}}}, "coarser columns of the release", TESTED),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_claim_rests_on_rows(name: str) -> None:
    rows, more, what, expected = CASES[name]
    assert state(run(summary(*rows), **more))[what] == expected


def test_the_document_holds_figures_evidence_and_decisions_as_plain_tables() -> None:
    decisions = pd.DataFrame([{"registry": "reg", "release_id": "rel", "outcome": "approve", "decided_by": NASTY,
                               "decided_at": pd.Timestamp("2026-06-01 10:00"), "reason": NASTY, "valid_until": None,
                               "audience": "public"}])  # fmt: skip
    frame = summary({"attacker": NASTY}, FAILED)
    data = run(frame, tables={"release_decisions": decisions}, warnings=(NASTY,), settings={"registry": NASTY},
               inputs={"original": {"name": NASTY, "rows": 200, "version": None}}, versions={"python": "3.11"},
               command="evaluate", evaluated_at=pd.Timestamp("2026-06-01"))  # fmt: skip
    text = markdown.render(data)
    for part in ("## Decisions", "| d" + "d" * 10, "o" * 64, "30.0 %", "60 of 200", "## What was tested, and what was not",
                 "fitting ended with MemoryError", "| 2026-06-01 10:00 | reg | rel | approve |", "| python | 3.11 |"):  # fmt: skip
        assert part in text, part
    # no value becomes markup: no raw bracket, and every table has as many cells in each row as in its head
    assert "<script>" not in text and "医師" in text
    bare = re.sub(r"\\.", "", text)
    for block in re.findall(r"(?:^\|.*\n)+", bare, re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1
    assert not re.search(r"[<`*\[]", bare)
    assert [line for line in bare.splitlines() if line.startswith("#")][0].startswith("# RAPID")
    assert all(line.startswith(("#", "|", "- ", "Run")) or "#" not in line for line in text.splitlines())


def test_an_empty_run_is_said_to_be_empty() -> None:
    text = markdown.render(replace(run(), tables={"risk_summary": summary().iloc[:0]}))
    assert "Nothing was evaluated." in text and "| nothing was evaluated |" in text
