"""Releases with differential privacy, from a table of people to a Delta table: read, count, charge, draw, write.

The guarantees are those of `rapid_spark.reaedp`, which knows counts and declared constants only. Here is what goes
around them: settings, the ledger's table, the order of steps, and where a release is kept.
"""
