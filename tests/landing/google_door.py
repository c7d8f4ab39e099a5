"""A door to what stands for Google Cloud Storage, for a client that knows Google's own address alone: an HTTPS proxy on loopback.

Whatever host a client wants to be connected to, the door answers with a certificate for ``storage.googleapis.com`` that a
trust store of its own vouches for, and passes all bytes on to the server on this machine. Nothing leaves it.
"""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cdc_core.runtime.trust_store import trust_store_options

_HOSTS = ("storage.googleapis.com", "oauth2.googleapis.com", "www.googleapis.com")


@contextmanager
def google_door(endpoint: str, folder: Path) -> Iterator[list[str]]:
    """Open it for the block; what a JVM must be told so that it goes through it.

    Args:
        endpoint: Where the server is.
        folder: For the certificate and the trust store.
    """
    certificate = _certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    there = urlsplit(endpoint)
    target = (there.hostname or "", there.port or 80)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(listener, context, target), daemon=True).start()
    try:
        port = listener.getsockname()[1]
        proxy = ["-Dhttps.proxyHost=127.0.0.1", f"-Dhttps.proxyPort={port}"]
        yield [*proxy, *trust_store_options(folder, bundle=certificate)]
    finally:
        listener.close()


def _accept(listener: socket.socket, context: ssl.SSLContext, target: tuple[str, int]) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve, args=(client, context, target), daemon=True).start()


def _serve(raw: socket.socket, context: ssl.SSLContext, target: tuple[str, int]) -> None:
    asked = b""
    while not asked.endswith(b"\r\n\r\n"):
        if not (more := raw.recv(1)):
            return
        asked += more
    raw.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    try:
        client = context.wrap_socket(raw, server_side=True)
    except OSError:
        raw.close()
        return
    server = socket.create_connection(target)
    threading.Thread(target=_pass, args=(server, client), daemon=True).start()
    _pass(client, server)


def _pass(there: socket.socket, here: socket.socket) -> None:
    with suppress(OSError):
        while data := there.recv(65536):
            here.sendall(data)
    for one in (there, here):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


def _certificate(folder: Path) -> Path:
    """A file with a key and a certificate for Google's hosts, which vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _HOSTS[0])])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(map(x509.DNSName, _HOSTS)), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    path = folder / "google.pem"
    path.write_bytes(secret + certificate.public_bytes(pem))
    return path
