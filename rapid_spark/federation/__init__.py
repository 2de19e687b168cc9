"""Federated audit: a run's aggregates as one file, out of one store and into another. No record leaves."""
