"""Scheduled job: attack one release, or the claim made for it. Takes the words of `rapid-spark attack`.

    spark-submit jobs/attack_release.py linkage --config conf/adult.yml --release-id 2026-11
    spark-submit jobs/attack_release.py test-epsilon --epsilon 1 --release-id 2026-11

It returns normally on success; otherwise it ends with the exit code of the command: 1 where a claim is violated.
"""

import sys

from rapid_spark.cli import main

if __name__ == "__main__":
    main(["attack", *sys.argv[1:]])
