"""The classical measures by name: definition, direction, and how each follows from the cells' sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import functions as F

from .cells import Cells

WORSE, BETTER = "higher is worse", "higher is better"

# name: (definition, direction); d original counts, s release counts, q key cell, t target, N_d and N_s records
DEFINITIONS: Mapping[str, tuple[str, str]] = {
    "k_anonymity": ("smallest number of release records in a key cell (Sweeney 2002)", BETTER),
    "l_diversity": ("fewest distinct targets in a key cell of the release (Machanavajjhala et al. 2007)", BETTER),
    "t_closeness": (
        "largest distance between the targets of a key cell and of the whole release: earth mover's, equal steps of order "
        "for numbers, total variation for categories (Li, Li, Venkatasubramanian 2007)", WORSE),
    "population_uniqueness": (
        "expected share of original records that are unique in the population by their keys (Zayatz 1991): "
        "n_1^2 / (N_d sum_k k (1 - f)^(k-1) n_k), n_k cells of size k, f sampling fraction", WORSE),
    "replicated_uniques": ("#{q: d_.q = s_.q = 1} / N_d", WORSE),
    "identical_match_share": ("share of release records that are equal to an original record in all shared columns", WORSE),
    "dcap": ("sum (s_tq / s_.q) d_tq / N_d, unmatched records counting 0", WORSE),
    "dcap_base": ("sum (d_t. / N_d)^2: what guessing by the original's distribution gives", WORSE),
    "dcap_matched": ("sum (s_tq / s_.q) d_tq / sum d_.q [s_.q > 0]", WORSE),
    "tcap": ("sum d_tq [s_tq = s_.q > 0] / sum d_.q [some s_tq = s_.q > 0]", WORSE),
    "tcap_matched": ("sum d_tq [s_tq = s_.q > 0] / sum d_.q [s_.q > 0]", WORSE),
    "weap": ("share of release records with s_tq / s_.q = 1", WORSE),
    "disco": ("sum d_tq [s_tq = s_.q > 0] / N_d", WORSE),
    "dcr_median": (
        "median over release records of the Gower distance to the nearest original record, all shared columns", BETTER),
    "dcr_holdout_ratio": (
        "share of release records nearer to the original than to the holdout, ties half, the larger subsampled to the size "
        "of the smaller; 0.5 is expected when nothing leaks", WORSE),
    "rapid": ("share of original records at risk of attribute inference at the threshold", WORSE),
    "rapid_excess": ("RAPID less what chance gives", WORSE),
}  # fmt: skip


@dataclass(frozen=True)
class Measure:
    """One figure.

    Attributes:
        name: as in DEFINITIONS.
        value: None unless `status` is 'ok'.
        n: records it is about.
        definition, direction: what it is, and whether more is worse.
        qi_set, sensitive_attribute, replicate, attacker: what it is about, as far as it is about one.
        status: 'ok', 'undefined' (the data do not allow it) or 'not_evaluated' (an input is missing).
        reason: why there is no figure.
    """

    name: str
    value: float | None
    n: int | None
    definition: str
    direction: str
    qi_set: str | None = None
    sensitive_attribute: str | None = None
    replicate: int | None = None
    attacker: str | None = None
    status: str = "ok"
    reason: str | None = None

    def row(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def measure(
    name: str, value: float | None, n: int | None, reason: str | None = None, status: str | None = None, **about: Any
) -> Measure:
    """A measure with its definition; without a value it is 'undefined' unless told otherwise."""
    definition, direction = DEFINITIONS[name]
    state = status or ("ok" if value is not None else "undefined")
    return Measure(name, value, n, definition, direction, status=state, reason=reason, **about)


def of_keys(cells: Cells, fraction: float | None, about: dict[str, Any]) -> list[Measure]:
    """k-anonymity, replicated uniques and population uniqueness; one aggregation.

    Args:
        cells: counted by key.
        fraction: sampling fraction of the original; None where it is not known.
        about: set and replicate.
    """
    by_key = cells.by_key
    decay = F.pow(F.lit(1.0 - (1.0 if fraction is None else fraction)), F.col("d") - 1)
    row = by_key.agg(
        F.sum("d").alias("n_d"), F.sum("s").alias("n_s"), F.min(F.when(F.col("s") > 0, F.col("s"))).alias("k"),
        F.count_if((F.col("d") == 1) & (F.col("s") == 1)).alias("replicated"), F.count_if(F.col("d") == 1).alias("unique"),
        F.sum(F.when(F.col("d") > 0, F.col("d") * decay)).alias("expected"),
    ).first()
    assert row is not None
    found = [
        measure("k_anonymity", float(row["k"]), row["n_s"], **about),
        measure("replicated_uniques", row["replicated"] / row["n_d"], row["n_d"], **about),
    ]
    if fraction is None:
        why = "the original's sampling fraction is not known: disclosure.sampling_fraction, 1 for a complete register"
        return [*found, measure("population_uniqueness", None, row["n_d"], why, "not_evaluated", **about)]
    share = row["unique"] / row["expected"] if row["expected"] else 0.0
    return [*found, measure("population_uniqueness", share * row["unique"] / row["n_d"], row["n_d"], **about)]


def of_targets(cells: Cells, about: dict[str, Any]) -> list[Measure]:
    """dcap, tcap, weap, disco and l-diversity of one target; two aggregations."""
    d, s, top = F.col("d"), F.col("s"), F.col("top")
    sure, matched = (top == s) & (s > 0), s > 0
    row = cells.by_key.agg(
        F.sum("d").alias("n_d"), F.sum("s").alias("n_s"),
        F.sum(F.when(matched, F.col("product") / s).otherwise(0.0)).alias("dcap"),
        F.sum(F.when(matched, d).otherwise(0)).alias("n_matched"),
        F.sum(F.when(sure, F.col("d_top")).otherwise(0)).alias("right"),
        F.sum(F.when(sure, d).otherwise(0)).alias("n_sure"), F.sum(F.when(sure, s).otherwise(0)).alias("sure"),
        F.min(F.when(matched, F.col("levels"))).alias("levels"),
    ).first()
    base = cells.frame.groupBy("t").agg(F.sum("d").alias("d")).agg(F.sum(d.cast("double") * d).alias("squares")).first()
    assert row is not None and base is not None
    n = row["n_d"]

    def share(name: str, part: float, whole: float, why: str) -> Measure:
        return measure(name, part / whole, int(whole), **about) if whole else measure(name, None, 0, why, **about)

    no_match = "no original record has a key cell that the release has too"
    return [
        share("dcap", row["dcap"], n, ""),
        measure("dcap_base", base["squares"] / n**2, n, **about),
        share("dcap_matched", row["dcap"], row["n_matched"], no_match),
        share("tcap", row["right"], row["n_sure"], "no original record has a key cell whose released target is always one"),
        share("tcap_matched", row["right"], row["n_matched"], no_match),
        share("weap", row["sure"], row["n_s"], ""),
        share("disco", row["right"], n, ""),
        measure("l_diversity", float(row["levels"]), row["n_s"], **about),
    ]


MOST_STEPS = 64  # ordered levels of a numeric target


def t_closeness(cells: Cells, ordered: bool, about: dict[str, Any]) -> Measure:
    """The largest distance between a cell's targets and all targets of the release.

    Args:
        cells: counted by key and target.
        ordered: whether targets are numbers: earth mover's distance with equal steps, else total variation.
        about: set, target and replicate.
    """
    released = cells.frame.where("s > 0")
    sizes = released.groupBy(F.col("t").alias("level")).agg(F.sum("s").alias("all"))
    total = released.agg(F.sum("s")).first()
    n = int(total[0]) if total is not None and total[0] else 0
    if not ordered:
        joined = released.join(F.broadcast(sizes), F.col("t").eqNullSafe(F.col("level")))
        joined = joined.withColumn("size", F.col("all") / F.lit(float(n)))
        of_key = joined.groupBy(*cells.keys).agg(
            F.sum("s").alias("n"), F.collect_list(F.struct("s", "size")).alias("parts"), F.sum("size").alias("covered")
        )
        inside = F.aggregate("parts", F.lit(0.0), lambda so_far, p: so_far + F.abs(p["s"] / F.col("n") - p["size"]))
        row = of_key.select(((inside + 1.0 - F.col("covered")) / 2).alias("distance")).agg(F.max("distance")).first()
        return measure("t_closeness", float(row[0]) if row else None, n, **about)
    levels = sizes.orderBy("level").limit(MOST_STEPS + 1).toPandas()
    if len(levels) > MOST_STEPS:
        why = f"a numeric target with more than {MOST_STEPS} values: declare disclosure.bins for it"
        return measure("t_closeness", None, n, why, "not_evaluated", **about)
    if len(levels) == 1:
        return measure("t_closeness", 0.0, n, **about)
    known = levels["level"].dropna().tolist()  # missing values come first in Spark's order
    below = [F.col("t").isNull(), *(F.col("t").isNull() | (F.col("t") <= F.lit(v)) for v in known)]
    below = below if len(known) < len(levels) else below[1:]
    shares = (levels["all"].cumsum() / n).tolist()
    sums = [F.sum(F.when(b, F.col("s")).otherwise(0)).alias(f"b{i}") for i, b in enumerate(below[:-1])]
    of_key = released.groupBy(*cells.keys).agg(F.sum("s").alias("n"), *sums)
    moved = [F.abs(F.col(f"b{i}") / F.col("n") - F.lit(float(shares[i]))) for i in range(len(sums))]
    distance = sum(moved[1:], moved[0]) / F.lit(float(len(moved)))
    row = of_key.select(distance.alias("distance")).agg(F.max("distance")).first()
    return measure("t_closeness", float(row[0]) if row else None, n, **about)


def identical(cells: Cells, about: dict[str, Any]) -> Measure:
    """Share of release records that an original record equals; cells over all shared columns."""
    same = F.sum(F.when(F.col("d") > 0, F.col("s")).otherwise(0))
    row = cells.frame.agg(F.sum("s").alias("n"), same.alias("same")).first()
    assert row is not None
    return measure("identical_match_share", row["same"] / row["n"], row["n"], **about)
