"""The whole document from its sections, as a file or as a notebook shows it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

import pandas as pd

from .. import plots
from ..wording import findings, name, plain
from .cells import given
from .comparisons import attackers, classes, thresholds
from .data import ReportData, of_assessment
from .findings import combinations, finding, warnings_section
from .markup import Html, join, tag
from .method import how, limits, what_was_tested
from .page import Page
from .people import drivers, holdout, joint
from .style import CSS, PAGE_RULES

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
Section = Callable[[Page], Html | None]
SECTIONS: tuple[tuple[str, str, Section], ...] = (
    ("finding", "Finding", finding), ("warnings", "What the reader must know", warnings_section),
    ("combinations", "Combinations", combinations), ("thresholds", "Other thresholds", thresholds),
    ("attackers", "Attackers compared", attackers), ("classes", "Which answers", classes),
    ("joint", "Taken together", joint),
    ("drivers", "Which people, which columns", drivers), ("holdout", "Holdout against members", holdout),
    ("tested", "What was tested, and what was not", what_was_tested),
    ("how", "How it was computed", how), ("limits", "Limits", limits),
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
    made = [(anchor, heading, make(page)) for anchor, heading, make in sections]
    parts = [(anchor, heading, content) for anchor, heading, content in made if content is not None]
    about = [", ".join(dict.fromkeys(map(name, summary[c]))) for c in ("registry", "release_id")]
    title = title or f"RAPID report: {plain(', '.join(filter(None, about)), 200) or 'nothing was evaluated'}"
    when = data.evaluated_at
    if not given(when) and len(summary):
        when = summary.iloc[0].get("evaluated_at")
    subtitle = f"Run {data.run_id}" + (f", evaluated {_time(when)}" if given(when) else "")
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
        tag("title", title), Html(f"<style>{CSS}</style>"),
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
    known = warnings_section(page)
    heading = tag("p", tag("strong", "What the reader must know")) if known else None
    content = join([finding(page), heading, known, combinations(page), curves])
    return f"<style>{_scoped(CSS)}</style>{tag('div', content, class_='rapid-spark')}"


def _scoped(css: str) -> str:
    """Rules for the report's markup alone, under `.rapid-spark`, for a page that is not ours."""
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", css.split(PAGE_RULES)[0])
    scoped = [(",".join(f".rapid-spark {s.strip()}" for s in selectors.split(",")), body) for selectors, body in rules]
    return "\n".join(f"{selectors}{{{body}}}" for selectors, body in scoped)


def _time(value: Any) -> str:
    stamp = pd.Timestamp(value)
    stamp = stamp.tz_convert(UTC) if stamp.tzinfo else stamp
    return f"{stamp:%Y-%m-%d %H:%M} UTC"
