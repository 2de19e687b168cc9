"""The report: one file that holds everything it shows, escapes what it is given, and hides nothing undefined."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rapid_spark import plots, report
from rapid_spark.results import SUMMARY
from rapid_spark.wording import INTERVAL_MEANING, findings

NASTY = "<script>alert('x')</script> & \"quoted\" – Ärzte $x_1$ 医師"
COUNTRIES = [f"Country number {i} with a rather long name, also known as {NASTY if i == 3 else 'other'}" for i in range(41)]
COLUMNS = {
    "age": ["17 to 28", "28 to 37", "37 to 48", "48 to 90"], "capital_gain": ["0", "1 to 99,999"], "capital_loss": ["0"],
    "education_num": ["1 to 9", "9 to 10", "10 to 12", "12 to 16"], "hours_per_week": ["1 to 40", "40", "40 to 99"],
    "marital_status": ["Divorced", "Married-civ-spouse", "Never-married", "Widowed"], "native_country": COUNTRIES,
    "occupation": [f"Occupation {i}" for i in range(15)], "race": ["White", "Black", "Other"],
    "relationship": ["Husband", "Wife", "Own-child", "Unmarried"], "sex": ["Female", "Male"],
    "workclass": ["Private", "?", "State-gov", "Never-worked"],
}
ATTACKERS = {"rf": 2.1, "gbm": 2.2, "logit": 1.7, "cart": 1.5}
LABELS = ("<=50K", ">50K")
KEY = {"run_id": "20261130-120000-abcdef", "registry": "adult", "release_id": "2026-11", "scored_on": "original",
       "qi_set": "all", "sensitive_attribute": "income", "measure": "normalized_gain", "weighting": "none"}


def wilson(hits: float, n: float) -> tuple[float, float]:
    """Wilson's interval at 95 %."""
    p, z = hits / n, 1.959964
    middle, half = (p + z * z / 2 / n), z * np.sqrt(p * (1 - p) / n + z * z / 4 / n**2)
    return float((middle - half) / (1 + z * z / n)), float((middle + half) / (1 + z * z / n))


