"""Fathometer measures what a sequence model can express, what it can learn, and how much of it a job needs."""

__version__ = "0.1.0"
