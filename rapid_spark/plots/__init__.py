"""Figures of an evaluation from its result tables alone, by matplotlib without a display and without pyplot.

Each `draw_*` function takes anything with `summary`, `curve`, `classes` and `tables` (an `Assessment`, or the
report's data) and a `Finding`, and gives a `Drawing`: the figure with its text alternative, or None where there
is nothing to draw. What is undefined or suppressed is never drawn as a bar of 0. The `plot_*` functions are for
notebooks and give the matplotlib Figure. Colours are those of Okabe and Ito (2008), safe for colour-blind
readers; markers and line styles tell things apart as well.
"""

from .answers import draw_calibration, draw_classes, draw_gain
from .basics import (
    COLOURS,
    GREY,
    MARKERS,
    MOST_POINTS,
    SIZE,
    STYLES,
    WIDTH,
    Drawing,
    Evaluation,
    numeric,
    rows_about,
    rows_behind,
    table,
    without_labels,
)
from .drivers import draw_attribution, draw_refits, draw_subgroups, subgroup_columns
from .inline import svg
from .notebook import (
    plot_attackers,
    plot_attribution,
    plot_calibration,
    plot_classes,
    plot_curve,
    plot_gain,
    plot_holdout,
    plot_subgroups,
)
from .rates import draw_attackers, draw_curve, draw_holdout

__all__ = [
    "COLOURS", "GREY", "MARKERS", "MOST_POINTS", "SIZE", "STYLES", "WIDTH", "Drawing", "Evaluation", "draw_attackers",
    "draw_attribution", "draw_calibration", "draw_classes",
    "draw_curve", "draw_gain", "draw_holdout", "draw_refits", "draw_subgroups", "numeric", "plot_attackers",
    "plot_attribution", "plot_calibration", "plot_classes", "plot_curve", "plot_gain", "plot_holdout", "plot_subgroups",
    "rows_about", "rows_behind", "subgroup_columns", "svg", "table", "without_labels",
]  # fmt: skip
