"""Reads of what training code reports, for its own clients; every function takes a `Scope` first.

Pages read `store.views.tracking` instead.
"""
