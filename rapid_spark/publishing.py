"""Figures that may leave the house: small counts withheld, counts rounded, rates from the rounded counts; no Spark.

The tables of a store hold exact figures for the custodian. What is published (`report`, `export`, the dashboard) goes
through here. A count is *small* when it is above 0 and below the limit; the limit is `min_cell_count`, or the rounding
base where that is larger, so that no count that is not 0 is rounded to 0.

- A combination, class or group with few records is withheld; so is a count at risk that is small, and one that leaves
  nobody or few out (n - n_at_risk: then the guess is right for all). That nobody is at risk is told, as 0.
- In `risk_summary` and `risk_curve` a withheld figure is null while `status` is 'ok': there, null means withheld and 0
  means none. Withheld classes and groups have no row at all; their number is told.
- What is withheld among classes or groups must not follow from a total: others are withheld until at least two are,
  with at least the limit at risk and not at risk among them. (Suppression by network flow, `suppression`, has been
  applied to groups before, with counts that are no longer there; this is the same for the stricter limit, line by line.)
- With rounding, every share is of rounded counts, and an interval is widened to the next multiples of the base.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

COMBINATION = (
    "run_id", "registry", "release_id", "replicate", "scored_on", "qi_set", "sensitive_attribute", "attacker", "measure",
    "weighting",
)
TABLES = ("risk_summary", "risk_curve", "risk_classes", "risk_subgroups", "risk_attribution", "audit_verdicts")
# Columns of risk_summary that speak of n people: counts, shares, and shares that tell the count at risk.
COUNTS = ("n_undefined", "n_dropped", "n_unseen_level", "n_unseen_class")
OF_HITS = ("n_at_risk", "rapid", "ci_low", "ci_high", "excess", "permutation_p", "holdout_difference",
           "holdout_difference_low", "holdout_difference_high", "holdout_difference_own", "sensitive_levels_rate",
           "rapid_within_strata")  # fmt: skip
OF_HOLDOUT = ("holdout_rate", "holdout_difference", "holdout_difference_low", "holdout_difference_high",
              "holdout_difference_own")  # fmt: skip
SHARES = ("baseline_rate", "null_mean", "null_q95", "accuracy", "majority_rate", "near_threshold",
          "population_reference", "copy_ceiling", "sensitive_levels_rate", "rapid_within_strata", "holdout_rate",
          "holdout_difference", "holdout_difference_own")  # fmt: skip
LOWS, HIGHS = ("holdout_difference_low",), ("holdout_difference_high",)
FREE = ("null_sd", "macro_f1", "log_loss", "auc", "mae", "rmse", "relative_mae", "r2")
CLUSTERS = ("person", "household")
REGRESSION = ("coefficient", "marginal_effect")
WITHHELD = "figures are withheld in this publication"


@dataclass(frozen=True)
class Rule:
    """How figures are protected.

    Attributes:
        min_cell_count: counts of people below it are withheld, 0 apart.
        rounding: counts are rounded to multiples of it; None for exact counts.
    """

    min_cell_count: int = 10
    rounding: int | None = None

    def __post_init__(self) -> None:
        if self.min_cell_count < 2:
            raise ValueError("min_cell_count is at least 2")
        if self.rounding is not None and self.rounding < 2:
            raise ValueError("rounding is at least 2, or None")

    @property
    def limit(self) -> int:
        """Counts above 0 and below this are withheld."""
        return max(self.min_cell_count, self.rounding or 0)

    def count(self, value: float) -> int:
        """A count as it is published: the nearest multiple of the base, halves upwards."""
        if not self.rounding:
            return int(value)
        return int(math.floor(value / self.rounding + 0.5)) * self.rounding

    def share(self, share: float, n: float) -> float:
        """A share of n people as it is published: of rounded counts."""
        if not self.rounding:
            return float(share)
        return float(np.clip(self.count(share * n) / self.count(n), -1.0, 1.0))

    def bound(self, share: float, n: float, up: bool) -> float:
        """An end of an interval as it is published: outwards to a multiple of the base."""
        if not self.rounding:
            return float(share)
        steps = share * n / self.rounding
        steps = math.ceil(steps - 1e-9) if up else math.floor(steps + 1e-9)
        return float(np.clip(steps * self.rounding / self.count(n), -1.0, 1.0))

    def is_small(self, n: float) -> bool:
        """Whether a number of people is too small to be told; none is not."""
        return 0 < n < self.limit

    def hides(self, n: float, hits: float) -> bool:
        """Whether a count at risk must not be told: small, or leaving nobody or few out."""
        return self.is_small(hits) or n - hits < self.limit


@dataclass(frozen=True)
class Published:
    """Protected tables.

    Attributes:
        tables: by name, pandas frames in the columns they came in.
        withheld: per table, how many rows have been left out or have figures withheld.
    """

    tables: dict[str, pd.DataFrame]
    withheld: dict[str, int] = field(default_factory=dict)


def protect(tables: Mapping[str, pd.DataFrame], rule: Rule) -> Published:
    """Protect the tables of a run for publication.

    Args:
        tables: result tables by name, as the store holds them; those not in `TABLES` are left out.
        rule: limits.

    Returns:
        The protected tables; the frames given are not altered.
    """
    done: dict[str, pd.DataFrame] = {}
    withheld: dict[str, int] = {}
    summary = _plain(tables["risk_summary"])
    kept = {_key(row): row for row in summary}
    protected = [_summary_row(row, kept, rule) for row in summary]
    secret = {_key(row) for row, out in zip(summary, protected, strict=True) if _withheld(row, out)}
    done["risk_summary"] = _frame(protected, tables["risk_summary"])
    withheld["risk_summary"] = len(secret)
    for name, work in (("risk_curve", _curve), ("risk_classes", _classes), ("risk_subgroups", _subgroups)):
        if name in tables:
            rows = _plain(tables[name])
            out, withheld[name] = work(rows, kept, rule)
            done[name] = _frame(out, tables[name])
    if "risk_attribution" in tables:
        open_ones = _fully_shown(tables.get("risk_subgroups"), done.get("risk_subgroups"))
        rows = _plain(tables["risk_attribution"])
        out = [_attribution_row(row, kept, rule) for row in rows if _may_tell(row, open_ones, secret)]
        withheld["risk_attribution"] = len(rows) - len(out)
        done["risk_attribution"] = _frame(out, tables["risk_attribution"])
    if "audit_verdicts" in tables:
        rows = _plain(tables["audit_verdicts"])
        out = [_verdict_row(row, kept.values(), secret, rule) for row in rows]
        withheld["audit_verdicts"] = sum(o["reason"] == WITHHELD for o in out)
        done["audit_verdicts"] = _frame(out, tables["audit_verdicts"])
    return Published(done, withheld)


def _summary_row(row: dict[str, Any], kept: Mapping[tuple[Any, ...], dict[str, Any]], rule: Rule) -> dict[str, Any]:
    out = dict(row)
    for name in COUNTS:
        if out.get(name) is not None:
            out[name] = None if rule.is_small(out[name]) else rule.count(out[name])
    n, hits = row.get("n"), row.get("n_at_risk")
    if n is None or hits is None:
        return out
    if rule.is_small(n):
        _clear(out, ("n", *OF_HITS, *SHARES, *FREE, "n_confident_claims", "claims_correct"))
        n = None
    elif rule.hides(n, hits):
        _clear(out, OF_HITS)
    holdout = kept.get(_key(row | {"scored_on": "holdout"}))
    if holdout is not None and holdout.get("n") and (
        rule.is_small(holdout["n"]) or rule.hides(holdout["n"], holdout.get("n_at_risk") or 0)
    ):
        _clear(out, OF_HOLDOUT)
    _claims(out, rule)
    for name in CLUSTERS:
        _cluster(out, name, rule)
    if n and rule.rounding:
        _round_summary(out, n, rule)
    return out


def _round_summary(out: dict[str, Any], n: int, rule: Rule) -> None:
    _rates(out, n, out.get("n_at_risk"), rule)
    for name in SHARES:
        if out.get(name) is not None:
            out[name] = rule.share(out[name], n)
    for names, up in ((LOWS, False), (HIGHS, True)):
        for name in names:
            if out.get(name) is not None:
                out[name] = rule.bound(out[name], n, up)
    for name in FREE:
        out[name] = _digits(out.get(name), 3)
    if out.get("excess") is not None:
        out["excess"] = None if out.get("baseline_rate") is None else out["rapid"] - out["baseline_rate"]


def _rates(out: dict[str, Any], n: int, hits: int | None, rule: Rule) -> None:
    """n, n_at_risk, rapid and its interval, rounded together."""
    if not rule.rounding:
        return
    out["n"] = rule.count(n)
    if hits is None:
        return
    out["n_at_risk"] = rule.count(hits)
    out["rapid"] = out["n_at_risk"] / out["n"]
    for name, up in (("ci_low", False), ("ci_high", True)):
        if out.get(name) is not None:
            out[name] = rule.bound(out[name], n, up)


def _claims(out: dict[str, Any], rule: Rule) -> None:
    claims, correct = out.get("n_confident_claims"), out.get("claims_correct")
    if claims is None:
        return
    # Claims that are right are the records at risk, or nearly: with that count known, their number tells the share.
    if rule.is_small(claims) or (claims and correct is not None and rule.hides(claims, round(correct * claims))):
        _clear(out, ("n_confident_claims", "claims_correct"))
        return
    if correct is not None:
        out["claims_correct"] = rule.share(correct, claims)
    out["n_confident_claims"] = rule.count(claims)


def _cluster(out: dict[str, Any], name: str, rule: Rule) -> None:
    n, rate = out.get(f"n_{name}s"), out.get(f"{name}_rapid")
    if n is None or rate is None:
        return
    figures = (f"{name}_rapid", f"{name}_ci_low", f"{name}_ci_high")
    if rule.is_small(n):
        _clear(out, (f"n_{name}s", *figures))
    elif rule.hides(n, round(rate * n)):
        _clear(out, figures)
    else:
        out[figures[0]] = rule.share(rate, n)
        for end, up in ((figures[1], False), (figures[2], True)):
            out[end] = None if out.get(end) is None else rule.bound(out[end], n, up)
    if out.get(f"n_{name}s") is not None:
        out[f"n_{name}s"] = rule.count(n)


Kept = Mapping[tuple[Any, ...], dict[str, Any]]


def _curve(rows: list[dict[str, Any]], kept: Kept, rule: Rule) -> tuple[list[dict[str, Any]], int]:
    done, withheld = [], 0
    for row in rows:
        out = dict(row)
        n, hits = kept.get(_key(row), {}).get("n"), row.get("n_at_risk")
        if n is None or hits is None or rule.is_small(n) or rule.hides(n, hits):
            _clear(out, ("n_at_risk", "rapid", "ci_low", "ci_high"))
            withheld += 1
        else:
            size: dict[str, Any] = dict(out)
            _rates(size, n, hits, rule)
            out |= {k: size[k] for k in ("n_at_risk", "rapid", "ci_low", "ci_high")}
        if out.get("baseline_rate") is not None:
            out["baseline_rate"] = None if n is None or rule.is_small(n) else rule.share(out["baseline_rate"], n)
        done.append(out)
    return done, withheld


def _classes(rows: list[dict[str, Any]], kept: Kept, rule: Rule) -> tuple[list[dict[str, Any]], int]:
    done: list[dict[str, Any]] = []
    for key, of_combination in _grouped(rows, _key).items():
        total = kept.get(key)
        shown = _shown(of_combination, [of_combination], [total], rule)
        n_all = sum(row["n"] or 0 for row in of_combination)
        for row in shown:
            out = dict(row)
            _rates(out, row["n"], row["n_at_risk"], rule)
            _claims(out, rule)
            if rule.rounding:
                out["prevalence"] = rule.share(row["prevalence"], n_all) if row.get("prevalence") is not None else None
                out["mean_true_prob"] = _digits(row.get("mean_true_prob"), 3)
            done.append(out)
    return done, len(rows) - len(done)


def _subgroups(rows: list[dict[str, Any]], kept: Kept, rule: Rule) -> tuple[list[dict[str, Any]], int]:
    done: list[dict[str, Any]] = []
    for key, of_combination in _grouped(rows, _key).items():
        total = kept.get(key)
        families = _grouped(of_combination, lambda row: tuple(row["columns"]))
        singles: dict[tuple[str, str], dict[str, Any]] = {}
        for columns, family in sorted(families.items(), key=lambda item: len(item[0])):
            if len(columns) == 1:
                shown = _shown(family, [family], [total], rule)
                singles |= {(columns[0], row["level"][0]): row for row in shown}
            else:
                lines = _lines(columns, family, singles)
                inside = [r for r in family if all(place in singles for place in zip(columns, r["level"], strict=True))]
                shown = _shown(inside, list(lines.values()), [singles[place] for place in lines], rule)
            for row in shown:
                out = dict(row)
                _rates(out, row["n"], row["n_at_risk"], rule)
                done.append(out)
    return done, len(rows) - len(done)


def _lines(columns: Iterable[str], family: list[dict[str, Any]], singles: Mapping[tuple[str, str], Any]) -> dict[Any, Any]:
    """The cells of each level of either column that is itself told: they add up to it."""
    lines: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in family:
        for place in zip(columns, row["level"], strict=True):
            if place in singles:
                lines.setdefault(place, []).append(row)
    return lines


def _shown(
    rows: list[dict[str, Any]], lines: list[list[dict[str, Any]]], totals: Iterable[dict[str, Any] | None], rule: Rule
) -> list[dict[str, Any]]:
    """The rows that may be told: not withheld themselves, and not needed so that those withheld stay open.

    Args:
        rows: candidates; those the store suppressed have null counts.
        lines: rows that add up to a total.
        totals: its row, per line.
        rule: limits.
    """
    hidden = {id(row) for row in rows if row["n"] is None or row["n_at_risk"] is None
              or rule.is_small(row["n"]) or row["n"] == 0 or rule.hides(row["n"], row["n_at_risk"])}
    candidates = {id(row) for row in rows}
    known = [(line, t) for line, t in zip(lines, totals, strict=True) if t and None not in (t["n"], t["n_at_risk"])]
    changed = True
    while changed:
        changed = False
        for line, total in known:
            told = [row for row in line if id(row) in candidates and id(row) not in hidden]
            n_hidden = len(line) - len(told)
            n = total["n"] - sum(row["n"] for row in told)
            hits = total["n_at_risk"] - sum(row["n_at_risk"] for row in told)
            if n_hidden and told and (n_hidden < 2 or hits < rule.limit or n - hits < rule.limit):
                hidden.add(id(min(told, key=_cheapest)))
                changed = True
    return [row for row in rows if id(row) not in hidden]


def _cheapest(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What to withhold besides: the smallest, but none without hits, which opens nothing."""
    return row["n_at_risk"] == 0, row["n"], str(row.get("level") or row.get("class_label"))


