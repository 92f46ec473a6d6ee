"""Measures the platform on this machine, beside the raw limit of the PostgreSQL under it."""
