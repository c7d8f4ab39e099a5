"""What became of each row of an export, and of each transaction? Kept in a file, so that an export
of any size is explained.

The file is a SQLite database in a folder of its own, which goes when the explanation is closed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

FINDINGS_MAX = 1_000
"""So many findings are kept; of the others, their number."""


class Outcome(StrEnum):
    """What becomes of a redo row."""

    CHANGE = "change"
    """It is a change of its table."""
    WAITS = "waits"
    """It would be a change; the export has no COMMIT of its transaction."""
    TAKEN_BACK = "taken back"
    """The transaction took it back itself: a partial rollback."""
    TAKES_BACK = "takes back"
    """It takes an earlier row of its transaction back."""
    JOINED = "joined"
    """It writes a piece of a LOB, and is part of the change of another row."""
    ROLLED_BACK = "rolled back"
    """Its transaction ended with ROLLBACK."""
    UNDECODABLE = "undecodable"
    """It cannot become a change without guessing."""
    LEFT_OUT = "left out"
    """It is about what is not captured."""
    DDL = "ddl"
    """It changes the definition of its table."""
    BEGINS = "begins"
    COMMITS = "commits"
    ENDS = "ends"
    OTHER = "other"
    """It belongs to no described table."""
    DAMAGED = "damaged"
    """It could not be read."""
    PENDING = "pending"
    """It has not been looked at yet."""


TransactionState = Literal["committed", "rolled back", "open", "evicted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRow:
    """One statement of the export: a row, or several that Oracle split it over.

    Attributes:
        first_row, last_row: The rows' numbers in the file, from 1 on.
        table: ``OWNER.TABLE`` of a described table, else None.
        why: Why its outcome is not ``change``, or None.
        way_out: What an operator does about it.
        part_of: Of a joined row, the first row of the one whose change it is part of.
        op: ``c``, ``u`` or ``d`` of a change.
        before, after: The carried columns of the old and the new image; numbers that are not whole,
            and times, as text, bytes as hexadecimal digits.
        sql_redo: The statement of an undecodable row and of a DDL.
    """

    first_row: int
    last_row: int
    scn: int | None = None
    xid: str | None = None
    operation: str | None = None
    table: str | None = None
    outcome: Outcome
    why: str | None = None
    way_out: str | None = None
    part_of: int | None = None
    op: str | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    sql_redo: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedTransaction:
    """A transaction that touched described tables. ``rows`` counts its redo rows of these,
    ``changes`` what they come to, ``why`` says what is wrong with it."""

    xid: str
    state: TransactionState
    start_scn: int | None
    end_scn: int | None
    end_timestamp: datetime | None
    username: str | None
    rows: int
    changes: int
    why: str | None
    first_ordinal: int


class Decision(NamedTuple):
    """What became of the row with an ordinal; the fields are those of :class:`ExplainedRow`, images
    as JSON."""

    ordinal: int
    outcome: Outcome
    why: str | None = None
    way_out: str | None = None
    op: str | None = None
    before: str | None = None
    after: str | None = None
    sql_redo: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with the export, or with one row of it. ``is_damage``: the row was
    left out."""

    message: str
    row: int | None = None
    last_row: int | None = None
    hint: str = ""
    is_damage: bool = False

    @property
    def place(self) -> str:
        """Where it is, for people."""
        if self.row is None:
            return ""
        if self.last_row is None or self.last_row == self.row:
            return f"row {self.row}"
        return f"rows {self.row}-{self.last_row}"


_TABLES = """
CREATE TABLE redo (
    first_row INTEGER PRIMARY KEY, last_row INTEGER, ordinal INTEGER, scn INTEGER, xid TEXT, operation TEXT, tbl TEXT, is_undo INTEGER,
    outcome TEXT, why TEXT, way_out TEXT, part_of INTEGER, op TEXT, before TEXT, after TEXT, sql_redo TEXT);
CREATE INDEX redo_ordinal ON redo (ordinal);
CREATE TABLE transactions (
    xid TEXT, first_ordinal INTEGER, end_ordinal INTEGER, state TEXT, start_scn INTEGER, end_scn INTEGER, end_timestamp TEXT,
    username TEXT, row_count INTEGER, change_count INTEGER, why TEXT, PRIMARY KEY (xid, first_ordinal));
"""
_DECIDE = """
UPDATE redo SET outcome = CASE WHEN operation = 'DDL' THEN outcome ELSE ?2 END, why = ?3, way_out = ?4, op = ?5, before = ?6, after = ?7,
       sql_redo = COALESCE(?8, sql_redo)
 WHERE ordinal = ?1"""
