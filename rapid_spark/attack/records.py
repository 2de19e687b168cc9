"""Membership on synthetic records: was this person among those the release was made from?

Two scores of a record: the distance to the closest release record, and DOMIAS (van Breugel, Sun, Qian, van der Schaar
2023), the density of the release at the record over the density of other people; both densities by the distance to the
nearest neighbour. Members are original records, the others come from a holdout, half of which is DOMIAS' reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .. import nearest
from ..disclosure.distances import ROWS_PER_TASK, sample, space_of
from ..shared_columns import SharedTables
from . import rates
from .rates import Floats
from .results import LEAK, NONE, VERDICT_CONFIDENCE, Attack, untested

ATTACK = "membership_records"
SMOOTHING = 0.01  # of one column's range: two records that both have a twin in the release stay apart from none
FEWEST = 40  # people without membership


@dataclass(frozen=True)
class Scored:
    """Scores of sampled people; the higher, the more a record looks like a member's.

    Attributes:
        members, others: `record_id`, `dcr` (minus the distance to the closest release record) and `domias`.
    """

    members: pd.DataFrame
    others: pd.DataFrame


def scores(tables: SharedTables, release: DataFrame, most: int, seed: int, cores: int = 2) -> Scored:
    """Score members and others.

    Args:
        tables: with a holdout.
        release: one replicate.
        most: most records of each table; more are sampled.
        seed: of samples and of the split of the holdout.
        cores: tasks at once.
    """
    assert tables.holdout is not None
    columns = [s.column for s in tables.columns]
    released = sample(release, columns, release.count(), most, seed).select(*columns).toPandas()
    content = F.xxhash64(F.lit(seed), F.lit("reference"), F.col("record_id"))
    halves = tables.holdout.withColumn("half", F.pmod(content, F.lit(2)))
    reference_rows = halves.where("half = 0").drop("half")
    n_reference = reference_rows.count()
    reference = sample(reference_rows, columns, n_reference, most, seed, "record_id").select(*columns).toPandas()
    others = halves.where("half = 1").drop("half")
    # as many reference as release records: densities by nearest neighbours depend on how many there are
    size = min(len(released), len(reference))
    generator = np.random.default_rng(seed)
    of = space_of(tables, [tables.original, release, tables.holdout], [released, reference], columns)
    indices = [of.encode(f.iloc[np.sort(generator.permutation(len(f))[:size])]) for f in (released, reference)]
    whole = of.encode(released)
    found = []
    for frame in (tables.original, others):
        n = frame.count()
        chosen = sample(frame, columns, n, most, seed, "record_id")
        tasks = max(cores, min(n, most) // ROWS_PER_TASK)
        to_release = nearest.ask(chosen, ["record_id", *columns], of, whole, 1, tasks)
        to_release = to_release.withColumn("dcr", -F.col("distance")[0])
        to_part = _next(to_release, of, indices[0], columns, "near", ["dcr"])
        to_reference = _next(to_part, of, indices[1], columns, "far", ["dcr", "near"])
        found.append(to_reference.select("record_id", "dcr", "near", "far").toPandas())
    small = SMOOTHING / of.size
    return Scored(*(
        f.assign(domias=np.round(np.log((f["far"] + small) / (f["near"] + small)), 9), dcr=f["dcr"].round(9))
        [["record_id", "dcr", "domias"]] for f in found
    ))  # fmt: skip


def _next(
    frame: DataFrame, of: nearest.Space, points: nearest.Points, columns: list[str], name: str, keep: list[str]
) -> DataFrame:
    kept = ["record_id", *columns, *keep]
    return nearest.ask(frame.select(*kept), kept, of, points).withColumn(name, F.col("distance")[0])


def membership(
    tables: SharedTables, release: DataFrame, most: int, seed: int, about: dict[str, Any], cores: int = 2,
    confidence: float = 0.95,
) -> list[Attack]:
    """Both attackers on one replicate.

    The threshold of accuracy is chosen on one half of the people and judged on the other; AUC and true positives are of
    all. The verdict is 'leak' where the interval of the AUC is above one half at VERDICT_CONFIDENCE.
    """
    names = ("dcr", "domias")
    if tables.holdout is None:
        why = "there is no holdout: name people who were not used to make the release by --holdout"
        return [untested(ATTACK, name, why, about) for name in names]
    scored = scores(tables, release, most, seed, cores)
    if min(len(scored.members), len(scored.others)) < FEWEST:
        why = f"{len(scored.members)} members and {len(scored.others)} others: {FEWEST} or more of each are needed"
        return [untested(ATTACK, name, why, about) for name in names]
    return [_judged(name, scored, confidence, about) for name in names]


def _judged(name: str, scored: Scored, confidence: float, about: dict[str, Any]) -> Attack:
    out, inside = (f.sort_values("record_id")[name].to_numpy(dtype=float) for f in (scored.others, scored.members))
    cut = best_threshold(out[::2], inside[::2])
    judged_out, judged_in = out[1::2], inside[1::2]
    right = [float(np.sum(judged_out < cut)), float(np.sum(judged_in > cut))]
    accuracy = rates.balanced_interval(right[0], len(judged_out), right[1], len(judged_in), confidence)
    area = rates.auc(out, inside)
    low, high = rates.auc_interval(area, len(out), len(inside), confidence)
    least, _ = rates.auc_interval(area, len(out), len(inside), VERDICT_CONFIDENCE)
    return Attack(
        ATTACK, name, n=len(out) + len(inside), accuracy=accuracy.value, accuracy_low=accuracy.low,
        accuracy_high=accuracy.high, auc=area, auc_low=low, auc_high=high, tpr_at_1pct_fpr=rates.tpr_at(out, inside),
        chance=0.5, verdict=LEAK if least > 0.5 else NONE, **about,
    )  # fmt: skip


def best_threshold(out: Floats, inside: Floats) -> float:
    """The threshold of the best balanced accuracy on these scores, between two of them."""
    false, true = rates.roc(out, inside)
    values = np.unique(np.concatenate([out, inside]))[::-1]
    best = int(np.argmax(true - false))
    if best == 0:
        return float(values[0]) + 1.0
    below = values[best] if best < len(values) else values[-1] - 1.0
    return float(values[best - 1] + below) / 2
