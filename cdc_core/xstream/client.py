"""How are LCRs received from an XStream outbound server through Oracle's client library?

A call of the server gives LCRs until it has none, or some seconds have passed; between two calls
one may detach. What was processed is said by its position: the server then lets go of the redo
below it, and never gives it again.
"""

from __future__ import annotations

import ctypes
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from ctypes import byref, c_char_p, c_int, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from datetime import datetime
from decimal import Decimal
from functools import cache
from types import TracebackType
from typing import Any, NoReturn, Protocol

from cdc_core.config import OracleConfig, XStreamConfig
from cdc_core.decode.unnamed import number_text
from cdc_core.errors import (
    CdcError,
    ConfigError,
    LeaseHeldError,
    LogsNotReadyError,
    OracleError,
    OracleUnavailableError,
    PreflightError,
)
from cdc_core.model.logins import Login
from cdc_core.oracle.ora_codes import KNOWN_CODES, cdc_error
from cdc_core.oracle.refused_logins import REFUSED_LOGINS
from cdc_core.xstream.lcrs import LOB_DATA, Lcr, Value
from cdc_core.xstream.library import (
    OCI_STILL_EXECUTING,
    OCI_SUCCESS,
    OCI_SUCCESS_WITH_INFO,
    load_library,
)
from cdc_core.xstream.oci_values import from_oci, number_of
from cdc_core.xstream.values import NUMBER

_LOG = logging.getLogger(__name__)
_THREADED_OBJECT = 3
_ENV, _ERROR, _SVCCTX, _SERVER, _SESSION = 1, 2, 3, 8, 9
_ATTR_SERVER, _ATTR_SESSION, _ATTR_USERNAME, _ATTR_PASSWORD = 6, 7, 22, 23
_ATTR_ACK_INTERVAL, _ATTR_IDLE_TIMEOUT = 350, 351
_CRED_RDBMS, _AL32UTF8 = 1, 873
_DDL, _OLD, _NEW, _NEW_ONLY, _MORE_DATA = 4, 0, 1, 1, 1
_POSITION_BYTES, _COLUMNS_MAX, _POSITION_VERSION = 64, 4096, 2
_IND_NULL, _TEXTS = -1, frozenset({1, 96, 8})
_ATTACH_TRIES, _ATTACH_SECONDS = 6, 5.0

UNPROVED = (
    "XStream: this project has never run its client against Oracle's own library; compare often with `redolake reconcile`, "
    "see how-to/xstream.md"
)

_ERRORS: dict[int, tuple[type[CdcError], str, str]] = {
    26653: (
        LogsNotReadyError,
        "the outbound server is still starting",
        "It starts again whenever a client detaches. Run it again; if that lasts, look at DBA_APPLY and DBA_CAPTURE for errors.",
    ),
    23656: (OracleUnavailableError, "the outbound server does not answer", "Run it again."),
    26928: (
        OracleUnavailableError,
        "the outbound server's coordinator does not answer",
        "Run it again; if that lasts, restart the server with DBMS_XSTREAM_ADM.START_OUTBOUND.",
    ),
    26812: (
        LeaseHeldError,
        "another client is attached to the outbound server",
        "One outbound server serves one client: end the other one, or create a server for each.",
    ),
    26701: (
        ConfigError,
        "the outbound server does not exist",
        "deploy/oracle/xstream.sql creates it. Name it under capture.server, and connect to the root container.",
    ),
    26913: (
        ConfigError,
        "the outbound server runs on another instance of the cluster",
        "Let capture.dsn, or oracle.dsn, lead to its instance: a descriptor with a service that runs there only.",
    ),
    1031: (
        PreflightError,
        "the user may not attach to the outbound server",
        "`DBMS_XSTREAM_ADM.ALTER_OUTBOUND(server_name => …, connect_user => …)` lets it.",
    ),
}
"""By number of ORA-: what it is, and whether another try can help. The first four are tried again
while attaching. Others mean what they mean to the driver."""
_RETRIED = frozenset({26653, 23656, 26928, 26812})


class LcrSource(Protocol):
    """An outbound server, as a client sees it. One client is attached at a time."""

    def attach(self, scn: int) -> None:
        """Begin above an SCN: what committed above it comes, and perhaps some at or below.

        Raises:
            TransientError: Not now: another client is attached, or the server starts.
            OracleError: The server was told that more is processed.
        """

    def receive(self) -> Iterator[Lcr]:
        """The LCRs of one call of the server. Where it has none, one low watermark.

        Raises:
            TransientError: The connection was lost, or the server ended.
        """

    def set_low_watermark(self, scn: int) -> None:
        """Everything that committed at or below an SCN is processed: the server lets go of it."""

    def detach(self) -> None:
        """End. A call that runs is run to its end first."""


