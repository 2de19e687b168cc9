"""Configuration files, and what is laid over them from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from .base import ConfigError, Model, parse_as, suggest
from .evaluation import Config

M = TypeVar("M", bound=Model)


def load(path: str | Path | None = None, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read a configuration file and lay overrides (`{"training.seed": 7}`) over it.

    Raises:
        ConfigError: with every fault found, one a line, each under its path.

    Example:
        >>> from pathlib import Path
        >>> from rapid_spark import load
        >>> _ = Path("rapid.yml").write_text("quasi_identifiers: [age, gender]\\nsensitive_attributes: [income]\\n")
        >>> load("rapid.yml", {"training.seed": 7}).training.seed
        7
    """
    return load_as(Config, path, overrides)


def load_as(model: type[M], path: str | Path | None, overrides: Mapping[str, Any] | None = None) -> M:
    """The same for any model of settings."""
    data = read(Path(path)) if path is not None else {}
    for key, value in (overrides or {}).items():
        _lay(data, key.split("."), value, key)
    return parse_as(model, data, str(path) if path is not None else None)


def parse(data: Mapping[str, Any], source: str | None = None) -> Config:
    """The configuration of one evaluation from plain data, or ConfigError with every fault under its path."""
    return parse_as(Config, data, source)


def parse_set(text: str) -> tuple[str, Any]:
    """Split `path.to.key=value`; the value is read as YAML (a number, a list, text)."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text!r}: expected path.to.key=value, e.g. training.seed=7")
    try:
        return key.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(f"--set {key}: the value is not valid YAML") from None


def read(path: Path) -> dict[str, Any]:
    """The keys of a YAML file; no tag of it can make anything but plain data."""
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
