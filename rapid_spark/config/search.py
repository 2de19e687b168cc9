"""Search for the surface on which an attacker learns most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from .base import Model, Name

ALL = "all"


class Search(Model):
    """What is searched: every attribute against the others, sets of some sizes, or both."""

    all_attributes: bool = Field(False, description="as sensitive_attributes: all; each column against the others")
    sizes: tuple[Annotated[int, Field(ge=1)], ...] = Field((), description="as qi_sets: {sizes: [2, 3], from: [..]}")
    columns: tuple[Name, ...] = Field((), description="columns that sets are made from; all when left out")
    alone: bool = Field(True, description="also each column alone, for the heat map")
    cheap: Name = Field("cart", description="attacker that goes over all surfaces")
    worst: int = Field(3, ge=0, le=50, description="surfaces that all attackers are tried on")
    max_fits: int = Field(5_000, ge=1, description="more fits than that are refused")
    max_train_rows: int = Field(100_000, ge=10, description="release rows the cheap attacker learns from")

    @model_validator(mode="after")
    def _different(self) -> Search:
        for name, values in (("sizes", self.sizes), ("from", self.columns)):
            twice = sorted({str(v) for v in values if list(values).count(v) > 1})
            if twice:
                raise ValueError(f"{name}: {', '.join(twice)} is named twice")
        return self

    @property
    def active(self) -> bool:
        """Whether a search is asked for."""
        return self.all_attributes or bool(self.sizes)


def short_forms(value: Any) -> Any:
    """`sensitive_attributes: all` and `qi_sets: {sizes: .., from: ..}` as settings of `search`."""
    if not isinstance(value, Mapping):
        return value
    given = dict(value)
    found: dict[str, Any] = {}
    attributes = given.get("sensitive_attributes")
    if attributes == ALL or attributes in ([ALL], (ALL,)):
        found["all_attributes"] = True
        given["sensitive_attributes"] = ()
    sets = given.get("qi_sets")
    if isinstance(sets, Mapping) and "sizes" in sets and set(sets) <= {"sizes", "from"} and _numbers(sets["sizes"]):
        sizes = sets["sizes"]
        found["sizes"] = sizes if isinstance(sizes, (list, tuple)) else (sizes,)
        found["columns"] = sets.get("from") or ()
        given["qi_sets"] = {}
    if found:
        given["search"] = {**dict(given.get("search") or {}), **found}
    return given


def _numbers(sizes: Any) -> bool:
    several = sizes if isinstance(sizes, (list, tuple)) else [sizes]
    return bool(several) and all(isinstance(s, int) and not isinstance(s, bool) for s in several)
