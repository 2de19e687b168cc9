"""Decisions: what they need, when they clear a release, and whether a file is the one that was decided on."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.errors import PySparkException

from rapid_spark import io
from rapid_spark.cli import entry
from rapid_spark.config import Table
from rapid_spark.decisions.rules import Case, Decision, faults, standing
from rapid_spark.schema import content_digest
from rapid_spark.store import Store
from rapid_spark.tables import tables

TODAY = date(2026, 6, 1)


def verdict(value: str, rule: str = "rapid_max", valid_until: date | None = None, audience: str = "public") -> dict[str, Any]:
    return {"rule": rule, "verdict": value, "valid_until": valid_until, "sensitive_attribute": "ill", "audience": audience}


def case(*verdicts: dict[str, Any], decisions: Any = (), approvals: int = 1) -> Case:
    return Case("run", "reg", "rel", {1: "d"}, verdicts, tuple(decisions), approvals, "public")


def row(outcome: str, by: str = "A", valid_until: date | None = None, audience: str = "public", reason: str = "why") -> dict:
    return {"outcome": outcome, "decided_by": by, "valid_until": valid_until, "audience": audience, "reason": reason}


PASS, FAIL, UNKNOWN = verdict("pass"), verdict("fail"), verdict("not_evaluated", "holdout_difference")
ENDED = verdict("pass", valid_until=date(2026, 5, 31))
# decision, verdicts of the policy, words of the refusal (None: it may be recorded)
DECISIONS = {
    "approve what passed": (Decision("approve", "A"), [PASS], None),
    "override a fail": (Decision("approve", "A"), [PASS, FAIL], "overrides the policy (fail of rapid_max)"),
    "override a fail with a reason": (Decision("approve", "A", "law asks for it"), [FAIL], None),
    "override a not_evaluated": (Decision("approve", "A", " "), [UNKNOWN], "not_evaluated of holdout_difference"),
    "nobody judged": (Decision("approve", "A"), [], "no policy has judged it"),
    "an old verdict": (Decision("approve", "A"), [ENDED], "the verdict held until 2026-05-31"),
    "a review": (Decision("approve", "A"), [verdict("review")], None),
    "reject without reason": (Decision("reject", "A"), [FAIL], "a rejection needs a reason"),
    "conditions unsaid": (Decision("approve_with_conditions", "A"), [PASS], "state the conditions"),
    "nobody": (Decision("approve", " "), [PASS], "name the person"),
    "over already": (Decision("approve", "A", "x", date(2026, 5, 1)), [PASS], "that day is over"),
    "reject with an end": (Decision("reject", "A", "x", date(2027, 5, 1)), [PASS], "a rejection has no end"),
    "another audience": (Decision("approve", "A", "x", audience="partners"), [PASS], "judged the release for 'public'"),
    "no such outcome": (Decision("maybe", "A", "x"), [PASS], "one of approve, approve_with_conditions, reject"),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_what_a_decision_needs(name: str) -> None:
    decision, verdicts, refusal = DECISIONS[name]
    found = "; ".join(faults(case(*verdicts), decision, TODAY))
    assert found == "" if refusal is None else refusal in found


YES, NO = row("approve"), row("reject", by="C")
# decisions in their order, people needed, whether they clear, words of the reason
STANDINGS = {
    "none": ([], 1, False, "nobody has decided"),
    "approved": ([YES], 1, True, "approved by A"),
    "with conditions": ([row("approve_with_conditions")], 1, True, "approved by A"),
    "rejected after": ([YES, NO], 1, False, "rejected by C"),
    "approved again after": ([YES, NO, row("approve", "B")], 1, True, "approved by B"),
    "rejection ends both approvals": ([YES, NO, row("approve", "B")], 2, False, "2 different people"),
    "one of two": ([YES], 2, False, "approved by A alone"),
    "the same person twice": ([YES, row("approve", " a ")], 2, False, "2 different people"),
    "two of two": ([YES, row("approve", "B")], 2, True, "approved by A, B"),
    "ends today": ([row("approve", valid_until=TODAY)], 1, True, "until 2026-06-01"),
    "ended": ([row("approve", valid_until=date(2026, 5, 31))], 1, False, "ended on 2026-05-31"),
    "prolonged": ([row("approve", valid_until=date(2026, 5, 31)), YES], 1, True, "approved by A"),
    "one of two ended": ([YES, row("approve", "B", date(2026, 5, 31))], 2, False, "approved by A alone"),
    "another audience": ([row("approve", audience="partners")], 1, False, "approved for partners, not for public"),
}


@pytest.mark.parametrize("name", STANDINGS)
def test_when_decisions_clear_a_release(name: str) -> None:
    decisions, needed, cleared, words = STANDINGS[name]
    found = standing(case(PASS, decisions=decisions, approvals=needed), TODAY)
    assert (found.cleared, words in found.reason) == (cleared, True), found


def test_an_approval_ends_with_the_verdict_it_rests_on() -> None:
    judged = verdict("pass", valid_until=date(2026, 8, 1))
    found = standing(case(judged, decisions=[row("approve", valid_until=date(2027, 1, 1))]), TODAY)
    assert (found.cleared, found.valid_until) == (True, date(2026, 8, 1))
    assert not standing(case(judged, decisions=[YES]), date(2026, 8, 2)).cleared


# --- a store, files, and the commands ------------------------------------------------------------------------------


def released() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame({"group": rng.choice(["a", "b"], 40), "age": rng.integers(20, 90, 40), "pay": rng.random(40).round(3)})


@pytest.fixture(scope="module")
def folder(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A store in which run `judged` judged two releases: `good` (passes) and `bad` (fails); two people must approve."""
    folder = tmp_path_factory.mktemp("decisions")
    released().to_csv(folder / "good.csv", index=False)
    digest = content_digest(io.read(spark, Table(path=str(folder / "good.csv"))))
    store = Store.open(spark, str(folder / "store"))
    config = json.dumps({"policy": {"approvals": 2, "context": {"audience": "public"}}})
    attempt = store.begin("judged", "audit", config, "s", {}, {})
    for release_id, found, value in (("good", digest, "pass"), ("bad", "0" * 64, "fail")):
        keys = {"replicate": 1, "scored_on": "original", "qi_set": "all", "sensitive_attribute": "ill", "attacker": "rf",
                "measure": "normalized_gain", "weighting": "none"}  # fmt: skip
        settled = {c: "x" for c, column in tables()["risk_summary"].columns.items()
                   if not column.nullable and column.type == "string"}  # fmt: skip
        summary = pd.DataFrame([{**settled, **keys, "status": "ok", "release_digest": found}])
        store.write(attempt, "risk_summary", summary, "reg", release_id)
        verdicts = pd.DataFrame([{"rule": "rapid_max", "verdict": value, "audience": "public", "sensitive_attribute": "ill"}])
        store.write(attempt, "audit_verdicts", verdicts, "reg", release_id)
    store.end(attempt, "finished")
    return folder


