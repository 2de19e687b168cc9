"""Which records and which quasi-identifiers carry the risk: subgroups, patterns, regression, relations.

Spark reduces the scored rows to counts (`levels`), `suppression` decides what may be shown, `attribution` fits; here the
rows of the tables come together.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from . import attribution, intervals, results, suppression
from .attribution import OTHER, SUPPRESSED
from .config import Config, ConfigError, suggest
from .levels import Counts, Levels, count_patterns, count_relations, find_levels
from .risk import Classes, Combination
from .suppression import ALL, CrossTable, Hidden

MAX_PAIR_LEVELS = 50  # quasi-identifiers with more have no rows for pairs
KEY_COLUMNS = (*results.KEYS, "weighting")
FIGURES = ("n", "n_at_risk", "rapid", "ci_low", "ci_high", "suppressed")
SUBGROUPS = PATTERNS = (*KEY_COLUMNS, "columns", "level", *FIGURES)
ATTRIBUTION = (*KEY_COLUMNS, "term", "kind", "estimate", "std_error", "ci_low", "ci_high")
RELATIONS = (*KEY_COLUMNS, "column", "level", "class_label", "known", "n", "n_at_risk", "rapid", "share_of_flags")
EXCLUSIONS = (
    *KEY_COLUMNS, "relations", "n", "n_at_risk", "rapid", "n_without", "n_at_risk_without", "rapid_without", "suppressed",
)


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


@dataclass
class Drivers:
    """What `find` returns.

    Attributes:
        subgroups, patterns, attribution: rows of risk_subgroups, risk_patterns, risk_attribution.
        relations: the (level, class) pairs with the most records at risk, for the report.
        exclusions: per combination the rate with and without the relations that everybody knows.
        warnings: what the reader must know.
    """

    subgroups: pd.DataFrame
    patterns: pd.DataFrame
    attribution: pd.DataFrame
    relations: pd.DataFrame
    exclusions: pd.DataFrame
    warnings: list[str]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of the store by name."""
        return {"risk_subgroups": self.subgroups, "risk_patterns": self.patterns, "risk_attribution": self.attribution}


def find(
    cells: DataFrame,
    records: DataFrame,
    combinations: Sequence[Combination],
    flags: Mapping[int, Column],
    columns: Mapping[str, str],
    classes: Mapping[str, Classes],
    config: Config,
    common: Mapping[str, Any],
) -> Drivers:
    """Drivers of the risk of every combination that has a result.

    Spark jobs: at most three for the levels; per quasi-identifier set and kind of target two (four where patterns of
    levels are more than `levels.MAX_PATTERNS`); one for relations and one for those excluded.

    Args:
        cells: scored rows with count `n`, for categorical attributes.
        records: scored rows with n = 1, for continuous attributes (may be the same frame).
        combinations: those with a result.
        flags: at_risk column (null where undefined) per combination index, over either frame.
        columns: column of every quasi-identifier.
        classes: classes of every categorical attribute.
        config: `drivers`, `intervals`, `training.seed`.
        common: key columns that are the same in every row (`run_id`, `registry`, `release_id`, `weighting`, `scored_on`).

    Raises:
        ConfigError: `drivers.exclude_relations` does not fit the data.
    """
    work = _Work(config, common, classes, list(combinations))
    relations = parse_relations(config.drivers.exclude_relations, list(columns), classes)
    used = {q: columns[q] for q in sorted({q for c in combinations for q in c.quasi_identifiers})}
    settings = config.drivers
    if not combinations or not (settings.subgroups or settings.patterns or settings.attribution or relations):
        return work.result()
    work.levels = find_levels(cells, used, settings.numeric_bins, settings.min_cell_count)
    for qi_set, members in _by_set(combinations).items():
        levels = [work.levels[q] for q in sorted(members[0].quasi_identifiers)]
        for kind, frame in (("categorical", cells), ("continuous", records)):
            mine = {c.index: flags[c.index] for c in members if c.target_type == kind}
            if mine:
                work.counts[qi_set, kind] = count_patterns(
                    frame, levels, mine, settings.min_cell_count, config.training.seed
                )
    work.count_relations(cells, flags, relations)
    work.suppress(relations)
    for c in combinations:
        work.add(c, relations)
    if relations:
        work.add_exclusions(cells, flags, relations)
    return work.result()


def _by_set(combinations: Iterable[Combination]) -> dict[str, list[Combination]]:
    sets: dict[str, list[Combination]] = {}
    for c in combinations:
        sets.setdefault(c.qi_set, []).append(c)
    return sets


@dataclass
class _Work:
    """Counts, what is held back, and the rows so far."""

    config: Config
    common: Mapping[str, Any]
    classes: Mapping[str, Classes]
    combinations: list[Combination]
    levels: dict[str, Levels] = field(default_factory=dict)
    counts: dict[tuple[str, str], Counts] = field(default_factory=dict)
    by_class: pd.DataFrame = field(default_factory=pd.DataFrame)
    crossed: dict[int, list[CrossTable]] = field(default_factory=dict)
    hidden: dict[int, Hidden | None] = field(default_factory=dict)  # None: everything, as the total tells too much
    shown: dict[str, set[int]] = field(default_factory=dict)  # patterns of a set whose n is known
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    intervals: dict[tuple[int, int], tuple[float | None, float | None]] = field(default_factory=dict)

    # -- counts

    def _counts(self, c: Combination) -> Counts:
        return self.counts[c.qi_set, c.target_type]

    def count_relations(self, cells: DataFrame, flags: Mapping[int, Column], relations: Sequence[Relation]) -> None:
        mine = [c for c in self.combinations if c.categorical]
        if not mine or not (self.config.drivers.subgroups or relations):
            return
        ranks = {}
        for c in mine:
            known = self.classes[c.sensitive_attribute]
            ranks[c.sensitive_attribute] = (known.index(c.column, c.missing), len(known.labels))
        self.by_class = count_relations(cells, list(self.levels.values()), ranks, {c.index: flags[c.index] for c in mine})
        self.by_class["t"] = [list(ranks)[t] for t in self.by_class["t"]]
        self.by_class["q"] = [list(self.levels)[q] for q in self.by_class["q"]]

    def _class_table(self, c: Combination, name: str, relations: Sequence[Relation]) -> CrossTable:
        labels, known = self.levels[name].labels, self.classes[c.sensitive_attribute].labels
        mine = self.by_class[(self.by_class["q"] == name) & (self.by_class["t"] == c.sensitive_attribute)]
        n, hits = np.zeros((2, len(labels), len(known)), dtype=np.int64)
        at = mine["x"].to_numpy(dtype=np.int64), mine["y"].to_numpy(dtype=np.int64) - 1
        n[at], hits[at] = mine[f"n{c.index}"], mine[f"a{c.index}"]
        declared = np.zeros(n.shape, dtype=bool)
        for r in relations:
            if r.column == name and r.level in labels and r.class_label in known:
                declared[labels.index(r.level), known.index(r.class_label)] = True
        # nearly all people of a level in one class: their number would tell the class of each
        telling = (n.sum(axis=1, keepdims=True) - n < suppression.few(self.config.drivers.min_cell_count)) & ~declared
        return CrossTable(name, f"class of {c.sensitive_attribute}", n, hits, listed=True, fixed_columns=True,
                          known=declared, telling=telling)

    # -- what may be shown

    def _tables(self, c: Combination, relations: Sequence[Relation]) -> list[CrossTable]:
        """Everything that is or could be published of one combination by levels."""
        counts, settings = self._counts(c), self.config.drivers
        names = [level.name for level in counts.levels]
        singles = [suppression.margin(name, *counts.single(d, c.index)) for d, name in enumerate(names)]
        pairs = []
        for i, j in itertools.combinations(range(len(names)), 2):
            n, hits = counts.cross(i, j, c.index)
            listed = (settings.pairs or settings.interactions) and max(n.shape) <= MAX_PAIR_LEVELS
            pairs.append(CrossTable(names[i], names[j], n, hits, listed=listed))
        by_class = [self._class_table(c, name, relations) for name in names] if c.categorical and len(self.by_class) else []
        return [*singles, *pairs, *by_class]

    def suppress(self, relations: Sequence[Relation]) -> None:
        """Sizes for all combinations alike, then the flags of each."""
        m = self.config.drivers.min_cell_count
        self.crossed = {c.index: self._tables(c, relations) for c in self.combinations}
        sizes = suppression.protect_sizes([t for tables in self.crossed.values() for t in tables], m)
        for c in self.combinations:
            n, hits = self.crossed[c.index][0].n.sum(), self.crossed[c.index][0].hits.sum()
            if suppression.is_sensitive(n, hits, m):
                self.hidden[c.index] = None
                self._note(c, f"no subgroups are shown: of all records, fewer than {suppression.few(m)} are at risk, or "
                              "all but as few, so that any group would tell of its people")
            else:
                self.hidden[c.index] = suppression.protect_hits(self.crossed[c.index], m, sizes)
        if self.config.drivers.pairs:
            wide = sorted(q for q, level in self.levels.items() if len(level.labels) > MAX_PAIR_LEVELS)
            for q in wide:
                self.notes.setdefault(f"{q!r} has more than {MAX_PAIR_LEVELS} levels: no rows for its pairs", [])
        for q, level in self.levels.items():
            if level.pooled:
                self.notes.setdefault(f"{q!r} has many levels: all but the {len(level.labels) - 1} largest are taken "
                                      f"together as {OTHER!r}", [])

    # -- rows

    def add(self, c: Combination, relations: Sequence[Relation]) -> None:
        """All rows of one combination."""
        settings, hidden = self.config.drivers, self.hidden[c.index]
        if settings.subgroups:
            self._add_subgroups(c, hidden)
        if hidden is None:
            return
        if settings.patterns:
            self._add_patterns(c, hidden)
        if settings.attribution:
            self._add_regression(c, hidden)
        if settings.subgroups and c.categorical and len(self.by_class):
            self._add_relations(c, hidden)

    def _add_subgroups(self, c: Combination, hidden: Hidden | None) -> None:
        for table in self.crossed[c.index]:
            labels = self.levels[table.row].labels
            if table.column == ALL:
                held = np.ones(len(labels), dtype=bool) if hidden is None else hidden.margins[table.row]
                for x, label in enumerate(labels):
                    self._row("subgroups", c, self._figures(table.n[x, 0], table.hits[x, 0], bool(held[x])),
                              columns=[table.row], level=[label])
            elif hidden is not None and table.listed and not table.fixed_columns and self.config.drivers.pairs:
                rows, columns, cells = hidden.margins[table.row], hidden.margins[table.column], hidden.cells_of(table)
                others = self.levels[table.column].labels
                for x, y in itertools.product(np.flatnonzero(~rows), np.flatnonzero(~columns)):
                    self._row("subgroups", c, self._figures(table.n[x, y], table.hits[x, y], bool(cells[x, y])),
                              columns=[table.row, table.column], level=[labels[x], others[y]])

    def _add_patterns(self, c: Combination, hidden: Hidden) -> None:
        counts, settings = self._counts(c), self.config.drivers
        names = [level.name for level in counts.levels]
        codes = counts.patterns[[f"l{d}" for d in range(len(names))]].to_numpy(dtype=np.int64)
        n = counts.patterns[f"n{c.index}"].to_numpy(dtype=np.int64)
        hits = counts.patterns[f"a{c.index}"].to_numpy(dtype=np.int64)
        tables = [t for t in self.crossed[c.index] if not t.fixed_columns or t.column == ALL]
        shown = self.shown.setdefault(f"{c.qi_set}\n{c.target_type}", set())
        chosen = suppression.listable_patterns(
            codes, n, hits, names, hidden, [t.key for t in tables if t.listed], tables, settings.min_cell_count,
            settings.patterns, shown,
        )
        shown.update(chosen)
        for i in chosen:
            self._row("patterns", c, self._figures(n[i], hits[i], False), columns=names,
                      level=[level.labels[x] for level, x in zip(counts.levels, codes[i], strict=True)])

    def _add_regression(self, c: Combination, hidden: Hidden) -> None:
        counts, settings = self._counts(c), self.config.drivers
        levels = {}
        for d, level in enumerate(counts.levels):
            labels = np.where(hidden.margins[level.name], SUPPRESSED, np.array(level.labels, dtype=object))
            levels[level.name] = labels[counts.sample[f"l{d}"].to_numpy(dtype=np.int64)]
        fitted = attribution.regress(
            pd.DataFrame(levels), counts.sample[f"n{c.index}"].to_numpy(), counts.sample[f"a{c.index}"].to_numpy(),
            self.config.intervals.confidence, self._products(c, hidden) if settings.interactions else (),
            self.config.training.seed,
        )
        if counts.share < 1:
            self._note(c, f"regression: fitted on a seeded sample of {counts.share:.1%} of the patterns")
        for note in fitted.notes:
            self._note(c, note)
        for row in fitted.rows:
            self._row("attribution", c, row)

    def _products(self, c: Combination, hidden: Hidden) -> list[tuple[attribution.Pair, attribution.Pair]]:
        """Pairs of levels whose counts may be known, the largest first."""
        found = []
        for table in self.crossed[c.index]:
            if table.listed and not table.fixed_columns:
                row, column = self.levels[table.row].labels, self.levels[table.column].labels
                for x, y in np.argwhere(~hidden.cells_of(table)):
                    found.append((-int(table.n[x, y]), (table.row, row[x]), (table.column, column[y])))
        return [(a, b) for _, a, b in sorted(found)]

    def _add_relations(self, c: Combination, hidden: Hidden) -> None:
        found = []
        total = int(self.crossed[c.index][0].hits.sum())
        for table in self.crossed[c.index]:
            if table.fixed_columns and table.column != ALL:
                for x, y in np.argwhere(~hidden.cells_of(table) & (table.hits > 0)):
                    found.append((-int(table.hits[x, y]), table.row, int(x), int(y), table))
        for _, name, x, y, table in sorted(found, key=lambda item: item[:4])[: max(1, self.config.drivers.patterns)]:
            n, hits = int(table.n[x, y]), int(table.hits[x, y])
            self._row("relations", c, {
                "column": name, "level": self.levels[name].labels[x], "n": n, "n_at_risk": hits, "rapid": hits / n,
                "class_label": self.classes[c.sensitive_attribute].labels[y], "share_of_flags": hits / total,
                "known": bool(table.known is not None and table.known[x, y]),
            })

    def add_exclusions(self, cells: DataFrame, flags: Mapping[int, Column], relations: Sequence[Relation]) -> None:
        """The rate among the records that are in none of the relations that everybody knows."""
        mine = {}
        for c in self.combinations:
            known = [r for r in relations if c.categorical and r.column in c.quasi_identifiers
                     and r.class_label in self.classes[c.sensitive_attribute].labels]
            if known:
                mine[c.index] = (c, known)
        if not mine:
            return
        sums = []
        for c, known in mine.values():
            inside = F.lit(False)
            rank = self.classes[c.sensitive_attribute].index(c.column, c.missing)
            for r in known:
                k = self.classes[c.sensitive_attribute].labels.index(r.class_label) + 1
                inside = inside | ((self.levels[r.column].label() == F.lit(r.level)) & (rank == F.lit(k)))
            for kind, where in (("n", flags[c.index].isNotNull()), ("a", flags[c.index])):
                sums.append(F.sum(F.when(inside & where, F.col("n")).otherwise(0)).alias(f"{kind}{c.index}"))
        found = cells.agg(*sums).toPandas().iloc[0]
        for c, known in mine.values():
            self._add_exclusion(c, known, int(found[f"n{c.index}"]), int(found[f"a{c.index}"]))

    def _add_exclusion(self, c: Combination, known: Sequence[Relation], n_known: int, hits_known: int) -> None:
        m, total = self.config.drivers.min_cell_count, self.crossed[c.index][0]
        n, hits = int(total.n.sum()), int(total.hits.sum())
        rest, rest_hits = n - n_known, hits - hits_known
        row: dict[str, Any] = {"relations": [str(r) for r in known], "n": n, "n_at_risk": hits, "rapid": hits / n}
        for r in known:
            if r.level not in self.levels[r.column].labels:
                self.notes.setdefault(f"drivers.exclude_relations: {r.column!r} has no level {r.level!r}; levels are "
                                      "those of risk_subgroups (of a numeric column its bins)", [])
        row["suppressed"] = bool(n_known < m or suppression.is_sensitive(rest, rest_hits, m))
        if not row["suppressed"]:
            row |= {"n_without": rest, "n_at_risk_without": rest_hits, "rapid_without": rest_hits / rest}
        self._row("exclusions", c, row)

    def _figures(self, n: int, hits: int, held: bool) -> dict[str, Any]:
        if held:
            return {"suppressed": True}
        key = int(n), int(hits)
        if key not in self.intervals:
            method = self.config.intervals.method
            # the others need draws per group; Wilson's holds the class thresholds fixed
            method = method if method in ("clopper_pearson", "wald") else "wilson"
            self.intervals[key] = intervals.proportion(key[1], key[0], self.config.intervals.confidence, method)
        low, high = self.intervals[key]
        return {"n": key[0], "n_at_risk": key[1], "rapid": key[1] / key[0], "ci_low": low, "ci_high": high,
                "suppressed": False}

    def _row(self, table: str, c: Combination, *figures: Mapping[str, Any], **more: Any) -> None:
        row = {**self.common, "replicate": c.replicate, "qi_set": c.qi_set, "measure": c.measure,
               "sensitive_attribute": c.sensitive_attribute, "attacker": c.attacker, **more}
        for part in figures:
            row |= part
        self.rows.setdefault(table, []).append(row)

    def _note(self, c: Combination, text: str) -> None:
        where = f"{c.sensitive_attribute} by {c.attacker}, {c.measure}, set {c.qi_set}, replicate {c.replicate}"
        self.notes.setdefault(text, []).append(where)

    def result(self) -> Drivers:
        """The rows as frames."""
        warnings = [
            text + (f" ({where[0]}" + (f"; and {len(where) - 1} more" if len(where) > 1 else "") + ")" if where else "")
            for text, where in self.notes.items()
        ]
        return Drivers(
            *(results.frame(self.rows.get(name, []), columns) for name, columns in (
                ("subgroups", SUBGROUPS), ("patterns", PATTERNS), ("attribution", ATTRIBUTION),
                ("relations", RELATIONS), ("exclusions", EXCLUSIONS),
            )),
            warnings,
        )
