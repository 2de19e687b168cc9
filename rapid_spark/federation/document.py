"""The file that carries a run's aggregates: one JSON document that its sender can read; no Spark, no store.

    {"format": "rapid-spark-export", "manifest": {...}, "manifest_sha256": "..", "signature": null or {...},
     "tables": {"risk_summary": {"columns": [..], "rows": [[..], ..]}, ..}, "settings": {..}, "package_versions": {..}}

The manifest holds the SHA-256 digest of every part, in canonical JSON (keys sorted, no blanks, ASCII), and its number of
rows. Digests find damage and careless changes. Only a signature, HMAC-SHA-256 (RFC 2104) of the manifest with a key that
sender and receiver share, tells that nobody else has made or changed the file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import pandas as pd

from rapid_spark.config import ConfigError
from rapid_spark.strictjson import strict
from rapid_spark.tables import SCHEMA_VERSION, Table, tables

FORMAT = "rapid-spark-export"
ALGORITHM = "HMAC-SHA-256"
SHORTEST_KEY = 16  # bytes
LARGEST = 512 * 2**20  # bytes of a file that is read
OTHER_PARTS = ("settings", "package_versions")


@dataclass(frozen=True)
class Document:
    """What a file holds.

    Attributes:
        manifest: of the run: ids, times, protection, digests.
        tables: by name, pandas frames in the columns of the store.
        settings: what was asked, without places.
        package_versions: of the sender.
        signed: whether a signature was verified.
        sha256: of the manifest, and so of everything.
    """

    manifest: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame] = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    package_versions: Mapping[str, Any] = field(default_factory=dict, repr=False)
    signed: bool = False
    sha256: str = ""


def encode(document: Document, key: bytes | None = None) -> bytes:
    """The file of a document, signed where a key is given.

    Args:
        document: digests are made here; those of its manifest are not read.
        key: secret of sender and receiver, at least 16 bytes.

    Raises:
        ConfigError: the key is too short.
    """
    parts: dict[str, Any] = {name: _rows(tables()[name], frame) for name, frame in document.tables.items()}
    others = {"settings": strict(document.settings), "package_versions": strict(document.package_versions)}
    manifest = strict(document.manifest) | {
        "schema_version": SCHEMA_VERSION,
        "tables": {name: {"rows": len(part["rows"]), "sha256": digest(part)} for name, part in parts.items()},
        "parts": {name: {"sha256": digest(part)} for name, part in others.items()},
    }
    whole = {
        "format": FORMAT,
        "manifest": manifest,
        "manifest_sha256": digest(manifest),
        "signature": None if key is None else {"algorithm": ALGORITHM, "value": sign(manifest, key)},
        "tables": parts,
        **others,
    }
    return (json.dumps(whole, ensure_ascii=True, allow_nan=False, indent=1) + "\n").encode("ascii")


def decode(content: bytes, key: bytes | None = None, allow_unverified: bool = False) -> Document:
    """The document of a file, once everything in it has been verified.

    Args:
        content: of the file.
        key: verifies the signature.
        allow_unverified: take a file without signature though there is a key, or one that is signed without a key.

    Raises:
        ConfigError: not such a file, of an unknown schema version, damaged, tampered with, or not verifiable.
    """
    whole = _parsed(content)
    manifest = whole["manifest"]
    _check_version(manifest.get("schema_version"))
    signed = _check_signature(manifest, whole.get("signature"), key, allow_unverified)
    if whole.get("manifest_sha256") != digest(manifest):
        raise _changed("the manifest")
    frames = {name: _frame(name, part, _said(manifest, "tables", name)) for name, part in whole["tables"].items()}
    missing = sorted(set(manifest["tables"]) - set(frames))
    if missing:
        raise ConfigError(f"the file lacks {', '.join(missing)}, which its manifest lists: it was cut or tampered with")
    for name in OTHER_PARTS:
        if _said(manifest, "parts", name)["sha256"] != digest(whole.get(name)):
            raise _changed(name)
    return Document(manifest, frames, whole["settings"], whole["package_versions"], signed, whole["manifest_sha256"])


def canonical(value: Any) -> bytes:
    """A value as canonical JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def digest(value: Any) -> str:
    """SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


def sign(manifest: Mapping[str, Any], key: bytes) -> str:
    """HMAC-SHA-256 of a manifest, in hexadecimal.

    Raises:
        ConfigError: the key is too short.
    """
    if len(key) < SHORTEST_KEY:
        raise ConfigError(f"the signing key has {len(key)} bytes: at least {SHORTEST_KEY} are needed, random ones")
    return hmac.new(key, canonical(manifest), hashlib.sha256).hexdigest()


def _parsed(content: bytes) -> dict[str, Any]:
    if len(content) > LARGEST:
        raise ConfigError(f"the file has {len(content):,} bytes; an export has at most {LARGEST:,}")
    try:
        whole = json.loads(content.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ConfigError("not an export: the file is no JSON document, or was cut or changed") from None
    known = {"format", "manifest", "manifest_sha256", "signature", "tables", *OTHER_PARTS}
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise ConfigError(f"not an export of rapid-spark: its format is not {FORMAT!r}")
    manifest = whole.get("manifest")
    shapes = isinstance(manifest, dict) and all(isinstance(manifest.get(k, {}), dict) for k in ("tables", "parts"))
    if not shapes or not all(isinstance(whole.get(name), dict) for name in ("tables", *OTHER_PARTS)):
        raise ConfigError("not an export: parts of the document are missing")
    if set(whole) - known:
        raise ConfigError("the file holds more than an export does: it was tampered with, or comes from a newer version")
    return whole


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def _no_constant(_: str) -> Any:
    raise ValueError("not a number")


def _check_version(version: Any) -> None:
    if version != SCHEMA_VERSION or isinstance(version, bool):
        found = f"schema version {version}" if isinstance(version, int) else "no schema version"
        raise ConfigError(f"the file has {found}, this installation reads {SCHEMA_VERSION}: install the sender's version")


def _check_signature(manifest: Mapping[str, Any], signature: Any, key: bytes | None, allow_unverified: bool) -> bool:
    if signature is None:
        if key is not None and not allow_unverified:
            raise ConfigError("the file is not signed though a key is set: have it signed, or say --allow-unverified")
        return False
    if key is None:
        if not allow_unverified:
            raise ConfigError(
                "the file is signed and there is no key to verify it: set the key in the environment (--key-env), "
                "or say --allow-unverified"
            )
        return False
    value = signature.get("value") if isinstance(signature, dict) else None
    algorithm = signature.get("algorithm") if isinstance(signature, dict) else None
    expected = sign(manifest, key)
    if algorithm != ALGORITHM or not hmac.compare_digest(str(value).encode("utf-8"), expected.encode("ascii")):
        raise ConfigError("the signature does not fit: the file was tampered with, or signed with another key")
    return True


def _said(manifest: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    said = manifest.get(kind, {}).get(name)
    if not isinstance(said, dict):
        raise ConfigError(f"the manifest does not list {name}, which the file holds: it was tampered with")
    return said


def _changed(what: str) -> ConfigError:
    return ConfigError(f"{what} does not fit its SHA-256 digest: the file was damaged or tampered with")


def _rows(table: Table, frame: pd.DataFrame) -> dict[str, Any]:
    """A frame as columns and rows, in an order that does not depend on how the store holds it."""
    columns = [name for name in table.columns if name in frame]
    rows = [[_out(v) for v in row] for row in frame[columns].itertuples(index=False, name=None)]
    return {"columns": columns, "rows": sorted(rows, key=canonical)}


def _out(value: Any) -> Any:
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat(timespec="microseconds")
    return strict(value)


def _frame(name: str, part: Any, said: Mapping[str, Any]) -> pd.DataFrame:
    table = tables().get(name)
    if table is None:
        raise ConfigError(f"the file holds a table {name[:60]!r}, which no store has: it was tampered with")
    if said.get("sha256") != digest(part):
        raise _changed(f"table {name}")
    columns = part.get("columns") if isinstance(part, dict) else None
    rows = part.get("rows") if isinstance(part, dict) else None
    if not isinstance(columns, list) or not isinstance(rows, list) or said.get("rows") != len(rows):
        raise ConfigError(f"table {name} is not in the form of an export")
    unknown = [c for c in columns if c not in table.columns]
    if unknown or len(set(map(str, columns))) != len(columns):
        raise ConfigError(f"table {name} has columns that no store has, or one twice: install the sender's version")
    if any(not isinstance(row, list) or len(row) != len(columns) for row in rows):
        raise ConfigError(f"table {name} has rows of the wrong length")
    types = [table.columns[c].type for c in columns]
    try:
        made = [[_back(v, kind) for v, kind in zip(row, types, strict=True)] for row in rows]
    except (ValueError, TypeError):
        raise ConfigError(f"table {name} has values that are no dates or times") from None
    return pd.DataFrame(made, columns=columns, dtype=object)


def _back(value: Any, kind: str) -> Any:
    if value is None or kind not in ("date", "timestamp"):
        return value
    if kind == "date":
        return date.fromisoformat(value)
    found = datetime.fromisoformat(value)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
