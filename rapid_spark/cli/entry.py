"""The group of commands, loaded when named, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import click

from rapid_spark.config import ConfigError, suggest
from rapid_spark.version import __version__

from .terminal import Terminal

OK, NOT_CLEARED, USER_FAULT, FAILED = 0, 1, 2, 3

COMMANDS = {
    # command: where it is defined, and its line in the list, so that --help loads none of them
    "demo": ("demo:demo", "Simulate a registry, release a synthetic copy, evaluate it."),
    "init": ("init:init", "Write a commented configuration to start from."),
    "check": ("evaluate:check", "Validate configuration and inputs; fit nothing."),
    "evaluate": ("evaluate:evaluate", "RAPID of one release of a registry."),
    "audit": ("audit:audit", "Many registries and releases from one file, judged by a policy."),
    "query": ("query:query", "SQL over the store's tables and views."),
    "report": ("report:report", "One self-contained HTML file about a run."),
    "synthesize": ("synthesize:synthesize", "Synthetic copies of a table, by CART or another generator."),
    "cv": ("cv:cv", "Cross-validation of one or several synthesizers."),
    "study": ("study:study", "The paper's simulation studies, published figures beside ours."),
    "dp": ("dp:dp", "Releases with differential privacy: histogram, entropy, synthetic, curve, plan."),
    "ledger": ("ledger:ledger", "What was spent on a dataset, and its limit: show, set-budget."),
    "export": ("federation:export", "Aggregates of a run as one file, to be imported elsewhere."),
    "import": ("federation:import_", "Load an exported file into this store, verified."),
    "decide": ("decide:decide", "Record a person's decision on a release."),
    "verify": ("decide:verify", "Check that a file is the release that was judged and approved."),
    "search": ("search:search", "Which attribute is learnt best, and from which columns."),
    "advise": ("advise:advise", "What to change in a release: steps, re-evaluated and ranked."),
    "recode": ("advise:recode", "Make a release coarser as the configuration says."),
    "attack": ("attack:attack", "Attacks on a release: membership, linkage, test-epsilon."),
    "disclosure": ("disclosure:disclosure", "Classical disclosure measures beside RAPID."),
    "sweep": ("sweep:sweep", "The risk-utility map over mechanisms and epsilons."),
    "init-db": ("query:init_db", "Create schema, tables and views of a store."),
    "vacuum": ("upkeep:vacuum", "Take old runs, and files of old versions, out of a store."),
    "forget": ("upkeep:forget", "Erase one record's results from a store."),
    "track": ("track:track", "Give a finished run its MLflow run afterwards."),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"rapid_spark.cli.{module}"), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = suggest(args[0], COMMANDS)
            raise click.UsageError(f"no command {args[0]!r}.{hint} There are: {', '.join(COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 done, but a policy did not clear it; 2 the input is at fault; 3 anything else.",
)
@click.version_option(__version__, prog_name="rapid-spark")
def cli() -> None:
    """RAPID: how well a published table lets an attacker predict sensitive attributes of real people."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; every fault ends in one message on standard error."""
    terminal = Terminal()
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    try:
        with warnings.catch_warnings():
            if not debug:
                warnings.simplefilter("ignore")
            code = cli.main(args=words, prog_name="rapid-spark", standalone_mode=False, obj=terminal)
        return code if isinstance(code, int) else OK
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USER_FAULT
    except BaseException as error:
        terminal.close()
        code, message = fault(error)
        if debug:
            traceback.print_exception(error)
        terminal.error(message)
        return code
    finally:
        terminal.close()


def fault(error: BaseException) -> tuple[int, str]:
    """Exit code and message of an error: 2 where the user's input is at fault, 3 for anything else.

    The message of an unknown error is not shown: Spark's may hold values of a person.
    """
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "rapid-spark"
        return USER_FAULT, f"{error.format_message()}\nSee `{where} --help`."
    if isinstance(error, click.ClickException):
        return USER_FAULT, error.format_message()
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return FAILED, "interrupted"
    if isinstance(error, SystemExit):
        return FAILED, "terminated: the run is marked as failed" if error.code == 143 else "terminated"
    if isinstance(error, ConfigError) or _is(error, "schema:SchemaError", "attackers:AttackerError"):
        return USER_FAULT, str(error)
    if _is(error, "warehouse:StoreError", "session:SessionError"):
        return FAILED, str(error)
    return FAILED, f"{_unknown(error)} More with --debug, which may show values of the tables."


def _is(error: BaseException, *places: str) -> bool:
    """Whether an error is of one of these classes; a module that was never loaded cannot have raised it."""
    for place in places:
        module, _, name = place.partition(":")
        kind = getattr(sys.modules.get(f"rapid_spark.{module}"), name, None)
        if kind is not None and isinstance(error, kind):
            return True
    return False


def _unknown(error: BaseException) -> str:
    # Spark names the kind of an error in capitals; the text after it may quote a row.
    kind = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", str(error))
    return f"unexpected error {type(error).__name__}{f' ({kind.group(1)})' if kind else ''}."
