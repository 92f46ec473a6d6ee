"""Decides when: wakes, claims what is due, calls one use case, sleeps."""
