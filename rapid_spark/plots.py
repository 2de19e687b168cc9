"""Figures of an evaluation from its result tables alone, by matplotlib without a display and without pyplot.

Each `draw_*` function takes anything with `summary`, `curve`, `classes` and `tables` (an `Assessment`, or the
report's data) and a `Finding`, and gives a `Drawing`: the figure with its text alternative, or None where there
is nothing to draw. What is undefined or suppressed is never drawn as a bar of 0. The `plot_*` functions are for
notebooks and give the matplotlib Figure. Colours are those of Okabe and Ito (2008), safe for colour-blind
readers; markers and line styles tell things apart as well.
"""

from __future__ import annotations

import io
import re
import threading
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

from .suite import rows_of
from .wording import (
    POOLED,
    Finding,
    count,
    findings,
    interval,
    name,
    number,
    percent,
    plain,
    points,
    replicate,
)

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
STYLES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), "-")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#5f6368"
WIDTH = 4.7  # inches; at this width letters stay legible on a telephone
SIZE = 9.0  # of letters, points
MOST_LINES = 6
MOST_ROWS = 15
MOST_POINTS = 60  # of a line
MOST_CLASSES = 6  # of the gain histogram
LABEL = 24  # half-width characters of one line of a label
_KEYS = ("registry", "release_id", "qi_set", "sensitive_attribute", "measure")
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_LOCK = threading.Lock()


class Evaluation(Protocol):
    """What figures are drawn from: result tables as pandas frames with the contract's columns."""

    @property
    def summary(self) -> pd.DataFrame: ...  # noqa: D102
    @property
    def curve(self) -> pd.DataFrame: ...  # noqa: D102
    @property
    def classes(self) -> pd.DataFrame: ...  # noqa: D102
    @property
    def tables(self) -> Mapping[str, pd.DataFrame]: ...  # noqa: D102


@dataclass(frozen=True)
class Drawing:
    """A figure with its title and what it shows in words."""

    figure: Figure
    title: str
    description: str
    note: str = ""


def rows_about(frame: pd.DataFrame | None, key: Mapping[str, Any], **more: Any) -> pd.DataFrame:
    """Rows of a result table about one finding: scored on the original, unweighted."""
    if frame is None or not len(frame):
        return pd.DataFrame()
    wanted = {**{c: key[c] for c in _KEYS if c in key}, "scored_on": "original", "weighting": "none", **more}
    keep = np.ones(len(frame), dtype=bool)
    for column in set(wanted) & set(frame.columns):
        keep &= (frame[column].isin([wanted[column]]) | frame[column].isna()).to_numpy(dtype=bool)
    return frame[keep]


def rows_behind(frame: pd.DataFrame | None, finding: Finding) -> pd.DataFrame:
    """Rows of a table about the combination behind a finding; empty where it has none."""
    if finding.rate is None:
        return pd.DataFrame()
    row = finding.row
    return rows_about(frame, finding.key, attacker=row["attacker"], replicate=row["replicate"])


def table(evaluation: Evaluation, which: str) -> pd.DataFrame | None:
    """A further result table, by its name with or without `risk_`."""
    return evaluation.tables.get(f"risk_{which}", evaluation.tables.get(which))


def numeric(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A copy with these columns as floats, NaN where missing; columns that are not there are NaN."""
    return frame.assign(**{
        c: pd.to_numeric(frame[c], errors="coerce").astype(float) if c in frame else np.nan for c in columns
    })


def draw_curve(evaluation: Evaluation, finding: Finding, pooled: bool = False) -> Drawing | None:
    """Share at risk against the threshold, a line per attacker with its interval as a band.

    Over replicates the line is the mean, and the band reaches from the lowest to the highest end of an interval.

    Args:
        evaluation: result tables.
        finding: which attribute, set and measure.
        pooled: the attackers who train on all copies together, in place of those of each copy.
    """
    rows = rows_about(evaluation.curve, finding.key)
    rows = rows[(rows["replicate"] == POOLED) == pooled] if len(rows) else rows
    rows = numeric(rows, ("threshold", "rapid", "ci_low", "ci_high", "baseline_rate"))
    rows = rows.dropna(subset=["threshold", "rapid"])
    if not len(rows):
        return None
    threshold = float(finding.row["threshold"])
    over = {
        "rapid": ("rapid", "mean"), "low": ("ci_low", "min"), "high": ("ci_high", "max"),
        "chance": ("baseline_rate", "mean"),
    }
    parts = rows.groupby("attacker", sort=False)
    lines = {str(attacker): part.groupby("threshold").agg(**over) for attacker, part in parts}
    at = {a: float(np.interp(threshold, line.index, line["rapid"])) for a, line in lines.items()}
    shown = sorted(lines, key=lambda a: (-at[a], a))[:MOST_LINES]
    figure, axes = _figure(3.5)
    chance = lines[shown[0]]["chance"].dropna()
    if len(chance):
        chance = _thinned(chance.to_frame(), threshold)["chance"]
        axes.plot(chance.index, chance, linestyle=(0, (1, 2)), color=GREY, label=f"chance ({_short(shown[0])})")
    for i, attacker in enumerate(shown):
        line = _thinned(lines[attacker], threshold)
        axes.fill_between(line.index, line["low"], line["high"], color=COLOURS[i], alpha=0.18, linewidth=0)
        axes.plot(line.index, line["rapid"], linestyle=STYLES[i], color=COLOURS[i], marker=MARKERS[i],
                  markersize=3.5, markevery=max(1, len(line) // 10), label=_short(attacker))
    axes.axvline(threshold, color=GREY, linewidth=0.8)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(_PERCENT)
    axes.set_ylabel("people at risk")
    axes.set_xlabel(_threshold_label(finding.row))
    axes.grid(alpha=0.25, linewidth=0.6)
    _legend(figure, axes)
    copies = rows["replicate"].nunique()
    whose = f", mean of {copies} copies" if copies > 1 else (", all copies together" if pooled else "")
    listed = ", ".join(f"{name(a)} {percent(at[a])}" for a in shown)
    return Drawing(
        figure, f"Threshold curve: {name(finding.key['sensitive_attribute'])}{whose}",
        f"Share of people at risk against the threshold. At the threshold in use, {threshold:g}: {listed}.",
        f"The grey vertical line is the threshold in use, {threshold:g}.{_highest(shown, lines, 'attackers')}",
    )


def draw_attackers(evaluation: Evaluation, finding: Finding) -> Drawing | None:
    """The attackers of a suite side by side: each copy, all copies together, and what chance gives."""
    rows = rows_about(evaluation.summary, finding.key, status="ok")
    rows = numeric(rows, ("rapid", "ci_low", "ci_high", "baseline_rate")).dropna(subset=["rapid"])
    if rows["attacker"].nunique() < 2 and len(rows) < 2:
        return None
    order = rows.groupby("attacker")["rapid"].max().sort_values(ascending=False, kind="stable")
    shown = [str(a) for a in order.index[:MOST_ROWS]]
    figure, axes = _row_figure(shown, extra=0.35)
    for i, attacker in enumerate(shown):
        part = rows[rows["attacker"] == attacker].sort_values("replicate")
        each, pooled = part[part["replicate"] != POOLED], part[part["replicate"] == POOLED]
        spread = np.linspace(-0.22, 0.22, len(each)) if len(each) > 1 else np.zeros(len(each))
        label = "each copy" if len(pooled) or len(each) > 1 else "at risk"
        _whiskers(axes, each, i + spread, "o", COLOURS[0], label)
        _whiskers(axes, pooled, np.full(len(pooled), i + 0.36), "D", COLOURS[1], "all copies together")
        axes.plot(part["baseline_rate"], np.full(len(part), i), "|", color=GREY, markersize=11, label="chance")
    axes.set_xlabel("people at risk")
    _legend(figure, axes)
    listed = "; ".join(f"{name(a)} up to {percent(order[a])}" for a in shown)
    return Drawing(
        figure, f"Attackers compared: {name(finding.key['sensitive_attribute'])}",
        f"Share of people at risk by attacker: {listed}.", f"Bars are intervals.{_highest(shown, order, 'attackers')}",
    )


def draw_classes(evaluation: Evaluation, finding: Finding) -> Drawing | None:
    """Share at risk of each class of a categorical attribute, most frequent class first."""
    rows = numeric(rows_behind(evaluation.classes, finding), ("rapid", "n", "class_rank", "prevalence"))
    rows = rows.dropna(subset=["rapid"]).sort_values("class_rank") if len(rows) else rows
    if not len(rows):
        return None
    shown = rows.head(MOST_ROWS)
    labels = [f"{name(r['class_label'])} ({percent(r['prevalence'])})" for r in rows_of(shown)]
    return _bars(
        shown, labels, "people of the class at risk", f"By class: {name(finding.key['sensitive_attribute'])}",
        "Share at risk by class", _whose(finding) + _left_out(len(rows) - len(shown), "classes"),
    )


def draw_gain(evaluation: Evaluation, finding: Finding) -> Drawing | None:
    """Histogram of the score by true class, from the aggregated table `gain_histogram`."""
    rows = numeric(rows_behind(table(evaluation, "gain_histogram"), finding), ("bin_low", "bin_high", "n"))
    rows = rows.dropna(subset=["bin_low", "bin_high", "n"]) if len(rows) else rows
    if not len(rows) or rows["n"].sum() <= 0:
        return None
    totals = rows.groupby("class_label")["n"].sum().sort_values(ascending=False, kind="stable")
    shown = [label for label in totals.index[:MOST_CLASSES] if totals[label] > 0]
    figure = Figure(figsize=(WIDTH, 0.8 + 0.85 * len(shown)), layout="constrained")
    threshold = float(finding.row["threshold"])
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for axes, label in zip(panels, shown, strict=True):
        part = rows[rows["class_label"] == label]
        width = (part["bin_high"] - part["bin_low"]).to_numpy()
        share = part["n"].to_numpy() / totals[label]
        risky = (part["bin_low"] >= threshold - 1e-12).to_numpy()
        left = part["bin_low"].to_numpy()
        for mask, colour, hatch in ((~risky, COLOURS[4], None), (risky, COLOURS[1], "////")):
            axes.bar(left[mask], share[mask], width[mask], align="edge", color=colour, hatch=hatch,
                     edgecolor="white", linewidth=0.4)
        axes.axvline(threshold, color=GREY, linewidth=0.8)
        _tidy(axes)
        axes.set_ylim(0, float(share.max()) * 1.12)
        axes.yaxis.set_major_formatter(_PERCENT)
        axes.locator_params(axis="y", nbins=3)
        heading = f"{_cut(plain(label), 2 * LABEL)} ({count(totals[label])})"
        axes.set_title(heading, fontsize=SIZE, loc="left", parse_math=False)
    measure = str(finding.row["measure"])
    panels[-1].set_xlabel({"normalized_gain": "normalised gain"}.get(measure, measure), fontsize=SIZE)
    return Drawing(
        figure, f"Score by true class: {name(finding.key['sensitive_attribute'])}",
        f"Histograms of the score, one per true class; those above the threshold {threshold:g} are at risk.",
        _whose(finding) + " Hatched: above the threshold." + _left_out(len(totals) - len(shown), "classes"),
    )


def subgroup_columns(evaluation: Evaluation, finding: Finding) -> list[str]:
    """Quasi-identifiers with subgroup figures, those whose shown levels differ most first."""
    rows = numeric(_single(rows_behind(table(evaluation, "subgroups"), finding)), ("rapid",))
    if not len(rows):
        return []
    spread = rows.groupby("column")["rapid"].agg(lambda r: (r.max() - r.min()) if r.notna().any() else -1.0)
    return [str(c) for c in spread.sort_values(ascending=False, kind="stable").index]


def draw_subgroups(
    evaluation: Evaluation, finding: Finding, column: str, ordered: bool = False
) -> Drawing | None:
    """Share at risk by level of one quasi-identifier, with intervals; withheld cells are marked as such.

    Args:
        evaluation: result tables.
        finding: which combination.
        column: quasi-identifier.
        ordered: keep the order of the table (bins of a numeric one) in place of the highest rate first.
    """
    rows = _single(rows_behind(table(evaluation, "subgroups"), finding))
    rows = numeric(rows, ("rapid", "ci_low", "ci_high", "n")) if len(rows) else rows
    rows = rows[rows["column"] == column] if len(rows) else rows
    if not len(rows):
        return None
    shown = rows if ordered else rows.sort_values("rapid", ascending=False, na_position="last", kind="stable")
    shown = shown.head(MOST_ROWS)
    sizes = [f" ({count(n)})" if number(n) is not None else "" for n in shown["n"]]
    labels = [f"{plain(level)}{size}" for level, size in zip(shown["single"], sizes, strict=True)]
    withheld = int(rows["suppressed"].isin([True]).sum())
    note = _whose(finding) + (f" {withheld} of {len(rows)} levels are withheld." if withheld else "")
    note += _left_out(len(rows) - len(shown), "levels")
    what = f"{name(column)}: {name(finding.key['sensitive_attribute'])}"
    return _bars(shown, labels, "people of the group at risk", f"By {what}", f"Share at risk by {what}", note)


def draw_attribution(evaluation: Evaluation, finding: Finding, kind: str = "marginal_effect") -> Drawing | None:
    """Marginal effects (percentage points) or coefficients (log odds) of the regression of at_risk, largest first."""
    rows = numeric(rows_behind(table(evaluation, "attribution"), finding), ("estimate", "ci_low", "ci_high"))
    rows = rows[rows["kind"] == kind].dropna(subset=["estimate"]) if len(rows) else rows
    rows = rows[rows["term"] != "intercept"] if len(rows) else rows
    if not len(rows):
        return None
    shown = rows.iloc[np.argsort(-rows["estimate"].abs().to_numpy(), kind="stable")[:MOST_ROWS]]
    figure, axes = _row_figure([plain(t) for t in shown["term"]], shares=False)
    scale = 100.0 if kind == "marginal_effect" else 1.0
    x, y = shown["estimate"].to_numpy() * scale, np.arange(len(shown))
    error = np.abs(np.array([x - shown["ci_low"] * scale, shown["ci_high"] * scale - x]))
    axes.errorbar(x, y, xerr=np.nan_to_num(error), fmt="o", color=COLOURS[0], markersize=4, linewidth=1.1)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_xlabel("change in the share at risk, percentage points" if scale > 1 else "coefficient (log odds)")
    first = shown.iloc[0]
    size = f"{points(first['estimate'])} points" if scale > 1 else f"{first['estimate']:+.2f}"
    return Drawing(
        figure, f"Drivers: {name(finding.key['sensitive_attribute'])}",
        f"Terms of a logistic regression of being at risk; the largest is {plain(first['term'], 80)}, {size}.",
        _whose(finding) + _left_out(len(rows) - len(shown), "terms"),
    )


def draw_refits(evaluation: Evaluation, finding: Finding) -> Drawing | None:
    """Share at risk with each quasi-identifier alone, and with each left out, beside that with all."""
    rows = numeric(rows_behind(table(evaluation, "attribution"), finding), ("estimate", "ci_low", "ci_high"))
    rows = rows[rows["kind"].isin(("alone", "left_out"))].dropna(subset=["estimate"]) if len(rows) else rows
    if not len(rows):
        return None
    alone = rows[rows["kind"] == "alone"].set_index("term")["estimate"]
    left_out = rows[rows["kind"] == "left_out"].set_index("term")["estimate"]
    terms = {*alone.index, *left_out.index}
    shown = sorted(terms, key=lambda t: (-alone.get(t, 0.0), left_out.get(t, 1.0), str(t)))[:MOST_ROWS]
    figure, axes = _row_figure([plain(t) for t in shown], extra=0.35)
    series = (("alone", alone, "o", COLOURS[0]), ("left out", left_out, "s", COLOURS[1]))
    for kind, part, marker, colour in series:
        at = [(part[t], i) for i, t in enumerate(shown) if t in part.index]
        axes.plot([x for x, _ in at], [y for _, y in at], marker, color=colour, markersize=5, label=kind,
                  clip_on=False)
    rate = number(finding.row["rapid"])
    if rate is not None:
        axes.axvline(rate, color=GREY, linewidth=0.9, linestyle="--", label="with all")
    axes.set_xlabel("people at risk")
    _legend(figure, axes)
    texts = (f"{name(t)} alone {percent(alone.get(t))}, left out {percent(left_out.get(t))}" for t in shown)
    listed = "; ".join(texts)
    return Drawing(figure, f"Alone and left out: {name(finding.key['sensitive_attribute'])}",
                   f"Share at risk with each quasi-identifier alone and with each left out: {listed}.",
                   _whose(finding) + _left_out(len(terms) - len(shown), "quasi-identifiers"))


_REFERENCES = (
    ("rapid", "in the data", "o", 0), ("holdout_rate", "not in the data", "s", 1),
    ("population_reference", "population reference", "^", 2), ("copy_ceiling", "copy of the original", "D", 3),
)


def draw_holdout(evaluation: Evaluation, finding: Finding) -> Drawing | None:
    """Each attacker on people in the data and not in it, with the two references; the mean over copies."""
    names = [column for column, *_ in _REFERENCES]
    rows = numeric(rows_about(evaluation.summary, finding.key, status="ok"), names)
    rows = rows[rows[names[1:]].notna().any(axis=1)] if len(rows) else rows
    if not len(rows):
        return None
    pooled = bool((rows["replicate"] == POOLED).all())
    rows = rows if pooled else rows[rows["replicate"] != POOLED]
    means = rows.groupby("attacker", sort=False)[names].mean()
    means = means.sort_values("rapid", ascending=False, kind="stable").head(MOST_ROWS)
    figure, axes = _row_figure([str(a) for a in means.index], extra=0.5)
    for column, label, marker, colour in _REFERENCES:
        part = means[column].dropna()
        at = [list(means.index).index(a) for a in part.index]
        if len(part):
            axes.plot(part, at, marker, color=COLOURS[colour], markersize=6, fillstyle="none",
                      markeredgewidth=1.4, label=label, clip_on=False)
    axes.set_xlabel("people at risk")
    _legend(figure, axes)
    texts = []
    for attacker, row in means.iterrows():
        shares = [f"{label} {percent(row[c])}" for c, label, *_ in _REFERENCES if number(row[c]) is not None]
        texts.append(f"{name(attacker)}: {', '.join(shares)}")
    listed = "; ".join(texts)
    return Drawing(figure, f"Holdout against members: {name(finding.key['sensitive_attribute'])}",
                   f"Share at risk of people in the data and not in it. {listed}.", "Means over the copies.")


def svg(drawing: Drawing, ident: str) -> str:
    """A drawing as inline SVG with text alternatives: real text, nothing from outside, ids that start with `ident`.

    Args:
        drawing: what to show.
        ident: letters and digits, unique in the page.

    Returns:
        One `<svg role="img">` element; the same drawing gives the same text.
    """
    for text in drawing.figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_parse_math(False)  # a dollar sign in a name is no formula
    out = io.BytesIO()
    with _LOCK, rc_context({"svg.fonttype": "none", "svg.hashsalt": ident}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that matplotlib's own font lacks are there in the reader's
        drawing.figure.savefig(out, format="svg", metadata={"Date": None}, transparent=True)
    root = ET.fromstring(out.getvalue())
    for child in root.findall(f"{_SVG}metadata"):
        root.remove(child)
    for parent in root.iter():
        for child in [c for c in parent if c.tag == f"{_SVG}style"]:
            parent.remove(child)  # it would speak to the whole page
    used = set(re.findall(r"#([\w-]+)", " ".join(v for e in root.iter() for v in e.attrib.values())))
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        kept = {k: v for k, v in element.attrib.items() if k != "id" or v in used}
        element.attrib = {k.removeprefix(_XLINK): _attribute(k, v, ident) for k, v in kept.items()}
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "class": "plot",
                   "aria-labelledby": f"{ident}-title {ident}-desc"}
    for place, (tag, words) in enumerate((("title", drawing.title), ("desc", drawing.description))):
        label = ET.Element(tag, {"id": f"{ident}-{tag}"})
        label.text = words
        root.insert(place, label)
    return ET.tostring(root, encoding="unicode")


def _attribute(key: str, value: str, ident: str) -> str:
    """An attribute's value with ids of the page, and with coordinates to a hundredth of a point."""
    if key == "id":
        return f"{ident}-{value}"
    if key == f"{_XLINK}href":
        return f"#{ident}-{value.removeprefix('#')}"
    if key in ("d", "x", "y", "transform", "width", "height"):
        return re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), value)
    return value.replace("url(#", f"url(#{ident}-")


