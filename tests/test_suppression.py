"""Suppression against an attacker who solves for what was held back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from attack import bounds, cell

from rapid_spark import distributions, suppression
from rapid_spark.suppression import CrossTable, margin, protect_hits, protect_sizes

M = 10
FEW = 3


@pytest.mark.parametrize(
    ("n", "hits", "held"),
    [(9, 5, True), (10, 5, False), (50, 0, True), (50, 2, True), (50, 3, False), (50, 47, False), (50, 48, True),
     (50, 50, True), (0, 0, True)],
)
def test_a_cell_is_held_back_when_it_or_one_side_of_it_is_small(n, hits, held):
    assert suppression.is_sensitive(np.array(n), np.array(hits), M) == held


@pytest.mark.parametrize(("smallest", "few"), [(2, 2), (5, 2), (9, 3), (10, 3), (30, 10)])
def test_a_few_is_a_third_of_the_smallest_cell(smallest, few):
    assert suppression.few(smallest) == few


def people(seed, shape=(4, 3, 3), n=800, rate=0.4):
    """Joint counts with small and large levels, and two attackers' hits."""
    rng = np.random.default_rng(seed)
    weight = rng.gamma(1.0, size=shape)
    for d, size in enumerate(shape):
        weight *= rng.gamma(0.5, size=size).reshape([-1 if i == d else 1 for i in range(len(shape))])
    joint = rng.multinomial(n, (weight / weight.sum()).ravel()).reshape(shape)
    odds = np.log(rate / (1 - rate)) + rng.normal(0, 1.5, shape)
    return joint, [rng.binomial(joint, 1 / (1 + np.exp(-odds - s))) for s in (0.0, 0.5)]


def others(joint, *kept):
    return tuple(d for d in range(joint.ndim) if d not in kept)


def tables(joint, hits, pairs):
    singles = [margin(str(d), joint.sum(others(joint, d)), hits.sum(others(joint, d))) for d in range(joint.ndim)]
    crossed = [
        CrossTable(str(i), str(j), joint.sum(others(joint, i, j)), hits.sum(others(joint, i, j)), listed=pairs)
        for i, j in itertools.combinations(range(joint.ndim), 2)
    ]
    return singles + crossed


def listing(joint, hits, hidden, pairs):
    """Every cell that has a row: columns, levels, n, hits, held back."""
    for table in tables(joint, hits, pairs):
        if table.column == suppression.ALL:
            for x, held in enumerate(hidden.margins[table.row]):
                yield (int(table.row),), (x,), table.n[x, 0], table.hits[x, 0], held
        elif pairs:
            for (x, y), held in np.ndenumerate(hidden.cells_of(table)):
                yield (int(table.row), int(table.column)), (x, y), table.n[x, y], table.hits[x, y], held


def published(joint, runs, hidden, pairs):
    """The published figures of all runs, and the cells held back in each."""
    shown, secret = [], []
    for run, (hits, held_back) in enumerate(zip(runs, hidden, strict=True)):
        shown.append((run, np.ones(joint.size), joint.sum(), hits.sum()))
        for columns, levels, n, at_risk, held in listing(joint, hits, held_back, pairs):
            place = (run, cell(joint.shape, columns, levels), n, at_risk)
            (secret if held else shown).append(place)
    return shown, secret


def protected(joint, runs, pairs):
    sizes = protect_sizes([t for hits in runs for t in tables(joint, hits, pairs)], M)
    return [protect_hits(tables(joint, hits, pairs), M, sizes) for hits in runs]


def test_nothing_sensitive_is_shown():
    for seed in range(20):
        joint, runs = people(seed)
        for hits, hidden in zip(runs, protected(joint, runs, True), strict=True):
            for *_, n, at_risk, held in listing(joint, hits, hidden, True):
                assert held or not suppression.is_sensitive(n, at_risk, M)


@pytest.mark.parametrize("seed", range(8))
def test_levels_cannot_be_worked_out_even_with_everybodys_quasi_identifiers(seed):
    joint, runs = people(seed, shape=(5, 4, 3))
    hidden = protected(joint, runs[:1], False)
    shown, secret = published(joint, runs[:1], hidden, False)
    ends = bounds(shown, [s[:2] for s in secret], joint_n=joint.ravel())
    for (_, _, n, at_risk), (low, high, *_) in zip(secret, ends, strict=True):
        if suppression.is_sensitive(n, at_risk, M):
            assert low <= max(0, at_risk - FEW)
            assert high >= min(n, at_risk + FEW)


