"""Core: the values that everything else is said in; imports nothing of the package above it."""