"""Of the fields of :class:`Decision`, in their order."""
_JOIN = """
UPDATE redo SET outcome = 'joined', why = 'it writes a part of a LOB', part_of = (
       SELECT w.first_row FROM whole w WHERE w.xid = redo.xid AND w.ordinal > redo.ordinal ORDER BY w.ordinal LIMIT 1)
 WHERE ordinal = ?"""
_TAKE_BACK = """
UPDATE redo SET outcome = CASE is_undo WHEN 1 THEN 'takes back' ELSE 'taken back' END,
       why = CASE is_undo WHEN 1 THEN 'it takes back an earlier row of its transaction (partial rollback)'
             ELSE 'its transaction took it back itself (partial rollback)' END
 WHERE outcome = 'pending' AND tbl = :tbl AND EXISTS (
       SELECT 1 FROM transactions t WHERE t.xid = redo.xid AND t.state = :state
          AND redo.ordinal BETWEEN t.first_ordinal AND COALESCE(t.end_ordinal, 1 << 62))"""
_SETTLE = """
UPDATE redo SET outcome = 'rolled back', why = 'its transaction ended with ROLLBACK'
 WHERE outcome = 'pending' AND EXISTS (
       SELECT 1 FROM transactions t WHERE t.xid = redo.xid AND t.state = 'rolled back'
          AND redo.ordinal BETWEEN t.first_ordinal AND t.end_ordinal);
UPDATE redo SET outcome = 'undecodable', why = 'it names no transaction' WHERE outcome = 'pending';
CREATE INDEX redo_xid ON redo (xid, ordinal);
UPDATE transactions SET change_count = (
       SELECT COUNT(*) FROM redo WHERE redo.xid = transactions.xid AND outcome IN ('change', 'waits')
          AND redo.ordinal BETWEEN first_ordinal AND COALESCE(end_ordinal, 1 << 62));
"""
_TRANSACTIONS = """
SELECT xid, state, start_scn, end_scn, end_timestamp, username, row_count, change_count, why, first_ordinal FROM transactions
 WHERE :xid IS NULL OR xid = :xid ORDER BY COALESCE(end_ordinal, 1 << 62), first_ordinal"""
_ROWS = """
SELECT first_row, last_row, scn, xid, operation, tbl, outcome, why, way_out, part_of, op, before, after, sql_redo FROM redo"""
_REASONS = """
SELECT why, way_out, COUNT(*), MIN(first_row) FROM redo WHERE outcome = 'undecodable' GROUP BY why, way_out
 ORDER BY 3 DESC, 4 LIMIT :most"""
_OF_TRANSACTION = (
    _ROWS
    + """
 WHERE xid = :xid AND ordinal >= :first AND ordinal <= COALESCE(
    (SELECT end_ordinal FROM transactions WHERE xid = :xid AND first_ordinal = :first), 1 << 62)
   AND outcome NOT IN ('begins', 'commits', 'ends', 'other')
 ORDER BY first_row"""
)

_LOOSE = (
    _ROWS
    + """
 WHERE tbl IS NOT NULL AND NOT EXISTS (SELECT 1 FROM transactions t WHERE t.xid = redo.xid
          AND redo.ordinal BETWEEN t.first_ordinal AND COALESCE(t.end_ordinal, 1 << 62))
 ORDER BY first_row"""
)


class Outcomes:
    """The rows and transactions of one explanation, in a file below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "outcomes.db", isolation_level=None)
        self._db.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;" + _TABLES
        )
        self.findings: list[Finding] = []
        self.findings_more = 0

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what was found ----------------------------------------------------------------------------

    def report(self, finding: Finding) -> None:
        """Keep a finding; the row of one that is damage is damaged."""
        if finding.is_damage and finding.row is not None:
            row = {"first_row": finding.row, "last_row": finding.last_row or finding.row, "outcome": Outcome.DAMAGED, "why": finding.message, "way_out": finding.hint or None}  # fmt: skip
            self._insert("redo", [row])
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(finding)
        else:
            self.findings_more += 1

    def add_rows(self, rows: Sequence[dict[str, Any]]) -> None:
        """Keep rows, by the names of the columns of the table ``redo``."""
        self._insert("redo", rows)

    def add_transactions(self, rows: Sequence[dict[str, Any]]) -> None:
        """Keep transactions, by the names of the columns of the table ``transactions``."""
        self._insert("transactions", rows)

    def doubt(self, xid: str, end_scn: int | None, why: str) -> None:
        """Say what is wrong with a transaction, by its end."""
        self._db.execute(
            "UPDATE transactions SET why = :why WHERE xid = :xid AND end_scn IS :scn",
            {"why": why, "xid": xid, "scn": end_scn},
        )

    def decide(self, decisions: Iterable[Decision]) -> None:
        """Say what became of rows. A DDL stays one, whatever is said of it."""
        self._db.executemany(_DECIDE, decisions)

    def join(self, pieces: Sequence[int], whole: Sequence[int]) -> None:
        """The rows of ``pieces``, by their ordinals, are part of the row of ``whole`` that comes
        next in their transaction."""
        self._db.execute("CREATE TEMP TABLE whole (ordinal INTEGER, xid TEXT, first_row INTEGER)")
        self._db.executemany(
            "INSERT INTO whole SELECT ordinal, xid, first_row FROM redo WHERE ordinal = ?",
            ((one,) for one in whole),
        )
        self._db.execute("CREATE INDEX temp.whole_next ON whole (xid, ordinal)")
        self._db.executemany(_JOIN, ((one,) for one in pieces))
        self._db.execute("DROP TABLE whole")

    def take_back(self, table: str, states: Sequence[TransactionState]) -> None:
        """What is pending of the table in transactions of these states was taken back, or took
        something back."""
        for state in states:
            self._db.execute(_TAKE_BACK, {"tbl": table, "state": state})

    def settle(self) -> None:
        """What is still pending was rolled back with its transaction, or has none; count each
        transaction's changes."""
        self._db.executescript(_SETTLE)

    # -- what is told ------------------------------------------------------------------------------

    def counts(self) -> dict[Outcome, int]:
        """Statements by outcome."""
        found = self._db.execute("SELECT outcome, COUNT(*) FROM redo GROUP BY outcome")
        return {Outcome(outcome): count for outcome, count in found}

    def reasons(self, most: int) -> list[tuple[str, str | None, int, int]]:
        """Why statements are undecodable: the reason, the way out, how many they are and the first
        row of them, the commonest first."""
        return self._db.execute(_REASONS, {"most": most}).fetchall()

    def transaction_counts(self) -> dict[str, int]:
        """Transactions by state."""
        return dict(self._db.execute("SELECT state, COUNT(*) FROM transactions GROUP BY state"))

    def transactions(self, xid: str | None = None) -> Iterator[ExplainedTransaction]:
        """The transactions, or those of one XID, in the order of their ends; those without one
        last."""
        for row in self._db.execute(_TRANSACTIONS, {"xid": xid}):
            yield ExplainedTransaction(
                xid=row[0], state=row[1], start_scn=row[2], end_scn=row[3],
                end_timestamp=None if row[4] is None else datetime.fromisoformat(row[4]),
                username=row[5], rows=row[6], changes=row[7] or 0, why=row[8], first_ordinal=row[9],
            )  # fmt: skip

    def rows_of(self, transaction: ExplainedTransaction) -> Iterator[ExplainedRow]:
        """The rows of a transaction and of described tables, in the order of the file."""
        binds = {"xid": transaction.xid, "first": transaction.first_ordinal}
        return map(_row_of, self._db.execute(_OF_TRANSACTION, binds))

    def loose_rows(self) -> Iterator[ExplainedRow]:
        """What belongs to none of the transactions: DDL, and rows that name no transaction."""
        return map(_row_of, self._db.execute(_LOOSE))

    def rows(self) -> Iterator[ExplainedRow]:
        """All rows, in the order of the file."""
        return map(_row_of, self._db.execute(_ROWS + " ORDER BY first_row"))

    def _insert(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            names = list(rows[0])
            places = ", ".join(f":{name}" for name in names)
            self._db.executemany(
                f"INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({places})", rows
            )


def _row_of(row: Sequence[Any]) -> ExplainedRow:
    return ExplainedRow(
        first_row=row[0], last_row=row[1], scn=row[2], xid=row[3], operation=row[4], table=row[5], outcome=Outcome(row[6]), why=row[7],
        way_out=row[8], part_of=row[9], op=row[10], before=_image(row[11]), after=_image(row[12]), sql_redo=row[13],
    )  # fmt: skip


def _image(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json.loads(text)
