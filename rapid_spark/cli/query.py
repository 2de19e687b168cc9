"""`rapid-spark query` and `init-db`."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator
from typing import Any

import click

from rapid_spark.strictjson import dumps, strict

from .options import output_options, settings, store_option
from .terminal import Terminal

SHOWN = 200  # rows of a table for readers; json and csv give all


@click.command()
@click.argument("sql")
@click.option("--write", is_flag=True, help="Allow statements that change the store.")
@store_option
@output_options
@click.pass_obj
def query(terminal: Terminal, sql: str, write: bool, store: str | None, output: str) -> None:
    """Run SQL over the store's tables and views, e.g. "select * from release_risk"."""
    with opened_store(terminal, store) as opened:
        terminal.stage("query")
        frame = opened.query(sql, write=write)
        columns, rows = list(frame.columns), [list(row) for row in frame.collect()]
    terminal.close()
    if output == "json":
        click.echo(dumps({"columns": columns, "rows": [dict(zip(columns, row, strict=True)) for row in rows]}))
    elif output == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([columns, *([strict(v) for v in row] for row in rows)])
        click.echo(text.getvalue(), nl=False)
    elif columns:
        from . import finding

        out = finding.console()
        out.print(finding.frame_table(columns, rows[:SHOWN]))
        if len(rows) > SHOWN:
            out.print(f"{len(rows) - SHOWN:,} of {len(rows):,} rows are not shown; --format csv gives all.")


@click.command("init-db")
@click.option("--print-grants", "readers", metavar="GROUP",
              help="Make nothing; print the GRANT statements by which a group may read all but rows about persons.")
@click.option("--records-to", "restricted", metavar="GROUP",
              help="With --print-grants: the group that may also read rows about persons (risk_records).")
@store_option
@output_options
@click.pass_obj
def init_db(
    terminal: Terminal, readers: str | None, restricted: str | None, store: str | None, output: str
) -> None:
    """Create schema, tables and views of a store, or complete those that are there."""
    if readers is not None:
        _print_grants(readers, restricted, store, output)
        return
    if restricted is not None:
        raise click.UsageError("--records-to goes with --print-grants")
    with opened_store(terminal, store, create=True) as opened:
        location, tables = str(opened), opened.init()
    terminal.close()
    if output == "json":
        click.echo(dumps({"store": location, "tables": tables}))
    else:
        click.echo(f"store {location}: {', '.join(tables)}")


def _print_grants(readers: str, restricted: str | None, store: str | None, output: str) -> None:
    from rapid_spark import preparation
    from rapid_spark.upkeep import grants

    location = str(preparation.with_store(settings({"store": store})).store.location)
    made = grants.statements(location, readers, restricted)
    click.echo(dumps({"store": location, "statements": made}) if output == "json" else ";\n".join(made) + ";")


@contextlib.contextmanager
def opened_store(terminal: Terminal, store: str | None, create: bool = False) -> Iterator[Any]:
    """A store in a session."""
    from rapid_spark import preparation, session
    from rapid_spark.store import Store

    terminal.configure_logging()
    config = preparation.with_store(settings({"store": store}))
    terminal.stage("starting Spark")
    spark = session.get(config.session, terminal.debug)
    terminal.watch(spark)
    terminal.stage("opening store")
    yield Store.open(spark, str(config.store.location), create=create)
