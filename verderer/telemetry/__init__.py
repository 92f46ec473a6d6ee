"""Writes our own logs, metrics and traces, and knows no domain."""
