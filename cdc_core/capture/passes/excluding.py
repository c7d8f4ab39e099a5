"""Which redo must not land, since it holds values of columns that are left out or masked?

The values of excluded columns become NULL in the redo text, those of masked ones their mask
(:mod:`cdc_core.decode.redact`). A column that a pattern leaves out is so from the first
row on that names it, whether or not the definition has it yet. Rows that write a LOB hold nothing
else than its value: they are dropped where its column is left out, but for the one that begins it,
which lands without its text. It shows that the statement was there: a transaction may take it
back, and no other. A row that does not name the column goes on with the one that its transaction's
row before it named. What cannot be told apart is not landed, and ends the table's stream: also rows
from behind a DDL that may have given the columns other places or names, if they have no names
(``COL n``) or names that the definition does not have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.capture.passes.batches import MinedBatch
from cdc_core.decode.masking import Masks, PatternMasks, masks_among
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import LOB_OPERATIONS, Operation
from cdc_core.model.patterns import ColumnRule
from cdc_core.model.streams import StreamEnd
from cdc_core.schema.create_table import RenamedColumn
from cdc_core.schema.ddl_reading import read_ddl
from cdc_core.schema.table import TableSchema

_STATEMENTS = (Operation.INSERT, Operation.UPDATE, Operation.DELETE)
_LONG_TEXT = (Operation.EXTENDED_BEGIN, Operation.EXTENDED_WRITE, Operation.EXTENDED_END)
"""Rows that write a VARCHAR2 of more than 4,000 bytes piece by piece."""
_LEAVES_PLACES = re.compile(
    r"\s*ALTER\s+TABLE\s+\S+\s+(?:ADD|MODIFY|RENAME\s+COLUMN)\b(?!.*\bDROP\b)",
    re.IGNORECASE | re.DOTALL,
)
"""DDL after which each column that was there has the place that it had."""
_QUOTED = re.compile(r'"([^"]+)"')
_WORD = re.compile(r'"([^"]+)"|[^\W\d][\w$#]*')
"""A name in a DDL's text, or another word of it."""
_NAMES_LOB = re.compile(
    r'[^"\']*\bBEGIN\s+select "([^"]+)" into '
    r'|XML DOC BEGIN:\s+select "([^"]+)" from '
    r'|update "[^"]+"\."[^"]+"(?: \w+)? set (?:\w+\.)?"([^"]+)" = XMLType\(:1\)'
    r"""|[^"']*\bStmt\s*:=\s*'update "[^"]+"\."[^"]+"(?: \w+)? set (?:\w+\.)?"([^"]+)" = :DATA"""
)
"""The locator of a row that writes a LOB, what begins a document, or the statement to which an
extended string is bound."""
_BEGINNINGS = (
    Operation.SELECT_LOB_LOCATOR,
    Operation.EXTENDED_BEGIN,
    Operation.XML_DOC_BEGIN,
)
"""Rows with which the writing of a LOB begins."""
_NAMELESS = (
    Operation.EXTENDED_WRITE,
    Operation.EXTENDED_END,
    Operation.XML_DOC_WRITE,
    Operation.XML_DOC_END,
)
"""Rows that are data alone."""


