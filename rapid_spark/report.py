"""One self-contained HTML file of a run: a finding in plain words, tables, figures, and how it was computed.

No script, no network access, fonts of the system; every value is escaped in one place (`tag`). A further page
is one more function in `SECTIONS`: it gets a `Page` and returns markup, or None where it has nothing to say.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from . import plots, wording
from .config import Config, ConfigError, check_identifier
from .suite import rows_of, suite
from .wording import Finding, count, findings, interval, name, number, percent, plain, points

TABLES = (
    "risk_summary", "risk_curve", "risk_classes", "risk_subgroups", "risk_patterns", "risk_attribution",
    "audit_verdicts", "audit_comparison", "release_decisions",
)
MOST_FINDINGS = 6  # told in full and drawn; the others are in the tables
MOST_SUBGROUP_FIGURES = 6
MOST_ROWS = 250  # of a table
FIGURE_BYTES = 900_000  # all figures together
LONGEST_CELL = 120
MUCH_NEAR_THRESHOLD = 0.1  # share of predictions
SHORT_CELL = 24
SHORT_TABLE = 12  # rows that are kept on one page


Columns = Mapping[str, Callable[[dict[str, Any]], str]]  # heading: text of a row


class Html(str):
    """Markup that is escaped already."""


def tag(element: str, *children: Any, **attributes: Any) -> Html:
    """An HTML element. Children and attribute values are escaped unless they are `Html`; None is left out."""
    given = {k.rstrip("_").replace("_", "-"): v for k, v in attributes.items() if v is not None}
    shown = "".join(f' {k}="{html.escape(plain(v))}"' for k, v in given.items())
    if element in ("meta", "br"):
        return Html(f"<{element}{shown}>")
    inside = "".join(c if isinstance(c, Html) else html.escape(plain(c)) for c in children if c is not None)
    return Html(f"<{element}{shown}>{inside}</{element}>")


def join(parts: Iterable[Html | None]) -> Html:
    """Elements one after the other."""
    return Html("\n".join(p for p in parts if p))


class Readable(Protocol):
    """A store, as far as a report needs it."""

    def names(self) -> list[str]: ...  # noqa: D102
    def query(self, sql: str) -> Any: ...  # noqa: D102


@dataclass(frozen=True)
class ReportData:
    """What a report is made of.

    Attributes:
        run_id: of the run.
        tables: result tables by name (`risk_summary` at least), with the contract's columns. `gain_histogram`
            (keys of risk_summary, class_label, bin_low, bin_high, n) is optional: it needs scores of records.
        settings: the configuration of the run, as plain data.
        warnings: what the reader must know.
        inputs: names, versions and row counts of what was read.
        versions: of the libraries.
        command: that was run.
        evaluated_at: UTC.
        comparable: whether holdout and original look like a random split of one population; None: not known.
    """

    run_id: str
    tables: Mapping[str, pd.DataFrame]
    settings: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    evaluated_at: Any = None
    comparable: bool | None = None

    @property
    def summary(self) -> pd.DataFrame:
        """Rows of risk_summary."""
        return self.tables["risk_summary"]

    @property
    def curve(self) -> pd.DataFrame:
        """Rows of risk_curve."""
        return self.tables.get("risk_curve", pd.DataFrame())

    @property
    def classes(self) -> pd.DataFrame:
        """Rows of risk_classes."""
        return self.tables.get("risk_classes", pd.DataFrame())


def of_assessment(
    assessment: Any, versions: Mapping[str, str] | None = None, command: str = ""
) -> ReportData:
    """The report's data from an `Assessment`.

    Args:
        assessment: result of an evaluation.
        versions: of the libraries.
        command: that was run.
    """
    tables = {
        **assessment.tables, "risk_summary": assessment.summary, "risk_curve": assessment.curve,
        "risk_classes": assessment.classes,
    }
    return ReportData(
        run_id=assessment.run_id, tables=tables, settings=_loaded(assessment.settings),
        warnings=tuple(assessment.warnings), inputs=assessment.inputs, versions=versions or {},
        command=command, evaluated_at=assessment.evaluated_at, comparable=_comparable(assessment.inputs),
    )


def read(store: Readable, run_id: str) -> ReportData:
    """The report's data of a finished run from a store's tables.

    Args:
        store: a `Store`, or anything with its `names` and `query` (a frame of Spark or pandas).
        run_id: of the run.

    Raises:
        ConfigError: there is no such run, or its latest attempt is not finished.
    """
    check_identifier(run_id)
    runs = _pandas(store.query("SELECT * FROM runs ORDER BY started_at DESC"))
    mine = runs[runs["run_id"] == run_id]
    if not len(mine):
        there = ", ".join(runs["run_id"].drop_duplicates().head(5)) or "none"
        raise ConfigError(f"run {run_id}: the store has no such run; its latest are: {there}")
    latest = mine[mine["attempt"] == mine["attempt"].max()]
    if "finished" not in set(latest["state"]):
        raise ConfigError(f"run {run_id}: its latest attempt is not finished, no figure of it counts: run it again")
    row = latest[latest["state"] == "finished"].iloc[0]
    present = [t for t in TABLES if t in set(store.names())]
    tables = {t: _pandas(store.query(f"SELECT * FROM {t} WHERE run_id = '{run_id}'")) for t in present}
    inputs = _loaded(row.get("inputs"))
    return ReportData(
        run_id=run_id, tables=tables, settings=_loaded(row.get("config")), inputs=inputs,
        warnings=tuple(map(str, inputs.get("warnings", ()))),
        versions=_loaded(row.get("package_versions")), command=str(row.get("command") or ""),
        evaluated_at=row.get("ended_at"), comparable=_comparable(inputs),
    )


def _pandas(frame: Any) -> pd.DataFrame:
    found: pd.DataFrame = frame.toPandas() if hasattr(frame, "toPandas") else frame
    return found


def _loaded(text: Any) -> dict[str, Any]:
    return json.loads(text) if isinstance(text, str) and text else {}


def _comparable(inputs: Mapping[str, Any]) -> bool | None:
    holdout = inputs.get("holdout")
    found = holdout.get("comparable") if isinstance(holdout, Mapping) else None
    return found if isinstance(found, bool) else None


@dataclass
class Page:
    """What the sections share.

    Attributes:
        data: what the report is made of.
        found: its findings.
        left: bytes that figures may still take.
        drawn: figures so far.
        prefix: of the ids of figures.
    """

    data: ReportData
    found: list[Finding]
    left: int = FIGURE_BYTES
    drawn: int = 0
    prefix: str = "fig"

    @property
    def told(self) -> list[Finding]:
        """Findings that have a figure and are told in full."""
        return [f for f in self.found if f.rate is not None][:MOST_FINDINGS]

    def varying(self, frame: pd.DataFrame) -> list[str]:
        """Key columns that a table has to show: the attacker, and what differs over the run."""
        summary = self.data.summary
        several = {k for k in _HEADS if k in summary and summary[k].nunique() > 1}
        if summary.groupby("sensitive_attribute")["measure"].nunique().max() == 1:
            several -= {"measure"}
        return [k for k in _HEADS if k in frame and k in several | {"attacker"} and frame[k].notna().any()]

    def figures(self, drawings: Iterable[plots.Drawing | None]) -> Html | None:
        """Figures side by side, as far as there is room for them."""
        shown = []
        for drawing in drawings:
            if drawing is None or self.left <= 0:
                continue
            self.drawn += 1
            text = plots.svg(drawing, f"{self.prefix}{self.drawn}")
            self.left -= len(text)
            caption = tag("figcaption", tag("strong", f"{drawing.title}."), f" {drawing.note}")
            shown.append(tag("figure", Html(text), caption))
        kind = "figures many" if len(shown) > 2 else "figures"
        return tag("div", join(shown), class_=kind) if shown else None

    def table(self, caption: str, frame: pd.DataFrame, columns: Columns, texts: int = 0) -> Html:
        """Rows as a table; its leading key columns are headers of the rows, the others figures.

        Args:
            caption: what it shows.
            frame: rows; those beyond MOST_ROWS are counted and left out.
            columns: heading and text of each further column.
            texts: how many of these are text; the others are figures.
        """
        keys = self.varying(frame)
        heads = [_HEADS[k] for k in keys]
        rows = [
            [_key(row, k) for k in keys] + [shown(row) for shown in columns.values()]
            for row in rows_of(frame.head(MOST_ROWS))
        ]
        return listing(caption, [*heads, *columns], rows, len(keys) + texts, len(frame) - len(rows))


_HEADS = {
    "registry": "registry", "release_id": "release", "sensitive_attribute": "attribute", "qi_set": "known",
    "measure": "measure", "attacker": "attacker", "replicate": "copy", "weighting": "weights",
}


def _key(row: Mapping[str, Any], column: str) -> str:
    return wording.replicate(row[column]) if column == "replicate" else plain(row[column], LONGEST_CELL)


def listing(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], n_text: int = 1, left: int = 0
) -> Html:
    """A table that scrolls sideways where it is wider than the page.

    Args:
        caption: what it shows.
        heads: column headings.
        rows: cells; the first `n_text` of a row are text, the others figures.
        n_text: see rows.
        left: rows that are not shown.
    """
    kinds = [None if i < n_text else "n" for i in range(len(heads))]
    head = tag("tr", *(tag("th", h, scope="col", class_=kind) for h, kind in zip(heads, kinds, strict=True)))
    body = [
        tag("tr", *(_cell(str(cell), i == 0, i >= n_text) for i, cell in enumerate(row))) for row in rows
    ]
    inner = tag("table", tag("caption", tag("span", caption)), tag("thead", head), tag("tbody", join(body)),
                class_="short" if len(rows) <= SHORT_TABLE else None)
    rest = tag("p", f"{left:,} more rows are in the store.", class_="note") if left > 0 else None
    return join([tag("div", inner, class_="scroll", role="region", tabindex="0", aria_label=caption), rest])


def _cell(text: str, is_head: bool, is_figure: bool) -> Html:
    # figures and short texts are not broken over lines
    kind = "n" if is_figure else ("s" if len(text) <= SHORT_CELL else "l")
    return tag("th", text, scope="row", class_=kind) if is_head else tag("td", text, class_=kind)


def fold(label: str, *content: Html | None) -> Html:
    """What is there on request; printed in full."""
    return tag("details", tag("summary", label), join(content))


def note(text: str) -> Html:
    """A remark below a table or figure."""
    return tag("p", text, class_="note")


def _rate(row: Mapping[str, Any], low: str = "ci_low", high: str = "ci_high", rate: str = "rapid") -> str:
    return f"{percent(row.get(rate))} {interval(row.get(low), row.get(high))}".strip()


def _prose(text: str) -> Html:
    """Sentences in which a number and its percent sign stay on one line."""
    return Html(re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", html.escape(plain(text))))


def _title(finding: Finding, page: Page) -> str:
    """What tells one finding from the others."""
    own = finding.key["sensitive_attribute"]
    parts = [name(own)]
    for column in ("qi_set", "measure", "registry", "release_id"):
        alike = [f for f in page.found if column != "measure" or f.key["sensitive_attribute"] == own]
        if len({f.key[column] for f in alike}) > 1:
            parts.append(f"{_HEADS[column]}: {name(finding.key[column])}")
    return ", ".join(parts)


def _finding(page: Page) -> Html:
    cards = []
    for f in [*page.told, *[f for f in page.found if f.rate is None][:MOST_FINDINGS]]:
        single = interval(f.low, f.high) if f.basis != "mean" else ""
        figure = tag("p", percent(f.rate), tag("span", f" {single}") if single else None, class_="figure")
        said = [tag("p", _prose(s)) for s in (*f.sentences, f.control) if s]
        cards.append(tag("article", tag("h3", _title(f, page)), figure, *said, class_=f"card {f.outcome}"))
    more = len(page.found) - len(cards)
    rest = note(f"{more} more are in the table of combinations.") if more else None
    verdicts = _stated(page, "audit_verdicts", "Verdict of the policy", _VERDICT)
    decisions = _stated(page, "release_decisions", "Decisions", _DECISION)
    none = None if verdicts else note("No policy was given, so this report holds figures and no verdict.")
    return join([*cards, rest, none, verdicts, decisions])


_VERDICT = ("sensitive_attribute", "rule", "verdict", "figure", "limit", "reason")
_DECISION = ("outcome", "decided_by", "reason", "decided_at", "valid_until")


def _stated(page: Page, which: str, caption: str, columns: Sequence[str]) -> Html | None:
    """A table of statements as it is; None where the run has none."""
    frame = page.data.tables.get(which)
    if frame is None or not len(frame):
        return None
    rows = [[_text(r.get(c)) for c in columns] for r in rows_of(frame.head(MOST_ROWS))]
    heads = [c.replace("_", " ") for c in columns]
    return listing(caption, heads, rows, len(columns), len(frame) - len(rows))


def _text(value: Any) -> str:
    """A value of any kind, in a cell."""
    if not _given(value):
        return wording.NOT_KNOWN
    return f"{value:.4g}" if isinstance(value, float) else plain(value, LONGEST_CELL)


def warnings_section(page: Page) -> Html | None:
    """What the reader must know."""
    if not page.data.warnings:
        return None
    items = (tag("li", plain(w, 600)) for w in dict.fromkeys(page.data.warnings))
    return tag("ul", *items, class_="warnings")


def _ok(page: Page) -> pd.DataFrame:
    """Rows of risk_summary with a figure, scored on the original."""
    summary = page.data.summary
    return summary[(summary["status"] == "ok") & (summary["scored_on"] == "original")]


def _combinations(page: Page) -> Html:
    ok = _ok(page)
    if not len(ok):
        return join([note("No combination has a figure."), _without_figure(page)])
    if len(ok) > MOST_ROWS:
        highest = ok["rapid"].astype(float).sort_values(ascending=False, kind="stable")
        ok = ok.loc[highest.index]
    level = {wording.confidence(r) for r in rows_of(ok[["confidence"]].drop_duplicates())}
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        f"at risk [{level.pop() if len(level) == 1 else ''}interval]": _rate,
        "of": lambda r: count(r["n"]),
        "chance": lambda r: percent(r.get("baseline_rate")),
        "excess, points": lambda r: points(r.get("excess")),
        "p": lambda r: wording.p_value(r.get("permutation_p")),
        "claims right": _claims,
    }
    if any(a.get("sensitive_levels") for a in page.data.settings.get("sensitive_attributes", ())):
        columns["harmful answers"] = lambda r: percent(r.get("sensitive_levels_rate"))
    for who in ("person", "household"):
        if _any(ok, f"{who}_rapid"):
            names = (f"{who}_ci_low", f"{who}_ci_high", f"{who}_rapid")
            columns[f"by {who}"] = lambda r, names=names: _rate(r, *names)  # type: ignore[misc]
    if _any(ok, "rapid_within_strata"):
        columns["within strata"] = lambda r: percent(r.get("rapid_within_strata"))
    methods = ", ".join(dict.fromkeys(map(str, ok["ci_method"].dropna())))
    means = note(f"{wording.INTERVAL_MEANING} Method: {methods}. {wording.P_MEANING}")
    return join([page.table("Combinations with a figure", ok, columns), means, _near(ok), _without_figure(page)])


def _near(ok: pd.DataFrame) -> Html | None:
    """Where many predictions are at a threshold, no bootstrap is consistent: say so."""
    if not _any(ok, "near_threshold"):
        return None
    share = pd.to_numeric(ok["near_threshold"]).max()
    if share < MUCH_NEAR_THRESHOLD:
        return None
    return note(
        f"For at least one attacker {percent(share)} of the predictions are within two standard deviations of a "
        "threshold. Where many of them share one value, no bootstrap is consistent: intervals may be too short."
    )


def _without_figure(page: Page) -> Html | None:
    rows = [
        [status, reason, str(len(names)), "; ".join(names[:8]) + (" …" if len(names) > 8 else "")]
        for status, reason, names in wording.not_computed(page.data.summary)
    ]
    if not rows:
        return None
    heads, left = ["status", "reason", "how many", "which"], max(0, len(rows) - MOST_ROWS)
    table = listing("Combinations without a figure", heads, rows[:MOST_ROWS], 4, left)
    return join([table, note("Undefined is neither low nor high: these are in no figure and no average.")])


def _any(frame: pd.DataFrame, column: str) -> bool:
    return column in frame and bool(frame[column].notna().any())


def _claims(row: Mapping[str, Any]) -> str:
    if number(row.get("claims_correct")) is None:
        return wording.NOT_KNOWN
    return f"{percent(row['claims_correct'])} of {count(row['n_confident_claims'])}"


def _behind(page: Page, frame: pd.DataFrame | None) -> pd.DataFrame:
    """Rows of a table about the combinations behind the findings that are told."""
    parts = [rows for f in page.told if len(rows := plots.rows_behind(frame, f))]
    return pd.concat(parts) if parts else pd.DataFrame()


def _data_driven(finding: Finding, title: str) -> Html | None:
    chosen = number(finding.row.get("data_driven_threshold"))
    if chosen is None:
        return None
    direction = "up to" if finding.row["target_type"] == "categorical" else "down to"
    return note(
        f"{title}: for attacker {name(finding.row['attacker'])} the rate exceeds what chance gives {direction} "
        f"threshold {chosen:g} (fixed sequence, 5 % over the whole grid)."
    )


def _thresholds(page: Page) -> Html | None:
    curve = _behind(page, page.data.curve)
    if not len(curve):
        return None
    each = [(f, pooled) for f in page.told for pooled in (False, True)]
    drawn = page.figures(plots.draw_curve(page.data, f, pooled) for f, pooled in each)
    said = [_data_driven(f, _title(f, page)) for f in page.told]
    figures = page.table("Threshold curves", curve, {
        "threshold": _decimal("threshold"), "at risk [interval]": _rate,
        "chance": lambda r: percent(r.get("baseline_rate")),
    })
    label = "Figures of the curves, for the attacker behind each finding"
    return join([drawn, note(f"Bands are intervals. {wording.INTERVAL_MEANING}"), *said, fold(label, figures)])


def _attackers(page: Page) -> Html | None:
    ok = _ok(page)
    if not len(ok):
        return None
    drawn = page.figures(plots.draw_attackers(page.data, f) for f in page.told)
    unweighted = ok[ok["weighting"].isin(["none"]) | ok["weighting"].isna()]
    groups = pd.concat([
        suite(part).assign(registry=part["registry"].iloc[0], release_id=part["release_id"].iloc[0])
        for _, part in unweighted.groupby(["registry", "release_id"], sort=False)
    ])
    strongest = groups["worst_attacker"]
    groups["attacker"] = strongest.where(strongest.notna(), groups["pooled_attacker"])
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "attackers": lambda r: count(r["attackers"]), "copies": lambda r: count(r["replicates"]),
        "largest": lambda r: percent(r["rapid_max"]), "mean": lambda r: percent(r["rapid_mean"]),
    }
    if _any(groups, "rapid_sd"):
        columns["sd over copies, points"] = lambda r: points(r["rapid_sd"], signed=False)
    if _any(groups, "rapid_pooled"):
        columns["all copies together"] = lambda r: percent(r["rapid_pooled"])
    tables = [page.table("Over attackers and copies; the attacker named is the strongest", groups, columns)]
    for kind, quality in _QUALITY.items():
        rows = ok[ok["target_type"] == kind]
        if len(rows):
            tables.append(page.table(f"How good the attackers are: {kind} attributes", rows, quality))
    return join([drawn, note(f"Bars are intervals. {wording.INTERVAL_MEANING}"), *tables])


def _decimal(column: str) -> Callable[[dict[str, Any]], str]:
    """A figure that is no share, with four digits that count."""

    def shown(row: Mapping[str, Any]) -> str:
        value = number(row.get(column))
        if value is None:
            return wording.NOT_KNOWN
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

    return shown


_QUALITY: dict[str, Columns] = {
    "categorical": {
        "accuracy": lambda r: percent(r.get("accuracy")),
        "always the most frequent": lambda r: percent(r.get("majority_rate")),
        "macro F1": _decimal("macro_f1"), "AUC": _decimal("auc"), "log loss": _decimal("log_loss"),
    },
    "continuous": {
        "MAE": _decimal("mae"), "RMSE": _decimal("rmse"), "relative MAE": _decimal("relative_mae"),
        "R²": _decimal("r2"),
    },
}


def _classes(page: Page) -> Html | None:
    rows = _behind(page, page.data.classes)
    if not len(rows):
        return None
    each = [(draw, f) for f in page.told for draw in (plots.draw_classes, plots.draw_gain)]
    drawn = page.figures(draw(page.data, f) for draw, f in each)
    table = page.table("By class of the attribute, for the attacker behind each finding", rows, {
        "class": lambda r: plain(r["class_label"], LONGEST_CELL), "share": lambda r: percent(r["prevalence"]),
        "people": lambda r: count(r["n"]), "at risk": lambda r: percent(r["rapid"]),
        "mean probability of the truth": lambda r: percent(r.get("mean_true_prob")), "claims right": _claims,
    }, texts=1)
    return join([drawn, table])


def _drivers(page: Page) -> Html | None:
    data, parts = page.data, []
    kinds = data.inputs.get("columns", {})
    for f in page.told:
        drawings = [plots.draw_attribution(data, f), plots.draw_refits(data, f)]
        for column in plots.subgroup_columns(data, f)[:MOST_SUBGROUP_FIGURES]:
            drawings.append(plots.draw_subgroups(data, f, column, kinds.get(column) == "numeric"))
        parts.append(page.figures(drawings))
    for which, (caption, columns, texts) in _DRIVERS.items():
        rows = _behind(page, plots.table(data, which))
        if len(rows):
            parts.append(fold(f"{caption}: all figures", page.table(caption, rows, columns, texts)))
    if not any(parts):
        return None
    return join([*parts, note(
        "Withheld: fewer records than the smallest cell shown, or so few (or all but a few) at risk that the "
        f"figure could tell of a person. Bars are intervals. {wording.INTERVAL_MEANING}"
    )])


def _group(row: Mapping[str, Any]) -> str:
    pairs = zip(row["columns"], row["level"], strict=True)
    return plain("; ".join(f"{column} = {level}" for column, level in pairs), LONGEST_CELL)


def _true(value: Any) -> bool:
    return value is not None and value == value and bool(value)


def _estimate(row: Mapping[str, Any]) -> str:
    estimate, low, high = (number(row.get(c)) for c in ("estimate", "ci_low", "ci_high"))
    kind = row["kind"]
    if estimate is None:
        return "not determined"
    if kind == "coefficient":
        bounds = f" [{low:+.3f}, {high:+.3f}]" if low is not None and high is not None else ""
        return f"{estimate:+.3f}{bounds}"
    if kind == "marginal_effect":
        return f"{points(estimate)} points {interval(low, high, signed=True)}".strip()
    return _rate({"rapid": estimate, "ci_low": low, "ci_high": high})


def _unless_withheld(shown: Callable[[dict[str, Any]], str]) -> Callable[[dict[str, Any]], str]:
    return lambda row: "withheld" if _true(row.get("suppressed")) else shown(row)


_GROUPS: Columns = {
    "group": _group, "people": _unless_withheld(lambda r: count(r["n"])),
    "at risk [interval]": _unless_withheld(_rate),
}
_DRIVERS: dict[str, tuple[str, Columns, int]] = {
    "subgroups": ("By level of the quasi-identifiers", _GROUPS, 1),
    "patterns": ("Patterns that carry most risk", _GROUPS, 1),
    "attribution": ("Attribution", {
        "term": lambda r: plain(r["term"], LONGEST_CELL),
        "kind": lambda r: plain(r["kind"]).replace("_", " "), "estimate [interval]": _estimate,
    }, 2),
}


_CONTROL = {
    "holdout_rate": "not in the data", "population_reference": "population reference",
    "copy_ceiling": "copy of the original",
}


def _holdout(page: Page) -> Html | None:
    ok = _ok(page)
    named = [c for c in _CONTROL if _any(ok, c)]
    if not named:
        return None
    rows = ok[ok[named].notna().any(axis=1)]
    columns: dict[str, Callable[[dict[str, Any]], str]] = {"in the data": lambda r: percent(r["rapid"])}
    for c in named:
        columns[_CONTROL[c]] = lambda r, c=c: percent(r.get(c))  # type: ignore[misc]
    if "holdout_rate" in named:
        columns["difference, points [interval]"] = _difference
    if _any(rows, "holdout_difference_own"):
        columns["difference, own baselines"] = lambda r: points(r.get("holdout_difference_own"))
    drawn = page.figures(plots.draw_holdout(page.data, f) for f in page.told)
    return join([drawn, page.table("People in the data and not in it", rows, columns), note(
        "Not in the data: people who were not used to make the release, judged by the original's baselines. "
        "Population reference: an attacker who learns from other people of the original. Copy of the original: "
        "one who learns from the original itself. The difference is the effect of being in the data only if both "
        f"are a random split without shared persons or households. Intervals: {wording.INTERVAL_MEANING}"
    )])


def _difference(row: Mapping[str, Any]) -> str:
    bounds = interval(row.get("holdout_difference_low"), row.get("holdout_difference_high"), signed=True)
    return f"{points(row.get('holdout_difference'))} {bounds}".strip()


_COUNTS: Columns = {
    "threshold": _decimal("threshold"), "defined": lambda r: count(r.get("n")),
    "undefined": lambda r: count(r.get("n_undefined")), "dropped": lambda r: count(r.get("n_dropped")),
    "level unseen": lambda r: count(r.get("n_unseen_level")),
    "class unseen": lambda r: count(r.get("n_unseen_class")), "trained on": lambda r: count(r.get("n_train")),
    "release rows": lambda r: count(r.get("n_release")), "seconds to fit": _decimal("fit_seconds"),
}


def _how(page: Page) -> Html:
    data, summary = page.data, page.data.summary
    measures = {m: wording.MEASURES[m] for m in map(str, summary["measure"]) if m in wording.MEASURES}
    terms = {**wording.TERMS, **measures}
    meanings = tag("dl", *(tag(e, x) for k, v in terms.items() for e, x in (("dt", k), ("dd", f"{v}."))))
    rules = [
        [plain(a.get("name")), plain(a.get("type") or "read from the data"), _missing_rule(a, summary),
         ", ".join(map(str, a.get("sensitive_levels") or ())) or "all"]
        for a in data.settings.get("sensitive_attributes", ())
    ]
    heads = ["attribute", "type", "missing values", "levels that would hurt"]
    missing = listing("Sensitive attributes", heads, rules, 4) if rules else None
    counts = page.table("Counts used", summary[summary["scored_on"] == "original"], _COUNTS)
    sizes = note(
        "Undefined: records without a true value, or for which the measure is not defined. Dropped: left out "
        "because the sensitive value is missing. Unseen: people with a level, or a class, that the release lacks."
    )
    folded = fold("Counts of each combination", counts, sizes)
    return join([meanings, missing, folded, _settings(page), _evidence(page)])


def _missing_rule(attribute: Mapping[str, Any], summary: pd.DataFrame) -> str:
    """The rule in use, also where it was left to the default."""
    if attribute.get("missing"):
        value = f" {attribute['constant']:g}" if number(attribute.get("constant")) is not None else ""
        return f"{attribute['missing']}{value}"
    types = set(summary.loc[summary["sensitive_attribute"] == attribute.get("name"), "target_type"].dropna())
    rules = {"categorical": "class (default)", "continuous": "drop (default)"}
    return rules.get(next(iter(types), ""), "default")


def _settings(page: Page) -> Html | None:
    given, default = dict(leaves(page.data.settings)), dict(leaves(Config().model_dump(mode="json")))
    rows = [
        [path, plain(value, 400), "default" if default.get(path) == value else "given"]
        for path, value in given.items()
    ]
    heads = ["setting", "value", "from"]
    table = listing("Settings of the run", heads, rows[:MOST_ROWS], 3, len(rows) - MOST_ROWS)
    return fold("Settings", table) if rows else None


def leaves(value: Any, path: str = "") -> Iterable[tuple[str, str]]:
    """Settings by path, as text; empty ones are left out."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    elif value not in (None, [], {}, ()):
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_DIGESTS = {
    "seed": "seed", "original_digest": "digest of the original", "release_digest": "digest of the release",
    "settings_digest": "digest of the settings", "package_version": "rapid-spark",
}


