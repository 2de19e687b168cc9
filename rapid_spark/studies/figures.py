"""Figures of the studies and of cross-validation, by matplotlib without a display and without pyplot.

Colours and markers are those of the package's other figures: safe for colour-blind readers, and told apart by line
style and marker as well. Published figures are hollow diamonds with their standard deviation.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rapid_spark.config import ConfigError
from rapid_spark.plots import COLOURS, GREY, MARKERS, SIZE, STYLES

from .simulation import ALL, ALONE, Outcome

FORMATS = (".png", ".svg", ".pdf")
LABEL = 32  # characters of a generator's name
Row = Mapping[str, Any]


def check_place(path: Path) -> None:
    """Refuse a place for a figure before anything runs.

    Raises:
        ConfigError: the ending is none that is known, or there is no such folder.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"--figure {path}: the ending must be one of {', '.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"--figure {path}: there is no folder {path.absolute().parent}")


def save(figure: Figure, path: Path) -> Path:
    """Write a figure in the form its ending says; the file is there whole or not at all.

    Raises:
        ConfigError: the place cannot be written.
    """
    try:
        handle, partial = tempfile.mkstemp(prefix=".figure-", suffix=path.suffix, dir=path.absolute().parent)
        os.close(handle)
        try:
            with rc_context({"svg.hashsalt": "rapid_spark"}):
                figure.savefig(partial, dpi=150)
            os.chmod(partial, 0o600)
            os.replace(partial, path)
        finally:
            Path(partial).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"--figure {path} cannot be written: {error.strerror}") from None
    return path


def draw(outcome: Outcome) -> Figure:
    """The figure of a study, with the published values beside ours."""
    return {1: _against_kappa, 2: _against_tau, 3: _singly, 4: _by_attacker}[outcome.study.number](outcome)


def _against_kappa(outcome: Outcome) -> Figure:
    figure, axes = _axes(5.6, 3.8)
    rows = [r for r in outcome.results if r["tau"] == outcome.study.taus[0]]
    kappa = np.array([r["kappa"] for r in rows])
    for i, (figure_name, sd, paper, label) in enumerate(
        (("mean", "sd", "published_mean", "RAPID"), ("accuracy", None, "published_accuracy", "accuracy"))
    ):
        values = np.array([r[figure_name] for r in rows])
        if sd:
            spread = np.array([r[sd] or 0.0 for r in rows])
            axes.fill_between(kappa, values - spread, values + spread, color=COLOURS[i], alpha=0.18, linewidth=0)
        axes.plot(kappa, values, STYLES[i], marker=MARKERS[i], color=COLOURS[i], markersize=4, label=label)
        known = [(r["kappa"], r[paper]) for r in rows if r[paper] is not None]
        if known:
            axes.plot(*zip(*known, strict=True), "D", color=COLOURS[i], markerfacecolor="white", markersize=7,
                      zorder=1, label=f"{label}, published (about)")  # fmt: skip
    axes.set_xscale("symlog", linthresh=1.0)
    ticks = [k for k in (0, 1, 2, 5, 10, 20, 50, 100) if kappa.min() <= k <= kappa.max()]
    axes.set_xticks(ticks, [f"{k:g}" for k in ticks])
    axes.minorticks_off()
    axes.set_xlabel("κ, strength of dependence (linear up to 1, then logarithmic)")
    axes.set_ylabel(f"share of people at risk (τ {outcome.study.taus[0]:g}), accuracy")
    return _finished(figure, axes)


def _against_tau(outcome: Outcome) -> Figure:
    figure, axes = _axes(5.6, 3.8)
    attacker = outcome.study.attackers[0]
    for i, kappa in enumerate(outcome.study.kappas):
        colour, style, marker = (x[i % len(x)] for x in (COLOURS, STYLES, MARKERS))
        if (kappa, ALL, ALL, attacker) not in outcome.rates:
            continue
        line = outcome.curve(kappa, attacker)
        axes.plot(*zip(*line, strict=True), linestyle=style, color=colour, marker=marker, markersize=3, label=f"κ {kappa:g}")
        known = [r for r in outcome.results if r["kappa"] == kappa and r["published_mean"] is not None]
        if known:
            axes.errorbar([r["tau"] for r in known], [r["published_mean"] for r in known],
                          [r["published_sd"] or 0.0 for r in known], fmt="D", color="black",
                          markerfacecolor="none", markersize=6, linewidth=0.8, label="published, ± sd")  # fmt: skip
    axes.set_xlabel("threshold τ")
    axes.set_ylabel("share of people at risk")
    return _finished(figure, axes)