class ExcludedValues:
    """Takes the values of excluded and masked columns out of the rows of one pass. ``ends`` are the
    tables that this could not be done for."""

    def __init__(
        self,
        tables: Sequence[TableSchema],
        masks: Mapping[TableId, Masks],
        rules: Mapping[TableId, ColumnRule] | None = None,
    ) -> None:
        self._masks, self._rules = masks, rules or {}
        self._tables = {
            place: table
            for place, table in enumerate(tables)
            if table.excluded or table.table in masks or table.table in self._rules
        }
        self._moved: dict[int, int] = {}
        self._told: dict[int, frozenset[str]] = {}
        self._is_in_doubt: set[int] = set()
        self._written: dict[tuple[str, TableId], bool] = {}
        self._masked: dict[tuple[str, TableId], bool] = {}
        self.ends: list[StreamEnd] = []

    def remove_from(self, batch: MinedBatch) -> MinedBatch:
        """The batch without the values, and without the rows that cannot land."""
        for place, table in self._tables.items():
            of_table = batch.tables == place
            self._note_ddl(batch, of_table & (batch.operations == Operation.DDL), place, table)
            own = of_table & batch.is_change
            if own.any():
                batch = self._remove(batch, own, place, table)
        self._forget_committed(batch)
        return batch

    def _forget_committed(self, batch: MinedBatch) -> None:
        """Forget which LOBs transactions wrote last that have committed: an XID is used again."""
        commits = batch.operations == Operation.COMMIT
        if commits.any() and (self._written or self._masked):
            ended = set(batch.rows.column("xid").filter(pa.array(commits)).to_pylist())
            for known in (self._written, self._masked):
                for slot in [one for one in known if one[0] in ended]:
                    del known[slot]

    def _note_ddl(
        self, batch: MinedBatch, rows: npt.NDArray[np.bool_], place: int, table: TableSchema
    ) -> None:
        """Note from which SCN on a place no longer says which column it is, and which names DDL has
        given to columns that are captured.

        A DDL that renames a column that is left out puts all names in doubt, and so does one that
        names it and cannot be read."""
        for at in np.flatnonzero(rows):
            text = batch.rows.column("sql_redo")[int(at)].as_py() or ""
            masks = masks_among(self._masks.get(table.table, {}), table.column_names)
            is_in_doubt = _may_rename(text, {*table.excluded, *masks})
            if is_in_doubt:
                self._is_in_doubt.add(place)
            if place not in self._is_in_doubt:
                words = frozenset(one[1] or one[0].upper() for one in _WORD.finditer(text))
                self._told[place] = self._told.get(place, frozenset()) | words
            if is_in_doubt or not _LEAVES_PLACES.match(text):
                scn = int(batch.rows.column("scn")[int(at)].as_py())
                self._moved[place] = min(scn, self._moved.get(place, scn))

    def _remove(
        self, batch: MinedBatch, own: npt.NDArray[np.bool_], place: int, table: TableSchema
    ) -> MinedBatch:
        masks = self._masks.get(table.table, {})
        rule = self._rules.get(table.table)
        if rule is not None or isinstance(masks, PatternMasks):
            later = _named_later(batch, own, table)
            masks = masks_among(masks, [*table.column_names, *later])
            table = table.without([one for one in later if rule is not None and rule.excludes(one)])
        has_long = any(one.is_extended and one.name in masks for one in table.columns)
        pieces = own & np.isin(batch.operations, _LONG_TEXT) & has_long
        if pieces.any():
            self._end(
                batch,
                pieces,
                table,
                "a long text is written in pieces, and its column may be masked",
            )
        lobs = own & np.isin(batch.operations, LOB_OPERATIONS) & ~pieces
        lobs &= bool(table.excluded) or rule is not None
        untold = np.zeros(len(lobs), dtype=np.bool_)
        if lobs.any() and (rule is not None or any(column.is_lob for column in table.columns)):
            moved, told = self._moved.get(place), self._told.get(place, frozenset())
            lobs, untold = self._of_excluded_lobs(batch, lobs, table, moved, told)
        begins = lobs & ~untold & np.isin(batch.operations, _BEGINNINGS)
        if begins.any():
            nothing = pa.nulls(int(begins.sum()), batch.rows.column("sql_redo").type)
            batch, lobs = _with_texts(batch, begins, nothing), lobs & ~begins
        writes = own & np.isin(batch.operations, LOB_OPERATIONS) & ~pieces & ~lobs & ~begins
        hidden = self._of_masked_lobs(batch, writes, place, table, masks)
        batch, unread = _with_redacted_places(batch, writes, hidden, table, masks)
        statements = own & np.isin(batch.operations, _STATEMENTS)
        batch, refused = _redacted(batch, statements, table, masks)
        refused |= unread
        if place in self._moved:
            told = self._told.get(place, frozenset())
            refused |= statements & _untold_behind(
                batch, statements, self._moved[place], table, told
            )
        if refused.any():
            reason = (
                "the values of excluded or masked columns cannot be removed from a redo row of this "
                "form"
            )
            self._end(batch, refused, table, reason)
        return batch.filter(~(lobs | pieces | refused))

    def _of_excluded_lobs(
        self,
        batch: MinedBatch,
        lobs: npt.NDArray[np.bool_],
        table: TableSchema,
        moved: int | None,
        told: frozenset[str],
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which of the rows write a LOB that is left out, and of which nobody can tell, since no
        row has named their LOB, or the name may be of any column: the table's stream ends with
        these. ``moved`` is the SCN behind which columns may have other places or names, but for the
        names ``told``."""
        found = np.zeros(len(lobs), dtype=np.bool_)
        untold = np.zeros(len(lobs), dtype=np.bool_)
        wanted = ["xid", "operation_code", "sql_redo", "scn"]
        columns = batch.rows.select(wanted).filter(pa.array(lobs))
        for at, row in zip(np.flatnonzero(lobs), columns.to_pylist(), strict=True):
            if not row["sql_redo"]:
                continue  # a locator's row that says nothing
            is_named = row["operation_code"] not in _NAMELESS
            named = _NAMES_LOB.match(row["sql_redo"]) if is_named else None
            slot = row["xid"], table.table
            is_out = self._written.get(slot)
            if named:
                is_moved = moved is not None and row["scn"] > moved
                name = named[named.lastindex or 0]
                is_moved = is_moved and name not in told
                is_out = _is_left_out(name, table, is_moved=is_moved)
            if is_out is None:
                untold[at] = True
                self._written.pop(slot, None)
            else:
                self._written[slot] = found[at] = is_out
        if untold.any():
            self._end(batch, untold, table, "a LOB is written, and its column may be excluded")
        return found | untold, untold

    def _of_masked_lobs(
        self,
        batch: MinedBatch,
        writes: npt.NDArray[np.bool_],
        place: int,
        table: TableSchema,
        masks: Masks,
    ) -> npt.NDArray[np.bool_]:
        """Which of the rows write a LOB that is masked, or may: of which nothing tells that it is
        another one."""
        found = np.zeros(len(writes), dtype=np.bool_)
        if not masks or not writes.any():
            return found
        others = {one.name for one in table.columns if one.is_lob} - masks.keys()
        moved, told = self._moved.get(place), self._told.get(place, frozenset())
        columns = batch.rows.select(["xid", "operation_code", "sql_redo", "scn"])
        rows = columns.filter(pa.array(writes)).to_pylist()
        for at, row in zip(np.flatnonzero(writes), rows, strict=True):
            slot = row["xid"], table.table
            is_named = row["operation_code"] not in _NAMELESS
            named = _NAMES_LOB.match(row["sql_redo"] or "") if is_named else None
            if named:
                name = named[named.lastindex or 0]
                is_moved = moved is not None and row["scn"] > moved and name not in told
                # A name that no DDL may have given away says which column it is; a place does not.
                is_moved &= place in self._is_in_doubt or name not in others
                self._masked[slot] = is_moved or _lob_named(name, table) not in others
            found[at] = self._masked.get(slot, True)
        return found

    def _end(
        self, batch: MinedBatch, rows: npt.NDArray[np.bool_], table: TableSchema, reason: str
    ) -> None:
        scn = int(batch.rows.column("scn")[int(np.argmax(rows))].as_py())
        self.ends.append(
            StreamEnd(
                table.table,
                scn - 1,
                f"{reason} (scn={scn}); it did not land",
                f"`redolake table resnapshot {table.table.argument}` adds the table back with a new snapshot; if it happens again, exclude "
                "the table, and report the statement's form with Oracle's version.",
                "undecodable",
            )
        )


def _named_later(batch: MinedBatch, rows: npt.NDArray[np.bool_], table: TableSchema) -> list[str]:
    """The columns that rows of the table name and its definition does not have yet. A word between
    quotes in a value may count for one, which harms nothing."""
    texts = batch.rows.column("sql_redo").filter(pa.array(rows)).to_pylist()
    named = {one for text in texts for one in _QUOTED.findall(text or "")}
    known = {*table.column_names, *table.excluded, *table.stored}
    return sorted(named - {*known, table.table.owner, table.table.name})


def _may_rename(text: str, names: Collection[str]) -> bool:
    """May a DDL have given one of some columns another name, or another column one of these
    names?"""
    clauses = read_ddl(text.rstrip("\0")).clauses
    if clauses is None:
        return any(_names(text, name) for name in names)
    renames = (one for one in clauses if isinstance(one, RenamedColumn))
    return any(one.old in names or one.new in names for one in renames)


def _names(text: str, name: str) -> bool:
    """Does a DDL's text have a name as a word, quoted or not?"""
    word = rf"(?<![\w$#]){re.escape(name)}(?![\w$#])"
    return re.search(word, text, re.IGNORECASE) is not None


def _lob_named(name: str, table: TableSchema) -> str:
    """The column that a row calls so: of ``COL n`` the n-th stored one."""
    from cdc_core.decode.plan import is_dictionary_name, plan_table

    stored = plan_table(table).stored
    if is_dictionary_name(name) and name.startswith("COL "):
        place = int(name.removeprefix("COL "))
        return stored[place - 1] if 0 < place <= len(stored) else ""
    return name


def _is_left_out(name: str, table: TableSchema, *, is_moved: bool) -> bool | None:
    """Is the column that a row calls so left out of the table? None where nobody can tell.

    ``COL n`` is the n-th stored column. A name, or a place, that the definition does not have came
    later, and is captured, where it has a place for each of those left out. ``is_moved``: columns
    may have got other places or names before the row.
    """
    from cdc_core.decode.plan import is_dictionary_name, plan_table

    stored = plan_table(table).stored
    if is_dictionary_name(name):
        place = int(name.removeprefix("COL ")) if name.startswith("COL ") else 0
        if is_moved or not place or not stored:
            return None
        name = stored[place - 1] if place <= len(stored) else name
    if name in table.column_names:
        return False
    if name in table.excluded or name in table.stored:
        return True
    return False if not is_moved and {*table.excluded} <= {*stored} else None


def _redacted(
    batch: MinedBatch, rows: npt.NDArray[np.bool_], table: TableSchema, masks: Masks
) -> tuple[MinedBatch, npt.NDArray[np.bool_]]:
    """The batch with redacted text in some rows, and which of these were given up."""
    # The decoder takes a second to import, and most sources leave no column out.
    from cdc_core.decode.redact import redact_column

    at = pa.array(rows)
    texts = batch.rows.column("sql_redo")
    own = texts.filter(at)
    safe = redact_column(own, table, table.excluded, masks)
    if safe is own:
        return batch, np.zeros(len(rows), dtype=np.bool_)
    lost = np.zeros(len(rows), dtype=np.bool_)
    lost[rows] = pc.and_(pc.is_null(safe), pc.is_valid(own)).to_numpy(zero_copy_only=False)
    return _with_texts(batch, rows, safe), lost


def _with_texts(batch: MinedBatch, rows: npt.NDArray[np.bool_], texts: pa.Array) -> MinedBatch:
    """The batch with other statements in some rows."""
    replaced = pc.replace_with_mask(batch.rows.column("sql_redo"), pa.array(rows), texts)
    place = batch.rows.schema.get_field_index("sql_redo")
    redacted = batch.rows.set_column(place, batch.rows.schema.field(place), replaced)
    return MinedBatch(redacted, batch.ordinals, batch.operations, batch.tables)


def _with_redacted_places(
    batch: MinedBatch,
    rows: npt.NDArray[np.bool_],
    hidden: npt.NDArray[np.bool_],
    table: TableSchema,
    masks: Masks,
) -> tuple[MinedBatch, npt.NDArray[np.bool_]]:
    """The same for rows that write LOBs, which name their table's row by all of its columns; of
    ``hidden`` ones, what they write is left out too."""
    lost = np.zeros(len(rows), dtype=np.bool_)
    if not rows.any():
        return batch, lost
    from cdc_core.decode.redact import redact_lob_row

    excluded = frozenset(table.excluded)
    texts = batch.rows.column("sql_redo").filter(pa.array(rows)).to_pylist()
    safe = [
        text and redact_lob_row(text, int(code), table, excluded, masks, is_hidden=bool(is_hidden))
        for text, code, is_hidden in zip(texts, batch.operations[rows], hidden[rows], strict=True)
    ]
    lost[rows] = [one is None and text is not None for one, text in zip(safe, texts, strict=True)]
    return _with_texts(batch, rows, pa.array(safe, batch.rows.column("sql_redo").type)), lost


def _untold_behind(
    batch: MinedBatch,
    statements: npt.NDArray[np.bool_],
    scn: int,
    table: TableSchema,
    told: frozenset[str],
) -> npt.NDArray[np.bool_]:
    """The rows above an SCN that call columns by place, or by names that neither the definition nor
    the DDL since then has: a column that is left out may have another place, or another name."""
    from cdc_core.decode.redact import names_known_columns

    unnamed = pc.fill_null(pc.match_substring(batch.rows.column("sql_redo"), '"COL '), False)
    behind = pc.greater(batch.rows.column("scn"), scn).to_numpy(zero_copy_only=False)
    found: npt.NDArray[np.bool_] = unnamed.to_numpy(zero_copy_only=False) & behind
    texts = batch.rows.column("sql_redo")
    for at in np.flatnonzero(statements & behind & ~found):
        found[at] = not names_known_columns(texts[int(at)].as_py() or "", table, told)
    return found
