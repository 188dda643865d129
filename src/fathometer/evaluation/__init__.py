"""Evaluation: a network's outputs on drawn data, counted by stratum."""
