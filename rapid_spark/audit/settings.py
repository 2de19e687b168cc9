"""The configuration of an audit: settings common to all registries, what each has of its own, one policy for all."""

from __future__ import annotations

import copy
import datetime as dt
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from rapid_spark.config import (
    Config,
    ConfigError,
    Model,
    Name,
    Policy,
    Recode,
    Session,
    Share,
    Store,
    Table,
    Tracking,
    check_identifier,
    parse_as,
    suggest,
)

# What an audit decides for all evaluations at once; the rest of Config may stand under defaults and settings.
OF_AUDIT = (
    "registry", "release_id", "release_date", "original", "release", "holdout", "policy", "store", "tracking", "session",
)  # fmt: skip
OF_EVALUATION = tuple(name for name in Config.model_fields if name not in OF_AUDIT)


class Release(Model):
    """One release of a registry: its file, or the files of its copies."""

    id: str
    date: dt.date | None = Field(None, description="day of publication; decides which release is the one before")
    tables: tuple[Table, ...] = Field(min_length=1, description="file, or several for the copies of one release")
    recode: dict[str, Recode] = Field(
        default_factory=dict, description="how its columns, by their common names, were coarsened: over that of the settings"
    )

    @field_validator("id", mode="before")
    @classmethod
    def _identifier(cls, value: Any) -> str:
        return check_identifier(str(value))

    @field_validator("tables", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        value = [value] if isinstance(value, (str, dict, Table)) else value
        return [{"path": v} if isinstance(v, str) else v for v in value]


class Vocabulary(Model):
    """How a registry's own names and codes are called in the common vocabulary."""

    columns: dict[str, Name] = Field(default_factory=dict, description="common name by own name: {sex: gender}")
    levels: dict[str, dict[str, str]] = Field(
        default_factory=dict, description="per common column, common level by own code: {gender: {f: female}}"
    )

    @field_validator("levels", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {c: {_code(k): v for k, v in m.items()} if isinstance(m, Mapping) else m for c, m in value.items()}

    @model_validator(mode="after")
    def _one_to_one(self) -> Vocabulary:
        common = list(self.columns.values())
        twice = sorted({c for c in common if common.count(c) > 1})
        if twice:
            raise ValueError(f"columns: several own columns become {', '.join(map(repr, twice))}")
        return self


def _code(value: Any) -> str:
    """A code as text; YAML reads true, 1 and 1.0 as values of their own."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


class Registry(Model):
    """One registry: its original, its releases, its vocabulary, and settings of its own."""

    name: str
    original: Table
    holdout: Table | None = None
    releases: tuple[Release, ...] | str = Field(
        description="list of id, date and tables; or a pattern in which * (or {release}, {replicate}) stands for the id"
    )
    vocabulary: Vocabulary = Vocabulary()
    settings: dict[str, Any] = Field(default_factory=dict, description="laid over the defaults")

    @field_validator("name", mode="before")
    @classmethod
    def _identifier(cls, value: Any) -> str:
        return check_identifier(str(value))

    @field_validator("original", "holdout", mode="before")
    @classmethod
    def _path(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @field_validator("releases")
    @classmethod
    def _different(cls, value: tuple[Release, ...] | str) -> tuple[Release, ...] | str:
        if isinstance(value, str):
            if "*" not in value and "{release}" not in value:
                raise ValueError("a pattern needs a * or {release} where the id of the release stands; or give a list")
            return value
        ids = [r.id for r in value]
        if not ids:
            raise ValueError("name at least one release")
        if len(set(ids)) < len(ids):
            raise ValueError(f"release {sorted(i for i in ids if ids.count(i) > 1)[0]} is listed twice")
        return value


class Compare(Model):
    """How registries are compared: rates standardised to one distribution of quasi-identifiers."""

    enabled: bool = True
    by: tuple[Name, ...] | None = Field(None, description="quasi-identifiers to standardise over; all, if at most 4")
    bins: dict[str, tuple[float, ...]] = Field(
        default_factory=dict, description="cut points of numeric ones; quartiles of the first registry when left out"
    )
    reference: Name | None = Field(None, description="registry to compare with; the mean of the others when left out")
    confidence: Share = 0.95
    min_n: int = Field(200, ge=1, description="fewest records of a registry that is compared")
    min_stratum: int = Field(5, ge=1, description="fewest records of a stratum that every registry must have")
    min_coverage: Share = Field(0.7, description="least share of the common distribution in such strata")

    @field_validator("bins")
    @classmethod
    def _ascending(cls, value: dict[str, tuple[float, ...]]) -> dict[str, tuple[float, ...]]:
        for name, cuts in value.items():
            if not cuts or list(cuts) != sorted(set(cuts)):
                raise ValueError(f"{name}: cut points are different numbers in ascending order")
        return value


class AuditConfig(Model):
    """Many registries and releases, judged by one policy."""

    defaults: dict[str, Any] = Field(default_factory=dict, description="settings of every evaluation, as evaluate has them")
    registries: tuple[Registry, ...] = Field(min_length=1)
    policy: Policy
    compare: Compare = Compare()
    workers: int = Field(2, ge=1, le=64, description="registries evaluated side by side")
    grouping: Literal["registry", "release"] = Field(
        "registry", description="releases of one registry in one pass over its original, or each in a pass of its own"
    )
    store: Store = Store()
    tracking: Tracking = Tracking()
    session: Session = Session()

    @model_validator(mode="after")
    def _consistent(self) -> AuditConfig:
        names = [r.name for r in self.registries]
        twice = sorted({n for n in names if names.count(n) > 1})
        faults = [f"registries: {n!r} is listed twice" for n in twice]
        if self.compare.reference is not None and self.compare.reference not in names:
            near = suggest(self.compare.reference, names)
            faults.append(f"compare.reference: no registry {self.compare.reference!r}.{near} There are: {', '.join(names)}")
        faults += _misplaced("defaults", self.defaults)
        for registry in self.registries:
            faults += _misplaced(f"registries.{registry.name}.settings", registry.settings)
        if faults:
            raise ValueError("; ".join(faults))
        return self


def _misplaced(where: str, settings: Mapping[str, Any]) -> Iterable[str]:
    for key in settings:
        if key in OF_AUDIT:
            places = {"registry": "registries.name", "release_id": "releases.id", "release": "registries.releases"}
            yield f"{where}.{key}: belongs to {places.get(key, 'the registry or the audit, beside defaults')}"
        elif key not in OF_EVALUATION:
            yield f"{where}.{key}: unknown key.{suggest(key, OF_EVALUATION)} Known here: {', '.join(OF_EVALUATION)}"


@dataclass(frozen=True)
class Planned:
    """One release to evaluate, with the settings for it."""

    registry: Registry
    release: Release
    config: Config


def evaluation_settings(audit: AuditConfig) -> dict[str, Config]:
    """By registry, the settings of its evaluations, without releases.

    Raises:
        ConfigError: with the faults of all registries, each under its own.
    """
    found, faults = {}, []
    for registry in audit.registries:
        data = _laid(audit.defaults, registry.settings)
        data |= {
            "registry": registry.name,
            "original": registry.original,
            "holdout": registry.holdout,
            "store": audit.store,
            "tracking": audit.tracking,
            "session": audit.session,
        }
        try:
            config = parse_as(Config, data, f"the settings of {registry.name}")
        except ConfigError as error:
            faults.append(str(error))
            continue
        found[registry.name] = config
        faults += [f"the settings of {registry.name}: {fault}" for fault in _against_audit(audit, config)]
    if faults:
        raise ConfigError("\n".join(dict.fromkeys(faults)))
    return found


def _against_audit(audit: AuditConfig, config: Config) -> Iterable[str]:
    attributes = [s.name for s in config.sensitive_attributes]
    if not config.all_quasi_identifiers:
        yield "quasi_identifiers: name what an attacker knows, under defaults or the registry's settings"
    if not attributes:
        yield "sensitive_attributes: name what must not be guessed, under defaults or the registry's settings"
    for name in audit.policy.attributes:
        if attributes and name not in attributes:
            yield f"policy.attributes: {name!r} is not a sensitive attribute.{suggest(name, attributes)}"
    for name in (*(audit.compare.by or ()), *audit.compare.bins):
        if name not in config.all_quasi_identifiers:
            yield f"compare: {name!r} is not among the quasi-identifiers.{suggest(name, config.all_quasi_identifiers)}"


def for_release(config: Config, release: Release) -> Config:
    """The settings of one release."""
    return config.model_copy(update={
        "release_id": release.id, "release_date": release.date, "release": release.tables,
        "recode": {**config.recode, **release.recode},
    })


def attack_settings(config: Config) -> str:
    """What has to be alike for two registries' rates to be compared, as text."""
    kept = ("attackers", "measures", "threshold", "training", "sensitive_attributes", "baseline")
    data = {k: v for k, v in config.model_dump(mode="json").items() if k in kept}
    return json.dumps(data | {"sets": {k: list(v) for k, v in config.sets.items()}}, sort_keys=True)


def _laid(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Settings over others: sections are merged key by key, everything else is replaced."""
    merged: dict[str, Any] = copy.deepcopy(dict(below))
    for key, value in above.items():
        inner = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(inner, Mapping)
        merged[key] = _laid(inner, value) if both else copy.deepcopy(value)  # type: ignore[arg-type]
    if "quasi_identifiers" in above:
        merged.pop("qi_sets", None)
    elif "qi_sets" in above:
        merged.pop("quasi_identifiers", None)
    return merged
