"""Records from noisy tables, and bins of values: against the tables they come from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rapid_spark.reaedp import binning, model, sampling
from rapid_spark.reaedp.domain import Categories, Edges, Table

A, B, C = Categories("a", ("x", "y"), missing=True), Categories("b", (1, 2)), Edges("c", (0, 10, 20, 30), integer=True)


def test_records_of_one_table_follow_its_cells():
    table, weights = Table((A, B)), np.array([10.0, 0, 30, 20, 0, 40])
    frame = sampling.records([table], [weights], 20_000)
    assert binning.count(frame, table) / 20_000 == pytest.approx(weights / 100, abs=0.02)


def test_records_of_a_chain_of_tables_keep_each_of_them():
    """a - b - c: both 2-way tables come out, and a and c are independent given b."""
    ab, bc = Table((A, B)), Table((B, C))
    first, second = np.array([40.0, 10, 5, 35, 5, 5]), np.array([40.0, 5, 5, 0, 10, 40])
    frame = sampling.records([bc, ab], [second, first], 30_000)
    assert list(frame.columns) == ["b", "c", "a"]
    for table, weights in ((ab, first), (bc, second)):
        assert binning.count(frame, table) / 30_000 == pytest.approx(weights / 100, abs=0.02)
    joint = (first.reshape(3, 2)[:, :, None] * second.reshape(2, 3)[None] / 50).ravel() / 100
    assert binning.count(frame, Table((A, B, C))) / 30_000 == pytest.approx(joint, abs=0.02)
    assert set(frame["c"]) <= set(range(31)) and frame["a"].isna().any()


def test_the_table_that_explains_a_column_best_is_taken():
    d = Categories("d", ("u", "v"))
    weak, strong = np.full(4, 25.0), np.array([50.0, 0, 0, 50])
    frame = sampling.records([Table((B, C)), Table((Edges("c", (0, 15, 30)), d)), Table((B, d))], [
        np.full(6, 10.0), weak, strong], 500)  # fmt: skip
    assert ((frame["b"] == 1) == (frame["d"] == "u")).all()


def test_cells_without_weight_fall_back_to_the_column_and_nothing_to_even_ones():
    frame = sampling.records([Table((B,)), Table((B, A))], [np.array([1.0, 0]), np.array([0.0, 0, 0, 0, 5, 0])], 50)
    assert (frame["a"] == "y").all()
    empty = sampling.records([Table((B,))], [np.zeros(2)], 500)["b"]
    assert 0.3 < (empty == 1).mean() < 0.7


def test_mutual_information_is_that_of_the_law():
    joint = np.array([[0.3, 0.1], [0.2, 0.4]])
    expected = sum(
        joint[i, j] * np.log2(joint[i, j] / joint[i].sum() / joint[:, j].sum()) for i in range(2) for j in range(2)
    )
    assert sampling.mutual_information(joint * 1000) == pytest.approx(expected)
    assert sampling.mutual_information(np.zeros((2, 2))) == 0


def test_infinite_edges_cannot_be_drawn_from():
    with pytest.raises(ValueError, match="infinite edge"):
        sampling.records([Table((Edges("c", (0, np.inf)),))], [np.ones(1)], 5)


def test_bins_of_values_undo_decoding_and_know_the_outside():
    domains = (A, B, C, Edges("e", (0, 0.5, 1)))
    rows = np.array([[0, 1, 2, 0], [2, 0, 0, 1], [1, 1, 1, 1]])
    decoded = model.decode(domains, rows)
    for i, domain in enumerate(domains):
        assert binning.bins_of(decoded[domain.column], domain).tolist() == rows[:, i].tolist()
    assert binning.bins_of(pd.Series([0.0, 30, 30.1, -1, None]), C).tolist() == [0, 2, -1, -1, -1]
    assert binning.bins_of(pd.Series(["x", "z", None]), A).tolist() == [0, -1, 2]
