"""Joint risk: records at risk in any, in all, and in how many, over attributes, attackers and replicates.

One Spark group-by counts the records by their vector of flags; the rest is NumPy, for any number of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from . import results
from .risk import Combination

MAX_VECTORS = 200_000  # of flags, that come to the driver
POOLED = 0
DIMENSIONS = ("sensitive_attribute", "attacker", "replicate")
OVER = {"sensitive_attribute": "attributes", "attacker": "attackers", "replicate": "replicates"}
COLUMNS = (
    "run_id", "registry", "release_id", "scored_on", "qi_set", "across", *DIMENSIONS, "combinations", "n", "n_any",
    "share_any", "n_all", "share_all", "mean_count", "counts",
)


def groups(
    combinations: Sequence[Combination], apart: bool = False
) -> Iterator[tuple[dict[str, Any], list[Combination]]]:
    """What is looked at together: over one of attribute, attacker and replicate with the others fixed, and over all.

    Of several measures only the first of each attribute counts. Pooled attackers (replicate 0) stand beside the others:
    they are taken together over attributes and attackers, but are in no group over replicates or over everything
    unless there is nothing else.

    Args:
        combinations: those with a result.
        apart: nothing is taken over replicates, each stands for itself and is named in every key.

    Yields:
        Key columns (`across`, and the dimensions held fixed; the others None) and the members, two or more.
    """
    if apart:
        for replicate in sorted({c.replicate for c in combinations}):
            for key, members in groups([c for c in combinations if c.replicate == replicate]):
                yield {**key, "replicate": replicate}, members
        return
    first: dict[tuple[str, str], str] = {}
    for c in combinations:
        first.setdefault((c.qi_set, c.sensitive_attribute), c.measure)
    kept = [c for c in combinations if c.measure == first[c.qi_set, c.sensitive_attribute]]
    each = [c for c in kept if c.replicate != POOLED] or kept
    for qi_set in dict.fromkeys(c.qi_set for c in kept):
        for dimension, name in OVER.items():
            fixed = [d for d in DIMENSIONS if d != dimension]
            found: dict[tuple[Any, ...], list[Combination]] = {}
            for c in kept if dimension != "replicate" else each:
                if c.qi_set == qi_set:
                    found.setdefault(tuple(getattr(c, d) for d in fixed), []).append(c)
            for values, members in found.items():
                if len(members) > 1:
                    held = dict(zip(fixed, values, strict=True))
                    yield {"qi_set": qi_set, "across": name, dimension: None, **held}, members
        everything = [c for c in each if c.qi_set == qi_set]
        if sum(len({getattr(c, d) for c in everything}) > 1 for d in DIMENSIONS) > 1:
            yield {"qi_set": qi_set, "across": "everything", **dict.fromkeys(DIMENSIONS)}, everything


def find(
    frame: DataFrame,
    combinations: Sequence[Combination],
    flags: Mapping[int, Column],
    common: Mapping[str, Any],
    apart: bool = False,
) -> tuple[pd.DataFrame, list[str]]:
    """Rows of risk_joint, and warnings; one Spark job per quasi-identifier set with several combinations.

    Args:
        frame: scored rows with their count `n` and the columns of the flags.
        combinations: those with a result.
        flags: at_risk per combination index; null where undefined.
        common: key columns that are the same in every row.
        apart: as in `groups`.
    """
    rows: list[dict[str, Any]] = []
    warnings = []
    wanted = list(groups(combinations, apart))
    for qi_set in dict.fromkeys(key["qi_set"] for key, _ in wanted):
        mine = [(key, members) for key, members in wanted if key["qi_set"] == qi_set]
        indices = sorted({c.index for _, members in mine for c in members})
        vectors = _vectors(frame, [flags[i] for i in indices])
        if vectors is None:
            warnings.append(
                f"joint risk of the set {qi_set!r} is not reported: {len(indices)} combinations give more than "
                f"{MAX_VECTORS:,} different results per record; the view joint_risk has it where scores are stored"
            )
            continue
        at_risk, defined, n = vectors
        place = {index: i for i, index in enumerate(indices)}
        for key, members in mine:
            columns = [place[c.index] for c in members]
            rows.append({**common, **key, **joint(at_risk[:, columns], defined[:, columns], n)})
    return results.frame(rows, COLUMNS), warnings


def _vectors(frame: DataFrame, flags: Sequence[Column]) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Vectors of flags, where they are defined, and records of each; None where there are too many."""
    spelled = F.concat(*(F.when(f.isNull(), "-").when(f, "1").otherwise("0") for f in flags))
    found = frame.groupBy(spelled.alias("flags")).agg(F.sum("n").alias("n")).limit(MAX_VECTORS + 1).toPandas()
    if len(found) > MAX_VECTORS:
        return None
    text = np.array(found["flags"].to_numpy(dtype=f"S{len(flags)}"), dtype=f"S{len(flags)}")
    letters = text.view("S1").reshape(len(found), len(flags))
    return letters == b"1", letters != b"-", found["n"].to_numpy(dtype=np.int64)


def joint(at_risk: np.ndarray, defined: np.ndarray, n: np.ndarray) -> dict[str, Any]:
    """Any, all and count.

    Args:
        at_risk, defined: (vectors, combinations) flags, and whether the outcome is defined.
        n: records per vector.

    Returns:
        combinations; n (records with an outcome in any of them); n_any, share_any; n_all, share_all (at risk in each in
        which their outcome is defined); mean_count; counts: records at risk in exactly 0, 1, .. of them.
    """
    some = defined.any(axis=1)
    hits = at_risk.sum(axis=1)[some]
    weight = n[some]
    whole = hits == defined.sum(axis=1)[some]
    total, width = int(weight.sum()), at_risk.shape[1]
    counts = np.bincount(hits, weights=weight, minlength=width + 1).astype(np.int64)
    n_any, n_all = total - int(counts[0]), int(weight[whole].sum())
    return {
        "combinations": width, "n": total, "n_any": n_any, "share_any": n_any / total if total else None, "n_all": n_all,
        "share_all": n_all / total if total else None,
        "mean_count": float(counts @ np.arange(width + 1)) / total if total else None, "counts": counts.tolist(),
    }
