"""Looks at a cluster before it is used: what works, what does not, and what mends it."""