def adult_like(n: int = 32_561, seed: int = 1) -> report.ReportData:
    """Result tables shaped like the Adult case: three copies, all together, four attackers, a holdout."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.241).astype(int)
    b = np.where(y == 1, y.mean(), 1 - y.mean())
    people = {c: rng.integers(0, len(levels), n) for c, levels in COLUMNS.items()}
    tables: dict[str, list[dict[str, Any]]] = {
        f"risk_{t}": [] for t in ("summary", "curve", "classes", "subgroups", "attribution", "distributions", "relations")
    }
    for attacker, skill in ATTACKERS.items():
        for copy in (1, 2, 3, 0):
            signal = skill * (2 * y - 1) + 0.4 * (people["marital_status"] == 1) - 0.9 + 1.6 * rng.standard_normal(n)
            p1 = 1 / (1 + np.exp(-signal))
            g = np.where(y == 1, p1, 1 - p1)
            _add(tables, {**KEY, "attacker": attacker, "replicate": copy}, y, g, b, p1, people)
    failed = {**KEY, "attacker": "lm", "replicate": 1, "status": "undefined", "target_type": "categorical",
              "threshold": 0.3, "reason": f"lm predicts numbers, income has classes {NASTY}"}
    tables["risk_summary"].append(failed)
    base = {"scored_on": "original", "qi_set": "all", "n": n, "sensitive_attribute": None, "attacker": None, "replicate": None}
    tables["risk_joint"] = [
        {**base, "across": "attackers", "sensitive_attribute": "income", "replicate": 1, "combinations": 4,
         "share_any": 0.81, "share_all": 0.55, "mean_count": 2.9},
        {**base, "across": "everything", "combinations": 12, "share_any": 0.9, "share_all": 0.4, "mean_count": 8.1},
    ]
    settings = {"registry": "adult", "quasi_identifiers": list(COLUMNS), "training": {"seed": 7}, "threshold": {"tau": {}},
                "sensitive_attributes": [{"name": "income", "type": "categorical", "missing": None}]}
    return report.ReportData(
        run_id=KEY["run_id"], tables={k: pd.DataFrame(v) for k, v in tables.items()}, settings=settings,
        warnings=(f"a level {NASTY} is in the original only",),
        inputs={"original": {"name": "adult.csv", "version": None, "rows": n}, "columns": {"age": "numeric"},
                "releases": {"1": {"name": "release_1.csv", "version": 3, "rows": n}}},
        versions={"python": "3.11", "rapid-spark": "0.1.0"}, command="evaluate", comparable=True,
    )


def _add(tables: dict[str, list[dict[str, Any]]], key: dict[str, Any], y: np.ndarray, g: np.ndarray, b: np.ndarray,
         p1: np.ndarray, people: dict[str, np.ndarray]) -> None:
    n, gain = len(y), (g - b) / (1 - b)
    for tau in np.arange(0, 1, 0.05).round(2):
        hits = int((g > b + tau * (1 - b)).sum())
        low, high = wilson(hits, n)
        chance = sum((y == k).mean() * ((p1 if k else 1 - p1) > c + tau * (1 - c)).mean()
                     for k, c in ((1, y.mean()), (0, 1 - y.mean())))
        point = {"threshold": tau, "n_at_risk": hits, "rapid": hits / n, "ci_low": low, "ci_high": high,
                 "baseline_rate": chance}
        tables["risk_curve"].append({**key, **point})
        if tau == 0.3:
            tables["risk_summary"].append({
                **key, **point, "target_type": "categorical", "n": n, "n_undefined": 0, "excess": hits / n - chance,
                "confidence": 0.95, "ci_method": "wilson_neff", "permutation_p": 0.005, "null_mean": chance,
                "null_sd": 0.002, "null_q95": chance + 0.003, "holdout_rate": hits / n - 0.01, "holdout_difference": 0.01,
                "holdout_difference_low": -0.002, "holdout_difference_high": 0.022, "n_confident_claims": int(0.8 * n),
                "claims_correct": 0.9, "accuracy": float((g > 0.5).mean()), "auc": 0.9, "macro_f1": 0.8, "log_loss": 0.4,
                "majority_rate": 0.759, "n_train": n, "n_dropped": 0, "n_unseen_level": 3, "n_unseen_class": 0, "seed": 7,
                "status": "ok", "reason": None, "fit_seconds": 12.3, "score_seconds": 1.2, "original_digest": "a" * 64,
                "release_digest": "b" * 64, "settings_digest": "c" * 64, "package_version": "0.1.0", "n_release": n,
                "quasi_identifiers": list(COLUMNS), "population_reference": hits / n - 0.012, "copy_ceiling": 0.93, "n_without_known": n - 900,
                "rapid_without_known": (hits - 800) / (n - 900),
            })
    flags = g > b + 0.3 * (1 - b)
    for k, label in enumerate(LABELS):
        mine = flags[y == k]
        tables["risk_classes"].append({**key, "class_label": label, "class_rank": k + 1, "prevalence": (y == k).mean(),
                                       "n": len(mine), "n_at_risk": int(mine.sum()), "rapid": mine.mean(),
                                       "mean_true_prob": g[y == k].mean(), "n_confident_claims": 5, "claims_correct": 0.8})
        counts, edges = np.histogram(gain[y == k].clip(-3, 1), bins=np.arange(-3, 1.01, 0.1))
        tables["risk_distributions"] += [
            {**key, "kind": "score", "class_label": label, "bin_low": lo, "bin_high": hi, "n": int(c)}
            for c, lo, hi in zip(counts, edges, edges[1:], strict=False)
        ]
        said = p1 if k else 1 - p1
        tables["risk_distributions"] += [
            {**key, "kind": "calibration", "class_label": label, "bin_low": low, "bin_high": low + 0.1,
             "n": int(inside.sum()), "mean_prob": said[inside].mean(), "observed": (y[inside] == k).mean()}
            for low in np.arange(0, 1, 0.1) if (inside := (said >= low) & (said < low + 0.1)).any()
        ]
    tables["risk_relations"].append({**key, "quasi_identifier": "relationship", "level": "Husband", "class_label": LABELS[0],
                                     "known": True, "n": 900, "n_at_risk": 800, "rapid": 800 / 900, "share_of_flags": 0.1})
    for column, levels in COLUMNS.items():
        for i, level in enumerate(levels):
            mine = flags[people[column] == i]
            held = i == 5
            low, high = wilson(mine.sum(), len(mine))
            tables["risk_subgroups"].append({
                **key, "columns": [column], "level": [level], "suppressed": held, "n": None if held else len(mine),
                "n_at_risk": None if held else int(mine.sum()), "rapid": None if held else mine.mean(),
                "ci_low": None if held else low, "ci_high": None if held else high,
            })
            effect = float(np.sin(i + len(column))) / 10
            tables["risk_attribution"].append({
                **key, "term": f"{column}={level} (vs {levels[0]})", "kind": "marginal_effect", "estimate": effect,
                "std_error": 0.01, "ci_low": effect - 0.02, "ci_high": effect + 0.02})
        for kind, rate in (("alone", 0.1 * (len(column) % 7)), ("left_out", 0.7)):
            tables["risk_attribution"].append({**key, "term": column, "kind": kind, "estimate": rate, "std_error": None,
                                               "ci_low": None, "ci_high": None})


def survey() -> report.ReportData:
    """One release, no copies: a number, a set of its own, an attribute at chance, one undefined; columns hold None."""
    base = {**dict.fromkeys(SUMMARY), **KEY, "replicate": 1, "n": 900, "n_undefined": 100,
            "confidence": 0.95, "ci_method": "wilson", "status": "ok", "quasi_identifiers": np.array(["age", "sex"])}
    number = {"sensitive_attribute": "income", "target_type": "continuous", "measure": "absolute", "threshold": 5000.0}
    rows = [
        {**base, **number, "attacker": a, "rapid": r, "n_at_risk": 900 * r, "ci_low": r - 0.03, "ci_high": r + 0.03,
         "baseline_rate": 0.1, "excess": r - 0.1, "mae": 20846.1, "r2": 0.31, "null_q95": 0.12}
        for a, r in (("lm", 0.21), ("sklearn.neighbors.KNeighborsRegressor", 0.24))
    ]
    rows.append({**base, "sensitive_attribute": "ill", "target_type": "categorical", "threshold": 0.3, "attacker": "rf",
                 "qi_set": "neighbour", "rapid": 0.0, "n_at_risk": 0, "ci_low": 0.0, "ci_high": 0.004, "baseline_rate": 0.0,
                 "null_q95": 0.0, "excess": 0.0})
    rows.append({**base, "sensitive_attribute": "sex", "target_type": "categorical", "threshold": 0.3, "attacker": "rf",
                 "status": "undefined", "reason": "one class", "n": None})
    settings = {"sensitive_attributes": [{"name": "income", "missing": "constant", "constant": 5.0}, {"name": "ill"}]}
    return report.ReportData("run-2", {"risk_summary": pd.DataFrame(rows, dtype=object)}, settings)


class Page(HTMLParser):
    """What is in a document: elements with their attributes, text, and tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.faults: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def data() -> report.ReportData:
    return adult_like()