def _evidence(page: Page) -> Html:
    data, summary = page.data, page.data.summary
    rows = [["run", data.run_id, ""], ["command", data.command or wording.NOT_KNOWN, ""]]
    read_tables = {"original": data.inputs.get("original"), "holdout": data.inputs.get("holdout")}
    read_tables |= {f"release, copy {k}": v for k, v in dict(data.inputs.get("releases") or {}).items()}
    for place, found in read_tables.items():
        if isinstance(found, Mapping):
            version = "" if found.get("version") is None else f"Delta version {found['version']}"
            size = "" if found.get("rows") is None else f"{count(found['rows'])} rows"
            rows.append([place, plain(found.get("name"), 300), ", ".join(filter(None, (size, version)))])
    for column, label in _DIGESTS.items():
        values = summary[column].dropna().drop_duplicates() if column in summary else pd.Series(dtype=object)
        rows += [[label, str(int(v)) if column == "seed" else str(v), ""] for v in values.head(20)]
    rows += [[k, v, ""] for k, v in data.versions.items() if k != "rapid-spark"]
    table = listing("Evidence", ["what", "value", "size"], rows, 3)
    return fold("Inputs, digests, versions and seed", table)


def _limits(page: Page) -> Html:
    return join([
        tag("h3", "What the interval means"), tag("p", wording.INTERVAL_MEANING),
        tag("p", "The largest of several attackers is chosen by looking: its upper end is the largest of the upper "
                 "ends, and its lower end is below that of the one attacker."),
        tag("h3", "What the figures do not say"), tag("ul", *(tag("li", text) for text in wording.LIMITS)),
    ])


