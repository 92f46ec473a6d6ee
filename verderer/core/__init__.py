"""Says what should happen, from values alone.

Belongs here: nouns (`model`), the pipeline document and its meaning (`pipeline`), and every
decision: placement, progress, explanation, access. Does not: I/O, clocks, chance, identifiers made
up on the spot, logging, settings. A decision takes frozen values and returns frozen values.
"""
