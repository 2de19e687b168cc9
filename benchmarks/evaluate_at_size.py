"""Whole `evaluate` against the plain scikit-learn program, as ratios measured in one run on one machine.

    python benchmarks/evaluate_at_size.py --records 1000000 10000000 [--trees 500] [--distinct | --half] [--json FILE]

For each size: seconds by stage, the ratio to the plain program, and the peak memory of the driver's JVM, the driver's
Python and the Python workers. Spark's start and all writes are included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
from population import QUASI_IDENTIFIERS

HERE = Path(__file__).parent


def run(command: list[str]) -> tuple[str, float, dict[str, float]]:
    """Run a command; its output, wall seconds, and peak resident GB by kind of process."""
    peaks = {"jvm": 0.0, "driver": 0.0, "workers": 0.0}
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    watch = threading.Thread(target=_watch, args=(process, peaks), daemon=True)
    watch.start()
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return output, time.perf_counter() - started, peaks


def _watch(process: subprocess.Popen[str], peaks: dict[str, float]) -> None:
    while process.poll() is None:
        sums = {"jvm": 0.0, "driver": 0.0, "workers": 0.0}
        try:
            root = psutil.Process(process.pid)
            for p in [root, *root.children(recursive=True)]:
                kind = "driver" if p.pid == root.pid else "jvm" if "java" in p.name() else "workers"
                sums[kind] += p.memory_info().rss / 2**30
        except psutil.Error:
            pass
        for kind, value in sums.items():
            peaks[kind] = max(peaks[kind], value)
        time.sleep(0.5)


def measure(records: int, a: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Both programs on one population."""
    make = [sys.executable, str(HERE / "population.py"), str(folder), "--records", str(records)]
    subprocess.run([*make, *(f"--{shape}" for shape in ("distinct", "half") if getattr(a, shape))], check=True)
    output, _, plain_peaks = run([
        sys.executable, str(HERE / "plain.py"), str(folder), "--trees", str(a.trees),
        "--limit", str(200_000 if records > 3_000_000 else 3_000_000),
    ])
    plain = json.loads(output)
    output, wall, peaks = run([
        sys.executable, "-m", "rapid_spark", "evaluate", "--original", str(folder / "original.parquet"),
        "--release", str(folder / "release.parquet"), "--key", "id",
        "--quasi-identifiers", ",".join(QUASI_IDENTIFIERS), "--sensitive-attribute", "disease",
        "--set", f"attackers=[{{name: rf, parameters: {{n_estimators: {a.trees}}}}}]",
        "--store", str(folder / "store"), "--format", "json", *a.option,
    ])
    result = json.loads(output)
    return {
        "records": records, "plain_seconds": plain["seconds"], "plain_extrapolated": plain["extrapolated"],
        "plain_rapid": plain["rapid"], "rapid": result["results"][0]["rapid"], "seconds": result["seconds"],
        "wall": wall, "ratio": wall / plain["seconds"]["total"], "peak_gb": peaks, "plain_peak_gb": plain_peaks["driver"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--distinct", action="store_true", help="a continuous quasi-identifier: no pattern repeats")
    parser.add_argument("--half", action="store_true", help="one pattern holds half of the records")
    parser.add_argument("--option", action="append", default=[], help="passed on to evaluate")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    a = parser.parse_args()
    rows = []
    for records in a.records:
        with tempfile.TemporaryDirectory() as folder:
            row = measure(records, a, Path(folder))
        rows.append(row)
        plain, peaks = row["plain_seconds"], row["peak_gb"]
        note = " (predict extrapolated from 200,000)" if row["plain_extrapolated"] else ""
        print(f"{records:,} records: {row['wall']:.1f} s, plain {plain['total']:.1f} s{note}, "  # noqa: T201
              f"ratio {row['ratio']:.2f}; peak GB JVM {peaks['jvm']:.1f}, driver {peaks['driver']:.2f}, "
              f"workers {peaks['workers']:.1f}; RAPID {row['rapid']:.4f}, plain {row['plain_rapid']:.4f}")
        for stage, seconds in row["seconds"].items():
            print(f"    {stage:<24}{seconds:8.1f} s")  # noqa: T201
    if a.json:
        a.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
