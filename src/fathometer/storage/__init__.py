"""Storage: records as content-addressed files, weights as safetensors, DuckDB as the lens."""
