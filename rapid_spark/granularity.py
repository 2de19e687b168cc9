"""Which recode turns an original's values into a release's labels: ranges, masked codes, merged levels. Text only."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from .kinds import MARKERS

MOSTLY = 0.8  # share of the labels that must have a form
MOST_LABELS = 40  # shown in a proposal
NUMBER = r"(-?\d+(?:\.\d+)?)"
MASKS = "*#xX_?"
_PAIR = re.compile(rf"^(over |above |from )?([\[\](]?)\s*{NUMBER}\s*(?:,|;|-|–|\.\.\.?| to | bis )\s*{NUMBER}\s*([\[\])]?)$")
_BELOW = re.compile(rf"^(?:(<=|≤|up to |at most )|(<|under |below |less than ))\s*{NUMBER}$")
_ABOVE = re.compile(rf"^(?:(>=|≥|at least |from )|(>|over |above |more than ))\s*{NUMBER}$")
_OPEN = re.compile(rf"^{NUMBER}\s*(?:\+|plus| and over| or over| and more| or more| and older| or older)$")


@dataclass(frozen=True)
class Range:
    """A range that a label speaks of.

    Attributes:
        low, high: its ends; None where it is open.
        without_low, without_high: whether the end itself is not in it.
        label: as written.
    """

    low: float | None
    high: float | None
    without_low: bool
    without_high: bool
    label: str


def parse_range(label: str) -> Range | None:
    """The range of a label such as '[18, 30)', '18-29', 'over 18 to 30', '<18', '65+' or 'up to 17'; None for others."""
    text = label.strip().lower()
    if pair := _PAIR.match(text):
        low, high = float(pair[3]), float(pair[4])
        if low > high:
            return None
        without_low = pair[1] in ("over ", "above ") or pair[2] in ("(", "]")
        return Range(low, high, without_low, pair[5] in (")", "["), label)
    if below := _BELOW.match(text):
        return Range(None, float(below[3]), False, below[1] is None, label)
    if above := _ABOVE.match(text):
        return Range(float(above[3]), None, above[1] is None, False, label)
    if open_ := _OPEN.match(text):
        return Range(float(open_[1]), None, False, False, label)
    return None


def fitting(release: Collection[str], original: Collection[str] = (), numeric: bool = False) -> dict[str, Any] | None:
    """The recode that would turn the original's values into the release's labels, as plain configuration.

    Args:
        release: labels of the release.
        original: labels of the original; not needed where it is numeric.
        numeric: whether the original holds numbers.

    Returns:
        Such as `{"bands": {"width": 10, "style": "range"}}`; None where no form is recognised.
    """
    labels = sorted({label.strip() for label in release} - set(MARKERS) - {""})
    if not labels:
        return None
    if numeric or _all_numbers(original):
        found = _top(labels) or _bands(labels)
        if found:
            return found
    return _mask(labels, original)


def shown(recode: dict[str, Any]) -> str:
    """A recode as a line of YAML."""
    return "{" + ", ".join(f"{key}: {_yaml(value)}" for key, value in recode.items()) + "}"


def _yaml(value: Any) -> str:
    if isinstance(value, dict):
        return shown(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_yaml(v) for v in value) + "]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z][A-Za-z ]*", value):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _all_numbers(labels: Collection[str]) -> bool:
    return bool(labels) and all(re.fullmatch(NUMBER, label.strip()) for label in labels)


def _top(labels: Sequence[str]) -> dict[str, Any] | None:
    """Numbers with an open end: top and bottom codes."""
    numbers = [float(x) for x in labels if re.fullmatch(NUMBER, x)]
    others = [parse_range(x) for x in labels if not re.fullmatch(NUMBER, x)]
    if not others or len(others) > 2 or len(numbers) < MOSTLY * len(labels):
        return None
    step = 1.0 if all(n.is_integer() for n in numbers) else 0.0  # '>90' among whole numbers begins at 91
    found: dict[str, Any] = {}
    for open_ in others:
        if open_ is not None and open_.high is None and open_.low is not None:
            found |= {"top": open_.low + step * open_.without_low, "top_label": open_.label}
        elif open_ is not None and open_.low is None and open_.high is not None:
            found |= {"bottom": open_.high - step * open_.without_high, "bottom_label": open_.label}
        else:
            return None
    return found


def _bands(labels: Sequence[str]) -> dict[str, Any] | None:
    ranges = [r for r in map(parse_range, labels) if r is not None]
    if len(ranges) < 2 or len(ranges) < MOSTLY * len(labels):
        return None
    ranges.sort(key=lambda r: (r.low is not None, r.low if r.low is not None else r.high))
    closed = [r for r in ranges if r.low is not None and r.high is not None]
    right = all(r.without_low for r in closed or ranges if r.low is not None)
    cuts = [_cut(r, right) for r in ranges if r.low is not None]
    if any(a >= b for a, b in itertools.pairwise(cuts)) or sum(r.low is None for r in ranges) > 1:
        return None
    widths = {round(b - a, 9) for a, b in itertools.pairwise(cuts)}
    if len(closed) == len(ranges) and len(widths) == 1 and not right:
        width = widths.pop()
        for style in ("range", "interval"):
            if all(r.label == equal_label(cut, width, style) for cut, r in zip(cuts, ranges, strict=True)):
                origin = {} if not cuts[0] % width else {"origin": cuts[0] % width}
                return {"bands": {"width": width, **origin, "style": style}}
    cuts = cuts if ranges[0].low is None else cuts[1:]
    if not cuts or len(ranges) > MOST_LABELS:
        return None
    return {"bands": {"cuts": cuts, **({"closed": "right"} if right else {}), "labels": [r.label for r in ranges]}}


def _cut(found: Range, right: bool) -> float:
    """Where a range begins, as a cut of bands that are closed on the right or left; bounds of the other kind are whole."""
    low = found.low or 0.0
    return low + (found.without_low - right) if low.is_integer() else low


def number_text(value: float) -> str:
    """A bound as labels show it: without needless decimals."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.10g}"


