"""Design: pure functions from records to wanted trials."""
