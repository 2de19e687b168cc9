"""What to change in a release: steps, each applied to it and evaluated again, with what they cost."""
