"""Scheduled job: draw a release with differential privacy. Takes a command of `rapid-spark dp` and its options.

    spark-submit jobs/publish_release.py histogram --config conf/adult_dp.yml --run-id 2026-11

The run id makes a retry safe: what was drawn under it is returned, never drawn again. The budget is set once, by
`rapid-spark ledger set-budget`. It returns normally on success; otherwise it ends with the exit code of the command.
"""

import sys

from rapid_spark.cli import main

if __name__ == "__main__":
    main(["dp", *sys.argv[1:]])
