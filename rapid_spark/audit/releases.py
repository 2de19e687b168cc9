"""Releases by a path pattern: which files there are, and which release and copy each is."""

from __future__ import annotations

import glob
import re
from datetime import date
from pathlib import Path

from rapid_spark.config import ConfigError, Table, check_identifier

from .settings import Registry, Release

PLACE = re.compile(r"(\*|\{release\}|\{replicate\})")
DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)(?:[-_.]?(0[1-9]|1[0-2])(?:[-_.]?([0-2]\d|3[01]))?)?(?!\d)")


def listed(registry: Registry) -> tuple[Release, ...]:
    """The registry's releases, the earliest first; those of a pattern are looked up now.

    By date where all have one, otherwise as they are listed (of a pattern: by id).

    Raises:
        ConfigError: no file matches a pattern, or two files are the same copy of a release.
    """
    found = registry.releases if not isinstance(registry.releases, str) else matching(registry.releases, registry.name)
    if all(r.date is not None for r in found):
        return tuple(sorted(found, key=lambda r: (r.date or date.min, r.id)))
    return tuple(found)


def matching(pattern: str, where: str) -> tuple[Release, ...]:
    """Releases whose files match a pattern, by id.

    `{release}` stands for the id and `{replicate}` for the number of a copy; without `{release}` the id is what the
    asterisks stand for. A date in the id (2025, 2025-03, 2025-03-01) is taken for the release's date.
    """
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", pattern):
        raise ConfigError(f"registries.{where}.releases: a pattern works on paths of this machine, volumes too; list others")
    files = sorted(glob.glob(_as_glob(pattern)))
    if not files:
        raise ConfigError(f"registries.{where}.releases: no file matches {pattern}")
    copies: dict[str, dict[int, str]] = {}
    for file in files:
        match = _as_regex(pattern).fullmatch(Path(file).as_posix())
        if match is None:
            continue
        named = match.groupdict()
        text = named.get("release") or "-".join(v for k, v in named.items() if k.startswith("part") and v)
        try:
            release = check_identifier(text)
        except ValueError as error:
            raise ConfigError(f"registries.{where}.releases: {file}: {error}") from None
        number = int(named["replicate"]) if named.get("replicate") else 1
        if copies.setdefault(release, {}).setdefault(number, file) != file:
            raise ConfigError(f"registries.{where}.releases: {file} and {copies[release][number]} are one copy of {release}")
    return tuple(
        Release(id=i, date=_date(i), tables=tuple(Table(path=f) for _, f in sorted(of.items())))
        for i, of in sorted(copies.items())
    )


def _as_glob(pattern: str) -> str:
    return "".join("*" if PLACE.fullmatch(part) else glob.escape(part) for part in PLACE.split(pattern))


def _as_regex(pattern: str) -> re.Pattern[str]:
    seen: set[str] = set()
    parts = []
    for i, part in enumerate(PLACE.split(Path(pattern).as_posix())):
        name = part.strip("{}")
        if part == "*":
            parts.append(f"(?P<part{i}>[^/]*)")
        elif PLACE.fullmatch(part) and name in seen:
            parts.append(f"(?P={name})")
        elif PLACE.fullmatch(part):
            seen.add(name)
            parts.append(f"(?P<{name}>{'[0-9]+' if name == 'replicate' else '[^/]+?'})")
        else:
            parts.append(re.escape(part))
    return re.compile("".join(parts))


def _date(release: str) -> date | None:
    found = DATE.search(release)
    if found is None:
        return None
    year, month, day = (int(part) if part else 1 for part in found.groups())
    try:
        return date(year, month, day)
    except ValueError:
        return None
