"""Claims: one rule of judgement a file."""
