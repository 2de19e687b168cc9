"""The configuration of an audit: what lies over what, releases by pattern, and faults under their paths."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from rapid_spark.audit.releases import listed, matching
from rapid_spark.audit.settings import AuditConfig, Registry, attack_settings, evaluation_settings
from rapid_spark.config import ConfigError, load_as, parse_as
from rapid_spark.resources import conf_path

DEFAULTS: dict[str, Any] = {
    "quasi_identifiers": ["age", "sex"], "sensitive_attributes": ["ill"], "attackers": ["cart"],
    "drivers": {"patterns": 0, "subgroups": False},
}  # fmt: skip
ONE: dict[str, Any] = {"name": "a", "original": "a.csv", "releases": [{"id": "1", "tables": "a1.csv"}]}


def audit(**changes: Any) -> AuditConfig:
    data = {"defaults": DEFAULTS, "registries": [ONE], "policy": {"limits": {"rapid_max": 0.3}}, **changes}
    return parse_as(AuditConfig, data)


def registry(**changes: Any) -> Registry:
    return parse_as(Registry, {**ONE, **changes})


def test_a_registrys_settings_lie_over_the_defaults_section_by_section() -> None:
    own = {"drivers": {"patterns": 5}, "attackers": ["rf"], "columns": {"key": "id"}}
    found = evaluation_settings(audit(registries=[ONE, {**ONE, "name": "b", "settings": own}]))
    assert [a.name for a in found["a"].attackers] == ["cart"] and [x.name for x in found["b"].attackers] == ["rf"]
    assert (found["b"].drivers.patterns, found["b"].drivers.subgroups) == (5, False)
    assert found["a"].drivers.patterns == 0 and found["b"].columns.key == ("id",)
    assert found["b"].registry == "b" and str(found["b"].original.name if found["b"].original else "") == "a.csv"


def test_qi_sets_of_a_registry_take_the_place_of_the_plain_list() -> None:
    found = evaluation_settings(audit(registries=[{**ONE, "settings": {"qi_sets": {"few": ["age"]}}}]))
    assert found["a"].sets == {"few": ("age",)}


def test_only_what_decides_the_attack_has_to_be_alike() -> None:
    changes = [{}, {"columns": {"key": "id"}}, {"drivers": {"patterns": 3}}, {"attackers": ["rf"]}, {"threshold": {"tau": 0.5}}]
    several = [{**ONE, "name": f"r{i}", "settings": s} for i, s in enumerate(changes)]
    texts = [attack_settings(c) for c in evaluation_settings(audit(registries=several)).values()]
    assert texts[0] == texts[1] == texts[2] and len(set(texts)) == 3


def test_the_runnable_configuration_is_one() -> None:
    config = load_as(AuditConfig, conf_path("audit.yml"))
    assert set(evaluation_settings(config)) == {"registry_a", "registry_b", "registry_c", "registry_d"}


def test_codes_are_text_however_yaml_reads_them() -> None:
    found = registry(vocabulary={"levels": {"ill": {3: "yes", 2.0: "no", True: "perhaps", "x": "?"}}}).vocabulary.levels["ill"]
    assert found == {"3": "yes", "2": "no", "true": "perhaps", "x": "?"}


@pytest.mark.parametrize(("changes", "said"), [
    ({"registries": []}, "registries"),
    ({"registries": [ONE, ONE]}, "'a' is listed twice"),
    ({"registries": [{**ONE, "name": "no/id"}]}, "is not an id"),
    ({"registries": [{**ONE, "releases": []}]}, "at least one release"),
    ({"registries": [{**ONE, "releases": "a.csv"}]}, "a pattern needs a \\*"),
    ({"registries": [{**ONE, "releases": ONE["releases"] * 2}]}, "release 1 is listed twice"),
    ({"registries": [{**ONE, "settings": {"attacker": ["rf"]}}]}, "registries.a.settings.attacker.*Did you mean 'attackers'"),
    ({"registries": [{**ONE, "settings": {"store": {}}}]}, "belongs to the registry or the audit"),
    ({"registries": [{**ONE, "vocabulary": {"columns": {"x": "age", "y": "age"}}}]}, "several own columns become 'age'"),
    ({"defaults": {**DEFAULTS, "release": "x.csv"}}, "defaults.release: belongs to registries.releases"),
    ({"compare": {"reference": "b"}}, "no registry 'b'"),
    ({"compare": {"bins": {"age": [50, 40]}}}, "ascending order"),
    ({"policy": {"limits": {}}}, "policy: a policy needs at least one limit"),
])  # fmt: skip
def test_a_fault_is_told_under_its_path(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        audit(**changes)


@pytest.mark.parametrize(("changes", "said"), [
    ({"defaults": {}}, "quasi_identifiers: name what an attacker knows"),
    ({"defaults": {**DEFAULTS, "sensitive_attributes": []}}, "sensitive_attributes: name what"),
    ({"defaults": {**DEFAULTS, "training": {"seed": -1}}}, "training.seed"),
    ({"compare": {"by": ["agee"]}}, "compare: 'agee' is not among the quasi-identifiers. Did you mean 'age'"),
    ({"policy": {"attributes": {"il": {"rapid_max": 0.2}}}}, "'il' is not a sensitive attribute. Did you mean 'ill'"),
])  # fmt: skip
def test_a_fault_between_audit_and_evaluations_names_the_registry(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s)the settings of a.*{said}"):
        evaluation_settings(audit(**changes))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("r_2024.csv", "r_2025-03-01.csv", "r_[x].csv", "y1/copy_1.csv", "y1/copy_2.csv", "y2/copy_1.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n1\n")
    return tmp_path


def test_an_asterisk_stands_for_the_id_and_its_date(folder: Path) -> None:
    found = matching(f"{folder}/r_202*.csv", "a")
    assert [(r.id, r.date) for r in found] == [("4", None), ("5-03-01", None)]
    assert [r.id for r in matching(f"{folder}/r_20{{release}}.csv", "a")] == ["24", "25-03-01"]
    assert [r.id for r in matching(f"{folder}/*_20*.csv", "a")] == ["r-24", "r-25-03-01"]


def test_dates_of_ids_order_the_releases(folder: Path) -> None:
    (folder / "r_[x].csv").unlink()
    found = listed(registry(releases=f"{folder}/r_*.csv"))
    assert [(r.id, r.date) for r in found] == [("2024", dt.date(2024, 1, 1)), ("2025-03-01", dt.date(2025, 3, 1))]


def test_copies_of_a_release_are_its_tables(folder: Path) -> None:
    found = matching(f"{folder}/{{release}}/copy_{{replicate}}.csv", "a")
    expected = [("y1", ["copy_1.csv", "copy_2.csv"]), ("y2", ["copy_1.csv"])]
    assert [(r.id, [Path(t.name).name for t in r.tables]) for r in found] == expected
    assert matching(f"{folder}/*/copy_{{replicate}}.csv", "a") == found


def test_characters_of_a_pattern_are_meant_as_they_are(folder: Path) -> None:
    assert [r.id for r in matching(f"{folder}/{{release}}_[x].csv", "a")] == ["r"]


@pytest.mark.parametrize(("pattern", "said"), [
    ("none_*.csv", "no file matches"), ("r_*.csv", "is not an id"),
])  # fmt: skip
def test_patterns_that_name_no_releases_are_refused(folder: Path, pattern: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        matching(f"{folder}/{pattern}", "a")


def test_releases_that_are_listed_come_by_date_where_all_have_one() -> None:
    given = [{"id": "b", "date": "2025-01-01", "tables": "x.csv"}, {"id": "a", "date": "2024-01-01", "tables": "y.csv"}]
    assert [r.id for r in listed(registry(releases=given))] == ["a", "b"]
    undated = [{**r, "date": None} for r in given]
    assert [r.id for r in listed(registry(releases=undated))] == ["b", "a"]


def test_remote_places_have_to_be_listed() -> None:
    with pytest.raises(ConfigError, match="list others"):
        matching("s3://bucket/*.csv", "a")


@pytest.mark.parametrize(("words", "said"), [
    ([], "--config"),
    (["--config", "none.yml"], "no configuration file none.yml"),
    (["--config", "AUDIT", "--audience", "publik"], "Did you mean 'public'"),
    (["--config", "AUDIT", "--set", "policy.limits.rapid_max=30"], "policy.limits.rapid_max"),
    (["--config", "AUDIT", "--set", "registries.0.name=x"], "registries are a list"),
    (["--config", "AUDIT", "--set", "defaults.attackers=[rff]"], "rff"),
    (["--config", "AUDIT", "--store", "results"], "a directory holds a '/'"),
    (["--config", "AUDIT", "--on-fail", "ignore"], "--on-fail"),
])  # fmt: skip
def test_a_wrong_command_line_is_exit_code_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rapid_spark.cli import entry

    monkeypatch.chdir(tmp_path)
    words = [str(conf_path("audit.yml")) if word == "AUDIT" else word for word in words]
    assert entry.run(["audit", *words]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_demonstration_writes_twelve_releases_and_knows_the_planted_one(tmp_path: Path) -> None:
    from rapid_spark.cli.demo_audit import prepare

    file, planted = prepare(tmp_path / "store" / "demo", seed=1)
    config = load_as(AuditConfig, file)
    releases = {r.name: listed(r) for r in config.registries}
    assert planted == "registry_c 2026" and len(releases) == 4
    assert all([r.id for r in found] == ["2024", "2025", "2026"] for found in releases.values())
    assert all(r.date == dt.date(int(r.id), 1, 1) for found in releases.values() for r in found)
    settings = evaluation_settings(config)
    assert {c.training.seed for c in settings.values()} == {1}
    assert config.store.location == str(tmp_path / "store")
