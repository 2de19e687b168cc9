"""Which records and which quasi-identifiers carry the risk: subgroups, patterns, regression, relations.

Spark reduces the scored rows to counts (`levels`), `suppression` decides what may be shown, `attribution` fits; here the
rows of the tables come together.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame

from . import attribution, intervals, results, suppression
from .attribution import OTHER, SUPPRESSED
from .config import Config
from .levels import Counts, Levels, count_patterns, find_levels
from .relations import Relation, applying, count_by_class, count_known, largest, parse_relations, with_and_without
from .risk import Classes, Combination
from .sidebyside import at_once
from .suppression import ALL, CrossTable, Hidden

MAX_PAIR_LEVELS = 50  # quasi-identifiers with more have no rows for pairs
TRIES = 50  # patterns looked at per pattern wanted
KEY_COLUMNS = (*results.KEYS, "weighting")
FIGURES = ("n", "n_at_risk", "rapid", "ci_low", "ci_high", "suppressed")
SUBGROUPS = PATTERNS = (*KEY_COLUMNS, "columns", "level", *FIGURES)
ATTRIBUTION = (*KEY_COLUMNS, "term", "kind", "estimate", "std_error", "ci_low", "ci_high")
RELATIONS = (*KEY_COLUMNS, "quasi_identifier", "level", "class_label", "known", "n", "n_at_risk", "rapid", "share_of_flags")
EXCLUSIONS = (
    *KEY_COLUMNS, "relations", "n", "n_at_risk", "rapid", "n_without", "n_at_risk_without", "rapid_without", "suppressed",
)


@dataclass
class Drivers:
    """What `find` returns.

    Attributes:
        subgroups, patterns, attribution: rows of risk_subgroups, risk_patterns, risk_attribution.
        relations: rows of risk_relations: the (level, class) pairs with the most records at risk.
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
        return {"risk_subgroups": self.subgroups, "risk_patterns": self.patterns, "risk_attribution": self.attribution,
                "risk_relations": self.relations}


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
    counting: dict[Any, Callable[[], Any]] = {}
    for qi_set, members in _by_set(combinations).items():
        levels = [work.levels[q] for q in sorted(members[0].quasi_identifiers)]
        for kind, frame in (("categorical", cells), ("continuous", records)):
            mine = {c.index: flags[c.index] for c in members if c.target_type == kind}
            if mine:
                counting[qi_set, kind] = functools.partial(
                    count_patterns, frame, levels, mine, settings.min_cell_count, config.training.seed
                )
    categorical = [c for c in combinations if c.categorical]
    if categorical and (settings.subgroups or relations):
        counting[None] = functools.partial(count_by_class, cells, work.levels, categorical, classes, flags)
    counted = dict(zip(counting, at_once(cells.sparkSession, list(counting.values())), strict=True))
    work.by_class = counted.pop(None, work.by_class)
    work.counts = counted
    work.suppress()
    for c in combinations:
        work.add(c, relations)
    work.add_exclusions(relations, count_known(cells, work.levels, categorical, classes, flags, relations))
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
    sizes_by_class: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)  # (level, class) cells whose n is known
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    intervals: dict[tuple[int, int], tuple[float | None, float | None]] = field(default_factory=dict)

    def _counts(self, c: Combination) -> Counts:
        return self.counts[c.qi_set, c.target_type]

    # -- what may be shown

    def _tables(self, c: Combination) -> list[CrossTable]:
        """Everything that is or could be published of one combination by levels."""
        counts, settings = self._counts(c), self.config.drivers
        names = [level.name for level in counts.levels]
        singles = [suppression.margin(name, *counts.single(d, c.index)) for d, name in enumerate(names)]
        pairs = []
        for i, j in itertools.combinations(range(len(names)), 2):
            n, hits = counts.cross(i, j, c.index)
            listed = (settings.pairs or settings.interactions) and max(n.shape) <= MAX_PAIR_LEVELS
            pairs.append(CrossTable(names[i], names[j], n, hits, listed=listed))
        return [*singles, *pairs]

    def suppress(self) -> None:
        """Sizes for all combinations alike, then the flags of each."""
        m = self.config.drivers.min_cell_count
        self.crossed = {c.index: self._tables(c) for c in self.combinations}
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
            for row in largest(
                self.by_class, c, self._counts(c).levels, self.classes[c.sensitive_attribute], relations, hidden.margins,
                settings.min_cell_count, max(1, settings.patterns), self.sizes_by_class,
            ):
                self._row("relations", c, row)

    def _add_subgroups(self, c: Combination, hidden: Hidden | None) -> None:
        for table in self.crossed[c.index]:
            labels = self.levels[table.row].labels
            if table.column == ALL:
                held = np.ones(len(labels), dtype=bool) if hidden is None else hidden.margins[table.row]
                for x, label in enumerate(labels):
                    self._row("subgroups", c, self._figures(table.n[x, 0], table.hits[x, 0], bool(held[x])),
                              columns=[table.row], level=[label])
            elif hidden is not None and table.listed and self.config.drivers.pairs:
                rows, columns, cells = hidden.margins[table.row], hidden.margins[table.column], hidden.cells_of(table)
                others = self.levels[table.column].labels
                for i, j in itertools.product(np.flatnonzero(~rows), np.flatnonzero(~columns)):
                    self._row("subgroups", c, self._figures(table.n[i, j], table.hits[i, j], bool(cells[i, j])),
                              columns=[table.row, table.column], level=[labels[i], others[j]])

    def _add_patterns(self, c: Combination, hidden: Hidden) -> None:
        counts, settings = self._counts(c), self.config.drivers
        names = [level.name for level in counts.levels]
        codes = counts.patterns[[f"l{d}" for d in range(len(names))]].to_numpy(dtype=np.int64)
        n = counts.patterns[f"n{c.index}"].to_numpy(dtype=np.int64)
        hits = counts.patterns[f"a{c.index}"].to_numpy(dtype=np.int64)
        tables = self.crossed[c.index]
        shown = self.shown.setdefault(f"{c.qi_set}\n{c.target_type}", set())
        chosen = listable_patterns(
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
            if table.listed:
                row, column = self.levels[table.row].labels, self.levels[table.column].labels
                for x, y in np.argwhere(~hidden.cells_of(table)):
                    found.append((-int(table.n[x, y]), (table.row, row[x]), (table.column, column[y])))
        return [(a, b) for _, a, b in sorted(found)]

    def add_exclusions(self, relations: Sequence[Relation], known: Mapping[int, tuple[int, int]]) -> None:
        """The rate among the records that are in none of the relations that everybody knows."""
        for r in relations:
            if r.column in self.levels and r.level not in self.levels[r.column].labels:
                self.notes.setdefault(f"drivers.exclude_relations: {r.column!r} has no level {r.level!r}; levels are "
                                      "those of risk_subgroups (of a numeric column its bins)", [])
        for c in self.combinations:
            if c.index in known:
                total = self.crossed[c.index][0]
                self._row("exclusions", c, with_and_without(
                    int(total.n.sum()), int(total.hits.sum()), *known[c.index], self.config.drivers.min_cell_count
                ), relations=[str(r) for r in applying(c, relations, self.classes)])

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
        def frame(name: str, columns: tuple[str, ...]) -> pd.DataFrame:
            return results.frame(self.rows.get(name, []), columns)

        return Drivers(frame("subgroups", SUBGROUPS), frame("patterns", PATTERNS), frame("attribution", ATTRIBUTION),
                       frame("relations", RELATIONS), frame("exclusions", EXCLUSIONS), warnings)


def listable_patterns(
    codes: np.ndarray,
    n: np.ndarray,
    hits: np.ndarray,
    names: Sequence[str],
    hidden: Hidden,
    listed_pairs: Iterable[tuple[str, str]],
    totals: Sequence[CrossTable],
    min_cell_count: int,
    limit: int,
    taken: Iterable[int] = (),
) -> list[int]:
    """The patterns with the most records at risk that can be shown beside the other tables.

    A pattern is shown when it is not sensitive, holds no level and no listed pair that is held back, and when what it
    leaves of every published total (all records, its levels, its listed pairs), after the patterns shown before it, is
    nobody or not sensitive. Patterns that are not shown are not listed either: their rank would tell.

    Args:
        codes: (patterns, columns) level numbers.
        n, hits: per pattern.
        names: quasi-identifiers, in the order of the columns.
        hidden: what is held back for this combination.
        listed_pairs: keys of the tables whose cells are published.
        totals: the tables of this combination that hold these margins and cells.
        min_cell_count: fewest records of a cell that is shown.
        limit: how many patterns are wanted.
        taken: patterns shown for other combinations of the same people, whose n is known therefore.

    Returns:
        Row numbers, most hits first.
    """
    good = ~suppression.is_sensitive(n, hits, min_cell_count)
    for d, name in enumerate(names):
        good &= ~hidden.margins[name][codes[:, d]]
    by_key = {t.key: t for t in totals}
    # of every published total: its table, and the cell that a pattern belongs to
    parts = [((name, ALL), codes[:, d]) for d, name in enumerate(names)]
    for a, b in listed_pairs:
        cells = codes[:, names.index(a)] * by_key[a, b].n.shape[1] + codes[:, names.index(b)]
        good &= ~hidden.cells_of(by_key[a, b]).ravel()[cells]
        parts.append(((a, b), cells))
    whole = by_key[names[0], ALL]
    rest_n = np.concatenate([[whole.n.sum()], *(by_key[key].n.ravel() for key, _ in parts)])
    rest_hits = np.concatenate([[whole.hits.sum()], *(by_key[key].hits.ravel() for key, _ in parts)])
    offsets = np.cumsum([1, *(by_key[key].n.size for key, _ in parts)])[:-1]

    def totals_of(i: int) -> np.ndarray:
        return np.array([0, *(offset + cells[i] for offset, (_, cells) in zip(offsets, parts, strict=True))])

    known = set(taken)
    rest_known = rest_n.copy()  # after the patterns whose n is known from any combination
    for i in known:
        rest_known[totals_of(i)] -= n[i]
    order = np.lexsort((*codes.T[::-1], -n, -hits))
    chosen: list[int] = []
    for i in order[good[order]][: TRIES * limit].tolist():
        if len(chosen) == limit:
            break
        g = totals_of(i)
        after_n, after_hits = rest_n[g] - n[i], rest_hits[g] - hits[i]
        after_known = rest_known[g] - (0 if i in known else n[i])
        small = (after_known > 0) & (after_known < min_cell_count)
        if small.any() or ((after_n > 0) & suppression.is_sensitive(after_n, after_hits, min_cell_count)).any():
            continue
        rest_n[g], rest_hits[g], rest_known[g] = after_n, after_hits, after_known
        chosen.append(i)
    return chosen
