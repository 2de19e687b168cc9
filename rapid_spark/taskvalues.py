"""Hand a result on to the next task of a Databricks job, where there is one."""

from __future__ import annotations

import os
from typing import Any

CLEARED = "cleared"  # read by the condition task of databricks.yml


def hand_on(name: str, value: str, utilities: Any = None) -> bool:
    """Set a task value, which later tasks of the job read as {{tasks.TASK.values.NAME}}.

    Args:
        name: of the value.
        value: short text; conditions compare text.
        utilities: the platform's `dbutils`; looked up on Databricks when left out.

    Returns:
        Whether there was a job to tell. Elsewhere nothing happens.
    """
    if utilities is None:
        if "DATABRICKS_RUNTIME_VERSION" not in os.environ:
            return False
        try:
            from databricks.sdk.runtime import dbutils as utilities
        except Exception:  # an environment without it: the exit code remains
            return False
    utilities.jobs.taskValues.set(key=name, value=value)
    return True
