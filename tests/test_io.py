"""Reading: every door gives the same rows, and what cannot be read is refused by name, without a value of anybody."""

from __future__ import annotations

import datetime
import decimal
import gzip
import os
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from rapid_spark import io
from rapid_spark.config import ConfigError, Table
from rapid_spark.frames import arrow_array
from rapid_spark.profiles import column_types

ODD = ["a.b", "c d", 'e"f', "g`h", "größe", "Übung.1", "select"]
SECRET = "Qx7secret"


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def rows(source, *extra):
    """All rows as tuples of the table's own columns, and further ones."""
    names = [*source.columns, *extra]
    found = source.frame.select(*(source.column(c) for c in names)).collect()
    return sorted((tuple(row) for row in found), key=lambda row: tuple(map(str, row)))


def read(spark, path, **settings):
    return io.read(spark, Table(path=str(path), **settings))


def test_odd_column_names_and_quoted_fields_arrive_as_they_are(spark, tmp_path):
    header = ",".join('"' + c.replace('"', '""') + '"' for c in ODD)
    path = write(tmp_path / "odd [1] {x}.csv", f'{header}\n1,"a,b","say ""x""",,"",\\n,ä\n')
    source = read(spark, path)
    assert source.columns == tuple(ODD) and source.is_text
    assert rows(source) == [("1", "a,b", 'say "x"', None, None, "\\n", "ä")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_quoted_line_break_stays_in_its_field(spark, tmp_path, end):
    lines = ["a,b", '1,"x', 'y,z"', "2,w", ""]
    source = read(spark, write(tmp_path / "t.csv", end.join(lines)))
    found = rows(source, source.corrupt)
    assert [row[0] for row in found] == ["1", "2"] and [row[-1] for row in found] == [None, None]
    assert found[0][1].replace("\r\n", "\n").replace("\r", "\n") == "x\ny,z" and found[1][1] == "w"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8", "utf-16", "utf-16-le", "latin-1", "cp1252", "iso8859-15", "cp437"])
def test_encodings(spark, tmp_path, encoding):
    text = "größe,b\nä,1\né,2\n" + ("€,3\n" if encoding not in ("latin-1", "cp437") else "")
    source = read(spark, write(tmp_path / "t.csv", text.encode(encoding)), encoding=encoding)
    expected = [tuple(line.split(",")) for line in text.split()[1:]]
    assert source.columns == ("größe", "b") and rows(source) == sorted(expected)


def test_a_folder_of_csv_is_one_table(spark, tmp_path):
    write(tmp_path / "one.csv", "a,b\n1,x\n")
    write(tmp_path / "two.csv.gz", "a,b\n2,y\n")
    write(tmp_path / "_hidden.csv", "c\n3\n")
    source = read(spark, tmp_path)
    assert rows(source) == [("1", "x"), ("2", "y")] and not source.line_numbers_possible


def test_records_with_surplus_or_lacking_fields_are_marked(spark, tmp_path):
    source = read(spark, write(tmp_path / "t.csv", "a,b\n1,2\n1,2,3\n1\n\n4,\n"))
    assert sorted(str(row[-1]) for row in rows(source, source.corrupt)) == ["1", "1,2,3", "None", "None"]


def test_an_unnamed_column_is_called_as_pandas_calls_it(spark, tmp_path):
    path = write(tmp_path / "t.csv", ",a\n0,1\n")
    assert read(spark, path).columns == tuple(pd.read_csv(path).columns) == ("Unnamed: 0", "a")


BAD_CSV = {
    "empty": (b"", ["is empty"]),
    "blank": (b"\n\n", ["is empty"]),
    "duplicates": (b"id,age,age\n1,2,3\n", ["'age' is there 2 times"]),
    "case": (b"Age,b,age\n1,2,3\n", ["'Age' and 'age' differ only in case"]),
    "semicolons": (f"a;b;c\n{SECRET};2;3\n".encode(), ["semicolon", "delimiter: ';'"]),
    "tabs": (f"a\tb\n{SECRET}\t2\n".encode(), ["tab", "delimiter: '\\t'"]),
    "latin1": (f"a,b\n1,2\n{SECRET}\xe9,1\n".encode("latin-1"), ["line 3", "encoding", "windows-1252"]),
    "utf16": ("a,b\n1,2\n".encode("utf-16"), ["encoding: UTF-16"]),
    "binary": (b"a,b\n1,\0\n", ["zero bytes"]),
    "unclosed": (f'a,b\n1,"{SECRET}\n2,3\n'.encode(), ["never closed"]),
    "gzip inside": (gzip.compress(b"a,b\n1,2\n"), ["gzip", ".csv.gz"]),
}


@pytest.mark.parametrize("name", BAD_CSV)
def test_bad_csv_is_refused_with_its_name_and_no_value(spark, tmp_path, name):
    content, said = BAD_CSV[name]
    with pytest.raises(ConfigError) as fault:
        read(spark, write(tmp_path / "people.csv", content))
    assert all(part in str(fault.value) for part in ["people.csv", *said]) and SECRET not in str(fault.value)


def test_damaged_gzip_is_refused(spark, tmp_path):
    whole = gzip.compress(("a,b\n" + "1,2\n" * 5000).encode())
    for name, content in {"cut": whole[:-20], "flipped": whole[:30] + b"\xff" + whole[31:], "plain": b"a,b\n1,2\n"}.items():
        path = tmp_path / f"{name}.csv.gz"
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=rf"{name}.csv.gz.*gzip"):
            read(spark, path)


