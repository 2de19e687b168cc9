"""The report of an audit and its figures, from rows alone."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from rapid_spark import plots, policy
from rapid_spark.audit import comparison, figures, page
from rapid_spark.audit.settings import Compare
from rapid_spark.config import parse_as
from rapid_spark.config.policy import Policy
from rapid_spark.report import ReportData

RATES = {"north": (0.30, 0.31, 0.28), "south": (0.26, 0.27, 0.29), "<east>": (0.39, 0.38, 0.61)}
LIMITS = parse_as(Policy, {"context": {"audience": "public", "purpose": "teaching"}, "limits": {"rapid_max": 0.5}})


def summary() -> pd.DataFrame:
    """Three registries with three releases, one attribute, two attackers."""
    rows: list[dict[str, Any]] = []
    for registry, rates in RATES.items():
        for year, rate in zip((2024, 2025, 2026), rates, strict=True):
            for attacker, less in (("rf", 0.0), ("gbm", 0.05)):
                value = rate - less
                rows.append({
                    "run_id": "x", "registry": registry, "release_id": str(year), "replicate": 1, "scored_on": "original",
                    "qi_set": "all", "weighting": "none", "sensitive_attribute": "illness", "target_type": "categorical",
                    "attacker": attacker, "measure": "normalized_gain", "threshold": 0.3, "n": 4000, "n_at_risk": int(4000 * value),
                    "rapid": value, "ci_low": value - 0.02, "ci_high": value + 0.02, "confidence": 0.95, "baseline_rate": 0.2,
                    "excess": value - 0.2, "null_q95": 0.21, "null_mean": 0.2, "holdout_rate": None, "holdout_difference": None,
                    "holdout_difference_low": None, "holdout_difference_high": None, "status": "ok", "reason": None,
                    "quasi_identifiers": ["age", "sex"], "release_date": f"{year}-01-01", "release_digest": "ab" * 32,
                    "original_digest": "cd" * 32, "settings_digest": "ef" * 32, "n_release": 4000,
                })  # fmt: skip
    return pd.DataFrame(rows, dtype=object)


@pytest.fixture(scope="module")
def data() -> ReportData:
    frame = summary()
    verdicts: list[policy.Verdict] = []
    for _, part in frame.groupby(["registry", "release_id"], sort=False):
        verdicts += policy.judge(LIMITS, part)
    verdicts += policy.unevaluated("west", "2026", "a file cannot be read")
    latest = {r: frame[(frame["registry"] == r) & (frame["release_id"] == "2026")] for r in RATES}
    keys = {"qi_set": "all", "sensitive_attribute": "illness", "measure": "normalized_gain", "replicate": 1}
    strata = {
        registry: pd.DataFrame([
            {**keys, "attacker": a, "stratum": s, "n": 2000, "hits": int(2000 * (RATES[registry][2] + d))}
            for a in ("rf", "gbm") for s, d in (("old", 0.1), ("young", -0.1))
        ]) for registry in RATES
    }  # fmt: skip
    compared = comparison.table(latest, strata, {}, Compare())
    tables = {
        "risk_summary": frame, "audit_verdicts": policy.rows(verdicts, LIMITS, "x", pd.Timestamp("2026-11-30")),
        "audit_comparison": compared,
    }  # fmt: skip
    return ReportData("x", tables, {"policy": {"limits": {"rapid_max": 0.5}}}, ("north: something to know",))


def test_the_page_says_first_what_is_cleared(data: ReportData) -> None:
    assert page.is_audit(data)
    html = page.render(data)
    assert "<title>Audit: 4 registries, 10 releases, 2 not cleared</title>" in html
    assert "8 of 10 releases are cleared" in html and "for public; purpose: teaching" in html
    assert html.index("fail: 1") < html.index("not evaluated: 1") < html.index("pass: 8")
    assert "north: something to know" in html and "a file cannot be read" in html


def test_every_section_that_has_something_to_say_is_there(data: ReportData) -> None:
    html = page.render(data)
    for anchor in ("verdict", "rules", "compared", "time", "warnings", "tested", "policy", "evidence"):
        assert f'<section id="{anchor}"' in html, anchor
    bare = ReportData("x", {k: t for k, t in data.tables.items() if k != "audit_comparison"}, {})
    assert '<section id="compared"' not in page.render(bare)


def test_values_are_escaped_and_nothing_is_loaded(data: ReportData) -> None:
    html = page.render(data)
    assert "<east>" not in html and "&lt;east&gt;" in html
    assert "<script" not in html and "src=" not in html and "http-equiv" in html


def test_a_run_of_one_release_is_no_audit(data: ReportData) -> None:
    one = data.tables["audit_verdicts"].query("registry == 'north' and release_id == '2024'")
    assert not page.is_audit(ReportData("x", {**data.tables, "audit_verdicts": one}))
    assert not page.is_audit(ReportData("x", {"risk_summary": data.summary}))


def test_the_comparison_shows_the_strongest_attacker_raw_and_standardised(data: ReportData) -> None:
    drawing = figures.draw_comparison(data.tables["audit_comparison"])
    assert drawing is not None and "Attacker rf" in drawing.note
    (axes,) = drawing.figure.axes
    raw = sorted(round(line.get_xdata()[0], 6) for line in axes.lines if line.get_label() == "raw")
    assert raw == [0.28, 0.29, 0.61]
    assert [t.get_text().split("\n")[0] for t in axes.get_yticklabels()][0] == "<east> 2026"
    ET.fromstring(plots.svg(drawing, "f1"))


def test_releases_over_time_cross_what_is_not_cleared(data: ReportData) -> None:
    drawing = figures.draw_releases(page._rates(data), "illness")
    assert drawing is not None and "<east> 2026 61.0 %, not cleared" in drawing.description
    (axes,) = drawing.figure.axes
    crossed = [(x, y) for line in axes.lines if line.get_label() == figures.CROSSED for x, y in zip(*line.get_data(), strict=True)]
    assert crossed == [(2, 0.61)]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["2024", "2025", "2026"]


def test_nothing_is_drawn_of_a_single_release_or_of_no_rate(data: ReportData) -> None:
    rates = page._rates(data)
    assert figures.draw_releases(rates[rates["place"] == 0], "illness") is None
    assert figures.draw_releases(rates.assign(rate=None), "illness") is None
    assert figures.draw_comparison(data.tables["audit_comparison"].iloc[:0]) is None