def command(folder: Any, *words: str) -> tuple[int, dict[str, Any], str]:
    from click.testing import CliRunner

    from rapid_spark.cli.terminal import Terminal

    found = CliRunner().invoke(entry.cli, [*words, "--store", str(folder / "store"), "--format", "json", "--quiet"],
                               obj=Terminal(), standalone_mode=False)  # fmt: skip
    if found.exception is not None:
        return (*entry.fault(found.exception)[:1], {}, entry.fault(found.exception)[1])
    return int(found.return_value or 0), json.loads(found.stdout), found.stderr


@pytest.mark.slow
def test_exactly_the_content_that_two_people_approved_is_cleared(folder: Any) -> None:
    good = str(folder / "good.csv")
    on_good = ("decide", "--run", "judged", "--release-id", "good", "--outcome", "approve", "--by")
    code, found, _ = command(folder, "verify", good)
    assert (code, found["cleared"], found["matches"][0]["verdict"]) == (1, False, "pass")
    assert "nobody has decided" in found["reason"]
    code, first, _ = command(folder, *on_good, "A. Person", "--valid-until", "2099-12-31")
    assert (code, first["cleared"]) == (0, False) and "2 different people" in first["standing"]
    code, second, _ = command(folder, *on_good, "B. Person")
    assert (code, second["cleared"], second["overrides"]) == (0, True, None)
    code, found, _ = command(folder, "verify", good)
    assert (code, found["cleared"], found["matches"][0]["valid_until"]) == (0, True, "2099-12-31")
    assert [d["decided_by"] for d in found["matches"][0]["decisions"]] == ["A. Person", "B. Person"]
    # the same content, otherwise written
    moved = released().sample(frac=1, random_state=1)[["pay", "age", "group"]]
    with gzip.open(folder / "moved.csv.gz", "wt") as file:
        moved.to_csv(file, index=False)
    moved.to_parquet(folder / "moved.parquet", index=False)
    for name in ("moved.csv.gz", "moved.parquet"):
        assert command(folder, "verify", str(folder / name))[0] == 0, name
    # one cell differs; and another audience
    released().assign(pay=lambda f: f["pay"].where(f.index != 7, 0.5)).to_csv(folder / "changed.csv", index=False)
    code, found, _ = command(folder, "verify", str(folder / "changed.csv"))
    assert (code, found["matches"]) == (1, []) and "no finished run of this store judged this content" in found["reason"]
    code, found, _ = command(folder, "verify", good, "--audience", "partners")
    assert code == 1 and "approved for public, not for partners" in found["reason"]
    # a rejection ends it
    assert command(folder, "decide", "--run", "judged", "--release-id", "good", "--outcome", "reject", "--by", "C",
                   "--reason", "found a copy")[0] == 0  # fmt: skip
    assert command(folder, "verify", good)[0] == 1


