"""What was sent to a MERGE, and did the mirror take all of it?

Two counts that cost next to nothing and notice what a window's apply could lose or double: keys
against rows before the MERGE, and MERGE's own counts after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.errors import REPORT_HINT, RowCountError
from cdc_core.lake.tables import listed
from cdc_core.schema.table import TableSchema
from cdc_core.stage.layout import COMMIT_SCN


class Audit(Protocol):
    """What was sent to a MERGE."""

    def check(self, counts: Sequence[Any]) -> None:
        """Hold MERGE's own counts against it; there are none if Delta skipped a repeated
        transaction.

        Raises:
            RowCountError: The mirror took less or more.
        """


class SentRows:
    """The source of one MERGE, counted while it is handed over.

    ``rows`` are keys that have a row afterwards, ``gone`` those that have none. ``surely`` of the
    rows are newer than all that the
    mirror can have: MERGE inserts or updates each of them, and deletes the ``surely_gone``. A row
    that a chunk read ahead of the window may be newer than the window's.

    Args:
        schema: The table.
        read_scn: Highest SCN as of which a chunk of the mirror was read; None if the caller does
            not know.
        facts: Source and table, for errors.
    """

    def __init__(
        self, schema: TableSchema, read_scn: int | None, facts: Mapping[str, object]
    ) -> None:
        self._key, self._read_scn, self._facts = list(schema.key), read_scn, facts
        self.rows = self.gone = self.surely = self.surely_gone = 0

    @classmethod
    def of_table(cls, rows: pa.Table, schema: TableSchema, facts: Mapping[str, object]) -> SentRows:
        """The source that a table in hand holds: the mirror has none of its rows and all of its
        deleted keys, and MERGE takes it as the truth.

        Raises:
            RowCountError: A key is there twice.
        """
        found = cls(schema, None, facts)
        [_] = found.counting(iter([rows]))
        return found.as_truth()

    @classmethod
    def of_frame(
        cls,
        frame: Any,
        schema: TableSchema,
        read_scn: int | None,
        facts: Mapping[str, object],
    ) -> SentRows:
        """The source that a DataFrame holds, which is computed already.

        Raises:
            RowCountError: A key is there twice.
        """
        is_newer = "FALSE" if read_scn is None else f"{COMMIT_SCN} > {read_scn}"
        [counts] = frame.selectExpr(
            "COUNT_IF(_cdc_kind = 'row') AS rows_sent",
            "COUNT_IF(_cdc_kind <> 'row') AS keys_gone",
            f"COUNT_IF(_cdc_kind = 'row' AND {is_newer}) AS rows_newer",
            f"COUNT(DISTINCT STRUCT({listed(schema.key)})) AS keys",
        ).collect()
        found = cls(schema, read_scn, facts)
        found.take(counts.asDict())
        return found

    def take(self, counts: Mapping[str, int]) -> None:
        """Learn what a DataFrame holds: ``rows_sent``, ``keys_gone``, ``rows_newer`` (of the rows)
        and ``keys``.

        Raises:
            RowCountError: A key is there twice.
        """
        self.rows, self.gone = counts["rows_sent"], counts["keys_gone"]
        self._check_keys(counts["keys"], self.rows + self.gone)
        self.surely = counts["rows_newer"]

    def as_truth(self) -> SentRows:
        """The same where the mirror has none of these rows and all of the deleted keys, and MERGE
        takes the source as the truth."""
        self.surely, self.surely_gone = self.rows, self.gone
        return self

    def counting(self, parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The same parts, in the columns of ``stage.reduction.merge_source``.

        Raises:
            RowCountError: A part has a key twice.
        """
        for part in parts:
            self._check_keys(_count_keys(part, self._key), part.num_rows)
            is_row = pc.equal(part["_cdc_kind"], "row")
            rows = pc.sum(is_row).as_py() or 0
            self.rows += rows
            self.gone += part.num_rows - rows
            if self._read_scn is not None:
                is_newer = pc.greater(part[COMMIT_SCN], self._read_scn)
                self.surely += pc.sum(pc.and_(is_row, is_newer)).as_py() or 0
            yield part

    @property
    def counts(self) -> dict[str, int]:
        """What was counted so far, for :meth:`add`."""
        return {"rows": self.rows, "gone": self.gone, "surely": self.surely}

    def add(self, rows: int, gone: int, surely: int) -> None:
        """Learn what another process has counted of other keys."""
        self.rows += rows
        self.gone += gone
        self.surely += surely

    def check(self, counts: Sequence[Any]) -> None:
        """Hold MERGE's own counts against what was sent; there are none if Delta skipped a repeated
        transaction.

        Raises:
            RowCountError: The mirror took less or more than what was sent.
        """
        if not counts:
            return
        [row] = counts
        written = row["num_inserted_rows"] + row["num_updated_rows"]
        deleted = row["num_deleted_rows"]
        took_rows = self.surely <= written <= self.rows
        if not (took_rows and self.surely_gone <= deleted <= self.gone):
            raise _other_counts(
                self._facts,
                rows=self.rows,
                surely=self.surely,
                written=written,
                gone=self.gone,
                deleted=deleted,
            )

    def _check_keys(self, keys: int, rows: int) -> None:
        if keys != rows:
            raise RowCountError(
                "reducing changes left more than one row of a key; the mirror was not changed",
                hint=REPORT_HINT,
                **self._facts,
                rows=rows,
                keys=keys,
            )


