"""What must be known of a CSV file before Spark reads it: its header, and whether it is whole, text and one line a record.

Spark's own reader renames duplicate headers and splits quoted line breaks without a word, so the files are looked at
here first, in pieces: memory does not depend on their size, and nothing of their content is kept.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from .config import ConfigError

CHUNK = 2**22
OTHER_DELIMITERS = {";": "semicolon", "\t": "tab", "|": "vertical bar", ",": "comma"}
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
GZIP = b"\x1f\x8b"
WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32")  # a character is no single byte
# Character sets Spark reads itself, by Python's name.
SPARK_NAMES = {
    "utf-8": "UTF-8", "ascii": "US-ASCII", "iso8859-1": "ISO-8859-1", "utf-16": "UTF-16", "utf-16-le": "UTF-16LE",
    "utf-16-be": "UTF-16BE", "utf-32": "UTF-32",
}  # fmt: skip


@dataclass(frozen=True)
class Encoding:
    """A character encoding, as Python and as Spark name it.

    Attributes:
        python: Python's name of the codec.
        spark: the name Spark reads the file with.
        translation: characters Spark got wrong and the right ones, for single-byte encodings Spark does not know.
    """

    python: str
    spark: str
    translation: tuple[str, str] | None = None

    @property
    def wide(self) -> bool:
        """Whether a character takes at least two bytes, so that bytes of a comma or a line end mean nothing."""
        return self.python in WIDE


@dataclass(frozen=True)
class Facts:
    """What the first look at some CSV files found.

    Attributes:
        columns: names from the header; an empty one is called as pandas calls it.
        multi_line: whether a quoted field holds a line break, so that a file cannot be split.
        size: bytes, unpacked.
    """

    columns: tuple[str, ...]
    multi_line: bool
    size: int


def encoding_of(name: str) -> Encoding:
    """Find an encoding by any of its names.

    Raises:
        ConfigError: it is unknown, or Spark can read it by no means.
    """
    try:
        python = codecs.lookup(name).name.replace("_", "-")
    except LookupError:
        raise ConfigError(f"encoding {name!r} is unknown: e.g. UTF-8, windows-1252, ISO-8859-15, UTF-16") from None
    python = "utf-8" if python == "utf-8-sig" else python
    if python in SPARK_NAMES:
        return Encoding(python, SPARK_NAMES[python])
    right = [_character(b, python) for b in range(256)]
    if right[:128] != [chr(b) for b in range(128)] or None in right:
        raise ConfigError(f"encoding {name!r} cannot be read: convert the file to UTF-8")
    wrong = [(chr(b), c) for b, c in enumerate(right) if c and chr(b) != c]
    return Encoding(python, "ISO-8859-1", ("".join(w for w, _ in wrong), "".join(c for _, c in wrong)))


def _character(byte: int, codec: str) -> str | None:
    """What a byte stands for; '' where it stands for nothing, None where it takes several bytes."""
    try:
        return bytes([byte]).decode(codec)
    except UnicodeDecodeError as error:
        return "" if "undefined" in error.reason else None
    except (LookupError, UnicodeError):  # no encoding of text
        return None


def look(files: Iterable[Path], delimiter: str, encoding: Encoding) -> Facts:
    """Read the files once, in pieces.

    Raises:
        ConfigError: a file is empty, truncated, not text in this encoding, has duplicate or misread columns, an
            unclosed quotation mark, or another header than the first one.
    """
    first: tuple[str, ...] | None = None
    multi_line, size = encoding.wide, 0
    for path in files:
        broken_line, length = _scan(path, encoding)
        columns = _header(path, delimiter, encoding)
        if first is None:
            first, first_path = columns, path
        elif columns != first:
            differing = [repr(c) for c in (*columns, *first) if (c in columns) != (c in first)]
            what = f"differs in {', '.join(differing[:10])}" if differing else "has the columns in another order"
            raise ConfigError(f"{path.name}: the header {what} from that of {first_path.name} in the same folder")
        multi_line, size = multi_line or broken_line, size + length
    assert first is not None
    return Facts(first, multi_line, size)


def check_names(columns: Iterable[str], where: str) -> None:
    """Refuse column names that occur twice or differ only in case.

    Raises:
        ConfigError: with all such names.
    """
    columns = list(columns)
    by_lower: dict[str, list[str]] = {}
    for column in columns:
        by_lower.setdefault(column.lower(), []).append(column)
    faults = []
    for names in by_lower.values():
        if len(names) > len(set(names)):
            faults.append(f"column {names[0]!r} is there {len(names)} times")
        elif len(names) > 1:
            faults.append(f"columns {' and '.join(map(repr, names))} differ only in case")
    if faults:
        raise ConfigError(f"{where}: {'; '.join(faults)}. Rename them, so that each name stands for one column")


def name_columns(header: Iterable[str]) -> tuple[str, ...]:
    """Names of a header's fields; an empty one is named by its position, as pandas does it."""
    return tuple(name if name.strip() else f"Unnamed: {i}" for i, name in enumerate(header))


