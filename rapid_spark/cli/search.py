"""`rapid-spark search`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rapid_spark.config import Config
from rapid_spark.strictjson import dumps

from .options import _commas, input_options, output_options, settings, store_option, together, tracking_options
from .terminal import Terminal

SHOWN = 15


@click.command()
@together(input_options, store_option, tracking_options, output_options)
@click.option("--sizes", multiple=True, callback=_commas, metavar="N,..", help="Try all sets of so many columns, e.g. 2,3.")
@click.option("--from", "columns", multiple=True, callback=_commas, metavar="COLUMNS",
              help="Columns that sets are made from.  [default: all]")
@click.option("--worst", type=click.IntRange(0, 50), metavar="N", help="Surfaces all attackers are tried on.  [default: 3]")
@click.option("--run-id", metavar="ID", help="The same id again goes on where the search was stopped.")
@click.option("--output", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Where progress, table and heat map go.  [default: search-RUN]")
@click.option("--plan", "only_plan", is_flag=True, help="Say how many fits it would take, and stop.")
@click.pass_obj
def search(terminal: Terminal, output: str, folder: Path | None, run_id: str | None, only_plan: bool, sizes: tuple[str, ...],
           columns: tuple[str, ...], worst: int | None, **values: Any) -> int:
    """Search for the worst surface: which attribute is learnt best, and from which columns.

    A cheap attacker (one tree) goes over every attribute against all other columns, over all sets of the sizes asked for,
    and over each column alone; then all attackers are tried on the worst. With neither sizes nor attributes named, every
    column is guessed from the others.
    """
    sets = list(values.pop("sets", ()))
    if sizes:
        sets.append(f"search.sizes=[{', '.join(sizes)}]")
    if columns:
        import json

        sets.append(f"search.columns={json.dumps(list(columns), ensure_ascii=False)}")
    if worst is not None:
        sets.append(f"search.worst={worst}")
    config = settings({**values, "sets": tuple(sets)})
    if not config.search.active and not config.sensitive_attributes:
        config = settings({**values, "sets": (*sets, "search.all_attributes=true")})
    return search_and_show(terminal, config, output, run_id, folder, only_plan)


def search_and_show(
    terminal: Terminal, config: Config, output: str, run_id: str | None, folder: Path | None = None, only_plan: bool = False
) -> int:
    """Run a search, print what was found in the form asked for, and return the exit code."""
    from rapid_spark.surface import run

    terminal.configure_logging()
    if only_plan:
        terminal.stage("starting Spark")
        found = run.plan(config, debug=terminal.debug, watch=terminal.watch)
        terminal.close()
        if output == "json":
            click.echo(dumps(found))
        else:
            click.echo(f"{found['fits']:,} fits of {found['cheap']} over {len(found['attributes'])} attributes and "
                       f"{len(found['columns'])} columns: {found['estimate']}; then {', '.join(found['attackers'])} on the "
                       f"{found['worst']} worst. Nothing was fitted.")
        return 0
    outcome = run.search(config, folder, run_id, debug=terminal.debug, say=terminal.stage, note=terminal.note,
                         watch=terminal.watch)
    terminal.close()
    for warning in outcome.warnings:
        terminal.warn(warning)
    if output == "json":
        click.echo(dumps(outcome.document()))
    elif output == "csv":
        click.echo((outcome.folder / run.TABLE).read_text(encoding="utf-8"), nl=False)
    else:
        _show(outcome)
    return 3 if all(r.status == "failed" for r in outcome.found.rates) else 0


def _show(outcome: Any) -> None:
    from rapid_spark.wording import percent

    from . import finding

    out = finding.console()
    rows = outcome.rows()
    finding.say(out, f"{len(rows):,} surfaces by {outcome.seconds['cheap attacker']:.0f} s of one tree each; "
                     f"the worst of them (share of what chance leaves, then RAPID):")  # fmt: skip
    heads = ["rank", "attribute", "known", "beyond chance", "RAPID", "chance", "people at risk"]
    cells = [
        [r["rank"], r["target"], _known(r), percent(r["beyond_chance"]), percent(r["rapid"]), percent(r["baseline_rate"]),
         f"{r['n_at_risk']:,} of {r['n']:,}"]
        for r in rows[:SHOWN] if r["rapid"] is not None
    ]  # fmt: skip
    out.print(finding.frame_table(heads, cells))
    lost = [r for r in rows if r["rapid"] is None]
    if lost:
        reasons = sorted({f"{r['target']}: {r['reason']}" for r in lost})
        finding.say(out, f"{len(lost)} surfaces have no figure: {'; '.join(reasons[:5])}")
    if outcome.worst:
        finding.say(out)
        finding.say(out, "All attackers on the worst:")
        heads = ["attribute", "known", "attacker", "replicate", "RAPID", "chance"]
        ok = [r for r in outcome.worst if r["status"] == "ok" and r["scored_on"] == "original"]
        out.print(finding.frame_table(heads, [
            [r["sensitive_attribute"], r["qi_set"], r["attacker"], r["replicate"], percent(r["rapid"]),
             percent(r["baseline_rate"])] for r in sorted(ok, key=lambda r: -(r["rapid"] or 0))
        ]))  # fmt: skip
    finding.say(out, f"runs    {', '.join(outcome.runs)}")
    finding.say(out, f"table   {outcome.document()['table']}")
    finding.say(out, f"plot    {outcome.document()['plot']}")


def _known(row: dict[str, Any]) -> str:
    return f"all {len(row['known'])} others" if row["kind"] == "rest" else " + ".join(row["known"])
