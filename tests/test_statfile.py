"""Files of SPSS, Stata and SAS: types, labels, missing values, faults; one test takes such a file through Spark."""

from __future__ import annotations

import datetime
import sys

import numpy as np
import pandas as pd
import pytest

from rapid_spark import statfile
from rapid_spark.config import ConfigError, parse

pyreadstat = pytest.importorskip("pyreadstat")

PEOPLE = pd.DataFrame({
    "id": [11.0, 12, 13, 14],
    "sex": [1.0, 2, 1, np.nan],
    "age": [41.0, 99, 62, 30],
    "income": [10.5, -9, np.nan, 7.25],
    "born": [datetime.date(1890, 1, 2), datetime.date(2000, 2, 3), None, datetime.date(1970, 12, 31)],
    "seen": pd.to_datetime(["2000-01-02 03:04:05"] * 4),
    "place": ["Århus", "", "a,b", "x"],
})  # fmt: skip
LABELS = {"sex": {1: "man", 2: "woman"}, "age": {99: "99 or older"}, "income": {-9: "refused"}}


@pytest.fixture
def files(tmp_path):
    pyreadstat.write_sav(
        PEOPLE, str(tmp_path / "p.sav"), variable_value_labels=LABELS, missing_ranges={"income": [-9]}
    )
    stata = PEOPLE.assign(grade=pd.array([1, "a", 2, 1], dtype=object))
    pyreadstat.write_dta(
        stata, str(tmp_path / "p.dta"), variable_value_labels={"sex": LABELS["sex"]}, missing_user_values={"grade": ["a"]}
    )
    pyreadstat.write_xport(PEOPLE, str(tmp_path / "p.xpt"))
    return tmp_path


def listed(series):
    return [None if pd.isna(v) else v for v in series]


def test_spss_labels_are_classes_and_user_missing_is_missing(files):
    found = statfile.read(files / "p.sav", "sav")
    assert list(found.columns) == list(PEOPLE.columns)
    assert listed(found["id"]) == [11, 12, 13, 14] and str(found["id"].dtype) == "Int64"  # so that it can be a key
    assert listed(found["sex"]) == ["man", "woman", "man", None]
    assert listed(found["age"]) == [41, 99, 62, 30]  # one label among numbers is no class
    assert listed(found["income"]) == [10.5, None, None, 7.25]
    assert listed(found["born"]) == listed(PEOPLE["born"]) and listed(found["place"])[0] == "Århus"
    codes = statfile.read(files / "p.sav", "sav", value_labels=False)
    assert listed(codes["sex"]) == [1, 2, 1, None]


def test_stata_and_sas_transport(files):
    stata = statfile.read(files / "p.dta", "dta")
    assert listed(stata["sex"]) == ["man", "woman", "man", None]
    assert listed(stata["grade"]) == [1, None, 2, 1]
    assert listed(stata["income"]) == [10.5, -9, None, 7.25]  # -9 is only a number there
    sas = statfile.read(files / "p.xpt", "xpt")
    assert listed(sas["sex"]) == [1, 2, 1, None] and listed(sas["born"]) == listed(PEOPLE["born"])


def test_labels_stand_only_where_every_value_has_one_and_equal_labels_stay_apart():
    values = pd.Series([1.0, 2.0, np.nan])
    assert listed(statfile.labelled(values, {1: "a", 2: "a", 3: "b"})) == ["a (1)", "a (2)", None]
    assert listed(statfile.labelled(values, {1: "a"})) == [1, 2, None]
    assert listed(statfile.labelled(values, {1: "a", 2: " "})) == [1, 2, None]
    assert listed(statfile.labelled(pd.Series(["x", "y"]), {"x": "ex", "y": "why"})) == ["ex", "why"]


def test_times_of_day_become_text_and_fractions_and_giants_stay_numbers(tmp_path):
    frame = pd.DataFrame({"t": [datetime.time(3, 4, 5)], "big": [2.0**60], "half": [0.5]})
    pyreadstat.write_sav(frame, str(tmp_path / "t.sav"))
    found = statfile.read(tmp_path / "t.sav", "sav")
    assert found["t"][0] == "03:04:05" and found["big"].dtype == found["half"].dtype == "float64"


def test_faults(tmp_path, monkeypatch):
    broken = tmp_path / "b.sav"
    broken.write_text("4711 is no file of SPSS", encoding="utf-8")
    with pytest.raises(ConfigError, match="b.sav cannot be read as sav") as raised:
        statfile.read(broken, "sav")
    assert "4711" not in str(raised.value)
    with pytest.raises(ConfigError, match="expected one file"):
        statfile.read(tmp_path, "dta")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(ConfigError, match=r"pip install 'rapid-spark\[statistical\]'"):
        statfile.read(broken, "sav")
    with pytest.raises(ConfigError, match="version is for Delta"):
        parse({"original": {"path": "p.sav", "format": "sav", "version": 1}})


def test_through_spark_records_are_numbered_from_one(spark, files):
    from rapid_spark import io
    from rapid_spark.config import Table

    found = io.read(spark, Table(path=str(files / "p.sav"))).numbered()
    rows = found.frame.select(found.row_number, *map(io.quoted, ("id", "sex", "income", "born"))).collect()
    assert [tuple(r)[:4] for r in rows][:3] == [(1, 11, "man", 10.5), (2, 12, "woman", None), (3, 13, "man", None)]
    assert rows[0][4] == datetime.date(1890, 1, 2) and found.line_numbers_possible
    with pytest.raises(ConfigError, match="copy it there"):
        io.read(spark, Table(path="s3://bucket/p.sav"))
