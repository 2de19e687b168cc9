"""Upkeep of a store: retention of runs and files, erasure of one record's results, rights in a catalog."""
