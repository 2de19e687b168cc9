"""The sections of a configuration: one frozen model each."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from .base import Model, Name, Share, suggest

MEASURES: dict[str, tuple[float, float, float]] = {
    # measure: default threshold, lowest allowed (inclusive), upper bound (exclusive)
    "normalized_gain": (0.3, 0.0, 1.0),
    "rcs_conditional": (1.25, 0.0, float("inf")),
    "nce": (0.6, 0.0, 1.0),
}

ERRORS = ("symmetric", "stabilised_relative", "relative", "absolute", "normalised")

Measure = Literal["normalized_gain", "rcs_conditional", "nce"]
ErrorMeasure = Literal["symmetric", "stabilised_relative", "relative", "absolute", "normalised"]


class Table(Model):
    """Where one table of people is read from: a file, a folder, a Delta path or a table of the catalog."""

    path: Name | None = Field(None, description="file or folder: CSV (gzip too), Parquet, Delta, SPSS, Stata, SAS")
    table: Name | None = Field(None, description="table of the catalog: [catalog.]schema.table")
    format: Literal["csv", "parquet", "delta", "sav", "dta", "sas7bdat", "xpt"] | None = Field(
        None, description="read from the name when left out"
    )
    version: int | None = Field(None, ge=0, description="Delta version to read; the newest when left out, and pinned")
    delimiter: str = Field(",", min_length=1, max_length=1, description="CSV field separator")
    encoding: str = Field("UTF-8", description="CSV character encoding; of a statistical file its own when left out")
    value_labels: bool = Field(True, description="SPSS, Stata: labels of values in place of codes, where all have one")
    replicate_column: Name | None = Field(None, description="column that numbers the replicates 1..m in one table")

    @model_validator(mode="after")
    def _one_place(self) -> Table:
        if (self.path is None) == (self.table is None):
            raise ValueError("give exactly one of path and table")
        if self.version is not None and self.format not in (None, "delta"):
            raise ValueError("version is for Delta tables only")
        return self

    @property
    def name(self) -> str:
        """The name under which messages and records speak of this table."""
        return str(self.path or self.table)


class Columns(Model):
    """Columns with a role of their own."""

    key: tuple[Name, ...] = Field((), description="record key; without it a single file's line number")
    key_hmac: bool = Field(
        False, description="record ids are HMACs of the key with the environment's RAPID_SPARK_KEY_SECRET, and a number"
    )
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
    dates: dict[str, str] = Field(
        default_factory=dict, description="per column of text, how its dates are written: {diagnosed: dd MMM yyyy}"
    )

    @field_validator("dates")
    @classmethod
    def _patterns(cls, value: dict[str, str]) -> dict[str, str]:
        for name, pattern in value.items():
            if "%" in pattern or not pattern.strip():
                raise ValueError(f"{pattern!r} of {name!r} is no pattern: write days, months and years as dd MMM yyyy")
        return value

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


class Publish(Model):
    """How figures leave the house, in reports and exports; what they tell of few people (min_cell_count) is withheld."""

    rounding: int | None = Field(None, ge=2, le=1000, description="round counts of people to multiples of this")


class Disclosure(Model):
    """Classical measures, attacks on records and utility, beside RAPID."""

    bins: dict[str, tuple[float, ...]] = Field(
        default_factory=dict, description="per numeric column, ascending edges: [e0, e1), .., the last one closed"
    )
    sampling_fraction: float | None = Field(
        None, gt=0, le=1, description="share of the population that the original holds; 1 for a complete register"
    )
    max_records: int = Field(100_000, ge=100, description="records a distance or attack is computed for; more are sampled")

    @field_validator("bins")
    @classmethod
    def _ascending_edges(cls, value: dict[str, tuple[float, ...]]) -> dict[str, tuple[float, ...]]:
        for name, edges in value.items():
            if len(edges) < 2 or list(edges) != sorted(set(edges)):
                raise ValueError(f"the edges of {name!r} are two or more different numbers in ascending order")
        return value


class Training(Model):
    """How attackers are fitted."""

    max_train_rows: int = Field(500_000, ge=10, description="release rows used; above it a stratified seeded sample")
    seed: int = Field(20260, ge=0, lt=2**31)
    replicates: Literal["each", "pooled", "both"] = "both"
    fit_on: Literal["driver", "executors"] = Field(
        "driver", description="executors: combinations, and groups of a forest's trees, as Spark tasks; for clusters"
    )
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
