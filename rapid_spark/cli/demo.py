"""`rapid-spark demo`: the embedded default, from simulated people to a finding."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from rapid_spark.config import Config, ConfigError, load
from rapid_spark.resources import conf_path

from . import verdicts
from .evaluate import evaluate_and_show
from .options import output_options, settings, store_option, together, tracking_options
from .report import write_report
from .terminal import Terminal

PEOPLE, KAPPA = 20_000, 5.0
SEED = 20260


@click.command()
@together(store_option, tracking_options, output_options)
@click.option("--seed", type=int, default=SEED, show_default=True, help="Seed of the people, the copy and the attackers.")
@click.option("--audit", "audits", is_flag=True, help="Audit four simulated registries, one release of which must fail.")
@verdicts.on_fail_option
@click.pass_obj
def demo(terminal: Terminal, output: str, seed: int, audits: bool, on_fail: str, **values: Any) -> int:
    """Simulate a registry of 20,000 people, release a synthetic copy of it, and evaluate that.

    Nobody in it is real. Two attributes (disease_status, income), five attackers; forests of 100 trees, where
    `evaluate` grows 500. With --audit: four registries with three releases each, judged by a policy; one release is
    planted to fail, so that the exit code is 1.
    """
    from rapid_spark import preparation
    from rapid_spark.warehouse import resolve

    terminal.configure_logging()
    place, _ = resolve(str(preparation.with_store(settings({"store": values["store"]})).store.location))
    if place is None:
        raise ConfigError("demo writes two files beside its results: give --store a directory, e.g. ./rapid-store")
    folder = place / "demo"
    if audits:
        from . import demo_audit

        return demo_audit.run(terminal, output, seed, folder, on_fail, values)
    terminal.stage("simulating a registry and its synthetic copy")
    config_file, config = prepare(folder, seed, values)
    terminal.close()
    terminal.note(
        f"Simulated data: {PEOPLE:,} invented people and a CART copy of them, in {folder}. "
        "Forests have 100 trees here; evaluate grows 500."
    )
    code = evaluate_and_show(terminal, config, output, None, "demo")
    report = write_report(terminal, str(config.store.location), str(terminal.run_id), folder / "report.html")
    if output == "table":
        click.echo(f"report  {report}")
        _next_steps(config_file, config)
    return code


def prepare(folder: Path, seed: int, values: dict[str, Any]) -> tuple[Path, Config]:
    """Write the two tables and the configuration that names them; returns the file and what it says."""
    import yaml

    from rapid_spark.simulate import registry
    from rapid_spark.synthesizers import CartSynthesizer

    people = registry(PEOPLE, KAPPA, seed, key=True)
    # as a registry holds them: whole years and points, incomes in hundreds
    people = people.astype({"age": int}).round({"health_score": 0, "income": -2})
    people = people.astype({"health_score": int, "income": int})
    copy = CartSynthesizer(seed=seed).fit(people.drop(columns="record_id")).sample(PEOPLE, [seed, 1])
    for needed in (folder.parent, folder):
        needed.mkdir(mode=0o700, parents=True, exist_ok=True)
    places = {"original": folder / "original.csv", "release": folder / "release.csv"}
    for frame, path in ((people, places["original"]), (copy, places["release"])):
        frame.to_csv(path, index=False)
    data = yaml.safe_load(conf_path("demo.yml").read_text(encoding="utf-8"))
    data |= {"original": str(places["original"]), "release": [str(places["release"])]}
    data["store"] = {"location": str(folder.parent)}
    data["training"] = {"seed": seed}
    config_file = folder / "demo.yml"
    config_file.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), encoding="utf-8")
    tracking = {"tracking.uri": values.get("tracking_uri"), "tracking.experiment": values.get("experiment")}
    overrides: dict[str, Any] = {k: v for k, v in tracking.items() if v}
    if values.get("no_tracking"):
        overrides["tracking.enabled"] = False
    return config_file, load(config_file, overrides)


def _next_steps(config_file: Path, config: Config) -> None:
    store = shlex.quote(str(config.store.location))
    click.echo("\nTo try next:")
    for command in (
        f'rapid-spark query --store {store} "select sensitive_attribute, rapid_max, worst_attacker from release_risk"',
        f"rapid-spark evaluate --config {shlex.quote(str(config_file))} --attacker cart --tau 0.5",
        "rapid-spark init my-evaluation.yml",
    ):
        click.echo(f"  {command}")
