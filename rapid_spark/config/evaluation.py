"""The configuration of one evaluation, and the rules between its columns."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from typing import Any

from pydantic import Field, field_validator, model_validator

from .base import Model, Name, check_identifier, suggest
from .policy import Policy
from .recode import Recode
from .search import Search, short_forms
from .sections import (
    MEASURES,
    Attacker,
    Baseline,
    Columns,
    Disclosure,
    Drivers,
    Intervals,
    Measure,
    Publish,
    SensitiveAttribute,
    Session,
    Store,
    Table,
    Threshold,
    Tracking,
    Training,
)


class Config(Model):
    """One evaluation: one registry's release, its replicates, attributes, quasi-identifier sets and attackers.

    Example:
        >>> from rapid_spark import Config
        >>> settings = Config(quasi_identifiers=("age", "gender"), sensitive_attributes=("income",))
        >>> settings.threshold.tau["normalized_gain"], [a.name for a in settings.attackers]
        (0.3, ['rf'])
    """

    registry: str = "registry"
    release_id: str = "release"
    release_date: date | None = None
    original: Table | None = None
    release: tuple[Table, ...] = ()
    holdout: Table | None = None
    columns: Columns = Columns()
    quasi_identifiers: tuple[Name, ...] = ()
    qi_sets: dict[str, tuple[Name, ...]] = Field(
        default_factory=dict, description="named scenarios in place of quasi_identifiers"
    )
    sensitive_attributes: tuple[SensitiveAttribute, ...] = ()
    recode: dict[str, Recode] = Field(
        default_factory=dict,
        description="per column, how the release was coarsened, which is done to the original too: {age: {bands: 10}}",
    )
    search: Search = Search()
    attackers: tuple[Attacker, ...] = (Attacker(name="rf"),)
    allow_code: bool = False
    measures: tuple[Measure, ...] = ("normalized_gain",)
    threshold: Threshold = Threshold()
    intervals: Intervals = Intervals()
    baseline: Baseline = Baseline()
    drivers: Drivers = Drivers()
    publish: Publish = Publish()
    disclosure: Disclosure = Disclosure()
    training: Training = Training()
    policy: Policy | None = Field(None, description="limits the release is held to")
    store: Store = Store()
    tracking: Tracking = Tracking()
    session: Session = Session()

    @field_validator("registry", "release_id")
    @classmethod
    def _identifier(cls, value: str) -> str:
        return check_identifier(value)

    @field_validator("release", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        value = [value] if isinstance(value, (str, dict, Table)) else value
        return [{"path": v} if isinstance(v, str) else v for v in value]

    @field_validator("original", "holdout", mode="before")
    @classmethod
    def _path(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @field_validator("sensitive_attributes", mode="before")
    @classmethod
    def _attributes(cls, value: Any) -> Any:
        value = [value] if isinstance(value, (str, dict, SensitiveAttribute)) else value
        return [parse_attribute(v) if isinstance(v, str) else v for v in value]

    @field_validator("attackers", mode="before")
    @classmethod
    def _attackers(cls, value: Any) -> Any:
        value = [value] if isinstance(value, (str, dict, Attacker)) else value
        return [{"name": v} if isinstance(v, str) else v for v in value]

    @model_validator(mode="before")
    @classmethod
    def _search(cls, value: Any) -> Any:
        return short_forms(value)

    @model_validator(mode="before")
    @classmethod
    def _plain_tau(cls, value: Any) -> Any:
        threshold = value.get("threshold") if isinstance(value, dict) else None
        if isinstance(threshold, dict) and isinstance(threshold.get("tau"), (int, float)):
            measures = value.get("measures") or ["normalized_gain"]
            measures = [measures] if isinstance(measures, str) else measures
            tau = {m: threshold["tau"] for m in measures if m in MEASURES}
            return {**value, "threshold": {**threshold, "tau": tau}}
        return value

    @model_validator(mode="after")
    def _roles(self) -> Config:
        faults = list(_role_faults(self))
        if faults:
            raise ValueError("; ".join(faults))
        return self

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table that is named."""
        return tuple(t for t in (self.original, *self.release, self.holdout) if t is not None)

    @property
    def sets(self) -> dict[str, tuple[str, ...]]:
        """Quasi-identifier sets by name; a plain list is the set `all`. QIs are ordered by name."""
        sets = self.qi_sets or {"all": self.quasi_identifiers}
        dropped = {name for name, recode in self.recode.items() if recode.drop}
        return {name: tuple(sorted(c for c in columns if c not in dropped)) for name, columns in sets.items()}

    @property
    def all_quasi_identifiers(self) -> tuple[str, ...]:
        """Every quasi-identifier of any set, ordered by name, each once."""
        return tuple(sorted({column for columns in self.sets.values() for column in columns}))

    def missing_codes(self, name: str) -> tuple[str | int | float, ...]:
        """Codes of a column that mean missing: those declared, and the markers of suppressed cells."""
        recode = self.recode.get(name)
        return (*self.columns.missing_codes.get(name, ()), *(recode.suppressed if recode else ()))


