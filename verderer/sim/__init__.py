"""Replays history or a trace through `core` to answer "what if"."""