def plot_curve(evaluation: Evaluation, pooled: bool = False, **which: str) -> Figure:
    """Share at risk against the threshold, with bands.

    Args:
        evaluation: an `Assessment`.
        pooled: attackers who train on all copies together.
        which: `sensitive_attribute`, `qi_set`, `measure`, `registry`, `release_id`; the highest when left out.

    Raises:
        ValueError: there is no such figure, or nothing to draw.
    """
    return _plotted(evaluation, lambda f: draw_curve(evaluation, f, pooled), which)


def plot_attackers(evaluation: Evaluation, **which: str) -> Figure:
    """The attackers of a suite side by side; arguments as `plot_curve`."""
    return _plotted(evaluation, lambda f: draw_attackers(evaluation, f), which)


def plot_classes(evaluation: Evaluation, **which: str) -> Figure:
    """Share at risk by class; arguments as `plot_curve`."""
    return _plotted(evaluation, lambda f: draw_classes(evaluation, f), which)


def plot_subgroups(evaluation: Evaluation, column: str, **which: str) -> Figure:
    """Share at risk by level of a quasi-identifier; other arguments as `plot_curve`."""
    return _plotted(evaluation, lambda f: draw_subgroups(evaluation, f, column), which)


def plot_attribution(evaluation: Evaluation, kind: str = "marginal_effect", **which: str) -> Figure:
    """Marginal effects, or `kind="coefficient"`; other arguments as `plot_curve`."""
    return _plotted(evaluation, lambda f: draw_attribution(evaluation, f, kind), which)


