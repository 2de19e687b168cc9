"""What the sections of one report share: findings, figures within their room, tables with their keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from .. import plots, wording
from ..suite import rows_of
from ..wording import Finding, name, plain
from .cells import LONGEST_CELL, Columns
from .data import ReportData
from .markup import Html, join, listing, tag

MOST_FINDINGS = 6  # told in full and drawn; the others are in the tables
MOST_ROWS = 250  # of a table
FIGURE_BYTES = 900_000  # all figures together
HEADS = {
    "registry": "registry", "release_id": "release", "sensitive_attribute": "attribute", "qi_set": "known",
    "measure": "measure", "attacker": "attacker", "replicate": "copy", "weighting": "weights",
}


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
        several = {k for k in HEADS if k in summary and summary[k].nunique() > 1}
        if summary.groupby("sensitive_attribute")["measure"].nunique().max() == 1:
            several -= {"measure"}
        return [k for k in HEADS if k in frame and k in several | {"attacker"} and frame[k].notna().any()]

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
        heads = [HEADS[k] for k in keys]
        rows = [
            [key_text(row, k) for k in keys] + [shown(row) for shown in columns.values()]
            for row in rows_of(frame.head(MOST_ROWS))
        ]
        return listing(caption, [*heads, *columns], rows, len(keys) + texts, len(frame) - len(rows))


def key_text(row: Mapping[str, Any], column: str) -> str:
    return wording.replicate(row[column]) if column == "replicate" else plain(row[column], LONGEST_CELL)


def title(finding: Finding, page: Page) -> str:
    """What tells one finding from the others."""
    own = finding.key["sensitive_attribute"]
    parts = [name(own)]
    for column in ("qi_set", "measure", "registry", "release_id"):
        alike = [f for f in page.found if column != "measure" or f.key["sensitive_attribute"] == own]
        if len({f.key[column] for f in alike}) > 1:
            parts.append(f"{HEADS[column]}: {name(finding.key[column])}")
    return ", ".join(parts)


def usable(page: Page) -> pd.DataFrame:
    """Rows of risk_summary with a figure, scored on the original."""
    summary = page.data.summary
    return summary[(summary["status"] == "ok") & (summary["scored_on"] == "original")]


def behind(page: Page, frame: pd.DataFrame | None) -> pd.DataFrame:
    """Rows of a table about the combinations behind the findings that are told."""
    parts = [rows for f in page.told if len(rows := plots.rows_behind(frame, f))]
    return pd.concat(parts) if parts else pd.DataFrame()
