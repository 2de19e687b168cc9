"""Recodes: what becomes of values, against pandas; how a release's labels tell the recode; refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rapid_spark import io
from rapid_spark.advice.write import write_recoded
from rapid_spark.config import ConfigError, Recode, Table, parse, parse_as
from rapid_spark.granularity import fitting
from rapid_spark.recode.apply import Step, counts, recode_table
from rapid_spark.schema import SchemaError, align, content_digest

AGES = [17, 18, 29, 30, 64, 65, 90, None]
# recode of AGES or ZIPS: what is right, written by hand
BY_HAND = {
    "cuts": ({"bands": [18, 30, 65]}, ["<18", "[18,30)", "[18,30)", "[30,65)", "[30,65)", ">=65", ">=65", None]),
    "closed right": (
        {"bands": {"cuts": [18, 30, 65], "closed": "right"}},
        ["<=18", "<=18", "(18,30]", "(18,30]", "(30,65]", "(30,65]", ">65", None],
    ),
    "range": (
        {"bands": {"cuts": [18, 30, 65], "style": "range"}},
        ["<18", "18-29", "18-29", "30-64", "30-64", "65+", "65+", None],
    ),
    "named": ({"bands": {"cuts": [65], "labels": ["young", "old"]}}, ["young"] * 5 + ["old", "old", None]),
    "width": ({"bands": 10}, ["[10,20)", "[10,20)", "[20,30)", "[30,40)", "[60,70)", "[60,70)", "[90,100)", None]),
    "width and origin": (
        {"bands": {"width": 5, "origin": 3, "style": "range"}},
        ["13-17", "18-22", "28-32", "28-32", "63-67", "63-67", "88-92", None],
    ),
    "midpoint": ({"bands": {"width": 10, "style": "midpoint"}}, [15.0, 15.0, 25.0, 35.0, 65.0, 65.0, 95.0, None]),
    "top and bottom": ({"top": 65, "bottom": 18}, [18.0, 18.0, 29.0, 30.0, 64.0, 65.0, 65.0, None]),
    "top with label": ({"top": 65, "top_label": "65+"}, ["17", "18", "29", "30", "64", "65+", "65+", None]),
    "top, then bands": ({"top": 70, "bands": 20}, ["[0,20)", "[0,20)", "[20,40)", "[20,40)", "[60,80)", "[60,80)", "[60,80)", None]),
    "round": ({"round": 5}, [15.0, 20.0, 30.0, 30.0, 65.0, 65.0, 90.0, None]),
}  # fmt: skip
ZIPS = ["12345", "12399", "98765", "12", None]
CODES = {
    "mask": ({"mask": {"keep": 3}}, ["123**", "123**", "987**", "12", None]),
    "mask, the end stays": ({"mask": {"keep": 2, "end": True, "character": "x"}}, ["xxx45", "xxx99", "xxx65", "12", None]),
    "mask cut off": ({"mask": {"keep": 1, "character": ""}}, ["1", "1", "9", "1", None]),
    "merge": ({"merge": {"north": ["12345", "12399"]}}, ["north", "north", "98765", "12", None]),
    "merge with other": ({"merge": {"north": ["12345"]}, "other": "rest"}, ["north", "rest", "rest", "rest", None]),
}


def done(spark, values, name, recode):
    source = io.from_frame(spark, pd.DataFrame({name: values, "n": range(len(values))}))
    found = recode_table(source, [Step(name, name, parse_as(Recode, recode))])
    rows = found.frame.orderBy("n").collect()
    return [row[name] for row in rows]


def test_values_become_what_is_written_by_hand(spark):
    assert {k: done(spark, AGES, "a.ge", recode) for k, (recode, _) in BY_HAND.items()} == {
        k: right for k, (_, right) in BY_HAND.items()
    }
    assert {k: done(spark, ZIPS, "zip", recode) for k, (recode, _) in CODES.items()} == {
        k: right for k, (_, right) in CODES.items()
    }


def test_bands_of_decimal_width_equal_numpy(spark):
    """0.3 begins the fourth band of width 0.1, although 0.3 / 0.1 is less than 3 in floating point."""
    values = np.round(np.arange(-20, 40) / 20, 2)
    found = done(spark, list(values), "x", {"bands": {"width": 0.1, "style": "lowest"}})
    np.testing.assert_allclose(found, np.floor(np.round(values * 20) / 2) / 10, atol=1e-12)


def test_a_hierarchy_file_gives_levels_and_what_it_lacks_is_counted(spark, tmp_path):
    (tmp_path / "zip.csv").write_text("12345;123**;1****\n12399;123**;1****\n98765;987**;9****\n")
    hierarchy = {"path": str(tmp_path / "zip.csv"), "level": 2}
    source = io.from_frame(spark, pd.DataFrame({"zip": [*ZIPS, "*"]}))
    step = Step("zip", "zip", parse_as(Recode, {"hierarchy": hierarchy}))
    found = recode_table(source, [step])
    assert sorted(row["zip"] or "" for row in found.frame.collect()) == ["", "", "", "1****", "1****", "9****"]
    assert counts(source, [step], found) == {"zip": (1, 1)}
    with pytest.raises(ConfigError, match=r"recode.zip.hierarchy.level: .* has 2 levels, not 3"):
        recode_table(source, [Step("zip", "zip", parse_as(Recode, {"hierarchy": {**hierarchy, "level": 3}}))])


def test_numbers_are_asked_of_recodes_for_numbers(spark):
    source = io.from_frame(spark, pd.DataFrame({"sex": ["f", "m"]}))
    with pytest.raises(ConfigError, match=r"recode.sex: 'sex' of frame holds text: bands, top, bottom and round are for"):
        recode_table(source, [Step("sex", "sex", parse_as(Recode, {"bands": [1]}))])


# --- settings that contradict themselves ---------------------------------------------------------------------------

WRONG = {
    "two ways": ({"bands": [1], "mask": {"keep": 1}}, "bands and mask exclude each other"),
    "limits of levels": ({"top": 1, "merge": {"a": ["b"]}}, "top are for numbers, merge for levels"),
    "descending cuts": ({"bands": [3, 1]}, "bands: cuts are different numbers in ascending order"),
    "labels that do not fit": ({"bands": {"cuts": [1], "labels": ["a"]}}, "1 cuts make 2 bands, 1 labels"),
    "no width, no cuts": ({"bands": {}}, "give cuts or a width"),
    "bottom above top": ({"bottom": 3, "top": 2}, "bottom is below top"),
    "level in two": ({"merge": {"a": ["x"], "b": ["x"]}}, "1 levels are merged into two levels each"),
    "midpoint of cuts": ({"bands": {"cuts": [1, 2], "style": "midpoint"}}, "style midpoint needs a width"),
    "label without number": ({"top_label": "90+"}, "needs the number"),
    "drop and bands": ({"drop": True, "bands": [1]}, "drop and as_is stand alone"),
    "other alone": ({"other": "x"}, "other goes with merge or hierarchy"),
    "unknown": ({"bandz": [1]}, "unknown key. Did you mean 'bands'?"),
}


@pytest.mark.parametrize("name", WRONG)
def test_contradictions_are_refused(name):
    recode, message = WRONG[name]
    with pytest.raises(ConfigError) as fault:
        parse_as(Recode, recode)
    assert message in str(fault.value)


# --- labels tell the recode ----------------------------------------------------------------------------------------

LABELS = {
    "tens": (["0-9", "10-19", "20-29", "*"], True, {"bands": {"width": 10.0, "style": "range"}}),
    "intervals": (["[0,5)", "[5,10)"], True, {"bands": {"width": 5.0, "style": "interval"}}),
    "cuts": (
        ["18-29", "<18", "65+", "30-64"], True,
        {"bands": {"cuts": [18.0, 30.0, 65.0], "labels": ["<18", "18-29", "30-64", "65+"]}},
    ),
    "closed right": (
        ["(0,10]", "(10,50]", ">50"], True,
        {"bands": {"cuts": [10.0, 50.0], "closed": "right", "labels": ["(0,10]", "(10,50]", ">50"]}},
    ),
    "over": (["up to 17", "over 29", "18 to 29"], True,
             {"bands": {"cuts": [18.0, 30.0], "labels": ["up to 17", "18 to 29", "over 29"]}}),
    "top": ([*map(str, range(20, 40)), "90+"], True, {"top": 90.0, "top_label": "90+"}),
    "masks": (["12***", "98***"], False, {"mask": {"keep": 2, "character": "*"}}),
    "prefixes": (["12", "98"], False, {"mask": {"keep": 2, "character": ""}}),
    "words": (["low", "high"], True, None),
    "other codes": (["aa", "bb"], False, None),
}  # fmt: skip


@pytest.mark.parametrize("name", LABELS)
def test_the_recode_is_told_by_the_labels(name):
    labels, numeric, right = LABELS[name]
    assert fitting(labels, [] if numeric else ["12345", "98765"], numeric) == right


@pytest.mark.slow
@pytest.mark.long
def test_the_recode_told_by_labels_makes_them(spark):
    """What is proposed is tried: the original's numbers become the labels of the release."""
    for style in ("range", "interval"):
        for bands in ({"width": 7, "style": style}, {"cuts": [20, 33, 60], "style": style}):
            made = done(spark, list(range(80)), "age", {"bands": bands})
            again = done(spark, list(range(80)), "age", fitting(made, numeric=True))
            assert made == again


