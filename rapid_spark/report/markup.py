"""Markup: elements, tables that scroll, notes. Every value is escaped in one place, `tag`."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..wording import plain

SHORT_CELL = 24
SHORT_TABLE = 12  # rows that are kept on one page


class Html(str):
    """Markup that is escaped already."""


def tag(element: str, *children: Any, **attributes: Any) -> Html:
    """An HTML element. Children and attribute values are escaped unless they are `Html`; None is left out."""
    given = {k.rstrip("_").replace("_", "-"): v for k, v in attributes.items() if v is not None}
    shown = "".join(f' {k}="{html.escape(plain(v))}"' for k, v in given.items())
    if element in ("meta", "br"):
        return Html(f"<{element}{shown}>")
    inside = "".join(c if isinstance(c, Html) else html.escape(plain(c)) for c in children if c is not None)
    return Html(f"<{element}{shown}>{inside}</{element}>")


def join(parts: Iterable[Html | None]) -> Html:
    """Elements one after the other."""
    return Html("\n".join(p for p in parts if p))


def listing(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], n_text: int = 1, left: int = 0
) -> Html:
    """A table that scrolls sideways where it is wider than the page.

    Args:
        caption: what it shows.
        heads: column headings.
        rows: cells; the first `n_text` of a row are text, the others figures.
        n_text: see rows.
        left: rows that are not shown.
    """
    kinds = [None if i < n_text else "n" for i in range(len(heads))]
    head = tag("tr", *(tag("th", h, scope="col", class_=kind) for h, kind in zip(heads, kinds, strict=True)))
    body = [
        tag("tr", *(_cell(str(cell), i == 0, i >= n_text) for i, cell in enumerate(row))) for row in rows
    ]
    inner = tag("table", tag("caption", tag("span", caption)), tag("thead", head), tag("tbody", join(body)),
                class_="short" if len(rows) <= SHORT_TABLE else None)
    rest = tag("p", f"{left:,} more rows are in the store.", class_="note") if left > 0 else None
    return join([tag("div", inner, class_="scroll", role="region", tabindex="0", aria_label=caption), rest])


def _cell(text: str, is_head: bool, is_figure: bool) -> Html:
    # figures and short texts are not broken over lines
    kind = "n" if is_figure else ("s" if len(text) <= SHORT_CELL else "l")
    return tag("th", text, scope="row", class_=kind) if is_head else tag("td", text, class_=kind)


def fold(label: str, *content: Html | None) -> Html:
    """What is there on request; printed in full."""
    return tag("details", tag("summary", label), join(content))


def note(text: str) -> Html:
    """A remark below a table or figure."""
    return tag("p", text, class_="note")


def prose(text: str) -> Html:
    """Sentences in which a number and its percent sign stay on one line."""
    return Html(re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", html.escape(plain(text))))