def plot_holdout(evaluation: Evaluation, **which: str) -> Figure:
    """People in the data against people not in it; arguments as `plot_curve`."""
    return _plotted(evaluation, lambda f: draw_holdout(evaluation, f), which)


def _plotted(
    evaluation: Evaluation, draw: Callable[[Finding], Drawing | None], which: Mapping[str, str]
) -> Figure:
    unknown = sorted(set(which) - set(_KEYS))
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: a figure is chosen by {', '.join(_KEYS)}")
    every = findings(evaluation.summary)
    found = [f for f in every if all(f.key[k] == v for k, v in which.items())]
    if not found:
        there = sorted({f.key[k] for f in every for k in which})
        raise ValueError(f"nothing for {dict(which)}: there is {', '.join(map(name, there)) or 'nothing at all'}")
    drawing = draw(found[0])
    if drawing is None:
        raise ValueError("nothing to draw: the table behind this figure is empty, or nothing in it is defined")
    return drawing.figure


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    _tidy(axes)
    return figure, axes


def _row_figure(labels: Sequence[str], extra: float = 0.0, shares: bool = True) -> tuple[Figure, Axes]:
    """Axes with one row per label, the first on top; x is a share unless told otherwise."""
    wrapped = [_two_lines(label) for label in labels]
    height = 0.36 if any("\n" in label for label in wrapped) or extra else 0.27
    figure, axes = _figure(0.65 + extra + height * len(labels))
    axes.set_yticks(np.arange(len(labels)), wrapped, parse_math=False, linespacing=0.95)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    if shares:
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(_PERCENT)
    else:
        axes.locator_params(axis="x", nbins=5)
    return figure, axes


