"""Runs one attempt inside its Slurm job and writes down what becomes of it.

`step.py batch HOME` is the batch script's work: it claims the attempt, which only one job can do
and only once, then runs the program itself or has `srun` run `step.py rank HOME` on every node.
It is copied to the shared folder and started there by whatever Python 3.6 or newer a node has, so
it imports nothing of ours and uses no newer syntax.

SIGTERM means "end, politely": the program gets it too, and SIGKILL after the grace. How much grace
stands in `stop.json`, or in the order when it is Slurm that ends the job.
"""

import errno
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

HEARD = {signal.SIGTERM, signal.SIGCHLD}
NOT_STARTED = 127
NOT_OURS = 75
"""Exit code of a job that may not run the attempt."""
SRUN_ENDS_S = 60.0
PASSED_ON = ("SLURM_", "SLURMD_", "CUDA_", "ROCR_", "ZE_", "GPU_DEVICE_", "HIP_")


def main() -> None:
    """Read the command line and never return."""
    # Before anything else: a signal that comes now must be heard later, not end us.
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    mode, home = sys.argv[1:3]
    order = read(home, "order.json")
    if order is None:
        sys.exit("there is no order in " + home + ": the attempt is not wanted any more")
    if mode == "rank":
        end_as(run(order, home, int(os.environ["SLURM_PROCID"])))
    if not claim(home):
        print("this attempt has been run or was cancelled: it is not run again", file=sys.stderr)
        sys.exit(NOT_OURS)
    if order["nodes"] == 1:
        end_as(run(order, home, 0))
    end_as(spread(order, home))


def claim(home: str) -> bool:
    """Make the attempt this job's own; False when another has it, be it an earlier life of ours."""
    document = {
        "job": os.environ.get("SLURM_JOB_ID", ""),
        "restart": int(os.environ.get("SLURM_RESTART_COUNT", "0") or 0),
        "host": socket.gethostname(),
    }
    # A name of its own each time: the claim is this very file, and must never be written again.
    descriptor, scratch = tempfile.mkstemp(prefix=".claim.", dir=home)
    with os.fdopen(descriptor, "w") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    try:
        # A name cannot be linked twice: whoever comes second is told so by the file server.
        os.link(scratch, os.path.join(home, "claim.json"))
    except OSError:
        # Some servers answer a repeated request with "exists": the number of names tells.
        return os.stat(scratch).st_nlink == 2
    finally:
        os.unlink(scratch)
    return True


