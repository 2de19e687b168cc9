"""Scripts of jobs/ run by spark-submit, as a scheduler runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rapid_spark import session

ROOT = Path(__file__).resolve().parent.parent


def submitted(job: str, words: list[str], folder: Path, code: int = 0) -> str:
    """What a script of jobs/ says, run with these words in `folder`; it must end with this code.

    On standard output, its messages too: spark-submit joins the two streams of a script.
    """
    submit = Path(sys.executable).parent / "spark-submit"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    found = subprocess.run([str(submit), *_options(), str(ROOT / "jobs" / job), *words], cwd=folder, env=environment,
                           capture_output=True, text=True, timeout=500)  # fmt: skip
    assert found.returncode == code, found.stdout[-2000:] + found.stderr[-2000:]
    return found.stdout


def document(said: str) -> dict[str, Any]:
    """The JSON document behind the messages."""
    found: dict[str, Any] = json.loads(said[said.index("{") :])
    return found


def _options() -> list[str]:
    """What a cluster's own configuration gives: Delta's jars and extensions."""
    conf = session.local_conf()
    kept = {k: v for k, v in conf.items() if k not in ("spark.app.name", session.STARTED_HERE)}
    return [word for k, v in kept.items() for word in ("--conf", f"{k}={v}")]
