"""Writes of what training code reports; one module a noun, every value a parameter."""
