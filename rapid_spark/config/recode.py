"""How columns were coarsened for a release, so that the original can be treated likewise before it is scored."""

from __future__ import annotations

import itertools
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from .base import Model, Name

ONE_OF = ("bands", "mask", "hierarchy", "merge")


class Bands(Model):
    """Ranges in place of numbers: between cuts, or of equal width."""

    cuts: tuple[float, ...] = Field((), description="bounds between bands, ascending")
    width: float | None = Field(None, gt=0, description="width of equal bands, in place of cuts")
    origin: float = Field(0.0, description="where a band of equal width begins")
    closed: Literal["left", "right"] = Field("left", description="the end that belongs to a band")
    style: Literal["interval", "range", "midpoint", "lowest"] = Field(
        "interval", description="[18,30), 18-29 (whole numbers), or a number in the band (equal width only)"
    )
    labels: tuple[Name, ...] = Field((), description="names of the bands, one more than there are cuts")

    @model_validator(mode="after")
    def _fits(self) -> Bands:
        if bool(self.cuts) == (self.width is not None):
            raise ValueError("give cuts or a width, one of them")
        if any(a >= b for a, b in itertools.pairwise(self.cuts)):
            raise ValueError("cuts are different numbers in ascending order")
        if self.labels and len(self.labels) != len(self.cuts) + 1:
            raise ValueError(f"{len(self.cuts)} cuts make {len(self.cuts) + 1} bands, {len(self.labels)} labels are given")
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("two bands have the same label")
        if self.width is None and self.style in ("midpoint", "lowest"):
            raise ValueError(f"style {self.style} needs a width: the outer bands between cuts have no {self.style}")
        if self.width is not None and self.closed == "right":
            raise ValueError("bands of equal width hold their lower end: closed is left")
        if self.style == "range" and not all(float(v).is_integer() for v in (*self.cuts, self.width or 1, self.origin)):
            raise ValueError("style range is for whole numbers: use style interval")
        return self

    @property
    def numeric(self) -> bool:
        """Whether a band is written as a number."""
        return self.style in ("midpoint", "lowest")


class Mask(Model):
    """Characters of a code that are kept; the others are hidden."""

    keep: int = Field(ge=0, description="characters that stay")
    end: bool = Field(False, description="keep the last characters, not the first")
    character: str = Field("*", max_length=1, description="in place of every hidden one; empty cuts them off")
    fill: bool = Field(True, description="false: one character stands for all hidden ones")


class Hierarchy(Model):
    """A file of levels: each line a value, then its coarser levels, as ARX and others write it."""

    path: Name
    level: int = Field(1, ge=1, description="1 is the first level after the value")
    delimiter: str = Field(";", min_length=1, max_length=1)
    header: bool = Field(False, description="whether the first line names the columns")
    encoding: str = "UTF-8"


class Recode(Model):
    """What was done to one column of the release; the original is treated likewise before it is scored."""

    suppressed: tuple[str | int | float, ...] = Field(("*",), description="markers of hidden cells: taken as missing")
    bottom: float | None = Field(None, description="lower numbers become this one")
    bottom_label: Name | None = Field(None, description="or this text")
    top: float | None = Field(None, description="higher numbers become this one")
    top_label: Name | None = Field(None, description="or this text, then for this number too")
    round: float | None = Field(None, gt=0, description="to the nearest multiple, halves upwards")
    bands: Bands | None = Field(None, description="[18, 30, 65], a width, or {width: 10, style: range}")
    mask: Mask | None = None
    hierarchy: Hierarchy | None = None
    merge: dict[str, tuple[str | int | float | bool, ...]] = Field(
        default_factory=dict, description="{new level: [old levels]}"
    )
    other: Name | None = Field(None, description="level of all values that merge or hierarchy does not name")
    drop: bool = Field(False, description="the column is not in the release")
    as_is: bool = Field(False, description="nothing was done, although the tables share hardly a level")

    @field_validator("bands", mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return {"cuts": value}
        return {"width": value} if isinstance(value, (int, float)) and not isinstance(value, bool) else value

    @field_validator("suppressed", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, (str, int, float)) else value

    @model_validator(mode="after")
    def _fits(self) -> Recode:
        given = [name for name in ONE_OF if getattr(self, name)]
        limits = [name for name in ("bottom", "top", "round") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other: a column is recoded in one way")
        if limits and given and given != ["bands"]:
            raise ValueError(f"{', '.join(limits)} are for numbers, {given[0]} for levels")
        if (self.bottom_label or self.top_label) and given:
            raise ValueError("with bands the outer ones are named under bands.labels, not by bottom_label or top_label")
        if self.other is not None and given not in (["merge"], ["hierarchy"]):
            raise ValueError("other goes with merge or hierarchy")
        if (self.bottom_label and self.bottom is None) or (self.top_label and self.top is None):
            raise ValueError("a label for lower or higher numbers needs the number: bottom or top")
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            raise ValueError("bottom is below top")
        if (self.drop or self.as_is) and (given or limits):
            raise ValueError("drop and as_is stand alone")
        named = [str(level) for levels in self.merge.values() for level in levels]
        twice = sorted({level for level in named if named.count(level) > 1})
        if twice:
            raise ValueError(f"{len(twice)} levels are merged into two levels each: a level belongs to one")
        return self

    @property
    def for_numbers(self) -> bool:
        """Whether it takes numbers."""
        return any(v is not None for v in (self.bottom, self.top, self.round, self.bands))

    @property
    def changes(self) -> bool:
        """Whether values change at all, besides suppressed ones."""
        return self.for_numbers or bool(self.mask or self.hierarchy or self.merge)
