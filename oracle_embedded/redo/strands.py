"""Which redo of open transactions is not in the log yet?

On Oracle a transaction writes its redo into a private strand of the log buffer. It is bound to the
log, and only then has an address that LogMiner can read, when the transaction ends, the strand is
full, or the log is switched; the SCN of each change stays what it was. So rows appear behind others
with higher SCNs, and a log holds all redo below its NEXT_CHANGE#.

Source: measured on Oracle 23ai (incomplete before a switch or the commit, complete after either,
never above a bound that was read before); that a switch binds all strands first is documented in
public notes on private strands.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field

from oracle_embedded.redo import store

Held = tuple[
    int,  # scn
    int,  # time
    int | None,  # tx
    int,  # op
    int,  # flags
    int | None,  # object
    bytes | None,  # row_id
    bytes | None,  # before
    bytes | None,  # after
]
"""A record without its address: what follows ``position`` in ``redo_record``."""

Sized = tuple[int, Held]
"""Estimated redo bytes, and the record."""


@dataclass(slots=True)
class Strand:
    """Redo of one open transaction, oldest first; the first ``saved`` records are in SQLite as
    well."""

    records: list[Sized] = field(default_factory=list)
    size: int = 0
    saved: int = 0


class Strands:
    """The strands of one thread's open transactions, by their number; used in the writer's block
    only.

    Args:
        records_max: Records that fill a strand.
        bytes_max: Estimated redo bytes that fill it.
    """

    def __init__(self, records_max: int, bytes_max: int) -> None:
        self._records_max = records_max
        self._bytes_max = bytes_max
        self._strands: dict[int, Strand] = {}
        self.size = 0

    def hold(self, tx: int, size: int, record: Held) -> bool:
        """Keep a record; is the strand full now?"""
        strand = self._strands.get(tx)
        if strand is None:
            strand = self._strands[tx] = Strand()
        strand.records.append((size, record))
        strand.size += size
        self.size += size
        return strand.size >= self._bytes_max or len(strand.records) >= self._records_max

    def take(self, connection: sqlite3.Connection, tx: int) -> list[Sized]:
        """Empty a transaction's strand: its records, for the log."""
        strand = self._strands.pop(tx, None)
        if strand is None:
            return []
        self.size -= strand.size
        if strand.saved:
            connection.execute("DELETE FROM redo_strand WHERE tx = ?", (tx,))
        return strand.records

    def move_undo(self, tx: int, scn: int) -> None:
        """Give the undo rows that wait in a transaction's strand an SCN."""
        strand = self._strands.get(tx)
        if strand is not None:
            strand.records = [
                (size, (scn, *record[1:]) if record[4] & 1 and record[5] is not None else record)
                for size, record in strand.records
            ]

    def transactions(self) -> list[int]:
        """Transactions with redo that is not in the log, in the order in which their strands
        began."""
        return list(self._strands)

    def scns_last(self) -> Iterator[int]:
        """The highest SCN of each strand."""
        return (strand.records[-1][1][0] for strand in self._strands.values())

    def scns(self) -> Iterator[int]:
        """The lowest SCN of each strand."""
        return (strand.records[0][1][0] for strand in self._strands.values())

    def save(self, connection: sqlite3.Connection, thread: int) -> None:
        """Write what SQLite does not hold yet, so that a killed process loses nothing."""
        for strand in self._strands.values():
            connection.executemany(
                store.STRAND_INSERT,
                [(thread, size, *record) for size, record in strand.records[strand.saved :]],
            )
            strand.saved = len(strand.records)

    def restore(self, size: int, record: Held) -> None:
        """Hold a record that SQLite has."""
        tx = record[2]
        assert tx is not None
        self.hold(tx, size, record)
        self._strands[tx].saved += 1
