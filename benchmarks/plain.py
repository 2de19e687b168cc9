"""The plain scikit-learn program: fit the same forest, predict_proba for all records with all cores, in pandas.

Prints one JSON line with its seconds. Above --limit records it predicts the first --limit and extrapolates.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from population import QUASI_IDENTIFIERS
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import OrdinalEncoder

from rapid_spark import attackers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--limit", type=int, default=2_000_000)
    a = parser.parse_args()
    seconds = {}
    started = time.perf_counter()
    columns = list(QUASI_IDENTIFIERS)
    release = pd.read_parquet(a.folder / "release.parquet")
    text = [c for c in columns if release[c].dtype == object or str(release[c].dtype).startswith("str")]
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(release[text])

    def encode(frame: pd.DataFrame) -> np.ndarray:
        numbers = frame[[c for c in columns if c not in text]].to_numpy(np.float32)
        return np.hstack([encoder.transform(frame[text]).astype(np.float32), numbers])

    parameters = dict(attackers.ATTACKERS["rf"].defaults) | {"n_estimators": a.trees}
    forest = RandomForestClassifier(**parameters, n_jobs=-1, random_state=1)
    forest.fit(encode(release), release["disease"])
    seconds["fit"] = time.perf_counter() - started
    total = pq.read_metadata(a.folder / "original.parquet").num_rows
    started = time.perf_counter()
    original = pd.read_parquet(a.folder / "original.parquet") if total <= a.limit else next(
        pq.ParquetFile(a.folder / "original.parquet").iter_batches(batch_size=a.limit)
    ).to_pandas()
    p = forest.predict_proba(encode(original))
    truth = pd.Categorical(original["disease"], forest.classes_).codes
    b = np.bincount(truth) / len(truth)
    g = p[np.arange(len(truth)), truth]
    rapid = float(np.mean(g > b[truth] + 0.3 * (1 - b[truth])))
    seconds["predict"] = (time.perf_counter() - started) * total / len(original)
    seconds["total"] = seconds["fit"] + seconds["predict"]
    print(json.dumps({"seconds": seconds, "rapid": rapid, "extrapolated": len(original) < total}))


if __name__ == "__main__":
    main()
