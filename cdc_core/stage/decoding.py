"""How do redo rows of one table become rows of its change log?

Batch by batch; rows of change files have their values already. What cannot become a change without
guessing stops the table with an error that says table, operation, SCN and the way out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.decode.dml import DecodedDml, decode_dml
from cdc_core.decode.plan import plan_table
from cdc_core.decode.redact import redact_column
from cdc_core.decode.widened import widened
from cdc_core.errors import (
    ANY_TABLE,
    RESNAPSHOT,
    RESNAPSHOT_HINT,
    CdcError,
    DecodeError,
    SchemaMismatchError,
)
from cdc_core.landing.layout import IMAGES
from cdc_core.model.operations import Operation
from cdc_core.model.texts import (
    NOT_TEXT,
    NOT_TEXT_IN_REDO,
    NOTHING_REPLACED,
    REPLACEMENT,
    STATUS_MASK,
    TEXT_REPLACED,
    TextReplacement,
)
from cdc_core.runtime.arrow import whole
from cdc_core.schema.table import ROW_ID, TableSchema
from cdc_core.schema.types import is_reselected, is_snapshot_only
from cdc_core.stage import addresses, lobs, reselected
from cdc_core.stage.absent_names import renamed_lists
from cdc_core.stage.layout import OPTIONAL, change_schema
from cdc_core.stage.redo_order import DISORDERED
from cdc_core.stage.skipped_operations import NOTHING_SKIPPED, SkipRules
from cdc_core.stage.statements import UNKNOWN_ROW_ID, known_row_ids
from cdc_core.stage.undone_statements import AMBIGUOUS, ROW_ID_UNKNOWN, UNMATCHED

_OPS = {Operation.INSERT: "c", Operation.DELETE: "d", Operation.UPDATE: "u"}
_OP_LETTERS = (None, *(_OPS[code] for code in sorted(_OPS)))
_INVALID, _NOT_GUARANTEED = 2, 3
_UNNAMED = '"COL '
_NOT_EXECUTABLE = (_INVALID, _NOT_GUARANTEED)
"""STATUS of rows whose SQL_REDO cannot be executed, or is not guaranteed to be right."""

_WAY_OUT = "If you can do without the column, name it under columns_exclude of the table."
_WHOLE_ROW = (
    f"{RESNAPSHOT} reads the table again from Oracle. If such rows come again, "
    "`on_undecodable: quarantine` of the table stores them separately and continues with the others: set it, "
    f"then run `redolake table resume {ANY_TABLE}`."
)
_LOBS_OUT = "If you can do without the table's LOBs, name their columns under columns_exclude of the table. Otherwise: "
_NO_ADDRESS = (
    "Name unique NOT NULL columns under the table's key, or leave the table out. If the row was written before supplemental logging of all "
    f"columns was added to the table, {RESNAPSHOT_HINT}"
)
_RESELECT = (
    "With `capture.lobs: reselect`, Redolake reads such a value from Oracle as of the commit: set it, capture the window again with "
    "`redolake recapture --from WINDOW` while Oracle has its redo and undo, then run "
    f"`redolake table resume {ANY_TABLE}`. "
)
_ROWS_GONE = (
    "`redolake recapture --from WINDOW` asks again while Oracle has undo since the commit, then run "
    f"`redolake table resume {ANY_TABLE}`; else {RESNAPSHOT_HINT}"
)
_PROBLEMS = {
    lobs.INCOMPLETE: "the redo carries a part of a LOB, and not the rest of it",
    lobs.TWO_READINGS: "the redo of a LOB can be read in two ways, which give different values",
    lobs.NOT_UNDERSTOOD: "a redo row that writes a LOB has a form that is not understood",
    addresses.ADDRESS_UNKNOWN: "LogMiner does not show the ROWID of a row of a table with LOBs, and nothing that closes its statement does",
    AMBIGUOUS: "a partial rollback takes back a statement that wrote LOBs, and the redo does not show which rows are of that statement",
    UNMATCHED: "a partial rollback undoes a row that the transaction's redo does not have",
    ROW_ID_UNKNOWN: "a partial rollback undoes a row whose address LogMiner does not know",
    reselected.NOT_READ: "LogMiner does not show the rows of this table, and Oracle did not tell what the transaction changed",
    DISORDERED: "changes of one row are shown against the order of their SCNs, so nothing tells which is the last one",
}
_OF_ROLLBACK = (AMBIGUOUS, UNMATCHED, ROW_ID_UNKNOWN, DISORDERED)
"""Problems that are about more than one row."""


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A redo row that cannot become a change without guessing: where it is, and why. ``row_id`` is
    None where LogMiner does not know it."""

    ordinal: int
    commit_scn: int
    row_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ChangeDecoder:
    """Turns redo rows into rows of ``layout.change_schema``; one per table and window, and safe to
    call from many threads.

    A row is decoded by the version of the table in which it was written. DDL waits for transactions
    that changed the table, so all rows of a transaction have one layout, and a row's own SCN says
    which: the newest version up to it, or the first one that is known. A change that waited for the
    DDL can have the very SCN at which it committed.

    Attributes:
        schema: The version that both Delta tables have. The rows have its columns, as each is
            stored for life. window: The value of ``_cdc_window``: the window's scn_high. earlier:
            Other versions of the table, in the order of their SCNs. excluded: Columns that are left
            out now, also of rows that landed with them: they are NULL. optional: Which of
            ``layout.OPTIONAL`` the change log holds. landed: When the window landed, in UTC; None
            if nobody knows. skipping: Which changes are marked as skipped. replacing: In which
            columns U+FFFD may stand for bytes that are no UTF-8. unfit: How many values are NULL
            because the form of their column does not hold them, for each batch that has some.
    """

    schema: TableSchema
    window: int
    earlier: tuple[TableSchema, ...] = ()
    excluded: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()
    landed: datetime | None = None
    skipping: SkipRules = NOTHING_SKIPPED
    replacing: TextReplacement = NOTHING_REPLACED
    unfit: list[int] = field(default_factory=list, compare=False)

    def __call__(self, rows: pa.Table) -> pa.RecordBatch:
        """The changes of redo rows (columns of ``committed.CommittedRows`` and ``problem``), one
        per row, in their order per version.

        Raises:
            DecodeError: A row cannot become a change without guessing.
            SchemaMismatchError: The table was truncated, or a statement names a column that it does
                not have.
        """
        target = change_schema(self.schema)
        [batch] = rows.combine_chunks().to_batches()
        versions = self._versions()
        if len(versions) == 1:
            return self._decoded(batch, versions[0], target)
        chosen = _versions_of(batch, versions)
        parts = [
            self._decoded(batch.take(pa.array(np.flatnonzero(chosen == at))), versions[at], target)
            for at in np.unique(chosen).tolist()
        ]
        return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]

    def split(self, rows: pa.Table) -> tuple[list[pa.RecordBatch], list[RefusedRow]]:
        """The changes of those rows that can be decoded, and the rows that cannot.

        Raises:
            DecodeError: What is not understood is not about one row: how a transaction took rows
                back, for example.
            SchemaMismatchError: As when all rows are decoded.
        """
        changes: list[pa.RecordBatch] = []
        refused: list[RefusedRow] = []
        waiting = [rows]
        while waiting:
            part = waiting.pop()
            if part.num_rows == 0:
                continue
            try:
                changes.append(self(part))
            except DecodeError as error:
                row = _row_of(error, part)
                if row is None or part["problem"][row].as_py() in _OF_ROLLBACK:
                    raise
                refused.append(_refused(error, part, row))
                waiting += [part.slice(row + 1), part.slice(0, row)]
        return changes, sorted(refused, key=lambda one: one.ordinal)

    @property
    def has_placeholders(self) -> bool:
        """Must ROWIDs that identify rows be found, in some version of the table?"""
        return any(version.has_placeholders for version in self._versions())

    @property
    def is_undone_by_statement(self) -> bool:
        """May one undo row take back several redo rows, in some version of the table?"""
        return any(version.is_undone_by_statement for version in self._versions())

    @property
    def is_reselected(self) -> bool:
        """Are the rows those that Oracle was asked for, since LogMiner shows none of some version
        of the table?"""
        return any(map(is_reselected, self._versions()))

    def hides(self, commit_scn: int) -> bool:
        """Does LogMiner show no row of a transaction that changed the table and committed then?"""
        return is_reselected(self.version_at(commit_scn))

    @property
    def closes_shown(self) -> bool:
        """Are rows that close statements with LOBs landed, of every version that has such
        statements?"""
        own = [one for one in self._versions() if one.is_undone_by_statement]
        return bool(own) and all(version.closes_shown for version in own)

    @property
    def leaves_out(self) -> bool:
        """Has a version of the table columns that are left out?"""
        return any(version.excluded for version in self._versions())

    def version_at(self, scn: int) -> TableSchema:
        """The version of the table in which a row with that SCN was written."""
        versions = self._versions()
        return versions[sum(version.scn_from <= scn for version in versions[1:])]

    def redacted(self, rows: pa.Table) -> pa.Array:
        """The redo text of rows without the values of columns that are left out; NULL where these
        cannot be told apart."""
        text = whole(rows["sql_redo"])
        excluded = frozenset((*self.excluded, *self.schema.excluded))
        if not excluded:
            return text
        codes = whole(rows["operation_code"])
        is_plain = pc.is_in(codes, value_set=pa.array(list(_OPS), codes.type))
        safe = redact_column(text, self.schema, excluded)
        return pc.if_else(is_plain, safe, pa.scalar(None, text.type))

    def _versions(self) -> tuple[TableSchema, ...]:
        known = {version.scn_from: version for version in (self.schema, *self.earlier)}
        now = {one.stored_as: one.name for one in self.schema.columns}

        def excluded(version: TableSchema) -> list[str]:
            own = [one.name for one in version.columns if now.get(one.stored_as) in self.excluded]
            return [*self.excluded, *own]

        return tuple(known[scn].without(excluded(known[scn])).in_oracle() for scn in sorted(known))

    def _decoded(
        self, batch: pa.RecordBatch, version: TableSchema, target: pa.Schema
    ) -> pa.RecordBatch:
        self._refuse(batch, version)
        codes = batch["operation_code"]
        decoded = self._landed(batch) or self._read(batch, version)
        rows, row_ids = batch.num_rows, known_row_ids(batch["row_id"])
        before, after = (
            _in_columns_of(image, target.field(name).type, row_ids)
            for name, image in (("before", decoded.before), ("after", decoded.after))
        )
        self._check_keys((before, after), batch)
        self._refuse_unshown(decoded, batch)
        self._refuse_replaced((before, after), batch)
        later = self._later_columns(version)
        columns = {
            "_cdc_op": pa.array(_OP_LETTERS).take(codes),
            "_cdc_commit_scn": batch["commit_scn"],
            "_cdc_ordinal": batch["ordinal"],
            "_cdc_scn": batch["scn"],
            "_cdc_xid": batch["xid"],
            "_cdc_window": pa.repeat(pa.scalar(self.window, pa.int64()), rows),
            "_cdc_timestamp": batch["timestamp"],
            "_cdc_commit_timestamp": batch["commit_timestamp"],
            "_cdc_username": batch["username"],
            "_cdc_rs_id": batch["rs_id"],
            "_cdc_thread": batch["thread"],
            "_cdc_row_id": row_ids,
            "_cdc_snapshot": pa.nulls(rows, pa.string()),
            "_cdc_absent": _with_later_columns(decoded.absent, later),
            "_cdc_before_absent": _with_later_columns(
                decoded.before_absent, later, pc.is_valid(decoded.before)
            ),
            "_cdc_columns": pa.repeat(pa.scalar(self._columns_at(version), pa.int32()), rows),
            "before": before,
            "after": after,
            **self._optional(batch, version),
            "_cdc_skipped": pa.nulls(rows, pa.string()),
        }
        if self.skipping != NOTHING_SKIPPED:
            columns["_cdc_skipped"] = self.skipping.reasons(pa.table(columns), batch["client_id"])
        arrays = [columns[one.name].cast(one.type) for one in target]
        if decoded.unfit:
            self.unfit.append(decoded.unfit)
        return pa.RecordBatch.from_arrays(arrays, schema=target)

    def _landed(self, batch: pa.RecordBatch) -> DecodedDml | None:
        """The changes of rows that landed with typed values; None of redo text."""
        if IMAGES[0] not in batch.schema.names:
            return None
        before, after, absent, before_absent = (batch[name] for name in IMAGES)
        hidden = {one.stored_as for one in self.schema.columns if one.name in self.excluded}
        return DecodedDml(
            op=batch["operation_code"].cast(pa.int8()),
            before=_without(before, hidden),
            after=_without(after, hidden),
            absent=absent,
            before_absent=before_absent,
        )

    def _read(self, batch: pa.RecordBatch, version: TableSchema) -> DecodedDml:
        """The changes of rows of redo text, by the version in which they were written."""
        try:
            decoded = decode_dml(batch["sql_redo"], version.as_in_rows())
        except CdcError as error:
            raise self._located(error, batch) from error
        wrong = pc.not_equal(decoded.op.cast(pa.int32()), batch["operation_code"])
        self._stop_where(wrong, batch, "the statement is not what its operation code says")
        return _as_logged(decoded, version.stored_names)

    def _optional(self, batch: pa.RecordBatch, version: TableSchema) -> dict[str, pa.Array]:
        """The columns that the configuration may leave out."""
        rows, kept = batch.num_rows, OPTIONAL & self.optional
        values = dict.fromkeys(OPTIONAL, pa.nulls(rows))
        values |= {name: batch[name] for name in kept - {"landed", "redo_sql"}}
        if "landed" in kept:
            values["landed"] = pa.repeat(pa.scalar(self.landed, pa.timestamp("us")), rows)
        if "redo_sql" in kept:
            values["redo_sql"] = redact_column(
                batch["sql_redo"], version, frozenset(version.excluded)
            )
        return {f"_cdc_{name}": one for name, one in values.items()}

    def _columns_at(self, version: TableSchema) -> int:
        """How many of the Delta tables' columns the table had had in a version: those behind them
        came later."""
        had = {*version.stored_names.values(), *version.dropped}
        return max(at for at, one in enumerate(self.schema.columns, 1) if one.stored_as in had)

    def _later_columns(self, version: TableSchema) -> list[str]:
        """The columns that the table got behind a version, which its rows lack. One that was
        dropped before is NULL."""
        had = {*version.stored_names.values(), *version.dropped}
        return [
            one.stored_as
            for one in self.schema.columns
            if one.stored_as not in had and one.name not in self.excluded
        ]

    def _refuse(self, batch: pa.RecordBatch, version: TableSchema) -> None:
        """Stop at the first row that is neither a plain, executable change nor one whose names the
        version knows."""
        codes = batch["operation_code"]
        status = pc.bit_wise_and(batch["status"], pa.scalar(STATUS_MASK, pa.int32()))
        plain = pc.is_in(codes, value_set=pa.array(list(_OPS), codes.type))
        said = pc.fill_null(
            pc.is_in(status, value_set=pa.array(_NOT_EXECUTABLE, pa.int32())), False
        )
        executable = pc.invert(said)
        if pc.any(said).as_py() and plan_table(version).stored:
            unnamed = pc.match_substring(batch["sql_redo"], _UNNAMED)
            unnamed = pc.and_(unnamed, pc.equal(status, _INVALID))
            executable = pc.or_(executable, pc.fill_null(unnamed, False))
        fine = pc.and_(plain, executable)
        fine = pc.and_(fine, pc.is_null(batch["problem"]))
        row = pc.index(fine, False).as_py()
        if row >= 0:
            self._refuse_row(batch, row)

    def _refuse_row(self, batch: pa.RecordBatch, row: int) -> None:
        where = self._facts(batch, row)
        code, problem = where["operation_code"], batch["problem"][row].as_py()
        if problem is not None:
            hint = {
                addresses.ADDRESS_UNKNOWN: _NO_ADDRESS,
                lobs.INCOMPLETE: _RESELECT + _WAY_OUT,
                lobs.NOT_UNDERSTOOD: _RESELECT + _WAY_OUT,
                lobs.TWO_READINGS: _RESELECT + _WAY_OUT,
                reselected.NOT_READ: _ROWS_GONE,
            }
            if problem in _OF_ROLLBACK:
                has_lobs = any(column.is_lob for column in self.schema.columns)
                hint[problem] = (_LOBS_OUT if has_lobs else "") + RESNAPSHOT_HINT
            raise DecodeError(_PROBLEMS[problem], hint=hint.get(problem, _WAY_OUT), **where)
        if code == Operation.DDL:
            raise SchemaMismatchError(
                "the table was truncated, which is not followed",
                hint=RESNAPSHOT_HINT,
                **where,
            )
        if code not in _OPS:
            name = operation_name(code)
            raise DecodeError(f"operation {name} is not supported", hint=_WHOLE_ROW, **where)
        raise DecodeError(
            "LogMiner could not translate a change (STATUS 2 or 3)", hint=_WHOLE_ROW, **where
        )

    def _check_keys(self, images: tuple[pa.StructArray, ...], batch: pa.RecordBatch) -> None:
        """Every change names its row: no key column is NULL in an image that the change has."""
        for image in images:
            there = pc.is_valid(image)
            for column in self.schema.key:
                values = pc.struct_field(image, self.schema.stored_names[column])
                missing = pc.and_(there, pc.is_null(values))
                what = "ROWID" if column == ROW_ID else "key"
                self._stop_where(
                    missing, batch, f"a change does not carry its row's {what}", column=column
                )

    def _refuse_unshown(self, decoded: DecodedDml, batch: pa.RecordBatch) -> None:
        """A column that snapshots alone read keeps what they have: no change may give it a value,
        and no new row may leave open whether it has one."""
        for column in self.schema.columns:
            field = column.stored_as
            if not is_snapshot_only(column) or decoded.after.type.get_field_index(field) < 0:
                continue
            lacks = np.array([field in names for names in decoded.absent.to_pylist()], bool)
            inserts = pc.equal(batch["operation_code"], int(Operation.INSERT))
            unknown = pc.or_(
                pc.is_valid(pc.struct_field(decoded.after, field)),
                pc.and_(inserts, pa.array(lacks)),
            )
            self._stop_where(
                pc.and_(pc.is_valid(decoded.after), unknown),
                batch,
                f"a change gives a {column.data_type} a value, which redo does not carry whole",
                hint=f"A new snapshot reads it: {RESNAPSHOT_HINT}",
                column=column.name,
            )

    def _refuse_replaced(self, images: tuple[pa.StructArray, ...], batch: pa.RecordBatch) -> None:
        """A text in whose place something else has landed is no value, but where that is wanted."""
        flags = pc.bit_wise_and(batch["status"], pa.scalar(TEXT_REPLACED, pa.int32()))
        flagged = pc.fill_null(pc.greater(flags, 0), False)
        if not pc.any(flagged).as_py():
            return
        for image in images:
            for column, one in zip(self.schema.column_names, image.type, strict=True):
                is_replaced = self.replacing.takes(column, self.schema.key)
                if is_replaced or not pa.types.is_string(one.type):
                    continue
                found = pc.match_substring(pc.struct_field(image, one.name), REPLACEMENT)
                self._stop_where(
                    pc.and_(flagged, pc.fill_null(found, False)),
                    batch,
                    NOT_TEXT,
                    hint=NOT_TEXT_IN_REDO,
                    column=column,
                )

    def _stop_where(
        self,
        wrong: pa.Array,
        batch: pa.RecordBatch,
        message: str,
        hint: str = f"Check the table's supplemental logging; then {RESNAPSHOT_HINT}",
        **facts: object,
    ) -> None:
        row = pc.index(wrong, True).as_py()
        if row >= 0:
            raise DecodeError(message, hint=hint, **self._facts(batch, row), **facts)

    def _located(self, error: CdcError, batch: pa.RecordBatch) -> CdcError:
        """The decoder's error with its row index replaced by where in the redo the row is."""
        facts = dict(error.facts)
        row = facts.pop("row", None)
        where = self._facts(batch, row) if isinstance(row, int) else {"table": self.schema.table}
        return type(error)(error.message, hint=error.hint, **{**facts, **where})

    def _facts(self, batch: pa.RecordBatch, row: int) -> dict[str, object]:
        return {
            "table": self.schema.table,
            "operation_code": batch["operation_code"][row].as_py(),
            "scn": batch["scn"][row].as_py(),
            "xid": batch["xid"][row].as_py(),
            "ordinal": batch["ordinal"][row].as_py(),
        }


