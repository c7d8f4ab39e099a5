"""How does a client prove its password (O5LOGON, 12c verifier)?

The iteration counts are the server's choice. JDBC raises lower ones to 4096 and 3 without a word,
so these are used.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from oracle_embedded.api import OracleError
from oracle_embedded.wire.connect import FIELDS_OF_18_NEXT
from oracle_embedded.wire.replies import CallEnd, end_message
from oracle_embedded.wire.ttc import ProtocolError, TtcReader, dlc_bytes, ub_bytes

VERIFIER_12C = 0x4815
_VERIFIER_ITERATIONS = 4096
_SESSION_KEY_ITERATIONS = 3
_KEY_SIZE = 32
_SALT_SIZE = 16
_VERIFIER_SALT = secrets.token_bytes(_SALT_SIZE)
"""Oracle keeps one salt with each user's verifier; here one serves all users of a process."""
SERVER_VERSION = 0x13030000
"""19.3 in the packed form of 18c and later."""
_SERVER_VERSION_BEFORE = 0x13300000
"""The same in the form before, whose second number takes four bits."""

Pair = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class AuthRequest:
    """One phase of the login: the call's number, user as typed, mode bits, parameters by key, and
    values of application contexts: namespace, attribute, value."""

    call_number: int
    user: str
    mode: int
    parameters: dict[str, str]
    contexts: tuple[tuple[str, str, str], ...] = ()


def read_auth(
    reader: TtcReader, *, lengths_converted: bool, call_number: int | None = None
) -> AuthRequest:
    """Read function 118 or 115 from its call number on, or from behind it where that is known."""
    if call_number is None:
        call_number = reader.u8()
    has_user = reader.u8()
    user_size = reader.ub()
    mode = reader.ub()
    reader.u8()
    count = reader.ub()
    reader.raw(2)
    user = reader.announced_text(user_size, length_again=lengths_converted) if has_user else ""
    parameters = {}
    contexts: list[str] = []
    for _ in range(count):
        key = reader.text_twice().rstrip("\x00")
        value = reader.text_twice().rstrip("\x00")
        reader.ub()
        if key.startswith("AUTH_APPCTX_"):
            contexts.append(value)
        else:
            parameters[key] = value
    triples = tuple(zip(contexts[::3], contexts[1::3], contexts[2::3], strict=False))
    return AuthRequest(call_number, user, mode, parameters, triples)


def user_name(typed: str) -> str:
    """The user's name in the dictionary: upper case unless it was typed in quotes."""
    if len(typed) > 2 and typed[0] == typed[-1] == '"':
        return typed[1:-1]
    return typed.upper()


