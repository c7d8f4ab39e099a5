"""Where does each captured table stand, and how does its stream begin, pause and end?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, delete, select, update

from cdc_core.errors import ConfigError, NotYetError, OvertakenError
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import AskedBy, ChunkRecord, TableRecord
from cdc_core.model.scn import Scn
from cdc_core.model.streams import StreamEnd
from cdc_core.schema.table import TableSchema
from cdc_core.state.chunks import add_chunks, set_chunk
from cdc_core.state.database import StorePart, cached
from cdc_core.state.schemas import SchemaVersion, newest_schema, put_schema
from cdc_core.state.sql_tables import CHUNKS, TABLES, of
from cdc_core.state.table_rows import (
    TABLE_REVISIONS,
    is_table,
    put_table,
    table_row,
    table_rows,
    write_table,
)
from cdc_core.state.window_rows import last_window


class CapturedTables(StorePart):
    """Tables that are or were captured: where each stands, and how its stream begins, pauses and
    ends."""

    @cached
    def all(self) -> list[TableRecord]:
        """The source's tables in the order of their names."""
        with self._database.reading() as connection:
            return table_rows(connection, self._source)

    @cached
    def get(self, table: TableId) -> TableRecord | None:
        """One table."""
        with self._database.reading() as connection:
            return table_row(connection, self._source, table)

    @cached
    def revisions(self) -> dict[tuple[str, str], int]:
        """How often each table's record was changed, by owner and name."""
        with self._database.reading() as connection:
            rows = connection.execute(TABLE_REVISIONS, {"of": self._source})
            return {(owner, name): revision for owner, name, revision in rows}

    def begin_stream(self, record: TableRecord, schema: TableSchema) -> None:
        """Let a table join, for the first time or again: its redo is captured from
        ``record.first_ordinal`` on.

        Chunks of an earlier snapshot that were not applied are forgotten, and the definition that
        the snapshot reads is kept.

        Raises:
            NotYetError: A window that does not know of the table was planned since ``record`` was
                made.
        """
        with self._database.writing() as connection:
            last = last_window(connection, record.source)
            if record.first_ordinal != (last.ordinal + 1 if last else 0):
                raise NotYetError(
                    "a window was planned while the table joined, and does not know of it",
                    hint="Run the command again: the table joins with the next window.",
                    source=record.source,
                    table=record.table,
                )
            _forget_chunks(connection, record)
            put_schema(connection, record.source, schema, None)
            put_table(
                connection,
                _going_on(record, self._database.moment(), state="snapshotting", mirror_scn=None,
                          stopped_scn=None),
            )  # fmt: skip

    def plan_chunks(
        self, record: TableRecord, schema: TableSchema, chunks: Sequence[ChunkRecord]
    ) -> list[ChunkRecord]:
        """Plan the chunks of a joining table, read as of ``record.snapshot_scn``, all or none;
        return what its snapshot has.

        Raises:
            NotYetError: The table has not the stream any more for which the chunks were planned.
        """
        with self._database.writing() as connection:
            known = table_row(connection, record.source, record.table)
            if known is None or _stream(known) != _stream(record):
                raise NotYetError(
                    "the table has begun another stream, or left, while its chunks were planned",
                    hint="`redolake snapshot` reads and applies the chunks that are planned now.",
                    source=record.source,
                    table=record.table,
                )
            planned = add_chunks(connection, chunks)
            if planned == list(chunks):
                put_schema(connection, record.source, schema, None)
                put_table(connection, record)
            return planned

    def finish_snapshot(self, table: TableId) -> bool:
        """Make a joining table ready for windows, from its snapshot's SCN on, if all chunks of that
        snapshot are applied or dropped.

        Returns:
            Whether the table has become ready just now.
        """
        with self._database.writing() as connection:
            record = table_row(connection, self._source, table)
            if record is None or record.state != "snapshotting":
                return False
            unfinished = select(CHUNKS.c.number).where(
                of(CHUNKS, self._source, table, snapshot_id=record.snapshot_id),
                CHUNKS.c.state.not_in(("applied", "dropped")),
            )
            if connection.execute(unfinished.limit(1)).first() is not None:
                return False
            ready = {
                "state": "ready",
                "mirror_scn": record.snapshot_scn,
                "revision": record.revision + 1,
            }
            connection.execute(update(TABLES).where(is_table(self._source, table)).values(ready))
            return True

    def end_stream(
        self,
        end: StreamEnd,
        *,
        state: Literal["failed", "removed"] = "failed",
        asked_by: AskedBy | None = None,
    ) -> bool:
        """End a table's stream. One that has ended keeps its end, or gets an earlier one.

        Returns:
            Whether the table is known.
        """
        with self._database.writing() as connection:
            record = table_row(connection, self._source, end.table)
            if record is None:
                return False
            scn = min(end.scn, record.stopped_scn or end.scn)
            if record.is_captured or state == "removed":
                now = self._database.moment()
                put_table(
                    connection, _stopped(record, end, now, scn=scn, state=state, asked_by=asked_by)
                )
            elif record.stopped_scn is not None:
                put_table(connection, replace(record, stopped_scn=Scn(scn)))
            return True

    def fail(self, end: StreamEnd, *, failed_as: TableRecord | None = None) -> bool:
        """Let a table fail in the lake: its redo is still captured, and it can be resumed. If its
        stream has ended and it fails on what still belongs to it, that waits until then.

        Args:
            end: What it met; the SCN is where its mirror stands, and ends nothing.
            failed_as: How the table stood when it failed; one that stands otherwise by now is left
                alone.

        Returns:
            Whether the table was looked at: False where it is not known, or was left alone.
        """
        with self._database.writing() as connection:
            record = table_row(connection, self._source, end.table)
            if record is None or (failed_as and _place(failed_as) != _place(record)):
                return False
            if record.is_captured:
                now = self._database.moment()
                put_table(connection, _stopped(record, end, now, scn=None))
            elif record.takes_windows:
                waiting = replace(
                    record,
                    state="failed",
                    rest_waits=end.reason,
                    trouble=end.trouble,
                    asked_by=None,
                )
                put_table(connection, waiting)
            return True

    def answer(self, record: TableRecord, *, before: TableRecord) -> None:
        """Write what a policy answers to a table, unless something else has become of it since it
        stood as ``before``."""
        with self._database.writing() as connection:
            found = table_row(connection, record.source, record.table)
            if found == before:
                put_table(connection, record)

    def refuse(self, record: TableRecord, end: StreamEnd) -> None:
        """Note that a table could not join: it has no stream."""
        with self._database.writing() as connection:
            put_table(connection, _stopped(record, end, self._database.moment(), scn=end.scn))

    def pause(self, table: TableId, *, way_out: str) -> TableRecord:
        """Keep a table's mirror as it is while its redo goes on being captured.

        Raises:
            ConfigError: The table is not captured any more.
        """
        with self._database.writing() as connection:
            record = _captured(connection, self._source, table, "paused")
            paused = replace(
                record, state="paused", reason="paused by an operator", way_out=way_out,
                asked_by="command", since=self._database.moment(), trouble=None,
            )  # fmt: skip
            put_table(connection, paused)
            return paused

    def resume(self, table: TableId) -> TableRecord:
        """Let a paused or failed table go on where its mirror or its snapshot stands; one whose
        stream has ended takes the rest.

        Raises:
            ConfigError: The table's stream has ended, so there is nothing that it could go on with.
        """
        with self._database.writing() as connection:
            found = table_row(connection, self._source, table)
            if found is not None and found.rest_waits is not None:
                rest = replace(found, rest_waits=None, trouble=None, asked_by=None)
                put_table(connection, rest)
                return rest
            record = _captured(connection, self._source, table, "resumed")
            state = "snapshotting" if record.mirror_scn is None else "ready"
            resumed = _going_on(record, self._database.moment(), state=state)
            put_table(connection, resumed)
            return resumed

    def retake_stream(self, record: TableRecord, chunks: Sequence[ChunkRecord]) -> None:
        """Set a table back to where ``chunks`` had landed and nothing was applied, for Delta tables
        of a new generation.

        Its windows are wanted again from its snapshot on, so none of them is retired meanwhile.
        """
        with self._database.writing() as connection:
            for chunk in chunks:
                set_chunk(connection, chunk, state="landed")
            put_table(
                connection,
                _going_on(record, self._database.moment(), state="snapshotting",
                          generation=record.generation + 1, mirror_scn=None, in_quarantine=0),
            )  # fmt: skip

    def exclude_columns(
        self, version: SchemaVersion, *, behind: TableSchema, reason: str, way_out: str
    ) -> None:
        """Keep a version that leaves columns out, and say so with the table, which goes on.

        Raises:
            OvertakenError: The table's newest version is not ``behind`` any more.
        """
        with self._database.writing() as connection:
            if newest_schema(connection, version.source, version.schema.table) != behind:
                raise OvertakenError(
                    "another process recorded a definition of the table meanwhile",
                    hint="Nothing is lost; run the command again.",
                    table=version.schema.table,
                )
            put_schema(connection, version.source, version.schema, None)
            record = table_row(connection, version.source, version.schema.table)
            if record is not None:
                _remark(connection, record, reason, way_out, self._database.moment())

    def remark(self, table: TableId, *, reason: str, way_out: str) -> bool:
        """Say what the configuration asks of a table that goes on. Repeatable.

        Returns:
            Whether that was not said before.
        """
        with self._database.writing() as connection:
            record = table_row(connection, self._source, table)
            return record is not None and _remark(
                connection, record, reason, way_out, self._database.moment()
            )

    def note_quarantine(self, table: TableId, rows: int) -> None:
        """Note how many rows of a table are in quarantine. Repeatable."""
        with self._database.writing() as connection:
            record = table_row(connection, self._source, table)
            if record is not None and record.in_quarantine != rows:
                put_table(connection, replace(record, in_quarantine=rows))

    def forget_reason(self, table: TableId) -> None:
        """Take back what is said of a table that goes on."""
        with self._database.writing() as connection:
            record = table_row(connection, self._source, table)
            if record is not None and record.state in {"ready", "snapshotting"}:
                put_table(
                    connection,
                    replace(record, reason=None, way_out=None, since=None, asked_by=None),
                )

    def readmit(self, table: TableId) -> None:
        """Make a removed table new again, so that it joins with the next snapshot."""
        with self._database.writing() as connection:
            record = table_row(connection, self._source, table)
            if record is not None and record.state == "removed":
                put_table(
                    connection,
                    replace(record, state="new", asked_by=None, reason=None, way_out=None),
                )

    def restore(self, record: TableRecord) -> None:
        """Write a table with its own revision into a store that is made anew."""
        with self._database.writing() as connection:
            write_table(connection, record)


