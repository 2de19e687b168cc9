"""Rates that a search has found so far, as lines of a file, so that it goes on where it was stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..config import ConfigError
from ..strictjson import dumps
from .figures import Rate


class Progress:
    """The file of a search. Its first line says what was searched; a search of anything else does not go on with it."""

    def __init__(self, path: Path, what: str) -> None:
        """Name the file.

        Args:
            path: of the file; made with the first rates.
            what: digest of tables and settings.
        """
        self.path, self.what = path, what

    def read(self) -> list[Rate]:
        """Rates found before; none where there is no file. A last line that was cut off is left out.

        Raises:
            ConfigError: the file is of another search.
        """
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").split("\n")
        try:
            found = json.loads(lines[0])["search"]
        except (ValueError, KeyError, TypeError):
            raise ConfigError(f"{self.path} is not the progress of a search: name another folder with --output") from None
        if found != self.what:
            raise ConfigError(
                f"{self.path} is of another search (its tables or settings differ): name another folder with --output"
            )
        rates = []
        for line in lines[1:-1]:  # what follows the last line break was cut off, or is nothing
            row = json.loads(line)
            rates.append(Rate(**{**row, "known": tuple(row["known"])}))
        return rates

    def add(self, rates: Sequence[Rate]) -> None:
        """Append rates; complete lines only."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        begun = self.path.exists()
        if begun:
            self._cut()
        with self.path.open("a", encoding="utf-8") as file:
            if not begun:
                file.write(dumps({"search": self.what}) + "\n")
            file.write("".join(dumps(r.row()) + "\n" for r in rates))

    def _cut(self) -> None:
        """Take away a line that was not finished."""
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            self.path.write_bytes(whole)
