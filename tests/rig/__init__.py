"""What tests of several rooms stand on: a PostgreSQL server, clean rows, reachable folders."""