def _stopped(
    record: TableRecord, end: StreamEnd, now: datetime, *, scn: int | None, **more: Any
) -> TableRecord:
    """The record of a table that fails by what ``end`` says."""
    own = {"state": "failed", "asked_by": None, "stopped_scn": None if scn is None else Scn(scn)}
    why = {"reason": end.reason, "way_out": end.way_out, "trouble": end.trouble, "since": now}
    return replace(record, **{**own, **why, **more})


def _going_on(record: TableRecord, now: datetime, **more: Any) -> TableRecord:
    """The record of a table that goes on, whatever stopped it."""
    said = ("reason", "way_out", "asked_by", "trouble", "rest_waits")
    values: dict[str, Any] = dict.fromkeys(said)
    return replace(record, **values, since=now, **more)


def _stream(record: TableRecord) -> tuple[object, ...]:
    """What tells one stream of a table from an earlier or a later one, and from its end."""
    return record.first_ordinal, record.generation, record.mining_low, record.state


def _place(record: TableRecord) -> tuple[object, ...]:
    return (*_stream(record), record.snapshot_id, record.mirror_scn)


def end_stream(
    connection: Connection, source: str, ordinal: int, end: StreamEnd, now: datetime
) -> None:
    """Note inside the caller's transaction that a table left with a window of its present stream.

    One that was paused, or had failed, still takes nothing of what belongs to it before it is
    resumed.
    """
    record = table_row(connection, source, end.table)
    if record is not None and record.is_captured and record.first_ordinal <= ordinal:
        waits = record.state in {"paused", "failed"}
        rest_waits = record.reason if waits else None
        trouble = record.trouble if waits else end.trouble
        left = _stopped(record, end, now, scn=end.scn, rest_waits=rest_waits, trouble=trouble)
        put_table(connection, left)


