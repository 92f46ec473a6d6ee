"""Turns what a node says into findings: parsers (text to values), probes, catalogue."""