def _fully_shown(before: pd.DataFrame | None, after: pd.DataFrame | None) -> set[tuple[Any, ...]]:
    """Combinations of which every group that the store shows is published: their regression tells nothing more."""
    if before is None or after is None:
        return set()
    counted: dict[tuple[Any, ...], int] = {}
    for row in _plain(before):
        counted[_key(row)] = counted.get(_key(row), 0) + (not row["suppressed"])
    for row in _plain(after):
        counted[_key(row)] -= 1
    return {key for key, left in counted.items() if left == 0}


def _may_tell(row: dict[str, Any], fully_shown: set[tuple[Any, ...]], secret: set[tuple[Any, ...]]) -> bool:
    key = _key(row)
    return key not in secret and (row["kind"] not in REGRESSION or key in fully_shown)


def _attribution_row(row: dict[str, Any], kept: Kept, rule: Rule) -> dict[str, Any]:
    out = dict(row)
    n = kept.get(_key(row), {}).get("n")
    if not rule.rounding:
        return out
    for name in ("estimate", "std_error", "ci_low", "ci_high"):
        if out.get(name) is None:
            continue
        if row["kind"] in REGRESSION or not n:
            out[name] = _digits(out[name], 2)
        else:
            out[name] = rule.share(out[name], n)
    return out