def spread(order: "dict[str, Any]", home: str) -> int:
    """Run a rank on each node; the wait status of `srun`."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    environment = dict(os.environ, MASTER_ADDR=socket.gethostname(), MASTER_PORT=str(port))
    nodes = str(order["nodes"])
    command = ["srun", "--nodes=" + nodes, "--ntasks=" + nodes, "--ntasks-per-node=1"]
    command += ["--kill-on-bad-exit=1", "--export=ALL", "--unbuffered", "--input=none"]
    command += ["--cpus-per-task=" + str(order["cpus"])]
    command += [sys.executable, "-I", "-S", os.path.abspath(__file__), "rank", home]
    srun = subprocess.Popen(command, env=environment, preexec_fn=hear_all, start_new_session=True)
    kill_at = float("inf")
    while True:
        pid, status = os.waitpid(srun.pid, os.WNOHANG)
        if pid:
            return status
        if time.monotonic() >= kill_at:
            os.killpg(srun.pid, signal.SIGKILL)
        told = signal.sigtimedwait(HEARD, min(5.0, max(0.0, kill_at - time.monotonic())))
        if told is not None and told.si_signo == signal.SIGTERM:
            # Whoever signals this script signals the ranks as well: they end by themselves.
            kill_at = min(kill_at, time.monotonic() + grace_s(order, home) + SRUN_ENDS_S)


def run(order: "dict[str, Any]", home: str, rank: int) -> int:
    """Run the program of one rank, write down its end and return its wait status."""
    log = os.open(
        os.path.join(home, "log", str(rank)), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
    )
    scratch = tempfile.mkdtemp(prefix=str(order["key"]) + ".")
    end = {"why": "", "status": 0, "message": "", "told_ms": None}
    try:
        if read(home, "stop.json") is not None:
            end["why"] = "told"
            status = int(signal.SIGTERM)
        else:
            status = watch(order, home, rank, start(order, rank, scratch, log), end)
    except StartFailed as problem:
        end["why"], end["message"] = "start", str(problem)
        status = NOT_STARTED << 8
    shutil.rmtree(scratch, ignore_errors=True)
    os.fsync(log)
    end.update(status=status, ended_ms=now_ms(), log_bytes=os.fstat(log).st_size)
    write(home, f"exit.{rank}.json", end)
    return status


def start(order: "dict[str, Any]", rank: int, scratch: str, log: int) -> "subprocess.Popen[bytes]":
    """Start the program in a session of its own."""
    environment = environment_of(order, rank, scratch)
    argv = order["argv"]
    try:
        os.chdir(order["directory"])
    except OSError as problem:
        where = f"the working directory cannot be entered on {host_name()}"
        raise StartFailed(f"{where}: {problem.strerror}") from problem
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            preexec_fn=begin_session,
        )
    except OSError as problem:
        raise StartFailed(why_not(problem, argv[0], environment.get("PATH", ""))) from problem


def watch(
    order: "dict[str, Any]",
    home: str,
    rank: int,
    program: "subprocess.Popen[bytes]",
    end: "dict[str, Any]",
) -> int:
    """Wait for the program, end it when that is due, and return its wait status."""
    began = time.monotonic()
    write(home, f"running.{rank}.json", {"started_ms": now_ms(), "host": host_name()})
    limit = order["timeout_s"]
    timeout_at = float("inf") if limit is None else began + limit
    kill_at = beat_at = float("inf")
    if order["beat_s"]:
        beat_at = began + order["beat_s"]
    while True:
        pid, status = os.waitpid(program.pid, os.WNOHANG)
        if pid:
            signal_group(program.pid, signal.SIGKILL)
            return status
        now = time.monotonic()
        if now >= kill_at:
            signal_group(program.pid, signal.SIGKILL)
            kill_at = now + 1.0
        if now >= timeout_at:
            timeout_at = float("inf")
            end["why"] = end["why"] or "timeout"
            signal_group(program.pid, signal.SIGTERM)
            kill_at = min(kill_at, now + order["grace_s"])
        if now >= beat_at:
            beat(home, rank)
            beat_at = now + order["beat_s"]
        due = min(timeout_at, kill_at, beat_at, now + 60.0)
        told = signal.sigtimedwait(HEARD, max(0.0, due - time.monotonic()))
        if told is not None and told.si_signo == signal.SIGTERM:
            if not end["why"]:
                end["why"], end["told_ms"] = "told", now_ms()
                signal_group(program.pid, signal.SIGTERM)
            kill_at = min(kill_at, time.monotonic() + grace_s(order, home))


def environment_of(order: "dict[str, Any]", rank: int, scratch: str) -> "dict[str, str]":
    """What the program sees: Slurm's words about the job, the order's own, and its devices."""
    found = {k: v for k, v in os.environ.items() if k.startswith(PASSED_ON)}
    found.update(TMPDIR=scratch)
    found.update(order["env"])
    found["VERDERER_NODE_RANK"] = str(rank)
    found["VERDERER_NUM_NODES"] = str(order["nodes"])
    found["MASTER_ADDR"] = os.environ.get("MASTER_ADDR", "127.0.0.1")
    if "MASTER_PORT" in os.environ:
        found["MASTER_PORT"] = os.environ["MASTER_PORT"]
    if order["devices"]:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        found["NVIDIA_VISIBLE_DEVICES"] = visible or "void"
        if visible:
            found["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    else:
        # Empty is "none" for these: without them a program sees every device of the node.
        found.update(CUDA_VISIBLE_DEVICES="", ROCR_VISIBLE_DEVICES="", HIP_VISIBLE_DEVICES="")
        found["NVIDIA_VISIBLE_DEVICES"] = "void"
    return found


class StartFailed(Exception):
    """The program could not be started; says why in one sentence."""


def why_not(problem: OSError, program: str, path: str) -> str:
    """One sentence on why the program could not be started."""
    number = problem.errno
    if number in (errno.ENOENT, errno.ENOTDIR):
        if "/" in program and os.path.exists(program):
            return program + " cannot run: the interpreter in its first line does not exist"
        where = "" if "/" in program else f" (looked in {path or 'an empty PATH'})"
        return f"command not found: {program}{where} on {host_name()}"
    if number == errno.EACCES:
        return f"permission denied: {program} is not an executable file"
    if number == errno.ENOEXEC:
        return program + " is neither a program for this node nor a script with a #! line"
    if number == errno.E2BIG:
        return "the arguments and the environment together are too long"
    return f"{program} could not be started: {problem.strerror}"


def grace_s(order: "dict[str, Any]", home: str) -> float:
    """Seconds between SIGTERM and SIGKILL, as whoever asked for the end wishes."""
    stop = read(home, "stop.json")
    return float((stop or order)["grace_s"])


def begin_session() -> None:
    """In the child: a session of its own, and signals as they come."""
    os.setsid()
    hear_all()


def hear_all() -> None:
    """In the child: signals are not held back."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)


def signal_group(leader: int, number: int) -> None:
    """Signal all that the program started and that stayed in its group."""
    try:
        os.killpg(leader, number)
    except OSError:
        pass


def beat(home: str, rank: int) -> None:
    """Show that this rank lives, for an agent whose Slurm has forgotten the job."""
    try:
        with open(os.path.join(home, f"alive.{rank}"), "w") as file:
            file.write(str(now_ms()))
    except OSError:
        pass


def end_as(status: int) -> None:
    """End like the program did, so that Slurm's own record says the same. Never returns."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        hear_all()
        os.kill(os.getpid(), number)
        time.sleep(1)
    sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


def read(home: str, name: str) -> "dict[str, Any] | None":
    """A document of the attempt, or None when there is none."""
    try:
        with open(os.path.join(home, name), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write(home: str, name: str, document: "dict[str, Any]") -> None:
    """Write a document whole or not at all; what cannot be written, Slurm's record tells."""
    path = os.path.join(home, name)
    try:
        write_file(path + ".tmp", document)
        os.rename(path + ".tmp", path)
    except OSError as problem:
        print(f"{path} cannot be written: {problem}", file=sys.stderr)


def write_file(path: str, document: "dict[str, Any]") -> None:
    """Write and flush to the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())


def host_name() -> str:
    """The node, as Slurm calls it."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def now_ms() -> int:
    """Unix milliseconds by this node's clock."""
    return int(time.time() * 1000)


if __name__ == "__main__":
    main()
