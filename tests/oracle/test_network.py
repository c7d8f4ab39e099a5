"""What becomes of failures of the network and of TLS, against real sockets; and that a wallet opens the way."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cdc_core.config import OracleConfig
from cdc_core.errors import (
    CdcError,
    ConfigError,
    OracleUnavailableError,
    PreflightError,
    TransientError,
)
from cdc_core.oracle.session import connect
from oracle_embedded.server import EmbeddedServer
from tests.oracle_embedded.wire.fake_engine import FakeEngine

PEM = serialization.Encoding.PEM


def config(dsn: str, **more: object) -> OracleConfig:
    return OracleConfig.model_validate(
        {"dsn": dsn, "user": "scott", "password": "tiger", "connect_timeout_seconds": 60, **more}
    )


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(FakeEngine()) as server:
        yield server


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a server's key and certificate for localhost (server.pem), and a wallet that trusts it."""
    folder = tmp_path_factory.mktemp("identity")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    locked = serialization.BestAvailableEncryption(b"walletsecret")
    pkcs8 = serialization.PrivateFormat.PKCS8
    public = certificate.public_bytes(PEM)
    (folder / "server.pem").write_bytes(key.private_bytes(PEM, pkcs8, plain) + public)
    (folder / "ewallet.pem").write_bytes(key.private_bytes(PEM, pkcs8, locked) + public)
    return folder


@contextmanager
def tls_in_front_of(port: int, identity: Path) -> Iterator[int]:
    """A port that speaks TLS and hands everything on to another port of this machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity / "server.pem")
    listener = socket.create_server(("127.0.0.1", 0))

    def carry(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, target):
                end.close()

    def accept() -> None:
        while True:
            try:
                raw, _ = listener.accept()
            except OSError:
                return
            try:
                client = context.wrap_socket(raw, server_side=True)
            except OSError:
                raw.close()
                continue
            database = socket.create_connection(("127.0.0.1", port))
            for ends in ((client, database), (database, client)):
                threading.Thread(target=carry, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


@contextmanager
def hangs_up() -> Iterator[int]:
    """A port where something answers that is no database: it hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                listener.accept()[0].close()
            except OSError:
                return

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def refused(config: OracleConfig) -> CdcError:
    with pytest.raises(CdcError) as caught:
        connect(config)
    assert caught.value.hint
    return caught.value


def test_a_host_name_that_cannot_be_resolved_may_be_tried_again() -> None:
    error = refused(config("nohost.invalid:1521/ORCL"))
    assert isinstance(error, OracleUnavailableError)
    assert isinstance(error, TransientError)
    assert "host name cannot be resolved" in error.message
    assert error.facts["dsn"] == "nohost.invalid:1521/ORCL"


def test_a_refused_connection_and_one_that_is_hung_up_may_be_tried_again() -> None:
    with hangs_up() as port:
        assert isinstance(refused(config(f"127.0.0.1:{port}/ORCL")), OracleUnavailableError)
    assert isinstance(refused(config("127.0.0.1:1/ORCL")), OracleUnavailableError)


def test_a_certificate_that_is_not_trusted_stops_with_the_wallet_as_way_out(
    server: EmbeddedServer, identity: Path
) -> None:
    with tls_in_front_of(server.port, identity) as port:
        error = refused(config(f"tcps://localhost:{port}/FREEPDB1"))
    assert isinstance(error, PreflightError)
    assert error.facts["tls"] == "CERTIFICATE_VERIFY_FAILED"
    assert "oracle.wallet_location" in error.hint


def test_a_wallet_without_its_file_is_named(
    server: EmbeddedServer, identity: Path, tmp_path: Path
) -> None:
    with tls_in_front_of(server.port, identity) as port:
        wallet = {"wallet_location": str(tmp_path)}
        error = refused(config(f"tcps://localhost:{port}/FREEPDB1", **wallet))
    assert isinstance(error, PreflightError)
    assert "ewallet.pem" in str(error.facts["tls"])


def test_a_wallet_with_its_password_opens_an_encrypted_session(
    server: EmbeddedServer, identity: Path
) -> None:
    with tls_in_front_of(server.port, identity) as port:
        wallet = {"wallet_location": str(identity), "wallet_password": "walletsecret"}
        with connect(config(f"tcps://localhost:{port}/FREEPDB1", **wallet)) as session:
            session.apply_settings()
        error = refused(config(f"tcps://127.0.0.1:{port}/FREEPDB1", **wallet))
    assert isinstance(error, PreflightError), "the certificate is for localhost"


@pytest.mark.parametrize(
    "dsn", ["a name of nowhere", "(DESCRIPTION=(X", ":::", "half:/of:it"], ids=repr
)
def test_what_is_no_connect_string_is_a_configuration_error(dsn: str) -> None:
    error = refused(config(dsn))
    assert isinstance(error, ConfigError)
    assert "tcps://host:port/service" in error.hint


def test_a_name_is_looked_up_in_the_folder_that_is_configured(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    address = f"(ADDRESS=(PROTOCOL=TCP)(HOST=127.0.0.1)(PORT={server.port}))"
    service = "(CONNECT_DATA=(SERVICE_NAME=FREEPDB1))"
    (tmp_path / "tnsnames.ora").write_text(f"HR = (DESCRIPTION={address}{service})\n")
    with connect(config("hr", config_dir=str(tmp_path))) as session:
        session.apply_settings()


def test_a_right_that_is_missing_is_granted_to_the_user_by_name() -> None:
    from cdc_core.oracle.ora_codes import cdc_error

    import oracledb  # isort: skip

    error = cdc_error(oracledb.DatabaseError("ORA-01045: lacks"), user="C##CDC")
    assert error.hint.startswith("GRANT CREATE SESSION TO C##CDC;")
