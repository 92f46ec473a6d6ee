"""A cluster in memory that fails on demand: for tests, rehearsals and load.

`cluster` is the outside world and lives on when an agent dies; `driver` is one agent's hand on it;
`script` says what attempts and calls do. Nothing here runs a program.
"""
