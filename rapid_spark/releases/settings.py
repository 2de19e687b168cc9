"""Settings of a release with differential privacy, loaded from YAML: all of it is declared, nothing read off the data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from rapid_spark.config import (
    ConfigError,
    Model,
    Name,
    Session,
    Store,
    Table,
    check_identifier,
    load_as,
)
from rapid_spark.reaedp.domain import Categories, Domain, Edges

MOST_BINS = 5_000_000


class Range(Model):
    """Edges at one distance: first, first + width, .., last."""

    first: float
    last: float
    width: float = Field(gt=0)

    @model_validator(mode="after")
    def _whole(self) -> Range:
        bins = (self.last - self.first) / self.width
        if not 1 <= bins <= MOST_BINS or abs(bins - round(bins)) > 1e-9 * max(bins, 1):
            raise ValueError(
                f"from {self.first:g} to {self.last:g} is not 1 to {MOST_BINS:,} times a width of {self.width:g}"
            )
        return self

    def edges(self) -> tuple[float, ...]:
        """The edges."""
        bins = round((self.last - self.first) / self.width)
        return tuple(self.first + i * self.width for i in range(bins)) + (self.last,)


class DomainSettings(Model):
    """The bins of one column: levels, or edges."""

    levels: tuple[bool | int | float | str, ...] | None = Field(None, description="categories; all else is other")
    edges: tuple[float, ...] | Range | None = Field(None, description="increasing, or {first, last, width}")
    missing: bool = Field(False, description="missing values are a level of their own; otherwise they go to other")
    integer: bool = Field(False, description="with edges: synthetic values are whole numbers")

    @model_validator(mode="after")
    def _one_kind(self) -> DomainSettings:
        if (self.levels is None) == (self.edges is None):
            raise ValueError("give exactly one of levels and edges")
        if self.integer and self.edges is None:
            raise ValueError("integer belongs to edges")
        self.domain("column")  # held to its own rules here, so that a fault is told under its path
        return self

    def domain(self, column: str) -> Domain:
        """The declared domain of a column."""
        if self.levels is not None:
            return Categories(column, self.levels, self.missing)
        edges = self.edges.edges() if isinstance(self.edges, Range) else self.edges
        return Edges(column, edges or (), self.missing, self.integer)


class Columns(Model):
    """Columns with a role of their own."""

    person: tuple[Name, ...] = Field((), description="key of the person; without it each record is its own unit")

    @field_validator("person", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class Histogram(Model):
    """`dp histogram`: tables of counts."""

    tables: tuple[tuple[Name, ...], ...] = Field((), description="columns of each table; all single columns when left out")
    weights: tuple[float, ...] | None = Field(None, description="relative shares of the budget; equal when left out")
    rule: Literal["least_squares", "rescale"] = Field("least_squares", description="post-processing")
    records: int | None = Field(None, ge=1, description="also draw so many synthetic records from the noisy tables")

    @field_validator("tables", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        return [[t] if isinstance(t, str) else t for t in value] if isinstance(value, (list, tuple)) else value


class Entropy(Model):
    """`dp entropy`: the entropy of one table, under replace."""

    columns: tuple[Name, ...] = ()
    order: float | None = Field(None, gt=0, description="of Renyi's entropy; Shannon's when left out")
    bound: Literal["exact", "theorem3"] = "exact"
    target_error: float | None = Field(None, gt=0, description="bits; in place of epsilon, the smallest that meets it")


class Synthetic(Model):
    """`dp synthetic`: records by mechanism F, or without seeds."""

    records: int | None = Field(None, ge=1, description="how many, fixed beforehand")
    kept: tuple[Name, ...] = Field((), description="columns copied from a seed; none: without seeds")
    redrawn: tuple[int, ...] | None = Field(None, description="omega; several for one chosen per candidate")
    gamma: float = Field(4.0, gt=1, description="width of the classes of the privacy test")
    pass_probability: float = Field(0.1, gt=0, le=0.5, description="what the noisy support must prove")
    key_stays: bool = Field(False, description="replace changes values and never the person's key")
    shares: tuple[float, float, float] | None = Field(None, description="of persons: structure, parameters, seeds")
    max_parents: int = Field(3, ge=1)
    bound: Literal["theorem1", "tight"] = "theorem1"
    grid: Literal["library", "exact"] = "library"


class Curve(Model):
    """`dp curve`: the mean of curves on [0, 1], under replace. Wide: one column per point; long: curve, time, value."""

    columns: tuple[Name, ...] = Field((), description="wide: a column per point of the grid, in its order")
    curve: Name | None = Field(None, description="long: column that names the curve")
    time: Name | None = Field(None, description="long: column of the point, on the grid")
    value: Name | None = Field(None, description="long: column of the value")
    grid: tuple[float, ...] | Range | None = Field(None, description="increasing points of [0, 1], or {first, last, width}")
    norm_limit: float | None = Field(None, gt=0, description="largest L2 norm; longer curves are scaled down to it")
    penalty: float = Field(0.01, gt=0, description="rho: larger means less noise and more bias")
    bound: Literal["exact", "paper"] = "exact"
    components: int = Field(100, ge=1, le=1000)
    points: int = Field(201, ge=2, le=100_001, description="points of the released curve")

    @model_validator(mode="after")
    def _one_form(self) -> Curve:
        long = [self.curve, self.time, self.value]
        if self.columns and any(long):
            raise ValueError("give columns (one per point), or curve, time and value, not both")
        if any(long) and not all(long):
            raise ValueError("curve, time and value go together")
        return self

    def times(self) -> tuple[float, ...]:
        """The grid."""
        return self.grid.edges() if isinstance(self.grid, Range) else self.grid or ()


class ReleaseConfig(Model):
    """One release of one dataset."""

    dataset: str | None = Field(None, description="population of persons whose budget is charged, or a part of one")
    derived_from: tuple[str, ...] = Field((), description="datasets it is a version, subset or join of")
    release_id: str | None = Field(None, description="name of the release; the run id when left out")
    original: Table | None = None
    columns: Columns = Columns()
    n_declared: int | None = Field(None, ge=1, description="number of protected units, a constant; never counted")
    max_rows_per_person: int | None = Field(None, ge=1, description="rows kept of a person who has several")
    protected_unit: str | None = Field(None, description="record, or person where columns.person is named")
    public: bool = Field(False, description="the data are public or simulated, so figures on them may be shown")
    adjacency: Literal["add_remove", "replace"] | None = None
    mechanism: Literal["laplace", "gaussian"] = Field("laplace", description="noise of a histogram")
    epsilon: float | None = Field(None, gt=0, description="of the whole release, as the ledger enters it")
    delta: float = Field(0.0, ge=0, lt=1)
    domains: dict[Name, DomainSettings] = Field(default_factory=dict, description="bins per column")
    histogram: Histogram = Histogram()
    entropy: Entropy = Entropy()
    synthetic: Synthetic = Synthetic()
    curve: Curve = Curve()
    output: Name | None = Field(None, description="folder of the release, or table:NAME; within the store when left out")
    store: Store = Store()
    session: Session = Session()

    @field_validator("dataset", "release_id")
    @classmethod
    def _identifier(cls, value: str | None) -> str | None:
        return value if value is None else check_identifier(value)

    @field_validator("derived_from", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("original", mode="before")
    @classmethod
    def _path(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @property
    def declared(self) -> tuple[Domain, ...]:
        """The domains in the order in which they are declared."""
        return tuple(d.domain(column) for column, d in self.domains.items())

    @property
    def unit(self) -> str:
        """The name of the protected unit."""
        return self.protected_unit or ("person" if self.columns.person else "record")

    def need(self, *names: str) -> None:
        """Raise ConfigError that lists those of the settings that are not there.

        Args:
            names: paths, such as 'n_declared' or 'curve.grid'.
        """
        missing = []
        for name in names:
            value: Any = self
            for part in name.split("."):
                value = getattr(value, part)
            if value is None or value == () or value == {}:
                missing.append(name)
        if missing:
            raise ConfigError(
                "\n".join(f"{n}: missing; {_REMEDIES.get(n, f'set it in the file or by --set {n}=..')}" for n in missing)
            )


_REMEDIES = {
    "dataset": "name the population whose budget is charged, in the file or by --dataset",
    "original": "name a table, in the file or by --original",
    "n_declared": "declare the number of persons, in the file or by --n-declared; it is never counted for you",
    "epsilon": "give the total of this release, in the file or by --epsilon",
    "adjacency": "choose add_remove or replace, in the file or by --adjacency",
    "domains": "declare categories (levels) or edges of each column in the file; nothing is read off the data",
    "synthetic.records": "give the number of records, in the file or by --records",
}


def load_release(path: str | Path | None = None, overrides: Mapping[str, Any] | None = None) -> ReleaseConfig:
    """Read a configuration file and lay overrides over it.

    Raises:
        ConfigError: with every fault found, one a line, each under its path.
    """
    return load_as(ReleaseConfig, path, overrides)
