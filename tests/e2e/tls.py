"""TLS before a plain server, with a certificate of an authority that nobody knows."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Way:
    """Where it listens, and the file that makes its certificate trusted."""

    port: int
    authority: Path


@contextmanager
def proxy(folder: Path, port: int) -> Iterator[Way]:
    """Pass connections on to `port` of this machine, which answers to `localhost` alone."""
    certificate, key, authority = _certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def serve() -> asyncio.Server:
        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))

        return await asyncio.start_server(pass_on, "127.0.0.1", 0, ssl=context)

    server = asyncio.run_coroutine_threadsafe(serve(), loop).result(10)
    try:
        yield Way(server.sockets[0].getsockname()[1], authority)
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()
        await writer.wait_closed()


def _certificates(folder: Path) -> tuple[Path, Path, Path]:
    """A server's certificate, its key, and the authority that signed it."""
    ours = ec.generate_private_key(ec.SECP256R1())
    root = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "An authority of our own")])
    top = _builder(root, root, ours).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    authority = folder / "authority.pem"
    authority.write_bytes(top.sign(ours, hashes.SHA256()).public_bytes(_PEM))
    theirs = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    leaf = _builder(name, root, theirs).add_extension(
        x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False
    )
    certificate, key = folder / "server.pem", folder / "server.key"
    certificate.write_bytes(leaf.sign(ours, hashes.SHA256()).public_bytes(_PEM))
    key.write_bytes(
        theirs.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, key, authority


_PEM = serialization.Encoding.PEM


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )
