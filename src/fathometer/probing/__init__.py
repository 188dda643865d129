"""Probing: what can be measured on a trained network; one probe a file."""