@pytest.mark.parametrize("seed", range(6))
def test_pairs_cannot_be_worked_out_from_margins_and_two_attackers_tables(seed):
    joint, runs = people(seed, n=(300, 1500)[seed % 2])
    shown, secret = published(joint, runs, protected(joint, runs, True), True)
    ends = bounds(shown, [s[:2] for s in secret], runs=2)
    for (_, _, n, at_risk), (low, high, n_low, n_high) in zip(secret, ends, strict=True):
        if suppression.is_sensitive(n, at_risk, M):
            assert low <= max(0, at_risk - FEW)
            assert high >= min(n, at_risk + FEW)
        if n < M:
            assert n_low <= max(0, n - FEW)
            assert n == 0 or n_high >= M


def test_the_attack_succeeds_where_only_the_sensitive_cells_are_held_back():
    joint, runs = people(0)
    hidden = protected(joint, runs[:1], True)
    naive = hidden[0].copy()
    for table in tables(joint, runs[0], True):
        if table.column == suppression.ALL:
            naive.margins[table.row] = suppression.is_sensitive(table.n[:, 0], table.hits[:, 0], M)
        else:
            naive.cells[table.key] = suppression.is_sensitive(table.n, table.hits, M)
    shown, secret = published(joint, runs[:1], [naive], True)
    ends = bounds(shown, [s[:2] for s in secret if s[2]])
    assert np.any(ends[:, 0] == ends[:, 1])


def test_a_small_level_takes_the_smallest_other_one_with_it():
    hidden = protect_sizes([margin("town", [400, 6, 300, 250], [100, 2, 90, 80])], M)
    assert hidden.margins["town"].tolist() == [False, True, False, True]


def test_small_levels_that_hide_each_other_need_no_other():
    hidden = protect_sizes([margin("town", [400, 8, 9, 300], [100, 4, 4, 90])], M)
    assert hidden.margins["town"].tolist() == [False, True, True, False]


def test_sizes_are_held_back_alike_for_every_attacker():
    joint, runs = people(3, n=1500)
    first, second = protected(joint, runs, True)
    for table in tables(joint, runs[0], True)[joint.ndim :]:
        small = (table.n < M) & (table.n > 0)
        assert np.all(first.cells_of(table)[small] & second.cells_of(table)[small])
    alone = protect_sizes(tables(joint, runs[0], True), M)
    both = protect_sizes([t for hits in runs for t in tables(joint, hits, True)], M)
    assert all(np.array_equal(alone.margins[k], both.margins[k]) for k in alone.margins)


def test_a_level_cannot_be_subtracted_out_of_a_coarser_column():
    """Towns lie in regions: a town held back must not be its region less its other towns."""
    n = np.array([[200, 0], [7, 0], [0, 150], [0, 160]])  # towns by region
    hits = np.array([[80, 0], [3, 0], [0, 50], [0, 60]])
    towns, regions = margin("town", n.sum(1), hits.sum(1)), margin("region", n.sum(0), hits.sum(0))
    crossed = CrossTable("town", "region", n, hits)
    hidden = protect_hits([towns, regions, crossed], M, protect_sizes([towns, regions, crossed], M))
    town, region = hidden.margins["town"], hidden.margins["region"]
    assert town[1]
    assert town[0] or region.all()
    assert not protect_sizes([towns], M).margins["town"][0]  # without regions another town would do