def _bars(rows: pd.DataFrame, labels: Sequence[str], xlabel: str, title: str, what: str, note: str) -> Drawing:
    """Horizontal bars with intervals and values; rows without a figure are named as such, never a bar of 0."""
    figure, axes = _row_figure(labels)
    listed = []
    for i, row in enumerate(rows_of(rows)):
        rate, low, high = (number(row.get(c)) for c in ("rapid", "ci_low", "ci_high"))
        if rate is None:
            text = "withheld" if row.get("suppressed") in (True, 1) else "undefined"
            axes.text(0.01, i, text, va="center", fontsize=SIZE - 1, style="italic", color=GREY)
        else:
            axes.barh(i, rate, height=0.62, color=COLOURS[0])
            if low is not None and high is not None:
                axes.plot([low, high], [i, i], color="#000000", linewidth=1.2)
            end = max(rate, high or 0.0)
            axes.text(end + 0.015, i, percent(rate), va="center", fontsize=SIZE - 1)
            text = f"{percent(rate)} {interval(low, high)}".strip()
        listed.append(f"{plain(labels[i], 80)}: {text}")
    axes.set_xlim(0, 1.2)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0])
    axes.set_xlabel(xlabel)
    return Drawing(figure, title, f"{what}. {'; '.join(listed)}.", note)


