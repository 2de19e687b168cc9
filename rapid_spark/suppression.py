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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

ALL = ""  # the one level of a table that has no second column
_HIDDEN_COST = 1e-6  # a path through arcs that are held back anyway costs next to nothing
_MARGIN_COST = 10.0  # a level takes all its cells with it


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
        known: (rows, columns) cells of which everybody knows that they are at risk: only small n is a reason.
    """

    row: str
    column: str
    n: np.ndarray
    hits: np.ndarray
    listed: bool = False
    fixed_columns: bool = False
    known: np.ndarray | None = None

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
        The cells held back; n of each could be at least `min_cell_count`, and `few` smaller where it has so many.
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

    def needs(n: np.ndarray, _: np.ndarray, __: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        small = n < min_cell_count
        return (np.where(n == 0, 0, np.where(small, min_cell_count - n, 1)), np.minimum(n, np.where(small, limit, 1)))

    _close([_Problem(t, t.n, np.full_like(t.n, np.iinfo(np.int32).max), needs) for t in distinct], hidden)
    return hidden


def protect_hits(tables: Sequence[CrossTable], min_cell_count: int, hidden: Hidden) -> Hidden:
    """Hold back the sensitive cells of one combination, and what is needed so that their hits stay open.

    Args:
        tables: the tables of one combination.
        min_cell_count: fewest records of a cell that is shown.
        hidden: of `protect_sizes`; it is not altered.

    Returns:
        The cells held back. Hits of each sensitive one could be `few` more and `few` fewer, as far as its own size
        allows and the total does not tell by itself; hits of the others held back could be one more or fewer.
    """
    hidden = hidden.copy()
    limit = few(min_cell_count)
    for table in tables:
        hidden._enter(table)
        hidden.margins[table.row] |= is_sensitive(table.n.sum(axis=1), table.hits.sum(axis=1), min_cell_count)
        if not table.fixed_columns:
            hidden.margins[table.column] |= is_sensitive(table.n.sum(axis=0), table.hits.sum(axis=0), min_cell_count)
        if table.listed:
            hidden.cells[table.key] |= _secret(table.n, table.hits, table.known, min_cell_count)

    def needs(n: np.ndarray, hits: np.ndarray, known: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        width = np.where(_secret(n, hits, known, min_cell_count), limit, 1)
        return np.minimum(n - hits, width), np.minimum(hits, width)

    _close([_Problem(t, t.hits, t.n, needs) for t in tables], hidden)
    return hidden


def _secret(n: np.ndarray, hits: np.ndarray, known: np.ndarray | None, min_cell_count: int) -> np.ndarray:
    found = is_sensitive(n, hits, min_cell_count)
    return found if known is None else found & (~known | (n < min_cell_count))


@dataclass(frozen=True)
class _Problem:
    """A table, the quantity that must stay open, its upper bounds, and how far each arc must be able to move."""

    table: CrossTable
    value: np.ndarray
    upper: np.ndarray
    need: Callable[[np.ndarray, np.ndarray, np.ndarray | None], tuple[np.ndarray, np.ndarray]]


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
    for source, sink, up, down in targets:
        network.widen(source, sink, sink, source, up)
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
) -> list[tuple[int, int, int, int]]:
    """Arcs held back that short exchanges do not show to be open: (from, to, needed upwards, needed downwards).

    Most arcs pass here, in a few array operations: a level can exchange with the other levels held back, column by
    column; a cell can around a square of cells held back, or along a level held back.
    """
    table = problem.table
    r, c = table.n.shape
    up = np.where(cells, problem.upper.astype(np.int64) - problem.value, 0)
    down = np.where(cells, problem.value, 0)
    found: list[tuple[int, int, int, int]] = []
    for first, (levels, others, u, d) in enumerate(((rows, columns, up, down), (columns, rows, up.T, down.T))):
        axis = 1 - first
        need_up, need_down = problem.need(table.n.sum(axis=axis), table.hits.sum(axis=axis), None)
        rest_up, rest_down = _rest(u, levels), _rest(d, levels)
        passed = (np.minimum(u, rest_down).sum(axis=1) >= need_up) & (np.minimum(d, rest_up).sum(axis=1) >= need_down)
        for i in np.flatnonzero(levels & ~passed):
            arc = (0, 1 + int(i)) if first == 0 else (1 + r + int(i), 1 + r + c)
            found.append((*arc, int(need_up[i]), int(need_down[i])))
    if not table.listed:
        return found
    need_up, need_down = problem.need(table.n, table.hits, table.known)
    open_up = _exchanges(up, down, rows, columns, need_up)
    open_down = _exchanges(down, up, rows, columns, need_down)
    for i, j in zip(*np.nonzero(cells & ~(open_up & open_down)), strict=True):
        found.append((1 + int(i), 1 + r + int(j), int(need_up[i, j]), int(need_down[i, j])))
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

    def widen(self, u: int, v: int, start: int, end: int, need: int) -> None:
        """Hold back more until `need` can flow from start to end without arc (u, v), or nothing more can be done."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra, maximum_flow

        capacity = self.capacity.copy()
        capacity[u, v] = capacity[v, u] = 0
        while need > 0:
            usable = csr_array(np.where(self.open, capacity, 0).astype(np.int32))
            flow = maximum_flow(usable, start, end)
            if flow.flow_value >= need:
                return
            residual = capacity - flow.flow.toarray()
            for amount in (need - int(flow.flow_value), 1):
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
