"""From a table to synthetic copies in files: types, forms, places, and what is drawn by the workers."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rapid_spark import generation, io, microdata
from rapid_spark.cli import entry
from rapid_spark.config import ConfigError, Table
from rapid_spark.synthesizers import CartSynthesizer, replicates

N = 120


def people() -> pd.DataFrame:
    """Every type that a CSV can hold, with missing values."""
    rng = np.random.default_rng(1)
    age = rng.integers(18, 90, N)
    return pd.DataFrame({
        "id": np.arange(N),
        "age": pd.array(np.where(age < 25, None, age), dtype="Int64"),  # type: ignore[call-overload]
        "wage, gross": (age * 100 + rng.integers(0, 5000, N)) / 100,
        "code": [f"{i:02d}" for i in rng.integers(1, 9, N)],
        "smokes": np.where(age > 50, "true", "false"),
        "born": [dt.date(2026 - int(a), 1, 1 + int(a) % 28) for a in age],
        "seen": [dt.datetime(2026, 1, 1 + int(a) % 28, int(a) % 24, 30) for a in age],
        "said": np.where(age > 60, 'a "word", two\nlines', ""),
        "long": [str(10**30 + int(a)) for a in age],
    })


def test_places_get_their_number_before_the_ending(tmp_path: Path) -> None:
    def names(output: str, m: int) -> list[str]:
        return [p.name for p in generation.place(str(tmp_path / output), m).paths]

    assert names("a.csv.gz", 1) == ["a.csv.gz"] and names("a.b.csv.gz", 2) == ["a.b_1.csv.gz", "a.b_2.csv.gz"]
    assert names("a.parquet", 2) == ["a_1.parquet", "a_2.parquet"] and names("folder", 2) == ["folder_1", "folder_2"]
    (tmp_path / "a_2.csv").touch()
    with pytest.raises(ConfigError, match="a_2.csv exists"):
        generation.place(str(tmp_path / "a.csv"), 3)
    assert generation.place(str(tmp_path / "a.csv"), 3, force=True).form == "csv"


@pytest.mark.slow
def test_a_csv_becomes_copies_of_the_same_types_in_every_form(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = tmp_path / "o.csv"
    people().to_csv(original, index=False)
    found = microdata.read(io.read(spark, Table(path=str(original))), ["id"])
    assert found.kinds == {
        "age": "integer", "wage, gross": "number", "code": "text", "smokes": "boolean", "born": "date",
        "seen": "timestamp", "said": "text", "long": "text",
    }
    assert found.n == N and not found.is_sample and str(found.frame["age"].dtype) == "Int64"
    words = ["synthesize", "--original", str(original), "--key", "id", "--seed", "5", "--format", "json"]
    expected = replicates(CartSynthesizer(seed=5), found.frame, 2, 5)

    def same(again: pd.DataFrame, want: pd.DataFrame) -> bool:
        assert list(again) == list(want)
        texts = [frame.astype(object).where(frame.notna(), None).astype(str) for frame in (again, want)]
        return bool((texts[0].to_numpy() == texts[1].to_numpy()).all())

    assert entry.run([*words, "--output", str(tmp_path / "c.csv"), "--replicates", "2"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["n_learned_from"] == document["records"] == N and len(document["releases"]) == 2
    first = pd.read_csv(tmp_path / "c_1.csv", dtype={"code": str, "long": str})
    assert first["age"].isna().tolist() == expected[0]["age"].isna().tolist()
    assert first["code"].tolist() == expected[0]["code"].tolist() and first["smokes"].tolist() == expected[0]["smokes"].tolist()
    second = microdata.read(io.read(spark, Table(path=str(tmp_path / "c_2.csv"))))
    assert second.kinds == found.kinds and same(second.frame, expected[1])
    assert entry.run([*words, "--output", str(tmp_path / "p.parquet")]) == 0
    assert same(pd.read_parquet(tmp_path / "p.parquet"), expected[0])
    assert entry.run([*words, "--output", str(tmp_path / "d")]) == 2
    assert "Delta takes no spaces, commas" in capsys.readouterr().err
    assert entry.run([*words, "--output", str(tmp_path / "d"), "--drop", '"wage, gross"']) == 0
    delta = spark.read.format("delta").load(str(tmp_path / "d"))
    assert delta.count() == N and dict(delta.dtypes)["born"] == "date" and dict(delta.dtypes)["age"] == "bigint"
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]
    assert entry.run([*words, "--output", str(tmp_path / "p.parquet")]) == 2
    assert "--force" in capsys.readouterr().err


@pytest.mark.slow
def test_a_large_original_is_learned_from_a_sample_and_drawn_by_the_workers(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "CHUNK", 50)
    frame = people().drop(columns="id")
    source = io.from_frame(spark, frame)
    part = microdata.read(source, max_rows=40, seed=3)
    turned = microdata.read(io.from_frame(spark, frame.iloc[::-1]), max_rows=40, seed=3)
    assert part.is_sample and len(part.frame) == 40 and "sample of 40 of its 120" in part.warnings[-1]
    key = ["wage, gross", "long"]
    assert set(map(tuple, part.frame[key].to_numpy())) == set(map(tuple, turned.frame[key].to_numpy()))
    synthesizer = CartSynthesizer(seed=1)
    where = generation.place(str(tmp_path / "large.csv.gz"), 1)
    assert generation.generate(spark, part, synthesizer, 130, 7, where) == [130]
    again = microdata.read(io.read(spark, Table(path=str(where.paths[0])))).frame
    seed = int(np.random.SeedSequence([7, 1]).generate_state(1)[0])
    pieces = [synthesizer.sample(n, [seed, i]) for i, n in enumerate((50, 50, 30))]
    want = pd.concat(pieces, ignore_index=True)
    assert len(again) == 130 and again.isna().sum().to_dict() == want.isna().sum().to_dict()
    for column in ("wage, gross", "code", "said", "born"):
        assert sorted(again[column].dropna()) == sorted(want[column].dropna())


@pytest.mark.slow
def test_tables_that_cannot_be_synthesised_are_refused_by_name(spark: Any) -> None:
    frame = pd.DataFrame({"a": [1, 2], "list": [[1], [2]]})
    with pytest.raises(ConfigError, match="'list' is stored as array"):
        microdata.read(io.from_frame(spark, frame))
    with pytest.raises(ConfigError, match="no column 'aa'.*Did you mean 'a'"):
        microdata.read(io.from_frame(spark, frame[["a"]]), ["aa"])
    with pytest.raises(ConfigError, match="no rows"):
        microdata.read(io.from_frame(spark, frame[["a"]].iloc[:0]))
