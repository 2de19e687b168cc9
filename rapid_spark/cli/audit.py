"""`rapid-spark audit`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rapid_spark.config import ConfigError, load_as, parse_set
from rapid_spark.strictjson import dumps

from . import verdicts
from .options import output_options, store_option, together, tracking_options
from .terminal import Terminal


@click.command()
@click.option("--config", "config_file", metavar="FILE", required=True, help="YAML: defaults, registries, policy, compare.")
@click.option("--audience", metavar="NAME", help="Who is to have the releases, in place of policy.context.audience.")
@click.option("--workers", type=int, metavar="N", help="Registries evaluated side by side.  [default: 2]")
@together(store_option, tracking_options, output_options)
@click.option("--run-id", metavar="ID", help="The same id again replaces its rows.  [default: time and a random suffix]")
@click.option("--report", "report_file", type=click.Path(dir_okay=False, path_type=Path), help="Also write an HTML report.")
@click.option(
    "--set", "sets", metavar="PATH=VALUE", multiple=True, help="Any setting by its path, e.g. policy.limits.rapid_max=0.3."
)
@verdicts.on_fail_option
@click.pass_obj
def audit(
    terminal: Terminal, output: str, run_id: str | None, report_file: Path | None, on_fail: str, **values: Any
) -> int:
    """Evaluate many registries and releases from one file, and judge each by a policy.

    A registry that fails is told, and the others go on. Exit code 0 when every release is cleared, 1 when one is not: a
    limit is exceeded, a person has to look, or a rule could not be judged.
    """
    return audit_and_show(terminal, settings(values), output, run_id, on_fail, report_file)


def settings(values: Mapping[str, Any]) -> Any:
    """The configuration: the file, over it the options, over them --set.

    Raises:
        ConfigError: with every fault found.
    """
    from rapid_spark.audit.settings import AuditConfig

    plain = {
        "store": "store.location", "tracking_uri": "tracking.uri", "experiment": "tracking.experiment",
        "audience": "policy.context.audience", "workers": "workers",
    }  # fmt: skip
    overrides: dict[str, Any] = {path: values[option] for option, path in plain.items() if values.get(option) is not None}
    if values.get("no_tracking"):
        overrides["tracking.enabled"] = False
    for text in values.get("sets") or ():
        path, value = parse_set(text)
        if path.startswith("registries"):
            raise ConfigError(f"--set {path}: registries are a list, change them in the file")
        overrides.pop(path, None)
        overrides[path] = value
    return load_as(AuditConfig, values.get("config_file"), overrides)


def audit_and_show(
    terminal: Terminal,
    config: Any,
    output: str,
    run_id: str | None,
    on_fail: str = "exit",
    report_file: Path | None = None,
    command: str = "audit",
) -> int:
    """Run an audit, print its verdicts in the form asked for, and return the exit code."""
    from rapid_spark import taskvalues
    from rapid_spark.audit import audit as run_audit
    from rapid_spark.underway import new_run_id

    terminal.configure_logging()
    terminal.run_id = run_id = run_id or new_run_id()
    outcome = run_audit(config, run_id, command=command, debug=terminal.debug, say=terminal.stage, watch=terminal.watch)
    terminal.close()
    taskvalues.hand_on(taskvalues.CLEARED, "true" if outcome.cleared else "false")
    for warning in outcome.warnings:
        terminal.warn(warning)
    for one in outcome.failed:
        terminal.warn(f"{one['registry']} {one['release_id']} could not be evaluated: {one['reason']}")
    written = None
    if report_file is not None and outcome.status != "failed":
        from rapid_spark import report
        from rapid_spark.audit import page

        several = page.is_audit(outcome.report)
        written = report.write(outcome.report, report_file, page.render if several else None)
    code = 2 if outcome.at_fault else verdicts.exit_code(outcome.status, outcome.cleared, on_fail)
    if output == "json":
        click.echo(dumps(outcome.document() | ({"report": str(written)} if written else {})))
    elif output == "csv":
        click.echo(outcome.verdicts.to_csv(index=False), nl=False)
    else:
        _show(outcome, code, written)
    return code


def _show(outcome: Any, code: int, written: Path | None) -> None:
    from . import finding

    out = finding.console()
    verdicts.show(outcome.verdicts, out)
    finding.say(out)
    if outcome.status == "failed":
        finding.say(out, f"No release could be evaluated. That is exit code {code}.")
    else:
        finding.say(out, verdicts.closing(outcome.verdicts, code))
    finding.say(out, f"run     {outcome.run_id}  ({sum(outcome.seconds.values()):.0f} s)")
    finding.say(out, f"store   {outcome.store}")
    run = f"{outcome.mlflow_run_id} in" if outcome.mlflow_run_id else "no run:"
    finding.say(out, f"MLflow  {run} {outcome.tracking}")
    if written is not None:
        finding.say(out, f"report  {written}")