def test_a_missing_file_names_near_ones(spark, tmp_path):
    write(tmp_path / "original.csv", "a\n1\n")
    with pytest.raises(ConfigError, match="orignal.csv.*Did you mean 'original.csv'"):
        read(spark, tmp_path / "orignal.csv")
    with pytest.raises(ConfigError, match="no folder .*nowhere"):
        read(spark, tmp_path / "nowhere" / "original.csv")


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("t.xlsx", {}, "format cannot be told"),
        ("t", {}, "format cannot be told"),
        ("t.csv", {"encoding": "klingon"}, "unknown"),
        ("t.csv", {"encoding": "shift_jis"}, "convert the file to UTF-8"),
        ("t.csv", {"format": "delta"}, "_delta_log"),
        ("t.csv", {"version": 3}, "version is for Delta"),
        ("t.csv", {"format": "parquet"}, "not Parquet"),
    ],
)
def test_settings_that_do_not_fit_the_file(spark, tmp_path, name, settings, said):
    write(tmp_path / name, "a,b\n1,2\n")
    with pytest.raises(ConfigError, match=said):
        read(spark, tmp_path / name, **settings)


def test_an_explicit_format_overrules_the_name(spark, tmp_path):
    source = read(spark, write(tmp_path / "people.txt", "a|b\n1|2\n"), format="csv", delimiter="|")
    assert rows(source) == [("1", "2")]


def test_an_empty_folder_and_differing_headers_are_refused(spark, tmp_path):
    with pytest.raises(ConfigError, match="holds no table"):
        read(spark, tmp_path)
    write(tmp_path / "one.csv", "a,b\n1,2\n")
    write(tmp_path / "two.csv", "a,c\n1,2\n")
    with pytest.raises(ConfigError, match="two.csv.*'c', 'b'.*one.csv"):
        read(spark, tmp_path)


def test_csv_line_numbers_count_records_from_one(spark, tmp_path):
    content = 'a,b\n9,x\n\n8,"y\nz"\n7,w\n'
    for name in ("t.csv", "t.csv.gz"):
        source = read(spark, write(tmp_path / name, content)).numbered()
        assert {(row[-1], row[0]) for row in rows(source, source.row_number)} == {(1, "9"), (2, "8"), (3, "7")}


def test_parquet_line_numbers_follow_the_file_across_row_groups(spark, tmp_path):
    table = pa.table({"_metadata": pa.array(range(1000)), "row_number": ["x"] * 1000})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=64)
    source = read(spark, tmp_path / "t.parquet").numbered()
    found = source.frame.select(source.column("_metadata"), source.column(source.row_number)).collect()
    assert len(found) == 1000 and all(place == value + 1 for value, place in found)


def test_a_parquet_folder_is_one_table_with_all_its_columns(spark, tmp_path):
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "one.parquet")
    pq.write_table(pa.table({"a": [2], "c": [0.5]}), tmp_path / "two.parquet")
    source = read(spark, tmp_path)
    assert set(source.columns) == {"a", "b", "c"} and not source.line_numbers_possible
    assert source.frame.count() == 2


