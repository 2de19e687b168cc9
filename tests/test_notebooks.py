"""Every notebook runs from top to bottom as Databricks would run it, uses public names only and draws something."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import matplotlib.figure
import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
HEAD = "# Databricks notebook source\n"
CELL = "\n# COMMAND ----------\n"


def cells(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith(HEAD)
    return [cell.strip("\n") for cell in text.removeprefix(HEAD).split(CELL)]


def is_code(cell):
    return not cell.startswith("# MAGIC")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_form(path):
    """Short, described, without definitions, and with names that the package shows in public."""
    assert re.fullmatch(r"\d\d_[a-z_]+\.py", path.name) and len(path.read_text(encoding="utf-8").splitlines()) < 130
    found = cells(path)
    assert all(line.startswith("# MAGIC") for cell in found if not is_code(cell) for line in cell.splitlines())
    assert not is_code(found[0]) and found[0].startswith("# MAGIC %md\n# MAGIC # ")
    for cell in filter(is_code, found):
        for node in ast.walk(ast.parse(cell)):
            assert not isinstance(node, (ast.FunctionDef, ast.ClassDef))
            if isinstance(node, ast.ImportFrom) and node.module.startswith("rapid_spark"):
                module = importlib.import_module(node.module)
                assert all(not alias.name.startswith("_") and hasattr(module, alias.name) for alias in node.names)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, spark, tmp_path, monkeypatch):
    """The last expression of each cell is shown, as in a notebook; at least one of them is a figure."""
    monkeypatch.chdir(tmp_path)
    scope = {"spark": spark, "__name__": "notebook"}
    shown = []
    for cell in filter(is_code, cells(path)):
        tree = ast.parse(cell)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), scope)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), path.name, "eval"), scope))
    figures = [item for item in shown if isinstance(item, matplotlib.figure.Figure)]
    assert figures and all(figure.get_axes() for figure in figures)
    assert all(len(line.get_xdata()) for figure in figures for axes in figure.get_axes() for line in axes.get_lines())
