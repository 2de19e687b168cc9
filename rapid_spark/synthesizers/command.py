"""Any generator that is only a command: the original as a file in, a release as a file out."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api import types

from rapid_spark.synthesizers.protocol import Seed

_PLACES = ("{original}", "{release}")
_FORMATS = ("csv", "parquet")
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


class CommandSynthesizer:
    """A command that reads the original from a file and writes a release to a file.

    The command runs without a shell, once per sample, in an empty working directory that is removed
    afterwards. Its output is hidden unless asked for, since it may tell values of the original.

    Example:
        >>> synthesizer = CommandSynthesizer("Rscript make.R {original} {release} {n} {seed}")
        >>> release = synthesizer.fit(original).sample(1000, seed=1)
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        file_format: str = "csv",
        timeout: float | None = None,
        show_output: bool = False,
    ) -> None:
        """Set the command.

        Args:
            command: words of the command, or one line that is split as a shell would. `{original}` and
                `{release}` stand for the two files, `{n}` for the number of records, `{seed}` for an integer
                below 2**31.
            file_format: 'csv' (header, missing values as empty fields) or 'parquet', for both files.
            timeout: seconds after which the command is stopped; None for no limit.
            show_output: let the command write to this process's output.

        Raises:
            ValueError: if a file has no place in the command, or the format or the timeout is none of those
                allowed.
        """
        self.command = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
        lacking = [place for place in _PLACES if not any(place in word for word in self.command)]
        if lacking:
            raise ValueError(
                f"the command has no place for {' and '.join(lacking)}; "
                "it needs both files, as in 'program {original} {release} {n} {seed}'"
            )
        if file_format not in _FORMATS:
            raise ValueError(f"file_format is {file_format!r}; it must be one of {', '.join(_FORMATS)}")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout is {timeout}; it must be a positive number of seconds")
        self.file_format = file_format
        self.timeout = timeout
        self.show_output = show_output
        self._frame: pd.DataFrame | None = None

    def fit(self, frame: pd.DataFrame) -> CommandSynthesizer:
        """Keep the original for the command; nothing is learned before `sample`.

        Raises:
            ValueError: if the frame has no rows.
        """
        if frame.empty:
            raise ValueError(f"the original has {len(frame)} rows and {frame.shape[1]} columns, no values")
        self._frame = frame.reset_index(drop=True)
        return self

    def sample(self, n: int, seed: Seed) -> pd.DataFrame:
        """Run the command and read its release.

        Args:
            n: number of records that the release must have, at least 1.
            seed: hashed into the integer that the command is given.

        Returns:
            n records with the columns of the original, in their order and types.

        Raises:
            ValueError: if `fit` was not called, the command cannot be started, fails or takes too long, or
                its release is missing, has other columns, another number of records, or values of another
                type.
        """
        if n < 1:
            raise ValueError(f"n is {n}; it must be at least 1")
        if self._frame is None:
            raise ValueError("this synthesizer has no original yet; call fit first")
        with tempfile.TemporaryDirectory(prefix="synthesizer-") as folder:
            original, release = (
                Path(folder, f"{name}.{self.file_format}") for name in ("original", "release")
            )
            self._write(self._frame, original)
            number = int(np.random.SeedSequence(seed).generate_state(1)[0]) >> 1
            self._run(
                {
                    "{original}": str(original),
                    "{release}": str(release),
                    "{n}": str(n),
                    "{seed}": str(number),
                },
                folder,
            )
            found = self._read(release)
        return self._conform(found, n)

    def _write(self, frame: pd.DataFrame, path: Path) -> None:
        if self.file_format == "parquet":
            frame.to_parquet(path, index=False)
        else:
            frame.to_csv(path, index=False)

    def _run(self, places: dict[str, str], folder: str) -> None:
        words = []
        for word in self.command:
            for place, value in places.items():
                word = word.replace(place, value)
            words.append(word)
        output = None if self.show_output else subprocess.DEVNULL
        name = self.command[0]
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=self.timeout,
                check=False,
            )
        except OSError as error:
            raise ValueError(
                f"the synthesizer's command {name!r} cannot be started: {error.strerror}"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise ValueError(
                f"the synthesizer's command {name!r} was stopped after {self.timeout} seconds"
            ) from error
        if done.returncode:
            raise ValueError(
                f"the synthesizer's command {name!r} ended with code {done.returncode}; "
                "set show_output to see what it says"
            )

    def _read(self, path: Path) -> pd.DataFrame:
        if not path.is_file():
            raise ValueError(
                f"the synthesizer's command {self.command[0]!r} ended well but wrote no release to "
                "the place of {release}"
            )
        try:
            if self.file_format == "parquet":
                return pd.read_parquet(path)
            # text as it stands: types come from the original, so that a code such as 01 stays one
            return pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
        except (ValueError, OSError) as error:
            raise ValueError(
                f"the release of the synthesizer's command {self.command[0]!r} is no readable "
                f"{self.file_format} file"
            ) from error

    def _conform(self, found: pd.DataFrame, n: int) -> pd.DataFrame:
        """The release in the columns and types of the original."""
        assert self._frame is not None
        wanted = self._frame
        names = [str(name) for name in wanted.columns]
        found = found.rename(columns=str)
        lacking = [name for name in names if name not in found.columns]
        more = [name for name in found.columns if name not in names]
        if lacking or more:
            told = [f"lacks {', '.join(lacking)}"] if lacking else []
            told += [f"has {', '.join(more)} on top"] if more else []
            raise ValueError(
                f"the release of the synthesizer's command {' and '.join(told)}; "
                "it needs the columns of the original"
            )
        if len(found) != n:
            raise ValueError(f"the synthesizer's command released {len(found)} records, {n} were asked for")
        series = [_typed(found[str(name)], wanted[name]) for name in wanted.columns]
        return pd.concat(series, axis=1)


def _typed(found: pd.Series, like: pd.Series) -> pd.Series:
    """A column of the release in the original's type."""
    try:
        if types.is_bool_dtype(like.dtype) and not types.is_bool_dtype(found.dtype):
            truth = found.astype(str).str.lower().map(_TRUTH)
            if (truth.isna() & found.notna()).any():
                raise ValueError("not a truth value")
            found = truth.astype("boolean")
        elif types.is_numeric_dtype(like.dtype) and not types.is_numeric_dtype(found.dtype):
            found = pd.to_numeric(found)
        elif types.is_datetime64_any_dtype(like.dtype) and not types.is_datetime64_any_dtype(found.dtype):
            found = pd.to_datetime(found, format="ISO8601")
        if isinstance(like.dtype, pd.CategoricalDtype):
            found = found.astype(like.dtype.categories.dtype)
            if not found.dropna().isin(like.dtype.categories).all():
                raise ValueError("not a category")
        return pd.Series(found.astype(like.dtype), name=like.name)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"column {str(like.name)!r} of the release holds values of another type than the original's, "
            f"which is {like.dtype}"
        ) from error
