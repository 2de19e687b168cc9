"""The scoring stage against raw `predict_proba` over all records, as ratios measured in one run on one machine.

    python benchmarks/scoring_stage.py --records 1000000 [--trees 500] [--distinct | --half]

Raw is what a plain program does: one process, all cores, all records in file order. The stage is what `evaluate` does
with the same fitted forest: distinct patterns once where they repeat, otherwise every record; on Spark, through the
same carrier and UDF. The second attacker of the same type is scored in the same pass over the patterns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import pandas as pd
from population import QUASI_IDENTIFIERS, write
from pyspark.sql import functions as F

from rapid_spark import attackers, pipeline, scoring, session
from rapid_spark.attackers import Feature


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--distinct", action="store_true", help="a continuous quasi-identifier: no pattern repeats")
    parser.add_argument("--half", action="store_true", help="one pattern holds half of the records")
    a = parser.parse_args()
    cores = session.cores()
    columns = list(QUASI_IDENTIFIERS)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), a.records, 50_000, 1, a.distinct, a.half)
        release = pd.read_parquet(Path(folder, "release.parquet"))
        features = [Feature(c, "numeric" if c == "age" else "categorical") for c in columns]
        fits = [
            attackers.fit("rf", {"n_estimators": a.trees}, release, features, "disease", "categorical", seed, cores)
            for seed in (1, 2)
        ]
        original = pd.read_parquet(Path(folder, "original.parquet"), columns=columns)
        seconds = {"raw": _raw(fits[0], original, cores)}
        spark = session.get()
        table = spark.read.parquet(str(Path(folder, "original.parquet"))).select(*columns).withColumn("n", F.lit(1))
        _stage(spark, table.limit(1000), fits[:1], columns, 1000, cores)  # first jobs and workers are not the stage's
        seconds["one attacker"] = _stage(spark, table, fits[:1], columns, len(original), cores)
        seconds["two attackers"] = _stage(spark, table, fits, columns, len(original), cores)
        spark.stop()
    second = seconds["two attackers"] - seconds["one attacker"]
    print(json.dumps({
        "records": a.records, "trees": a.trees, "seconds": {k: round(v, 2) for k, v in seconds.items()},
        "one_to_raw": round(seconds["one attacker"] / seconds["raw"], 3),
        "second_to_first": round(second / seconds["one attacker"], 3),
    }))


def _raw(fitted: attackers.Fitted, frame: pd.DataFrame, cores: int) -> float:
    x = fitted.design(fitted.codes(frame))
    fitted.estimator.set_params(n_jobs=cores)
    started = time.perf_counter()
    fitted.estimator.predict_proba(x)
    seconds = time.perf_counter() - started
    fitted.estimator.set_params(n_jobs=1)
    return seconds


def _stage(spark, table, fits, columns, n, cores) -> float:  # type: ignore[no-untyped-def]
    started = time.perf_counter()
    tasks = [scoring.Task(f"c{i}", f, f.classes) for i, f in enumerate(fits)]
    prediction = scoring.predictions(
        columns, [scoring.ship(spark, task) for task in tasks], [x for task in tasks for x in task.fields()]
    )
    patterns = table.select(*columns).distinct()
    n_patterns = patterns.count()
    if n_patterns <= pipeline.REPEATS * n:
        scored = scoring.score_patterns(patterns, prediction, max(2 * cores, n_patterns // pipeline.ROWS_PER_TASK))
    else:
        scored = table.repartition(max(2 * cores, n // (4 * pipeline.ROWS_PER_TASK))).withColumn("prediction", prediction)
    scored.agg(F.sum(F.col("prediction.c0_p")[0])).collect()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
