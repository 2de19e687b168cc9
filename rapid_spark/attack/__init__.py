"""Attacks on releases: membership on histograms and on records, linkage, and the test of a claimed epsilon."""