class OciSource:
    """An :class:`LcrSource` through Oracle's client library, for a ``with`` block. ``logging_in``
    guards the login (:meth:`~cdc_core.oracle.database.OracleDatabase.logging_in`)."""

    def __init__(
        self,
        how: XStreamConfig,
        oracle: OracleConfig,
        logging_in: Callable[[Login], AbstractContextManager[None]] = REFUSED_LOGINS.attempt,
    ) -> None:
        assert how.server is not None
        self._server, self._how, self._oracle = how.server, how, oracle
        password = oracle.password.get_secret_value()
        self._login = Login(how.dsn or oracle.dsn, oracle.user, password)
        self._logging_in = logging_in
        self._oci = load_library(how.library)
        self._handles: dict[int, c_void_p] = {}
        self._arrays = _Arrays(_COLUMNS_MAX)
        self._is_receiving = self._is_attached = False

    def __enter__(self) -> OciSource:
        _say_once()
        try:
            with self._logging_in(self._login):
                self._connect()
        except BaseException:
            self._free()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(CdcError):  # what happened before counts
            if self._is_attached and not isinstance(error, CdcError):
                self.detach()
        self._oci.OCISessionEnd(self._svc, self._err, self._handles[_SESSION], 0)
        self._oci.OCIServerDetach(self._handles[_SERVER], self._err, 0)
        self._free()

    def attach(self, scn: int) -> None:
        """See :meth:`LcrSource.attach`."""
        position, name = self.position_of(scn), self._server.encode()
        for left in reversed(range(_ATTACH_TRIES)):
            status = self._oci.OCIXStreamOutAttach(
                self._svc, self._err, name, len(name), position, len(position), 0
            )
            if status == OCI_SUCCESS:
                self._is_attached = True
                return
            code = self._error()
            if code not in _RETRIED or not left:
                self._raise(code)
            time.sleep(_ATTACH_SECONDS)

    def receive(self) -> Iterator[Lcr]:
        """See :meth:`LcrSource.receive`."""
        lcr, kind, flag = c_void_p(), c_uint8(), c_uint64()
        low, length = (c_uint8 * _POSITION_BYTES)(), c_uint16(0)
        is_empty = True
        self._is_receiving = True
        while True:
            status = self._oci.OCIXStreamOutLCRReceive(
                self._svc, self._err, byref(lcr), byref(kind), byref(flag), low, byref(length), 0
            )
            if status == OCI_SUCCESS:
                break
            if status != OCI_STILL_EXECUTING:
                self._is_receiving = False
                self._raise(self._error())
            is_empty = False
            yield self._lcr(
                lcr, is_ddl=kind.value == _DDL, has_chunks=bool(flag.value & _MORE_DATA)
            )
        self._is_receiving = False
        # The server may have more than it gave, unless it had nothing.
        if is_empty and length.value:
            position = bytes(low[: length.value])
            yield Lcr(kind="low", position=position.hex(), scn=self._scns(position)[1])

    def set_low_watermark(self, scn: int) -> None:
        """See :meth:`LcrSource.set_low_watermark`."""
        position = self.position_of(scn)
        self._call("OCIXStreamOutProcessedLWMSet", self._svc, self._err, position, len(position), 0)

    def detach(self) -> None:
        """See :meth:`LcrSource.detach`."""
        if self._is_receiving:
            for _ in self.receive():
                pass  # it comes again
        self._is_attached = False
        self._call("OCIXStreamOutDetach", self._svc, self._err, 0)

    def position_of(self, scn: int) -> bytes:
        """The position of an SCN."""
        position, length = (c_uint8 * _POSITION_BYTES)(), c_uint16(0)
        number = ctypes.create_string_buffer(number_of(scn), 22)
        self._call(
            "OCILCRSCNToPosition2", self._svc, self._err, position, byref(length), number,
            _POSITION_VERSION, 0,
        )  # fmt: skip
        return bytes(position[: length.value])

    # --- The parts of an LCR ----------------------------------------------------------------------

    def _lcr(self, lcr: c_void_p, *, is_ddl: bool, has_chunks: bool) -> Lcr:
        texts = [_Text() for _ in range(7)]
        database, command, owner, name, _tag, transaction, position = texts
        when, flags = (c_uint8 * 8)(), c_uint64()
        self._call(
            "OCILCRHeaderGet", self._svc, self._err, *_pairs(texts[:6]), when, None, None,
            *_pairs([position]), byref(flags), lcr, 0,
        )  # fmt: skip
        at = position.bytes
        scn, commit_scn = self._scns(at)
        found = Lcr(
            kind="ddl" if is_ddl else "row",
            position=at.hex(),
            scn=scn,
            commit_scn=commit_scn,
            command=str(command),
            database=str(database) or None,
            owner=str(owner),
            object=str(name),
            transaction=str(transaction),
            time=_date(bytes(when)),
            flags=flags.value,
            attributes=self._attributes(lcr),
        )
        if is_ddl:
            found.text = self._ddl_text(lcr)
        elif found.command != "COMMIT":
            if found.command in ("UPDATE", "DELETE"):
                found.old = self._columns(lcr, _OLD, 0)
            if found.command != "DELETE":
                found.new = self._columns(lcr, _NEW, _NEW_ONLY)
            if found.command.startswith("LOB "):
                found.new = (*found.new, self._lob(lcr))
        if has_chunks:
            found.chunks = tuple(self._chunks())
        return found

    def _columns(self, lcr: c_void_p, side: int, mode: int) -> tuple[Value, ...]:
        arrays, count = self._arrays, c_uint16()
        self._call(
            "OCILCRRowColumnInfoGet", self._svc, self._err, side, byref(count), *arrays.of_attributes,
            *arrays.of_columns, lcr, arrays.size, mode,
        )  # fmt: skip
        return tuple(
            Value(
                name,
                kind,
                None if stored is None else stored.hex(),
                arrays.flags[at],
                arrays.charsets[at] or (_AL32UTF8 if kind in _TEXTS else None),
            )
            for at, (name, kind, stored) in enumerate(self._given(count.value))
        )

    def _given(self, count: int) -> Iterator[tuple[str, int, bytes | None]]:
        """Names, types and stored bytes of what the arrays have now."""
        arrays = self._arrays
        for at in range(count):
            name = ctypes.string_at(arrays.names[at] or 0, arrays.lengths[at]).decode()
            kind, address = arrays.types[at], arrays.values[at]
            if arrays.nulls[at] == _IND_NULL or not address:
                yield name, kind, None
                continue
            environment = self._handles[_ENV]
            yield (
                name,
                *from_oci(self._oci, environment, self._err, kind, address, arrays.sizes[at]),
            )

    def _lob(self, lcr: c_void_p) -> Value:
        """The column of which an LCR writes a piece."""
        name, kind, flags, offset, size = (
            _Text(),
            c_uint16(),
            c_uint64(),
            c_uint32(),
            c_uint32(),
        )
        self._call(
            "OCILCRLobInfoGet", self._svc, self._err, *_pairs([name]), byref(kind), byref(flags),
            byref(offset), byref(size), lcr, 0,
        )  # fmt: skip
        return Value(str(name), kind.value, None, flags.value | LOB_DATA)

    def _chunks(self) -> Iterator[Value]:
        more = c_uint64(_MORE_DATA)
        while more.value & _MORE_DATA:
            name, kind, flags, charset = _Text(), c_uint16(), c_uint64(), c_uint16()
            size, data = c_uint32(), c_void_p()
            self._call(
                "OCIXStreamOutChunkReceive", self._svc, self._err, *_pairs([name]), byref(kind),
                byref(flags), byref(charset), byref(size), byref(data), byref(more), 0,
            )  # fmt: skip
            stored = ctypes.string_at(data, size.value) if size.value else b""
            yield Value(str(name), kind.value, stored.hex(), flags.value, charset.value or None)

    def _attributes(self, lcr: c_void_p) -> dict[str, str]:
        arrays, count = self._arrays, c_uint16()
        self._call(
            "OCILCRAttributesGet", self._svc, self._err, byref(count), *arrays.of_attributes, lcr,
            arrays.size, 0,
        )  # fmt: skip
        return {
            name: str(int(Decimal(number_text(stored)))) if kind == NUMBER else stored.decode()
            for name, kind, stored in self._given(count.value)
            if stored is not None
        }

    def _ddl_text(self, lcr: c_void_p) -> str:
        kind, text, size = _Text(), c_void_p(), c_uint32()
        rest, flags = [_Text() for _ in range(4)], c_uint64()
        self._call(
            "OCILCRDDLInfoGet", self._svc, self._err, *_pairs([kind]), byref(text), byref(size),
            *_pairs(rest), byref(flags), lcr, 0,
        )  # fmt: skip
        return ctypes.string_at(text, size.value).decode() if size.value else ""

    def _scns(self, position: bytes) -> tuple[int, int]:
        """The SCN and the commit SCN of a position."""
        numbers = [ctypes.create_string_buffer(22) for _ in range(2)]
        self._call(
            "OCILCRSCNsFromPosition", self._svc, self._err, position, len(position), *numbers, 0
        )
        scn, commit_scn = (_integer(one.raw) for one in numbers)
        return scn, commit_scn

    # --- Connection and errors --------------------------------------------------------------------

    @property
    def _svc(self) -> c_void_p:
        return self._handles[_SVCCTX]

    @property
    def _err(self) -> c_void_p:
        return self._handles[_ERROR]

    def _connect(self) -> None:
        oci, environment = self._oci, c_void_p()
        status = oci.OCIEnvNlsCreate(
            byref(environment), _THREADED_OBJECT, None, None, None, None, 0, None, _AL32UTF8, _AL32UTF8
        )  # fmt: skip
        if status != OCI_SUCCESS:
            raise ConfigError(
                "Oracle's client library does not start",
                hint="Its folder must be whole, and ORACLE_HOME not name another client.",
            )
        self._handles[_ENV] = environment
        for kind in (_ERROR, _SERVER, _SVCCTX, _SESSION):
            handle = c_void_p()
            oci.OCIHandleAlloc(environment, byref(handle), kind, 0, None)
            self._handles[kind] = handle
        server, session = self._handles[_SERVER], self._handles[_SESSION]
        dsn = self._login.dsn.encode()
        self._call("OCIServerAttach", server, self._err, dsn, len(dsn), 0)
        seconds = c_uint32(max(1, int(self._how.idle_seconds)))
        for attribute in (_ATTR_ACK_INTERVAL, _ATTR_IDLE_TIMEOUT):
            self._set(server, _SERVER, byref(seconds), 0, attribute)
        self._set(self._svc, _SVCCTX, server, 0, _ATTR_SERVER)
        for text, attribute in (
            (self._login.user, _ATTR_USERNAME),
            (self._login.password, _ATTR_PASSWORD),
        ):
            encoded = text.encode()
            self._set(session, _SESSION, c_char_p(encoded), len(encoded), attribute)
        begun = self._oci.OCISessionBegin(self._svc, self._err, session, _CRED_RDBMS, 0)
        # With information: the password expires within some days (ORA-28002).
        if begun not in {OCI_SUCCESS, OCI_SUCCESS_WITH_INFO}:
            self._raise(self._error())
        self._set(self._svc, _SVCCTX, session, 0, _ATTR_SESSION)

    def _set(self, handle: c_void_p, kind: int, value: Any, size: int, attribute: int) -> None:
        self._call("OCIAttrSet", handle, kind, value, size, attribute, self._err)

    def _call(self, name: str, *arguments: Any) -> None:
        if getattr(self._oci, name)(*arguments) != OCI_SUCCESS:
            self._raise(self._error())

    def _error(self) -> int:
        code, text = c_int(), ctypes.create_string_buffer(3072)
        self._oci.OCIErrorGet(self._err, 1, None, byref(code), text, len(text), _ERROR)
        return code.value

    def _raise(self, code: int) -> NoReturn:
        told = f"ORA-{code:05d}"
        if code in _ERRORS:
            kind, what, hint = _ERRORS[code]
            raise kind(what, hint=hint, server=self._server, ora=told)
        if told in KNOWN_CODES:
            error = cdc_error(RuntimeError(told), user=self._oracle.user)
            raise type(error)(error.message, hint=error.hint, server=self._server, ora=told)
        raise OracleError(
            "the outbound server refuses",
            hint="Oracle's page of the code says why. Where the server has more processed than Redolake has, "
            "`redolake source skip-gap` continues after the gap.",
            server=self._server,
            ora=told,
        )

    def _free(self) -> None:
        for kind in (_SESSION, _SVCCTX, _SERVER, _ERROR, _ENV):
            if handle := self._handles.pop(kind, None):
                self._oci.OCIHandleFree(handle, kind)


