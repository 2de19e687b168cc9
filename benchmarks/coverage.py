"""How often intervals of RAPID hold the true rate: simulated samples, attacker held fixed, the package's own functions.

A population has two classes (0.76 and 0.24) and, per class, a law of g, the attacker's probability of the true class. The
true rate is that of the whole population under its own prevalences. Each of 4,000 samples gives its own prevalences,
thresholds, rate and intervals. NumPy only:

    python benchmarks/coverage.py [--samples 4000] [--records 1000]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from rapid_spark import intervals, resampling
from rapid_spark.risk import class_threshold

PREVALENCE = np.array([0.76, 0.24])
TAU, RCS_TAU = 0.3, 1.25
DRAWS = 500
METHODS = ("wilson_neff", "bootstrap", "wilson", "clopper_pearson", "wald")


@dataclass(frozen=True)
class Population:
    """Per class, how g is drawn and the share of the class above a cut."""

    draw: tuple[Callable[[np.random.Generator, int], np.ndarray], ...]
    above: tuple[Callable[[float], float], ...]


def of_beta(*shapes: tuple[float, float]) -> Population:
    """g follows a beta law in each class."""
    return Population(
        tuple((lambda rng, n, s=s: rng.beta(*s, n)) for s in shapes),
        tuple((lambda t, s=s: float(beta.sf(t, *s))) for s in shapes),
    )


def of_atoms(*laws: dict[float, float]) -> Population:
    """g takes a few values in each class."""
    def draw(law: dict[float, float]) -> Callable[[np.random.Generator, int], np.ndarray]:
        return lambda rng, n: rng.choice(list(law), n, p=list(law.values()))

    return Population(
        tuple(draw(law) for law in laws), tuple((lambda t, a=a: sum(p for v, p in a.items() if v > t)) for a in laws)
    )


CUTS = class_threshold(PREVALENCE, TAU)  # 0.832 and 0.468
POPULATIONS = {
    "strong": of_beta((9.0, 1.0), (2.2, 1.0)),
    "middling": of_beta((5.0, 1.5), (1.2, 2.0)),
    "weak": of_beta((14.0, 4.5), (1.2, 7.0)),
    "near its threshold": of_beta((415.0, 85.0), (235.0, 265.0)),
    "atoms at its threshold": of_atoms({0.6: 0.5, float(CUTS[0]) + 0.002: 0.5}, {0.2: 0.5, float(CUTS[1]) + 0.002: 0.5}),
}


def gain_rates(g: list[np.ndarray], seed: int) -> tuple[int, np.ndarray]:
    """Hits of one sample, and bootstrap draws of its rate."""
    counts = np.array([len(x) for x in g])
    n, ordered = int(counts.sum()), [np.sort(x) for x in g]

    def share_above(k: int, t: np.ndarray) -> np.ndarray:
        return 1.0 - np.searchsorted(ordered[k], t, side="right") / max(1, counts[k])

    cuts = class_threshold(counts / n, TAU)
    hits = round(sum(float(share_above(k, cuts[k : k + 1])[0]) * counts[k] for k in range(len(g))))
    plan = resampling.plan_bootstrap(counts, [TAU], DRAWS, seed)
    drawn = resampling.bootstrap_hits(plan, [share_above(k, plan.thresholds[:, :, k]) for k in range(len(g))], seed + 1)
    return hits, drawn[:, 0] / n


def conditional_rates(g: list[np.ndarray], seed: int) -> tuple[int, np.ndarray]:
    """The same for `rcs_conditional`."""
    counts = np.array([len(x) for x in g])
    n, hits, cells = int(counts.sum()), 0, []
    for x in (part / part.mean() for part in g):
        hits += int((x > RCS_TAU).sum())
        edges = resampling.conditional_edges([RCS_TAU], float(x.std()), len(x))
        place = np.searchsorted(edges, x)
        sums = [np.bincount(place, weights=w, minlength=len(edges) + 1) for w in (np.ones(len(x)), x, x * x)]
        cells.append(resampling.ValueCells(edges, sums[0].astype(np.int64), sums[1], sums[2]))
    sizes = resampling.plan_bootstrap(counts, [0.0], DRAWS, seed).sizes
    return hits, resampling.conditional_hits(sizes, cells, [RCS_TAU], seed + 1)[:, 0] / n


def interval(method: str, hits: int, n: int, draws: np.ndarray) -> tuple[float, float]:
    """One interval at 95 %."""
    if method == "bootstrap":
        return intervals.percentile(draws, 0.95)
    if method == "wilson_neff":
        low, high = intervals.wilson_neff(hits / n, n, float(draws.var(ddof=1)), 0.95)
    else:
        low, high = intervals.proportion(hits, n, 0.95, method)
    return float(low or 0.0), float(high or 0.0)


def true_rate(population: Population, conditional: bool) -> float:
    """Rate of the whole population under its own prevalences, or means."""
    cuts = CUTS
    if conditional:
        rng = np.random.default_rng(0)
        cuts = np.array([RCS_TAU * float(draw(rng, 4_000_000).mean()) for draw in population.draw])
    return float(sum(b * above(t) for b, above, t in zip(PREVALENCE, population.above, cuts, strict=True)))


def coverage(
    population: Population, samples: int, n: int, conditional: bool = False
) -> tuple[float, dict[str, float]]:
    """True rate, and share of samples whose interval holds it, by method."""
    truth, rng = true_rate(population, conditional), np.random.default_rng(20260101)
    held = dict.fromkeys(METHODS, 0)
    for i in range(samples):
        sizes = rng.multinomial(n, PREVALENCE)
        g = [draw(rng, int(size)) for draw, size in zip(population.draw, sizes, strict=True)]
        hits, draws = (conditional_rates if conditional else gain_rates)(g, 10 * i)
        for method in METHODS:
            low, high = interval(method, hits, n, draws)
            held[method] += low <= truth <= high
    return truth, {method: count / samples for method, count in held.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--records", type=int, default=1000)
    asked = parser.parse_args()
    error = 100 * (0.05 * 0.95 / asked.samples) ** 0.5
    print(f"{asked.samples:,} samples of {asked.records:,} records; Monte Carlo error {error:.2f} points")
    print(f"{'attacker':<34}{'true rate':>10}" + "".join(f"{m:>17}" for m in METHODS))
    for conditional in (False, True):
        for name, population in POPULATIONS.items():
            if conditional and name.endswith("its threshold"):
                continue
            truth, held = coverage(population, asked.samples, asked.records, conditional)
            label = f"{name}{', rcs_conditional' if conditional else ''}"
            print(f"{label:<34}{truth:>10.3f}" + "".join(f"{100 * held[m]:>16.1f}%" for m in METHODS), flush=True)


if __name__ == "__main__":
    main()
