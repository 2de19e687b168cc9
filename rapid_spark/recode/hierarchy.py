"""Read a file of levels: each line a value, then its coarser levels."""

from __future__ import annotations

import csv
from pathlib import Path

from ..config import ConfigError, Hierarchy, suggest


def read(hierarchy: Hierarchy, where: str) -> dict[str, str]:
    """The level of each value, by value.

    Args:
        hierarchy: the file and the level wanted.
        where: path of the setting, for messages.

    Raises:
        ConfigError: the file cannot be read, has no such level, or gives a value two levels.
    """
    path = Path(hierarchy.path).expanduser()
    try:
        text = path.read_text(encoding=hierarchy.encoding).removeprefix("\ufeff")
    except FileNotFoundError:
        near = suggest(path.name, [p.name for p in path.parent.iterdir()]) if path.parent.is_dir() else ""
        raise ConfigError(f"{where}.path: no file {hierarchy.path}.{near}") from None
    except (OSError, UnicodeDecodeError, LookupError) as error:
        raise ConfigError(f"{where}.path: {hierarchy.path} cannot be read: {type(error).__name__}") from None
    rows = [row for row in csv.reader(text.splitlines(), delimiter=hierarchy.delimiter) if any(c.strip() for c in row)]
    rows = rows[1:] if hierarchy.header else rows
    if not rows:
        raise ConfigError(f"{where}.path: {hierarchy.path} is empty: expected a value and its levels on each line")
    levels = min(len(row) for row in rows) - 1
    if levels < hierarchy.level:
        hint = f" Is {hierarchy.delimiter!r} the delimiter?" if levels == 0 else ""
        raise ConfigError(f"{where}.level: {hierarchy.path} has {levels} levels, not {hierarchy.level}.{hint}")
    found: dict[str, str] = {}
    for number, row in enumerate(rows, 1 + hierarchy.header):
        value, level = row[0].strip(), row[hierarchy.level].strip()
        if found.setdefault(value, level) != level:
            raise ConfigError(f"{where}.path: line {number} of {hierarchy.path} gives a value a second, other level")
    return found
