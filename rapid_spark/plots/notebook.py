"""Figures for notebooks, as matplotlib gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure

from ..wording import Finding, findings, name
from .answers import draw_calibration, draw_classes, draw_gain
from .basics import KEYS, Drawing, Evaluation
from .drivers import draw_attribution, draw_subgroups
from .rates import draw_attackers, draw_curve, draw_holdout


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


def plot_gain(evaluation: Evaluation, **which: str) -> Figure:
    """Histogram of the score by true class; arguments as `plot_curve`."""
    return _plotted(evaluation, lambda f: draw_gain(evaluation, f), which)


def plot_calibration(evaluation: Evaluation, **which: str) -> Figure:
    """What the attacker says against how often it is so; arguments as `plot_curve`."""
    return _plotted(evaluation, lambda f: draw_calibration(evaluation, f), which)


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
    unknown = sorted(set(which) - set(KEYS))
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: a figure is chosen by {', '.join(KEYS)}")
    every = findings(evaluation.summary)
    found = [f for f in every if all(f.key[k] == v for k, v in which.items())]
    if not found:
        there = sorted({f.key[k] for f in every for k in which})
        raise ValueError(f"nothing for {dict(which)}: there is {', '.join(map(name, there)) or 'nothing at all'}")
    drawing = draw(found[0])
    if drawing is None:
        raise ValueError("nothing to draw: the table behind this figure is empty, or nothing in it is defined")
    return drawing.figure
