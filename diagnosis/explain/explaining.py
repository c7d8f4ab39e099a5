"""What does the pipeline make of the redo rows of an export?

The rows go through capture's own reader and ledger, land in files of a temporary folder, and are
read from there by the functions that apply windows: which transactions committed, what they took
back themselves, which LOBs are whole, what each statement means. Nothing of that is decided here;
this module follows what became of each row.

Memory: a batch of rows, the open transactions, and what :mod:`cdc_core.stage` says of itself. Disk:
some times the export's size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.capture.passes.batches import NO_TABLE, MinedBatch
from cdc_core.capture.passes.excluding import ExcludedValues
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.rows import RowReader, landing_rows
from cdc_core.capture.transactions.ledger import TransactionLedger
from cdc_core.errors import CdcError
from cdc_core.landing.layout import REDO_SCHEMA, TRANSACTION_SCHEMA
from cdc_core.landing.ledger import ledger_batch
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import LOB_OPERATIONS, Operation
from cdc_core.model.scn import SCN_MAX, Scn, ScnWindow
from cdc_core.schema.evolution import held_by
from cdc_core.schema.table import TableSchema
from cdc_core.stage.committed import LandedInput
from cdc_core.stage.decoding import ChangeDecoder, operation_name
from cdc_core.stage.lobs import PIECES
from cdc_core.stage.window import decodable_rows, surviving_rows
from diagnosis.explain.definitions import DdlFound, Definitions, definitions
from diagnosis.explain.ends import Ends
from diagnosis.explain.export import COLUMNS, Export, container_of
from diagnosis.explain.files import open_rows
from diagnosis.explain.images import image_texts
from diagnosis.explain.outcomes import Decision, Finding, Outcome, Outcomes, TransactionState

_ENDED: Sequence[TransactionState] = ("committed",)
_WAITING: Sequence[TransactionState] = ("open", "evicted")
_EVERYTHING = ScnWindow(Scn(0), Scn(SCN_MAX))
_DECODED_ROWS = 500
"""So few rows are decoded at once that one which cannot be costs little."""
_STATES: dict[str, TransactionState] = {
    "commit": "committed",
    "rollback": "rolled back",
    "evicted": "evicted",
}
_CONTROL = {
    Operation.START: Outcome.BEGINS,
    Operation.COMMIT: Outcome.COMMITS,
    Operation.ROLLBACK: Outcome.ENDS,
}
_TEXT_KEPT = 32_768
"""So many characters of an undecodable row's statement are kept."""


@contextmanager
def explained(
    path: Path, tables: Sequence[TableSchema], *, container: str | None = None
) -> Iterator[Outcomes]:
    """Explain an export by the definitions that its tables have at its beginning; the outcomes live
    as long as the block.

    Args:
        path: The export.
        tables: The described tables.
        container: The pluggable database that they are of, where the export has rows of such tables
            of several ones.

    Raises:
        ConfigError: The file is no export of V$LOGMNR_CONTENTS, or cannot be read at all; or
            several containers have such tables.
    """
    with TemporaryDirectory(prefix="redolake-explain-") as name:
        folder = Path(name)
        with Outcomes(folder) as outcomes:
            names = [one.table for one in tables]
            own = container_of(open_rows(path, COLUMNS), names, container)
            export = Export(open_rows(path, COLUMNS), names, outcomes.report, own)
            landed = _Landed(folder, tables, outcomes)
            landed.land(export)
            for table in tables:
                known = definitions(table, landed.ddl[str(table.table)])
                outcomes.decide(_of_ddl(known))
                _explain_table(table.table, known, landed, outcomes)
            outcomes.settle()
            yield outcomes


