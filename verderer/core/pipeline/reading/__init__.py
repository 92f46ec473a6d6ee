"""Reads a YAML document by a table of its fields, noting every problem with its place.

Belongs here: text and tree of any document, kinds of values, and what is wrong with them. Does
not: which fields a pipeline has, and how they depend on each other.
"""
