"""Tasks: one problem a file."""