class _Landed:
    """The rows of described tables and the transactions, as capture lands them, in files of
    ``folder``.

    ``ddl`` has the DDL rows of each described table, by ``OWNER.TABLE``.
    ``committed`` has the transactions that ended with COMMIT; ``waiting`` those of which the export
    has no end, as if they committed with its last row.
    """

    def __init__(self, folder: Path, tables: Sequence[TableSchema], outcomes: Outcomes) -> None:
        self.redo = str(folder / "redo.parquet")
        self.committed = str(folder / "committed.parquet")
        self.waiting = str(folder / "waiting.parquet")
        self.ddl: dict[str, list[DdlFound]] = {str(one.table): [] for one in tables}
        self._tables = tables
        self._names = [None, *(str(one.table) for one in tables)]
        self._outcomes = outcomes

    def land(self, export: Export) -> None:
        """Read the export to its end."""
        first, batches = _first_scn(export.batches())
        reader = RowReader(0, self._tables, Reading(-1, None, {}))
        excluded = ExcludedValues(self._tables, {})
        names = [str(one.table) for one in self._tables]
        by_statement = [str(one.table) for one in self._tables if one.is_undone_by_statement]
        ledger = TransactionLedger(
            [],
            _EVERYTHING,
            names,
            snapshot_scn=0,
            mined_from=first - 1,
            by_statement=by_statement,
        )
        scn = first
        with (
            pq.ParquetWriter(self.redo, REDO_SCHEMA) as redo,
            pq.ParquetWriter(self.committed, TRANSACTION_SCHEMA) as committed,
            pq.ParquetWriter(self.waiting, TRANSACTION_SCHEMA) as waiting,
        ):
            ends = Ends()
            for batch in reader.read(batches):
                if export.container is None:
                    ends.take(batch)
                scn = int(batch.rows.column("scn")[-1].as_py())
                kept = excluded.remove_from(batch)
                self._note_dropped(batch, kept, excluded)
                taken = ledger.take(kept)
                self._note(taken, kept)
                if (rows := landing_rows(taken, self._tables)) is not None:
                    redo.write_batch(rows)
                self._note_ended(ledger.drain(), scn, committed, waiting)
            ledger.finish()
            self._note_ended(ledger.drain(), scn, committed, waiting)
            living = [one for one in ledger.open_transactions() if one.state != "displaced"]
            opened = ledger_batch(living)
            self._note_transactions(opened, "open")
            waiting.write_batch(_as_ended(opened.to_pylist(), scn))
        for xid in ends.contradictory():
            self._outcomes.report(
                Finding(
                    f"transaction {xid} ends twice: rows of several containers are mixed, and what is said of it may be of another one",
                    hint="Export SRC_CON_NAME as well.",
                )
            )
        for one in ledger.incomplete:
            doubt = f"{one.reason}; capture ends the streams of its tables before it"
            self._outcomes.doubt(one.xid, one.commit_scn, doubt)
        self._report_unnamed(reader)

    def _note_ended(
        self,
        ended: pa.RecordBatch,
        scn: int,
        committed: pq.ParquetWriter,
        waiting: pq.ParquetWriter,
    ) -> None:
        for state, rows in _by_state(ended):
            self._note_transactions(rows, _STATES[state])
            if state == "evicted":
                rows = _as_ended(rows.to_pylist(), scn)
            (waiting if state == "evicted" else committed).write_batch(rows)

    def _note_dropped(self, batch: MinedBatch, kept: MinedBatch, excluded: ExcludedValues) -> None:
        """Keep the rows that do not land since they hold values that are left out."""
        if len(kept.ordinals) == len(batch.ordinals):
            return
        gone = ~np.isin(batch.ordinals, kept.ordinals)
        dropped = batch.filter(gone)
        is_lob = np.isin(dropped.operations, LOB_OPERATIONS).tolist()
        rows = self._basic_rows(dropped)
        texts = dropped.rows.column("sql_redo")
        for at, (row, writes) in enumerate(zip(rows, is_lob, strict=True)):
            if writes:
                row |= {"outcome": Outcome.LEFT_OUT, "why": "it writes a LOB that is left out", "way_out": None}  # fmt: skip
            else:
                end = excluded.ends[-1]
                row |= {"outcome": Outcome.UNDECODABLE, "why": end.reason, "way_out": end.way_out}
                row["sql_redo"] = (texts[at].as_py() or "")[:_TEXT_KEPT]
        self._outcomes.add_rows(rows)

    def _note(self, batch: MinedBatch, before: MinedBatch) -> None:
        """Keep the rows, with what is known of them before they are decoded."""
        rows = self._basic_rows(batch)
        facts = zip(
            batch.operations.tolist(), batch.tables.tolist(), before.tables.tolist(), strict=True
        )
        for row, (code, table, had) in zip(rows, facts, strict=True):
            row["outcome"] = Outcome.PENDING
            row["why"] = None
            if table == NO_TABLE:
                row["outcome"] = _CONTROL.get(code, Outcome.OTHER)
                if had != NO_TABLE:
                    row["outcome"] = Outcome.LEFT_OUT
                    row["why"] = "it takes back a row from before the export"
            elif code == Operation.DDL:
                row["outcome"] = Outcome.DDL
        texts = batch.rows.column("sql_redo")
        for at in batch.ddl.tolist():
            row, text = rows[at], texts[at].as_py() or ""
            row["sql_redo"] = text[:_TEXT_KEPT]
            found = DdlFound(
                row=row["first_row"], ordinal=row["ordinal"], scn=row["scn"], text=text
            )
            self.ddl[row["tbl"]].append(found)
        self._outcomes.add_rows(rows)

    def _basic_rows(self, batch: MinedBatch) -> list[dict[str, Any]]:
        names = ["first_row", "last_row", "scn", "xid", "rollback"]
        columns = batch.rows.select(names).to_pydict()
        return [
            {
                "first_row": first, "last_row": last, "ordinal": ordinal, "scn": scn, "xid": xid, "is_undo": undo,
                "operation": operation_name(code), "tbl": self._names[table + 1], "sql_redo": None,
            }
            for first, last, ordinal, scn, xid, undo, code, table in zip(
                columns["first_row"], columns["last_row"], batch.ordinals.tolist(), columns["scn"], columns["xid"], columns["rollback"],
                batch.operations.tolist(), batch.tables.tolist(), strict=True,
            )
        ]  # fmt: skip

    def _note_transactions(self, batch: pa.RecordBatch, state: TransactionState) -> None:
        self._outcomes.add_transactions(
            [
                {
                    "xid": row["xid"], "first_ordinal": row["first_ordinal"], "end_ordinal": row["commit_ordinal"],
                    "state": state, "start_scn": row["start_scn"], "end_scn": row["commit_scn"],
                    "end_timestamp": row["commit_timestamp"] and row["commit_timestamp"].isoformat(),
                    "username": row["username"], "row_count": row["rows"], "why": _WHY.get(row["state"]),
                }
                for row in batch.to_pylist()
                if row["rows"]
            ]
        )  # fmt: skip

    def _report_unnamed(self, reader: RowReader) -> None:
        unnamed = sum(one.rows for one in reader.unnamed.values())
        if unnamed:
            numbers = ", ".join(map(str, sorted(reader.unnamed)[:10]))
            self._outcomes.report(
                Finding(
                    f"{unnamed} rows have no table name: LogMiner's dictionary did not know the objects {numbers}",
                    hint="They are of a table or partition that was dropped since. Capture asks the dictionary whose they were.",
                )
            )