class SentReplacement:
    """The source of a MERGE that replaces keys, counted while it is handed over: ``rows`` come,
    whatever the mirror has of the keys goes.

    Args:
        schema: The table.
        facts: Source and table, for errors.
        landed: No more rows may come.
        there: The mirror has so many of the keys at least. How many rows go is not known before: it
            may lack keys, and may have rows that are double.
    """

    def __init__(
        self,
        schema: TableSchema,
        facts: Mapping[str, object],
        *,
        landed: int = 0,
        there: int = 0,
    ) -> None:
        self._key, self._facts = list(schema.key), facts
        self._landed, self._there, self.rows = landed, there, 0

    def counting(self, parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The same parts, in the columns of ``stage.snapshot.replacing``.

        Raises:
            RowCountError: They have more rows than landed, a key twice, or a row whose key they do
                not replace.
        """
        for part in parts:
            is_row = pc.equal(part["_cdc_kind"], "row")
            rows, keys = (part.filter(one) for one in (is_row, pc.invert(is_row)))
            self.rows += rows.num_rows
            are_once = all(_count_keys(one, self._key) == len(keys) for one in (keys, part))
            if self.rows > self._landed or rows.num_rows > keys.num_rows or not are_once:
                raise RowCountError(
                    "the rows of a chunk that are to be replaced are not those that landed; the mirror was not changed",
                    hint=REPORT_HINT,
                    **self._facts,
                    landed=self._landed,
                    rows=self.rows,
                    keys=keys.num_rows,
                )
            yield part

    def check(self, counts: Sequence[Any]) -> None:
        """Hold MERGE's own counts against what was sent; there are none if Delta skipped a repeated
        transaction.

        Raises:
            RowCountError: The mirror took less or more rows than were sent, or kept some.
        """
        if not counts:
            return
        [row] = counts
        inserted, updated = row["num_inserted_rows"], row["num_updated_rows"]
        deleted = row["num_deleted_rows"]
        if updated or inserted != self.rows or deleted < self._there:
            raise _other_counts(
                self._facts,
                rows=self.rows,
                inserted=inserted,
                updated=updated,
                there=self._there,
                deleted=deleted,
            )


def _other_counts(facts: Mapping[str, object], **numbers: object) -> RowCountError:
    return RowCountError(
        "MERGE reported other row counts than Redolake sent",
        hint=f"`redolake table rebuild OWNER.TABLE` rewrites the mirror from its change log. {REPORT_HINT}",
        **facts,
        **numbers,
    )


def check_written(what: str, wanted: int, written: int, facts: Mapping[str, object]) -> None:
    """Hold the rows that went into a file of a Delta table, before a commit names it, against those
    that landed.

    Raises:
        RowCountError: They differ.
    """
    if wanted != written:
        raise RowCountError(
            f"{what}: other rows were written than landed; nothing was committed",
            hint=REPORT_HINT,
            **facts,
            landed=wanted,
            written=written,
        )


def _count_keys(rows: pa.Table, key: list[str]) -> int:
    return int(rows.select(key).group_by(key).aggregate([]).num_rows)
