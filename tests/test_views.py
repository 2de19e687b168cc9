"""The views of the SQL issue, the ten questions and the dashboard's queries, on a store filled row by row."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import bundle
import pytest
from rows import KEYS, combination, fill, record, run

from rapid_spark.resources import conf_path
from rapid_spark.store import Store

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
QUESTION = re.compile(r"^-- (\d+)\. (.*?)\n(SELECT.*?);$", re.MULTILINE | re.DOTALL)
TODAY = datetime.now(UTC).date()


def questions():
    return {int(n): (title, sql) for n, title, sql in QUESTION.findall(conf_path("sql/questions.sql").read_text())}


def group(columns, level, n, hits, **more):
    shown = {"n": n, "n_at_risk": hits, "rapid": hits / n, "suppressed": False} if n else {"suppressed": True}
    return {**KEYS, "columns": columns, "level": level, **shown, **more}


def verdict(rule, said, **more):
    return {"rule": rule, "verdict": said, "limit": 0.3, "evaluated_at": datetime(2026, 1, 2, tzinfo=UTC), **more}


class Filled:
    """A store with what audits of three registries leave; that of the third did not finish."""

    def __init__(self, spark, place):
        self.store = Store.open(spark, str(place))
        first, second = of("a1", "at", "v1"), of("a2", "at", "v2")
        german, unfinished = of("d1", "de", "v1"), of("u", "fr", "v1")
        later = {"release_date": date(2026, 1, 1)}
        scores = [-0.5] * 12 + [0.05] * 11 + [0.1] * 10 + [0.35] * 13 + [0.95] * 3
        fill(
            self.store,
            runs=[run("a1", '{"publish": {"rounding": 5}}'), run("a2"), run("d1"), run("u", state="failed")],
            risk_summary=[
                *first(combination(1003, 217), combination(1003, 252, attacker="gbm"),
                       combination(1003, 500, scored_on="holdout"), combination(1003, 900, weighting="survey")),
                *second(combination(1100, 440, **later), combination(1100, 330, attacker="gbm", **later),
                        {**KEYS, "attacker": "lm", "status": "undefined", "reason": "one class", "settings_digest": "s"}),
                *german(combination(2000, 4), combination(2000, 0, attacker="gbm")),
                *unfinished(combination(10, 5)),
            ],
            risk_subgroups=second(
                group(["sex"], ["f"], 500, 100), group(["sex"], ["m"], 600, 340),
                group(["sex"], ["m"], 600, 200, attacker="gbm"), group(["age"], ["[80, 90]"], None, None),
                group(["age", "sex"], ["[18, 40)", "m"], 100, 90),
            ),
            risk_classes=second(*(
                {**KEYS, "class_label": label, "n": n, "n_at_risk": hits, "rapid": hits / n, "prevalence": n / 1100}
                for label, n, hits in (("yes", 300, 90), ("no", 800, 350))
            )),
            risk_records=second(*(record(str(i), score, score > 0.3) for i, score in enumerate(scores))),
            audit_verdicts=[
                *second(verdict("max_rapid", "fail", figure=0.4, sensitive_attribute="ill"), verdict("min_n", "pass"),
                        verdict("overall", "fail")),
                *german(verdict("max_rapid", "pass", figure=0.0, sensitive_attribute="ill"),
                        verdict("overall", "pass", valid_until=TODAY + timedelta(10))),
                *unfinished(verdict("overall", "fail")),
            ],
        )  # fmt: skip
        self.decide("a1", "at", "v1", "approve", valid_until=TODAY - timedelta(3))

    def decide(self, run_id, registry, release_id, outcome, **more):
        row = {"run_id": run_id, "registry": registry, "release_id": release_id, "outcome": outcome, "decided_by": "board",
               "decided_at": datetime.now(UTC), **more}  # fmt: skip
        fill(self.store, release_decisions=[row])

    def rows(self, sql):
        return [tuple(row) for row in self.store.query(sql).collect()]


def of(run_id, registry, release_id):
    """Give rows their run, registry and release."""
    ids = {"run_id": run_id, "registry": registry, "release_id": release_id}
    return lambda *rows: [{**ids, **row} for row in rows]


@pytest.fixture(scope="module")
def filled(spark, tmp_path_factory):
    return Filled(spark, tmp_path_factory.mktemp("views") / "store")


def test_registries_side_by_side(filled):
    """The last release of each, original records, unweighted; the larger of the attackers decides."""
    sql = "SELECT registry, release_id, place, n, rapid_decisive, round(upper_end, 3), worst_attacker FROM registry_comparison"
    assert filled.rows(f"{sql} ORDER BY place") == [
        ("at", "v2", 1, 1100, 0.4, 0.42, "rf"), ("de", "v1", 2, 2000, 0.002, 0.022, "rf"),
    ]  # fmt: skip


def test_a_release_over_time(filled):
    sql = "SELECT release_id, previous_release, rapid_decisive, change FROM release_history WHERE registry = 'at'"
    first, second = filled.rows(f"{sql} ORDER BY release_date")
    assert first == ("v1", None, 252 / 1003, None)
    assert second[:2] == ("v2", "v1") and second[3] == pytest.approx(0.4 - 252 / 1003)


def test_worst_subgroups(filled):
    """Each group once, under the attacker that is worst for it; suppressed cells are not there."""
    assert filled.rows("SELECT place, people, n, n_at_risk, attacker, rapid_of_all FROM worst_subgroups ORDER BY place") == [
        (1, "age = [18, 40), sex = m", 100, 90, "rf", 0.4), (2, "sex = m", 600, 340, "rf", 0.4),
        (3, "sex = f", 500, 100, "rf", 0.4),
    ]  # fmt: skip


def test_records_by_band(filled):
    """3 records above 0.9 are too few, and the next smallest band goes with them, lest the total tells."""
    assert filled.rows("SELECT band, band_end, n, n_at_risk, withheld FROM records_by_band ORDER BY band NULLS FIRST") == [
        (None, 0.0, None, None, True), (0.0, 0.1, 21, 0, False), (0.3, 0.4, 13, 13, False), (0.9, 1.0, None, None, True),
    ]  # fmt: skip


def test_published_figures(filled):
    """Rounded as the run says, rates of rounded counts; few at risk are withheld, nobody at risk is told."""
    found = filled.rows("SELECT registry, release_id, attacker, n, n_at_risk, rapid, withheld FROM published_risk ORDER BY 1, 2, 3")
    assert found == [
        ("at", "v1", "gbm", 1005, 250, 250 / 1005, False), ("at", "v1", "rf", 1005, 215, 215 / 1005, False),
        ("at", "v2", "gbm", 1100, 330, 0.3, False), ("at", "v2", "rf", 1100, 440, 0.4, False),
        ("de", "v1", "gbm", 2000, 0, 0.0, False), ("de", "v1", "rf", 2000, None, None, True),
    ]  # fmt: skip
    assert filled.rows("SELECT registry, release_id, rapid, withheld, is_latest FROM published_releases ORDER BY 1, 2") == [
        ("at", "v1", 250 / 1005, False, False), ("at", "v2", 0.4, False, True), ("de", "v1", None, True, True),
    ]  # fmt: skip


def test_verdicts_and_what_is_due(filled):
    assert filled.rows("SELECT registry, release_id, verdict, rules, passed, not_passed FROM release_verdicts ORDER BY 1") == [
        ("at", "v2", "fail", 2, 1, "max_rapid"), ("de", "v1", "pass", 1, 1, ""),
    ]  # fmt: skip
    due = "SELECT registry, release_id, why, due_on FROM reviews_due ORDER BY registry, release_id"
    waiting = ("at", "v2", "no decision on verdict fail: max_rapid", date(2026, 1, 2))
    others = [("at", "v1", "approval has ended", TODAY - timedelta(3)), ("de", "v1", "verdict ends soon", TODAY + timedelta(10))]
    assert filled.rows(due) == [others[0], waiting, others[1]]
    filled.decide("a2", "at", "v2", "reject")
    assert filled.rows(due) == others


def test_ten_questions_are_answered(filled):
    asked = questions()
    assert list(asked) == list(range(1, 11)) and all("?" in title for title, _ in asked.values())
    answers = {n: filled.rows(sql) for n, (_, sql) in asked.items()}
    assert answers[1][0] == ("at", "v2", "fail", 2, 1, "max_rapid")
    assert answers[2] == [("at", "v2", "ill", "max_rapid", "fail", 0.4, 0.3)]
    assert [row[:4] for row in answers[3]] == [("ill", 1, "at", "v2"), ("ill", 2, "de", "v1")]
    assert answers[4] == [("at", "ill", "v1", "v2", 0.4, 0.149)]
    assert answers[5] == [("at", "v2", "ill", "age = [18, 40), sex = m", 100, 0.9, 0.4)]
    assert answers[6] == [("at", "v2", 49, 16, None)]  # not every record is in the store: no share
    assert [row[5] for row in answers[7]] == [None, 21, 13, None]
    assert answers[8][0][:4] == ("at", "v2", "ill", "no")
    assert answers[9] == [("undefined", 1, 1, "one class"), ("ok", 8, 3, None)]
    assert all(row[0] in ("at", "de") for row in answers[10])


def test_the_readme_asks_the_same_questions():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for title, sql in questions().values():
        assert title in text and sql in text, title


def test_every_query_of_the_dashboard_runs_and_has_what_its_widgets_show(filled):
    place = ROOT / "conf" / "databricks" / "risk.lvdash.json"
    wanted = bundle.fields(place)
    for name, sql in bundle.queries(place).items():
        frame = filled.store.query(sql)
        assert wanted.get(name, set()) <= set(frame.columns), name
        assert frame.collect(), name


def test_a_view_of_tables_that_are_not_there_yet_answers_nothing(spark, tmp_path):
    store = Store.open(spark, str(tmp_path / "new"))
    store.need("release_decisions")
    assert "latest_runs" in store.names() and "reviews_due" not in store.names()
    assert store.query("SELECT * FROM reviews_due").collect() == []
