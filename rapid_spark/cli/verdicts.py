"""Verdicts of a policy on the terminal: one line a release, the rules that do not pass, and what the exit code says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rapid_spark.policy import OVERALL, as_text
from rapid_spark.suite import rows_of

from . import finding

F = TypeVar("F", bound=Callable[..., Any])
COLOURS = {"pass": "green", "review": "yellow", "not_evaluated": "magenta", "fail": "red"}
MOST_RULES = 30

on_fail_option = click.option(
    "--on-fail",
    type=click.Choice(["exit", "report"]),
    default="exit",
    show_default=True,
    help="Whether a release that is not cleared is exit code 1, or only a result (a scheduler hands it on).",
)


def exit_code(status: str, cleared: bool | None, on_fail: str) -> int:
    """0 done and cleared, 1 not cleared, 3 everything failed; `cleared` None: there is no policy."""
    if status == "failed":
        return 3
    return 1 if cleared is False and on_fail == "exit" else 0


def show(verdicts: pd.DataFrame, out: Console) -> None:
    """Print the overall verdicts as a table, and below it the rules that do not pass."""
    overall = verdicts[verdicts["rule"] == OVERALL]
    heads = ["registry", "release", "verdict", "because"]
    rows = [[r["registry"], r["release_id"], _coloured(r["verdict"]), _because(r, verdicts)] for r in rows_of(overall)]
    out.print(_table(heads, rows))
    open_rules = verdicts[(verdicts["rule"] != OVERALL) & (verdicts["verdict"] != "pass")]
    if not len(open_rules):
        return
    finding.say(out)
    heads = ["registry", "release", "attribute", "rule", "figure", "limit", "verdict"]
    shown = rows_of(open_rules.head(MOST_RULES))
    out.print(_table(heads, [
        [r["registry"], r["release_id"], r["sensitive_attribute"] or "", r["rule"],
         *(as_text(r["rule"], r[c]) for c in ("figure", "limit")), _coloured(r["verdict"])] for r in shown
    ]))  # fmt: skip
    for row in shown:
        where = f"{row['registry']} {row['release_id']}"
        about = f" {row['sensitive_attribute']}" if row["sensitive_attribute"] else ""
        finding.say(out, f"  {where}{about}, {row['rule']}: {row['reason']}")
    if len(open_rules) > len(shown):
        finding.say(out, f"  and {len(open_rules) - len(shown)} more in audit_verdicts")


def closing(verdicts: pd.DataFrame, code: int) -> str:
    """A sentence that names what is not cleared, and the exit code."""
    overall = rows_of(verdicts[verdicts["rule"] == OVERALL])
    blocked = [f"{r['registry']} {r['release_id']} ({str(r['verdict']).replace('_', ' ')})" for r in overall
               if r["verdict"] != "pass"]  # fmt: skip
    if not blocked:
        return f"Cleared: {len(overall)} of {len(overall)} releases."
    listed = _some(blocked)
    how = "exit code 1" if code == 1 else f"exit code {code} by --on-fail report"
    return f"Not cleared: {len(blocked)} of {len(overall)} releases, {listed}. That is {how}."


def _some(texts: Sequence[str], most: int = 8) -> str:
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def _because(row: Mapping[str, Any], verdicts: pd.DataFrame) -> str:
    if row["verdict"] == "pass":
        rules = verdicts[(verdicts["registry"] == row["registry"]) & (verdicts["release_id"] == row["release_id"])]
        return f"all {len(rules) - 1} rules pass"
    return str(row["reason"])


def _coloured(verdict: Any) -> Text:
    return Text(str(verdict).replace("_", " "), style=COLOURS.get(str(verdict), "default"))


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold", justify="right" if head in ("figure", "limit") else "left")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    return table
