"""Is Oracle's client library here, and which of its functions read an XStream outbound server?

Names, numbers and signatures are those of Oracle's public headers (``oci.h``, ``ocixstream.h``).
The library comes with Oracle Instant Client; nothing of it is part of this project.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Sequence
from ctypes import (
    POINTER,
    c_char_p,
    c_int,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)

from cdc_core.errors import ConfigError

OCI_SUCCESS, OCI_SUCCESS_WITH_INFO, OCI_STILL_EXECUTING = 0, 1, -3123

_INSTALL = (
    "Install Oracle Instant Client Basic 12.2 or newer, put its folder into LD_LIBRARY_PATH, or name the file under capture.library. "
    "Its use is under Oracle's own licence, and XStream needs one for Oracle GoldenGate on the database."
)
_VERSION_MIN = (12, 2)
_P, _U1, _U2, _U4, _U8 = c_void_p, c_uint8, c_uint16, c_uint32, c_uint64
_OUT, _OUT1, _OUT2, _OUT4, _OUT8 = map(POINTER, (_P, _U1, _U2, _U4, _U8))
_HANDLES = (_P, _P)  # service context and error handle, or two others

_SIGNATURES: dict[str, Sequence[type]] = {
    "OCIEnvNlsCreate": (_OUT, _U4, _P, _P, _P, _P, c_size_t, _P, _U2, _U2),
    "OCIHandleAlloc": (_P, _OUT, _U4, c_size_t, _P),
    "OCIHandleFree": (_P, _U4),
    "OCIAttrSet": (_P, _U4, _P, _U4, _U4, _P),
    "OCIServerAttach": (*_HANDLES, c_char_p, c_int, _U4),
    "OCIServerDetach": (*_HANDLES, _U4),
    "OCISessionBegin": (*_HANDLES, _P, _U4, _U4),
    "OCISessionEnd": (*_HANDLES, _P, _U4),
    "OCIErrorGet": (_P, _U4, _P, POINTER(c_int), c_char_p, _U4, _U4),
    "OCIDateTimeGetDate": (*_HANDLES, _P, POINTER(ctypes.c_int16), _OUT1, _OUT1),
    "OCIDateTimeGetTime": (*_HANDLES, _P, _OUT1, _OUT1, _OUT1, _OUT4),
    "OCIDateTimeGetTimeZoneOffset": (
        *_HANDLES, _P, POINTER(ctypes.c_int8), POINTER(ctypes.c_int8),
    ),
    "OCIIntervalGetDaySecond": (*_HANDLES, *[POINTER(c_int)] * 5, _P),
    "OCIIntervalGetYearMonth": (*_HANDLES, *[POINTER(c_int)] * 2, _P),
    "OCIRowidToChar": (_P, c_char_p, _OUT2, _P),
    "OCIXStreamOutAttach": (*_HANDLES, c_char_p, _U2, c_char_p, _U2, _U4),
    "OCIXStreamOutDetach": (*_HANDLES, _U4),
    "OCIXStreamOutLCRReceive": (*_HANDLES, _OUT, _OUT1, _OUT8, _P, _OUT2, _U4),
    "OCIXStreamOutChunkReceive": (
        *_HANDLES, _OUT, _OUT2, _OUT2, _OUT8, _OUT2, _OUT4, _OUT, _OUT8, _U4,
    ),
    "OCIXStreamOutProcessedLWMSet": (*_HANDLES, c_char_p, _U2, _U4),
    "OCILCRHeaderGet": (*_HANDLES, *[_OUT, _OUT2] * 6, _P, _OUT2, _OUT2, _OUT, _OUT2, _OUT8, _P, _U4),
    "OCILCRRowColumnInfoGet": (*_HANDLES, _U2, _OUT2, *[_P] * 9, _P, _U2, _U4),
    "OCILCRDDLInfoGet": (
        *_HANDLES, _OUT, _OUT2, _OUT, _OUT4, *[_OUT, _OUT2] * 4, _OUT8, _P, _U4,
    ),
    "OCILCRLobInfoGet": (*_HANDLES, _OUT, _OUT2, _OUT2, _OUT8, _OUT4, _OUT4, _P, _U4),
    "OCILCRAttributesGet": (*_HANDLES, _OUT2, *[_P] * 6, _P, _U2, _U4),
    "OCILCRSCNToPosition2": (*_HANDLES, _P, _OUT2, _P, _U1, _U4),
    "OCILCRSCNsFromPosition": (*_HANDLES, c_char_p, _U2, _P, _P, _U4),
}  # fmt: skip


def load_library(path: str | None) -> ctypes.CDLL:
    """The library, with the functions that are needed declared.

    Args:
        path: Its file; None where the system knows it as ``libclntsh``.

    Raises:
        ConfigError: It is not here, too old, or lacks a function.
    """
    name = path or ctypes.util.find_library("clntsh") or "libclntsh.so"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise ConfigError(
            "Oracle's client library was not found", hint=_INSTALL, library=name
        ) from error
    lacks = [one for one in (*_SIGNATURES, "OCIClientVersion") if not hasattr(library, one)]
    if lacks:
        raise ConfigError(
            "Oracle's client library lacks functions of XStream",
            hint=_INSTALL,
            library=name,
            functions=", ".join(lacks),
        )
    found = [c_int() for _ in range(5)]
    library.OCIClientVersion(*map(ctypes.byref, found))
    version = (found[0].value, found[1].value)
    if version < _VERSION_MIN:
        raise ConfigError(
            "Oracle's client library is too old",
            hint=_INSTALL,
            library=name,
            version=".".join(map(str, version)),
        )
    for function, arguments in _SIGNATURES.items():
        getattr(library, function).argtypes = list(arguments)
        getattr(library, function).restype = c_int
    return library