def equal_label(low: float, width: float, style: str) -> str:
    """Label of a band of equal width that begins at `low`: '[20,30)', or '20-29' in style range."""
    if style == "range":
        return f"{number_text(low)}-{number_text(low + width - 1)}"
    return f"[{number_text(low)},{number_text(low + width)})"


def cut_labels(cuts: Sequence[float], style: str, closed: str) -> tuple[str, ...]:
    """Labels of the bands between cuts, one more than there are cuts.

    Args:
        cuts: ascending.
        style: 'interval' ('<18', '[18,30)', '>=65') or 'range' of whole numbers ('<18', '18-29', '65+').
        closed: which end belongs to a band: 'left' or 'right'.
    """
    left = closed == "left"
    text = [number_text(c) for c in cuts]
    first, last = (f"<{text[0]}", f">={text[-1]}") if left else (f"<={text[0]}", f">{text[-1]}")
    if style == "range":
        if left:
            last = f"{text[-1]}+"
        inner = [
            f"{number_text(a if left else a + 1)}-{number_text(b - 1 if left else b)}"
            for a, b in itertools.pairwise(cuts)
        ]
    else:
        inner = [f"[{a},{b})" if left else f"({a},{b}]" for a, b in itertools.pairwise(text)]
    return (first, *inner, last)


def _mask(labels: Sequence[str], original: Collection[str]) -> dict[str, Any] | None:
    masked = [re.fullmatch(r"(.*?)([" + re.escape(MASKS) + r"])\2*", label) for label in labels]
    found = [m for m in masked if m is not None]
    if len(found) >= max(1, MOSTLY * len(labels)) and len({m[2] for m in found}) == 1:
        kept = {len(m[1]) for m in found}
        if len(kept) == 1 and kept != {0}:
            fill = len({len(m[0]) for m in found}) > 1 or not original or len(found[0][0]) == len(next(iter(original)))
            return {"mask": {"keep": kept.pop(), "character": found[0][2], **({} if fill else {"fill": False})}}
    lengths = {len(label) for label in labels}
    if len(lengths) == 1 and original:
        keep = lengths.pop()
        longer = [label.strip() for label in original if len(label.strip()) > keep]
        starts = {label[:keep] for label in longer}
        if len(longer) >= MOSTLY * len(original) and len(starts & set(labels)) >= MOSTLY * len(labels):
            return {"mask": {"keep": keep, "character": ""}}
    return None
