"""Locks between processes of one machine; the operating system releases them when a process dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FileLock:
    """An exclusive lock on a file, which is made for it and removed with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def acquire(self, wait: bool = True) -> bool:
        """Take the lock; without `wait`, return False where another process or object holds it."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                os.close(handle)
                return False
            if self._is_current(handle):
                self._handle = handle
                return True
            os.close(handle)  # its holder removed the file meanwhile: lock the new one

    def release(self) -> None:
        """Give the lock back; without effect when it is not held."""
        if self._handle is not None:
            self.path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None

    def _is_current(self, handle: int) -> bool:
        try:
            return os.fstat(handle).st_ino == self.path.stat().st_ino
        except FileNotFoundError:
            return False


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock of a path, waiting for it, within a `with` block."""
    lock = FileLock(path)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()
