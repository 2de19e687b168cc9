"""Scheduled job: audit many registries. Takes the options of `rapid-spark audit`.

    spark-submit jobs/audit_registries.py --config conf/audit.yml --on-fail report

It returns normally when every release is cleared, or with `--on-fail report`; otherwise it ends with the exit code of
the command: 1 not cleared, 2 the input is at fault, 3 anything else.
"""

import sys

from rapid_spark.cli import main

if __name__ == "__main__":
    main(["audit", *sys.argv[1:]])