def cut_stream(connection: Connection, source: str, end: StreamEnd, now: datetime) -> None:
    """End a table's stream, which may have ended later, inside the caller's transaction: nothing
    behind the end is taken."""
    record = table_row(connection, source, end.table)
    if record is not None:
        put_table(connection, _stopped(record, end, now, scn=end.scn, rest_waits=None))


def _remark(
    connection: Connection, record: TableRecord, reason: str, way_out: str, now: datetime
) -> bool:
    """Say it besides what the configuration has asked of the table before; what stops a table is
    said alone."""
    if record.reason is not None:
        if record.asked_by != "configuration" or reason in record.reason:
            return False
        reason, way_out = f"{record.reason}; {reason}", f"{record.way_out} {way_out}"
    put_table(
        connection,
        replace(record, reason=reason, way_out=way_out, asked_by="configuration", since=now),
    )
    return True


def _captured(connection: Connection, source: str, table: TableId, wanted: str) -> TableRecord:
    record = table_row(connection, source, table)
    if record is None or not record.is_captured:
        state = "not captured" if record is None else record.state
        raise ConfigError(
            f"a table that has left the stream cannot be {wanted}",
            hint=f"Bring it back with a new snapshot: `redolake table resnapshot {table.argument}`.",
            table=table,
            state=state,
        )
    return record


def _forget_chunks(connection: Connection, record: TableRecord) -> None:
    own = of(CHUNKS, record.source, record.table)
    connection.execute(delete(CHUNKS).where(own, CHUNKS.c.state != "applied"))
