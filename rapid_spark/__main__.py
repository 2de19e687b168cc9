"""`python -m rapid_spark` is the command `rapid-spark`."""

from rapid_spark.cli import main

if __name__ == "__main__":
    main()
