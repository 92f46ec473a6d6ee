"""Reads for pages and lists; every function takes a `Scope` first."""
