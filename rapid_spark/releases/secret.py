"""The secret of a store: key of the hash that splits persons into parts, and of the HMAC that recognises content."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F

from rapid_spark.config import ConfigError
from rapid_spark.digest import combine, row_sums
from rapid_spark.io import quoted
from rapid_spark.locks import held
from rapid_spark.store import Store

VARIABLE = "RAPID_SPARK_DP_SECRET"
SHORTEST = 16  # characters
ABSENT = -7_046_029_254_386_353_131


def secret_of(store: Store) -> str:
    """The secret: from the environment, or of a local store, where it is made once and kept beside the tables.

    Raises:
        ConfigError: a schema of the catalog has no place for one, and the environment has none, or a short one.
    """
    given = os.environ.get(VARIABLE)
    if given is not None:
        if len(given) < SHORTEST:
            raise ConfigError(f"{VARIABLE} has {len(given)} characters: give at least {SHORTEST}, drawn at random")
        return given
    if store.directory is None:
        raise ConfigError(
            f"{VARIABLE} is not set: it is the key by which persons are split and content is recognised; set it from "
            "a secret scope, and keep it the same for this population"
        )
    path = store.directory / ".secret"
    with held(store.directory / ".locks" / "secret"):
        if not path.exists():
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as out:
                out.write(secrets.token_hex(32))
        return path.read_text(encoding="ascii")


def content_hmac(frame: Any, columns: Sequence[str], secret: str) -> str:
    """A keyed digest of the named columns' content that does not depend on the order of rows; one pass.

    It only ever warns that known content comes under another name, and decides nothing.
    """
    cells = [F.coalesce(F.xxhash64(F.col(quoted(c)).cast("string")), F.lit(ABSENT)) for c in sorted(columns)]
    row = frame.agg(F.count(F.lit(1)).alias("n"), *row_sums(cells)).first()
    digest = combine(columns, row.asDict(), row["n"])
    return hmac.new(secret.encode(), digest.encode(), hashlib.sha256).hexdigest()