Section = Callable[[Page], Html | None]
SECTIONS: tuple[tuple[str, str, Section], ...] = (
    ("finding", "Finding", _finding), ("warnings", "What the reader must know", warnings_section),
    ("combinations", "Combinations", _combinations), ("thresholds", "Other thresholds", _thresholds),
    ("attackers", "Attackers compared", _attackers), ("classes", "Which answers", _classes),
    ("drivers", "Which people, which columns", _drivers), ("holdout", "Holdout against members", _holdout),
    ("how", "How it was computed", _how), ("limits", "Limits", _limits),
)


def render(
    data: ReportData, sections: Sequence[tuple[str, str, Section]] = SECTIONS, title: str | None = None
) -> str:
    """The report as one HTML document.

    Args:
        data: what to report.
        sections: anchor, heading and function of each; those without content are left out.
        title: of the document; says what was evaluated when left out.
    """
    page, summary = Page(data, findings(data.summary, data.comparable)), data.summary
    made = [(anchor, title, make(page)) for anchor, title, make in sections]
    parts = [(anchor, title, content) for anchor, title, content in made if content is not None]
    about = [", ".join(dict.fromkeys(map(name, summary[c]))) for c in ("registry", "release_id")]
    title = title or f"RAPID report: {plain(', '.join(filter(None, about)), 200) or 'nothing was evaluated'}"
    when = data.evaluated_at
    if not _given(when) and len(summary):
        when = summary.iloc[0].get("evaluated_at")
    subtitle = f"Run {data.run_id}" + (f", evaluated {_time(when)}" if _given(when) else "")
    links = tag("ul", *(tag("li", tag("a", text, href=f"#{anchor}")) for anchor, text, _ in parts))
    header = tag("header", tag("h1", title), tag("p", subtitle), tag("nav", links, aria_label="Contents"))
    shown = [
        tag("section", tag("h2", text, id=f"{a}-heading"), content, id=a, aria_labelledby=f"{a}-heading")
        for a, text, content in parts
    ]
    head = tag(
        "head", tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("title", title), Html(f"<style>{_CSS}</style>"),
    )
    body = tag("body", header, tag("main", join(shown)))
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n{body}\n</html>\n'


