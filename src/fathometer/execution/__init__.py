"""Execution: the seam between what is wanted and what runs it."""
