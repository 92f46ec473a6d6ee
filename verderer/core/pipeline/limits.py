"""How large a pipeline may be. Each limit is here because something else breaks beyond it."""

from __future__ import annotations

from typing import Final

MAX_BYTES: Final = 1024 * 1024
"""Of the document as sent."""

MAX_VALUES: Final = 200_000
"""Values in the document once its aliases are followed: what stops a YAML bomb."""

MAX_CHARACTERS: Final = 4 * MAX_BYTES
"""Of all text once aliases are followed: the other way to make a small document large."""

MAX_DEPTH: Final = 32
"""Of nesting. A pipeline itself never needs more than eight."""

MAX_PROBLEMS: Final = 100
"""Reported in full; the rest is only counted, since nobody reads further."""

MAX_TEXT: Final = 100_000
"""Bytes of one text: Linux hands a program at most 128 KiB in one argument or variable."""

MAX_VALUE: Final = 16_384
"""Bytes of one parameter or matrix value."""

MAX_REFERENCES: Final = 500
"""`${{ … }}` in one step: with `MAX_VALUE` it bounds what a step can be rendered to."""

MAX_INSTANCES: Final = 10_000
"""Steps of a run once every matrix is expanded."""

MAX_EDGES: Final = 200_000
"""Pairs of instances of which one waits for the other."""

MAX_NODES: Final = 10_000
MAX_RETRIES: Final = 100
MAX_SECONDS: Final = 366 * 86_400
MAX_NAME: Final = 63
"""Of a DNS-1123 label, which the names of steps become on a cluster."""
