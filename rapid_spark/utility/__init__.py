"""Utility of a release: how far it is from the original for the analyses people make of it."""
