"""What is measured of each release of a sweep: utility, RAPID, membership, linkage; and of the noise at its epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from .. import evaluation, io, shared_columns
from ..attack import claims, histograms, linkage, mechanisms, optima, records
from ..config import Config
from ..io import Source
from ..reaedp import entropy
from ..results import Assessment
from ..suite import rows_of
from ..utility import assessment as utility

Stage = Callable[[str], AbstractContextManager[None]]
PLAYS, REPETITIONS = 1_000, 20


@dataclass
class Cell:
    """One release of the map and what was found of it.

    Attributes:
        dataset, mechanism: where it comes from; the mechanism of a listed release is 'listed'.
        epsilon: its claim; None for a listed release.
        release_id: under which its rows are stored.
        utility, attacks: rows of `release_utility` and `risk_attacks`.
        point: figures of the map by name.
        reason: why there is no release.
    """

    dataset: str
    mechanism: str
    epsilon: float | None
    release_id: str
    utility: list[dict[str, Any]] = field(default_factory=list)
    attacks: list[dict[str, Any]] = field(default_factory=list)
    point: dict[str, float | None] = field(default_factory=dict)
    reason: str | None = None


def measure(
    spark: Any,
    original: Source,
    holdout: Source | None,
    releases: Mapping[str, tuple[Cell, Source]],
    config: Config,
    run_id: str,
    stage: Stage,
    cores: int,
) -> None:
    """Measure several releases of one original together; their cells are filled.

    RAPID takes them as replicates: one alignment, one scoring of the original with all attackers.

    Args:
        spark: session.
        original, holdout: people.
        releases: by release id, the cell and its table.
        config: settings; `disclosure.max_records` bounds what distances and utility take.
        run_id: of the sweep.
        stage: names what runs.
        cores: tasks at once.
    """
    numbered = {i + 1: cell for i, (cell, _) in enumerate(releases.values())}
    sources = {i + 1: source for i, (_, source) in enumerate(releases.values())}
    tables = shared_columns.lay(original, sources, config, holdout)
    try:
        for r, cell in numbered.items():
            cell.utility += [{"measure": u.measure, "columns": list(u.columns), "value": u.value}
                             for u in utility.assess(tables, config, stage, r)]  # fmt: skip
            with stage("attacking"):
                most, seed = config.disclosure.max_records, config.training.seed
                found = records.membership(tables, tables.releases[r], most, seed, {"replicate": 1}, cores)
                setting = linkage.Setting(tables, tables.releases[r], config, cores, {"replicate": 1})
                for qi_set, keys in tables.sets.items():
                    for name, target in tables.targets.items():
                        about = {"qi_set": qi_set, "sensitive_attribute": name}
                        found.append(linkage.attribute(setting, keys, target, about))
                cell.attacks += [{**a.row(), "epsilon_claimed": cell.epsilon} for a in found]
    finally:
        tables.close()
    bare = config.model_copy(update={
        "training": config.training.model_copy(update={"replicates": "each"}),
        "drivers": config.drivers.model_copy(update={"subgroups": False, "patterns": 0, "attribution": False}),
        "intervals": config.intervals.model_copy(update={"permutations": 0, "method": "wilson"}),
    })  # fmt: skip
    assessed = evaluation.evaluate(spark, original, sources, bare, run_id, None, cores)
    try:
        _add_rapid(numbered, assessed)
    finally:
        assessed.close()
    for cell in numbered.values():
        cell.point = point(cell)


def _add_rapid(numbered: Mapping[int, Cell], assessed: Assessment) -> None:
    for row in rows_of(assessed.summary):
        if row["status"] == "ok" and row["scored_on"] == "original":
            cell = numbered[int(row["replicate"])]
            cell.attacks.append({
                "attack": "attribute_inference", "attacker": f"rapid:{row['attacker']}", "n": row["n"],
                "accuracy": row["rapid"],
                "accuracy_low": row["ci_low"], "accuracy_high": row["ci_high"], "chance": row["baseline_rate"],
                "qi_set": row["qi_set"], "sensitive_attribute": row["sensitive_attribute"], "replicate": 1,
                "epsilon_claimed": cell.epsilon, "status": "ok", "verdict": None, "reason": "RAPID beside what chance gives",
            })  # fmt: skip


def of_noise(cell: Cell, histogram: np.ndarray, delta: float = 0.0) -> None:
    """The guarantee at the cell's epsilon: the best attacker on a noisy histogram, the test of the claim, the entropy.

    Args:
        cell: with an epsilon.
        histogram: exact counts of a public column.
        delta: unused by Laplace noise.
    """
    assert cell.epsilon is not None
    pair = mechanisms.neighbours(histogram, "add_remove")
    noise = mechanisms.mechanism("laplace", cell.epsilon, delta, "add_remove")
    best = histograms.membership(pair, noise, plays=PLAYS, repetitions=REPETITIONS, attackers=("likelihood_ratio",))[0]
    bound = optima.claim_bound(cell.epsilon)
    cell.attacks.append({
        "attack": "membership_histogram", "attacker": best.attacker, "mechanism": "laplace", "epsilon_claimed": cell.epsilon,
        "adjacency": "add_remove", "n": best.n, "accuracy": best.accuracy.value, "accuracy_low": best.accuracy.low,
        "accuracy_high": best.accuracy.high, "auc": best.auc.value, "tpr_at_1pct_fpr": best.tpr_at_1pct_fpr.value,
        "chance": 0.5, "bound": bound, "optimum": optima.optimum(noise, "add_remove"),
        "status": "ok", "verdict": "leak" if (best.accuracy.low or 0.0) > bound else "no_leak_found",
    })  # fmt: skip
    tested = claims.family(claims.challenge(pair, noise, cell.epsilon, attackers=("likelihood_ratio",), plays=PLAYS))[0]
    cell.attacks.append({
        "attack": "test_epsilon", "attacker": "likelihood_ratio", "mechanism": "laplace", "epsilon_claimed": cell.epsilon,
        "adjacency": "add_remove", "n": 2 * tested["plays"], "epsilon_lower_bound": tested["epsilon_lower_bound"],
        "p_value": tested["p_value"], "chance": 0.5, "status": "ok", "verdict": tested["verdict"],
        "reason": tested["reason"],
    })  # fmt: skip
    n, bins = int(histogram.sum()), len(histogram)
    found = {
        "entropy_change": entropy_change(histogram),
        "entropy_bound": entropy.shannon_sensitivity(n, bins),
        "entropy_bound_theorem3": entropy.shannon_sensitivity(n, bins, bound="theorem3"),
    }
    for name, value in found.items():
        cell.utility.append({"measure": name, "columns": [], "value": value})


def entropy_change(counts: np.ndarray) -> float:
    """The largest change of a histogram's entropy when one of its records moves to another bin, by trying all moves."""
    whole, largest = entropy.shannon(counts), 0.0
    for i in np.flatnonzero(counts):
        for j in range(len(counts)):
            moved = counts.copy()
            moved[i] -= 1
            moved[j] += 1
            largest = max(largest, abs(entropy.shannon(moved) - whole))
    return largest


