"""Synthesizers other than CART: copies, swaps, commands, and how they are named."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rapid_spark.simulate import national_registries
from rapid_spark.synthesizers import (
    CartSynthesizer,
    CommandSynthesizer,
    RowSynthesizer,
    SwappedSynthesizer,
    Synthesizer,
    make_synthesizer,
    planned_release,
)


def test_row_synthesizer_gives_whole_records_each_before_any_twice() -> None:
    original = pd.DataFrame({"number": np.arange(50) / 8, "huge": 2**60 + np.arange(50)})
    release = RowSynthesizer().fit(original).sample(70, seed=1)
    assert set(release["number"].value_counts()) == {1, 2} and release["number"].nunique() == 50
    merged = release[["number", "huge"]].merge(original[["number", "huge"]])
    assert len(merged) == 70


def test_swapping_keeps_columns_and_exchanges_the_share() -> None:
    original = pd.DataFrame({"x": range(1000), "y": range(1000)})
    swapped = SwappedSynthesizer(RowSynthesizer(), 0.3).fit(original).sample(1000, seed=1)
    assert sorted(swapped["x"]) == sorted(swapped["y"]) == list(range(1000))
    # a pair stays where neither value moved, 0.7 * 0.7, and now and then where one came back
    assert (swapped["x"] == swapped["y"]).mean() == pytest.approx(0.49, abs=0.05)


@pytest.mark.parametrize(("share", "kept"), [(0.0, 1.0), (1.0, 0.0)])
def test_swapping_at_its_ends(share: float, kept: float) -> None:
    original = pd.DataFrame({"x": range(1000), "y": range(1000)})
    release = SwappedSynthesizer(RowSynthesizer(), share).fit(original).sample(1000, seed=1)
    assert (release["x"] == release["y"]).mean() == pytest.approx(kept, abs=0.01)


def test_synthesizers_are_made_by_name_and_fit_the_protocol() -> None:
    plain = make_synthesizer("cart", min_leaf=7)
    assert isinstance(plain, CartSynthesizer) and plain.min_leaf == 7
    swapped = make_synthesizer("rows", swapped=0.1)
    assert isinstance(swapped, SwappedSynthesizer) and isinstance(swapped.inner, RowSynthesizer)
    for synthesizer in (plain, swapped, CommandSynthesizer("x {original} {release}")):
        assert isinstance(synthesizer, Synthesizer)


@pytest.mark.parametrize(
    ("kind", "options", "named"),
    [
        ("tree", {}, "'tree'; there are cart, command, rows, sdv"),
        ("cart", {"minleaf": 3}, "no option minleaf"),
        ("rows", {"swapped": 2.0}, "share is 2.0"),
    ],
)
def test_unknown_names_and_options_are_refused(kind: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make_synthesizer(kind, **options)


def test_planned_releases_speak_the_common_vocabulary_and_only_the_planted_one_copies() -> None:
    for one in national_registries(seed=1):
        original = one.harmonised(one.original)
        for plan in one.releases:
            release = one.harmonised(planned_release(one, plan, seed=1))
            assert list(release) == [name for name in original if name != "record_id"]
            assert set(release["disease_status"]) <= set(original["disease_status"])
            same = release.merge(original.drop_duplicates(list(release)), on=list(release))
            assert (len(same) / len(release) > 0.8) == plan.too_revealing


_COPY = "import sys, shutil; shutil.copy(sys.argv[1], sys.argv[2])"


def _command(code: str, **options: Any) -> CommandSynthesizer:
    return CommandSynthesizer(
        [sys.executable, "-c", code, "{original}", "{release}", "{n}", "{seed}"], **options
    )


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_command_that_copies_gives_the_original_back(file_format: str) -> None:
    gone = np.arange(30) % 4 == 0
    original = pd.DataFrame(
        {
            "code": np.array(["01", "1", "NA"] * 10, dtype=object),
            "number": np.arange(30) / 7,
            "holes": pd.Series(np.arange(30) / 7).mask(gone),
            "nullable": pd.Series(range(30), dtype="Int64").mask(gone),
            "huge": 2**60 + np.arange(30),
            "truth": gone,
            "maybe": pd.Series(np.arange(30) % 3 == 0, dtype="boolean").mask(gone),
            "text": pd.Series(["x", "y"] * 15, dtype="string").mask(gone),
            "level": pd.Categorical(["p", "q"] * 15, categories=["p", "q", "never"]),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(30), unit="D"),
        }
    )
    release = _command(_COPY, file_format=file_format).fit(original).sample(30, seed=1)
    pd.testing.assert_frame_equal(release, original)


def test_a_command_is_told_the_number_of_records_and_a_seed() -> None:
    code = "import sys; open(sys.argv[2], 'w').write('seed\\n' + (sys.argv[4] + '\\n') * int(sys.argv[3]))"
    synthesizer = _command(code).fit(pd.DataFrame({"seed": [1]}))
    first, again, other = (synthesizer.sample(3, seed=s)["seed"].tolist() for s in (1, 1, [1, 2]))
    assert first == again and len(set(first)) == 1 and first != other
    assert 0 <= first[0] < 2**31


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("import sys; sys.exit('secret')", "ended with code 1"),
        ("pass", "wrote no release"),
        ("import time; time.sleep(60)", "stopped after 0.5 seconds"),
        ("import sys; open(sys.argv[2], 'w').write('y\\n1\\n')", "lacks x and has y on top"),
        ("import sys; open(sys.argv[2], 'w').write('x\\n1\\n2\\n')", "released 2 records, 1 were asked for"),
        ("import sys; open(sys.argv[2], 'w').write('x\\nsecret\\n')", "column 'x' of the release"),
        ("import sys; open(sys.argv[2], 'w').write('')", "no readable csv file"),
    ],
)
def test_a_command_that_fails_is_a_message_without_values(code: str, named: str) -> None:
    synthesizer = _command(code, timeout=0.5 if "sleep" in code else 60).fit(pd.DataFrame({"x": [1]}))
    with pytest.raises(ValueError, match=named) as fault:
        synthesizer.sample(1, seed=1)
    assert "secret" not in str(fault.value)


def test_a_command_that_is_not_there_is_named() -> None:
    synthesizer = CommandSynthesizer("no-such-program {original} {release}").fit(pd.DataFrame({"x": [1]}))
    with pytest.raises(ValueError, match="'no-such-program' cannot be started"):
        synthesizer.sample(1, seed=1)


@pytest.mark.parametrize(
    ("command", "options", "named"),
    [
        ("make {release}", {}, "no place for {original}"),
        ("make {original} {release}", {"file_format": "xlsx"}, "csv, parquet"),
        ("make {original} {release}", {"timeout": 0}, "timeout is 0"),
    ],
)
def test_commands_without_places_are_refused(command: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        CommandSynthesizer(command, **options)


def test_levels_outside_a_category_are_refused() -> None:
    original = pd.DataFrame({"x": pd.Categorical(["a"])})
    code = "import sys; open(sys.argv[2], 'w').write('x\\nb\\n')"
    with pytest.raises(ValueError, match="column 'x' of the release"):
        _command(code).fit(original).sample(1, seed=1)
