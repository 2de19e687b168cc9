"""Any configuration: defaults pass their own rules and come back from their document; wrong values are told by their path."""

from __future__ import annotations

import json
import re
from typing import Any, get_args, get_origin

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from rapid_spark.config import Config, ConfigError, load, parse, settings_json

BASE = {
    "original": "a.csv", "release": ["b.csv"], "quasi_identifiers": ["age", "sex"], "sensitive_attributes": ["income"],
}  # fmt: skip


def leaves(model: type[BaseModel], path: tuple[str, ...] = ()):
    """Every setting with a plain annotation, by its path, sections within sections included."""
    for name, field in model.model_fields.items():
        annotation = field.annotation
        inner = [a for a in (annotation, *get_args(annotation)) if isinstance(a, type) and issubclass(a, BaseModel)]
        if get_origin(annotation) in (tuple, dict):
            yield (*path, name), annotation
        elif inner:
            yield from leaves(inner[0], (*path, name))
        else:
            yield (*path, name), annotation


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    return value


SETTINGS = [(p, a) for p, a in leaves(Config) if p[0] not in ("policy", "original", "holdout", "search", "recode")]
SECTIONS = sorted({p[0] for p, _ in SETTINGS if len(p) > 1})


def kinds(annotation: Any) -> set[Any]:
    """The plain types an annotation allows, as deep as its options go."""
    found = {annotation} if isinstance(annotation, type) else set()
    return found.union(*(kinds(a) for a in get_args(annotation)))


NUMBERS = [(p, a) for p, a in SETTINGS if kinds(a) & {int, float} and get_origin(a) not in (tuple, dict)]
FLAGS = [(p, a) for p, a in SETTINGS if a is bool]


def test_the_settings_are_all_there():
    paths = {".".join(p) for p, _ in SETTINGS}
    assert {"training.seed", "columns.key", "columns.key_hmac", "intervals.confidence", "drivers.pairs"} <= paths
    assert len(NUMBERS) > 10 and len(FLAGS) > 8 and len(SECTIONS) > 8


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from([p for p, _ in SETTINGS])), st.sets(st.sampled_from(SECTIONS)))
def test_every_default_passes_its_own_validation(paths, empty):
    whole = json.loads(settings_json(parse(BASE)))
    data: dict[str, Any] = dict(BASE)
    for path in paths:
        inner, given_ = whole, data
        for key in path[:-1]:
            inner, given_ = inner[key], given_.setdefault(key, {})
        if path[0] not in BASE and path[-1] not in ("qi_sets",):
            given_[path[-1]] = inner[path[-1]]
    for section in empty:
        data.setdefault(section, None)  # a section whose keys are all commented out
    assert parse(data) == parse(BASE)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(NUMBERS), st.sampled_from(["many", [1], {"a": 1}, float("nan"), float("inf"), -1e300]))
def test_what_is_no_number_in_range_is_refused_with_its_path(setting, value):
    path = setting[0]
    with pytest.raises(ConfigError) as raised:
        parse(BASE | nested(path, value))
    assert ".".join(path) in str(raised.value)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FLAGS), st.sampled_from(["maybe", 2, [True], {"a": True}, None]))
def test_what_is_no_flag_is_refused_with_its_path(setting, value):
    path = setting[0]
    with pytest.raises(ConfigError) as raised:
        parse(BASE | nested(path, value))
    assert ".".join(path) in str(raised.value)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([p for p, _ in SETTINGS]), st.integers(0, 30), st.characters(categories=["Ll"]))
def test_a_misspelt_setting_is_refused_with_its_path(path, place, letter):
    name = path[-1]
    wrong = name[: place % (len(name) + 1)] + letter + name[place % (len(name) + 1) :]
    if any((*path[:-1], wrong) == p for p, _ in SETTINGS):
        return
    with pytest.raises(ConfigError) as raised:
        parse(BASE | nested((*path[:-1], wrong), 1))
    assert ".".join((*path[:-1], wrong)) in str(raised.value)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(NUMBERS), min_size=2, max_size=4, unique_by=lambda s: s[0]))
def test_all_faults_are_told_at_once(chosen):
    data: dict[str, Any] = dict(BASE)
    for path, _ in chosen:
        inner = data
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = "many"
    with pytest.raises(ConfigError) as raised:
        parse(data)
    assert all(".".join(path) in str(raised.value) for path, _ in chosen)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=12), min_size=3, max_size=6, unique=True))
def test_any_name_of_a_column_is_taken_to_the_letter(names):
    config = parse(BASE | {"quasi_identifiers": names[:-1], "sensitive_attributes": [{"name": names[-1]}]})
    assert config.quasi_identifiers == tuple(names[:-1]) and config.sensitive_attributes[0].name == names[-1]


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system ['true']", "!!python/name:os.system", "!x 1"])
def test_yaml_runs_no_code(tmp_path, tag):
    path = tmp_path / "c.yml"
    path.write_text(f"registry: {tag}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"c\.yml"):
        load(path)


def test_a_written_document_means_the_same(tmp_path):
    path = tmp_path / "c.yml"
    path.write_text(yaml.safe_dump(json.loads(settings_json(parse(BASE)))), encoding="utf-8")
    assert load(path) == parse(BASE)
    assert not re.search(r"NaN|Infinity", settings_json(parse(BASE)))
