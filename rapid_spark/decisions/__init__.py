"""Who decided on a release, whether the decision holds, and whether a file is the one that was decided on."""
