"""What can be chosen about the redo of the embedded Oracle?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum


class Wart(StrEnum):
    """An oddity of a real LogMiner that a reader must be able to live with."""

    LATE_REDO = "LATE_REDO"
    """Redo of an open transaction waits in a private strand and reaches the log late, with its old
    SCNs: when its transaction commits, its strand is full, or a log is switched. Measured on Oracle
    23ai."""

    PARTIAL_XIDS = "PARTIAL_XIDS"
    """XIDs with the sequence ``ffffffff`` on undo, ROLLBACK and COMMIT rows that are mined from an
    online log, and on those of transactions that began before the mined range. Seen on 23ai;
    reported from production for COMMIT rows."""

    SPURIOUS_ROLLBACKS = "SPURIOUS_ROLLBACKS"
    """A ROLLBACK row without an address that closes only a rollback to a savepoint. Seen on 23ai,
    in online logs."""

    EMPTY_TRANSACTIONS = "EMPTY_TRANSACTIONS"
    """START rows whose XID is all zero, and COMMIT rows of thread 0 for transactions that changed
    nothing. Reported of 19c and later."""

    UNNAMED_COLUMNS = "UNNAMED_COLUMNS"
    """With the online catalog, rows from before a DDL show ``COL n``, raw values and STATUS 2, and
    those of a dropped table no name. Measured on 23ai, documented for every release. Without it,
    rows keep the names of their time, which only a dictionary in the redo gives on Oracle."""

    LOB_STATEMENTS = "LOB_STATEMENTS"
    """In tables with LOBs, an INSERT and what writes a large LOB have a placeholder for the ROWID;
    an UPDATE with the values that fit into the row, or an INTERNAL row, has the real one; one undo
    row stands for a whole statement. Measured on 23ai."""

    LOB_INSERTS_TOGETHER = "LOB_INSERTS_TOGETHER"
    """In tables with LOBs, the row pieces of an INSERT of several rows stand before all that
    follows them: LOB writes, updates of what fits into the row, INTERNAL rows. From a listing of
    three rows on 26ai; without it each row's follow its own."""

    LOB_UPDATES_UNPLACED = "LOB_UPDATES_UNPLACED"
    """In tables with LOBs, an UPDATE of other columns has a placeholder for the ROWID too, and an
    INTERNAL row behind it. One such UPDATE stands in that listing; on 23ai it has its ROWID
    (measured)."""

    LOB_OFFSETS_IN_UNITS = "LOB_OFFSETS_IN_UNITS"
    """Offsets and trims of CLOBs count UTF-16 units, of which a character outside of the basic
    plane has two, as DBMS_LOB's do in databases whose character set has several bytes (documented).
    That amounts count characters was measured on 23ai; of offsets it is not known."""

    UNSUPPORTED_ROWS = "UNSUPPORTED_ROWS"
    """Changes of a table that has a name longer than 30 bytes, its own, its owner's or a column's,
    or a column that is a nested table or of type BOOLEAN, JSON or VECTOR, come with code 255 and
    without a statement. Met on 23ai; Oracle Database Utilities 19c, "LogMiner Requirements", on
    names, "Supported Data Types, Storage Attributes, and Database and Redo Log File Versions", on
    nested tables."""

    HOLES_OF_NOBODY = "HOLES_OF_NOBODY"
    """The row of a hole in the redo (MISSING_SCN) names no container: the log is that of all. Not
    measured; the manual says of SRC_CON_NAME that it is there "with a dictionary" only."""

    GATHERED_WRITES = "GATHERED_WRITES"
    """One write of the log gathers the strands of all transactions that have ended since the last
    one, in any order: a COMMIT can stand in front of its transaction's rows, and a slot's next
    START in front of the end of the one before. The log is written when somebody looks at it. Said
    by maintainers of a redo parser, with real redo; needs :attr:`LATE_REDO`."""

    UNASSIGNED_START_SCNS = "UNASSIGNED_START_SCNS"
    """V$TRANSACTION has START_SCN 0 of a transaction when it shows it for the first time.
    Debezium passes over such rows, with a warning."""

    REUSED_LOGS = "REUSED_LOGS"
    """START_LOGMNR raises ORA-01368 for an online log that was written over since it was added;
    otherwise ORA-00310, as while rows are fetched. Both were met on real databases."""


