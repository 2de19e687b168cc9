"""`rapid-spark decide` and `verify`."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime
from typing import Any

import click

from rapid_spark.config import ConfigError, Table
from rapid_spark.strictjson import dumps, strict

from .options import output_options, store_option, table
from .query import opened_store
from .terminal import Terminal

NOT_CLEARED = 1


def _today() -> date:
    return datetime.now(UTC).date()


@click.command()
@click.option("--run", "run_id", required=True, metavar="RUN", help="Evaluation or audit that judged the release.")
@click.option("--registry", metavar="ID", help="Which registry, where the run judged several.")
@click.option("--release-id", metavar="ID", help="Which release, where the run judged several.")
@click.option("--outcome", required=True, type=click.Choice(["approve", "approve_with_conditions", "reject"]))
@click.option("--by", "decided_by", required=True, metavar="NAME", help="Who decides.")
@click.option("--reason", metavar="TEXT", help="Why, or under which conditions. Needed to reject, with conditions, and "
              "where an approval overrides a fail or a not_evaluated.")
@click.option("--audience", metavar="NAME", help="To whom it may go.  [default: as judged]")
@click.option("--valid-until", metavar="DATE", help="Last day of the approval, e.g. 2027-06-30.  [default: no end]")
@store_option
@output_options
@click.pass_obj
def decide(terminal: Terminal, output: str, store: str | None, valid_until: str | None, run_id: str, registry: str | None,
           release_id: str | None, **values: Any) -> None:
    """Record a person's decision on a release. Decisions are only ever added: a later one is in place of an earlier one."""
    from rapid_spark.decisions import record, rules

    end = _date(valid_until)
    with opened_store(terminal, store) as opened:
        terminal.stage("reading run")
        case = record.find(opened, run_id, registry, release_id)
        terminal.stage("recording decision")
        row = record.decide(opened, case, rules.Decision(valid_until=end, **values), _today())
        after = record.find(opened, case.run_id, case.registry, case.release_id)
        now = rules.standing(after, _today(), row["audience"])
    terminal.close()
    overridden = case.overridden(_today()) if row["outcome"] in rules.APPROVALS else None
    if overridden:
        terminal.warn(f"this approval overrides the policy ({overridden})")
    document = {**row, "overrides": overridden, "cleared": now.cleared, "standing": now.reason}
    if output == "json":
        click.echo(dumps(document))
    elif output == "csv":
        click.echo(_csv([document]), nl=False)
    else:
        until = f" until {row['valid_until']}" if row["valid_until"] else ""
        click.echo(f"{row['outcome']}{until}: release {row['release_id']} of {row['registry']}, run {row['run_id']}, "
                   f"by {row['decided_by']}")
        click.echo(f"{'cleared' if now.cleared else 'not cleared'}: {now.reason}")


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--audience", metavar="NAME", help="To whom it is to go.  [default: as judged]")
@click.option("--replicate-column", metavar="COLUMN", help="Column that numbers the copies in one table.")
@click.option("--delimiter", default=",", show_default=True, metavar="CHAR", help="Of a CSV file.")
@click.option("--encoding", default="UTF-8", show_default=True, metavar="NAME", help="Of a CSV file.")
@store_option
@output_options
@click.pass_obj
def verify(terminal: Terminal, file: str, audience: str | None, replicate_column: str | None, delimiter: str, encoding: str,
           store: str | None, output: str) -> int:
    """Check that FILE is a release that was judged, and that a valid approval covers it; exit code 1 if not.

    Contents are compared, whatever the order of rows and columns, the file's format and its compression.
    """
    from rapid_spark.decisions.verify import verify as check

    wanted = Table.model_validate({
        **table(file), "replicate_column": replicate_column, "delimiter": delimiter, "encoding": encoding
    })
    with opened_store(terminal, store) as opened:
        terminal.stage("reading file")
        found = check(opened.warehouse.spark, opened, wanted, _today(), audience)
    terminal.close()
    if output == "json":
        click.echo(dumps(found))
    elif output == "csv":
        plain = [{k: v for k, v in m.items() if not isinstance(v, (list, dict))} for m in found["matches"]]
        click.echo(_csv(plain), nl=False)
    else:
        _show(found)
    return 0 if found["cleared"] else NOT_CLEARED


def _show(found: dict[str, Any]) -> None:
    click.echo(f"{'cleared' if found['cleared'] else 'NOT CLEARED'}: {found['file']}")
    click.echo(f"  {found['reason']}")
    for match in found["matches"]:
        copy = f", copy {match['replicate']}" if match["replicate"] > 1 else ""
        click.echo(f"  run {match['run_id']}: release {match['release_id']} of {match['registry']}{copy}; "
                   f"policy: {match['verdict'] or 'none judged it'}; audience: {match['audience'] or 'not named'}")
        for row in match["decisions"]:
            until = f", until {row['valid_until']}" if row["valid_until"] else ""
            why = f": {row['reason']}" if row["reason"] else ""
            click.echo(f"    {row['decided_at']:%Y-%m-%d %H:%M} {row['outcome']} by {row['decided_by']}{until}{why}")
    click.echo(f"  digest {found['digest'] or ', '.join(found['digests'].values())}")


def _date(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--valid-until {text!r}: expected a date as 2027-06-30") from None


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    columns = list(rows[0]) if rows else ["run_id"]
    csv.writer(text, lineterminator="\n").writerows([columns, *([strict(r[c]) for c in columns] for r in rows)])
    return text.getvalue()
