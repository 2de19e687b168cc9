"""Search for the worst surface: which attribute is learnt best, and from which other columns."""
