"""`rapid-spark demo --audit`: four simulated national registries, three releases each, one of them too revealing."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from rapid_spark.resources import conf_path

from .audit import audit_and_show
from .terminal import Terminal


def run(terminal: Terminal, output: str, seed: int, folder: Path, on_fail: str, values: dict[str, Any]) -> int:
    """Write the registries' tables and a configuration, audit them, and say what the exit code means."""
    from rapid_spark.audit.settings import AuditConfig
    from rapid_spark.config import load_as

    terminal.stage("simulating four registries and their releases")
    config_file, planted = prepare(folder, seed)
    terminal.close()
    terminal.note(f"Simulated data: four invented registries with three releases each, in {folder}.")
    tracking = {"tracking.uri": values.get("tracking_uri"), "tracking.experiment": values.get("experiment")}
    overrides: dict[str, Any] = {k: v for k, v in tracking.items() if v}
    if values.get("no_tracking"):
        overrides["tracking.enabled"] = False
    config = load_as(AuditConfig, config_file, overrides)
    code = audit_and_show(terminal, config, output, None, on_fail, folder / "audit.html", "demo --audit")
    if output == "table":
        expected = f"The demonstration plants one release that reveals too much, {planted}: that exit code is meant to be 1."
        click.echo(f"\n{expected}" if code in (0, 1) else "")
        store = shlex.quote(str(config.store.location))
        click.echo("\nTo try next:")
        sql = "select registry, release_id, verdict, reason from audit_verdicts where rule = 'overall'"
        click.echo(f'  rapid-spark query --store {store} "{sql}"')
        click.echo(f"  rapid-spark audit --config {shlex.quote(str(config_file))} --audience named_recipients")
    return code


def prepare(folder: Path, seed: int) -> tuple[Path, str]:
    """Write the tables and the configuration that names them; returns the file and the planted release."""
    import yaml

    from rapid_spark.simulate import national_registries
    from rapid_spark.synthesizers.make import planned_release

    for needed in (folder.parent, folder):
        needed.mkdir(mode=0o700, parents=True, exist_ok=True)
    data = yaml.safe_load(conf_path("audit.yml").read_text(encoding="utf-8"))
    listed = {registry["name"]: registry for registry in data["registries"]}
    planted = []
    for place, registry in enumerate(national_registries(seed)):
        original = folder / f"{registry.name}.csv"
        registry.original.to_csv(original, index=False)
        listed[registry.name] |= {
            "original": str(original),
            "releases": str(folder / f"{registry.name}_release_*.csv"),
        }
        for number, plan in enumerate(registry.releases):
            release = planned_release(registry, plan, [seed, place, number])
            release.to_csv(folder / f"{registry.name}_release_{plan.release_id}.csv", index=False)
            planted += [f"{registry.name} {plan.release_id}"] if plan.too_revealing else []
    data["defaults"]["training"] = {"seed": seed}
    data["store"] = {"location": str(folder.parent)}
    config_file = folder / "audit.yml"
    config_file.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return config_file, ", ".join(planted)