# --- alignment -----------------------------------------------------------------------------------------------------


def people(n, seed, **columns):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "id": np.arange(n), "age": rng.integers(18, 90, n), "zip": rng.choice(["12345", "12399", "98765", "98111"], n),
        "ill": rng.choice(["yes", "no"], n),
    })  # fmt: skip
    return frame.assign(**columns)


def aligned(spark, folder, original, release, **settings):
    from rapid_spark.config import parse

    original.to_csv(folder / "original.csv", index=False)
    release.drop(columns="id").to_csv(folder / "release.csv", index=False)
    settings = {"quasi_identifiers": ["age", "zip"], "sensitive_attributes": ["ill"], "columns": {"key": "id"}} | settings
    opened = [io.read(spark, Table(path=str(folder / f"{name}.csv"))) for name in ("original", "release")]
    return align(opened[0], {1: opened[1]}, parse(settings))


RECODE = {"age": {"bands": {"width": 10, "style": "range"}}, "zip": {"mask": {"keep": 2}}}


def coarse(frame):
    low = frame["age"] // 10 * 10
    age = low.astype(str) + "-" + (low + 9).astype(str)
    return frame.assign(age=age.where(frame.index % 20 > 0, "*"), zip=frame["zip"].str[:2] + "***")


@pytest.mark.slow
@pytest.mark.long
def test_the_original_is_treated_as_the_release_was(spark, tmp_path):
    original, release = people(60, 1), people(40, 2)
    found = aligned(spark, tmp_path, original, coarse(release), recode=RECODE)
    rows = found.original.orderBy(found.original.record_id.cast("int")).toPandas()
    assert rows["q0"].tolist() == [f"{a // 10 * 10}-{a // 10 * 10 + 9}" for a in original["age"]]
    assert rows["q1"].tolist() == [z[:2] + "***" for z in original["zip"]]
    assert [(q.name, q.kind) for q in found.quasi_identifiers] == [("age", "categorical"), ("zip", "categorical")]
    assert found.releases[1].where("q0 is null").count() == 2
    assert any("'age' in the release" in w and "2 suppressed values are taken as missing" in w for w in found.warnings)
    # the digest is that of the file, whatever the configuration says of its columns
    assert found.release_digest == content_digest(io.read(spark, Table(path=str(tmp_path / "release.csv"))))
    found.close()