def _verdict_row(
    row: dict[str, Any], summaries: Iterable[dict[str, Any]], secret: set[tuple[Any, ...]], rule: Rule
) -> dict[str, Any]:
    """A verdict; its figure and reason name exact rates, so both go where these are withheld or rounded."""
    out = dict(row)
    same = [s for s in summaries if (s["registry"], s["release_id"]) == (row["registry"], row["release_id"])
            and row.get("sensitive_attribute") in (None, s["sensitive_attribute"])]
    if any(_key(s) in secret for s in same):
        out["figure"], out["reason"] = None, WITHHELD
    elif rule.rounding:
        n = max((s["n"] for s in same if s.get("n")), default=None)
        figure = out.get("figure")
        if figure is not None:
            is_share = n is not None and -1 <= figure <= 1
            out["figure"] = rule.share(figure, n) if n is not None and is_share else _digits(figure, 2)
            out["reason"] = None
    return out


def _withheld(row: dict[str, Any], out: dict[str, Any]) -> bool:
    return row.get("n_at_risk") is not None and out.get("n_at_risk") is None


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in COMBINATION)


def _grouped(rows: Iterable[Any], key: Any) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _clear(row: dict[str, Any], names: Iterable[str]) -> None:
    for name in names:
        if name in row:
            row[name] = None


def _digits(value: Any, digits: int) -> Any:
    return None if value is None else float(f"{value:.{digits}g}")


def _plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dictionaries, every missing value as None, lists as lists."""
    return [{str(k): _value(v) for k, v in row.items()} for row in frame.to_dict("records")]


def _value(value: Any) -> Any:
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_value(v) for v in value]
    if value is None or value is pd.NaT or (isinstance(value, float) and math.isnan(value)) or value is pd.NA:
        return None
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime()
    return value.item() if isinstance(value, np.generic) else value


def _frame(rows: list[dict[str, Any]], like: pd.DataFrame) -> pd.DataFrame:
    columns = [str(c) for c in like.columns]
    return pd.DataFrame([{c: row.get(c) for c in columns} for row in rows], columns=columns, dtype=object)