def test_times_to_the_nanosecond_in_parquet_are_read(spark, tmp_path):
    naive = pd.Series(pd.to_datetime(["1850-03-01 10:00:00.000001999", "2021-03-01", None], format="ISO8601"))
    frame = pd.DataFrame({"a.`b": naive, "z": naive.dt.tz_localize("UTC"), "c": pd.Series(["x", None, "y"], dtype="category")})
    frame["small"] = np.array([1, 2, 255], "uint8")
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    source = read(spark, tmp_path / "t.parquet").numbered()
    assert [field.dataType.typeName() for field in source.frame.schema][:2] == ["timestamp_ntz", "timestamp"]
    found = source.frame.select(*(F.col(f"`{c.replace('`', '``')}`").cast("string") for c in source.frame.columns)).collect()
    assert [tuple(row) for row in found] == [
        ("1850-03-01 10:00:00.000001", "1850-03-01 10:00:00.000001", "x", "1", "1"),
        ("2021-03-01 00:00:00", "2021-03-01 00:00:00", None, "2", "2"), (None, None, "y", "255", "3"),
    ]  # fmt: skip


@pytest.mark.parametrize("damage", ["truncated", "text", "middle"])
def test_damaged_parquet_is_refused(spark, tmp_path, damage):
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"b": [f"{SECRET}{i}" for i in range(5000)]}), path, compression="gzip", use_dictionary=False)
    content = path.read_bytes()
    damaged = {"truncated": content[:-30], "text": b"a,b\n1,2\n", "middle": content[:40] + b"\0" * 200 + content[240:]}
    path.write_bytes(damaged[damage])
    with pytest.raises(ConfigError, match="people.parquet") as fault:
        column_types(read(spark, path), ["b"])
    assert SECRET not in str(fault.value)


