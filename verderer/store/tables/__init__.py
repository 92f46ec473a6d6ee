"""Writes: one module a table, one named statement a question."""
