"""`rapid-spark attack membership`, `attack linkage` and `attack test-epsilon`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from rapid_spark.config import Config, ConfigError
from rapid_spark.strictjson import dumps

from .disclosure import RUN_ID
from .options import (
    attack_input_options,
    output_options,
    settings,
    store_option,
    together,
    tracking_options,
)
from .terminal import Terminal

DEFAULT_COUNTS = "0,1,2,5,10,20,50,100"

claim_options = together(
    click.option("--epsilon", type=float, metavar="E", help="Claimed privacy budget."),
    click.option("--delta", type=float, default=0.0, show_default=True, metavar="D", help="Claimed delta."),
    click.option("--adjacency", type=click.Choice(["add_remove", "replace"]), default="add_remove", show_default=True,
                 help="What the claim is about: one record more or less, or one changed."),
    click.option("--pair", type=click.Choice(["add_remove", "replace"]),
                 help="How the two attacked histograms differ.  [default: as the claim]"),
    click.option("--mechanism", multiple=True, metavar="NAME",
                 help="laplace, gaussian, continuous_laplace; deliberately broken: half_noise, float_noise, reused_noise, "
                 "sensitivity_one; or module:function (with --allow-code). Repeatable.  [default: laplace]"),
    click.option("--allow-code", is_flag=True, help="Allow a mechanism by import path."),
    click.option("--counts", default=DEFAULT_COUNTS, show_default=True, metavar="N,N,..",
                 help="The histogram that is attacked: counts of its bins, public or made up."),
)  # fmt: skip
run_option = click.option("--run-id", metavar="ID", help=RUN_ID)


@click.group()
def attack() -> None:
    """Attack a release, or the claim that was made for it."""


@attack.command()
@together(attack_input_options, claim_options)
@click.option("--plays", type=click.IntRange(1_000), default=1_000, show_default=True, help="Plays a side in a repetition.")
@click.option("--repetitions", type=click.IntRange(2), default=20, show_default=True, help="Repetitions of all plays.")
@together(store_option, tracking_options, output_options)
@run_option
@click.pass_obj
def membership(terminal: Terminal, output: str, run_id: str | None, epsilon: float | None, plays: int, repetitions: int,
               **values: Any) -> None:
    """Was this record used? With --epsilon on noisy histograms, with --release on synthetic records.

    On histograms: real neighbours, releases of either, four attackers who guess which; accuracy beside the bound that the
    claim sets and the exact optimum. On records: distance to the closest record, and DOMIAS, members against a holdout.
    """
    config = settings(values)
    if (epsilon is None) == (not config.release):
        raise ConfigError("name a claim by --epsilon (histograms), or tables by --original, --release, --holdout (records)")
    if epsilon is not None:
        _on_histograms(terminal, config, output, run_id, epsilon, plays, repetitions, values)
        return
    from rapid_spark.attack import records

    def found(tables: Any, run: Any) -> list[Any]:
        most, seed = run.config.disclosure.max_records, run.config.training.seed
        return [row for r, release in tables.releases.items()
                for row in records.membership(tables, release, most, seed, {"replicate": r}, run.cores)]  # fmt: skip

    _on_tables(terminal, config, output, run_id, "attack membership", found)


@attack.command()
@together(attack_input_options, store_option, tracking_options, output_options)
@run_option
@click.pass_obj
def linkage(terminal: Terminal, output: str, run_id: str | None, **values: Any) -> None:
    """Nearest released record of each person by what the attacker knows.

    Reads the hidden attribute there; asks whether it is the person's own record (key in both tables), whether unique
    released combinations single a person out, and whether two sets of columns lead to one record. Beside chance, and
    beside the same attack on a holdout.
    """
    from rapid_spark.attack.linkage import linkage as attacked

    def found(tables: Any, run: Any) -> list[Any]:
        return attacked(tables, run.config, run.cores)

    _on_tables(terminal, settings(values), output, run_id, "attack linkage", found)


@attack.command("test-epsilon")
@claim_options
@click.option("--plays", type=click.IntRange(20), default=2_000, show_default=True,
              help="Plays a side for each of fitting, choice of the threshold and judgement.")
@click.option("--on-fail", type=click.Choice(["exit", "report"]), default="exit", show_default=True,
              help="Whether a violated claim is exit code 1, or only a result.")
@click.option("--registry", metavar="ID", help="Name of the registry.")
@click.option("--release-id", metavar="ID", help="Name of the release whose claim is tested.")
@together(store_option, tracking_options, output_options)
@run_option
@click.pass_obj
def test_epsilon(terminal: Terminal, output: str, run_id: str | None, epsilon: float | None, plays: int, on_fail: str,
                 **values: Any) -> int:
    """Is the claimed epsilon true? Attacks that prove a larger one disprove the claim.

    Thresholds are chosen on plays of their own; all attackers and mechanisms are judged together by Holm's rule at a
    family level of 1 in 1,000. A claim that stands is not proved by that.
    """
    from rapid_spark.attack import claims

    if epsilon is None:
        raise ConfigError("--epsilon: name the claim to be tested, e.g. --epsilon 1")
    config = settings(values)
    pair, chosen, claim, adjacency = _game(epsilon, values)
    with _run(terminal, config, "attack test-epsilon", run_id, reads=False) as run:
        tested: list[Any] = []
        for m in chosen:
            with run.clock.stage(f"testing {m.name}"):
                size = len(chosen) * len(claims.TESTERS)
                tested += claims.challenge(pair, m, *claim, plays=plays, tests=size)
        rows = []
        for found in claims.family(tested):
            rows.append({
                **{k: found[k] for k in ("attacker", "mechanism", "epsilon_lower_bound", "p_value", "verdict", "reason")},
                "attack": "test_epsilon", "n": 2 * found["plays"], "epsilon_claimed": epsilon,
                "delta_claimed": values["delta"], "adjacency": adjacency, "chance": 0.5, "status": "ok",
            })  # fmt: skip
        run.write("risk_attacks", _dated(rows))
        name = "epsilon_lower_bound"
        run.track({"risk_attacks": rows}, {f"{r['mechanism']}/{r['attacker']}/{name}": r[name] for r in rows})
    verdicts = {r["verdict"] for r in rows}
    verdict = "violated" if "violated" in verdicts else "not_violated" if verdicts == {"not_violated"} else "not_evaluated"
    least = claims.least_plays(claim[0], claim[1], claims.FAMILY_LEVEL / len(rows))
    line = (
        f"claim   epsilon {epsilon:g}: {verdict.replace('_', ' ')}; with fewer than {least} judged plays a side no attack "
        "could disprove it"
    )
    _finish(terminal, run, rows, output, {"verdict": verdict, "least_plays": least, "claim_for_the_pair": claim}, line)
    return 0 if verdict == "not_violated" or on_fail == "report" else 1


def _on_histograms(terminal: Terminal, config: Config, output: str, run_id: str | None, epsilon: float, plays: int,
                   repetitions: int, values: dict[str, Any]) -> None:
    from rapid_spark.attack import histograms, optima

    pair, chosen, claim, adjacency = _game(epsilon, values)
    bound = optima.claim_bound(*claim)
    with _run(terminal, config, "attack membership", run_id, reads=False) as run:
        rows = []
        for m in chosen:
            with run.clock.stage(f"playing against {m.name}"):
                seed = run.config.training.seed
                found = histograms.membership(pair, m, plays=plays, repetitions=repetitions, seed=seed)
            for a in found:
                above = a.accuracy.low is not None and a.accuracy.low > bound
                rows.append({
                    "attack": "membership_histogram", "attacker": a.attacker, "mechanism": m.name,
                    "epsilon_claimed": epsilon, "delta_claimed": values["delta"], "adjacency": adjacency, "n": a.n,
                    "accuracy": a.accuracy.value, "accuracy_low": a.accuracy.low, "accuracy_high": a.accuracy.high,
                    "auc": a.auc.value, "auc_low": a.auc.low, "auc_high": a.auc.high,
                    "tpr_at_1pct_fpr": a.tpr_at_1pct_fpr.value, "chance": 0.5, "bound": bound,
                    "optimum": optima.optimum(m, adjacency), "status": "ok",
                    "verdict": "leak" if above else "no_leak_found",
                    "reason": f"accuracy is {'above' if above else 'within'} what the claim allows",
                })  # fmt: skip
        run.write("risk_attacks", _dated(rows))
        run.track({"risk_attacks": rows}, {f"{r['mechanism']}/{r['attacker']}/accuracy": r["accuracy"] for r in rows})
    line = f"claim   epsilon {epsilon:g} allows an accuracy of {bound:.4f} on this pair"
    _finish(terminal, run, rows, output, {}, line)


def _game(epsilon: float, values: dict[str, Any]) -> tuple[Any, list[Any], tuple[float, float], Any]:
    """The neighbours, the mechanisms, and the claim for the pair."""
    import numpy as np

    from rapid_spark.attack import mechanisms
    from rapid_spark.reaedp.budget import check_delta, check_epsilon

    try:
        check_epsilon(epsilon), check_delta(values["delta"])
    except ValueError as error:
        raise ConfigError(str(error)) from None
    try:
        counts = np.array([int(n) for n in values["counts"].split(",")], dtype=np.int64)
    except ValueError:
        raise ConfigError(f"--counts: expected whole numbers with commas between them, e.g. {DEFAULT_COUNTS}") from None
    if len(counts) and counts.min() < 0:
        raise ConfigError("--counts: a bin has fewer than 0 records")
    claimed = values["adjacency"]
    adjacency = values["pair"] or claimed
    chosen = []
    for name in values["mechanism"] or ("laplace",):
        if ":" in name:
            if not values["allow_code"]:
                raise ConfigError(f"--mechanism {name}: an import path runs code: allow it by --allow-code")
            chosen.append(mechanisms.from_path(name, epsilon, values["delta"], claimed))
        else:
            chosen.append(mechanisms.mechanism(name, epsilon, values["delta"], claimed))
    claim = mechanisms.claim_for(adjacency, epsilon, values["delta"], claimed)
    return mechanisms.neighbours(counts, adjacency), chosen, claim, adjacency


def _on_tables(
    terminal: Terminal, config: Config, output: str, run_id: str | None, command: str, attacked: Any
) -> None:
    from rapid_spark import shared_columns

    with _run(terminal, config, command, run_id, reads=True) as run:
        with run.clock.stage("checking tables"):
            tables = shared_columns.lay(run.tables.original, run.tables.releases, run.config, run.tables.holdout)
        run.warnings += tables.warnings
        try:
            with run.clock.stage("attacking"):
                rows = [a.row() for a in attacked(tables, run)]
        finally:
            tables.close()
        run.write("risk_attacks", _dated(rows))
        run.track({"risk_attacks": rows}, {"/".join(_name(r)): r["accuracy"] for r in rows})
    _finish(terminal, run, rows, output, {}, "")


def _name(row: dict[str, Any]) -> list[str]:
    from rapid_spark.tracked import key_part

    parts = ("attack", "attacker", "qi_set", "sensitive_attribute", "replicate")
    return [key_part(row[p]) for p in parts if row.get(p) is not None]


def _run(terminal: Terminal, config: Config, command: str, run_id: str | None, reads: bool) -> Any:
    from rapid_spark.recording import recording

    terminal.configure_logging()
    return recording(config, command, run_id, reads=reads, needs=("risk_attacks",), debug=terminal.debug,
                     say=terminal.stage, watch=terminal.watch)  # fmt: skip


def _dated(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    return [{**row, "evaluated_at": now} for row in rows]


SHOWN = {"attack": "attack", "mechanism": "mechanism", "attacker": "attacker", "qi_set": "known",
         "sensitive_attribute": "attribute", "replicate": "release", "n": "n", "accuracy": "success", "interval": "95 %",
         "auc": "AUC", "tpr_at_1pct_fpr": "TPR at 1 % FPR", "chance": "chance", "control": "holdout", "bound": "bound",
         "optimum": "optimum", "epsilon_lower_bound": "epsilon proved", "p_value": "p", "verdict": "verdict"}  # fmt: skip


def _finish(
    terminal: Terminal, run: Any, rows: list[dict[str, Any]], output: str, more: dict[str, Any], line: str
) -> None:
    """Print the rows in the form asked for."""
    terminal.close()
    for warning in run.warnings:
        terminal.warn(warning)
    if output == "json":
        click.echo(dumps(run.document(results=rows, **more)))
        return
    if output == "csv":
        import pandas as pd

        click.echo(pd.DataFrame(rows).to_csv(index=False), nl=False)
        return
    from . import finding

    out = finding.console()
    shown = [{**r, "interval": _interval(r)} for r in rows]
    columns = [c for c in SHOWN if any(r.get(c) is not None for r in shown)]
    out.print(finding.frame_table([SHOWN[c] for c in columns], [[_cell(r.get(c)) for c in columns] for r in shown]))
    for row in rows:
        if row["status"] != "ok":
            finding.say(out, f"not tested: {row['attack']} ({row['reason']})")
        elif row.get("verdict") == "violated":
            finding.say(out, f"violated: {row['mechanism']} by {row['attacker']}: {row['reason']}")
    if line:
        finding.say(out, line)
    finding.say(out, "Computed from data without noise: for the custodian only.", "dim")
    finding.say(out, f"run     {run.run_id}\nstore   {run.store}")


def _interval(row: dict[str, Any]) -> str | None:
    low, high = row.get("accuracy_low"), row.get("accuracy_high")
    return None if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if not isinstance(value, float):
        return value
    return f"{value:.3g}" if abs(value) < 1e-3 else f"{value:.4f}"
