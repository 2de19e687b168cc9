"""Where the files of `conf/` are: inside the installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path


def conf_path(name: str) -> Path:
    """The path of a file or folder of `conf/`, e.g. `conf_path("sql/tables.sql")`.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    package = Path(__file__).resolve().parent
    places = (package / "conf" / name, package.parent / "conf" / name)
    for place in places:
        if place.exists():
            return place
    raise FileNotFoundError(f"conf/{name} is neither in the package nor beside it; install rapid_spark again")