@pytest.fixture(scope="module")
def text(data: report.ReportData) -> str:
    return report.render(data)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_it_is_one_file_that_loads_and_runs_nothing(page: Page, text: str) -> None:
    loading = {"script", "link", "img", "iframe", "object", "embed", "base", "form", "image"}
    assert not loading & {t for t, _ in page.elements}
    for _, attributes in page.elements:
        assert not [k for k in attributes if k.startswith("on") or k == "src"]
        assert (attributes.get("href") or "#").startswith("#")
        assert "http" not in " ".join(v or "" for k, v in attributes.items() if k != "http-equiv")
    style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert len(style) == 1 and "url(" not in style[0] and "@import" not in style[0]
    assert "default-src 'none'" in str(page.all("meta"))


def test_what_it_is_given_is_escaped(page: Page, text: str) -> None:
    assert "<script" not in text and "&lt;script&gt;" in text
    assert NASTY in page.words  # in the warning, whole

    assert not page.faults and not page.open


def test_it_is_accessible(page: Page) -> None:
    assert page.all("html") == [{"lang": "en"}]
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        assert set((attributes.get("aria-labelledby") or "").split()) <= set(ids)
        assert (attributes.get("href") or "#")[1:] in {*ids, ""}
    assert all(a.get("scope") in ("col", "row") for a in page.all("th"))
    pictures = page.all("svg")
    assert pictures and all(a.get("role") == "img" and a.get("aria-labelledby") for a in pictures)
    assert len(page.all("desc")) == len(page.all("figcaption")) == len(pictures)
    levels = [int(t[1]) for t, _ in page.elements if re.fullmatch("h[1-6]", t)]
    assert levels[0] == 1 and levels.count(1) == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:], strict=False))


def test_the_finding_comes_first_with_what_the_interval_means(page: Page, data: report.ReportData) -> None:
    finding = findings(data.summary, True)[0]
    words = page.words.replace("\N{NO-BREAK SPACE}", " ")
    assert all(sentence in words for sentence in (*finding.sentences, finding.control or ""))
    assert INTERVAL_MEANING in words and "holds figures and no verdict" in words


