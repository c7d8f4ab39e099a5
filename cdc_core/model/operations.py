"""Which operation codes does V$LOGMNR_CONTENTS show?"""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
    """``OPERATION_CODE`` by name.

    Source: Oracle Database Reference 19c, V$LOGMNR_CONTENTS; code 29 was measured on 23ai, where
    the manual says 28.
    """

    INTERNAL = 0
    INSERT = 1
    DELETE = 2
    UPDATE = 3
    DDL = 5
    START = 6
    COMMIT = 7
    SELECT_LOB_LOCATOR = 9
    LOB_WRITE = 10
    LOB_TRIM = 11
    SELECT_FOR_UPDATE = 25
    LOB_ERASE_DOCUMENTED = 28
    LOB_ERASE = 29
    MISSING_SCN = 34
    ROLLBACK = 36
    XML_DOC_BEGIN = 68
    XML_DOC = 69
    XML_DOC_WRITE = 70
    XML_DOC_END = 71
    EXTENDED_BEGIN = 91
    EXTENDED_WRITE = 92
    EXTENDED_END = 93
    UNSUPPORTED = 255
    RESELECTED = 1001
    """Not LogMiner's: landing's own, of an UPDATE with a LOB that the redo does not carry and
    Redolake has read as of the commit."""


CONTROL = (Operation.START, Operation.COMMIT, Operation.ROLLBACK)
"""Rows that begin or end a transaction."""

IGNORED = (Operation.INTERNAL, Operation.SELECT_FOR_UPDATE)
"""Rows that change nothing which is captured: capture does not ask for them, but for INTERNAL ones
that close a statement with LOBs."""

ENDS = (Operation.COMMIT, Operation.ROLLBACK)
"""Rows that end a transaction."""

LOB_OPERATIONS = (
    Operation.SELECT_LOB_LOCATOR,
    Operation.LOB_WRITE,
    Operation.LOB_TRIM,
    Operation.LOB_ERASE_DOCUMENTED,
    Operation.LOB_ERASE,
    Operation.XML_DOC_BEGIN,
    Operation.XML_DOC,
    Operation.XML_DOC_WRITE,
    Operation.XML_DOC_END,
    Operation.EXTENDED_BEGIN,
    Operation.EXTENDED_WRITE,
    Operation.EXTENDED_END,
)
"""Rows that write the value of one column piece by piece."""
