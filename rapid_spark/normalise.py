"""From decided types to frames: values normalised, columns under safe names, record ids; and the counts these need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .agreement import Decision
from .config import Config, SensitiveAttribute
from .io import Source
from .profiles import TableProfile, stored_types
from .roles import ROLES, Found
from .kinds import SPOKEN, as_label, as_number, present

RECORD_ID = "record_id"


@dataclass(frozen=True)
class Plan:
    """What becomes of the named columns, in all tables alike.

    Attributes:
        config: the configuration.
        quasi_identifiers: for `q0`, `q1`, .. what it is, and how many original records lack it.
        targets: for `s0`, `s1`, .. what it is, its settings, and how many original records lack it.
    """

    config: Config
    quasi_identifiers: list[tuple[Decision, int]]
    targets: list[tuple[Decision, SensitiveAttribute, int]]

    @property
    def attributes(self) -> list[SensitiveAttribute]:
        """Settings of the targets."""
        return [attribute for _, attribute, _ in self.targets]


def frame_of(found: Found, plan: Plan, identity: Mapping[str, Column], replicate: int | None = None) -> DataFrame:
    """A table's rows with `q*` and `s*`, after the columns of `identity`. Runs no job.

    Args:
        found: the table.
        plan: what its columns are.
        identity: record id and roles, by result name.
        replicate: only this one's rows, where the table has a replicate column.
    """
    frame = found.source.frame
    if found.replicate_column is not None and replicate is not None:
        number = F.trim(found.source.column(found.replicate_column).cast("string")).try_cast("double")
        frame = frame.where(number == replicate)
    decisions = [(f"q{i}", d) for i, (d, _) in enumerate(plan.quasi_identifiers)]
    decisions += [(f"s{i}", d) for i, (d, _, _) in enumerate(plan.targets)]
    values = [_value(found, d, plan.config).alias(column) for column, d in decisions]
    return frame.select(*(c.alias(name) for name, c in identity.items()), *values)


def _value(found: Found, decision: Decision, config: Config) -> Column:
    column = found.columns[decision.name]
    stored = stored_types(found.source)[column]
    value = present(found.source.column(column), stored, config.columns.missing_codes.get(decision.name, ()))
    if decision.scale == "numeric":
        return as_number(value, stored, decision.kind)
    return as_label(value, stored, decision.kind)


def identity_of(found: Found, look: TableProfile, config: Config, faults: list[str]) -> dict[str, Column]:
    """Columns `record_id` and the roles of a table of real people; what is wrong with them goes to `faults`.

    A key of one column is its text; of several, a JSON list of their texts, so that no two pairs look alike. Without
    a key it is the row's number. Runs no job.
    """
    parts = [_identifier(found, look, key, "columns.key", config, faults) for key in config.columns.key]
    if parts:
        record_id = parts[0] if len(parts) == 1 else F.to_json(F.array(*parts))
    else:
        record_id = F.col(str(found.source.row_number)).cast("string")
    identity = {RECORD_ID: record_id}
    for role in ROLES:
        name = getattr(config.columns, role)
        if name is None or name not in found.columns:
            continue
        if role == "weight":
            identity[role] = _weight(found, look, name, config, faults)
        else:
            identity[role] = _identifier(found, look, name, f"columns.{role}", config, faults)
    return identity


def _identifier(
    found: Found, look: TableProfile, name: str, setting: str, config: Config, faults: list[str]
) -> Column:
    column = found.columns[name]
    seen = look.columns[column]
    if seen.n_missing:
        faults.append(f"{setting}: {name!r} is missing in {seen.n_missing} of {seen.n} records of {found.spoken}")
    elif seen.kind == "other" or seen.kind == "number" and setting == "columns.key":
        what = SPOKEN.get(seen.kind, seen.stored.name)
        faults.append(f"{setting}: {name!r} of {found.spoken} holds {what}: a key is text or whole numbers")
    value = present(found.source.column(column), seen.stored, config.columns.missing_codes.get(name, ()))
    return as_label(value, seen.stored, seen.kind)


def _weight(found: Found, look: TableProfile, name: str, config: Config, faults: list[str]) -> Column:
    column = found.columns[name]
    seen = look.columns[column]
    if seen.kind not in ("integer", "number"):
        what = SPOKEN.get(seen.kind, seen.stored.name)
        faults.append(f"columns.weight: {name!r} of {found.spoken} holds {what}: expected numbers")
    elif seen.n_without_value(True):
        count = seen.n_without_value(True)
        faults.append(f"columns.weight: {name!r} is missing or infinite in {count} of {seen.n} records of {found.spoken}")
    value = present(found.source.column(column), seen.stored, config.columns.missing_codes.get(name, ()))
    return as_number(value, seen.stored, "number")


def keep(frame: DataFrame, source: Source) -> DataFrame:
    """Keep the converted rows of a CSV, in memory or on disk, so that it is not parsed again with every pass.

    Where the platform keeps nothing (serverless) the frame stays as it is.
    """
    if not source.is_text:
        return frame
    try:
        return frame.persist(StorageLevel.MEMORY_AND_DISK)
    except PySparkException:
        return frame


def level_counts(original: DataFrame, plan: Plan) -> list[dict[str | None, int]]:
    """Records by label for each categorical target (null: no value); an empty dict for a continuous one. Jobs: one."""
    wanted = [i for i, (d, _, _) in enumerate(plan.targets) if d.scale == "categorical"]
    counts: list[dict[str | None, int]] = [{} for _ in plan.targets]
    if wanted:
        pairs = F.explode(F.array(*(F.struct(F.lit(i).alias("i"), F.col(f"s{i}").alias("label")) for i in wanted)))
        rows = original.select(pairs.alias("pair")).groupBy("pair.i", "pair.label").count().collect()
        for row in rows:
            counts[row["i"]][row["label"]] = row["count"]
    return counts


def key_faults(frame: DataFrame, found: Found, config: Config) -> list[str]:
    """What is wrong with a table's keys. Jobs: one on 64-bit hashes; a second, exact one if two are the same.

    Equal keys have equal hashes, so as many hashes as records means that no key occurs twice.
    """
    if not config.columns.key:
        return []
    if not _repeated(frame.select(F.xxhash64(RECORD_ID).alias("key"))):
        return []
    repeated = _repeated(frame.select(F.col(RECORD_ID).alias("key")))
    if not repeated:
        return []
    keys, records = repeated
    names = " with ".join(repr(k) for k in config.columns.key)
    return [
        f"columns.key: {keys} values of {names} stand for {records} records of {found.spoken}: a key stands for one. "
        "Name further columns that tell the records apart; where a person has several records, name columns.person too"
    ]


def _repeated(keys: DataFrame) -> tuple[int, int] | None:
    """How many keys occur more than once, and in how many records; None if none does."""
    counts = keys.groupBy("key").count().where(F.col("count") > 1)
    row = counts.agg(F.count(F.lit(1)).alias("keys"), F.sum("count").alias("records")).collect()[0]
    return (row["keys"], row["records"]) if row["keys"] else None


def weight_faults(frame: DataFrame, found: Found, config: Config) -> list[str]:
    """What is wrong with a table's weights. Jobs: one, where it has weights."""
    if "weight" not in frame.columns:
        return []
    row = frame.agg(F.count_if(F.col("weight") < 0).alias("negative"), F.sum("weight").alias("total")).collect()[0]
    where = f"columns.weight: {config.columns.weight!r} of {found.spoken}"
    if row["negative"]:
        return [f"{where} is negative in {row['negative']} records"]
    return [] if row["total"] else [f"{where} is zero in every record"]
