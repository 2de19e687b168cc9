"""What was exported before: one row per publication, kept for ever, so that the next can be held against it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pandas as pd

from rapid_spark.store import Store

from .document import Document

TABLE = "exports"


def enter(store: Store, document: Document, content: bytes) -> None:
    """Append a row per registry and release of a document that is about to be handed out."""
    protection = document.manifest["protection"]
    rows = pd.DataFrame([
        {
            "run_id": document.manifest["run_id"], **item, "rounding": protection["rounding"],
            "min_cell_count": protection["min_cell_count"], "sha256": hashlib.sha256(content).hexdigest(),
            "exported_at": datetime.now(UTC),
        }
        for item in document.manifest["releases"]
    ])  # fmt: skip
    store.append(TABLE, rows)
