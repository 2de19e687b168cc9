"""Record ids under a secret: the same as Python's HMAC, numbered whatever the order of rows, and the secret in no plan."""

from __future__ import annotations

import hashlib
import hmac

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rapid_spark import keyed
from rapid_spark.config import ConfigError, parse

SECRET = "correct horse battery"


@given(st.text(min_size=1, max_size=200), st.text(max_size=100))
def test_pads_make_the_hmac_of_python(key, text):
    inner, outer = keyed.pads(key)
    made = hashlib.sha256(outer + hashlib.sha256(inner + text.encode()).digest()).hexdigest()
    assert made == hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
    assert keyed.start_of(text, key) == f"hmac:{made}:"


def test_faults(monkeypatch):
    monkeypatch.delenv(keyed.VARIABLE, raising=False)
    with pytest.raises(ConfigError, match="columns.key_hmac: the environment's RAPID_SPARK_KEY_SECRET is not set"):
        keyed.secret()
    monkeypatch.setenv(keyed.VARIABLE, "short-4711")
    with pytest.raises(ConfigError, match="has 10 characters") as raised:
        keyed.secret()
    assert "4711" not in str(raised.value)
    with pytest.raises(ConfigError, match="columns.key_hmac: name the columns"):
        parse({"columns": {"key_hmac": True}})


def test_record_ids_are_hmacs_with_occurrence_numbers(spark, monkeypatch, capsys):
    from rapid_spark import io, schema

    monkeypatch.setenv(keyed.VARIABLE, SECRET)
    people = pd.DataFrame({
        "name": ["Åse", "Bo", "Bo", "Bo"], "year": [1, 2, 2, 3], "q": [5, 6, 7, 8], "s": ["x", "y", "x", "y"],
    })  # fmt: skip
    settings = parse({
        "quasi_identifiers": ["q"], "sensitive_attributes": ["s"], "columns": {"key": ["name", "year"], "key_hmac": True},
    })  # fmt: skip

    def aligned(frame):
        source = io.from_frame(spark, frame, "original")
        return schema.align(source, {1: io.from_frame(spark, frame, "release")}, settings, None).original

    found = aligned(people)
    ids = {row["q0"]: row["record_id"] for row in found.select("q0", "record_id").collect()}
    parts = {q: id_.rpartition(":") for q, id_ in ids.items()}
    starts = {q: head + ":" for q, (head, _, _) in parts.items()}
    expected = {5.0: '["Åse","1"]', 6.0: '["Bo","2"]', 7.0: '["Bo","2"]', 8.0: '["Bo","3"]'}
    assert starts == {q: keyed.start_of(text, SECRET) for q, text in expected.items()}
    assert (parts[5.0][2], parts[8.0][2]) == ("1", "1") and {parts[6.0][2], parts[7.0][2]} == {"1", "2"}
    turned = aligned(people.iloc[::-1].reset_index(drop=True)).repartition(3)
    assert {row["q0"]: row["record_id"] for row in turned.select("q0", "record_id").collect()} == ids

    found.explain("extended")  # what a page or log of Spark's shows
    shown = capsys.readouterr().out.lower()
    assert "sha2" in shown and "pad" in shown
    assert not any(pad.hex() in shown or pad.decode("latin-1").lower() in shown for pad in keyed.pads(SECRET))

    # a record is erased by its key: the condition of `forget`, on rows of a stored table
    from rapid_spark.upkeep import erasure

    rows = [(ids[6.0], "r"), (ids[7.0], "r"), (ids[8.0], "r"), ('["Bo","2"]', "r"), (ids[6.0], "other")]
    stored = spark.createDataFrame(rows, "record_id string, registry string").alias("t")
    wanted = erasure.wanted_rows(spark, '["Bo","2"]', "r").alias("f")
    left = stored.join(wanted, erasure.same_record(), "left_anti").collect()
    assert sorted(map(tuple, left)) == sorted([(ids[8.0], "r"), (ids[6.0], "other")])
    monkeypatch.delenv(keyed.VARIABLE)
    without = erasure.wanted_rows(spark, '["Bo","2"]', None).alias("f")
    assert stored.join(without, erasure.same_record(), "left_semi").count() == 1
