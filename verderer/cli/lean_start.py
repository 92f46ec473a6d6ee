"""Keeps what a server process never uses out of it."""

from __future__ import annotations

import sys


def import_structlog() -> None:
    """Import structlog without rich, for its coloured tracebacks, which our log does not use.

    That is most of its import time and 8 MB, in each of six processes. Must run before anything
    else imports structlog; afterwards rich can be imported as ever.
    """
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # what an import system calls absent
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]


def leave_out_pydantic() -> None:
    """Make Litestar's plugin for pydantic stay away: 14 MB, a fifth of a second, never used.

    We have no model of pydantic's, but other programs in the same environment may bring it.
    Must run before anything imports it.
    """
    sys.modules.setdefault("pydantic", None)  # type: ignore[arg-type]