def _singly(outcome: Outcome) -> Figure:
    rows = [r for r in outcome.results if r["setting"] != ALL]
    labels = [f"{r['variable']} {'alone' if r['setting'] == ALONE else 'left out'}" for r in rows]
    figure, axes = _axes(5.8, 0.9 + 0.27 * len(rows))
    whole = next((r["mean"] for r in outcome.results if r["setting"] == ALL), None)
    if whole is not None:
        axes.axvline(whole, color=GREY, linewidth=0.8, linestyle=(0, (4, 2)), label="all five known")
    return _dots(figure, axes, rows, labels)


def _by_attacker(outcome: Outcome) -> Figure:
    rows = outcome.results
    several = len({(r["kappa"], r["tau"]) for r in rows}) > 1
    settings = [f", κ {r['kappa']:g}, τ {r['tau']:g}" if several else "" for r in rows]
    labels = [f"{r['attacker']}{setting}" for r, setting in zip(rows, settings, strict=True)]
    figure, axes = _axes(5.2, 1.3 + 0.3 * len(rows))
    return _dots(figure, axes, rows, labels, zoom=True)


def _dots(figure: Figure, axes: Axes, rows: Sequence[Row], labels: Sequence[str], zoom: bool = False) -> Figure:
    place = np.arange(len(rows))
    axes.errorbar([r["mean"] for r in rows], place - 0.12, xerr=[r["sd"] or 0.0 for r in rows], fmt="o",
                  color=COLOURS[0], markersize=4.5, linewidth=1.2, label="ours, ± sd")  # fmt: skip
    known = [(i, r) for i, r in enumerate(rows) if r["published_mean"] is not None]
    if known:
        axes.errorbar([r["published_mean"] for _, r in known], [i + 0.12 for i, _ in known],
                      xerr=[r["published_sd"] or 0.0 for _, r in known], fmt="D", color="black",
                      markerfacecolor="white", markersize=5.5, linewidth=0.8, label="published")  # fmt: skip
    axes.set_yticks(place, labels)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("share of people at risk")
    return _finished(figure, axes, vertical=False, zoom=zoom)


def draw_folds(generators: Sequence[Row], threshold: float, target: str) -> Figure:
    """Generators beside each other: every fold held out and used, and the interval of the mean.

    Args:
        generators: as `validation.summarise` gives them.
        threshold: tau or tolerance.
        target: sensitive attribute.
    """
    figure, axes = _axes(5.8, 1.5 + 0.55 * len(generators))
    for i, generator in enumerate(generators):
        folds = [f for f in generator["folds"] if f["status"] == "ok"]
        axes.plot([f["rapid_used"] for f in folds], np.full(len(folds), i + 0.2), "s", color=COLOURS[1],
                  markerfacecolor="none", markersize=4, label="folds used to make the release")  # fmt: skip
        axes.plot([f["rapid"] for f in folds], np.full(len(folds), i - 0.2), "o", color=COLOURS[0],
                  markerfacecolor="none", markersize=4, label="fold held out")  # fmt: skip
        if generator["mean"] is not None:
            if generator["ci_low"] is not None:
                axes.plot([generator["ci_low"], generator["ci_high"]], [i, i], color=COLOURS[0], linewidth=1.4)
            axes.plot([generator["mean"]], [i], "o", color=COLOURS[0], markersize=6, label="mean held out, with interval")
    axes.set_yticks(np.arange(len(generators)), [_short(str(g["generator"])) for g in generators], parse_math=False)
    axes.set_ylim(len(generators) - 0.4, -0.6)
    axes.set_xlabel(f"share of people at risk (threshold {threshold:g}): {target}", parse_math=False)
    return _finished(figure, axes, vertical=False, zoom=True)


def _short(text: str) -> str:
    """A name cut in its middle: of a command or an import path both ends tell."""
    text = " ".join(text.split())
    return text if len(text) <= LABEL else f"{text[: LABEL // 2]}…{text[-LABEL // 2 + 1:]}"


def _axes(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height + 0.4), layout="constrained")
    return figure, figure.subplots()


def _finished(figure: Figure, axes: Axes, vertical: bool = True, zoom: bool = False) -> Figure:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SIZE)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_fontsize(SIZE)
    axes.grid(axis="both" if vertical else "x", alpha=0.25, linewidth=0.6)
    if vertical:
        axes.set_ylim(0, 1.02)
    elif not zoom:
        axes.set_xlim(-0.02, 1)
    handles, labels = axes.get_legend_handles_labels()
    first = dict(zip(labels, handles, strict=True))
    figure.legend(first.values(), first.keys(), loc="outside lower center", ncols=2 if not vertical else 3,
                  frameon=False, fontsize=SIZE - 0.5)  # fmt: skip
    return figure
