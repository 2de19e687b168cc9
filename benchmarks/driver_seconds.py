"""Driver seconds of bootstrap and permutation null: flat from 10,000 to 10,000,000 records.

The counts that Spark would hand over are drawn here for any number of records (3,000 patterns, three classes); what is timed
is everything the driver does with them: 500 bootstrap replicates at 20 thresholds, 199 permutations, the exact moments, and
the moments of a continuous attribute from 2^15 cells. NumPy only:

    python benchmarks/driver_seconds.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from rapid_spark import resampling
from rapid_spark.risk import class_threshold

PATTERNS, DRAWS, PERMUTATIONS, CELLS = 3_000, 500, 199, 2**15
TAUS = np.arange(0, 1, 0.05)


def counted(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities per pattern (patterns, 3), and records by pattern and class."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([1.5, 1.0, 0.6], PATTERNS)
    size = rng.multinomial(n, rng.dirichlet(np.ones(PATTERNS)))
    return p, size, rng.multinomial(size, p)


def bootstrap(p: np.ndarray, by_class: np.ndarray) -> None:
    """What `summary` does for one combination."""
    counts = by_class.sum(axis=0)
    plan = resampling.plan_bootstrap(counts, list(TAUS), DRAWS, 1)
    survival = []
    for k in range(3):
        order = np.argsort(p[:, k])
        below = np.concatenate([[0], np.cumsum(by_class[order, k])])
        at = np.searchsorted(p[order, k], plan.thresholds[:, :, k], side="right")
        survival.append(1.0 - below[at] / counts[k])
    resampling.bootstrap_hits(plan, survival, 2)


def permutation(p: np.ndarray, size: np.ndarray, by_class: np.ndarray) -> None:
    """199 draws at the configured threshold, exact moments at every other one."""
    counts = by_class.sum(axis=0)
    for tau in TAUS:
        resampling.categorical_moments(counts, p > class_threshold(counts / counts.sum(), float(tau)), size)
    masks, inverse = np.unique(p > class_threshold(counts / counts.sum(), 0.3), axis=0, return_inverse=True)
    merged = np.bincount(inverse.ravel(), weights=size).astype(np.int64)
    resampling.categorical_null(counts, masks, merged, int(counts.sum() // 2), PERMUTATIONS, 3)


def continuous(n: int) -> None:
    """Moments from two histograms of 2^15 cells."""
    rng = np.random.default_rng(4)
    y, weight = np.sort(rng.lognormal(10, 1, CELLS)), rng.multinomial(n, np.full(CELLS, 1 / CELLS)).astype(float)
    total = np.concatenate([[0.0], np.cumsum(weight)])
    r = total[np.searchsorted(y, y * 1.1)] - total[np.searchsorted(y, y / 1.1)]
    resampling.moments(float(n), float(weight @ r), float(weight @ r**2), float(weight @ r**2))


def seconds(action: Callable[[], None]) -> float:
    """Best of three."""
    found = []
    for _ in range(3):
        started = time.perf_counter()
        action()
        found.append(time.perf_counter() - started)
    return min(found)


def main() -> None:
    """Print the table."""
    print(f"{'records':>12}{'bootstrap, s':>16}{'permutation, s':>16}{'continuous, s':>16}")
    for n in (10_000, 100_000, 1_000_000, 10_000_000):
        p, size, by_class = counted(n)
        times = (
            seconds(lambda p=p, by_class=by_class: bootstrap(p, by_class)),  # type: ignore[misc]
            seconds(lambda p=p, size=size, by_class=by_class: permutation(p, size, by_class)),  # type: ignore[misc]
            seconds(lambda n=n: continuous(n)),  # type: ignore[misc]
        )
        print(f"{n:>12,}" + "".join(f"{t:>16.3f}" for t in times), flush=True)


if __name__ == "__main__":
    main()