def _role_faults(config: Config) -> Iterable[str]:
    if config.quasi_identifiers and config.qi_sets:
        yield "give quasi_identifiers or qi_sets, not both"
    for name, columns in config.sets.items():
        where = "quasi_identifiers" if name == "all" and not config.qi_sets else f"qi_sets.{name}"
        yield from (f"{where}: {c!r} is named twice" for c in _twice(columns))
        if name != "all" or config.qi_sets:
            if not columns:
                yield f"{where}: name at least one quasi-identifier"
    yield from (f"sensitive_attributes: {c!r} is named twice" for c in _twice(s.name for s in config.sensitive_attributes))
    yield from (f"attackers: {c!r} is named twice" for c in _twice(a.name for a in config.attackers))
    yield from (f"measures: {c!r} is named twice" for c in _twice(config.measures))
    quasi = set(config.all_quasi_identifiers)
    for attribute in config.sensitive_attributes:
        if attribute.name in quasi:
            yield f"{attribute.name!r} is both a quasi-identifier and a sensitive attribute: it can be only one"
    for column in config.columns.key:
        if column in quasi or column in {s.name for s in config.sensitive_attributes}:
            yield f"columns.key: {column!r} is also a quasi-identifier or sensitive attribute: a key is neither"
    if config.columns.key_hmac and not config.columns.key:
        yield "columns.key_hmac: name the columns it is made of under columns.key"
    design = [role for role in ("stratum", "psu") if getattr(config.columns, role) is not None]
    if design and config.columns.weight is None:
        yield f"columns.{design[0]}: belongs to survey weights: name their column under columns.weight too"
    names = [s.name for s in config.sensitive_attributes]
    for attribute_name in config.policy.attributes if config.policy else ():
        if attribute_name not in names:
            yield f"policy.attributes: {attribute_name!r} is not a sensitive attribute.{suggest(attribute_name, names)}"
    for name, recode in config.recode.items():
        if name in config.columns.key:
            yield f"recode: {name!r} is a key, which tells records apart: it cannot be coarser"
        if recode.drop and name in {s.name for s in config.sensitive_attributes}:
            yield f"recode.{name}.drop: what is not in the release cannot be evaluated: leave it out of sensitive_attributes"
    for name in config.columns.dates:
        if name in config.recode and config.recode[name].changes and not config.recode[name].drop:
            yield f"recode: {name!r} is read as dates (columns.dates), which cannot be made coarser here"
    for column in config.baseline.by:
        if column not in quasi:
            yield f"baseline.by: {column!r} is not among the quasi-identifiers"


def _twice(names: Iterable[str]) -> list[str]:
    names = list(names)
    return sorted({n for n in names if names.count(n) > 1})


def parse_attribute(text: str) -> dict[str, str]:
    """`NAME`, `NAME:categorical` or `NAME:continuous` as a mapping; other colons belong to the name."""
    name, colon, kind = text.rpartition(":")
    return {"name": name, "type": kind} if colon and kind in ("categorical", "continuous") else {"name": text}


def settings_json(config: Model) -> str:
    """The configuration as sorted JSON, as it is stored and digested. It holds no secrets."""
    return json.dumps(config.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
