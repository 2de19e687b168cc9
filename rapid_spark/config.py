"""Frozen models of one evaluation, loaded from YAML; every fault is reported at once, under its path."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

MEASURES: dict[str, tuple[float, float, float]] = {
    # measure: default threshold, lowest allowed (inclusive), upper bound (exclusive)
    "normalized_gain": (0.3, 0.0, 1.0),
    "rcs_conditional": (1.25, 0.0, float("inf")),
    "nce": (0.6, 0.0, 1.0),
}
ERRORS = ("symmetric", "stabilised_relative", "relative", "absolute", "normalised")
IDENTIFIER = re.compile(r"[A-Za-z0-9._-]{1,128}")

Measure = Literal["normalized_gain", "rcs_conditional", "nce"]
ErrorMeasure = Literal["symmetric", "stabilised_relative", "relative", "absolute", "normalised"]
Share = Annotated[float, Field(gt=0, lt=1)]
Name = Annotated[str, Field(min_length=1)]


class ConfigError(ValueError):
    """The user's configuration or command line is at fault; the text names path, value kind and remedy."""


class Model(BaseModel):
    """Base of all settings: frozen, no unknown keys, defaults held to their own rules."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class Table(Model):
    """Where one table of people is read from: a file, a folder, a Delta path or a table of the catalog."""

    path: Name | None = Field(None, description="file or folder: CSV (gzip too), Parquet or Delta")
    table: Name | None = Field(None, description="table of the catalog: [catalog.]schema.table")
    format: Literal["csv", "parquet", "delta"] | None = Field(None, description="read from the name when left out")
    version: int | None = Field(None, ge=0, description="Delta version to read; the newest when left out, and pinned")
    delimiter: str = Field(",", min_length=1, max_length=1, description="CSV field separator")
    encoding: str = Field("UTF-8", description="CSV character encoding")
    replicate_column: Name | None = Field(None, description="column that numbers the replicates 1..m in one table")

    @model_validator(mode="after")
    def _one_place(self) -> Table:
        if (self.path is None) == (self.table is None):
            raise ValueError("give exactly one of path and table")
        if self.version is not None and self.format in ("csv", "parquet"):
            raise ValueError("version is for Delta tables only")
        return self

    @property
    def name(self) -> str:
        """The name under which messages and records speak of this table."""
        return str(self.path or self.table)


class Columns(Model):
    """Columns with a role of their own."""

    key: tuple[Name, ...] = Field((), description="record key; without it a single file's line number")
    person: Name | None = Field(None, description="person, where one has several rows")
    household: Name | None = None
    weight: Name | None = None
    stratum: Name | None = None
    psu: Name | None = None
    missing_codes: dict[str, tuple[str | int | float, ...]] = Field(
        default_factory=dict, description="per column, codes that mean missing, e.g. {income: [-9, '?']}"
    )
    types: dict[str, Literal["categorical", "numeric"]] = Field(
        default_factory=dict, description="per quasi-identifier, its kind where the data's own type misleads"
    )

    @field_validator("key", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class SensitiveAttribute(Model):
    """One attribute that an attacker would like to know."""

    name: Name
    type: Literal["categorical", "continuous"] | None = Field(None, description="read from the data when left out")
    missing: Literal["class", "drop", "median", "constant"] | None = Field(
        None, description="categorical: class (default) or drop; continuous: drop (default), median or constant"
    )
    constant: float | None = Field(None, description="value for missing: constant")
    max_levels: int = Field(100, ge=2, description="most levels a categorical target may have")
    sensitive_levels: tuple[str | int | float | bool, ...] = Field((), description="levels that would hurt if known")

    @model_validator(mode="after")
    def _missing_fits(self) -> SensitiveAttribute:
        if self.type == "categorical" and self.missing in ("median", "constant"):
            raise ValueError("missing of a categorical attribute is class or drop")
        if self.type == "continuous" and self.missing == "class":
            raise ValueError("missing of a continuous attribute is drop, median or constant")
        if (self.missing == "constant") != (self.constant is not None):
            raise ValueError("missing: constant and a value under constant go together")
        return self


class Attacker(Model):
    """One attacker: a name of the suite, or a scikit-learn estimator's import path (with allow_code)."""

    name: Name
    parameters: dict[str, Any] = Field(default_factory=dict)


