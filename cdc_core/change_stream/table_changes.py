"""How do the changes of one table become rows of its change file?

They are held back in the order in which they came: one by one, or as runs that are columns already.
"""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from cdc_core.change_reader import ValuesAsOf
from cdc_core.change_stream.form import Event, HeldRows, RunEvent, StreamForm
from cdc_core.change_stream.images import ImageReader, Images
from cdc_core.decode.masking import Masks
from cdc_core.errors import DecodeError
from cdc_core.landing.layout import change_file_schema
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema

_OPERATIONS = {"c": Operation.INSERT, "u": Operation.UPDATE, "d": Operation.DELETE}
_ROW_BYTES = 200
_FACTS = ("ordinal", "scn", "xid", "operation_code", "row_id", "timestamp", "thread")


class TableChanges:
    """The changes of one table that have not been written yet, by one version of it.
    ``values_as_of`` asks Oracle for what the stream does not tell."""

    def __init__(
        self,
        schema: TableSchema,
        form: StreamForm,
        masks: Masks,
        values_as_of: ValuesAsOf | None,
    ) -> None:
        self.schema, self._values_as_of = schema, values_as_of
        self.name = str(schema.table)
        self._reader = ImageReader(schema, form, masks)
        self._held: list[_Held] = []
        self.count = 0
        self.bytes = 0

    def add(self, event: Event, xid: str, row_id: str) -> int:
        """Hold a change back; about so many bytes."""
        if not self._held or not isinstance(self._held[-1], _Events):
            self._held.append(_Events())
        held = self._held[-1]
        assert isinstance(held, _Events)
        held.add(event, xid, row_id)
        return self._added(1, event.size + _ROW_BYTES)

    def add_run(self, event: RunEvent) -> int:
        """Hold a run back; about so many bytes."""
        if not self._held or not isinstance(self._held[-1], _Runs):
            self._held.append(_Runs())
        held = self._held[-1]
        assert isinstance(held, _Runs)
        return self._added(len(event), held.add(event))

    def take_unfit(self) -> int:
        """How many values of what was taken are NULL because no form holds them; once."""
        found, self._reader.unfit = self._reader.unfit, 0
        return found

    def take(self) -> tuple[pa.Table, DecodeError | None, int]:
        """The changes in the columns of their file, up to the first one that is not understood;
        with that one's error and the SCN of its commit."""
        kind = change_file_schema(self.schema)
        held, self._held = self._held, []
        self.count = self.bytes = 0
        found: list[pa.RecordBatch] = []
        for part in held:
            count = len(part)
            error: DecodeError | None = None
            images: tuple[Images, Images] | None = None
            while images is None:
                try:
                    images = self._images(part, count)
                except DecodeError as raised:
                    row = raised.facts.get("row")
                    count, error = row if isinstance(row, int) else 0, raised
            found.append(self._rows(kind, part, count, *images))
            if error is not None:
                return pa.Table.from_batches(found, kind), error, part.commit_scn(count)
        return pa.Table.from_batches(found, kind), None, 0

    def _images(self, part: _Held, count: int) -> tuple[Images, Images]:
        """Images of the first changes, with what Oracle is asked for.

        Raises:
            DecodeError: A row is not understood, or Oracle does not tell its values.
        """
        old, new = part.images(self._reader, count)
        if not new.untold:
            return old, new
        row_ids = part.facts(count)[_FACTS.index("row_id")].to_pylist()
        asked: dict[tuple[Scn, str], dict[Column, int]] = {}
        for row, column in new.untold:
            # The last change of a row in its transaction has what the commit has.
            place = Scn(part.commit_scn(row)), row_ids[row]
            asked.setdefault(place, {})[column] = row
        assert self._values_as_of is not None
        names = sorted({column.name for _, column in new.untold})
        try:
            values = self._values_as_of(self.schema, names, list(asked))
        except DecodeError as error:
            first = min(row for row, _ in new.untold)
            facts = {**error.facts, "row": first}
            raise DecodeError(error.message, hint=error.hint, **facts) from error
        return old, new.with_values(list(asked.values()), values)

    def _added(self, count: int, size: int) -> int:
        self.count += count
        self.bytes += size
        return size

    def _rows(
        self, kind: pa.Schema, part: _Held, count: int, old: Images, new: Images
    ) -> pa.RecordBatch:
        given = dict(zip(_FACTS, part.facts(count), strict=True))
        table = self.schema.table
        given |= {
            "rollback": pa.repeat(False, count),
            "seg_owner": pa.repeat(table.owner, count),
            "table_name": pa.repeat(table.name, count),
            "before": old.rows,
            "after": new.rows,
            "absent": new.absent,
            "before_absent": old.absent,
        }
        arrays = [
            given[one.name].cast(one.type) if one.name in given else pa.nulls(count, one.type)
            for one in kind
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=kind)


class _Held(Protocol):
    """Some changes that follow each other."""

    def __len__(self) -> int: ...

    def commit_scn(self, at: int) -> int:
        """SCN of the commit of the change with that number."""

    def facts(self, count: int) -> list[pa.Array]:
        """Columns of the first changes, in the order of ``_FACTS``."""

    def images(self, reader: ImageReader, count: int) -> tuple[Images, Images]:
        """Images of the first changes.

        Raises:
            DecodeError: A row is not understood; its place stands under ``row``.
        """


class _Events:
    """Changes that came one by one."""

    def __init__(self) -> None:
        self._facts: list[tuple[Any, ...]] = []
        self._before: list[Any] = []
        self._after: list[Any] = []
        self._commits: list[int] = []

    def __len__(self) -> int:
        return len(self._facts)

    def add(self, event: Event, xid: str, row_id: str) -> None:
        self._before.append(event.before)
        self._after.append(event.after)
        self._commits.append(event.commit_scn)
        operation = int(_OPERATIONS[event.op])
        self._facts.append(
            (event.ordinal, event.scn, xid, operation, row_id, event.moment, event.thread)
        )

    def commit_scn(self, at: int) -> int:
        return self._commits[at]

    def facts(self, count: int) -> list[pa.Array]:
        columns = list(zip(*self._facts[:count], strict=True)) or [()] * len(_FACTS)
        return [pa.array(values) for values in columns]

    def images(self, reader: ImageReader, count: int) -> tuple[Images, Images]:
        return reader.images(self._before[:count], self._after[:count])


class _Runs:
    """Changes that came as columns."""

    def __init__(self) -> None:
        self._parts: list[HeldRows] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, event: RunEvent) -> int:
        held = event.held()
        self._parts.append(held)
        self._count += len(held)
        return held.size

    def commit_scn(self, at: int) -> int:
        return self._first(at + 1).commit_scn(at)

    def facts(self, count: int) -> list[pa.Array]:
        return self._first(count).facts()

    def images(self, reader: ImageReader, count: int) -> tuple[Images, Images]:
        return reader.run_images(self._first(count))

    def _first(self, count: int) -> HeldRows:
        if len(self._parts) > 1:
            self._parts = [self._parts[0].joined(self._parts)]
        return self._parts[0].first(count)
