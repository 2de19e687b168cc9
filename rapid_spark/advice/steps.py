"""Steps that make a release coarser, proposed from its own columns. Pure: pandas in, configuration out.

Rows chosen by their flags are never proposed for deletion: which rows are missing would itself tell who was at risk.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..config import Bands
from ..granularity import number_text

DELETION = (
    "Deleting the rows of people at risk is not among the steps: which rows are missing would itself tell who was at risk, "
    "and an attacker could learn from it."
)
OTHER = "other"
BANDS = (8, 4)  # bands wanted of a numeric column
FEW = 8  # distinct numbers that need no bands
MANY = 40  # from here on rounding is worth trying
RARE = 0.05  # share of a rare level
KEPT = 3  # levels that stay where a column is merged strongly
CODE = re.compile(r"[A-Za-z0-9]{3,12}")


@dataclass(frozen=True)
class Column:
    """A quasi-identifier of the release.

    Attributes:
        name: its name.
        numeric: whether it holds numbers.
        values: its values, missing ones as null.
    """

    name: str
    numeric: bool
    values: pd.Series


@dataclass(frozen=True)
class Step:
    """A change of a release.

    Attributes:
        text: in words.
        recode: configuration of the columns it changes, as under `recode`.
        replicates: copies that are published; None: all.
        kind: 'bands', 'round', 'limits', 'merge', 'mask', 'drop', 'replicates' or 'combination'.
    """

    text: str
    recode: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    replicates: int | None = None
    kind: str = "combination"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns it changes."""
        return tuple(sorted(self.recode))


def propose(columns: Iterable[Column], replicates: int = 1) -> list[Step]:
    """Steps for the quasi-identifiers of a release with so many copies.

    Args:
        columns: the quasi-identifiers as the release holds them.
        replicates: published copies.
    """
    found: list[Step] = []
    for column in columns:
        found += _of_numbers(column) if column.numeric else _of_levels(column)
        found.append(Step(f"drop {column.name}", {column.name: {"drop": True}}, kind="drop"))
    for fewer in sorted({1, replicates // 2} - {0}):
        if fewer < replicates:
            copies = "one copy" if fewer == 1 else f"{fewer} copies"
            found.append(Step(f"publish {copies} of {replicates}", replicates=fewer, kind="replicates"))
    return found


def combine(steps: Sequence[Step]) -> Step:
    """Several steps at once; where two change the same column, the earlier one does."""
    recode: dict[str, Mapping[str, Any]] = {}
    for step in steps:
        recode |= {name: what for name, what in step.recode.items() if name not in recode}
    fewer = [s.replicates for s in steps if s.replicates is not None]
    return Step("; ".join(s.text for s in steps), recode, min(fewer) if fewer else None)


def nice(width: float, up: bool = True) -> float:
    """The next of 1, 2, 5, 10, 20, 50, .. (or 0.1, 0.2, 0.5, ..) from a width on; the one before, with `up` false."""
    power = 10.0 ** math.floor(math.log10(width))
    ladder = [power * f for f in (1, 2, 5, 10)]
    chosen = [x for x in ladder if x >= width * (1 - 1e-9)] if up else [x for x in ladder if x <= width * (1 + 1e-9)]
    return float(f"{chosen[0] if up else chosen[-1]:.12g}")


def _of_numbers(column: Column) -> list[Step]:
    values = column.values.dropna().to_numpy(dtype=float)
    distinct = np.unique(values)
    if len(distinct) <= FEW:
        return []
    low, high = np.quantile(values, [0.01, 0.99])
    if not high > low:
        return []
    whole = bool(np.all(distinct == np.floor(distinct)))
    found, seen = [], set()
    for wanted in BANDS:
        width = nice((high - low) / wanted)
        if whole and width < 2 or width in seen:
            continue
        seen.add(width)
        bands = Bands(width=width, style="range" if whole else "interval")
        recode = {"bands": {"width": width, "style": bands.style}}
        found.append(Step(f"{column.name} in bands of {number_text(width)}", {column.name: recode}, kind="bands"))
    fine = nice((high - low) / 20)
    if len(distinct) > MANY and fine not in seen and (not whole or fine >= 2):
        text = f"{column.name} rounded to {number_text(fine)}"
        found.append(Step(text, {column.name: {"round": fine}}, kind="round"))
    return found + _limits(column, values, nice((high - low) / 20, up=False))


def _limits(column: Column, values: np.ndarray, grain: float) -> list[Step]:
    """Top and bottom codes at about the 5 and 95 percent quantiles."""
    bottom, top = np.quantile(values, [0.05, 0.95])
    bottom, top = float(np.ceil(bottom / grain) * grain), float(np.floor(top / grain) * grain)
    bottom, top = float(f"{bottom:.12g}"), float(f"{top:.12g}")
    recode: dict[str, Any] = {}
    recode |= {"bottom": bottom} if (values < bottom).any() else {}
    recode |= {"top": top} if (values > top).any() else {}
    if not recode or bottom >= top:
        return []
    said = " and ".join(f"{'below' if k == 'bottom' else 'above'} {number_text(v)}" for k, v in recode.items())
    return [Step(f"{column.name} cut off {said}", {column.name: recode}, kind="limits")]


def _of_levels(column: Column) -> list[Step]:
    shares = column.values.dropna().astype(str).value_counts(normalize=True)
    shares = shares.sort_index().sort_values(ascending=False, kind="stable")
    found: list[Step] = []
    rare = [level for level, share in shares.items() if share < RARE]
    other = OTHER if OTHER not in set(shares.index) - set(rare) else "all others"
    if len(rare) >= 2 and len(shares) - len(rare) >= 1:
        text = f"{column.name}: {len(rare)} rare levels merged"
        found.append(Step(text, {column.name: {"merge": {other: sorted(rare)}}}, kind="merge"))
    least = list(shares.index[KEPT:])
    if len(shares) > KEPT + 2 and len(least) > len(rare):
        text = f"{column.name}: all but the {KEPT} largest levels merged"
        found.append(Step(text, {column.name: {"merge": {other: sorted(least)}}}, kind="merge"))
    lengths = {len(level) for level in shares.index}
    if len(shares) > 10 and len(lengths) == 1 and all(CODE.fullmatch(level) for level in shares.index):
        keep = max(1, lengths.pop() // 2)
        text = f"{column.name}: the first {keep} characters only"
        found.append(Step(text, {column.name: {"mask": {"keep": keep}}}, kind="mask"))
    return found
