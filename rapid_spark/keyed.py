"""Record ids that do not show the key: HMAC-SHA256 of it under a secret of the environment, and an occurrence number.

HMAC (RFC 2104) is put together from Spark's own `sha2`: the two padded keys are computed on the driver and joined to the
table as one row of data, so that they stand in no plan, event log or page of Spark's, as a literal would.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from .config import ConfigError

VARIABLE = "RAPID_SPARK_KEY_SECRET"
SHORTEST = 16  # characters
BLOCK = 64  # bytes of a block of SHA-256
PREFIX = "hmac:"


def secret() -> str:
    """The secret from the environment.

    Raises:
        ConfigError: there is none, or a short one.
    """
    given = os.environ.get(VARIABLE, "")
    if len(given) < SHORTEST:
        found = f"has {len(given)} characters" if given else "is not set"
        raise ConfigError(
            f"columns.key_hmac: the environment's {VARIABLE} {found}: set at least {SHORTEST} characters drawn at random, "
            "and keep them: the same secret gives the same record ids"
        )
    return given


def pads(key: str) -> tuple[bytes, bytes]:
    """The inner and the outer padded key of HMAC-SHA256, a block of 64 bytes each."""
    raw = key.encode()
    block = (hashlib.sha256(raw).digest() if len(raw) > BLOCK else raw).ljust(BLOCK, b"\0")
    return bytes(b ^ 0x36 for b in block), bytes(b ^ 0x5C for b in block)


def with_pads(spark: SparkSession, frame: DataFrame, names: tuple[str, str], key: str) -> DataFrame:
    """The table and two binary columns with the padded keys. Runs no job."""
    values = pa.table([pa.array([pad], pa.binary()) for pad in pads(key)], names=list(names))
    return frame.crossJoin(F.broadcast(spark.createDataFrame(values)))


def record_id(text: Column, inner: Column, outer: Column, content: Sequence[Column]) -> Column:
    """`hmac:` and 64 hexadecimal digits, a colon and 1, 2, .. for the records with the same key; null for a null key.

    Records of one key are numbered in the order of a hash of their content, so that the order of rows does not matter;
    two records with the same content can take each other's number.

    Args:
        text: the key as text.
        inner: the inner padded key.
        outer: the outer one.
        content: columns of the table.
    """
    within = F.unhex(F.sha2(F.concat(inner, F.encode(text, "UTF-8")), 256))
    digest = F.sha2(F.concat(outer, within), 256)
    cells = [F.coalesce(c.cast("string"), F.lit("\0")) for c in content]
    order = [F.xxhash64(F.lit(seed), *cells) for seed in (1, 2)]
    number = F.row_number().over(Window.partitionBy(digest).orderBy(*order))
    return F.when(text.isNotNull(), F.concat(F.lit(PREFIX), digest, F.lit(":"), number.cast("string")))


def start_of(text: str, key: str) -> str:
    """What the record ids of a key begin with, up to the occurrence number; the same as `record_id` gives."""
    return f"{PREFIX}{hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()}:"