def point(cell: Cell) -> dict[str, float | None]:
    """Figures of the map: utility from 0 to 1, and the risks, each the largest over attackers and attributes."""
    values = {u["measure"]: u["value"] for u in cell.utility}
    trained = [u["value"] for u in cell.utility if u["measure"] in ("tstr_auc", "tstr_r2") and u["value"] is not None]
    marginal, pairs = values.get("total_variation_mean"), values.get("association_error_mean")
    rapid = [a for a in cell.attacks if a["attack"] == "attribute_inference"]

    def most(attack: str, figure: str) -> float | None:
        found = [a[figure] for a in cell.attacks if a["attack"] == attack and a.get(figure) is not None]
        return max(found) if found else None

    return {
        "utility": None if marginal is None or pairs is None else 1.0 - (marginal + pairs) / 2,
        "total_variation_mean": marginal, "association_error_mean": pairs, "pmse_ratio": values.get("pmse_ratio"),
        "tstr": float(np.mean(trained)) if trained else None,
        "rapid": most("attribute_inference", "accuracy"),
        "rapid_excess": max((a["accuracy"] - (a["chance"] or 0.0) for a in rapid), default=None),
        "membership_auc": most("membership_records", "auc"),
        "linkage": most("attribute_linkage", "accuracy"), "linkage_difference": most("attribute_linkage", "difference"),
        "histogram_accuracy": most("membership_histogram", "accuracy"),
        "epsilon_lower_bound": most("test_epsilon", "epsilon_lower_bound"),
        "entropy_change": values.get("entropy_change"), "entropy_bound": values.get("entropy_bound"),
    }  # fmt: skip


def pareto(points: list[tuple[float, float]]) -> list[bool]:
    """Which points (utility, risk) no other beats: none has as much utility at as little risk and more of one."""
    return [not any((u >= own_u and r <= own_r) and (u > own_u or r < own_r) for u, r in points) for own_u, own_r in points]


def frame_source(spark: Any, frame: pd.DataFrame, name: str) -> Source:
    """A made release as a table."""
    return io.from_frame(spark, frame, name)


def safe(value: float | None) -> bool:
    """Whether a figure can be drawn."""
    return value is not None and math.isfinite(value)
