"""Relations between a level and a class: who carries the flags, and the rate without what everybody knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from . import suppression
from .config import ConfigError, suggest
from .levels import Levels, numbered, sums
from .risk import MISSING_LABEL, Classes, Combination
from .suppression import CrossTable


@dataclass(frozen=True)
class Relation:
    """'column=level -> class': people of this level have this class, as everybody knows."""

    column: str
    level: str
    class_label: str

    def __str__(self) -> str:
        return f"{self.column}={self.level} -> {self.class_label}"


def parse_relations(
    texts: Sequence[str], quasi_identifiers: Sequence[str], classes: Mapping[str, Classes]
) -> tuple[Relation, ...]:
    """Relations from their texts.

    Args:
        texts: 'column=level -> class'.
        quasi_identifiers: known columns.
        classes: per categorical attribute; a relation concerns those that have its class.

    Raises:
        ConfigError: with every fault found, each under `drivers.exclude_relations`.
    """
    found, faults = [], []
    labels = sorted({label for k in classes.values() for label in k.labels})
    for text in texts:
        left, arrow, label = text.rpartition("->")
        column, equals, level = left.partition("=")
        relation = Relation(column.strip(), level.strip(), label.strip())
        if not (arrow and equals and relation.column and relation.level and relation.class_label):
            faults.append(f"{text!r} is not of the form 'column=level -> class'")
        elif relation.column not in quasi_identifiers:
            faults.append(f"{text!r}: {relation.column!r} is not a quasi-identifier."
                          f"{suggest(relation.column, quasi_identifiers)}")
        elif relation.class_label not in labels:
            faults.append(f"{text!r}: no categorical attribute has the class {relation.class_label!r}."
                          f"{suggest(relation.class_label, labels)}")
        else:
            found.append(relation)
    if faults:
        raise ConfigError("\n".join(f"drivers.exclude_relations: {fault}" for fault in faults))
    return tuple(found)


def check_levels(original: DataFrame, relations: Sequence[Relation], columns: Mapping[str, str]) -> None:
    """Refuse relations whose level nobody in the original has; one Spark job, if there are any.

    Args:
        original: rows with the columns.
        relations: as parsed.
        columns: column of every categorical quasi-identifier; others are passed over, as their levels are bins.

    Raises:
        ConfigError: under `drivers.exclude_relations`.
    """
    mine = [r for r in relations if r.column in columns]
    if not mine:
        return
    labels = (F.coalesce(F.col(columns[r.column]), F.lit(MISSING_LABEL)) for r in mine)
    there = original.agg(*(F.max(x == r.level).alias(f"r{i}") for i, (x, r) in enumerate(zip(labels, mine, strict=True))))
    found = there.toPandas().iloc[0]
    faults = [
        f"{str(r)!r}: {r.column!r} has no level {r.level!r} in the original"
        for i, r in enumerate(mine) if not found[f"r{i}"]
    ]
    if faults:
        raise ConfigError("\n".join(f"drivers.exclude_relations: {fault}" for fault in faults))


def count_by_class(
    cells: DataFrame,
    levels: Mapping[str, Levels],
    combinations: Sequence[Combination],
    classes: Mapping[str, Classes],
    flags: Mapping[int, Column],
) -> pd.DataFrame:
    """Counts by level of each quasi-identifier and true class of each categorical attribute, in one pass.

    Args:
        cells: scored rows with their count `n`.
        levels: by quasi-identifier.
        combinations: categorical ones.
        classes: by attribute.
        flags: at_risk per combination index.

    Returns:
        Rows of q (quasi-identifier), x (level number), t (attribute), y (class rank from 1), and per combination index
        `n0`.. (records with a defined outcome), `a0`.. (at risk).
    """
    names = list(levels)
    ranks = {c.sensitive_attribute: classes[c.sensitive_attribute].index(c.column, c.missing) for c in combinations}
    structs = [
        F.struct(F.lit(q).alias("q"), level.label().alias("x"), F.lit(t).alias("t"), rank.alias("y"))
        for q, level in enumerate(levels.values())
        for t, rank in enumerate(ranks.values())
    ]
    indices = [c.index for c in combinations]
    flat = cells.select("n", *(flags[i].alias(f"f{i}") for i in indices), F.inline(F.array(*structs)))
    found = flat.where(F.col("y").isNotNull()).groupBy("q", "x", "t", "y").agg(*sums(indices)).toPandas()
    parts = [numbered(found[found["q"] == q], {"x": levels[name]}) for q, name in enumerate(names)]
    counted = pd.concat(parts, ignore_index=True)
    return counted.assign(q=[names[q] for q in counted["q"]], t=[list(ranks)[t] for t in counted["t"]])


def class_table(by_class: pd.DataFrame, c: Combination, level: Levels, known: Classes) -> CrossTable:
    """Levels of one quasi-identifier by true class, for one combination."""
    mine = by_class[(by_class["q"] == level.name) & (by_class["t"] == c.sensitive_attribute)]
    n, hits = np.zeros((2, len(level.labels), len(known.labels)), dtype=np.int64)
    at = mine["x"].to_numpy(dtype=np.int64), mine["y"].to_numpy(dtype=np.int64) - 1
    n[at], hits[at] = mine[f"n{c.index}"], mine[f"a{c.index}"]
    return CrossTable(level.name, f"class of {c.sensitive_attribute}", n, hits, listed=True, fixed_columns=True)


def secret_cells(table: CrossTable, known: np.ndarray, min_cell_count: int) -> np.ndarray:
    """Cells of levels by class that are not told.

    The sensitive ones, and those that hold all, or all but a few, people of a level: their number would tell the class
    of each. Not so what everybody knows, where there are enough records.
    """
    others = table.n.sum(axis=1, keepdims=True) - table.n
    found = suppression.is_sensitive(table.n, table.hits, min_cell_count) | (others < suppression.few(min_cell_count))
    return (found & ~known) | (table.n < min_cell_count)


def known_cells(level: Levels, labels: Sequence[str], relations: Sequence[Relation]) -> np.ndarray:
    """Which cells of levels by class are relations that everybody knows."""
    found = np.zeros((len(level.labels), len(labels)), dtype=bool)
    for r in relations:
        if r.column == level.name and r.level in level.labels and r.class_label in labels:
            found[level.labels.index(r.level), labels.index(r.class_label)] = True
    return found


def largest(
    by_class: pd.DataFrame,
    c: Combination,
    levels: Sequence[Levels],
    classes: Classes,
    relations: Sequence[Relation],
    held_back: Mapping[str, np.ndarray],
    min_cell_count: int,
    limit: int,
    sizes: dict[tuple[str, str], np.ndarray],
) -> list[dict[str, Any]]:
    """The (level, class) pairs with the most records at risk that can be shown.

    Args:
        by_class: of `count_by_class`.
        c: the combination.
        levels: its quasi-identifiers.
        classes: of its attribute.
        relations: what everybody knows.
        held_back: per quasi-identifier the levels that are suppressed.
        min_cell_count: fewest records of a cell that is shown.
        limit: how many are wanted.
        sizes: per attribute and quasi-identifier the cells shown so far for other combinations; extended.

    Returns:
        Rows of quasi_identifier, level, class_label, known, n, n_at_risk, rapid, share_of_flags.
    """
    rows: list[dict[str, Any]] = []
    listings: dict[str, tuple[suppression.Listing, np.ndarray]] = {}
    candidates: list[tuple[int, str, int, int]] = []
    total = 0
    for level in levels:
        table, known = class_table(by_class, c, level, classes), known_cells(level, classes.labels, relations)
        place = sizes.setdefault((c.sensitive_attribute, level.name), np.zeros(table.n.shape, dtype=bool))
        secret = secret_cells(table, known, min_cell_count)
        listings[level.name] = suppression.Listing(table, held_back[level.name], secret, min_cell_count, place), known
        total = int(table.hits.sum())  # the same for every quasi-identifier
        candidates += [(-int(table.hits[x, y]), level.name, int(x), int(y)) for x, y in np.argwhere(~secret)]
    labels = {level.name: level.labels for level in levels}
    for _, name, x, y in sorted(candidates):
        if len(rows) == limit:
            break
        listing, known = listings[name]
        if listing.show(x, y):
            n, hits = int(listing.table.n[x, y]), int(listing.table.hits[x, y])
            rows.append({"quasi_identifier": name, "level": labels[name][x], "class_label": classes.labels[y], "n": n,
                         "known": bool(known[x, y]), "n_at_risk": hits, "rapid": hits / n, "share_of_flags": hits / total})
    return rows


def applying(c: Combination, relations: Sequence[Relation], classes: Mapping[str, Classes]) -> list[Relation]:
    """Relations that concern a combination."""
    return [r for r in relations if c.categorical and r.column in c.quasi_identifiers
            and r.class_label in classes[c.sensitive_attribute].labels]


def count_known(
    cells: DataFrame,
    levels: Mapping[str, Levels],
    combinations: Sequence[Combination],
    classes: Mapping[str, Classes],
    flags: Mapping[int, Column],
    relations: Sequence[Relation],
) -> dict[int, tuple[int, int]]:
    """Per combination that relations concern: records in any of them, and those at risk; one Spark job."""
    wanted, figures = [], []
    for c in combinations:
        mine = applying(c, relations, classes)
        if not mine:
            continue
        wanted.append(c.index)
        inside, known = F.lit(False), classes[c.sensitive_attribute]
        rank = known.index(c.column, c.missing)
        for r in mine:
            right_class = rank == F.lit(known.labels.index(r.class_label) + 1)
            inside = inside | ((levels[r.column].label() == F.lit(r.level)) & right_class)
        for kind, where in (("n", flags[c.index].isNotNull()), ("a", flags[c.index])):
            figures.append(F.sum(F.when(inside & where, F.col("n")).otherwise(0)).alias(f"{kind}{c.index}"))
    if not wanted:
        return {}
    found = cells.agg(*figures).toPandas().iloc[0]
    return {i: (int(found[f"n{i}"]), int(found[f"a{i}"])) for i in wanted}


def with_and_without(n: int, hits: int, n_known: int, hits_known: int, min_cell_count: int) -> dict[str, Any]:
    """The rate among all records, and among those in none of the relations that everybody knows.

    Args:
        n, hits: all records, and those at risk.
        n_known, hits_known: those in the relations.
        min_cell_count: the second rate is suppressed where one of the two parts could tell of a person.
    """
    rest, rest_hits = n - n_known, hits - hits_known
    row: dict[str, Any] = {"n": n, "n_at_risk": hits, "rapid": hits / n, "suppressed": False}
    if n_known < min_cell_count or suppression.is_sensitive(np.array(rest), np.array(rest_hits), min_cell_count):
        return row | {"suppressed": True}
    return row | {"n_without": rest, "n_at_risk_without": rest_hits, "rapid_without": rest_hits / rest}
