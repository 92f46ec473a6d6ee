"""Decisions about one attempt from values alone: has it ended, why does it wait, what to do."""
