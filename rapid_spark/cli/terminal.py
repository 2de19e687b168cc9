"""What the user sees: the result on standard output; stages, warnings and errors on standard error."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click


class Terminal:
    """Progress, warnings and errors of one command.

    Stages are shown on a terminal only, unless quiet; JSON log lines wherever they are asked for.

    Attributes:
        quiet: no progress.
        debug: traces and Spark's own log.
        log_json: one JSON object a line on standard error in place of text.
        run_id: written into every log line.
        tasks: returns (done, all) of Spark's tasks under way, or None where that is not known.
    """

    def __init__(self) -> None:
        self.quiet = False
        self.debug = False
        self.log_json = False
        self.run_id: str | None = None
        self.tasks: Callable[[], tuple[int, int] | None] = lambda: None
        self._bar: Any = None
        self._stage: tuple[str, float] | None = None

    def configure_logging(self) -> None:
        """Let Python's own log speak only where asked for; libraries are noisy at their first use."""
        level = logging.DEBUG if self.debug else logging.CRITICAL
        logging.basicConfig(level=logging.WARNING if self.debug else logging.CRITICAL, stream=sys.stderr)
        logging.getLogger("rapid_spark").setLevel(level)

    def watch(self, spark: Any) -> None:
        """Show the tasks of this session while a stage runs."""
        from rapid_spark import session

        def tasks() -> tuple[int, int] | None:
            try:
                return session.tasks(spark)
            except Exception:  # the session ends while its tasks are asked for
                return None

        self.tasks = tasks

    def stage(self, name: str) -> None:
        """End the stage before and show that this one runs."""
        self._end_stage()
        self._stage = (name, time.perf_counter())
        if self.log_json:
            self._log("stage", stage=name)
        elif self._shows_progress:
            self._start_bar(name)

    def warn(self, text: str) -> None:
        """Say what the reader must know, also when quiet."""
        if self.log_json:
            self._log("warning", message=text)
        else:
            self._write(f"warning: {text}", "yellow")

    def error(self, text: str) -> None:
        """Say what went wrong."""
        if self.log_json:
            self._log("error", message=text)
        else:
            self._write(f"error: {text}", "red")

    def note(self, text: str) -> None:
        """Say something that a scheduler need not keep."""
        if self.log_json:
            self._log("note", message=text)
        elif not self.quiet:
            self._write(text, None)

    def close(self) -> None:
        """End the stage that runs."""
        self._end_stage()

    @property
    def _shows_progress(self) -> bool:
        return not self.quiet and sys.stderr.isatty()

    def _start_bar(self, name: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.text import Text

        terminal = self

        class Tasks(ProgressColumn):
            max_refresh = 0.5

            def render(self, task: Any) -> Text:
                found = terminal.tasks()
                return Text(f"{found[0]}/{found[1]} Spark tasks" if found else "", style="dim")

        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            Tasks(),
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=4,
        )
        self._bar.start()
        self._bar.add_task(name, total=None)

    def _end_stage(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if self._stage is None:
            return
        name, started = self._stage
        self._stage = None
        seconds = time.perf_counter() - started
        if self.log_json:
            self._log("stage_end", stage=name, seconds=round(seconds, 3))
        elif self._shows_progress and seconds >= 0.05:
            self._write(f"  {seconds:6.1f} s  {name}", "bright_black")

    def _log(self, event: str, **fields: Any) -> None:
        line = {"time": datetime.now(UTC).isoformat(), "run_id": self.run_id, "event": event, **fields}
        click.echo(json.dumps(line, ensure_ascii=False), err=True)

    def _write(self, text: str, colour: str | None) -> None:
        running, self._bar = self._bar, None
        if running is not None:
            running.stop()
        click.secho(text, err=True, fg=colour)
        if running is not None:
            running.start()
            self._bar = running