@pytest.mark.slow
@pytest.mark.long
def test_a_coarser_release_is_refused_by_name_with_the_recode_that_fits(spark, tmp_path):
    release = coarse(people(40, 2))
    with pytest.raises(SchemaError) as fault:
        aligned(spark, tmp_path, people(60, 1), release)
    assert "recode: {age: {bands: {width: 10, style: range}}} does so to the original" in str(fault.value)
    zips = {"quasi_identifiers": ["zip"]}
    with pytest.raises(SchemaError, match=r"'zip': whole numbers .* recode: {zip: {mask: {keep: 2, character: \"\*\"}}} does"):
        aligned(spark, tmp_path, people(60, 1), release, **zips)
    texts, masked = (people(60, 1).assign(zip=lambda f, end=end: "A" + f["zip"].str[:end]) for end in (5, 2))
    masked["zip"] += "***"
    with pytest.raises(SchemaError, match=r"'zip': of 4 levels .* recode: {zip: {mask: {keep: 3, character: \"\*\"}}} does"):
        aligned(spark, tmp_path, texts, masked, **zips)
    merged = release.assign(zip=np.where(release["zip"] == "12***", "north", "south"))
    with pytest.raises(SchemaError, match=r"'zip': .*say how under recode.zip: merge"):
        aligned(spark, tmp_path, texts, merged, **zips)
    cased = people(60, 1).assign(zip=lambda f: "A" + f["zip"])
    with pytest.raises(SchemaError, match=r"'zip': .*differ in case or blanks only"):
        aligned(spark, tmp_path, cased, cased.assign(zip=cased["zip"].str.lower()), **zips)
    aligned(spark, tmp_path, texts, merged, **zips, recode={"zip": {"as_is": True}}).close()
    # other levels, as many: no sign of a recode, so they are scored as unknown
    others = people(60, 1).assign(zip=lambda f: "x" + f["zip"].str[::-1])
    found = aligned(spark, tmp_path, texts, others, **zips)
    assert any("'zip'" in w and "hardly any is the same" in w for w in found.warnings)
    found.close()


def test_recodes_of_keys_targets_and_unknown_columns_are_refused(spark, tmp_path):
    both = people(20, 1), people(20, 2)
    for recode, message in (
        ({"id": {"bands": [1]}}, "'id' is a key"),
        ({"ill": {"drop": True}}, "what is not in the release cannot be evaluated"),
        ({"agee": {"bands": [1]}}, "has no column 'agee'. Did you mean 'age'"),
    ):
        with pytest.raises((ConfigError, SchemaError), match=message):
            aligned(spark, tmp_path, *both, recode=recode)


def test_a_broken_record_in_the_second_file_leaves_the_first_unwritten(spark, tmp_path):
    (tmp_path / "one.csv").write_text("age,ill\n31,yes\n42,no\n")
    (tmp_path / "two.csv").write_text("age,ill\n31,yes\n42\n")
    paths = [{"path": str(tmp_path / f"{n}.csv")} for n in ("one", "two")]
    config = parse({"release": paths, "recode": {"age": {"bands": 10}}})
    with pytest.raises(ConfigError, match="two.csv: 1 record has more or fewer fields"):
        write_recoded(spark, config, tmp_path / "coarser", "csv")
    assert not (tmp_path / "coarser").exists()
