"""Starts: where weights come from when they are not fresh, one way a file."""
