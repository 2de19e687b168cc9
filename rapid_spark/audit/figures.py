"""Figures of an audit: registries compared, raw beside standardised, and releases over time with their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from rapid_spark.plots import COLOURS, GREY, MARKERS, SIZE, STYLES, WIDTH, Drawing
from rapid_spark.suite import rows_of
from rapid_spark.wording import count, interval, name, number, percent, plain

MOST_REGISTRIES = 30
MOST_LINES = len(COLOURS)
FAILED = "#b00020"
CROSSED = "not cleared"
_PERCENT = FuncFormatter(lambda value, _: f"{100 * value:.4g} %")


def headline(rows: pd.DataFrame) -> pd.DataFrame:
    """Of one attribute, the rows of the attacker with the highest mean rate over registries."""
    parts = [part for _, part in rows.groupby(["qi_set", "measure", "attacker"], sort=False)]
    return max(parts, key=lambda part: float(pd.to_numeric(part["rapid"]).mean()))


def draw_comparison(rows: pd.DataFrame) -> Drawing | None:
    """Registries side by side on one attribute: the raw rate above the standardised one, with intervals.

    Args:
        rows: rows of audit_comparison of one attribute; those of the attacker with the highest mean are drawn.
    """
    if not len(rows):
        return None
    mine = rows_of(headline(rows))
    mine.sort(key=lambda r: -(number(r["standardised"]) or number(r["rapid"]) or 0.0))
    shown = mine[:MOST_REGISTRIES]
    figure, axes = _axes(0.95 + 0.45 * len(shown))
    labels = [f"{plain(r['registry'], 24)} {plain(r['release_id'], 12)}\n{count(r['n'])} records" for r in shown]
    axes.set_yticks(np.arange(len(shown)), labels, parse_math=False, linespacing=1.2)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    kinds = (("raw", ("rapid", "ci_low", "ci_high"), -0.13, 0),
             ("standardised", ("standardised", "standardised_low", "standardised_high"), 0.13, 1))  # fmt: skip
    highest = 0.0
    for kind, columns, shift, style in kinds:
        for i, row in enumerate(shown):
            rate, low, high = (number(row[c]) for c in columns)
            if rate is None:
                continue
            axes.plot([rate if low is None else low, rate if high is None else high], [i + shift] * 2, "-",
                      color=COLOURS[style], linewidth=1.2)  # fmt: skip
            axes.plot([rate], [i + shift], MARKERS[(0, 3)[style]], color=COLOURS[style], markersize=4.5, label=kind)
            highest = max(highest, rate if high is None else high)
    axes.set_xlim(0, min(1.0, highest * 1.15 + 0.02))
    axes.locator_params(axis="x", nbins=6)
    axes.xaxis.set_major_formatter(_PERCENT)
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    axes.set_xlabel("people at risk", fontsize=SIZE)
    _legend(figure, axes)
    listed = "; ".join(
        f"{name(r['registry'])} {percent(r['rapid'])} {interval(r['ci_low'], r['ci_high'])}, standardised "
        f"{percent(r['standardised'])}".strip() for r in shown
    )  # fmt: skip
    attribute, attacker = name(mine[0]["sensitive_attribute"]), name(mine[0]["attacker"])
    more = f" {len(mine) - len(shown)} more are in the table." if len(mine) > len(shown) else ""
    return Drawing(
        figure, f"Registries compared: {attribute}", f"Share of people at risk in the latest release: {listed}.",
        f"Attacker {attacker}, the one with the highest rate on average, set alike everywhere. Bars are intervals.{more}",
    )  # fmt: skip


def draw_releases(rates: pd.DataFrame, attribute: str) -> Drawing | None:
    """The figure to decide by of each release, a line per registry; releases that are not cleared are crossed.

    Args:
        rates: columns registry, release_id, place (0, 1, .. in the registry's order), rate, verdict; of one attribute.
        attribute: its name.
    """
    known = rates.dropna(subset=["rate"])
    if not len(known) or known["place"].nunique() < 2:
        return None
    order = known.groupby("registry")["rate"].max().sort_values(ascending=False, kind="stable").index
    shown = [str(r) for r in order[:MOST_LINES]]
    figure, axes = _axes(3.0)
    ticks: dict[int, list[str]] = {}
    for i, registry in enumerate(shown):
        mine = known[known["registry"] == registry].sort_values("place")
        axes.plot(mine["place"], mine["rate"], linestyle=STYLES[i], color=COLOURS[i], marker=MARKERS[i], markersize=4.5,
                  label=plain(registry, 24))  # fmt: skip
        bad = mine[mine["verdict"] != "pass"]
        axes.plot(bad["place"], bad["rate"], "x", color=FAILED, markersize=11, markeredgewidth=2, label=CROSSED, zorder=5)
        for row in rows_of(mine):
            ticks.setdefault(int(row["place"]), []).append(str(row["release_id"]))
    # the same place of every registry may have another name: then the place is numbered
    same = all(len(set(names)) == 1 for names in ticks.values())
    axes.set_xticks(sorted(ticks), [plain(ticks[p][0], 14) if same else f"release {p + 1}" for p in sorted(ticks)])
    axes.set_xlim(min(ticks) - 0.2, max(ticks) + 0.2)
    axes.set_ylim(0, min(1.0, float(known["rate"].max()) * 1.2 + 0.02))
    axes.yaxis.set_major_formatter(_PERCENT)
    axes.set_ylabel("people at risk", fontsize=SIZE)
    axes.grid(alpha=0.25, linewidth=0.6)
    _legend(figure, axes)
    listed = "; ".join(
        f"{name(r['registry'])} {name(r['release_id'])} {percent(r['rate'])}{_crossed(r)}"
        for r in rows_of(known.sort_values(["registry", "place"]))
    )
    left = len(order) - len(shown)
    return Drawing(
        figure, f"Releases over time: {name(attribute)}", f"Largest share at risk over attackers: {listed}.",
        "Largest over attackers." + (f" The {len(shown)} highest registries are drawn." if left else ""),
    )  # fmt: skip


def _crossed(row: Mapping[str, Any]) -> str:
    return "" if row["verdict"] == "pass" else f", {CROSSED}"


def _axes(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(labelsize=SIZE - 0.5)
    axes.patch.set_visible(False)
    return figure, axes


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    first: Mapping[str, Any] = {label: handle for handle, label in reversed(list(zip(handles, labels, strict=True)))}
    names: Sequence[str] = sorted(dict.fromkeys(labels), key=lambda text: text == CROSSED)
    lines = [first[text] for text in names if isinstance(first[text], Line2D)]
    figure.legend(lines, names, loc="outside lower center", ncols=3 if max(map(len, names)) <= 12 else 2, frameon=False,
                  fontsize=SIZE - 0.5, handlelength=2.6, columnspacing=1.2)  # fmt: skip
