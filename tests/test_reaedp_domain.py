"""Declared domains and tables."""

from __future__ import annotations

import math

import pytest

from rapid_spark.reaedp.domain import Categories, Edges, Table, tables_over

SEX, AGE = Categories("sex", ("f", "m"), missing=True), Edges("age", (0, 10, 20.5))


def test_labels_name_every_bin():
    assert SEX.labels == ("f", "m", "missing")
    assert AGE.labels == ("[0, 10)", "[10, 20.5]")
    assert Categories("x", (True, 2.0, 2.5, 3)).labels == ("true", "2", "2.5", "3")
    assert Edges("x", (-math.inf, 0, math.inf), missing=True).labels == ("[-inf, 0)", "[0, inf]", "missing")


def test_cells_are_in_row_major_order():
    table = Table((SEX, AGE))
    assert (table.name, table.shape, table.cells) == ("sex*age", (3, 2), 6)
    assert [tuple(cell) for cell in zip(*table.labels(), strict=True)][:3] == [
        ("f", "[0, 10)"),
        ("f", "[10, 20.5]"),
        ("m", "[0, 10)"),
    ]


@pytest.mark.parametrize(
    "edges, step", [((0, 5, 10), 5), ((0, 5, 11), None), ((0.5, 1.5), None), ((0, 0.5, 1), None), ((0, 1, math.inf), None)]
)
def test_even_whole_steps_are_seen(edges, step):
    assert Edges("x", edges).step == step


@pytest.mark.parametrize(
    "make, word",
    [
        (lambda: Categories("x", ()), "no level"),
        (lambda: Categories("x", ("1", 1)), "two levels of one name: 1"),
        (lambda: Categories("x", ("missing",), missing=True), "missing"),
        (lambda: Categories("x", (math.nan,)), "finite"),
        (lambda: Categories("", ("a",)), "no column name"),
        (lambda: Edges("x", (1,)), "at least two"),
        (lambda: Edges("x", (1, 1)), "do not increase"),
        (lambda: Edges("x", (1, math.nan)), "do not increase"),
        (lambda: Table(()), "no column"),
        (lambda: Table((SEX, SEX)), "twice: sex"),
        (lambda: Table((Edges("x", range(3000)), Edges("y", range(3000)))), "5,000,000"),
        (lambda: tables_over([SEX], [["age"]]), "age has no declared domain"),
        (lambda: tables_over([Categories("gender", ("a",))], [["gendr"]]), "Did you mean 'gender'"),
        (lambda: tables_over([SEX, AGE], [["sex", "age"], ["age", "sex"]]), "named twice"),
        (lambda: tables_over([SEX, SEX], [["sex"]]), "two domains"),
        (lambda: tables_over([SEX], []), "no table"),
    ],
)
def test_wrong_domains_are_refused(make, word):
    with pytest.raises(ValueError, match=word):
        make()
