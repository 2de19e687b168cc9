"""`rapid-spark sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rapid_spark.config import ConfigError
from rapid_spark.strictjson import dumps, strict

from .options import attack_input_options, output_options, settings, store_option, together, tracking_options
from .terminal import Terminal

EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
MECHANISMS = ("independent", "naive_bayes", "bayes_net")


@click.command()
@together(attack_input_options)
@click.option(
    "--mechanism",
    multiple=True,
    metavar="NAME",
    help=f"independent, naive_bayes, bayes_net, mechanism_f. Repeatable.  [default: {', '.join(MECHANISMS)}]",
)
@click.option(
    "--epsilon",
    multiple=True,
    type=float,
    metavar="E",
    help=f"Privacy budget of a release. Repeatable.  [default: {', '.join(f'{e:g}' for e in EPSILONS)}]",
)
@click.option("--delta", type=float, default=0.0, show_default=True, metavar="D", help="Total delta of mechanism_f.")
@click.option(
    "--dataset", "datasets", multiple=True, metavar="FILE", help="A further configuration, one a dataset. Repeatable."
)
@click.option("--public", is_flag=True, help="The original is public or simulated: needed for mechanisms.")
@click.option(
    "--attacker", metavar="NAME", multiple=True, help="Attackers of RAPID. Repeatable.  [default: the configuration's]"
)
@click.option(
    "--max-records",
    type=click.IntRange(100),
    default=5_000,
    show_default=True,
    help="Records that distances, prediction and regression take.",
)
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="PNG of the risk-utility map.  [default: sweep-RUN-DATASET.png in the current folder]",
)
@together(store_option, tracking_options, output_options)
@click.option(
    "--run-id", metavar="ID", help="The same id again goes on where it stopped.  [default: time and a random suffix]"
)
@click.pass_obj
def sweep(
    terminal: Terminal,
    output: str,
    run_id: str | None,
    mechanism: tuple[str, ...],
    epsilon: tuple[float, ...],
    delta: float,
    datasets: tuple[str, ...],
    public: bool,
    max_records: int,
    picture: Path | None,
    **values: Any,
) -> None:
    """The risk-utility map: utility, RAPID, membership and linkage of releases over mechanisms and epsilons.

    With --release the listed releases are measured beside those that mechanisms make. Mechanisms read the domains off the
    original and every figure is computed from it without noise: only for data that are public or simulated (--public).
    """
    from rapid_spark.sweep import makers, work
    from rapid_spark.underway import new_run_id

    configs = [settings(values), *(settings({**values, "config_file": name}) for name in datasets)]
    made = bool(mechanism or epsilon or not any(c.release for c in configs))
    names, budgets = (mechanism or MECHANISMS, epsilon or EPSILONS) if made else ((), ())
    makers.check(names, budgets)
    faults = [f"{c.registry}: --original is needed" for c in configs if not c.original]
    if made and not public:
        faults.append(
            "--public: say that the originals are public or simulated; mechanisms here read their domains off them"
        )
    if made:
        faults += [
            f"{c.registry}: a sweep needs one sensitive attribute at least" for c in configs if not c.sensitive_attributes
        ]
    if len({c.registry for c in configs}) < len(configs):
        faults.append("--dataset: each configuration needs a registry name of its own")
    if faults:
        raise ConfigError("\n".join(faults))
    update = {"disclosure": configs[0].disclosure.model_copy(update={"max_records": max_records})}
    configs = [c.model_copy(update=update) for c in configs]
    run_id = run_id or new_run_id()
    terminal.configure_logging()
    found = work.sweep(
        configs, names, budgets, delta, run_id, debug=terminal.debug, say=terminal.stage, watch=terminal.watch
    )
    _show(terminal, found, output, picture, run_id)


SHOWN = {"dataset": "dataset", "mechanism": "mechanism", "epsilon": "epsilon", "utility": "utility", "tstr": "TSTR",
         "rapid": "RAPID", "rapid_excess": "less chance", "membership_auc": "membership AUC", "linkage": "linkage",
         "histogram_accuracy": "histogram attack", "epsilon_lower_bound": "epsilon proved",
         "pareto": "Pareto front"}  # fmt: skip


def _show(terminal: Terminal, document: dict[str, Any], output: str, picture: Path | None, run_id: str) -> None:
    from rapid_spark.sweep.picture import draw

    rows, written = document["results"], []
    for dataset in dict.fromkeys(r["dataset"] for r in rows):
        mine = [r for r in rows if r["dataset"] == dataset and r.get("utility") is not None]
        if not mine:
            continue
        path = Path(f"sweep-{run_id}-{dataset}.png") if picture is None else picture
        if picture is not None and len({r["dataset"] for r in rows}) > 1:
            path = picture.with_stem(f"{picture.stem}-{dataset}")
        draw(mine, dataset).savefig(path, dpi=150)
        written.append(str(path))
    terminal.close()
    for warning in document["warnings"]:
        terminal.warn(warning)
    if output == "json":
        click.echo(dumps({**document, "pictures": written}))
        return
    if output == "csv":
        import pandas as pd

        click.echo(pd.DataFrame([strict(r) for r in rows]).to_csv(index=False), nl=False)
        return
    from . import finding

    out = finding.console()
    columns = [c for c in SHOWN if any(r.get(c) is not None for r in rows)]
    listed = [[_cell(r.get(c)) for c in columns] for r in rows if r.get("utility") is not None]
    out.print(finding.frame_table([SHOWN[c] for c in columns], listed))
    for r in rows:
        if r.get("reason"):
            finding.say(out, f"no release: {r['mechanism']} at epsilon {r['epsilon']:g} ({r['reason']})")
    finding.say(out, "Computed from the original without noise: for data that are public or simulated.", "dim")
    for place in written:
        finding.say(out, f"picture {place}")
    finding.say(out, f"run     {run_id}\nstore   {document['store']}")


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else ""
    return "" if value is None else f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
