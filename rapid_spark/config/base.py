"""What all settings share: frozen models, and every fault reported at once under its path."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

IDENTIFIER = re.compile(r"[A-Za-z0-9._-]{1,128}")

Share = Annotated[float, Field(gt=0, lt=1)]
Name = Annotated[str, Field(min_length=1)]


class ConfigError(ValueError):
    """The user's configuration or command line is at fault; the text names path, value kind and remedy.

    Example:
        >>> from rapid_spark import ConfigError, load
        >>> try:
        ...     load(overrides={"training.seeed": 7})
        ... except ConfigError as error:
        ...     print("training.seeed" in str(error))
        True
    """


class Model(BaseModel):
    """Base of all settings: frozen, no unknown keys, numbers finite, defaults held to their own rules."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _empty_sections(cls, value: Any) -> Any:
        # A section whose keys are all commented out reads as null: it stands for its defaults.
        if not isinstance(value, dict):
            return value
        sections = {name for name, field in cls.model_fields.items() if isinstance(field.default, Model)}
        return {key: inner for key, inner in value.items() if inner is not None or key not in sections}


M = TypeVar("M", bound=Model)


def parse_as(model: type[M], data: Mapping[str, Any], source: str | None = None) -> M:
    """Build a model from plain data, or raise ConfigError with every fault under its path."""
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        lines = [_fault(e, model) for e in error.errors()]
        where = f" in {source}" if source else ""
        count = "a fault" if len(lines) == 1 else f"{len(lines)} faults"
        raise ConfigError(f"{count}{where}:\n" + "\n".join(f"  {line}" for line in lines)) from None


def check_identifier(value: str) -> str:
    """Return an id unchanged, or raise ValueError saying what an id may hold."""
    if not IDENTIFIER.fullmatch(value):
        raise ValueError(f"{value[:140]!r} is not an id: letters, digits, '.', '_' and '-', 1 to 128 of them")
    return value


def suggest(name: str, known: Iterable[str]) -> str:
    """' Did you mean ...?' for the nearest known names, or an empty text."""
    known = [str(k) for k in known]
    lower = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(lower[n]) for n in near)}?" if near else ""


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
