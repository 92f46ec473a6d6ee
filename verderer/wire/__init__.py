"""The documents that cross a process boundary, versioned, and the client that carries them.

Only the two doors (`api`, `agent`) and `cli` may import it: a wire document is translated to core
values at the door and never travels further in.
"""
