"""Our figures of a study against the published ones: how far apart they may be, and what holds of shape and order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from .simulation import ALL, ALONE, KINDS, Outcome

LIMIT = 0.03  # between a mean of ours and a published one, studies 2 and 4
LIMIT_SINGLY = 0.05  # study 3, or three standard errors of our mean where those are more
CLEAR = 0.03  # published means further apart than this must be in the same order
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """One thing the published study says, and whether it holds here.

    Attributes:
        about: what.
        holds: whether.
        detail: figures.
    """

    about: str
    holds: bool
    detail: str

    def row(self) -> dict[str, Any]:
        """Plain data."""
        return {"about": self.about, "holds": self.holds, "detail": self.detail}


def checks(outcome: Outcome) -> list[Check]:
    """Everything that can be said of a study as it was run; narrowed ones say less."""
    found = {1: _shape_in_kappa, 2: _distances, 3: _singly, 4: _distances}[outcome.study.number](outcome)
    if outcome.study.number == 2:
        found += _shape_in_tau(outcome)
    return found


def limit(outcome: Outcome, row: Row) -> float | None:
    """How far a row's mean may be from the published one; None where nothing exact is published.

    Source: the limits are the project's; kappa 0 of study 2 has none (its standard deviation alone is over 0.03).
    """
    if row["published_mean"] is None or row["published_about"]:
        return None
    if outcome.study.number == 2 and row["kappa"] == 0:
        return None
    if outcome.study.number == 3:
        return max(LIMIT_SINGLY, 3 * (row["sd"] or 0.0) / np.sqrt(row["repetitions"]))
    return LIMIT


def _distances(outcome: Outcome) -> list[Check]:
    compared = [(r, most) for r in outcome.results if (most := limit(outcome, r)) is not None]
    if not compared:
        return []
    beyond = [r for r, most in compared if abs(r["difference"]) > most]
    largest = max((r for r, _ in compared), key=lambda r: abs(r["difference"]))
    limits = "max(0.05, 3 se)" if outcome.study.number == 3 else f"{LIMIT:g}"
    detail = f"largest difference {largest['difference']:+.3f} ({_spoken(largest)})"
    if beyond:
        detail += "; beyond it: " + ", ".join(f"{_spoken(r)} {r['difference']:+.3f}" for r in beyond)
    return [Check(f"{len(compared)} means within {limits} of the published ones", not beyond, detail)]


def _singly(outcome: Outcome) -> list[Check]:
    found = _distances(outcome)
    for setting in ("alone", "left_out"):
        rows = [r for r in outcome.results if r["setting"] == setting and r["published_mean"] is not None]
        pairs = [(a, b) for a, b in combinations(rows, 2) if abs(a["published_mean"] - b["published_mean"]) > CLEAR]
        wrong = [
            f"{a['variable']} and {b['variable']}" for a, b in pairs
            if (a["mean"] - b["mean"]) * (a["published_mean"] - b["published_mean"]) <= 0
        ]  # fmt: skip
        if pairs:
            order = " > ".join(r["variable"] for r in sorted(rows, key=lambda r: -r["mean"]))
            detail = f"ours: {order}" + (f"; in the other order: {', '.join(wrong)}" if wrong else "")
            words = "alone" if setting == ALONE else "left out"
            found.append(Check(f"order of {len(pairs)} pairs that are clearly apart, {words}", not wrong, detail))
    return found


def _shape_in_kappa(outcome: Outcome) -> list[Check]:
    rows = [r for r in outcome.results if r["tau"] == outcome.study.taus[0]]
    if len(rows) < 4:
        return []
    kappa, mean = (np.array([r[name] for r in rows], dtype=float) for name in ("kappa", "mean"))
    noise = 2 * np.array([(r["sd"] or 0.0) / np.sqrt(r["repetitions"]) for r in rows])
    rises = np.diff(mean) > -np.maximum(noise[1:], noise[:-1])
    ends = f"from {mean[0]:.3f} at kappa {kappa[0]:g} to {mean[-1]:.3f} at {kappa[-1]:g}"
    found = [Check("RAPID rises with kappa (within two standard errors)", bool(rises.all()), ends)]
    slopes = np.diff(mean) / np.diff(np.log1p(kappa))
    top = int(np.argmax(slopes))
    s_shaped = 0 < top < len(slopes) - 1 and slopes[-1] < slopes[top] / 2
    found.append(Check(
        "S-shaped against log(1 + kappa): steepest in between, flat at the top", bool(s_shaped),
        "slopes " + ", ".join(f"{s:.2f}" for s in slopes),
    ))  # fmt: skip
    for name in ("mean", "accuracy"):
        told = [(r, r["published_mean" if name == "mean" else "published_accuracy"]) for r in rows]
        ends_told = [(r, p) for r, p in told if p is not None]
        if ends_told:
            far = max(abs(r[name] - p) for r, p in ends_told)
            detail = ", ".join(f"kappa {r['kappa']:g}: {r[name]:.3f}, published about {p:g}" for r, p in ends_told)
            words = "RAPID" if name == "mean" else "accuracy"
            found.append(Check(f"{words} at the ends within {LIMIT_SINGLY:g} of what is said", far <= LIMIT_SINGLY, detail))
    return found


def _shape_in_tau(outcome: Outcome) -> list[Check]:
    found = []
    attacker = outcome.study.attackers[0]
    for kappa in outcome.study.kappas:
        if (kappa, ALL, ALL, attacker) not in outcome.rates:
            continue
        line = np.array(outcome.curve(kappa, attacker))
        bend = bending(line[:, 0], line[:, 1])
        if kappa == 0:
            found.append(Check("convex curve at kappa 0", bend > 0, f"lies {bend:.3f} below its chord on average"))
        elif kappa >= 5:
            detail = f"lies {-bend:.3f} above its chord on average"
            found.append(Check(f"concave curve at kappa {kappa:g}", bend < 0, detail))
    return found


def bending(x: np.ndarray, y: np.ndarray) -> float:
    """Mean of the chord between the ends less the curve: positive for a convex curve, negative for a concave one."""
    chord: np.ndarray = y[0] + (y[-1] - y[0]) * (x - x[0]) / (x[-1] - x[0])
    return float((chord - y).mean())


def _spoken(row: Row) -> str:
    words = [f"kappa {row['kappa']:g}", f"tau {row['tau']:g}", row["attacker"]]
    if "variable" in row and row["variable"] != ALL:
        words.append(f"{row['variable']} {row['setting'].replace('_', ' ')}")
    return ", ".join(words)


def with_limits(outcome: Outcome) -> list[dict[str, Any]]:
    """The rows of a study, each with its limit and whether it is within."""
    rows = []
    for row in outcome.results:
        most = limit(outcome, row)
        rows.append({**row, "limit": most, "within": None if most is None else abs(row["difference"]) <= most})
    return rows


def notes(outcome: Outcome) -> list[str]:
    """Why some figures of this study vary as they do, with the repetitions as evidence."""
    found = []
    for kappa, variable, setting, attacker in outcome.rates:
        if setting != ALONE or KINDS[variable] != "categorical":
            continue
        column = outcome.thresholds.index(outcome.study.taus[0])
        values = np.sort(outcome.rates[kappa, variable, setting, attacker][:, column])
        found.append(
            f"{variable} alone (kappa {kappa:g}): an attacker who knows one column of few levels gives one probability a "
            "level, so RAPID jumps when a whole level passes its threshold, and a mean of few repetitions is less certain "
            f"than their standard deviation says. Repetitions: {', '.join(f'{v:.2f}' for v in values)}."
        )
    return found


def open_questions(found: Sequence[Check]) -> list[str]:
    """What differs, in words."""
    return [f"{check.about}: {check.detail}" for check in found if not check.holds]
