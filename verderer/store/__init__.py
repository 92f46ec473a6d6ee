"""Keeps facts in PostgreSQL and gives them back.

`tables` writes, `views` answers what pages read, `snapshot` is what decisions read, `wakeups` is
the one coalescing notifier, `sql/migrations` is the schema. Nobody else speaks SQL.
"""
