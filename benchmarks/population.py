"""A population for benchmarks: five quasi-identifiers with about 39,000 patterns, a three-class attribute.

    python benchmarks/population.py FOLDER --records 1000000 [--distinct | --half]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

LEVELS = {"region": 9, "education": 6, "marital": 5}
CHUNK = 1_000_000
QUASI_IDENTIFIERS = ("age", "education", "marital", "region", "sex")


def people(n: int, first: int, seed: int, distinct: bool, half: bool = False) -> pd.DataFrame:
    """n people with ids from `first`.

    With `distinct`, age is continuous, so that no pattern repeats; with `half`, one pattern holds half of the records.
    """
    rng = np.random.default_rng([seed, first])
    age = rng.uniform(18, 91, n)
    age = age.round(6) if distinct else np.floor(age)
    columns = {name: rng.integers(0, k, n) for name, k in LEVELS.items()}
    sex = rng.integers(0, 2, n)
    if half:
        same = rng.random(n) < 0.5
        age, sex = np.where(same, 40.0, age), np.where(same, 1, sex)
        columns = {name: np.where(same, 0, codes) for name, codes in columns.items()}
    ill = 1 / (1 + np.exp(-(0.08 * (age - 60) + 0.4 * sex - 0.3 * columns["education"] + 0.2 * columns["marital"])))
    severe = ill * (0.2 + 0.05 * columns["region"])
    u = rng.random(n)
    disease = np.where(u < severe, "severe", np.where(u < ill, "mild", "healthy"))
    text = {name: np.char.add(name[:3], codes.astype(str)) for name, codes in columns.items()}
    return pd.DataFrame({"id": np.arange(first, first + n), "age": age, "sex": np.where(sex, "f", "m"), **text,
                         "disease": disease})


def write(folder: Path, records: int, release_rows: int, seed: int, distinct: bool, half: bool = False) -> None:
    """original.parquet and release.parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    writer = None
    for first in range(0, records, CHUNK):
        table = pa.Table.from_pandas(
            people(min(CHUNK, records - first), first, seed, distinct, half), preserve_index=False
        )
        writer = writer or pq.ParquetWriter(folder / "original.parquet", table.schema)
        writer.write_table(table, row_group_size=250_000)
    if writer:
        writer.close()
    people(release_rows, 0, seed + 1, distinct, half).drop(columns="id").to_parquet(folder / "release.parquet", index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--release-rows", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--distinct", action="store_true")
    parser.add_argument("--half", action="store_true")
    a = parser.parse_args()
    write(a.folder, a.records, a.release_rows, a.seed, a.distinct, a.half)
