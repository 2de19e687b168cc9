"""Joint risk against a loop over records."""

import numpy as np
import pytest

from rapid_spark import joint
from rapid_spark.risk import Combination


def combination(index, attribute, attacker, replicate, measure="normalized_gain"):
    return Combination(index, "all", ("x",), attribute, "s0", "categorical", replicate, attacker, measure, 0.3, "", "class")


SUITE = [
    combination(i, attribute, attacker, replicate)
    for i, (attribute, attacker, replicate) in enumerate(
        (a, b, c) for a in ("ill", "pay") for b in ("rf", "gbm") for c in (1, 2, 0)
    )
]


def test_groups_hold_two_of_three_fixed():
    found = [(key["across"], key["sensitive_attribute"], key["attacker"], key["replicate"], len(m)) for key, m in joint.groups(SUITE)]
    assert found.count(("everything", None, None, None, 8)) == 1
    assert ("replicates", "ill", "rf", None, 2) in found
    assert ("attributes", None, "gbm", 0, 2) in found and ("attackers", "pay", None, 1, 2) in found
    assert len(found) == 6 + 6 + 4 + 1


def test_one_combination_or_a_second_measure_makes_no_group():
    assert list(joint.groups(SUITE[:1])) == []
    assert list(joint.groups([SUITE[0], combination(9, "ill", "rf", 1, "nce")])) == []


@pytest.mark.parametrize("seed", range(3))
def test_any_all_and_count_equal_a_loop(seed):
    rng = np.random.default_rng(seed)
    flags = rng.choice([0.0, 1.0, np.nan], (200, 3), p=[0.4, 0.4, 0.2])
    found = joint.joint(flags == 1, np.isfinite(flags), np.ones(200, dtype=np.int64))
    records = [row[np.isfinite(row)] for row in flags if np.isfinite(row).any()]
    assert found["n"] == len(records)
    assert found["n_any"] == sum(row.any() for row in records) and found["n_all"] == sum(row.all() for row in records)
    assert found["mean_count"] == pytest.approx(np.mean([row.sum() for row in records]))
    assert found["counts"] == [sum(row.sum() == k for row in records) for k in range(4)]


def test_rows_from_spark(spark, monkeypatch):
    from pyspark.sql import functions as F

    rows = [("1-0", 4), ("111", 2), ("---", 1), ("000", 3)]
    frame = spark.createDataFrame([(*t, n) for t, n in rows], "a string, b string, c string, n int")
    flags = {i: F.when(F.col(c) == "-", None).otherwise(F.col(c) == "1") for i, c in enumerate("abc")}
    mine = [combination(i, "ill", f"a{i}", 1) for i in range(3)]
    found, warnings = joint.find(frame, mine, flags, {"run_id": "r", "scored_on": "original"})
    row = found.iloc[0]
    assert (row["across"], row["attacker"], row["replicate"], row["n"]) == ("attackers", None, 1, 9)
    assert (row["n_any"], row["n_all"], row["counts"]) == (6, 2, [3, 4, 0, 2]) and not warnings
    monkeypatch.setattr(joint, "MAX_VECTORS", 2)
    found, warnings = joint.find(frame, mine, flags, {})
    assert not len(found) and "not reported" in warnings[0]


def test_releases_that_stand_as_copies_are_never_taken_together():
    found = list(joint.groups(SUITE, apart=True))
    assert "replicates" not in {key["across"] for key, _ in found}
    for release in (0, 1, 2):
        alone = joint.groups([c for c in SUITE if c.replicate == release])
        assert [(k, m) for k, m in found if k["replicate"] == release] == [({**k, "replicate": release}, m) for k, m in alone]
