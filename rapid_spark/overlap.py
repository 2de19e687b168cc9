"""Whether original and release speak of the same levels: a quasi-identifier that hardly does cannot be attacked."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import functions as F

from .agreement import Notes
from .findings import Counted
from .granularity import fitting, shown
from .normalise import Plan, Variable, frame_of
from .roles import Found

HARDLY = 0.1  # share of the levels of the table with fewer
ALIKE = 0.8
MOST_LABELS = 200  # looked at


@dataclass(frozen=True)
class _Pair:
    """A quasi-identifier in the original and one release."""

    variable: Variable
    replicate: int
    found: Found
    original: bytes
    release: bytes


def check_overlap(counted: Counted, plan: Plan, notes: Notes) -> None:
    """Faults of categorical quasi-identifiers whose levels in the release look coarser or otherwise written.

    Where the levels are merely others, that is a warning: each record is then scored as unknown. Jobs: one on two rows of
    sketches, and where hardly a level is shared, one for each table's labels.

    Args:
        counted: figures of all tables.
        plan: what the columns are.
        notes: faults and warnings are added here.
    """
    recode = plan.config.recode
    pairs = []
    for replicate, (found, figures) in counted.releases.items():
        for v in plan.quasi_identifiers:
            own, other = counted.original.columns[v.column].levels, figures.columns[v.column].levels
            declared = v.decision.name in recode and recode[v.decision.name].as_is
            if own and other and not declared:
                pairs.append(_Pair(v, replicate, found, own, other))
    seen: set[str] = set()
    for pair, (n_original, n_release, n_shared) in zip(pairs, _estimates(counted, pairs), strict=True):
        if not n_original or not n_release or n_shared >= HARDLY * min(n_original, n_release):
            continue
        if pair.variable.decision.name not in seen:
            seen.add(pair.variable.decision.name)
            _judge(pair, counted, plan, n_original, n_release, notes)


def _estimates(counted: Counted, pairs: list[_Pair]) -> list[tuple[int, int, int]]:
    """Per pair, levels of the original, of the release, and of both: about, exact for a few hundred."""
    if not pairs:
        return []
    rows = [(i, bytearray(p.original), bytearray(p.release)) for i, p in enumerate(pairs)]
    spark = counted.tables.original.source.frame.sparkSession
    frame = spark.createDataFrame(rows, "i int, o binary, r binary")
    both = F.hll_sketch_estimate(F.hll_union("o", "r")).alias("both")
    found = frame.select("i", F.hll_sketch_estimate("o").alias("o"), F.hll_sketch_estimate("r").alias("r"), both)
    return [(row["o"], row["r"], row["o"] + row["r"] - row["both"]) for row in sorted(found.collect())]


def _judge(pair: _Pair, counted: Counted, plan: Plan, n_original: int, n_release: int, notes: Notes) -> None:
    name = pair.variable.decision.name
    release = _labels(pair.found, pair, counted, plan)
    original = _labels(counted.tables.original, pair, counted, plan)
    where = (
        f"{name!r}: of {n_original} levels in {counted.tables.original.spoken} and {n_release} in {pair.found.spoken} "
        "hardly any is the same"
    )
    found = fitting(release, original)
    same = {_plain(x) for x in release} & {_plain(x) for x in original}
    if len(same) >= ALIKE * min(n_original, n_release, MOST_LABELS):
        notes.faults.append(f"{where}, though most differ in case or blanks only: write them alike in both tables")
    elif found is not None:
        already = f" in place of what recode.{name} says" if name in plan.config.recode else ""
        notes.faults.append(
            f"{where}. The release looks coarser; recode: {{{name}: {shown(found)}}}{already} does the same to the original"
        )
    elif n_release < n_original:
        notes.faults.append(
            f"{where}. If the release is coarser, say how under recode.{name}: merge: {{NEW LEVEL: [OLD LEVELS]}}, mask, or "
            f"hierarchy with a file of levels; if nothing was done to it, recode: {{{name}: {{as_is: true}}}}"
        )
    else:
        notes.warnings.append(f"{where}: nobody can be told by it. If the release was recoded, say how under recode.{name}")


def _plain(label: str) -> str:
    return "".join(label.lower().split())


def _labels(found: Found, pair: _Pair, counted: Counted, plan: Plan) -> list[str]:
    """The most frequent labels of a table."""
    replicate = pair.replicate if found.replicate_column else None
    frame = frame_of(found, counted.types[found.place], plan, replicate)
    sizes = frame.groupBy(F.col(pair.variable.column).alias("label")).count().where("label is not null")
    return [row["label"] for row in sizes.orderBy(F.desc("count"), "label").limit(MOST_LABELS).collect()]
