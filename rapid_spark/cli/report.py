"""`rapid-spark report`."""

from __future__ import annotations

from pathlib import Path

import click

from rapid_spark.strictjson import dumps

from .options import output_as, store_option
from .query import opened_store
from .terminal import Terminal


@click.command()
@click.option("--run", "run_id", required=True, help="Run to report, as runs and latest_runs name it.")
@click.option("--output", "path", type=click.Path(dir_okay=False, path_type=Path),
              help="File to write; rapid-RUN.html (or .md) in the current folder when left out.")
@click.option("--public", is_flag=True, help="For readers outside: small counts withheld, counts rounded to "
              "publish.rounding.  [default: where the run sets publish.rounding]")
@store_option
@output_as(("html", "md", "table", "json", "csv"), "html, or md (Markdown) for a file in a records system; table, json and "
           "csv write html and differ in what is said of it.")
@click.pass_obj
def report(terminal: Terminal, run_id: str, path: Path | None, public: bool, store: str | None, output: str) -> None:
    """Write one self-contained file about a finished run: findings, tables, curves, drivers, evidence, limits."""
    ending = "md" if output == "md" else "html"
    written = write_report(terminal, store, run_id, path or Path(f"rapid-{run_id}.{ending}"), ending, public)
    if output == "csv":
        click.echo(f"run_id,report\n{run_id},{written}")
    else:
        click.echo(dumps({"run_id": run_id, "report": str(written)}) if output == "json" else f"report {written}")


def write_report(
    terminal: Terminal, store: str | None, run_id: str, path: Path, ending: str = "html", public: bool = False
) -> Path:
    """Read a run from its store and write its report, as HTML or Markdown; for readers outside where asked for."""
    from rapid_spark import markdown
    from rapid_spark import report as html
    from rapid_spark.audit import page
    from rapid_spark.federation.public import is_asked, protected

    with opened_store(terminal, store) as opened:
        terminal.stage("reading run")
        data = html.read(opened, run_id)
    if public or is_asked(data):
        data = protected(data)
    terminal.stage("writing report")
    if ending == "md":
        written = Path(markdown.write(data, path))
    else:
        written = Path(html.write(data, path, page.render if page.is_audit(data) else None))
    terminal.close()
    return written