def write(data: ReportData, path: str | Path, make: Callable[[ReportData], str] | None = None) -> Path:
    """Write the report to a file, UTF-8; the folder is made at need. `make` renders it in place of `render`."""
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text((make or render)(data), encoding="utf-8")
    return place


def assessment_html(assessment: Any) -> str:
    """An `Assessment` as a notebook shows it: findings, combinations, threshold curves, warnings."""
    data = of_assessment(assessment)
    own = hashlib.sha256(data.run_id.encode()).hexdigest()[:8]  # a notebook shows several: their ids must differ
    page = Page(data, findings(data.summary, data.comparable), prefix=f"run-{own}-fig")
    curves = page.figures(plots.draw_curve(data, f) for f in page.told[:2])
    warned = warnings_section(page)
    heading = tag("p", tag("strong", "What the reader must know")) if warned else None
    content = join([_finding(page), heading, warned, _combinations(page), curves])
    return f"<style>{_scoped(_CSS)}</style>{tag('div', content, class_='rapid-spark')}"


def _scoped(css: str) -> str:
    """Rules for the report's markup alone, under `.rapid-spark`, for a page that is not ours."""
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", css.split(_PAGE_RULES)[0])
    scoped = [(",".join(f".rapid-spark {s.strip()}" for s in selectors.split(",")), body) for selectors, body in rules]
    return "\n".join(f"{selectors}{{{body}}}" for selectors, body in scoped)


