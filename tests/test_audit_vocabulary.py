"""Own names and codes in common ones: what is renamed, what stays, and what is refused."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from rapid_spark import io
from rapid_spark.audit.settings import Vocabulary
from rapid_spark.audit.strata import quartiles
from rapid_spark.audit.vocabulary import harmonised
from rapid_spark.config import ConfigError

FRAME = pd.DataFrame({"a": [1.0, 2.0, float("nan"), 3.5], "b": ["f", " m ", None, "x"], "c": [10, 20, 30, 40]})


def words(columns: dict[str, str] | None = None, **levels: dict[Any, str]) -> Vocabulary:
    return Vocabulary.model_validate({"columns": columns or {}, "levels": levels})


def test_names_and_codes_become_common_ones_and_others_stay(spark: Any) -> None:
    source = io.from_frame(spark, FRAME)
    vocabulary = words({"a": "c", "c": "a", "b": "sex"}, c={1: "one", 2: "two"}, sex={"f": "female", "m": "male"})
    found = harmonised(source, vocabulary)
    assert found.columns == ("c", "sex", "a") and found.row_number == source.row_number
    rows = found.frame.select("c", "sex", "a").toPandas().astype(object)
    assert list(rows["c"]) == ["one", "two", None, "3.5"]
    assert list(rows["sex"]) == ["female", "male", None, "x"]
    assert list(rows["a"]) == [10, 20, 30, 40]


def test_nothing_to_change_is_the_same_table(spark: Any) -> None:
    source = io.from_frame(spark, FRAME)
    assert harmonised(source, words()) is source


def test_a_release_may_lack_columns_and_an_original_may_not(spark: Any) -> None:
    source = io.from_frame(spark, FRAME)
    vocabulary = words({"key": "record_id", "b": "sex"}, sex={"f": "female"}, ill={1: "yes"})
    assert harmonised(source, vocabulary, partial=True).columns == ("a", "sex", "c")
    with pytest.raises(ConfigError, match="(?s)no column 'key'.*no column 'ill'"):
        harmonised(source, vocabulary)


def test_a_name_that_is_taken_is_refused(spark: Any) -> None:
    with pytest.raises(ConfigError, match="'a' cannot become 'b'"):
        harmonised(io.from_frame(spark, FRAME), words({"a": "b"}))


def test_quartiles_are_of_columns_that_hold_numbers(spark: Any) -> None:
    frame = pd.DataFrame({"age": [str(v) for v in range(1, 101)], "code": ["x", "1"] * 50})
    assert quartiles(io.from_frame(spark, frame), ["age", "code"]) == {"age": (25.0, 50.0, 75.0)}