def test_columns_that_differ_only_in_case_are_refused_at_every_door(spark, tmp_path):
    frame = pd.DataFrame([[1, 2]], columns=["Age", "age"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(pa.table({"Age": [1], "age": [2]}), tmp_path / "t.parquet")
    doubled = spark.range(1).select(F.lit(1).alias("Age"), F.lit(2).alias("age"))
    doors = [
        lambda: read(spark, tmp_path / "t.csv"), lambda: read(spark, tmp_path / "t.parquet"),
        lambda: io.from_frame(spark, frame), lambda: io.from_frame(spark, doubled),
    ]  # fmt: skip
    for door in doors:
        with pytest.raises(ConfigError, match="'Age' and 'age' differ only in case"):
            door()


def test_delta_is_read_at_its_pinned_version(spark, tmp_path):
    path = str(tmp_path / "it's a `table`")
    frame = spark.createDataFrame([(1, "x")], "a int, b string")
    frame.write.format("delta").save(path)
    source = read(spark, path)
    frame.write.format("delta").mode("append").save(path)
    assert (source.version, source.frame.count()) == (0, 1)
    assert (read(spark, path).version, read(spark, path).frame.count()) == (1, 2)
    assert read(spark, path, version=0).frame.count() == 1
    with pytest.raises(ConfigError, match="version 7 cannot be read"):
        read(spark, path, version=7)
    with pytest.raises(ConfigError, match="Delta table.*leave format out"):
        read(spark, path, format="parquet")


def test_tables_of_the_catalog(spark, tmp_path):
    spark.sql("CREATE SCHEMA IF NOT EXISTS io_test")
    try:
        spark.sql(f"CREATE TABLE io_test.people USING delta LOCATION '{tmp_path / 'people'}' AS SELECT 1 AS a")
        spark.sql("INSERT INTO io_test.people VALUES (2)")
        spark.createDataFrame([(3,)], "a int").createOrReplaceTempView("view_of_io")
        pinned = io.read(spark, Table(table="io_test.people"))
        spark.sql("INSERT INTO io_test.people VALUES (3)")
        assert (pinned.version, rows(pinned)) == (1, [(1,), (2,)])
        assert rows(io.read(spark, Table(table="`io_test`.people", version=0))) == [(1,)]
        assert rows(io.read(spark, Table(table="view_of_io"))) == [(3,)]
        with pytest.raises(ConfigError, match="no table io_test.peolpe.*'people'"):
            io.read(spark, Table(table="io_test.peolpe"))
        with pytest.raises(ConfigError, match="no schema"):
            io.read(spark, Table(table="no_such_schema.people"))
    finally:
        spark.sql("DROP SCHEMA io_test CASCADE")


def test_a_pandas_frame_is_numbered_by_position_and_not_altered(spark):
    frame = pd.DataFrame({0: [1.5, np.nan], "b": pd.Categorical(["x", None])}, index=["r1", "r1"])
    before = frame.copy(deep=True)
    source = io.from_frame(spark, frame)
    assert source.columns == ("0", "b")
    assert rows(source, source.row_number) == [(1.5, "x", 0), (None, None, 1)]
    pd.testing.assert_frame_equal(frame, before)


def test_frames_that_are_none_or_have_equal_names_are_refused(spark):
    with pytest.raises(ConfigError, match="found a list"):
        io.from_frame(spark, [1, 2])
    with pytest.raises(ConfigError, match="'0' is there 2 times"):
        io.from_frame(spark, pd.DataFrame([[1, 2]], columns=[0, "0"]))


HUGE = 2**63
SERIES = {
    "category of text": (pd.Series(["b", None, "[a] x"], dtype="category"), ["b", None, "[a] x"]),
    "category of integers": (pd.Series([4, None, 9], dtype="category"), [4, None, 9]),
    "nullable integers": (pd.Series([2**53 + 1, None], dtype="Int64"), [2**53 + 1, None]),
    "nullable booleans": (pd.Series([True, None], dtype="boolean"), [True, None]),
    "object booleans": (pd.Series([True, None, np.False_], dtype=object), [True, None, False]),
    "text": (pd.Series(["a", pd.NA], dtype="string"), ["a", None]),
    "object text": (pd.Series(["a", np.nan, None], dtype=object), ["a", None, None]),
    "mixed": (pd.Series([39, "?", 3.0, None, 2.5], dtype=object), ["39", "?", "3", None, "2.5"]),
    "numbers as objects": (pd.Series([1, 2.5, None], dtype=object), [1.0, 2.5, None]),
    "whole numbers as objects": (pd.Series([1, None, 2**62 + 1], dtype=object), [1, None, 2**62 + 1]),
    "huge": (pd.Series([HUGE, 1, None], dtype=object), [decimal.Decimal(HUGE), decimal.Decimal(1), None]),
    "unsigned": (pd.Series([1, 2**64 - 1], dtype="uint64"), [decimal.Decimal(1), decimal.Decimal(2**64 - 1)]),
    "dates": (pd.Series([datetime.date(1850, 1, 2), None]), [datetime.date(1850, 1, 2), None]),
    "dates and times": (
        pd.Series([datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3)], dtype=object),
        [datetime.datetime(2020, 1, 2), datetime.datetime(2020, 1, 2, 3)],
    ),
    "nothing": (pd.Series([None, None], dtype=object), [None, None]),
    "sparse": (pd.Series(pd.arrays.SparseArray([0, 1, 0])), [0, 1, 0]),
    "small": (pd.Series([1, 2], dtype="int8"), [1, 2]),
    "identifiers": (pd.Series([uuid.UUID(int=1), None]), [str(uuid.UUID(int=1)), None]),
    "lists": (pd.Series([[1], None], dtype=object), [[1], None]),
    "arrow": (pd.Series(["a", None], dtype=pd.ArrowDtype(pa.string())), ["a", None]),
}


@pytest.mark.parametrize("name", SERIES)
def test_pandas_dtypes_give_plain_values(name):
    series, expected = SERIES[name]
    assert arrow_array(series).to_pylist() == expected


def test_times_of_pandas_arrive(spark):
    naive = pd.Series(pd.to_datetime(["2021-03-01 10:00:00.123456789", None]))
    frame = pd.DataFrame({"naive": naive, "zoned": naive.dt.tz_localize("Europe/Vienna")})
    source = io.from_frame(spark, frame)
    found = source.frame.select(*(F.col(c).cast("string") for c in source.columns)).collect()
    assert tuple(found[0]) == ("2021-03-01 10:00:00.123456", "2021-03-01 09:00:00.123456") and tuple(found[1]) == (None, None)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_refused(spark, tmp_path):
    path = write(tmp_path / "t.csv", "a\n1\n")
    path.chmod(0)
    with pytest.raises(ConfigError, match="cannot be read"):
        read(spark, path)
