"""A path as given, and whether it is on this machine's file system."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
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


def bytes_of(paths: Iterable[str]) -> int:
    """Bytes of the files at these paths, folders with all that is in them; what cannot be read here counts nothing."""
    total = 0
    for path in paths:
        local = location_of(path).local
        if local is None:
            continue
        with contextlib.suppress(OSError):  # whoever reads the table says what is wrong with it
            files = [local] if local.is_file() else [f for f in local.rglob("*") if f.is_file()]
            total += sum(file.stat().st_size for file in files)
    return total
