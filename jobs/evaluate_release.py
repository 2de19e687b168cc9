"""Scheduled job: evaluate one release. Takes the options of `rapid-spark evaluate`.

    spark-submit jobs/evaluate_release.py --config conf/adult.yml --release-id 2026-11

It returns normally on success; otherwise it ends with the exit code of the command.
"""

import sys

from rapid_spark.cli import main

if __name__ == "__main__":
    main(["evaluate", *sys.argv[1:]])
