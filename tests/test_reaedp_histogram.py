"""Exact counts by Spark equal a plain loop; what a record contributes depends on the record alone."""

from __future__ import annotations

import hashlib
import hmac
import json

import numpy as np
import pandas as pd
import pytest

from rapid_spark.reaedp import histogram
from rapid_spark.reaedp.domain import Categories, Edges, tables_over

A = Categories("a", ("x", "y", "z!"), missing=True)
B = Edges("b", (0, 1, 2.5, 4), missing=True)
C = Edges("c", tuple(range(0, 41, 10)))
D = Categories("d.e", (True, False))
WIDE = Categories("c", tuple(range(300)))


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    n = 600
    return pd.DataFrame(
        {
            "id": np.arange(n) // 3,
            "a": rng.choice(np.array(["x", "y", "z!", "q", None], dtype=object), n),
            "b": rng.choice([0.0, -0.0, 0.5, 1.0, 4.0, -1.0, 4.1, np.nan, np.inf], n),
            "c": rng.integers(0, 50, n),
            "d.e": rng.choice([True, False], n),
        }
    )


@pytest.fixture(scope="module")
def frame(spark, people):
    return spark.createDataFrame(people).repartition(3).persist()


def bins(row):
    a = {"x": 0, "y": 1, "z!": 2}.get(row["a"], 3 if row["a"] is None else -1)
    b = 3 if np.isnan(row["b"]) else -1 if not 0 <= row["b"] <= 4 else min(sum(e <= row["b"] for e in (1, 2.5)), 2)
    c = -1 if row["c"] > 40 else min(row["c"] // 10, 3)
    return {"a": a, "b": b, "c": c, "d.e": 0 if row["d.e"] else 1}


def looped(people, tables, universe):
    result = [np.zeros(t.shape, dtype=int) for t in tables]
    for row in people.to_dict("records"):
        at = bins(row)
        named = {c for t in tables for c in t.columns}
        for table, counts in zip(tables, result, strict=True):
            if all(at[c] >= 0 for c in (named if universe == "common" else table.columns)):
                counts[tuple(at[c] for c in table.columns)] += 1
    return [r.ravel() for r in result]


@pytest.mark.parametrize("universe", ["common", "table"])
def test_counts_equal_a_plain_loop(frame, people, universe):
    tables = tables_over([A, B, C, D], [["a", "b"], ["c"], ["d.e", "a", "c"]])
    found = histogram.count_tables(frame, tables, universe=universe)
    for mine, right in zip(found, looped(people, tables, universe), strict=True):
        assert mine.tolist() == right.tolist()


def test_long_level_lists_are_counted_too(frame, people):
    found = histogram.count_tables(frame, tables_over([WIDE], [["c"]]))[0]
    assert found.tolist() == np.bincount(people["c"], minlength=300).tolist()


def test_a_value_outside_the_domain_changes_nothing_but_its_own_count(spark):
    declared = tables_over([Categories("v", ("A", "B"))], [["v"]])
    with_c = spark.createDataFrame([("A",), ("B",), ("B",), ("C",)], "v string")
    assert histogram.count_tables(with_c, declared)[0].tolist() == [1, 2]


def test_rows_per_person_are_bounded_and_persons_without_key_left_out(spark):
    rows = [("p", "A"), ("p", "A"), ("p", "B"), ("q", "B"), (None, "A"), (None, "A")]
    people = spark.createDataFrame(rows, "person string, v string")
    declared = tables_over([Categories("v", ("A", "B"))], [["v"]])
    for limit, total in ((1, 2), (2, 3), (3, 4)):
        counts = histogram.count_tables(people, declared, person=["person"], max_rows_per_person=limit)[0]
        assert counts.sum() == total
    without_p = people.where("person = 'q'")
    alone = histogram.count_tables(without_p, declared, person=["person"], max_rows_per_person=2)[0]
    both = histogram.count_tables(people, declared, person=["person"], max_rows_per_person=2)[0]
    assert abs(both - alone).sum() == 2


def test_numbers_as_levels_match_by_value(spark):
    frame = spark.sql("select 1.0D v, 1.50BD w union all select 2.0D, 2.25BD union all select null, null")
    declared = tables_over([Categories("v", (1, 2), missing=True), Categories("w", (1.5, 2.25))], [["v"], ["w"]])
    counts = histogram.count_tables(frame, declared, universe="table")
    assert [c.tolist() for c in counts] == [[1, 1, 1], [1, 1]]


@pytest.mark.parametrize("width", [1, 3, 7])
def test_even_edges_and_the_same_edges_spelled_out_agree(spark, width):
    edges = tuple(range(-21, 22, width))
    values = np.unique([np.nextafter(e, d) for e in edges for d in (-99, 99)] + list(edges))
    frame = spark.createDataFrame(pd.DataFrame({"x": values}))
    even = histogram.count_tables(frame, tables_over([Edges("x", edges)], [["x"]]))[0]
    assert even.tolist() == np.histogram(values, np.array(edges, float))[0].tolist()


def test_the_split_is_a_keyed_hash_of_the_person(frame):
    parts = histogram.with_parts(frame, ["id"], (0.25, 0.25, 0.5), "secret").select("id", "_part").toPandas()
    for key, part in parts.drop_duplicates().itertuples(index=False):
        message = json.dumps({"k0": str(key)}, separators=(",", ":")).encode()
        place = int(hmac.new(b"secret", message, hashlib.sha256).hexdigest()[:13], 16) / 2**52
        assert part == (0 if place < 0.25 else 1 if place < 0.5 else 2)
    assert len(parts.drop_duplicates()) == 200


def test_nobody_moves_when_another_person_leaves(frame):
    before = histogram.with_parts(frame, ["id"], (0.5, 0.5), "s").select("id", "_part").distinct().toPandas()
    after = histogram.with_parts(frame.where("id <> 7"), ["id"], (0.5, 0.5), "s").select("id", "_part").distinct()
    merged = before.merge(after.toPandas(), on="id", suffixes=("", "_after"))
    assert len(merged) == len(before) - 1
    assert (merged["_part"] == merged["_part_after"]).all()


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda f: histogram.count_tables(f, tables_over([Categories("aa", ("x",))], [["aa"]])), "Did you mean 'a'"),
        (lambda f: histogram.count_tables(f, tables_over([A], [["a"]]), person=["id"]), "belong together"),
        (lambda f: histogram.count_tables(f, tables_over([Categories("b", ("x",))], [["b"]])), "not all numbers"),
        (lambda f: histogram.with_parts(f, ["id"], (0.5, 0.4), "s"), "do not add up"),
        (lambda f: histogram.with_parts(f, ["id"], (1.0,), ""), "secret"),
        (lambda f: histogram.with_parts(f, ["b"], (1.0,), "s"), "no fractions"),
        (lambda f: histogram.with_parts(f, [], (1.0,), "s"), "no key column"),
    ],
)
def test_wrong_requests_are_refused(frame, call, word):
    with pytest.raises(ValueError, match=word):
        call(frame)


def test_dates_have_no_edges(spark):
    frame = spark.sql("select date'2020-01-01' day")
    with pytest.raises(ValueError, match="day is a date"):
        histogram.count_tables(frame, tables_over([Edges("day", (0, 1))], [["day"]]))
