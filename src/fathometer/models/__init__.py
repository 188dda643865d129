"""Models: one mechanism a file."""
