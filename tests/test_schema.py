"""Alignment: one meaning for every door and type, and every fault of the tables told at once, without a value."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from rapid_spark import digest, io, schema
from rapid_spark.config import Config, ConfigError, SensitiveAttribute, Table, parse
from rapid_spark.schema import SchemaError

SECRET = "Qx7secret"


def config(qi=("q",), sensitive=("s",), **more) -> Config:
    return parse({"quasi_identifiers": list(qi), "sensitive_attributes": list(sensitive), **more})


def source(spark, table, name="frame"):
    if isinstance(table, io.Source):
        return table
    if isinstance(table, dict):
        table = pd.DataFrame({c: pd.Series(v, dtype=object) if None in v else v for c, v in table.items()})
    return io.from_frame(spark, table, name)


def align(spark, original, release=None, settings=None, holdout=None):
    """Align frames, dicts of columns, or sources; the release is the original where it is left out."""
    release = original if release is None else release
    releases = release if isinstance(release, list) else [release]
    sources = {i + 1: source(spark, r, "release") for i, r in enumerate(releases)}
    held_out = None if holdout is None else source(spark, holdout, "holdout")
    return schema.align(source(spark, original, "original"), sources, settings or config(), held_out)


def csv(spark, folder, table, name="t.csv", **more):
    path = folder / name
    if isinstance(table, str):
        path.write_text(table, encoding="utf-8")
    else:
        pd.DataFrame(table).to_csv(path, index=False)
    return io.read(spark, Table(path=str(path), **more))


def values(frame, *columns):
    """Rows as tuples, by record id where there is one."""
    order = [F.col("record_id").cast("long")] if "record_id" in frame.columns and columns != ("record_id",) else []
    ordered = frame.orderBy(*order) if order else frame
    return [tuple(row) if len(row) > 1 else row[0] for row in ordered.select(*columns).collect()]


def faults(spark, *args, **kwargs):
    with pytest.raises((SchemaError, ConfigError)) as fault:
        align(spark, *args, **kwargs)
    assert SECRET not in str(fault.value)
    return str(fault.value)


PEOPLE = {
    "id": [9007199254740993, 2, 3, 4],
    "größe.m": [1.5, np.nan, -0.0, 2.0],
    'to"wn `x`': ["a b", "", None, "ä,\"c"],
    "born": [dt.date(1890, 1, 1), dt.date(2000, 1, 2), None, dt.date(1970, 1, 1)],
    "ill": [True, False, True, None],
    "pay": [9007199254740993, 1, 2, 3],
    "code": ["01", "1", "02", "1"],
}  # fmt: skip
ROLES = config(["größe.m", 'to"wn `x`', "born"], ["ill", "pay", "code"], columns={"key": "id"})


def doors(spark, folder):
    """The same people through every door."""
    frame = pd.DataFrame(PEOPLE)
    arrow = pa.Table.from_pandas(frame.assign(ill=pd.array(PEOPLE["ill"], "boolean")), preserve_index=False)
    pq.write_table(arrow, folder / "p.parquet")
    whole = spark.read.parquet(str(folder / "p.parquet"))
    renamed = whole.toDF(*(f"c{i}" for i in range(len(whole.columns))))
    options = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    whole.write.format("delta").options(**options).save(str(folder / "delta"))
    renamed.createOrReplaceTempView("people_by_number")
    frame.to_csv(folder / "p.csv", index=False)
    frame[frame.columns[::-1]].iloc[::-1].to_csv(folder / "p.csv.gz", index=False)
    whole.createOrReplaceTempView("people_view")
    yield "pandas", io.from_frame(spark, frame)
    yield "category", io.from_frame(spark, frame.assign(code=frame["code"].astype("category")).convert_dtypes())
    yield "spark", io.from_frame(spark, whole.repartition(3))
    for name in ("p.parquet", "delta", "p.csv", "p.csv.gz"):
        yield name, io.read(spark, Table(path=str(folder / name)))
    yield "table", io.read(spark, Table(table="people_view"))


@pytest.mark.slow
def test_every_door_gives_the_same_people(spark, tmp_path):
    seen = {}
    for name, table in doors(spark, tmp_path):
        aligned = align(spark, table, settings=ROLES)
        rows = aligned.original.orderBy("record_id").collect()
        levels = [t.levels for t in aligned.targets]
        seen[name] = (rows, levels, aligned.quasi_identifiers, aligned.original_digest, aligned.release_digest)
        aligned.close()
    first = seen["pandas"]
    assert [list(row) for row in first[0]] == [
        ["2", 10958.0, None, None, "false", 1.0, "1"],
        ["3", None, 0.0, None, "true", 2.0, "02"],
        ["4", 0.0, 2.0, 'ä,"c', None, 3.0, "1"],
        ["9007199254740993", -29219.0, 1.5, "a b", "true", 9007199254740992.0, "01"],
    ]
    assert first[1] == [{"true": 2, "false": 1, None: 1}, {}, {"01": 1, "1": 2, "02": 1}]
    assert [(q.name, q.column, q.kind, q.n_missing) for q in first[2]] == [
        ("born", "q0", "numeric", 1), ("größe.m", "q1", "numeric", 1), ('to"wn `x`', "q2", "categorical", 2)
    ]  # fmt: skip
    assert {name: found == first for name, found in seen.items()} == dict.fromkeys(seen, True)


# --- types --------------------------------------------------------------------------------------------------------

# CSV columns: original, release, and what is seen of both: numbers, labels, or the words of the refusal.
TYPES = {
    "integers against floats": ("3 4 +5", "3.0 4.5 -0", [3.0, 4.0, 5.0], [3.0, 4.5, 0.0]),
    "exponents": ("1e3 2.5E-1 .5", "5. 1 1", [1000.0, 0.25, 0.5], [5.0, 1.0, 1.0]),
    "codes stay text": ("01 02 10", "10 2 01", ["01", "02", "10"], ["10", "2", "01"]),
    "codes in the release only": ("1 2 10", "01 2 1", [1.0, 2.0, 10.0], [1.0, 2.0, 1.0]),
    "text with some numbers": ("A1 12 7", "12 7 9", ["A1", "12", "7"], ["12", "7", "9"]),
    "text against numbers": ("a b c", "1 2 3", ["text", "whole numbers"], None),
    "numbers against text": ("1 2 3", f"1.5 {SECRET} 3", ["whole numbers", "text", "1 of 3 values"], None),
    "numbers against a marker": ("1 2 3", "1 ? 3", ["such as '?'", "missing_codes"], None),
    "booleans": ("TRUE false True", "true FALSE false", ["true", "false", "true"], ["true", "false", "false"]),
    "booleans against others": ("TRUE false True", "yes no yes", ["booleans", "text"], None),
    "booleans against numbers": ("TRUE false True", "1 0 1", ["booleans", "whole numbers"], None),
    "words against booleans": ("yes no yes", "TRUE FALSE TRUE", ["text", "booleans"], None),
    "dates": ("1969-12-31 2000-02-29 1582-10-15", "1970-01-01 1970-01-02 0001-01-01", [-1.0, 11016.0, -141427.0],
              [0.0, 1.0, -719162.0]),
    "dates against times": ("1970-01-02 1970-01-03 1970-01-01", "1970-01-01T12:00 1970-01-01T12:00:00.5Z 1970-01-01",
                            [1.0, 2.0, 0.0], [0.5, 0.5 + 0.5 / 86400, 0.0]),
    "no dates": ("2021-02-30 2021-01-01 x", "2021-01-01 a b", ["2021-02-30", "2021-01-01", "x"], ["2021-01-01", "a", "b"]),
    "dates against text": ("2021-01-30 2021-01-01 2021-01-02", "2021-01-01 a b", ["dates", "text"], None),
    "nan is missing": ("1 NaN -nan", "2 3 nan", [1.0, None, None], [2.0, 3.0, None]),
    "infinite is missing": ("1 2 Infinity", "-inf 3 4", [1.0, 2.0, None], [None, 3.0, 4.0]),
    "no number": ("1d 0x10 1_000", "1d 0x10 ५", ["1d", "0x10", "1_000"], ["1d", "0x10", "५"]),
    "huge": ("1e400 1 2", "3 4 5", [None, 1.0, 2.0], [3.0, 4.0, 5.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_csv_types_are_decided_on_the_original(spark, tmp_path, name):
    original, release, expected, expected_release = TYPES[name]
    tables = [
        csv(spark, tmp_path, {"q": cells.split(), "s": ["x", "y", "x"]}, file)
        for cells, file in ((original, "original.csv"), (release, "release.csv"))
    ]
    if expected_release is None:
        text = faults(spark, *tables)
        assert all(part in text for part in ["'q'", "original.csv", "release.csv", *expected])
    else:
        aligned = align(spark, *tables)
        assert values(aligned.original, "q0") == expected
        assert sorted(values(aligned.releases[1], "q0"), key=str) == sorted(expected_release, key=str)


STORED = {
    "integer against text": ([4, 9, 4], ["4", "9", "4"], ["whole numbers (bigint)", "text (string)"]),
    "text against integer": (["4", "9", "4"], [4, 9, 4], ["text (string)", "whole numbers (bigint)"]),
    "integer against float": ([4, 9, 4], [4.0, 9.5, np.nan], None),
    "bool against its text": ([True, False, True], ["true", "False", "TRUE"], None),
    "text against bool": (["true", "False", "TRUE"], [True, False, True], None),
    "bool against other text": ([True, False, True], ["yes", "no", "no"], ["booleans (boolean)", "text (string)"]),
    "bool against integer": ([True, False, True], [1, 0, 1], ["booleans", "whole numbers"]),
    "text against all missing floats": (["a", "b", "a"], [np.nan] * 3, None),
    "lists": ([[1], [2], [3]], [[1], [2], [3]], ["array<bigint>"]),
}


@pytest.mark.parametrize("name", STORED)
def test_stored_types_agree_or_both_are_named(spark, name):
    original, release, said = STORED[name]
    tables = [{"q": column, "s": ["x", "y", "x"]} for column in (original, release)]
    if said:
        text = faults(spark, *tables)
        assert all(part in text for part in said)
    else:
        align(spark, *tables)


def test_all_differences_are_told_at_once(spark):
    original = {"a": [1, 2], "b": ["x", "y"], "s": ["x", "y"]}
    text = faults(spark, original, {"a": ["u", "v"], "b": [1, 2], "s": [True, False]}, config(["a", "b"]))
    assert text.startswith("3 faults") and all(f"{c!r}:" in text for c in "abs")


def test_declared_types(spark, tmp_path):
    original = csv(spark, tmp_path, {"q": ["007", "12", "5"], "p": ["3", "9007199254740993", "1.50"], "s": [1, 2, 3]})
    declared = {"types": {"q": "numeric", "p": "categorical"}}
    aligned = align(spark, original, settings=config(["p", "q"], ["s:categorical"], columns=declared))
    assert values(aligned.original, "q0", "q1", "s0") == [
        ("3", 7.0, "1"), ("9007199254740993", 12.0, "2"), ("1.5", 5.0, "3")
    ]  # fmt: skip
    text = faults(spark, {"q": ["1", SECRET, "?"], "s": [1, 2, 3]}, settings=config(columns={"types": {"q": "numeric"}}))
    assert "2 of 3 values" in text and "such as '?'" in text and "missing_codes" in text
    assert "not among the quasi-identifiers" in faults(spark, PEOPLE_2, settings=config(columns={"types": {"s": "numeric"}}))
    # that of a quasi-identifier that a step of advice drops may stay
    less = config(["p", "q"], ["s:categorical"], columns=declared, recode={"p": {"drop": True}})
    assert [q.name for q in align(spark, original, settings=less).quasi_identifiers] == ["q"]


def test_labels_of_whole_numbers_are_the_same_however_stored(spark):
    for release in ([3.0, 4.0, np.nan], ["3", "4", None], [np.float32(3), np.float32(4), np.float32("nan")]):
        aligned = align(spark, {"q": [1, 2, 3], "s": [3, 4, 3]}, {"q": [1, 2, 3], "s": release}, config(sensitive=["s:categorical"]))
        assert aligned.targets[0].levels == {"3": 2, "4": 1}
        assert sorted(values(aligned.releases[1], "s0"), key=str) == ["3", "4", None]


def test_single_precision_means_the_number_it_shows(spark):
    aligned = align(spark, {"q": np.array([0.1, 0.2], "float32"), "s": ["x", "y"]})
    assert values(aligned.original, "q0") == [0.1, 0.2]


def test_decimals_are_numbers(spark):
    frame = spark.sql("SELECT id, CAST(id + 0.25 AS decimal(10,2)) AS q, CAST(id * 3 AS decimal(20,0)) AS s FROM range(2)")
    aligned = align(spark, io.from_frame(spark, frame), settings=config(columns={"key": "id"}))
    assert values(aligned.original, "q0", "s0") == [(0.25, 0.0), (1.25, 3.0)]


def test_numbers_with_a_decimal_comma_are_refused_unless_declared(spark, tmp_path):
    table = csv(spark, tmp_path, "q;s\n1,5;x\n2;y\n1.000,75;x\n", delimiter=";")
    assert "2 values are numbers with a comma" in faults(spark, table)
    aligned = align(spark, table, settings=config(columns={"types": {"q": "categorical"}}))
    assert values(aligned.original, "q0") == ["1,5", "2", "1.000,75"]


def test_dates_and_times_as_targets_need_a_type(spark, tmp_path):
    days = csv(spark, tmp_path, {"q": [1, 2, 3], "s": ["2021-01-01", "1899-12-31", "2021-01-01"]})
    assert all(part in faults(spark, days) for part in ("categorical", "continuous", "absolute", "days"))
    assert "absolute" in faults(spark, days, settings=config(sensitive=["s:continuous"]))
    aligned = align(spark, days, settings=config(sensitive=["s:continuous"], threshold={"error": "absolute"}))
    assert values(aligned.original, "s0") == [18628.0, -25568.0, 18628.0]
    assert align(spark, days, settings=config(sensitive=["s:categorical"])).targets[0].levels == {"2021-01-01": 2, "1899-12-31": 1}


def test_dates_are_read_by_the_pattern_that_is_stated(spark, tmp_path):
    written = {"q": ["03 Feb 2021", "1 Dec 1899", "2021-02-04"], "s": ["x", "y", "x"]}  # the last as any date may be written
    stated = {"dates": {"q": "d MMM yyyy"}}
    for table in (csv(spark, tmp_path, written), written):
        aligned = align(spark, table, settings=config(columns=stated))
        assert values(aligned.original, "q0") == [18661.0, -25598.0, 18662.0]
        assert aligned.quasi_identifiers[0].kind == "numeric"
        assert aligned.release_digest == align(spark, table).release_digest  # it tells files apart, not readings
    secret = config(["s"], ["q:continuous"], columns=stated, threshold={"error": "absolute"})
    assert values(align(spark, written, settings=secret).original, "s0") == [18661.0, -25598.0, 18662.0]
    times = {"q": ["03.02.2021 12:00", "?"], "s": [1, 2]}
    codes = {"dates": {"q": "dd.MM.yyyy HH:mm"}, "missing_codes": {"q": ["?"]}}
    assert values(align(spark, times, settings=config(columns=codes)).original, "q0") == [18661.5, None]


def test_values_that_are_no_dates_are_counted_and_patterns_that_are_none_refused(spark):
    table = {"q": ["03 Feb 2021", SECRET, "31 Feb 2021"], "s": [1, 2, 3]}
    text = faults(spark, table, settings=config(columns={"dates": {"q": "dd MMM yyyy"}}))
    assert "2 values of 'q' in the original" in text and "'dd MMM yyyy'" in text and "missing_codes" in text
    assert "not taken by Spark" in faults(spark, table, settings=config(columns={"dates": {"q": "qq bb"}}))
    text = faults(spark, table, settings=config(columns={"dates": {"x": "dd MMM yyyy"}}))
    assert "'x' is neither a quasi-identifier nor a sensitive attribute" in text
    with pytest.raises(ConfigError, match="dd MMM yyyy"):
        config(columns={"dates": {"q": "%d %b %Y"}})
    with pytest.raises(ConfigError, match="read as dates"):
        config(columns={"dates": {"q": "dd MMM yyyy"}}, recode={"q": {"bands": 10}})


# --- missing values -----------------------------------------------------------------------------------------------


def test_null_nan_empty_and_negative_zero(spark, tmp_path):
    frame = spark.sql("SELECT * FROM VALUES (1, double('NaN'), '', 'x'), (2, NULL, NULL, 'y'), (3, -0.0D, '  ', 'x') AS t(id, q, r, s)")
    aligned = align(spark, io.from_frame(spark, frame), settings=config(["q"], ["s"], columns={"key": "id"}))
    found = values(aligned.original, "q0")
    assert found == [None, None, 0.0] and np.copysign(1, found[2]) == 1 and aligned.quasi_identifiers[0].n_missing == 2
    assert "'r' has no value at all" in faults(spark, io.from_frame(spark, frame), settings=config(["q"], ["r"], columns={"key": "id"}))


def test_missing_codes_apply_on_both_sides_and_through_every_type(spark, tmp_path):
    table = {"q": [-9, 40, 50], "r": [-9.0, 1.5, 99.0], "t": ["?", "b", " * "], "s": ["x", "unknown", "y"]}
    codes = {"q": [-9], "r": ["-9", 99], "t": ["?", "*"], "s": ["unknown"]}
    settings = config(["q", "r", "t"], columns={"missing_codes": codes})
    for original in (table, csv(spark, tmp_path, table)):
        aligned = align(spark, original, settings=settings)
        assert values(aligned.original, "q0", "q1", "q2", "s0") == [
            (None, None, None, "x"), (40.0, 1.5, "b", None), (50.0, None, None, "y")
        ]  # fmt: skip
        assert aligned.targets[0].levels == {"x": 1, "y": 1, None: 1} and aligned.targets[0].n_missing == 1
        assert sorted(values(aligned.releases[1], "q0"), key=str) == [40.0, 50.0, None]


def test_a_mostly_numeric_column_with_a_marker_draws_a_warning(spark, tmp_path):
    table = csv(spark, tmp_path, {"q": [1, 2, 3, "?"], "s": ["x", "y", "x", "y"]})
    aligned = align(spark, table)
    assert aligned.quasi_identifiers[0].kind == "categorical"
    [warning] = [w for w in aligned.warnings if "original" in w]
    assert all(part in warning for part in ("3 of 4 values are numbers", "such as '?'", "missing_codes: {q:"))
    aligned = align(spark, table, settings=config(columns={"missing_codes": {"q": ["?"]}}))
    assert aligned.quasi_identifiers[0].kind == "numeric" and not aligned.warnings


def test_infinite_values_are_missing_and_counted(spark, tmp_path):
    table = {"q": [np.inf, 1.0, -np.inf], "s": ["x", "y", "x"]}
    for original in (table, csv(spark, tmp_path, "q,s\ninf,x\n1,y\n-Infinity,x\n")):
        aligned = align(spark, original, {"q": [1.0, 2.0], "s": ["x", "y"]})
        assert any("2 infinite values" in w for w in aligned.warnings) and aligned.quasi_identifiers[0].n_missing == 2


def test_columns_without_value_or_with_one_are_not_used(spark):
    table = {"a": [None] * 4, "b": ["one"] * 4, "c": ["u", None, "u", "u"], "s": ["x", "y", "x", "y"]}
    aligned = align(spark, table, settings=config(["a", "b", "c"]))
    assert [q.name for q in aligned.quasi_identifiers] == ["c"] and aligned.sets == {"all": ("q0",)}
    assert "q1" not in aligned.original.columns and values(aligned.original, "q0") == ["u", None, "u", "u"]
    assert any("'a' has no value at all" in w for w in aligned.warnings)
    assert any("'b' has one single value" in w and "not used" in w for w in aligned.warnings)
    sets = {"first": ["a", "b"], "second": ["b", "c"]}
    aligned = align(spark, table, settings=parse({"qi_sets": sets, "sensitive_attributes": ["s"]}))
    assert aligned.sets == {"first": ("q0",), "second": ("q1",)} and aligned.patterns == {"first": 1, "second": 2}
    assert "quasi_identifiers: no column in it has a value" in faults(spark, table, settings=config(["a"]))


def test_a_single_record_can_be_aligned(spark):
    aligned = align(spark, {"q": [1], "s": ["x"]}, {"q": [1, 2], "s": ["x", "y"]})
    assert (aligned.n_original, aligned.n_release, aligned.sets) == (1, {1: 2}, {"all": ("q0",)})


# --- targets ------------------------------------------------------------------------------------------------------

PEOPLE_2 = {"q": list(range(30)), "s": [i % 3 for i in range(30)]}


def test_a_number_with_few_values_draws_a_warning_unless_declared(spark):
    aligned = align(spark, PEOPLE_2)
    assert aligned.targets[0].type == "continuous" and any("3 different values" in w for w in aligned.warnings)
    assert not align(spark, PEOPLE_2, settings=config(sensitive=["s:continuous"])).warnings
    many = {"q": PEOPLE_2["q"], "s": list(range(30))}
    assert not align(spark, many).warnings


def test_too_many_levels_are_refused(spark):
    table = {"q": list(range(400)), "s": [f"{SECRET}{i % 200}" for i in range(400)]}
    text = faults(spark, table)
    assert "max_levels (100)" in text and "about" in text
    five = parse({"quasi_identifiers": ["q"], "sensitive_attributes": [SensitiveAttribute(name="s", max_levels=5)]})
    assert "has 6 levels" in faults(spark, {"q": range(12), "s": list("abcdef") * 2}, settings=five)


def test_a_target_without_any_value_is_refused_in_either_table(spark):
    whole, empty = {"q": [1, 2], "s": ["x", "y"]}, {"q": [1, 2], "s": [None, None]}
    assert "'s' has no value at all in the original" in faults(spark, empty, whole)
    assert "'s' has no value at all in the release" in faults(spark, whole, empty)


def test_a_near_unique_level_draws_a_warning(spark):
    table = {"q": [f"p{i}" for i in range(90)], "s": ["x", "y"] * 45}
    assert any("'q'" in w and "nearly every record" in w for w in align(spark, table).warnings)


# --- names --------------------------------------------------------------------------------------------------------


def test_every_missing_column_is_told_under_its_setting_with_near_ones(spark):
    settings = config(
        ["agee", "sex"], ["incom", "sex2"],
        columns={"key": "nr", "person": "prsn", "missing_codes": {"incmo": [1]}},
    )  # fmt: skip
    original = {"age": [1, 2], "sex": ["m", "f"], "income": [1, 2], "person": [1, 2]}
    text = faults(spark, original, {"age": [1], "income": [1]}, settings)
    for part in (
        "quasi_identifiers: the original (original) has no column 'agee'. Did you mean 'age'", "columns.key:", "'nr'",
        "columns.person:", "Did you mean 'person'", "sensitive_attributes: the original (original) has no column 'incom'",
        "the release (release) has no column 'sex'", "columns.missing_codes:",
    ):  # fmt: skip
        assert part in text


def test_columns_are_matched_by_case_only_where_that_is_unique(spark):
    aligned = align(spark, {"AGE": [1, 2], "s": ["x", "y"]}, {"age": [1, 2], "S": ["x", "y"]}, config(["Age"]))
    assert [q.name for q in aligned.quasi_identifiers] == ["Age"] and len(aligned.warnings) == 3
    text = faults(spark, {"AGE": [1, 2], "s": ["x", "y"]}, settings=config(["Age", "age"]))
    assert "'Age' and 'age' are the same column 'AGE'" in text


def test_nothing_named_lists_what_could_be(spark):
    text = faults(spark, {"alter": [1], "s": ["x"]}, settings=Config())
    assert "quasi_identifiers:" in text and "sensitive_attributes:" in text and "'alter'" in text


def test_names_the_program_uses_itself(spark, tmp_path):
    names = ["record_id", "q0", "s0", "n", "replicate", "row_number", "corrupt_record", "f0", "corrupt", "h0", "present_q0"]
    table = {c: [i, i + 1, i] for i, c in enumerate(names)}
    for original in (table, csv(spark, tmp_path, table)):
        aligned = align(spark, original, settings=config(names[1:], ["record_id"]))
        assert [q.name for q in aligned.quasi_identifiers] == sorted(names[1:])
        assert values(aligned.original, "s0") == [0.0, 1.0, 0.0]


# --- keys and roles -----------------------------------------------------------------------------------------------


def test_keys_of_several_columns_cannot_be_mixed_up(spark):
    table = {"a": ["1,2", "1"], "b": ["3", "2,3"], "q": [1, 2], "s": ["x", "y"]}
    aligned = align(spark, table, settings=config(columns={"key": ["a", "b"]}))
    assert {tuple(json.loads(r)) for r in values(aligned.original, "record_id")} == {("1,2", "3"), ("1", "2,3")}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ([1.5, 2.5, 3.5, 4.5], ["decimal numbers", "text or whole numbers"]),
        (["a", "b", "b", "b"], ["1 values of 'key' stand for 3 records", "columns.person"]),
        (["a", None, "", "d"], ["'key' is missing in 2 of 4 records"]),
        ([b"a", b"b", b"c", b"d"], ["binary"]),
    ],
)
def test_keys_that_are_none(spark, key, said):
    table = {"key": key, "q": [1, 2, 3, 4], "s": ["x", "y", "x", "y"]}
    text = faults(spark, table, settings=config(columns={"key": "key"}))
    assert "columns.key" in text and all(part in text for part in said)


def test_text_keys_are_kept_to_the_letter(spark, tmp_path):
    keys = ["007", "7", "07", "1e1", "9007199254740993"]
    table = csv(spark, tmp_path, {"key": keys, "q": range(5), "s": list("xyxyx")})
    aligned = align(spark, table, settings=config(columns={"key": "key"}))
    assert set(values(aligned.original, "record_id")) == set(keys)


def test_without_a_key_rows_need_an_order(spark, tmp_path):
    frame = spark.createDataFrame([(1, "x"), (2, "y")], "q int, s string")
    assert "columns.key" in faults(spark, io.from_frame(spark, frame))
    for name in ("t.csv", "t.csv.gz", "t.parquet"):
        table = pd.DataFrame({"q": [5, 6, 7], "s": ["x", "y", "x"]})
        (table.to_parquet if "parquet" in name else table.to_csv)(tmp_path / name, index=False)
        aligned = align(spark, io.read(spark, Table(path=str(tmp_path / name))))
        assert values(aligned.original, "record_id", "q0") == [("1", 5.0), ("2", 6.0), ("3", 7.0)]
    assert values(align(spark, table).original, "record_id", "q0") == [("0", 5.0), ("1", 6.0), ("2", 7.0)]


def test_roles_come_along(spark):
    table = {"q": [1, 2], "s": ["x", "y"], "p": [7.0, 8.0], "h": ["a", "a"], "w": [1, 2], "t": [True, False], "u": [1, 1]}
    roles = {"person": "p", "household": "h", "weight": "w", "stratum": "t", "psu": "u"}
    aligned = align(spark, table, settings=config(columns=roles))
    assert values(aligned.original, *roles) == [("7", "a", 1.0, "true", "1"), ("8", "a", 2.0, "false", "1")]
    assert set(aligned.releases[1].columns) == {"q0", "s0"}


@pytest.mark.parametrize(
    ("role", "column", "said"),
    [
        ("weight", [1.0, -1.0], "negative in 1 of 2"),
        ("weight", [1.0, np.nan], "missing in 1 of 2"),
        ("weight", [1.0, np.inf], "missing in 1 of 2"),
        ("weight", [0, 0], "zero in every record"),
        ("weight", [SECRET, "b"], "holds text"),
        ("person", ["a", None], "missing in 1 of 2"),
        ("household", [[1], [2]], "array"),
    ],
)
def test_roles_that_cannot_be_used(spark, role, column, said):
    text = faults(spark, {"q": [1, 2], "s": ["x", "y"], "r": column}, settings=config(columns={role: "r"}))
    assert f"columns.{role}" in text and said in text


# --- tables -------------------------------------------------------------------------------------------------------


def test_empty_tables_and_broken_records_are_refused(spark, tmp_path):
    whole = {"q": [1, 2], "s": ["x", "y"]}
    assert "there are no records" in faults(spark, csv(spark, tmp_path, "q,s\n"), whole)
    assert "the release (t.csv)" not in faults(spark, pd.DataFrame({"q": [], "s": []}), whole)
    text = faults(spark, csv(spark, tmp_path, f"q,s\n1,x\n2,{SECRET},3\n4\n"), whole)
    assert "2 records have more or fewer fields" in text and "delimiter" in text
    # also where a column that nobody uses is short of a value, so that those after it slip
    unused = csv(spark, tmp_path, f"q,z,s\n1,0,x\n2,{SECRET}\n1,0,y\n", "unused.csv")
    assert "1 record has more or fewer fields" in faults(spark, unused, whole)
    with pytest.raises(ConfigError, match="1 record has more or fewer"):
        unused.check_records()


def test_replicates_in_one_table_or_in_several(spark):
    one = pd.DataFrame({"q": [1, 2, 3, 4, 5], "s": list("xyxyx"), "m": [1.0, 2.0, 1.0, 2.0, 2.0]})
    table = io.from_frame(spark, one)
    marked = io.Source(table.frame, table.columns, "release", replicate_column="M")
    aligned = align(spark, PEOPLE_3, [marked])
    assert aligned.n_release == {1: 2, 2: 3}
    assert sorted(values(aligned.releases[2], "q0")) == [2.0, 4.0, 5.0]
    several = align(spark, PEOPLE_3, [one[one["m"] == m].drop(columns="m") for m in (1, 2)])
    assert several.release_digests == aligned.release_digests and several.release_digest == aligned.release_digest
    assert "several tables or a replicate_column" in faults(spark, PEOPLE_3, [marked, marked])
    assert "'extra'" in faults(spark, PEOPLE_3, [PEOPLE_3, PEOPLE_3 | {"extra": [1] * 5}])


@pytest.mark.parametrize("column", [[1, 3, 3], [0, 1, 2], ["a", "1", "2"], [1, 2, None], [1.5, 1, 2]])
def test_replicates_that_are_not_numbered_from_one(spark, column):
    table = source(spark, {"q": [1, 2, 3], "s": ["x", "y", "x"], "m": column})
    marked = io.Source(table.frame, table.columns, "release", replicate_column="m")
    assert "release.replicate_column: 'm'" in faults(spark, PEOPLE_3, [marked])


PEOPLE_3 = {"q": [1, 2, 3, 4, 5], "s": list("xyxyx")}


def test_the_holdout_is_aligned_like_the_original(spark):
    settings = config(columns={"key": "k", "person": "p"})
    original = {"k": [1, 2, 3], "p": [1, 1, 2], "q": [1, 2, 3], "s": ["x", "y", "x"]}
    aligned = align(spark, original, settings=settings, holdout={"k": [8, 9], "q": [1.5, None], "s": ["z", None]})
    assert values(aligned.holdout, "record_id", "q0", "s0") == [("8", 1.5, "z"), ("9", None, None)]
    assert aligned.n_holdout == 2 and aligned.holdout_digest
    assert "the holdout" in faults(spark, original, settings=settings, holdout={"k": [8, 8], "q": [1, 2], "s": ["z", "x"]})


# --- digests ------------------------------------------------------------------------------------------------------


def test_the_digest_tells_content_from_order(spark):
    frame = pd.DataFrame({"a": [1, 2, 2], "b": ["x", "y", None]})

    def of(table):
        return schema.content_digest(io.from_frame(spark, table))

    first = of(frame)
    assert of(frame[["b", "a"]].sample(frac=1, random_state=1)) == first
    assert of(frame.astype({"a": float})) == first and of(frame.astype({"b": "category"})) == first
    changed = [
        frame.assign(b=["y", "x", None]), frame.assign(a=[1, 2, 3]), frame.rename(columns={"a": "c"}), frame.iloc[:2],
        pd.concat([frame, frame]), frame.rename(columns={"a": "b", "b": "a"}), frame.assign(c=1),
    ]  # fmt: skip
    assert len({first, *map(of, changed)}) == len(changed) + 1


def test_the_digest_of_a_wide_table_is_the_same_as_column_by_column(spark, tmp_path, monkeypatch):
    table = pd.DataFrame(PEOPLE | {"single": np.array([0.1, 2, 3, 4], "float32"), "list": [[1], [2], None, [4]]})
    narrow = schema.content_digest(io.from_frame(spark, table))
    monkeypatch.setattr(digest, "WIDE", 0)
    assert schema.content_digest(io.from_frame(spark, table)) == narrow
    assert schema.content_digest(io.from_frame(spark, table[table.columns[::-1]])) == narrow
    assert schema.content_digest(io.from_frame(spark, table.rename(columns={"pay": "code", "code": "pay"}))) != narrow


def test_a_digest_of_a_damaged_file_is_refused(spark, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.random.default_rng(0).random(5000)}), path, use_dictionary=False)
    content = path.read_bytes()
    path.write_bytes(b"PAR1" + b"\xff" * 300 + content[304:])
    with pytest.raises(ConfigError, match="t.parquet cannot be read"):
        schema.content_digest(io.read(spark, Table(path=str(path))))


# --- many columns at once -----------------------------------------------------------------------------------------

NUMBER = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: abs(x) < 1e300)
)
WORD = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp", "Z")), min_size=1, max_size=5)
NAME = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=6)


@st.composite
def tables(draw):
    """Columns of one kind each under odd names, and which of them are numbers."""
    names = draw(st.lists(NAME.filter(str.strip), min_size=4, max_size=8, unique_by=str.lower))
    n = draw(st.integers(3, 8))
    columns, numeric = {}, {}
    for name in names:
        numeric[name] = draw(st.booleans())
        cell = NUMBER if numeric[name] else st.one_of(st.none(), WORD.map(lambda w: f"w{w}"))
        column = draw(st.lists(cell, min_size=n, max_size=n))
        if numeric[name]:
            whole = all(v is None or isinstance(v, int) for v in column)
            columns[name] = pd.array(column, "Int64") if whole else [np.nan if v is None else float(v) for v in column]
        else:
            columns[name] = pd.Series(column, dtype=object)
    return pd.DataFrame(columns), numeric


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables())
def test_any_table_means_the_same_as_csv_and_as_frame(spark, tmp_path, drawn):
    frame, numeric = drawn
    target = next((c for c in frame if frame[c].notna().any()), None)
    if target is None:
        return
    settings = config([c for c in frame if c != target], [target])
    try:
        aligned = [align(spark, frame, settings=settings), align(spark, csv(spark, tmp_path, frame), settings=settings)]
    except SchemaError as fault:
        assert "no column in it has a value" in str(fault)
        return
    by_frame, by_csv = ([row[1:] for row in a.original.orderBy(F.col("record_id").cast("long")).collect()] for a in aligned)
    assert by_frame == by_csv
    assert aligned[0].quasi_identifiers == aligned[1].quasi_identifiers
    for i, name in [(q.column, q.name) for q in aligned[0].quasi_identifiers]:
        expected = [None if pd.isna(v) else float(v) + 0.0 if numeric[name] else v for v in frame[name]]
        assert values(aligned[0].original, i) == expected
    for a in aligned:
        a.close()
