"""A path as given, and whether it is on this machine's file system."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

GLOB = re.compile(r"([\\{}\[\]*?])")


@dataclass(frozen=True)
class Location:
    """A path as given, and the local one where it is on this machine's file system."""

    given: str
    local: Path | None

    @property
    def for_spark(self) -> str:
        """The path for Spark, which would take some characters for a pattern."""
        return GLOB.sub(r"\\\1", str(self.local)) if self.local else self.given


def location_of(path: str) -> Location:
    """Where a path leads: `s3://..` and the like elsewhere; `file:` and plain ones to this machine."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path) and not path.startswith("file:"):
        return Location(path, None)
    plain = re.sub(r"^file:(//)?(?=/)", "", path)
    return Location(path, Path(plain).expanduser().absolute())
