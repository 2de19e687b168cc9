"""REAEDP: releases with formal guarantees (Ma, Wu, Yan 2026, arXiv:2603.13709), and the ledger of what they
spent.

Everything here works on the driver, on counts and declared constants; only `histogram` and `curves` touch Spark, to
count. Noise comes from OpenDP, is drawn once, and takes no seed.
"""
