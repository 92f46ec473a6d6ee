"""Takes an address to listen on, or says in words why not."""

from __future__ import annotations

import errno
import socket

from verderer.core.errors import Refusal


def listen(host: str, port: int) -> socket.socket:
    """A listening socket that children inherit.

    Raises:
        Refusal: the address is taken or not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as e:
        sock.close()
        raise cannot_listen(host, port, e) from e
    sock.listen(2048)
    sock.set_inheritable(True)
    return sock


def cannot_listen(host: str, port: int, error: OSError) -> Refusal:
    """What to say when an address is not ours to listen on."""
    if error.errno == errno.EADDRINUSE:
        hint = "Stop what uses it, or choose another port: --port or server.port."
    elif error.errno == errno.EACCES:
        hint = "Ports below 1024 are for root: choose another server.port."
    else:
        hint = "server.host must be an address of this machine, such as 127.0.0.1 or 0.0.0.0."
    why = error.strerror or str(error)
    return Refusal(f"cannot listen on {host}:{port}: {why}", hint=hint, code="port")