@dataclass(slots=True)
class Login:
    """The server's side of one login; ``password`` is None for a user who cannot log in, which is
    not revealed."""

    password: str | None
    _csk_salt: bytes = field(default_factory=lambda: secrets.token_bytes(_SALT_SIZE))
    _server_key: bytes = field(default_factory=lambda: secrets.token_bytes(_KEY_SIZE))
    _shared_key: bytes = b""

    def challenge(self) -> list[Pair]:
        """Parameters of the reply to the first phase; AUTH_VFR_DATA's last number is the verifier
        type."""
        return [
            ("AUTH_SESSKEY", _encrypt(self._password_key(), self._server_key).hex().upper(), 0),
            ("AUTH_VFR_DATA", _VERIFIER_SALT.hex().upper(), VERIFIER_12C),
            ("AUTH_PBKDF2_CSK_SALT", self._csk_salt.hex().upper(), 0),
            ("AUTH_PBKDF2_VGEN_COUNT", str(_VERIFIER_ITERATIONS), 0),
            ("AUTH_PBKDF2_SDER_COUNT", str(_SESSION_KEY_ITERATIONS), 0),
        ]

    def verify(self, parameters: dict[str, str]) -> None:
        """Check the second phase.

        Raises:
            OracleError: ORA-01017, also for an unknown user.
            ProtocolError: Its parameters are missing or no hex text.
        """
        try:
            client_cipher = bytes.fromhex(parameters["AUTH_SESSKEY"])[:_KEY_SIZE]
            client_key = _decrypt(self._password_key(), client_cipher)
            seed = (client_key + self._server_key).hex().upper().encode()
            self._shared_key = hashlib.pbkdf2_hmac(
                "sha512", seed, self._csk_salt, _SESSION_KEY_ITERATIONS, _KEY_SIZE
            )
        except (KeyError, ValueError) as error:
            raise ProtocolError("login parameters are missing or malformed") from error
        if not self._is_password(parameters):
            raise OracleError(1017, "invalid username/password; logon denied")

    def new_password(self, parameters: dict[str, str], *, proves_old: bool = True) -> str | None:
        """The other password that the client wants, None if it wants none. Who changes that of
        another user needs a right, not the old one.

        Raises:
            OracleError: ORA-28008, the old password is wrong; ORA-00988, the new one is no text.
            ProtocolError: A parameter is missing or no hex text.
        """
        if "AUTH_NEWPASSWORD" not in parameters:
            return None
        if proves_old and not self._is_password(parameters):
            raise OracleError(28008, "invalid old password")
        try:
            return self._typed(parameters, "AUTH_NEWPASSWORD").decode()
        except UnicodeDecodeError as error:
            raise OracleError(988, "missing or invalid password(s)") from error

    def _is_password(self, parameters: dict[str, str]) -> bool:
        typed = self._typed(parameters, "AUTH_PASSWORD")
        return self.password is not None and hmac.compare_digest(typed, self.password.encode())

    def _typed(self, parameters: dict[str, str], key: str) -> bytes:
        """A password as the client typed it, behind 16 bytes of salt."""
        try:
            plain = _decrypt(self._shared_key, bytes.fromhex(parameters[key]))
        except (KeyError, ValueError) as error:
            raise ProtocolError("login parameters are missing or malformed") from error
        padding = plain[-1] if plain else 0
        return plain[16 : len(plain) - padding]

    def proof(self) -> Pair:
        """What shows the client that the server knows the password as well."""
        plain = secrets.token_bytes(16) + b"SERVER_TO_CLIENT"
        padded = plain + bytes([16]) * 16
        return ("AUTH_SVR_RESPONSE", _encrypt(self._shared_key, padded).hex().upper(), 0)

    def _password_key(self) -> bytes:
        return _verifier(self.password if self.password is not None else self._csk_salt.hex())


@functools.lru_cache(maxsize=64)
def _verifier(password: str) -> bytes:
    """What a database keeps of a password. Remembered, since it costs milliseconds at every
    login."""
    speedy = hashlib.pbkdf2_hmac(
        "sha512",
        password.encode(),
        _VERIFIER_SALT + b"AUTH_PBKDF2_SPEEDY_KEY",
        _VERIFIER_ITERATIONS,
        64,
    )
    return hashlib.sha512(speedy + _VERIFIER_SALT).digest()[:_KEY_SIZE]


def server_version(field_version: int) -> int:
    """The server's version as a client of this field version reads it."""
    is_older = field_version < FIELDS_OF_18_NEXT
    return _SERVER_VERSION_BEFORE if is_older else SERVER_VERSION


def session_pairs(
    session_id: int, serial: int, *, database: str, service: str, instance: str, field_version: int
) -> list[Pair]:
    """What the client wants to know of its new session."""
    return [
        ("AUTH_VERSION_NO", str(server_version(field_version)), 0),
        ("AUTH_SESSION_ID", str(session_id), 0),
        ("AUTH_SERIAL_NUM", str(serial & 0xFFFF), 0),
        ("AUTH_MAX_OPEN_CURSORS", "300", 0),
        ("AUTH_SC_DBUNIQUE_NAME", database, 0),
        ("AUTH_SC_REAL_DBUNIQUE_NAME", database, 0),
        ("AUTH_SC_SERVICE_NAME", service, 0),
        ("AUTH_INSTANCENAME", instance, 0),
        ("AUTH_MAX_IDEN_LENGTH", "128", 0),
    ]


def parameters_message(pairs: list[Pair], call_number: int) -> bytes:
    """Message 8 with key, value and number triples, and the end of the call, which go-ora waits
    for: a status alone ends a log-in only for other clients."""
    parts = [b"\x08", ub_bytes(len(pairs))]
    for key, value, number in pairs:
        parts += (dlc_bytes(key.encode()), dlc_bytes(value.encode()), ub_bytes(number))
    return b"".join(parts) + end_message(CallEnd(0, call_number))


def _encrypt(key: bytes, plain: bytes) -> bytes:
    encryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor()
    return encryptor.update(plain) + encryptor.finalize()


def _decrypt(key: bytes, cipher: bytes) -> bytes:
    decryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).decryptor()
    return decryptor.update(cipher) + decryptor.finalize()
