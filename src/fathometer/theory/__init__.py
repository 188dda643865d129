"""Theory: limits and constructions; numpy only."""
