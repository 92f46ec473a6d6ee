"""The program that signs: one request on standard input, one answer on standard output."""

from __future__ import annotations

import sys

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from verderer.agent.identity.signing import Request, Signature

_MOST = 1 << 16


def main() -> None:
    """Answer it; anything else ends with a traceback on standard error."""
    asked = msgspec.json.decode(sys.stdin.buffer.read(_MOST), type=Request)
    if asked.private_key is None:
        key = Ed25519PrivateKey.generate()
    else:
        key = Ed25519PrivateKey.from_private_bytes(asked.private_key)
    answer = Signature(
        private_key=key.private_bytes_raw(),
        public_key=key.public_key().public_bytes_raw(),
        signature=key.sign(asked.message),
    )
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
