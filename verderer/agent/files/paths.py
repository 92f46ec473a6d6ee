"""Names and places inside a working directory, for programs that may try to lead us out of it.

The program that ran there was free to plant symbolic links, pipes and odd names. So nothing is
opened by a path that is trusted: directories are entered one part at a time without following
links, and what was opened for reading is asked afterwards where it really lies.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes

from verderer.core.errors import Invalid, NotFound

MAX_DEPTH: Final = 64

_QUOTED: Final = frozenset("%#\\")
_OPEN_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe that nobody writes to would hang for ever.
_OPEN_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def parts_of(path: str) -> tuple[str, ...]:
    """The parts of a relative path; `.` and doubled slashes are dropped.

    Raises:
        Invalid: empty, absolute, too deep, or with a part `..` or a NUL.
    """
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if path.startswith("/") or not parts or ".." in parts or "\0" in path:
        raise Invalid(
            f"{path[:200]!a} is not a path inside the working directory",
            code="path_escapes",
            hint="write it relative to the working directory, without '..'",
        )
    if len(parts) > MAX_DEPTH:
        raise Invalid(f"{path[:200]!a} has more than {MAX_DEPTH} parts", code="path_too_deep")
    return parts


def key_part(name: str) -> str:
    """A file's name as part of an object key: what a key cannot hold is percent-encoded."""
    return "".join(_quoted(char) for char in name)


def name_of_key_part(part: str) -> str:
    """The file's name that `key_part` made `part` of."""
    return unquote_to_bytes(part).decode("utf-8", "surrogatepass")


def _quoted(char: str) -> str:
    if char in _QUOTED or unicodedata.category(char) in ("Cc", "Cs"):
        return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
    return char


def make_directories(root: str, parts: tuple[str, ...]) -> int:
    """Enter `root`/`parts`, making what is missing, and return it open; the caller closes it.

    Raises:
        Invalid: something that is not a directory stands in the way.
        OSError: the disk.
    """
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts:
        try:
            try:
                os.mkdir(part, 0o755, dir_fd=here)
            except FileExistsError:
                pass
            inner = os.open(part, _OPEN_DIRECTORY, dir_fd=here)
        except (NotADirectoryError, OSError) as error:
            if isinstance(error, NotADirectoryError) or error.errno in _NOT_A_DIRECTORY:
                raise Invalid(
                    f"{'/'.join(parts)[:200]!a} cannot be a folder: {part!a} is something else",
                    code="path_in_the_way",
                ) from error
            raise
        finally:
            os.close(here)
        here = inner
    return here


_NOT_A_DIRECTORY: Final = frozenset({20, 40, 62})  # ENOTDIR; ELOOP on Linux and macOS


@dataclass(frozen=True, slots=True)
class Found:
    """Something inside the working directory, open for reading; the caller closes `fd`."""

    fd: int
    status: os.stat_result

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)


def open_inside(root: str, path: str, *, directory_fd: int | None = None) -> Found:
    """Open a file or folder for reading, provided that it lies inside `root`.

    `path` is relative to `directory_fd`, or to `root`. Links are followed as long as they lead to
    something inside.

    Raises:
        NotFound: there is nothing.
        Invalid: it lies outside, or is neither a file nor a folder.
        OSError: it cannot be read.
    """
    where = path if directory_fd is not None else str(Path(root, path))
    try:
        status = os.stat(where, dir_fd=directory_fd)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise _odd(path)
        fd = os.open(where, _OPEN_FILE, dir_fd=directory_fd)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"there is no {path[:200]!a} in the working directory") from error
    try:
        # Asked of what is open: between the look above and the opening it may have been swapped.
        status = os.fstat(fd)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise _odd(path)
        inside = str(Path(root).resolve())
        if os.path.commonpath([inside, _real_path(fd)]) != inside:
            raise Invalid(
                f"{path[:200]!a} is a link that leads out of the working directory",
                code="path_escapes",
                hint="copy the file into the working directory instead of linking to it",
            )
    except BaseException:
        os.close(fd)
        raise
    return Found(fd, status)


def _odd(path: str) -> Invalid:
    return Invalid(f"{path[:200]!a} is neither a file nor a folder", code="not_a_file")


def _real_path(fd: int) -> str:
    if sys.platform == "darwin":
        raw = fcntl.fcntl(fd, fcntl.F_GETPATH, b"\0" * 1024)
        return os.fsdecode(raw.rstrip(b"\0"))
    return str(Path(f"/proc/self/fd/{fd}").readlink())
