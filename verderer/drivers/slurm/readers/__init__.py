"""Turns what Slurm 21.08 to 25.x prints, as text or as JSON, into values.

Every function takes text, gives a value or raises `Unreadable`, and does nothing else. Fields
that are not understood are `None` or empty: unknown, never zero, free or done.
"""
