"""`rapid-spark`: commands that read, call and write; the figures come from the modules below."""

from __future__ import annotations

from collections.abc import Sequence


class JobFailed(RuntimeError):
    """A command that a scheduler started did not succeed; `exit_code` is what the console would return."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"rapid-spark ended with exit code {exit_code}; the message stands above")
        self.exit_code = exit_code


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; returns normally on success.

    Args:
        arguments: words of the command line, those of this process when left out.

    Raises:
        SystemExit: with code 1 (not cleared), 2 (the user's input is at fault) or 3 (anything else).
    """
    from .entry import run

    code = run(arguments)
    if code:
        raise SystemExit(code)


def job(arguments: Sequence[str] | None = None) -> None:
    """The same for schedulers that take any SystemExit for a failure, or none: raises JobFailed instead."""
    from .entry import run

    code = run(arguments)
    if code:
        raise JobFailed(code)
