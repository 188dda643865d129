"""Statistics: intervals, tests and the judging of claims; numpy and scipy only."""
