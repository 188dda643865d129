"""Training: the engine, a pure function of one trial."""
