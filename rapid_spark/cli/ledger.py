"""`rapid-spark ledger`: what was spent on a dataset, and its limit."""

from __future__ import annotations

import json
from typing import Any

import click

from rapid_spark.strictjson import dumps

from .options import output_options, store_option
from .query import opened_store
from .terminal import Terminal


@click.group()
def ledger() -> None:
    """What was spent on a population of persons, and its limit. Rows are only ever appended."""


@ledger.command()
@click.option("--dataset", required=True, metavar="ID", help="Population, or a dataset derived from one.")
@store_option
@output_options
@click.pass_obj
def show(terminal: Terminal, dataset: str, store: str | None, output: str) -> None:
    """The budget of a dataset, what was spent of it, and its entries."""
    from rapid_spark.reaedp import ledger as rules
    from rapid_spark.releases.desk import told
    from rapid_spark.releases.storage import DeltaLedger

    with opened_store(terminal, store) as opened, told():
        found = rules.show(DeltaLedger(opened).read(), dataset)
    terminal.close()
    for entry in found["entries"]:
        entry["parameters"] = json.loads(entry["parameters"])
    if output == "json":
        click.echo(dumps(found))
    elif output == "csv":
        import pandas as pd

        click.echo(pd.DataFrame(found["entries"]).to_csv(index=False), nl=False)
    else:
        _show(found)


@ledger.command("set-budget")
@click.option("--dataset", required=True, metavar="ID", help="Population of persons.")
@click.option("--epsilon", type=float, required=True, metavar="E", help="Limit.")
@click.option("--delta", type=float, default=0.0, show_default=True, metavar="D", help="Limit.")
@click.option("--adjacency", type=click.Choice(["add_remove", "replace"]), required=True, help="Of the whole budget.")
@click.option("--n-declared", type=int, required=True, metavar="N", help="Number of persons, a constant.")
@click.option(
    "--composition",
    type=click.Choice(["sum", "rho"]),
    default="sum",
    show_default=True,
    help="The filter: sums of epsilon and delta, or the sum of rho, converted once at delta.",
)
@click.option(
    "--protected-unit",
    default="record",
    show_default=True,
    metavar="UNIT",
    help="record takes every entry; another name only entries with the same.",
)
@store_option
@output_options
@click.pass_obj
def set_budget(terminal: Terminal, store: str | None, output: str, **values: Any) -> None:
    """Fix the limit of a population, once. The filter is chosen here and stays."""
    from rapid_spark.reaedp import ledger as rules
    from rapid_spark.reaedp.filter import Budget
    from rapid_spark.releases.desk import told
    from rapid_spark.releases.storage import DeltaLedger

    with told():
        budget = Budget(**values)
    with opened_store(terminal, store, create=True) as opened, told():
        storage = DeltaLedger(opened)
        warning = rules.set_budget(storage, budget)
        found = rules.show(storage.read(), budget.dataset)
    terminal.close()
    if warning:
        terminal.warn(warning)
    if output == "json":
        click.echo(dumps(found))
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    from . import finding

    out = finding.console()
    limit, spent = found["budget"], found["spent"]
    charged = "" if found["charged_to"] == found["dataset"] else f" (charges {found['charged_to']})"
    finding.say(out, f"dataset {found['dataset']}{charged}: {limit['adjacency']} of one {limit['protected_unit']}, "
                     f"{limit['n_declared']:,} declared, filter {spent['composition']}")  # fmt: skip
    finding.say(out, f"budget  epsilon {limit['epsilon']:g}, delta {limit['delta']:g}")
    finding.say(out, f"spent   epsilon {spent['epsilon']:g}, delta {spent['delta']:g}")
    rows = [
        [f"{e['entered_at']:%Y-%m-%d %H:%M:%S}", e["release_id"], e["mechanism"], e["adjacency"], e["epsilon"], e["delta"],
         e["state"], e["run_id"]]
        for e in found["entries"]
    ]  # fmt: skip
    if rows:
        heads = ["entered (UTC)", "release", "mechanism", "adjacency", "epsilon", "delta", "state", "run"]
        out.print(finding.frame_table(heads, rows))
