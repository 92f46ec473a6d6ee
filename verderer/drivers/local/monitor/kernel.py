"""What Linux says about processes, and the few calls of it that Python has no name for."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_SYS_CLONE3 = 435
_CLONE_INTO_CGROUP = 0x2_0000_0000
_STARTED_FIELD = 22
_FIELDS_BEFORE_STATE = 3

# PyDLL keeps the interpreter's lock across the call: after clone3 the child must still hold it.
_libc = ctypes.PyDLL(None, use_errno=True)


class _CloneArgs(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "flags",
            "pidfd",
            "child_tid",
            "parent_tid",
            "exit_signal",
            "stack",
            "stack_size",
            "tls",
            "set_tid",
            "set_tid_size",
            "cgroup",
        )
    ]


def read(path: str) -> bytes:
    """The whole of a small file, without the layers that `open` puts on top. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def boot_id() -> str:
    """Names this boot of the machine: process ids mean nothing in another one."""
    return read("/proc/sys/kernel/random/boot_id").decode().strip()


def started_at(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None when it is gone or a zombie.

    A zombie counts as gone: where nobody reaps, it would seem to live for ever.
    """
    fields = _stat(pid)
    if fields is None or fields[0] in ("Z", "X", "x"):
        return None
    return int(fields[_STARTED_FIELD - _FIELDS_BEFORE_STATE])


def session_of(pid: int) -> int | None:
    """The session of a living process; None when it is gone or a zombie."""
    fields = _stat(pid)
    return int(fields[3]) if fields is not None and fields[0] not in ("Z", "X", "x") else None


def all_pids() -> list[int]:
    """Every process that we may see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children() -> list[int]:
    """Our own children, zombies too."""
    me = os.getpid()
    try:
        return [int(pid) for pid in read(f"/proc/{me}/task/{me}/children").split()]
    except FileNotFoundError:  # a kernel built without it
        return [pid for pid in all_pids() if (stat := _stat(pid)) and int(stat[1]) == me]


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that none escapes."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def name_process(name: str) -> None:
    """Set what `ps` and `top` show, at most 15 bytes."""
    _libc.prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]), 0, 0, 0)


def die_with(parent: int) -> None:
    """Be killed when `parent` dies; raises ProcessLookupError if it is dead already."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        raise ProcessLookupError("the monitor is gone")


def fork_into(cgroup: str) -> int:
    """Fork with the child born inside a version 2 cgroup; like `os.fork` otherwise.

    Moving a process there after its birth takes 10 ms and more, because the kernel waits for
    every processor once. Only for a process with one thread.

    Raises:
        OSError: the kernel or a filter of system calls does not allow it.
    """
    directory = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        args = _CloneArgs(
            flags=_CLONE_INTO_CGROUP, exit_signal=int(signal.SIGCHLD), cgroup=directory
        )
        pid: int = _libc.syscall(_SYS_CLONE3, ctypes.byref(args), ctypes.sizeof(args))
    finally:
        os.close(directory)
    if pid < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return pid


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third, the state, on."""
    try:
        text = read(f"/proc/{pid}/stat")
    except OSError:
        return None
    # The name stands in parentheses and may itself hold spaces and parentheses.
    return text[text.rfind(b")") + 2 :].decode("utf-8", "replace").split() or None
