"""Linkage: an attacker knows some columns of a person and looks for the nearest released record.

Attribute linkage reads the hidden column there; re-identification asks whether it is the person's own record; singling
out asks whether a combination that is unique in the release is one person's; linkability asks whether two sets of known
columns lead to the same released record (Giomi, Boenisch, Wehmeyer, Tasnadi 2023). Each beside chance, and beside the
same attack on people who were not used to make the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .. import nearest
from ..config import Config
from ..disclosure.cells import cells
from ..disclosure.distances import ROWS_PER_TASK, sample, space_of
from ..shared_columns import SharedTables
from .results import Attack, against_control, untested

NEIGHBOURS = 5  # of each set of known columns, in linkability
CHANCE_ROWS = 2_000  # guesses by which chance is found for a continuous attribute


@dataclass(frozen=True)
class Setting:
    """What all linkage attacks on one replicate share.

    Attributes:
        tables: side by side.
        release: the replicate.
        config: settings.
        cores: tasks at once.
        about: fields of every row.
    """

    tables: SharedTables
    release: DataFrame
    config: Config
    cores: int
    about: dict[str, Any]

    def people(self) -> list[DataFrame]:
        """Sampled rows of the original, and of the holdout where there is one."""
        columns, most = [s.column for s in self.tables.columns], self.config.disclosure.max_records
        frames = [self.tables.original, *self._others]
        return [sample(f, columns, f.count(), most, self.config.training.seed, "record_id") for f in frames]

    def released(self, columns: Sequence[str]) -> pd.DataFrame:
        """Release rows on the driver, at most `max_records`, in an order that follows from their content."""
        every = [s.column for s in self.tables.columns]
        most = self.config.disclosure.max_records
        chosen = sample(self.release, every, self.release.count(), most, self.config.training.seed)
        rows = chosen.select(*columns).toPandas()
        return rows.sort_values(list(columns), ignore_index=True)

    def space(self, released: pd.DataFrame, columns: Sequence[str]) -> nearest.Space:
        """The space of some columns."""
        frames = [self.tables.original, self.release, *self._others]
        return space_of(self.tables, frames, [released], columns)

    @property
    def _others(self) -> list[DataFrame]:
        return [] if self.tables.holdout is None else [self.tables.holdout]

    @property
    def tasks(self) -> int:
        """Partitions to ask in."""
        return max(self.cores, self.config.disclosure.max_records // ROWS_PER_TASK)


def linkage(tables: SharedTables, config: Config, cores: int = 2) -> list[Attack]:
    """Every linkage attack, per replicate, quasi-identifier set and sensitive attribute."""
    found: list[Attack] = []
    for replicate, release in tables.releases.items():
        setting = Setting(tables, release, config, cores, {"replicate": replicate})
        for qi_set, keys in tables.sets.items():
            about = {"qi_set": qi_set}
            found.append(reidentification(setting, keys, about))
            for name, target in tables.targets.items():
                both = {**about, "sensitive_attribute": name}
                found.append(attribute(setting, keys, target, both))
                found.append(singling_out(setting, [*keys, target], both))
            found.append(linkability(setting, keys, about))
    return found


def attribute(setting: Setting, keys: Sequence[str], target: str, about: dict[str, Any]) -> Attack:
    """Nearest match on the known columns, then the hidden one: a random record of the nearest pattern.

    A guess of a continuous attribute is right within the configuration's tolerance (symmetric error).
    """
    patterns, values, of = _patterns(setting, keys, target)
    numeric = setting.tables.of(target)[0].numeric
    tolerance, delta = setting.config.threshold.tolerance, setting.config.threshold.delta

    def right(guesses: np.ndarray, truth: Any) -> np.ndarray:
        if not numeric:
            return np.array([g == truth or (g is None and truth is None) for g in guesses])
        return 2 * np.abs(guesses - truth) < tolerance * (np.abs(guesses) + abs(truth) + 2 * delta)

    counted, n = [], []
    for people in setting.people():
        asked = people if not numeric else people.where(F.col(target).isNotNull())
        # tolerance is about single values, so a continuous attribute is counted by value
        pairs = nearest.ask(asked, [target], of, patterns, 1, setting.tasks)
        table = pairs.groupBy(F.col("at")[0].alias("at"), target).count().toPandas()
        truths = table[target].astype(object).where(table[target].notna(), None)
        cells_of = zip(table["at"], truths, table["count"], strict=True)
        hits = [c * right(values[at], truth).mean() for at, truth, c in cells_of]
        counted.append((float(np.sum(hits)), table))
        n.append(int(table["count"].sum()))
    every = np.concatenate(values)
    truths = counted[0][1].groupby(target, dropna=False)["count"].sum()
    if len(truths) > CHANCE_ROWS:
        truths = truths.sample(CHANCE_ROWS, random_state=setting.config.training.seed)
    weights = truths.to_numpy(dtype=float)
    guessed = [right(every, None if pd.isna(t) else t).mean() for t in truths.index]
    chance = float(np.average(guessed, weights=weights))
    control = (counted[1][0], n[1]) if len(n) > 1 else None
    name = ("attribute_linkage", "nearest_match")
    return against_control(*name, counted[0][0], n[0], chance, control, {**about, **setting.about})


def _patterns(setting: Setting, keys: Sequence[str], value: str) -> tuple[nearest.Points, list[np.ndarray], nearest.Space]:
    """Distinct patterns of the known columns in the release, and the values that each is released with."""
    released = setting.released([*keys, value])
    numeric = value != "record_id" and setting.tables.of(value)[0].numeric
    if numeric:
        released = released[released[value].notna()].reset_index(drop=True)
    of = setting.space(released, keys)
    groups = released.groupby(list(keys), dropna=False, sort=True)
    number = groups.ngroup().to_numpy()
    first = released.loc[~pd.Series(number).duplicated().to_numpy()].assign(_n=lambda f: number[f.index]).sort_values("_n")
    order = np.argsort(number, kind="stable")
    column = released[value] if numeric else released[value].astype(object).where(released[value].notna(), None)
    ends = np.cumsum(np.bincount(number))[:-1]
    return of.encode(first), np.split(column.to_numpy()[order], ends), of


def reidentification(setting: Setting, keys: Sequence[str], about: dict[str, Any]) -> Attack:
    """Whether the nearest released record on the known columns is the person's own; among k nearest alike, one in k.

    Needs the key in both tables: a protected release of the same people, or two releases of them.
    """
    name = ("re_identification", "nearest_match")
    if not setting.tables.identified:
        why = "the release has no key of the original's records: a synthetic record is nobody's own"
        return untested(*name, why, {**about, **setting.about})
    patterns, values, of = _patterns(setting, keys, "record_id")
    sizes = [len(v) for v in values]
    owners = pd.DataFrame({"at": np.repeat(np.arange(len(sizes)), sizes), "own": np.concatenate(values)})
    owners["share"] = 1.0 / np.repeat(sizes, sizes)
    people = setting.people()[0]
    found = nearest.ask(people, ["record_id"], of, patterns, 1, setting.tasks)
    pairs = found.select("record_id", F.col("at")[0].alias("at")).toPandas()
    hits = pairs.merge(owners, left_on=["record_id", "at"], right_on=["own", "at"])["share"].sum()
    return against_control(*name, float(hits), len(pairs), 1.0 / len(owners), None, {**about, **setting.about})


def singling_out(setting: Setting, columns: Sequence[str], about: dict[str, Any]) -> Attack:
    """Combinations of values that are unique in the release: does exactly one person have each of them?

    The control asks the same of the holdout, both tables at the size of the smaller.
    """
    tables = setting.tables
    name = ("singling_out", "unique_combinations")
    if tables.holdout is None:
        row = _singled(setting, tables.original, columns)
        if not row[1]:
            return untested(*name, "no combination of values is unique in the release", {**about, **setting.about})
        return against_control(*name, row[0], row[1], None, None, {**about, **setting.about})
    counts = [tables.original.count(), tables.holdout.count()]
    every, seed = [s.column for s in tables.columns], setting.config.training.seed
    sides = [sample(f, every, n, min(counts), seed + i, "record_id")
             for i, (f, n) in enumerate(zip((tables.original, tables.holdout), counts, strict=True))]  # fmt: skip
    found = [_singled(setting, side, columns) for side in sides]
    if not found[0][1]:
        return untested(*name, "no combination of values is unique in the release", {**about, **setting.about})
    return against_control(*name, *found[0], None, found[1], {**about, **setting.about})


def _singled(setting: Setting, people: DataFrame, columns: Sequence[str]) -> tuple[int, int]:
    tables, bins = replace(setting.tables, original=people), setting.config.disclosure.bins
    unique = cells(tables, setting.release, columns, None, bins).frame.where("s = 1")
    row = unique.agg(F.count(F.lit(1)).alias("n"), F.count_if(F.col("d") == 1).alias("hits")).first()
    assert row is not None
    return int(row["hits"]), int(row["n"])


def linkability(setting: Setting, keys: Sequence[str], about: dict[str, Any]) -> Attack:
    """Whether the nearest released records by the known columns and by all others have one in common."""
    others = [s.column for s in setting.tables.columns if s.column not in keys]
    name = ("linkability", f"{NEIGHBOURS}_nearest")
    if not others:
        return untested(*name, "there are no columns beside the known ones to link by", {**about, **setting.about})
    released = setting.released([*keys, *others])
    k = min(NEIGHBOURS, len(released))
    spaces = [setting.space(released, columns) for columns in (keys, others)]
    points = [of.encode(released) for of in spaces]
    rates = []
    for people in setting.people():
        first = nearest.ask(people, others, spaces[0], points[0], k, setting.tasks).withColumnRenamed("at", "one")
        both = nearest.ask(first.select(*others, "one"), ["one"], spaces[1], points[1], k)
        met = F.count_if(F.arrays_overlap("one", "at"))
        row = both.agg(F.count(F.lit(1)).alias("n"), met.alias("hits")).first()
        assert row is not None
        rates.append((int(row["hits"]), int(row["n"])))
    chance = 1 - (1 - k / len(released)) ** k
    control = rates[1] if len(rates) > 1 else None
    return against_control(*name, *rates[0], chance, control, {**about, **setting.about})

