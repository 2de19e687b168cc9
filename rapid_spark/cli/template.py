"""A configuration to start from, written from the models themselves, so that it cannot lag behind them."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rapid_spark.config import Attacker, Config, SensitiveAttribute, Table

EXAMPLE: dict[str, Any] = {
    "registry": "registry",
    "release_id": "release-1",
    "original": "data/original.csv",
    "release": ["data/release.csv"],
    "quasi_identifiers": ["age", "gender", "education"],
    "sensitive_attributes": ["diagnosis:categorical", "income:continuous"],
    "attackers": ["rf", "gbm", "cart", "logit", "lm"],
}
SAID = {
    "registry": "name of the registry: letters, digits, '.', '_', '-'",
    "release_id": "name of the release",
    "release_date": "day of publication, for views over time",
    "original": "real people: CSV (gzip too), Parquet, a Delta path, or {table: [catalog.]schema.table}",
    "release": "what is published; several files are replicates of one release",
    "holdout": "real people who were not used to make the release",
    "quasi_identifiers": "what an attacker knows about a person",
    "qi_sets": "in place of quasi_identifiers, several named sets, e.g. {neighbour: [age, gender]}",
    "sensitive_attributes": "what they would like to know: NAME, NAME:categorical, NAME:continuous",
    "attackers": "rf, gbm, cart, logit, lm, or a scikit-learn estimator's import path (with allow_code)",
    "allow_code": "run estimators named by import path",
    "measures": "of categorical attributes",
}
PARTS: dict[str, type[BaseModel]] = {
    "original": Table,
    "sensitive_attributes": SensitiveAttribute,
    "attackers": Attacker,
}
HEADER = """\
# rapid-spark: one evaluation. Paths are relative to where the command runs.
# Every setting is shown with its default; what is commented out has none. Flags and --set PATH=VALUE override it.
"""


def template() -> str:
    """The commented file, as YAML."""
    return HEADER + "\n".join(_lines(Config, Config(), EXAMPLE, "")) + "\n"


def _lines(model: type[BaseModel], defaults: BaseModel, example: dict[str, Any], indent: str) -> Iterator[str]:
    after_section = False
    for name, field in model.model_fields.items():
        value = getattr(defaults, name)
        if isinstance(value, BaseModel):
            yield from _section(name, value)
            after_section = True
            continue
        if after_section:
            yield ""
            after_section = False
        comment = _comment(field, SAID.get(name) if not indent else None)
        if name in example:
            yield f"{indent}{name}: {_yaml(example[name])}{comment}"
        elif value is None or (not indent and value in ((), {})):
            yield f"{indent}# {name}:{comment}"
        else:
            yield f"{indent}{name}: {_yaml(defaults.model_dump(mode='json')[name])}{comment}"
        if not indent and name in PARTS:
            yield from (f"#   {line}" for line in _part(PARTS[name]))


def _section(name: str, value: BaseModel) -> Iterator[str]:
    lines = list(_lines(type(value), value, {}, "  "))
    # a section without a single value would be null, so its name is commented out as well
    bare = all(line.startswith("  # ") for line in lines)
    yield f"\n# {name}:" if bare else f"\n{name}:"
    yield from (f"#   {line.removeprefix('  # ')}" for line in lines) if bare else lines


def _part(model: type[BaseModel]) -> Iterator[str]:
    """What one entry may hold when it is written as a mapping."""
    yield f"written as a mapping, each may hold: {', '.join(model.model_fields)}"
    for name, field in model.model_fields.items():
        comment = _comment(field, None)
        if comment:
            yield f"  {name}{comment.replace('  # ', ': ', 1)}"


def _comment(field: FieldInfo, said: str | None) -> str:
    parts = [said or field.description or "", _allowed(field)]
    text = "; ".join(part for part in parts if part)
    return f"  # {text}" if text else ""


def _allowed(field: FieldInfo) -> str:
    """The values of a choice, and the bounds of a number."""
    choices = _choices(field.annotation)
    bounds = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = [
        f"{words} {getattr(rule, kind):,}"
        for rule in field.metadata
        for kind, words in bounds.items()
        if getattr(rule, kind, None) is not None
    ]
    return ", ".join([" | ".join(choices)] * bool(choices) + limits)


def _choices(annotation: Any) -> list[str]:
    if typing.get_origin(annotation) is typing.Literal:
        return [str(value) for value in typing.get_args(annotation)]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType, tuple):
        return [choice for inner in typing.get_args(annotation) for choice in _choices(inner)]
    return []


def _yaml(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