def _versions_of(batch: pa.RecordBatch, versions: tuple[TableSchema, ...]) -> npt.NDArray[np.int64]:
    """Per row, the place of the version in which it was written. One at the SCN of a DDL is of the
    new version, unless LogMiner does not name its columns, as of rows from before."""
    bounds = np.array([version.scn_from for version in versions[1:]], dtype=np.int64)
    scns = batch["scn"].to_numpy()
    chosen: npt.NDArray[np.int64] = np.searchsorted(bounds, scns, side="right")
    at_ddl = np.isin(scns, bounds)
    if at_ddl.any():
        status = pc.bit_wise_and(batch["status"], pa.scalar(STATUS_MASK, pa.int32()))
        unnamed = pc.and_(
            pc.match_substring(batch["sql_redo"], _UNNAMED), pc.equal(status, _INVALID)
        )
        chosen -= at_ddl & pc.fill_null(unnamed, False).to_numpy(zero_copy_only=False)
    return chosen


def _as_logged(decoded: DecodedDml, stored_names: Mapping[str, str]) -> DecodedDml:
    """Changes that were decoded by a version, with its columns as they are stored."""
    if all(name == stored_as for name, stored_as in stored_names.items()):
        return decoded

    def image(values: pa.StructArray) -> pa.StructArray:
        fields = [field.with_name(stored_names[field.name]) for field in values.type]
        return pa.StructArray.from_arrays(
            [values.field(at) for at in range(len(fields))], fields=fields, mask=values.is_null()
        )

    return replace(
        decoded,
        before=image(decoded.before),
        after=image(decoded.after),
        absent=renamed_lists(decoded.absent, stored_names),
        before_absent=renamed_lists(decoded.before_absent, stored_names),
    )


