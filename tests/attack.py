"""An attacker on published counts: what the published cells leave open of the others, by linear programming."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def cell(shape, columns, levels):
    """Which joint cells of a table of this shape belong to these levels of these columns (by number)."""
    mask = np.ones(shape, dtype=bool)
    for column, level in zip(columns, levels, strict=True):
        mask &= (np.arange(shape[column]) == level).reshape([-1 if d == column else 1 for d in range(len(shape))])
    return mask.ravel()


def bounds(published, targets, runs=1, joint_n=None):
    """Lowest and highest count at risk, and n, of every target.

    Unknown are the records of every joint cell (the same in all runs) and those at risk per run.

    Args:
        published: (run, mask, n, hits).
        targets: (run, mask).
        runs: number of attackers on the same people.
        joint_n: the records of every joint cell, for an attacker who knows them.

    Returns:
        Array (targets, 4): hits low, hits high, n low, n high.
    """
    size = len(published[0][1])
    rows, right = [], []
    for run, mask, n, hits in published:
        for block, value in ((0, n), (1 + run, hits)):
            row = np.zeros((1 + runs) * size)
            row[block * size : (block + 1) * size] = mask
            rows.append(row)
            right.append(value)
    below = np.zeros((runs * size, (1 + runs) * size))  # at risk are at most all
    for run in range(runs):
        for x in range(size):
            below[run * size + x, x], below[run * size + x, (1 + run) * size + x] = -1, 1
    free = [(0, None)] * ((1 + runs) * size)
    if joint_n is not None:
        free[:size] = [(int(n), int(n)) for n in joint_n]
    found = []
    for run, mask in targets:
        for block in (1 + run, 0):
            goal = np.zeros((1 + runs) * size)
            goal[block * size : (block + 1) * size] = mask
            ends = [
                linprog(sign * goal, A_ub=below, b_ub=np.zeros(len(below)), A_eq=np.array(rows), b_eq=right, bounds=free)
                for sign in (1, -1)
            ]
            assert [e.status for e in ends] in ([0, 0], [0, 3])
            found += [ends[0].fun, np.inf if ends[1].status == 3 else -ends[1].fun]
    return np.array(found).reshape(-1, 4).round(6)
