"""Coarser columns: how the release was coarsened is said in the configuration, and the original is treated likewise."""