def _given(value: Any) -> bool:
    return value is not None and value == value and value is not pd.NaT


def _time(value: Any) -> str:
    stamp = pd.Timestamp(value)
    stamp = stamp.tz_convert(UTC) if stamp.tzinfo else stamp
    return f"{stamp:%Y-%m-%d %H:%M} UTC"


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_PAGE_RULES = "/* page */"  # before it: what the markup needs anywhere; after it: the page itself
_CSS = """
.card{border:1px solid #c9ced6;border-left:6px solid #0072B2;border-radius:4px;padding:.6rem 1rem;
margin:1rem 0;max-width:50rem}
.card.no_better_than_chance{border-left-color:#009E73}
.card.undefined,.card.chance_unknown{border-left-color:#5f6368;border-left-style:dashed}
.card h3{margin:.2rem 0}
.card p{margin:.4rem 0;max-width:46rem}
.card .figure{font-size:2rem;font-weight:600;line-height:1.2}
.card .figure span{font-size:1.05rem;font-weight:400;white-space:nowrap}
.note{color:#4a4f57;font-size:.875rem;max-width:46rem;margin:.5rem 0}
.scroll{overflow-x:auto;margin:1rem 0}
.scroll table{border-collapse:collapse;font-size:.875rem;line-height:1.35;width:auto}
.scroll caption{text-align:left;font-weight:600;padding:.2rem 0}
.scroll th,.scroll td{padding:.25rem .6rem;border-bottom:1px solid #dfe2e7;text-align:left;vertical-align:top;
background:none}
.scroll thead th{border-bottom:2px solid #5f6368;vertical-align:bottom}
.scroll tbody th{font-weight:400}
.scroll .l{overflow-wrap:anywhere;min-width:12rem;max-width:26rem}
.scroll .s{white-space:nowrap}
.scroll caption span{display:inline-block;position:sticky;left:0;max-width:min(46rem,88vw)}
details .scroll caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.scroll .n{text-align:right;font-variant-numeric:tabular-nums}
.scroll td.n{white-space:nowrap}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));gap:0 2rem}
.figures.many{display:block;columns:2 24rem;column-gap:2rem;max-width:78rem}
.figures figure{margin:0 0 1.2rem;max-width:38rem;break-inside:avoid}
.figures figcaption{font-size:.875rem;color:#4a4f57}
.figures strong{color:#1b1f24}
.plot{width:100%;height:auto;display:block;overflow:visible}
.plot text{font-family:inherit!important}
/* page */
*{box-sizing:border-box}
html{color-scheme:light;-webkit-text-size-adjust:100%}
body{font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif;
color:#1b1f24;background:#fff;margin:0 auto;padding:1rem clamp(1rem,4vw,3rem) 3rem;max-width:80rem}
h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.2rem 0 .6rem;border-bottom:1px solid #c9ced6;padding-bottom:.2rem}
h3{font-size:1.05rem;margin:1.2rem 0 .4rem;overflow-wrap:anywhere}
p,li,dd{overflow-wrap:anywhere}
main p,main ul{max-width:46rem}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;padding:0;margin:.6rem 0}
a{color:#00548a}
a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:3px solid #E69F00;outline-offset:2px}
.warnings li{margin:.3rem 0}
details{margin:.8rem 0}
summary{cursor:pointer;font-weight:600;color:#00548a;padding:.2rem 0}
dl{display:grid;grid-template-columns:minmax(8rem,auto) 1fr;gap:.3rem 1rem;max-width:60rem;font-size:.9375rem}
dt{font-weight:600}
dd{margin:0}
@media (max-width:36rem){
dl{grid-template-columns:1fr;gap:0}
dd{margin:0 0 .6rem}
.card .figure span{display:block}
.scroll thead th{white-space:nowrap}
}
@page{size:A4;margin:16mm 14mm}
@media print{
body{font-size:9.5pt;padding:0;max-width:none}
nav{display:none}
h1{font-size:16pt}h2{font-size:12.5pt;break-after:avoid}h3,caption{break-after:avoid}
.card,figure,tr,.short{break-inside:avoid}
thead{display:table-header-group}
.figures{grid-template-columns:1fr 1fr;gap:0 5mm}
.figures.many{columns:2;column-gap:5mm}
.scroll{overflow:visible}
.scroll table,.note,.figures figcaption{font-size:7.5pt}
.scroll th,.scroll td{padding:1pt 3pt}
.scroll .l{min-width:0;max-width:none}
dl,li,main p{font-size:9pt}
summary{list-style:none;color:inherit}
details::details-content{content-visibility:visible;block-size:auto;opacity:1}
}
"""