_WHY = {
    "evicted": "another transaction began in its undo slot: it has ended, and the export does not have its end",
    "open": "the export has no COMMIT and no ROLLBACK of it",
    "ending": "it ends with a ROLLBACK that may have closed a savepoint only, and the export has no other end of it",
    "undone": "it took back all its changes, and the export has no end of it",
}


def _by_state(ended: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    for state in pc.unique(ended["state"]).to_pylist():
        yield state, ended.filter(pc.equal(ended["state"], state))


def _first_scn(batches: Iterator[pa.RecordBatch]) -> tuple[int, Iterator[pa.RecordBatch]]:
    """The lowest SCN of the first rows: redo was read from there on."""
    first = next(batches, None)
    if first is None:
        return 1, iter(())
    low = int(np.min(first.column("scn").to_numpy()))

    def all_of_them() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    return low, all_of_them()


def _as_ended(rows: list[dict[str, Any]], scn: int) -> pa.RecordBatch:
    """Transactions without an end, as if they had committed."""
    ends = {"state": "commit", "commit_scn": max(scn, 1)}
    ended = [row | ends | {"commit_ordinal": row["commit_ordinal"] or SCN_MAX} for row in rows]
    return pa.RecordBatch.from_pylist(ended, schema=TRANSACTION_SCHEMA)


def _of_ddl(known: Definitions) -> Iterator[Decision]:
    for one in known.said:
        yield Decision(one.ddl.ordinal, Outcome.DDL, one.why, one.way_out, sql_redo=one.ddl.text[:_TEXT_KEPT])  # fmt: skip


def _explain_table(table: TableId, known: Definitions, landed: _Landed, outcomes: Outcomes) -> None:
    """What becomes of a table's rows."""
    *earlier, newest = known.versions
    decoder = ChangeDecoder(held_by(known.versions) or newest, SCN_MAX, earlier=(*earlier, newest))
    decoders = [ChangeDecoder(_by_its_names(version), SCN_MAX) for version in known.versions]
    for path, states, outcome in (
        (landed.committed, _ENDED, Outcome.CHANGE),
        (landed.waiting, _WAITING, Outcome.WAITS),
    ):
        own = LandedInput(
            table=table, window=_EVERYTHING, redo_paths=[landed.redo], transactions_paths=[path]
        )
        committed = own.committed()
        if not committed.count:
            continue
        given = own.rows(committed)
        pieces = np.empty(0, np.int64)
        if any(column.is_lob for column in decoder.schema.columns):
            pieces = np.concatenate([pieces, *map(_lob_pieces, surviving_rows(given, decoder))])
        whole = [pieces[:0]]
        for rows in decodable_rows(given, decoder):
            whole.append(np.intersect1d(rows["ordinal"].to_numpy(), pieces))
            for version, part in _by_version(rows, known):
                for start in range(0, part.num_rows, _DECODED_ROWS):
                    some = part.slice(start, _DECODED_ROWS)
                    if version is None:
                        outcomes.decide(_unknown(some, known))
                    else:
                        outcomes.decide(_decided(some, decoders[version], outcome))
        made = np.concatenate(whole)
        outcomes.join(np.setdiff1d(pieces, made).tolist(), made.tolist())
        outcomes.take_back(str(table), states)


def _by_its_names(version: TableSchema) -> TableSchema:
    """The version alone, as if its columns had never been called otherwise: what is explained has
    the names of its time."""
    columns = tuple(replace(column, stored_as="") for column in version.columns)
    return replace(version, columns=columns, dropped=(), given=())


def _by_version(rows: pa.Table, known: Definitions) -> Iterator[tuple[int | None, pa.Table]]:
    """The rows of each version, by its number, under the names of their time; with None those of
    which no version is known."""
    scns = rows["scn"].to_pylist()
    chosen = np.array([-1 if known.is_unknown(scn) else known.at(scn) for scn in scns])
    for at in np.unique(chosen).tolist():
        yield (None if at < 0 else at), rows.filter(pa.array(chosen == at))


def _unknown(rows: pa.Table, known: Definitions) -> Iterator[Decision]:
    """Rows behind the DDL at which a source ends the table's stream."""
    end = known.end
    assert end is not None
    for ordinal, text in zip(rows["ordinal"].to_pylist(), rows["sql_redo"].to_pylist(), strict=True):  # fmt: skip
        why = f"it comes after the DDL at row {end.ddl.row}: {end.why}"
        yield Decision(ordinal, Outcome.UNDECODABLE, why, end.way_out, sql_redo=text and text[:_TEXT_KEPT])  # fmt: skip


def _lob_pieces(rows: pa.Table) -> npt.NDArray[np.int64]:
    """The ordinals of the rows that write a part of a LOB."""
    found: npt.NDArray[np.int64] = rows["ordinal"].to_numpy()
    return found[np.isin(rows["operation_code"].to_numpy(), PIECES)]


def _decided(rows: pa.Table, decoder: ChangeDecoder, outcome: Outcome) -> Iterator[Decision]:
    """What each row means; one that cannot be decoded is set apart, and the others go on."""
    waiting = [rows]
    while waiting:
        part = waiting.pop()
        if part.num_rows == 0:
            continue
        try:
            changes = decoder(part)
        except CdcError as error:
            at = _place(error, part)
            if at is None:  # about no row in particular
                half = part.num_rows // 2
                waiting += [part.slice(half), part.slice(0, half)]
            else:
                yield _undecodable(error, part, at)
                waiting += [part.slice(at + 1), part.slice(0, at)]
            continue
        yield from _changes(changes, outcome)


def _changes(changes: pa.RecordBatch, outcome: Outcome) -> Iterator[Decision]:
    columns = zip(
        changes["_cdc_ordinal"].to_pylist(),
        changes["_cdc_op"].to_pylist(),
        image_texts(changes["before"], changes["_cdc_before_absent"]),
        image_texts(changes["after"], changes["_cdc_absent"]),
        strict=True,
    )
    why = "it becomes a change with the COMMIT of its transaction"
    for ordinal, op, before, after in columns:
        waits = why if outcome is Outcome.WAITS else None
        yield Decision(ordinal, outcome, why=waits, op=op, before=before, after=after)


def _place(error: CdcError, rows: pa.Table) -> int | None:
    """Which row the error is about; None if it does not say so, and there are several."""
    if rows.num_rows == 1:
        return 0
    ordinal = error.facts.get("ordinal")
    at: int = pc.index(rows["ordinal"], ordinal).as_py() if isinstance(ordinal, int) else -1
    return at if at >= 0 else None


def _undecodable(error: CdcError, rows: pa.Table, at: int) -> Decision:
    column = error.facts.get("column")
    why = error.message if column is None else f"{error.message} (column {column})"
    text = rows["sql_redo"][at].as_py()
    return Decision(
        rows["ordinal"][at].as_py(),
        Outcome.UNDECODABLE,
        why=why,
        way_out=error.hint or None,
        sql_redo=text and text[:_TEXT_KEPT],
    )
