"""One self-contained HTML file of a run: a finding in plain words, tables, figures, and how it was computed.

No script, no network access, fonts of the system; every value is escaped in one place (`markup.tag`). A further page
is one more function in `SECTIONS`: it gets a `Page` and returns markup, or None where it has nothing to say.
"""

from .data import TABLES, ReportData, of_assessment, read
from .document import SECTIONS, Section, assessment_html, render, write
from .findings import warnings_section
from .markup import Html, fold, join, listing, note, tag
from .method import leaves
from .page import Page

__all__ = [
    "SECTIONS", "TABLES", "Html", "Page", "ReportData", "Section", "assessment_html", "fold", "join", "leaves",
    "listing", "note", "of_assessment", "read", "render", "tag", "warnings_section", "write",
]  # fmt: skip
