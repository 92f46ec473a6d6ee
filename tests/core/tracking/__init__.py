"""Searches, names, samples and paths of tracking clients."""
