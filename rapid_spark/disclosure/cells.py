"""Key cells and targets, counted in original and release: the one group-by that the measures are sums over."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..config import ConfigError
from ..shared_columns import SharedTables

Bins = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Cells:
    """Counts by key cell and target.

    Attributes:
        frame: key columns, `t`, and the counts `d` (original) and `s` (release) of the cell and target.
        keys: the key columns.
    """

    frame: DataFrame
    keys: tuple[str, ...]

    @functools.cached_property
    def by_key(self) -> DataFrame:
        """By key cell: `d`, `s`, `product` (sum of d s over targets), `levels` (released targets), `top` (largest s of a
        target), `d_top` (the original's count of that target)."""
        return self.frame.groupBy(*self.keys).agg(
            F.sum("d").alias("d"), F.sum("s").alias("s"), F.sum(F.col("d") * F.col("s")).alias("product"),
            F.count_if(F.col("s") > 0).alias("levels"), F.max("s").alias("top"), F.max_by("d", "s").alias("d_top"),
        )  # fmt: skip


def binned(column: str, edges: Sequence[float] | None) -> Column:
    """The number of a value's bin, [e0, e1) being 1, below e0 0, the last one closed; without edges the value itself."""
    value = F.col(column)
    if edges is None:
        return value
    inner = F.array(*(F.lit(float(e)) for e in edges[:-1]))
    place = F.size(F.filter(inner, lambda e: e <= value))
    return F.when(value > F.lit(float(edges[-1])), F.lit(len(edges))).when(value.isNotNull(), place)


def cells(tables: SharedTables, release: DataFrame, keys: Sequence[str], target: str | None, bins: Bins) -> Cells:
    """Count both tables by key cell and target, in one group-by. Missing values are a level of their own.

    Args:
        tables: with the original.
        release: one replicate.
        keys: columns of the frames.
        target: column of the frames; None counts by key alone.
        bins: edges by name of the column.
    """
    edges = {s.column: bins.get(s.name) for s in tables.columns}
    wanted = [*(binned(k, edges[k]).alias(k) for k in keys),
              (binned(target, edges[target]) if target else F.lit(0)).alias("t")]  # fmt: skip
    one, none = F.lit(1).cast("bigint"), F.lit(0).cast("bigint")
    both = tables.original.select(*wanted, one.alias("d"), none.alias("s")).unionAll(
        release.select(*wanted, none.alias("d"), one.alias("s"))
    )
    return Cells(both.groupBy(*keys, "t").agg(F.sum("d").alias("d"), F.sum("s").alias("s")), tuple(keys))


def check_bins(tables: SharedTables, bins: Bins) -> None:
    """Refuse bins of columns that are not there or hold no numbers.

    Raises:
        ConfigError: with every fault found.
    """
    from ..config import suggest

    known = {s.name: s for s in tables.columns}
    faults = [f"disclosure.bins: no shared column {name!r}.{suggest(name, known)}" for name in bins if name not in known]
    faults += [
        f"disclosure.bins: {name!r} holds no numbers: leave its bins out, or declare columns.types: {{{name}: numeric}}"
        for name in bins if name in known and not known[name].numeric
    ]  # fmt: skip
    if faults:
        raise ConfigError("\n".join(faults))
