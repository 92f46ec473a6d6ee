"""Verderer: one control plane over many AI compute clusters.

Fourteen rooms in five layers; each room's charter is its own docstring, and the import rules are
in `.importlinter`. `docs/architecture.md` is the map.
"""