@cache
def _say_once() -> None:
    """Once a process is enough."""
    _LOG.warning(UNPROVED)


class _Arrays:
    """Where the library puts what it knows of columns, or of attributes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.names, self.lengths = (c_void_p * size)(), (c_uint16 * size)()
        self.types, self.values = (c_uint16 * size)(), (c_void_p * size)()
        self.nulls, self.sizes = (ctypes.c_int16 * size)(), (c_uint16 * size)()
        self.forms, self.flags = (c_uint8 * size)(), (c_uint64 * size)()
        self.charsets = (c_uint16 * size)()
        self.of_attributes = (
            self.names, self.lengths, self.types, self.values, self.nulls, self.sizes,
        )  # fmt: skip
        self.of_columns = (self.forms, self.flags, self.charsets)


class _Text:
    """A text that the library points to, and its length."""

    def __init__(self) -> None:
        self.at, self.length = c_void_p(), c_uint16(0)

    @property
    def bytes(self) -> bytes:
        return ctypes.string_at(self.at, self.length.value) if self.length.value else b""

    def __str__(self) -> str:
        return self.bytes.decode()


def _pairs(texts: list[_Text]) -> Iterator[Any]:
    for one in texts:
        yield from (byref(one.at), byref(one.length))


def _date(raw: bytes) -> datetime | None:
    year = int.from_bytes(raw[:2], "little", signed=True)
    return datetime(year, *raw[2:7]) if year > 0 else None


def _integer(number: bytes) -> int:
    return int(Decimal(number_text(number[1 : 1 + number[0]])))
