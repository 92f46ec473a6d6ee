"""Temporary folders that the database's own user can reach.

pytest's `tmp_path` lies below a folder that only its owner may enter, and for root the database
runs as somebody else.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """A new folder with a short path, removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="vt-", dir="/tmp"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
