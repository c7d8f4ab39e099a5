"""Which certificates does Java trust?"""

from __future__ import annotations

import re
import secrets
import ssl
import warnings
from pathlib import Path


def trust_store_options(folder: Path, *, bundle: Path | None = None) -> list[str]:
    """JVM options that make Java trust the certificates that Python trusts; writes a trust store
    into ``folder``.

    A Java runtime has its own list of certificates; behind a proxy that inspects TLS, or with a
    private mirror, the resolver would fail with ``PKIX path building failed`` where pip works.

    Args:
        folder: Where the PKCS12 file is written.
        bundle: PEM file; the one that Python uses by default. Without any, Java's own list is used:
            no options.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    found = str(bundle) if bundle else ssl.get_default_verify_paths().cafile
    if not found or not Path(found).is_file():
        return []
    certificates: list[pkcs12.PKCS12Certificate] = []
    pem = Path(found).read_bytes()
    for block in re.findall(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", pem, re.S):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # old roots with odd serial numbers are still in use
                certificate = x509.load_pem_x509_certificate(block)
        except ValueError:  # a certificate outside the standard vouches for nobody
            continue
        certificates.append(
            pkcs12.PKCS12Certificate(certificate, f"ca-{len(certificates)}".encode())
        )
    if not certificates:
        return []
    password = secrets.token_hex(16)
    store = Path(folder) / "trust.p12"
    store.write_bytes(
        pkcs12.serialize_java_truststore(certificates, BestAvailableEncryption(password.encode()))
    )
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        f"-Djavax.net.ssl.trustStorePassword={password}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
    ]
