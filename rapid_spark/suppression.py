"""Which cells of published counts are held back, so that no small one can be worked out from the others; no Spark.

The rule for one cell (`is_sensitive`): it is held back when it has fewer than `min_cell_count` records, or when the
records at risk, or those not at risk, are *a few*: fewer than `few(min_cell_count)` (3 of 10). None and all are a few
too. A part of a sensitive cell is itself sensitive.

Cells held back on these grounds could be subtracted out of totals. A table of two columns with its margins and the
total is a circulation: total -> level of the first column -> cell -> level of the second -> total. What an attacker
cannot tell about an arc that is held back is the flow that can be sent around it through other such arcs, between 0
and the number of records of each. So the maximal flow gives the exact bounds, and the cheapest path that widens them
gives the cells to hold back besides (complementary suppression by network flow: Cox, JASA 90, 1995, 1453-1462). The
attacker of `protect_hits` knows the number of records of every cell, as one does who knows everybody's
quasi-identifiers; other attackers' and replicates' tables of the same people tell no more than that.

Limits: bounds are exact for each two columns with their margins. One who also knows how many records every combination
of three or more columns has may narrow the bounds of a pair by one or two (18 of 1,363 sensitive pairs in simulated
tables; no level, and no exact value). Tables of an
earlier version of the same register, or with other bins, are not taken into account, and counts are of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

ALL = ""  # the one level of a table that has no second column
_HIDDEN_COST = 1e-6  # a path through arcs that are held back anyway costs next to nothing
_MARGIN_COST = 10.0  # a level takes all its cells with it
_NO_LIMIT = np.iinfo(np.int32).max


def few(min_cell_count: int) -> int:
    """Counts below this are *a few*: a third of the smallest cell shown, at least 2."""
    return max(2, min_cell_count // 3)


def is_sensitive(n: np.ndarray, hits: np.ndarray, min_cell_count: int) -> np.ndarray:
    """Whether cells must be held back by their own counts.

    Args:
        n: records per cell.
        hits: records at risk per cell.
        min_cell_count: fewest records of a cell that is shown.

    Returns:
        Boolean array: n < min_cell_count, or hits or n - hits below `few(min_cell_count)`.
    """
    n, hits = np.asarray(n), np.asarray(hits)
    limit = few(min_cell_count)
    return (n < min_cell_count) | (hits < limit) | (n - hits < limit)


@dataclass(frozen=True)
class CrossTable:
    """Counts of the same people by two columns.

    Attributes:
        row, column: names; `column` is ALL where there is no second one.
        n: (rows, columns) records.
        hits: (rows, columns) records at risk.
        listed: whether the cells are published, not only the margins.
        fixed_columns: the column margins are published whatever they are (totals, classes).
    """

    row: str
    column: str
    n: np.ndarray
    hits: np.ndarray
    listed: bool = False
    fixed_columns: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.row, self.column


def margin(name: str, n: np.ndarray, hits: np.ndarray) -> CrossTable:
    """A table of one column, whose total is published."""
    return CrossTable(name, ALL, np.asarray(n)[:, None], np.asarray(hits)[:, None], fixed_columns=True)


@dataclass
class Hidden:
    """What is held back: levels by column, cells by pair of columns; boolean arrays."""

    margins: dict[str, np.ndarray] = field(default_factory=dict)
    cells: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)

    def copy(self) -> Hidden:
        """An independent copy."""
        return Hidden({k: v.copy() for k, v in self.margins.items()}, {k: v.copy() for k, v in self.cells.items()})

    def _enter(self, table: CrossTable) -> None:
        rows, columns = table.n.shape
        self.margins.setdefault(table.row, np.zeros(rows, dtype=bool))
        if not table.fixed_columns:
            self.margins.setdefault(table.column, np.zeros(columns, dtype=bool))
        if table.listed:
            self.cells.setdefault(table.key, np.zeros((rows, columns), dtype=bool))

    def columns_of(self, table: CrossTable) -> np.ndarray:
        """Held-back column levels of a table."""
        return np.zeros(table.n.shape[1], dtype=bool) if table.fixed_columns else self.margins[table.column]

    def cells_of(self, table: CrossTable) -> np.ndarray:
        """Held-back cells of a table: those marked, and all of a level that is held back."""
        if not table.listed:
            return np.ones(table.n.shape, dtype=bool)
        return self.cells[table.key] | self.margins[table.row][:, None] | self.columns_of(table)[None, :]


def protect_sizes(tables: Sequence[CrossTable], min_cell_count: int) -> Hidden:
    """Hold back cells with fewer than `min_cell_count` records, and what is needed so that their n stays open.

    Their n is the same for every attacker, replicate and measure, so this goes for all of them alike: otherwise the
    complement of one run would give away the cell in another. Empty cells are held back like small ones.

    Args:
        tables: every table of these people, of all combinations.
        min_cell_count: fewest records of a cell that is shown.

    Returns:
        The cells held back. n of each small one could be at least `min_cell_count`, and `few` smaller where it has so
        many; n of the others held back could be another.
    """
    hidden = Hidden()
    limit = few(min_cell_count)
    for table in tables:
        hidden._enter(table)
        hidden.margins[table.row] |= table.n.sum(axis=1) < min_cell_count
        if not table.fixed_columns:
            hidden.margins[table.column] |= table.n.sum(axis=0) < min_cell_count
        if table.listed:
            hidden.cells[table.key] |= table.n < min_cell_count
    distinct = {(*t.key, t.n.tobytes()): t for t in tables}.values()

    def needs(n: np.ndarray, _: np.ndarray) -> Needs:
        small = n < min_cell_count
        return Needs(np.where(small & (n > 0), min_cell_count - n, 0), np.minimum(n, np.where(small, limit, 1)), ~small)

    _close([_Problem(t, t.n, np.full_like(t.n, _NO_LIMIT), needs) for t in distinct], hidden)
    return hidden


def protect_hits(tables: Sequence[CrossTable], min_cell_count: int, hidden: Hidden) -> Hidden:
    """Hold back the sensitive cells of one combination, and what is needed so that their hits stay open.

    Args:
        tables: the tables of one combination.
        min_cell_count: fewest records of a cell that is shown.
        hidden: of `protect_sizes`; it is not altered.

    Returns:
        The cells held back. Hits of each sensitive one could be `few` more and `few` fewer, as far as its own size
        allows and the total does not tell by itself.
    """
    hidden = hidden.copy()
    limit = few(min_cell_count)
    for table in tables:
        hidden._enter(table)
        hidden.margins[table.row] |= is_sensitive(table.n.sum(axis=1), table.hits.sum(axis=1), min_cell_count)
        if not table.fixed_columns:
            hidden.margins[table.column] |= is_sensitive(table.n.sum(axis=0), table.hits.sum(axis=0), min_cell_count)
        if table.listed:
            hidden.cells[table.key] |= is_sensitive(table.n, table.hits, min_cell_count)

    def needs(n: np.ndarray, hits: np.ndarray) -> Needs:
        width = np.where(is_sensitive(n, hits, min_cell_count), limit, 0)
        return Needs(np.minimum(n - hits, width), np.minimum(hits, width), np.zeros(n.shape, dtype=bool))

    _close([_Problem(t, t.hits, t.n, needs) for t in tables], hidden)
    return hidden


class Needs(NamedTuple):
    """How far arcs must be able to move: upwards, downwards; `either`: one step upwards would do instead of downwards."""

    up: np.ndarray
    down: np.ndarray
    either: np.ndarray


@dataclass(frozen=True)
class _Problem:
    """A table, the quantity that must stay open, its upper bounds, and how far each arc must be able to move."""

    table: CrossTable
    value: np.ndarray
    upper: np.ndarray
    need: Callable[[np.ndarray, np.ndarray], Needs]  # from records and hits


def _close(problems: Iterable[_Problem], hidden: Hidden) -> None:
    """Hold back more until every table keeps its secrets; tables share their margins, so until nothing changes."""
    problems = list(problems)
    pending = list(range(len(problems)))
    while pending:
        touched: set[str] = set()
        for i in pending:
            touched |= _close_table(problems[i], hidden)
        pending = [i for i, p in enumerate(problems) if {p.table.row, p.table.column} & touched]


def _close_table(problem: _Problem, hidden: Hidden) -> set[str]:
    """Protect one table; returns the columns of which further levels were held back."""
    table = problem.table
    rows, columns, cells = hidden.margins[table.row], hidden.columns_of(table), hidden.cells_of(table)
    if not rows.any() and not columns.any() and not (table.listed and cells.any()):
        return set()
    targets = _doubtful(problem, rows, columns, cells)
    if not targets:
        return set()
    network = _Network(problem, rows, columns, cells)
    for source, sink, up, down, either in targets:
        network.widen(source, sink, sink, source, up)
        if not (either and network.flow(source, sink, sink, source)):
            network.widen(source, sink, source, sink, down)
    touched = set()
    more_rows, more_columns = network.hidden_rows() & ~rows, network.hidden_columns() & ~columns
    if more_rows.any():
        hidden.margins[table.row] = rows | more_rows
        touched.add(table.row)
    if more_columns.any():
        hidden.margins[table.column] = columns | more_columns
        touched.add(table.column)
    if table.listed:
        hidden.cells[table.key] |= network.hidden_cells()
    return touched


def _doubtful(
    problem: _Problem, rows: np.ndarray, columns: np.ndarray, cells: np.ndarray
) -> list[tuple[int, int, int, int, bool]]:
    """Arcs held back that short exchanges do not show to be open: from, to, and their needs.

    Most arcs pass here, in a few array operations: a level can exchange with the other levels held back, column by
    column; a cell can around a square of cells held back, or along a level held back.
    """
    table = problem.table
    r, c = table.n.shape
    up = np.where(cells, problem.upper.astype(np.int64) - problem.value, 0)
    down = np.where(cells, problem.value, 0)
    found: list[tuple[int, int, int, int, bool]] = []
    for first, (levels, u, d) in enumerate(((rows, up, down), (columns, up.T, down.T))):
        axis = 1 - first
        need = problem.need(table.n.sum(axis=axis), table.hits.sum(axis=axis))
        more = np.minimum(u, _rest(d, levels)).sum(axis=1)
        fewer = np.minimum(d, _rest(u, levels)).sum(axis=1)
        passed = (more >= need.up) & ((fewer >= need.down) | need.either & (more > 0))
        for i in np.flatnonzero(levels & ~passed):
            arc = (0, 1 + int(i)) if first == 0 else (1 + r + int(i), 1 + r + c)
            found.append((*arc, int(need.up[i]), int(need.down[i]), bool(need.either[i])))
    if not table.listed:
        return found
    need = problem.need(table.n, table.hits)
    more, fewer = _exchanges(up, down, rows, columns, need.up), _exchanges(down, up, rows, columns, need.down)
    step = _exchanges(up, down, rows, columns, np.where(need.either, 1, 0))
    passed = more & (fewer | need.either & step)
    for i, j in np.argwhere(cells & ~passed):
        found.append((1 + int(i), 1 + r + int(j), int(need.up[i, j]), int(need.down[i, j]), bool(need.either[i, j])))
    return found


def _rest(amount: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """What the other levels held back have, column by column, as seen from each level."""
    own = np.where(levels[:, None], amount, 0)
    return own.sum(axis=0, keepdims=True) - own


def _exchanges(
    gain: np.ndarray, give: np.ndarray, rows: np.ndarray, columns: np.ndarray, need: np.ndarray
) -> np.ndarray:
    """Whether a cell can gain `need` around one square of cells, or along a level that is held back."""
    passed = need <= 0
    passed |= rows[:, None] & (_rest(give, rows) >= need)
    passed |= columns[None, :] & (_rest(give.T, columns).T >= need)
    for amount in np.unique(need[~passed]):
        g, u = (give >= amount).astype(float), (gain >= amount).astype(float)
        squares = g @ u.T @ g - g * ((g * u).sum(axis=1, keepdims=True) + (g * u).sum(axis=0, keepdims=True)) + g * u
        passed |= (need == amount) & (squares > 0.5)
    return passed


class _Network:
    """The circulation of one table: node 0, the rows, the columns, and the last node; arcs both ways as residuals."""

    def __init__(self, problem: _Problem, rows: np.ndarray, columns: np.ndarray, cells: np.ndarray) -> None:
        table = problem.table
        self.r, self.c = r, c = table.n.shape
        self.last = 1 + r + c
        self.listed = table.listed
        size = self.last + 1
        self.capacity = np.zeros((size, size), dtype=np.int64)
        self.cost = np.full((size, size), np.inf)
        self.open = np.zeros((size, size), dtype=bool)
        upper = problem.upper.astype(np.int64)
        cell_cost = table.n + 1.0 if table.listed else np.full((r, c), np.inf)
        column_cost = np.full(c, np.inf) if table.fixed_columns else _MARGIN_COST * (table.n.sum(axis=0) + 1.0)
        one = np.zeros(1, dtype=int)
        r_index, c_index = 1 + np.arange(r), 1 + r + np.arange(c)
        self._arcs(one, r_index, problem.value.sum(1)[None, :], upper.sum(1)[None, :], rows[None, :],
                   _MARGIN_COST * (table.n.sum(1)[None, :] + 1.0))
        self._arcs(r_index, c_index, problem.value, upper, cells, cell_cost)
        self._arcs(c_index, one + self.last, problem.value.sum(0)[:, None], upper.sum(0)[:, None], columns[:, None],
                   column_cost[:, None])

    def _arcs(
        self, sources: np.ndarray, sinks: np.ndarray, value: np.ndarray, upper: np.ndarray, is_open: np.ndarray,
        cost: np.ndarray,
    ) -> None:
        forward, backward = np.ix_(sources, sinks), np.ix_(sinks, sources)
        limit = 2**24  # far beyond every need, far below the solver's 32 bits
        self.capacity[forward], self.capacity[backward] = np.minimum(upper - value, limit), np.minimum(value, limit).T
        self.open[forward], self.open[backward] = is_open, is_open.T
        self.cost[forward], self.cost[backward] = cost, cost.T

    def flow(self, u: int, v: int, start: int, end: int) -> int:
        """What can flow from start to end through arcs held back, without arc (u, v)."""
        return self._flow(u, v, start, end)[0]

    def _flow(self, u: int, v: int, start: int, end: int) -> tuple[int, np.ndarray]:
        """The flow, and what each arc could then carry besides."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        capacity = self.capacity.copy()
        capacity[u, v] = capacity[v, u] = 0
        found = maximum_flow(csr_array(np.where(self.open, capacity, 0).astype(np.int32)), start, end)
        return int(found.flow_value), capacity - found.flow.toarray()

    def widen(self, u: int, v: int, start: int, end: int, need: int) -> None:
        """Hold back more until `need` can flow from start to end without arc (u, v), or nothing more can be done."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        while need > 0:
            flow, residual = self._flow(u, v, start, end)
            if flow >= need:
                return
            for amount in (need - flow, 1):
                weight = np.where(residual >= amount, np.where(self.open, _HIDDEN_COST, self.cost), np.inf)
                weight[~np.isfinite(weight)] = 0  # no arc
                distance, before = dijkstra(csr_array(weight), indices=start, return_predecessors=True)
                if np.isfinite(distance[end]):
                    break
            else:
                return
            self._hold_back(before, start, end)

    def _hold_back(self, before: np.ndarray, start: int, end: int) -> None:
        node = end
        while node != start:
            previous = int(before[node])
            self.open[previous, node] = self.open[node, previous] = True
            node = previous
        if self.listed:  # a level held back takes its cells with it
            rows, columns = self.hidden_rows(), self.hidden_columns()
            block = np.ix_(1 + np.arange(self.r), 1 + self.r + np.arange(self.c))
            self.open[block] |= rows[:, None] | columns[None, :]
            self.open[block[1].T, block[0].T] = self.open[block].T

    def hidden_rows(self) -> np.ndarray:
        return self.open[0, 1 : 1 + self.r]

    def hidden_columns(self) -> np.ndarray:
        return self.open[1 + self.r : self.last, self.last]

    def hidden_cells(self) -> np.ndarray:
        return self.open[1 : 1 + self.r, 1 + self.r : self.last]


class Listing:
    """Cells of a table with published margins, shown one by one as long as the secret ones stay as open as they were.

    For a list of the largest cells, where the table as a whole is not published.

    Args:
        table: its column margins are published (`fixed_columns`).
        rows: levels that are held back; their cells are not shown.
        secret: cells that must not be worked out.
        min_cell_count: fewest records of a cell that is shown.
        sizes: cells whose n is shown for another combination of the same people; shared between their listings.
    """

    def __init__(
        self, table: CrossTable, rows: np.ndarray, secret: np.ndarray, min_cell_count: int, sizes: np.ndarray
    ) -> None:
        self.table, self.rows, self.secret, self.sizes = table, rows, secret, sizes
        self.shown = np.zeros(table.n.shape, dtype=bool)
        n, hits, limit = table.n, table.hits, few(min_cell_count)

        def open_n(*_: np.ndarray) -> Needs:
            return Needs(np.maximum(0, min_cell_count - n) * secret, np.minimum(n, limit) * secret, ~secret)

        def open_hits(*_: np.ndarray) -> Needs:
            return Needs(np.minimum(n - hits, limit) * secret, np.minimum(hits, limit) * secret, ~secret)

        self.problems = (_Problem(table, n, np.full_like(n, _NO_LIMIT), open_n), _Problem(table, hits, n, open_hits))
        nothing = np.zeros(n.shape, dtype=bool)
        self.goals = [self._reach(problem, nothing, problem.need(n, hits)) for problem in self.problems]

    def show(self, x: int, y: int) -> bool:
        """Show cell (x, y) if it may be shown."""
        if self.secret[x, y] or self.rows[x]:
            return False
        one = np.zeros(self.shown.shape, dtype=bool)
        one[x, y] = True
        for problem, goal, shown in zip(self.problems, self.goals, (self.sizes, self.shown), strict=True):
            found = self._reach(problem, shown | one, goal)
            if np.any(found.up < goal.up) or np.any(found.down < goal.down):
                return False
        self.shown |= one
        self.sizes |= one
        return True

    def _reach(self, problem: _Problem, shown: np.ndarray, goal: Needs) -> Needs:
        """How far the secret cells can move, up to the goal."""
        cells, columns = ~shown, np.zeros(shown.shape[1], dtype=bool)
        up = np.where(cells, problem.upper.astype(np.int64) - problem.value, 0)
        down = np.where(cells, problem.value, 0)
        reach = Needs(goal.up.copy(), goal.down.copy(), goal.either)
        network = None
        for amount, gain, give, upwards in ((reach.up, up, down, True), (reach.down, down, up, False)):
            for x, y in np.argwhere(~_exchanges(gain, give, self.rows, columns, amount)):
                network = network or _Network(problem, self.rows, columns, cells)
                u, v = 1 + int(x), 1 + shown.shape[0] + int(y)
                amount[x, y] = min(int(amount[x, y]), network.flow(u, v, *((v, u) if upwards else (u, v))))
        return reach
