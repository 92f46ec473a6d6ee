"""Turns what a node says into findings: parsers (text to values), probes (run a tool), catalogue."""