class Threshold(Model):
    """When a record counts as at risk."""

    tau: dict[str, float] = Field(
        default_factory=lambda: {m: d[0] for m, d in MEASURES.items()},
        description="per measure; a plain number is for the measure in use",
    )
    tolerance: float = Field(0.10, gt=0, description="allowed prediction error, a share (or the target's unit)")
    error: ErrorMeasure = "symmetric"
    delta: float = Field(0.01, gt=0, description="smoothing of the symmetric and stabilised errors, target's unit")
    normalised_by: Literal["sd", "range"] = "sd"
    tau_grid: tuple[float, ...] = Field(tuple(i / 20 for i in range(20)), description="thresholds of the curve")
    tolerance_grid: tuple[float, ...] = (0.01, 0.02, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)

    @field_validator("tau")
    @classmethod
    def _in_range(cls, value: dict[str, float]) -> dict[str, float]:
        for measure, tau in value.items():
            if measure not in MEASURES:
                raise ValueError(f"{measure!r} is not a measure.{suggest(measure, MEASURES)} Known: {', '.join(MEASURES)}")
            _, low, high = MEASURES[measure]
            if not low <= tau < high:
                raise ValueError(f"{tau} for {measure} is out of range: allowed is {low} <= tau < {high}")
        return {m: value.get(m, d[0]) for m, d in MEASURES.items()}

    @field_validator("tau_grid", "tolerance_grid")
    @classmethod
    def _ascending(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if not value or min(value) < 0 or list(value) != sorted(set(value)):
            raise ValueError("a grid is a list of different numbers from 0 upwards, in ascending order")
        return value

    @model_validator(mode="after")
    def _tolerance_fits(self) -> Threshold:
        if self.error == "absolute":
            return self
        if self.tolerance >= 2:
            raise ValueError(
                f"a tolerance of {self.tolerance:g} under error {self.error} is over 200 percent: it is a share. "
                f"Is {self.tolerance:g} percent meant? Then write {self.tolerance / 100:g}"
            )
        if self.error in ("relative", "stabilised_relative") and self.tolerance >= 1:
            raise ValueError(f"a tolerance of {self.tolerance:g} counts almost every guess as right: below 1 is allowed")
        return self


class Intervals(Model):
    """Uncertainty of the rates."""

    method: Literal["wilson_neff", "wilson", "clopper_pearson", "wald", "bootstrap"] = "wilson_neff"
    confidence: Share = 0.95
    bootstrap: int = Field(500, ge=50, le=20_000, description="bootstrap replicates")
    permutations: int = Field(199, ge=0, le=20_000, description="draws of the permutation null; 0 skips it")


class Baseline(Model):
    """Prevalence within strata that everybody knows, shown beside the plain one."""

    by: tuple[Name, ...] = ()


class Drivers(Model):
    """Which records and which quasi-identifiers carry the risk."""

    subgroups: bool = True
    pairs: bool = Field(False, description="also every pair of quasi-identifiers")
    numeric_bins: int = Field(4, ge=2, le=20, description="quantile bins of a numeric quasi-identifier")
    patterns: int = Field(20, ge=0, le=1000, description="patterns listed; 0 for none")
    min_cell_count: int = Field(10, ge=2, description="cells with fewer records are suppressed")
    attribution: bool = True
    interactions: bool = False
    refits: bool = Field(False, description="RAPID with each quasi-identifier alone and with each left out")
    exclude_relations: tuple[str, ...] = Field((), description="'column=level -> class' that everybody knows")


class Training(Model):
    """How attackers are fitted."""

    max_train_rows: int = Field(500_000, ge=10, description="release rows used; above it a stratified seeded sample")
    seed: int = Field(20260, ge=0, lt=2**31)
    replicates: Literal["each", "pooled", "both"] = "both"
    references: bool = Field(False, description="also population_reference and copy_ceiling")


class Store(Model):
    """Where results go."""

    location: str | None = Field(None, description="directory (./rapid-store) or schema:[catalog.]schema")
    detail: Literal["none", "flags", "scores"] = "scores"
    records: Literal["all", "at_risk", "none"] = "all"


class Tracking(Model):
    """MLflow."""

    enabled: bool = True
    uri: str | None = Field(None, description="the store's own SQLite, or the workspace, when left out")
    experiment: str | None = None
    level: Literal["release", "combination"] = "release"
    log_model: bool = False


class Session(Model):
    """The local Spark session; ignored where a session exists."""

    cores: int | None = Field(None, ge=1, description="all, less one where there are more than two")
    driver_memory_gb: int | None = Field(None, ge=1)


class Config(Model):
    """One evaluation: one registry's release, its replicates, attributes, quasi-identifier sets and attackers."""

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
    attackers: tuple[Attacker, ...] = (Attacker(name="rf"),)
    allow_code: bool = False
    measures: tuple[Measure, ...] = ("normalized_gain",)
    threshold: Threshold = Threshold()
    intervals: Intervals = Intervals()
    baseline: Baseline = Baseline()
    drivers: Drivers = Drivers()
    training: Training = Training()
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
    def sets(self) -> dict[str, tuple[str, ...]]:
        """Quasi-identifier sets by name; a plain list is the set `all`. QIs are ordered by name."""
        sets = self.qi_sets or {"all": self.quasi_identifiers}
        return {name: tuple(sorted(columns)) for name, columns in sets.items()}

    @property
    def all_quasi_identifiers(self) -> tuple[str, ...]:
        """Every quasi-identifier of any set, ordered by name, each once."""
        return tuple(sorted({column for columns in self.sets.values() for column in columns}))


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
    for column in config.baseline.by:
        if column not in quasi:
            yield f"baseline.by: {column!r} is not among the quasi-identifiers"


def _twice(names: Iterable[str]) -> list[str]:
    names = list(names)
    return sorted({n for n in names if names.count(n) > 1})


def check_identifier(value: str) -> str:
    """Return an id unchanged, or raise ValueError saying what an id may hold."""
    if not IDENTIFIER.fullmatch(value):
        raise ValueError(f"{value[:140]!r} is not an id: letters, digits, '.', '_' and '-', 1 to 128 of them")
    return value


def parse_attribute(text: str) -> dict[str, str]:
    """`NAME`, `NAME:categorical` or `NAME:continuous` as a mapping; other colons belong to the name."""
    name, colon, kind = text.rpartition(":")
    return {"name": name, "type": kind} if colon and kind in ("categorical", "continuous") else {"name": text}


def load(path: str | Path | None = None, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read a configuration file and lay overrides (`{"training.seed": 7}`) over it.

    Raises:
        ConfigError: with every fault found, one a line, each under its path.
    """
    data = _read(Path(path)) if path is not None else {}
    for key, value in (overrides or {}).items():
        _lay(data, key.split("."), value, key)
    return parse(data, str(path) if path is not None else None)


def parse(data: Mapping[str, Any], source: str | None = None, model: type[Model] = Config) -> Any:
    """Build a model from plain data, or raise ConfigError with every fault under its path."""
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        lines = [_fault(e, model) for e in error.errors()]
        where = f" in {source}" if source else ""
        count = "a fault" if len(lines) == 1 else f"{len(lines)} faults"
        raise ConfigError(f"{count}{where}:\n" + "\n".join(f"  {line}" for line in lines)) from None


def parse_set(text: str) -> tuple[str, Any]:
    """Split `path.to.key=value`; the value is read as YAML (a number, a list, text)."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text!r}: expected path.to.key=value, e.g. training.seed=7")
    try:
        return key.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(f"--set {key}: the value is not valid YAML") from None


def settings_json(config: Config) -> str:
    """The configuration as sorted JSON, as it is stored and digested. It holds no secrets."""
    return json.dumps(config.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)


def suggest(name: str, known: Iterable[str]) -> str:
    """' Did you mean ...?' for the nearest known names, or an empty text."""
    known = [str(k) for k in known]
    lower = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(lower[n]) for n in near)}?" if near else ""


