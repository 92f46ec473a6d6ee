"""From a decision to a running program: fork, dress the child, exec."""

from __future__ import annotations

import errno
import os
import signal
import time

from verderer.drivers.local.monitor import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from verderer.drivers.local.monitor.cgroup import Group

_BUSY_TRIES = 50
_BUSY_PAUSE_S = 0.02
_EXEC_FAILED = 127


class Program:
    """What to run and where."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], directory: str) -> None:
        self.argv = list(argv)
        self.env = dict(env)
        self.directory = directory


class Launched:
    """A forked child; `trouble` reads empty once it has become the program."""

    def __init__(self, pid: int, output: int, trouble: int) -> None:
        self.pid = pid
        self.output = output
        """The reading end of its stdout and stderr."""
        self.trouble = trouble


def launch(program: Program, group: Group) -> Launched:
    """Start the program in its own process group and in `group`.

    Returns at once: what goes wrong before the program runs is written to `trouble` as
    `stage NUL errno NUL exists`.

    Raises:
        OSError: no process or pipe can be made.
    """
    parent = os.getpid()
    output, output_end = os.pipe2(os.O_CLOEXEC)
    trouble, trouble_end = os.pipe2(os.O_CLOEXEC)
    try:
        pid = group.fork()
    except OSError:
        os.close(output)
        os.close(trouble)
        raise
    else:
        if pid == 0:
            _become(program, group, parent, output_end, trouble_end)
    finally:
        os.close(output_end)
        os.close(trouble_end)
    os.set_blocking(output, False)
    return Launched(pid, output, trouble)


def _become(
    program: Program, group: Group, parent: int, output_end: int, trouble_end: int
) -> NoReturn:
    """The child's side; leaves only by exec or exit, whatever happens."""
    stage = "process"
    try:
        os.setpgid(0, 0)
        kernel.die_with(parent)
        _plain_signals()
        stage = "cgroup"
        group.join()
        stage = "directory"
        _plain_files(output_end)
        os.chdir(program.directory)
        stage = "exec"
        _exec(program)
    except OSError as problem:
        file = problem.filename or ""
        exists = "/" in file and os.path.exists(file)
        number = problem.errno or errno.EIO
        os.write(trouble_end, f"{stage}\0{number}\0{int(exists)}".encode())
    finally:
        os._exit(_EXEC_FAILED)


def _plain_signals() -> None:
    """What is ignored would survive the exec: by Python, by the monitor, by whoever started us."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if signal.getsignal(number) is not signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _plain_files(output_end: int) -> None:
    os.umask(0o022)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.dup2(output_end, 1)
    os.dup2(output_end, 2)


def _exec(program: Program) -> NoReturn:
    """Like execvpe, with the first telling error instead of the last one."""
    name = program.argv[0]
    if "/" in name:
        _exec_path(name, program)
    denied: OSError | None = None
    for directory in program.env.get("PATH", "").split(os.pathsep):
        path = os.path.join(directory or ".", name)
        try:
            _exec_path(path, program)
        except OSError as problem:
            if problem.errno == errno.EACCES or os.path.exists(path):
                denied = denied or OSError(problem.errno, problem.strerror, path)
            elif problem.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise
    raise denied or FileNotFoundError(errno.ENOENT, "not found", name)


def _exec_path(path: str, program: Program) -> NoReturn:
    for _ in range(_BUSY_TRIES):
        try:
            os.execve(path, program.argv, program.env)  # noqa: S606 - the step as it was ordered
        except OSError as problem:
            # Somebody who forked at the wrong instant still holds the fresh file open for writing.
            if problem.errno != errno.ETXTBSY:
                raise OSError(problem.errno, problem.strerror, path) from None
        time.sleep(_BUSY_PAUSE_S)
    raise OSError(errno.ETXTBSY, os.strerror(errno.ETXTBSY), path)
