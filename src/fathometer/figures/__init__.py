"""Figures: one grammar for screen and paper."""
