"""`rapid-spark vacuum` and `forget`."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import click

from rapid_spark.config import ConfigError
from rapid_spark.strictjson import dumps

from .options import names, output_options, store_option
from .query import opened_store
from .terminal import Terminal

force_option = click.option(
    "--force", is_flag=True, help="In a catalog: go on although runs of the last day have no end, because they died."
)


@click.command()
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Runs of this age may go.")
@click.option("--keep-last", type=click.IntRange(min=1), metavar="RUNS",
              help="Finished runs that stay per registry, release and settings. With --older-than, only runs go that are "
              "older and not among these.")
@click.option("--keep-versions", type=click.FloatRange(min=0), metavar="DAYS",
              help="How long old versions of tables stay readable; under 7, no run may be at work.  [default: the tables' "
              "own setting, 7]")
@click.option("--dry-run", is_flag=True, help="Say what would go; change nothing.")
@force_option
@store_option
@output_options
@click.pass_obj
def vacuum(
    terminal: Terminal, older_than: float | None, keep_last: int | None, keep_versions: float | None, dry_run: bool,
    force: bool, store: str | None, output: str,
) -> None:  # fmt: skip
    """Take old runs out of a store, then files that only old versions of its tables need.

    The latest finished run of each registry, release and settings always stays, and so does a run on which a decision
    or an entry of the ledger rests. dp_ledger and release_decisions are left alone.
    """
    if older_than is None and keep_last is None:
        raise ConfigError("vacuum: say what may go: --older-than DAYS, --keep-last RUNS, or both")
    from rapid_spark.underway import new_run_id
    from rapid_spark.upkeep import retention

    rule = retention.Rule(_days(older_than), keep_last)
    with opened_store(terminal, store) as opened:
        found = retention.vacuum(
            opened, rule, f"vacuum-{new_run_id()}", _days(keep_versions), dry_run, force, terminal.stage
        )  # fmt: skip
    terminal.close()
    if output == "json":
        click.echo(dumps(found))
    elif output == "csv":
        click.echo("\n".join(["run_id", *found["removed"]]))
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    from . import finding

    out, going = finding.console(), found["removed"]
    would = "would go" if found["dry_run"] else "removed"
    runs = "1 run" if len(going) == 1 else f"{len(going):,} runs"
    finding.say(out, f"{runs} {would}{': ' + names(going) if going else ''}")
    for key, why in (
        ("kept_latest", "the latest finished of their registry, release and settings"),
        ("kept_evidence", "decisions, entries of the ledger or exports rest on them"),
        ("at_work", "at work right now"),
    ):
        if found[key]:
            finding.say(out, f"stay ({why}): {names(found[key])}")
    rows = [[t["table"], t["rows"], *_versions(t)] for t in found["tables"] if t["rows"] or t["readable"] or t["unreadable"]]
    if rows:
        columns = ["table", f"rows {would}", "recorded versions that stay readable", "no longer readable"]
        out.print(finding.frame_table(columns, rows))


def _versions(table: dict[str, Any]) -> list[str]:
    return ["not looked at" if table[k] is None else _ranges(table[k]) for k in ("readable", "unreadable")]


def _ranges(numbers: list[int]) -> str:
    """Sorted whole numbers in short: 1-3, 7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts) or "none"


@click.command()
@click.option("--key", multiple=True, required=True, metavar="VALUE",
              help="The record's key; repeat for a key of several columns, in their order. - reads it from standard input, "
              "a line each, so that no list of processes shows it.")
@click.option("--registry", metavar="ID", help="Erase in this registry only.  [default: all]")
@force_option
@store_option
@output_options
@click.pass_obj
def forget(
    terminal: Terminal, key: tuple[str, ...], registry: str | None, force: bool, store: str | None, output: str
) -> None:
    """Erase one record's results: its rows of risk_records, from files of old versions too.

    Record ids made with columns.key_hmac are found while RAPID_SPARK_KEY_SECRET is set as it was.
    No run may be at work in the store. Aggregates that counted the record stay. Says counts, never the key.
    """
    from rapid_spark.underway import new_run_id
    from rapid_spark.upkeep import erasure

    parts = tuple(sys.stdin.read().splitlines()) if key == ("-",) else key
    erasure.record_id(parts)  # a fault of the key, before Spark starts
    with opened_store(terminal, store) as opened:
        found = erasure.forget(opened, parts, f"forget-{new_run_id()}", registry, force, terminal.stage)
    terminal.close()
    if output == "json":
        click.echo(dumps(found))
        return
    if output == "csv":
        columns = ("run_id", "rows", "runs", "files")
        click.echo(",".join(columns) + "\n" + ",".join("" if found[c] is None else str(found[c]) for c in columns))
        return
    if not found["rows"]:
        click.echo("No row of risk_records has this key: check it, and the order of its columns.")
    else:
        click.echo(f"Erased {found['rows']:,} rows of {found['runs']:,} runs from risk_records.")
    if found["files"] is not None:
        click.echo(f"Removed {found['files']:,} files that no current row needs.")
    versions = found["versions"]
    if versions["unreadable"]:
        click.echo(f"{versions['unreadable']:,} recorded versions of risk_records can no longer be read, "
                   f"{versions['readable']:,} can.")  # fmt: skip
    click.echo(f"The erasure is recorded, without the key, as run {found['run_id']}.")


def _days(number: float | None) -> timedelta | None:
    return None if number is None else timedelta(days=number)
