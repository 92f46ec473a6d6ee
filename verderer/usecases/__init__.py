"""One verb, one file: load facts, ask the core, apply, each with its audit row."""