class LobRows(Enum):
    """How writing through a locator looks, with :attr:`Wart.LOB_STATEMENTS`."""

    PIECES = "pieces"
    """The locator's row has a statement, the writes follow it as fragments: releases before 23ai,
    as documented."""

    BLOCKS = "blocks"
    """The locator's row has none, each write is a whole block with STATUS 2: measured on 23ai, in
    sessions with NO_SQL_DELIMITER. Readers that do not set that option report :attr:`PIECES` from
    Oracle Free 23 too."""


class XmlRows(Enum):
    """How documents of an XMLTYPE are stored, and written in the redo. Source: the rows that
    Debezium's parser reads, but for :attr:`AMOUNT`."""

    BINARY = "binary"
    """Pieces of bytes, in hex: Oracle's default."""

    AMOUNT = "amount"
    """The same, but a short document as quoted text, and how long it is in a line of its own: seen
    on 19.3, of short documents."""

    TEXT = "text"
    """The text itself: XMLTYPE STORE AS CLOB."""


NEXT_CHANGE_OPEN = 18446744073709551615
"""NEXT_CHANGE# of a log that is being written, in listings of 19c and later."""

DEFAULTS: Mapping[Wart, bool] = {
    Wart.LATE_REDO: True,
    Wart.PARTIAL_XIDS: True,
    Wart.SPURIOUS_ROLLBACKS: True,
    Wart.EMPTY_TRANSACTIONS: True,
    Wart.UNNAMED_COLUMNS: True,
    Wart.LOB_STATEMENTS: True,
    Wart.LOB_INSERTS_TOGETHER: True,
    Wart.LOB_UPDATES_UNPLACED: False,
    Wart.LOB_OFFSETS_IN_UNITS: False,
    Wart.UNSUPPORTED_ROWS: True,
    Wart.HOLES_OF_NOBODY: True,
    Wart.GATHERED_WRITES: False,
    Wart.UNASSIGNED_START_SCNS: True,
    Wart.REUSED_LOGS: False,
}
"""Which oddities a database shows unless its settings say otherwise."""

DEFAULT_WARTS = frozenset(wart for wart, shown in DEFAULTS.items() if shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedoSettings:
    """Settings of one database's redo.

    ``log_bytes`` is the size of an online log in estimated redo bytes. ``clock`` gives seconds
    since 1970 in UTC; the database host's time zone is UTC. ``idle_redo_seconds`` is how often an
    idle instance writes a redo record of its own, as background processes of a real one do; without
    it LAST_REDO_CHANGE# would rest on the last commit. Infinity: never.

    ``warts`` are the oddities that are shown; they can be changed while the database runs. A strand
    is full at ``strand_records`` records or ``strand_bytes`` estimated redo bytes. Of every
    ``partial_xid_every`` transactions one shows partial XIDs. With ``unsupported_undo`` undo rows
    of a rollback to a savepoint come with code 255, and with the SCN of their transaction's COMMIT:
    seen on 19c, in rows of production; shown here of transactions that ended before their redo is
    read. ``lob_rows`` is the shape of one release, ``xml_rows`` how documents are stored.
    ``next_change_open`` is NEXT_CHANGE# of a log that is being written: the default in listings of
    19c, 9295429630892703743 in those of 19.6, 281474976710655 in those of older releases.
    """

    log_bytes: int = 4 * 1024 * 1024
    groups: int = 3
    archivelog: bool = True
    directory: str = "/opt/oracle/oradata"
    clock: Callable[[], float] = time.time
    idle_redo_seconds: float = 3.0
    warts: frozenset[Wart] = DEFAULT_WARTS
    strand_records: int = 500
    strand_bytes: int = 64 * 1024
    partial_xid_every: int = 2
    unsupported_undo: bool = False
    lob_rows: LobRows = LobRows.BLOCKS
    xml_rows: XmlRows = XmlRows.BINARY
    next_change_open: int = NEXT_CHANGE_OPEN

    def __post_init__(self) -> None:
        if self.log_bytes < 4096:
            raise ValueError(f"log_bytes must be 4096 at least, not {self.log_bytes}")
        if self.groups < 2:
            raise ValueError(f"Oracle needs two log groups at least, not {self.groups}")
        for name in ("strand_records", "strand_bytes", "partial_xid_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 at least, not {getattr(self, name)}")
