"""What all figures share: rows of result tables, axes, labels. Matplotlib without a display and without pyplot."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from ..suite import rows_of
from ..wording import Finding, interval, name, number, percent, plain, replicate

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
STYLES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), "-")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#5f6368"
WIDTH = 4.7  # inches; at this width letters stay legible on a telephone
SIZE = 9.0  # of letters, points
MOST_ROWS = 15
MOST_POINTS = 60  # of a line
LABEL = 24  # half-width characters of one line of a label
KEYS = ("registry", "release_id", "qi_set", "sensitive_attribute", "measure")


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


@dataclass(frozen=True)
class Unlabelled:
    """Result tables in which classes are named by their rank; no subgroups, patterns or terms of a regression."""

    summary: pd.DataFrame
    curve: pd.DataFrame
    classes: pd.DataFrame
    tables: Mapping[str, pd.DataFrame]


def without_labels(evaluation: Evaluation) -> Unlabelled:
    """The same results without any value of the data, for places that must not hold one."""
    classes = evaluation.classes
    ranks = {
        (r["sensitive_attribute"], r["class_label"]): f"class {int(r['class_rank'])}"
        for r in rows_of(classes) if number(r.get("class_rank")) is not None
    }

    def ranked(frame: pd.DataFrame | None) -> pd.DataFrame:
        if frame is None or not len(frame):
            return pd.DataFrame()
        keys = zip(frame["sensitive_attribute"], frame["class_label"], strict=True)
        return frame.assign(class_label=[ranks.get(key, "class") for key in keys])

    terms = table(evaluation, "attribution")
    if terms is None or not len(terms):
        terms = pd.DataFrame()
    else:
        terms = terms[terms["kind"].isin(("alone", "left_out"))]  # these name columns only
    tables = {"risk_distributions": ranked(table(evaluation, "distributions")), "risk_attribution": terms}
    return Unlabelled(evaluation.summary, evaluation.curve, ranked(classes), tables)


def rows_about(frame: pd.DataFrame | None, key: Mapping[str, Any], **more: Any) -> pd.DataFrame:
    """Rows of a result table about one finding: scored on the original, unweighted."""
    if frame is None or not len(frame):
        return pd.DataFrame()
    wanted = {**{c: key[c] for c in KEYS if c in key}, "scored_on": "original", "weighting": "none", **more}
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


def new_figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    tidy(axes)
    return figure, axes


def row_figure(labels: Sequence[str], extra: float = 0.0, shares: bool = True) -> tuple[Figure, Axes]:
    """Axes with one row per label, the first on top; x is a share unless told otherwise."""
    wrapped = [two_lines(label) for label in labels]
    height = 0.36 if any("\n" in label for label in wrapped) or extra else 0.27
    figure, axes = new_figure(0.65 + extra + height * len(labels))
    axes.set_yticks(np.arange(len(labels)), wrapped, parse_math=False, linespacing=0.95)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    if shares:
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(PERCENT)
    else:
        axes.locator_params(axis="x", nbins=5)
    return figure, axes


def bars(rows: pd.DataFrame, labels: Sequence[str], xlabel: str, title: str, what: str, note: str) -> Drawing:
    """Horizontal bars with intervals and values; rows without a figure are named as such, never a bar of 0."""
    figure, axes = row_figure(labels)
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


def tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SIZE - 0.5)
    axes.xaxis.label.set_fontsize(SIZE)
    axes.yaxis.label.set_fontsize(SIZE)
    axes.patch.set_visible(False)
    axes.set_axisbelow(True)


def legend(figure: Figure, axes: Axes) -> None:
    """One entry per name, below the axes where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    first = {label: handle for handle, label in reversed(list(zip(handles, labels, strict=True)))}
    order = list(dict.fromkeys(labels))
    columns = 1 if max(map(len, order)) > LABEL else (2 if max(map(len, order)) > LABEL // 2 else 3)
    figure.legend([first[label] for label in order], order, loc="outside lower center", ncols=columns,
                  frameon=False, fontsize=SIZE - 0.5, handlelength=2.6, columnspacing=1.2)


def thinned(line: pd.DataFrame, keep: float) -> pd.DataFrame:
    """At most MOST_POINTS points, among them the ends and the one at `keep`."""
    if len(line) <= MOST_POINTS:
        return line
    places = {*np.linspace(0, len(line) - 1, MOST_POINTS - 1).round().astype(int),
              int(np.abs(line.index.to_numpy() - keep).argmin())}
    return line.iloc[sorted(places)]


def threshold_label(row: Mapping[str, Any]) -> str:
    measure = str(row["measure"])
    if row["target_type"] == "categorical":
        return f"threshold τ ({measure})"
    units = {"absolute": "unit of the attribute", "normalised": "spread of the attribute"}
    unit = units.get(measure, "share")
    return f"tolerance ({measure} error, {unit})"


def whose(finding: Finding) -> str:
    row = finding.row
    several = len(finding.rows) > 1 or finding.basis == "pooled"
    return f"Attacker {name(row['attacker'])}{', ' + replicate(row['replicate']) if several else ''}."


def highest(shown: Sequence[str], every: Sized, what: str) -> str:
    return f" The {len(shown)} highest of {len(every)} {what} are drawn." if len(shown) < len(every) else ""


def left_out(n: int, what: str) -> str:
    return f" {n} more {what} are in the table." if n > 0 else ""


def short(text: str) -> str:
    """A name cut in its middle: of an import path both ends tell."""
    text = plain(text)
    return text if len(text) <= LABEL + 6 else f"{text[: LABEL // 2]}…{text[-LABEL // 2 - 4:]}"


def two_lines(text: str) -> str:
    """A label on at most two lines, cut where it is longer."""
    text = plain(text)
    if columns_of(text) <= LABEL:
        return text
    head = cut(text, LABEL + 1).removesuffix("…")
    # after a space, or where a name or level has a joint
    places = (head.rfind(mark) + 1 for mark in (" ", "=", "-", "_", "/"))
    head = head[: next((at for at in places if at >= LABEL // 2), len(head))]
    return f"{head.strip()}\n{cut(text[len(head):].strip(), LABEL)}"


def cut(text: str, columns: int) -> str:
    if columns_of(text) <= columns:
        return text
    while columns_of(text) > columns - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def columns_of(text: str) -> int:
    """Half-width characters that a text takes."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _percent_tick(value: float, _: Any) -> str:
    return f"{100 * value:.4g} %"


PERCENT = FuncFormatter(_percent_tick)