def _without(images: pa.StructArray, names: Collection[str]) -> pa.StructArray:
    """Row images without some columns."""
    left = [field for field in images.type if field.name not in names]
    if len(left) == images.type.num_fields:
        return images
    columns = [images.field(field.name) for field in left]
    return pa.StructArray.from_arrays(columns, fields=left, mask=images.is_null())


def _with_later_columns(
    absent: pa.ListArray, later: list[str], where: pa.Array | None = None
) -> pa.ListArray:
    """Lists of absent columns with some more; none where an image is not there."""
    if not later:
        return absent
    found = pa.array([[*names, *later] for names in absent.to_pylist()], absent.type)
    if where is None:
        return found
    return pc.if_else(where, found, pa.array([[]] * len(absent), absent.type))


def _in_columns_of(
    images: pa.StructArray, wanted: pa.StructType, row_ids: pa.Array
) -> pa.StructArray:
    """Row images in other columns: by name, NULL where a version has no such column, with the ROWID
    where it is one."""
    if images.type == wanted:
        return images
    columns = [
        row_ids
        if field.name == ROW_ID
        else widened(images.field(field.name), field.type)
        if images.type.get_field_index(field.name) >= 0
        else pa.nulls(len(images), field.type)
        for field in wanted
    ]
    return pa.StructArray.from_arrays(columns, fields=list(wanted), mask=images.is_null())


def _row_of(error: DecodeError, rows: pa.Table) -> int | None:
    """Which row the error is about; None if it is about no single one."""
    ordinal = error.facts.get("ordinal")
    row: int = pc.index(rows["ordinal"], ordinal).as_py() if isinstance(ordinal, int) else -1
    return row if row >= 0 else None


def _refused(error: DecodeError, rows: pa.Table, row: int) -> RefusedRow:
    row_id = rows["row_id"][row].as_py()
    column = error.facts.get("column")
    return RefusedRow(
        rows["ordinal"][row].as_py(),
        rows["commit_scn"][row].as_py(),
        None if row_id == UNKNOWN_ROW_ID else row_id,
        error.message if column is None else f"{error.message} (column={column})",
    )


def operation_name(code: Any) -> str:
    """What LogMiner's operation code is called; the number of one that has no name here."""
    try:
        return Operation(code).name
    except ValueError:
        return str(code)