def test_no_class_or_level_is_named_where_none_may_be(data: report.ReportData) -> None:
    bare = plots.without_labels(data)
    finding = findings(bare.summary)[0]
    drawn = [plots.draw_classes(bare, finding), plots.draw_gain(bare, finding), plots.draw_calibration(bare, finding),
             plots.draw_refits(bare, finding)]
    text = html.unescape(" ".join(plots.svg(d, f"b{i}") for i, d in enumerate(drawn) if d is not None))
    assert all(drawn) and "class 1" in text and "class 2" in text
    assert not any(value in text for value in (*LABELS, "Husband", "Private", "Never-married"))


def test_sections_grow_by_functions_and_leave_out_what_is_not_there(data: report.ReportData) -> None:
    bare = replace(data, tables={"risk_summary": data.summary}, warnings=())
    anchors = {a.get("id") for a in Page(report.render(bare)).all("section")}
    assert anchors == {"finding", "combinations", "attackers", "drivers", "holdout", "tested", "how", "limits"}
    more = (*report.SECTIONS, ("extra", "Singling out", lambda page: report.note(f"{len(page.found)} <findings>")))
    assert "1 &lt;findings&gt;" in report.render(bare, more)


def test_what_is_undefined_is_listed_with_its_reason_and_never_drawn(page: Page, data: report.ReportData) -> None:
    assert "undefined" in page.words and f"income has classes {NASTY}" in page.words
    drawing = plots.draw_attackers(data, findings(data.summary)[0])
    assert drawing is not None and [t.get_text() for t in drawing.figure.axes[0].get_yticklabels()] == [
        "gbm", "rf", "logit", "cart"
    ]


def test_an_undefined_class_and_a_withheld_level_are_no_bars_of_height_0(data: report.ReportData) -> None:
    classes = data.classes.astype(object)
    classes.loc[classes["class_label"] == ">50K", "rapid"] = None
    finding = findings(data.summary)[0]
    drawing = plots.draw_classes(replace(data, tables={**data.tables, "risk_classes": classes}), finding)
    assert drawing is not None and len(drawing.figure.axes[0].patches) == 1
    occupation = plots.draw_subgroups(data, finding, "occupation")
    assert occupation is not None and len(occupation.figure.axes[0].patches) == 14
    assert "Occupation 5: withheld" in occupation.description and "1 of 15 levels" in occupation.note


def test_rules_and_counts_that_were_used_are_shown() -> None:
    page = Page(report.render(survey()))
    assert "constant 5" in page.words and "class (default)" in page.words
    assert "less than 5,000, in the unit of the attribute" in page.words
    assert "error e = |y − p|, with y the true value" in page.words and "normalised_by" not in page.words


def test_one_release_with_a_number_an_attribute_at_chance_and_one_undefined() -> None:
    page = Page(report.render(survey()))
    assert not page.faults and "20,846" in page.words
    assert "no better than chance" in page.words and "is undefined: one class." in page.words
    assert "copy 1" not in page.words and not re.search(r"\b(nan|None|NaT|inf)\b", page.words)


def test_a_run_in_which_nothing_worked_is_still_reported() -> None:
    one = survey()
    rows = one.summary.assign(status="failed", reason="out of memory", rapid=None)
    page = Page(report.render(replace(one, tables={"risk_summary": rows})))
    assert "No combination has a figure." in page.words and "out of memory" in page.words and not page.all("svg")


def test_verdicts_and_decisions_are_shown_where_there_are_any(data: report.ReportData) -> None:
    verdicts = pd.DataFrame([{"sensitive_attribute": "income", "rule": "rapid_max", "limit": 0.5, "figure": 0.81,
                              "verdict": "fail", "reason": "above <limit>"}])
    page = Page(report.render(replace(data, tables={"risk_summary": data.summary, "audit_verdicts": verdicts})))
    assert "Verdict of the policy" in page.words and "above <limit>" in page.words and "no verdict" not in page.words