def _whiskers(axes: Axes, part: pd.DataFrame, y: np.ndarray, marker: str, colour: str, label: str) -> None:
    x = part["rapid"].to_numpy()
    error = np.array([x - part["ci_low"].to_numpy(), part["ci_high"].to_numpy() - x])
    if len(x):
        axes.errorbar(x, y, xerr=np.clip(np.nan_to_num(error), 0, None), fmt=marker, color=colour,
                      markersize=4, linewidth=1.0, label=label, clip_on=False)


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SIZE - 0.5)
    axes.xaxis.label.set_fontsize(SIZE)
    axes.yaxis.label.set_fontsize(SIZE)
    axes.patch.set_visible(False)


def _legend(figure: Figure, axes: Axes) -> None:
    """One entry per name, below the axes where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    first = {label: handle for handle, label in reversed(list(zip(handles, labels, strict=True)))}
    order = list(dict.fromkeys(labels))
    columns = 1 if max(map(len, order)) > LABEL else (2 if max(map(len, order)) > LABEL // 2 else 3)
    figure.legend([first[label] for label in order], order, loc="outside lower center", ncols=columns,
                  frameon=False, fontsize=SIZE - 0.5, handlelength=2.6, columnspacing=1.2)


def _thinned(line: pd.DataFrame, keep: float) -> pd.DataFrame:
    """At most MOST_POINTS points, among them the ends and the one at `keep`."""
    if len(line) <= MOST_POINTS:
        return line
    places = {*np.linspace(0, len(line) - 1, MOST_POINTS - 1).round().astype(int),
              int(np.abs(line.index.to_numpy() - keep).argmin())}
    return line.iloc[sorted(places)]


def _single(frame: pd.DataFrame) -> pd.DataFrame:
    """Subgroups by one quasi-identifier, with its name as `column` and the level as `single`."""
    if not len(frame):
        return frame
    one = frame[[len(columns) == 1 for columns in frame["columns"]]]
    names, levels = ([str(cell[0]) for cell in one[c]] for c in ("columns", "level"))
    return one.assign(column=names, single=levels)


def _threshold_label(row: Mapping[str, Any]) -> str:
    measure = str(row["measure"])
    if row["target_type"] == "categorical":
        return f"threshold τ ({measure})"
    units = {"absolute": "unit of the attribute", "normalised": "spread of the attribute"}
    unit = units.get(measure, "share")
    return f"tolerance ({measure} error, {unit})"


def _whose(finding: Finding) -> str:
    row = finding.row
    several = len(finding.rows) > 1 or finding.basis == "pooled"
    return f"Attacker {name(row['attacker'])}{', ' + replicate(row['replicate']) if several else ''}."


def _highest(shown: Sequence[str], every: Sized, what: str) -> str:
    return f" The {len(shown)} highest of {len(every)} {what} are drawn." if len(shown) < len(every) else ""


def _left_out(n: int, what: str) -> str:
    return f" {n} more {what} are in the table." if n > 0 else ""


def _short(text: str) -> str:
    """A name cut in its middle: of an import path both ends tell."""
    text = plain(text)
    return text if len(text) <= LABEL + 6 else f"{text[: LABEL // 2]}…{text[-LABEL // 2 - 4:]}"


def _two_lines(text: str) -> str:
    """A label on at most two lines, cut where it is longer."""
    text = plain(text)
    if _columns(text) <= LABEL:
        return text
    head = _cut(text, LABEL + 1).removesuffix("…")
    space = head.rfind(" ")
    head = head[:space] if space >= LABEL // 2 else head
    return f"{head}\n{_cut(text[len(head):].strip(), LABEL)}"


def _cut(text: str, columns: int) -> str:
    if _columns(text) <= columns:
        return text
    while _columns(text) > columns - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def _columns(text: str) -> int:
    """Half-width characters that a text takes."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _percent_tick(value: float, _: Any) -> str:
    return f"{100 * value:.4g} %"


_PERCENT = FuncFormatter(_percent_tick)