@pytest.mark.parametrize("seed", range(5))
def test_listed_cells_do_not_close_in_on_the_others(seed):
    """With the margins, the cells that are listed leave a secret cell as open as the margins alone do."""
    rng = np.random.default_rng(seed)
    n = rng.poisson(rng.gamma(0.5, 60.0, (4, 3)))
    hits = rng.binomial(n, rng.random((4, 3)))
    table = CrossTable("level", "class", n, hits, listed=True, fixed_columns=True)
    secret = suppression.is_sensitive(n, hits, M)
    listing = suppression.Listing(table, np.zeros(4, dtype=bool), secret, M, np.zeros(n.shape, dtype=bool))
    for x, y in np.ndindex(n.shape):
        listing.show(x, y)
    assert not (listing.shown & secret).any()
    margins = [(0, cell(n.shape, (d,), (i,)), n.sum(1 - d)[i], hits.sum(1 - d)[i]) for d in (0, 1) for i in range(n.shape[d])]
    cells = [(0, cell(n.shape, (0, 1), (x, y)), n[x, y], hits[x, y]) for x, y in np.argwhere(listing.shown)]
    targets = [(0, cell(n.shape, (0, 1), (x, y))) for x, y in np.argwhere(secret)]
    before, after = bounds(margins, targets, joint_n=n.ravel()), bounds(margins + cells, targets, joint_n=n.ravel())
    counts = hits[secret], n[secret]
    assert np.all(after[:, 0] <= np.maximum(before[:, 0], counts[0] - FEW))
    assert np.all(after[:, 1] >= np.minimum(before[:, 1], counts[0] + FEW))
    if seed == 0:
        assert listing.shown.any() and secret.any()


@pytest.mark.parametrize("seed", range(5))
def test_the_scores_histogram_opens_no_listed_cell_any_further(seed):
    """Bins of the score by class, listed (level, class) cells, and the margins of both, all against one attacker."""
    rng = np.random.default_rng(seed)
    levels, classes, bins, border = 4, 3, 5, 2  # bins from the border on are at risk
    joint = rng.poisson(rng.gamma(0.4, 12.0, (levels, classes, bins)))
    at_risk = joint * (np.arange(bins) >= border)
    n, hits = joint.sum(2), at_risk.sum(2)
    secret = suppression.is_sensitive(n, hits, M)
    table = CrossTable("level", "class", n, hits, listed=True, fixed_columns=True)
    listing = suppression.Listing(table, np.zeros(levels, dtype=bool), secret, M, np.zeros(n.shape, dtype=bool))
    for x, y in np.ndindex(n.shape):
        listing.show(x, y)

    def counts(mask):
        return (0, mask.ravel(), int(joint[mask].sum()), int(at_risk[mask].sum()))

    def place(columns, chosen):
        return cell(joint.shape, columns, chosen).reshape(joint.shape)

    margins = [counts(place((d,), (i,))) for d, size in enumerate(joint.shape[:2]) for i in range(size)]
    listed = [counts(place((0, 1), (x, y))) for x, y in np.argwhere(listing.shown)]
    # Whoever reads the histogram knows of each side of the threshold that all, or none, are at risk.
    scores = [
        counts(place((1,), (k,)) & (np.arange(bins) >= i) & (np.arange(bins) < j))
        for k in range(classes)
        for i, j in distributions.joined(joint[:, k].sum(0), None, M, border)
    ]
    targets = [(0, cell(joint.shape, (0, 1), (x, y))) for x, y in np.argwhere(secret)]
    before, after = bounds(margins, targets), bounds(margins + listed + scores, targets)
    assert np.all(after[:, 0] <= np.maximum(before[:, 0], hits[secret] - FEW))
    assert np.all(after[:, 1] >= np.minimum(before[:, 1], np.minimum(n, hits + FEW)[secret]))
    assert secret.any() and len(scores) >= classes


def test_hundreds_of_levels():
    """With one column the bounds have a closed form: what is held back together has a known sum."""
    rng = np.random.default_rng(0)
    n = rng.poisson(rng.gamma(0.4, 60.0, 400))
    hits = rng.binomial(n, 0.4)
    table = margin("town", n, hits)
    held = protect_hits([table], M, protect_sizes([table], M)).margins["town"]
    together, at_risk = n[held].sum(), hits[held].sum()
    low = np.maximum(0, at_risk - (together - n))
    high = np.minimum(n, at_risk)
    sensitive = suppression.is_sensitive(n, hits, M)
    assert held[sensitive].all() and sensitive.sum() > 50
    assert np.all((low <= np.maximum(0, hits - FEW))[sensitive] & (high >= np.minimum(n, hits + FEW))[sensitive])
    assert held.sum() <= sensitive.sum() + 1