def header_faults(columns: tuple[str, ...], delimiter: str, where: str) -> None:
    """Refuse duplicate names, and a single column that looks like several with another delimiter.

    Raises:
        ConfigError
    """
    if len(columns) == 1:
        for other, spoken in OTHER_DELIMITERS.items():
            if other != delimiter and other in columns[0]:
                raise ConfigError(
                    f"{where}: with delimiter {delimiter!r} the header is one single column; it holds the "
                    f"{spoken} {columns[0].count(other)} times: set delimiter: {other!r} for this table"
                )
    check_names(columns, where)


def _header(path: Path, delimiter: str, encoding: Encoding) -> tuple[str, ...]:
    codec = "utf-8-sig" if encoding.python == "utf-8" else encoding.python
    with _open(path) as raw, io.TextIOWrapper(raw, encoding=codec, newline="") as text:
        try:
            header = next((row for row in csv.reader(text, delimiter=delimiter) if row), None)
        except csv.Error:
            header = None
    if header is None:
        raise ConfigError(f"{path}: the file is empty: expected a header line and one line per person")
    columns = name_columns(header)
    header_faults(columns, delimiter, str(path))
    return columns


def _scan(path: Path, encoding: Encoding) -> tuple[bool, int]:
    """Whether a quoted field holds a line break, and the unpacked size."""
    decoder = codecs.getincrementaldecoder(encoding.python)("strict")
    quoted, broken_line, size, lines = False, False, 0, 0
    for i, chunk in enumerate(_chunks(path)):
        if i == 0:
            _check_start(path, chunk, encoding)
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            line = lines + 1 + error.object[: error.start].count(b"\n")
            raise ConfigError(_encoding_fault(path, line, encoding)) from None
        if not encoding.wide:
            if b"\0" in chunk:
                raise ConfigError(f"{path}: not a text file (it holds zero bytes), so it cannot be CSV")
            broken, quoted = _quotes(chunk, quoted)
            broken_line = broken_line or broken
            lines += chunk.count(b"\n")
        size += len(chunk)
    try:
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        raise ConfigError(_encoding_fault(path, lines + 1, encoding)) from None
    if quoted:
        raise ConfigError(
            f"{path}: a quotation mark is opened and never closed; a mark inside a field is written twice, and the "
            "field in quotation marks"
        )
    return broken_line, size


def _check_start(path: Path, chunk: bytes, encoding: Encoding) -> None:
    if chunk.startswith(GZIP):
        raise ConfigError(f"{path}: the content is packed with gzip: name the file {path.name}.gz")
    if chunk.startswith(UTF_16) and not encoding.wide:
        raise ConfigError(f"{path}: the file is UTF-16: set encoding: UTF-16 for this table")


def _encoding_fault(path: Path, line: int, encoding: Encoding) -> str:
    return (
        f"{path}, about line {line}: not valid {encoding.spark}: set encoding to the file's own (often windows-1252 or "
        "ISO-8859-1), or convert it to UTF-8; a file put together from several must be in one encoding"
    )


def _quotes(chunk: bytes, quoted: bool) -> tuple[bool, bool]:
    """Whether a line ends inside quotation marks, and whether the chunk does."""
    if b'"' not in chunk:
        return quoted and (b"\n" in chunk or b"\r" in chunk), quoted
    data = np.frombuffer(chunk, dtype=np.uint8)
    marks = np.flatnonzero(data == ord('"'))
    ends = np.flatnonzero((data == ord("\n")) | (data == ord("\r")))
    inside = (np.searchsorted(marks, ends) + quoted) % 2
    return bool(inside.any()), bool((len(marks) + quoted) % 2)


def _chunks(path: Path) -> Iterator[bytes]:
    with _open(path) as raw:
        try:
            while chunk := raw.read(CHUNK):
                yield chunk
        except gzip.BadGzipFile:
            raise ConfigError(f"{path}: not a gzip file, or damaged: unpack it to see, or copy it again") from None
        except (EOFError, zlib.error):
            raise ConfigError(f"{path}: the gzip file is truncated or damaged: copy it again") from None
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None


def _open(path: Path) -> BinaryIO:
    try:
        opened = gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")
        return cast(BinaryIO, opened)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
