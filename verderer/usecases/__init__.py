"""One verb, one file: load facts, ask the core, apply in short transactions with their audit row."""