def test_many_combinations_stay_under_two_megabytes(data: report.ReportData) -> None:
    def repeated(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([frame.assign(sensitive_attribute=f"attribute {i} {NASTY}") for i in range(40)])

    many = replace(data, tables={name: repeated(frame) for name, frame in data.tables.items()})
    text = report.render(many)
    page = Page(text)
    assert len(text.encode()) < 2_000_000 and not page.faults
    assert "more rows are in the store" in page.words and "34 more are in the table of combinations" in page.words


def test_the_same_data_give_the_same_file(data: report.ReportData, text: str, tmp_path: Path) -> None:
    assert report.write(data, tmp_path / "new" / "report.html").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("column", ["native_country", "occupation", "sex"])
def test_labels_do_not_overlap(data: report.ReportData, column: str) -> None:
    finding = findings(data.summary)[0]
    drawings = [plots.draw_subgroups(data, finding, column), plots.draw_attribution(data, finding),
                plots.draw_refits(data, finding), plots.draw_curve(data, finding), plots.draw_holdout(data, finding)]
    for drawing in drawings:
        assert drawing is not None
        drawing.figure.draw_without_rendering()
        for axes in drawing.figure.axes:
            for labels in (axes.get_yticklabels(), axes.get_xticklabels()):
                boxes = [t.get_window_extent() for t in labels if t.get_text()]
                assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_a_picture_has_real_text_and_no_formula(data: report.ReportData) -> None:
    rows = data.tables["risk_subgroups"].assign(level=[["$x_1$ & <b> 医師"] if v == ["Male"] else v
                                                       for v in data.tables["risk_subgroups"]["level"]])
    changed = replace(data, tables={**data.tables, "risk_subgroups": rows})
    drawing = plots.draw_subgroups(changed, findings(data.summary)[0], "sex")
    assert drawing is not None
    svg = plots.svg(drawing, "a1")
    assert "$x_1$ &amp; &lt;b&gt; 医師" in svg and "<style" not in svg and "http" not in svg
    assert 'id="a1-title"' in svg and svg.startswith("<svg ") and svg == plots.svg(drawing, "a1")


def test_a_long_curve_is_thinned_and_keeps_the_threshold(data: report.ReportData) -> None:
    grid = np.linspace(0, 0.99, 1000)
    one = {**data.curve.iloc[0].to_dict(), "attacker": "rf", "replicate": 1}
    curve = pd.DataFrame([{**one, "threshold": t, "rapid": 1 - t} for t in [*grid, 0.3]])
    finding = findings(data.summary[data.summary["replicate"] == 1])[0]
    drawing = plots.draw_curve(replace(data, tables={**data.tables, "risk_curve": curve}), finding)
    assert drawing is not None
    line = next(x for x in drawing.figure.axes[0].lines if x.get_label() == "rf")
    assert len(line.get_xdata()) <= plots.MOST_POINTS and 0.3 in np.asarray(line.get_xdata())


def test_figures_for_notebooks(data: report.ReportData) -> None:
    which = {"sensitive_attribute": "income"}
    assert plots.plot_curve(data, pooled=True).axes and plots.plot_attackers(data).axes
    assert plots.plot_classes(data, **which).axes
    assert plots.plot_subgroups(data, "age").axes and plots.plot_attribution(data).axes and plots.plot_holdout(data).axes
    with pytest.raises(ValueError, match="there is income"):
        plots.plot_curve(data, sensitive_attribute="incme")
    with pytest.raises(ValueError, match="chosen by"):
        plots.plot_curve(data, attribute="income")
    with pytest.raises(ValueError, match="nothing to draw"):
        plots.plot_subgroups(data, "no such column")


class Evaluated:
    """What an `Assessment` has."""

    def __init__(self, data: report.ReportData) -> None:
        self.run_id, self.summary, self.curve, self.classes = data.run_id, data.summary, data.curve, data.classes
        self.tables = {"risk_subgroups": data.tables["risk_subgroups"]}
        self.warnings, self.settings = ["<beware>"], json.dumps({"registry": "adult"})
        self.inputs: dict[str, Any] = {"holdout": {"name": "h.csv", "comparable": False}}
        self.evaluated_at = pd.Timestamp("2026-11-30 12:00")


def test_an_assessment_is_reported_and_shown_in_a_notebook(data: report.ReportData) -> None:
    whole = Page(report.render(report.of_assessment(Evaluated(data), {"python": "3.11"}, "evaluate")))
    assert "evaluated 2026-11-30 12:00 UTC" in whole.words and "difference between populations" in whole.words
    part = report.assessment_html(Evaluated(data))
    rules = re.findall(r"<style>(.*?)</style>", part, re.DOTALL)[0]
    assert all(s.strip().startswith(".rapid-spark ") for rule in rules.split("}") if "{" in rule
               for s in rule.split("{")[0].split(","))
    assert not Page(part).faults and "&lt;beware&gt;" in part and "<html" not in part


class Tables:
    """A store of pandas frames."""

    def __init__(self, tables: dict[str, pd.DataFrame]) -> None:
        self.tables = tables

    def names(self) -> list[str]:
        return sorted(self.tables)

    def query(self, sql: str) -> pd.DataFrame:
        found = re.fullmatch(r"SELECT \* FROM (\w+)(?: WHERE run_id = '([\w.-]+)')?(?: ORDER BY started_at DESC)?", sql)
        assert found is not None
        frame = self.tables[found[1]]
        return frame if found[2] is None else frame[frame["run_id"] == found[2]]


def stored(data: report.ReportData, *states: str) -> Tables:
    run = {"run_id": data.run_id, "attempt": 1, "command": "evaluate", "config": json.dumps({"registry": "adult"}),
           "inputs": json.dumps({"warnings": ["kept <warning>"]}), "package_versions": json.dumps({"python": "3.11"}),
           "started_at": pd.Timestamp("2026-11-30"), "ended_at": pd.Timestamp("2026-12-01 10:00")}
    attempts = [{**run, "attempt": 1 + i // 2, "state": state} for i, state in enumerate(states)]
    other = data.summary.assign(run_id="another", rapid=0.99)
    both = pd.concat([data.summary, other])
    return Tables({"runs": pd.DataFrame(attempts), "risk_summary": both, "risk_curve": data.curve})


def test_a_finished_run_is_read_from_a_store(data: report.ReportData) -> None:
    found = report.read(stored(data, "started", "failed", "started", "finished"), data.run_id)
    assert len(found.summary) == len(data.summary) and found.command == "evaluate" and found.warnings == ("kept <warning>",)
    assert found.classes.empty and "10:00 UTC" in report.render(found)


@pytest.mark.parametrize(("run", "states", "said"), [
    ("nothing", ("started", "finished"), "its latest are: 20261130"), ("x' or 1=1", ("started", "finished"), "not an id"),
    (KEY["run_id"], ("started", "finished", "started", "failed"), "not finished"),
    (KEY["run_id"], ("started",), "not finished"),
])
def test_a_run_that_does_not_count_is_refused(data: report.ReportData, run: str, states: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        report.read(stored(data, *states), run)


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
# Written into a copy of the page: how wide it is, and which texts of a picture lie on each other.
PROBE = """<script>
const hits = [];
for (const svg of document.querySelectorAll('svg')) {
  const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  boxes.forEach(([a, p], i) => boxes.slice(0, i).forEach(([b, q]) => {
    const w = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (w > 1 && h > 0.35 * Math.min(p.height, q.height)) hits.push(a + ' / ' + b);
  }));
}
parent.postMessage(JSON.stringify({width: document.documentElement.scrollWidth, hits}), '*');
</script>"""
# Windows have a least width; frames have none.
FRAME = """<!DOCTYPE html><title></title><script>onmessage = e => { document.title = e.data }</script>
<iframe src="probed.html" width="{width}" height="3000" style="border:0"></iframe>"""


def chromium(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    fixed = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
             "--disable-component-update --disable-sync --hide-scrollbars --enable-logging=stderr").split()
    return subprocess.run([str(CHROMIUM), *fixed, f"--user-data-dir={folder / 'profile'}", *arguments],
                          capture_output=True, text=True, timeout=180, check=False)


@browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_it_without_error_or_overflow(text: str, tmp_path: Path, width: int) -> None:
    probed = re.sub(r"<meta http-equiv[^>]*>", "", text).replace("</body>", f"{PROBE}</body>")
    for name, content in (("probed", probed), ("frame", FRAME.replace("{width}", str(width))), ("report", text)):
        (tmp_path / f"{name}.html").write_text(content, encoding="utf-8")
    shown = chromium(tmp_path, "--virtual-time-budget=5000", "--dump-dom", (tmp_path / "frame.html").as_uri())
    title = re.search(r"<title>(.*?)</title>", shown.stdout, re.DOTALL)
    assert title and json.loads(html.unescape(title[1])) == {"width": width, "hits": []}
    plain = chromium(tmp_path, f"--window-size={width},3000", f"--screenshot={tmp_path / 'shot.png'}",
                     (tmp_path / "report.html").as_uri())
    assert "CONSOLE" not in plain.stderr and (tmp_path / "shot.png").stat().st_size > 20_000


@browser
@pytest.mark.slow
def test_a_browser_prints_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    printed = chromium(tmp_path, f"--print-to-pdf={tmp_path / 'report.pdf'}", (tmp_path / "report.html").as_uri())
    assert "CONSOLE" not in printed.stderr and (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