def _read(path: Path) -> dict[str, Any]:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        here = sorted(str(p) for p in path.parent.glob("*.y*ml")) if path.parent.is_dir() else []
        raise ConfigError(f"no configuration file {path}.{suggest(str(path), here)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration file {path} cannot be read: {type(error).__name__}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: not valid YAML ({getattr(error, 'problem', None) or 'syntax'})") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected keys such as original:, release:, found a {type(data).__name__}")
    return data


def _lay(data: dict[str, Any], keys: list[str], value: Any, whole: str) -> None:
    for key in keys[:-1]:
        inner = data.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {whole}: {key} holds no keys of its own")
        data = inner
    data[keys[-1]] = value


def _fault(error: Any, model: type[Model]) -> str:
    path = ".".join(str(part) for part in error["loc"]) or "configuration"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        known = list(_fields_at(model, error["loc"][:-1]))
        message = f"unknown key.{suggest(str(error['loc'][-1]), known)} Known here: {', '.join(known)}"
    return f"{path}: {message}"


def _fields_at(model: type[BaseModel], loc: tuple[Any, ...]) -> Iterable[str]:
    current: Any = model
    for part in loc:
        field = getattr(current, "model_fields", {}).get(part)
        if field is not None:
            current = _inner_model(field.annotation) or current
    return getattr(current, "model_fields", {})


def _inner_model(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _inner_model(inner)
        if found:
            return found
    return None
