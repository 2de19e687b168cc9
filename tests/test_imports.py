"""The house rules of imports, held by reading the source: nothing is imported here but the standard library."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "rapid_spark"
# From the bottom up: a module imports from lower rows only; modules of one row may import each other where the
# sub-package is one idea.
ROWS = (
    ("version", "locks", "kept", "sidebyside", "strictjson", "readonly", "simulate", "intervals", "resources", "kinds",
     "quality", "frames", "taskvalues", "places", "nearest", "glossary"),
    ("config", "attackers", "results", "suite", "suppression", "attribution", "clusters", "distributions", "weights"),
    ("session", "csvfile", "keyed", "parquetfile", "statfile", "digest", "tables", "tracked", "risk", "scoring", "reaedp", "synthesizers",
     "wording", "publishing", "granularity"),
    ("interruption",),
    ("underway",),
    ("spreading", "io", "levels", "plots", "resampling", "strata", "tracking", "warehouse", "policy",
     "evidence"),
    ("thresholds", "joint"),
    ("aggregates",),
    ("profiles", "relations", "report", "roles", "store", "studies", "summary", "markdown"),
    ("agreement", "continuous", "continuous_null", "dates", "drivers", "microdata", "history", "recode",
     "upkeep", "latetracking"),
    ("generation", "normalise"),
    ("counts",),
    ("findings", "overlap"),
    ("schema",),
    ("training", "survey", "decisions", "shared_columns"),
    ("control", "models", "pipeline"),
    ("rows",),
    ("evaluation",),
    ("attack", "disclosure", "utility"),
    ("preparation",),
    ("run", "releases"),
    ("recording",),
    ("sweep",),
    ("surface",),
    ("audit", "federation"),
    ("advice",),
    ("cli",),
    ("__main__",),
)
WITHOUT_SPARK = ("config", "attackers", "policy", "reaedp")
MAY_USE_SPARK = {"reaedp/histogram.py", "reaedp/curves.py"}
CLASSIC_ONLY = re.compile(r"sparkContext|\b_jvm\b|\b_jsc\b|\.rdd\b|\b_jdf\b|SparkContext")


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def unit(path: Path) -> str:
    """The module or sub-package at the top level that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Full names that a file imports, also within functions; relative ones resolved."""
    package = ["rapid_spark", *path.relative_to(PACKAGE).parts[:-1]]
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            whole = ".".join([*base, *filter(None, [node.module])])
            names |= {f"{whole}.{alias.name}" for alias in node.names}
    return names


def own(path: Path) -> set[str]:
    """Top-level units of the package that a file imports from."""
    return {name.split(".")[1] for name in imported(path) if name.startswith("rapid_spark.")} - {unit(path)}


def test_every_module_has_its_row() -> None:
    known = {name for row in ROWS for name in row}
    assert {unit(path) for path in modules()} - {"__init__"} <= known


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downwards_only(path: Path) -> None:
    if unit(path) == "__init__":
        return
    row = {name: i for i, names in enumerate(ROWS) for name in names}
    upward = {name for name in own(path) if name in row and row[name] > row[unit(path)]}
    assert not upward


def test_no_two_modules_import_each_other() -> None:
    graph: dict[str, set[str]] = {}
    for path in modules():
        if unit(path) != "__init__":
            graph.setdefault(unit(path), set()).update(own(path) & {unit(p) for p in modules()})
    assert not _cycle(graph)


def _cycle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that are left when those without imports are taken away again and again."""
    left = {name: set(needs) for name, needs in graph.items()}
    while free := {name for name, needs in left.items() if not needs & set(left)}:
        left = {name: needs for name, needs in left.items() if name not in free}
    return sorted(left)


@pytest.mark.parametrize("name", WITHOUT_SPARK)
def test_modules_without_spark_import_none(name: str) -> None:
    files = [path for path in modules() if unit(path) == name]
    files = [path for path in files if path.relative_to(PACKAGE).as_posix() not in MAY_USE_SPARK]
    found = {path.name for path in files if any(n.split(".")[0] == "pyspark" for n in imported(path))}
    assert not found


def test_only_two_places_know_the_classic_session() -> None:
    """Everything else runs under Spark Connect too, which has no SparkContext, RDD or access to the JVM."""
    lines = [
        (path.relative_to(PACKAGE).as_posix(), number, line)
        for path in modules()
        if path.name != "session.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if CLASSIC_ONLY.search(line)
    ]
    assert {where for where, _, _ in lines} <= {"scoring.py"}
    ship = _span(PACKAGE / "scoring.py", "ship")
    assert all(number in ship for _, number, _ in lines)


def _span(path: Path, function: str) -> range:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return range(0)
