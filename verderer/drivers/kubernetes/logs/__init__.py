"""Output of containers, read through the API: bytes counted from the start, gaps told."""