@pytest.mark.slow
def test_refusals_leave_nothing_and_rows_cannot_be_changed(folder: Any, spark: Any) -> None:
    on_bad = ("decide", "--run", "judged", "--release-id", "bad", "--outcome", "approve", "--by", "A")
    for words, message in (
        (on_bad, "overrides the policy (fail of rapid_max): say why"),
        (("decide", "--run", "judged", "--outcome", "approve", "--by", "A"), "judged several releases; name one"),
        (("decide", "--run", "judgd", "--outcome", "approve", "--by", "A"), "no such run"),
        ((*on_bad, "--reason", "x", "--valid-until", "2020-01-01"), "that day is over"),
        ((*on_bad, "--reason", "x", "--valid-until", "soon"), "expected a date as 2027-06-30"),
        (("verify", str(folder / "none.csv")), "no such file"),
    ):
        code, _, said = command(folder, *words)
        assert code == 2 and message in said, said
    code, found, said = command(folder, *on_bad, "--reason", "the law asks for it")
    assert code == 0 and found["overrides"] == "fail of rapid_max"
    store = Store.open(spark, str(folder / "store"))
    table = store.qualified("release_decisions")
    before = spark.table(table).count()
    for change in (f"DELETE FROM {table}", f"UPDATE {table} SET outcome = 'reject'"):
        with pytest.raises(PySparkException, match="append"):
            spark.sql(change)
    assert spark.table(table).count() == before
    assert spark.table(table).where("decided_at > '" + str(datetime.now(UTC).year) + "'").count() == before


def test_a_coarser_release_has_the_settings_of_the_one_before() -> None:
    from rapid_spark.config import parse
    from rapid_spark.rows import settings_digest

    plain = {"quasi_identifiers": ["age", "zip"], "sensitive_attributes": ["ill"]}
    coarser = parse({**plain, "recode": {"age": {"bands": 10}, "zip": {"drop": True}}})
    assert settings_digest(coarser) == settings_digest(parse(plain))
    assert settings_digest(parse({**plain, "quasi_identifiers": ["age"]})) != settings_digest(parse(plain))
