"""How do the images of changed rows become Arrow structs, in the types of the type table?

Values go column by column. What a column's type does not hold is refused, never cut; so is a form
that can be read in two ways.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, repeat
from operator import is_
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.change_reader import PLACE
from cdc_core.change_stream.form import HeldRows, RunForm, StreamForm
from cdc_core.decode.batch import names_where
from cdc_core.decode.column_forms import in_form_or_null
from cdc_core.decode.kernels.scan import DELETE, INSERT
from cdc_core.decode.masking import Masks, masked
from cdc_core.errors import DecodeError
from cdc_core.schema.table import OFFSET, Column, TableSchema
from cdc_core.schema.types import arrow_type, as_read, is_snapshot_only

_LOG = logging.getLogger(__name__)
ABSENT = msgspec.UNSET
"""Stands for a column that an image does not carry."""
UNTOLD: Any = object()
"""Stands for a value that a stream does not tell: Oracle is asked for it."""


class RefusedValueError(Exception):
    """A value does not fit; the text holds none."""


_NOT_UNDERSTOOD = (
    RefusedValueError,
    msgspec.MsgspecError,
    pa.ArrowException,
    OverflowError,
    UnicodeDecodeError,
)


@dataclass(frozen=True, slots=True)
class Images:
    """Rows of a table before or after a change.

    Attributes:
        rows: Structs by what each column is stored as; NULL where there is no such image.
        absent: Per row, the columns that it does not carry.
        untold: Rows and columns of those values among them that Oracle is asked for.
    """

    rows: pa.StructArray
    absent: pa.ListArray
    untold: Sequence[tuple[int, Column]] = ()

    def with_values(self, asked: Sequence[Mapping[Column, int]], values: pa.Table) -> Images:
        """With the values that Oracle has told.

        Args:
            asked: For each row that Oracle was asked for, the rows here that take its columns.
            values: As :data:`~cdc_core.change_reader.ValuesAsOf` gives them.
        """
        told = list(enumerate(values[PLACE].to_pylist()))
        absent = self.absent.to_pylist()
        columns = dict(zip((one.name for one in self.rows.type), self.rows.flatten(), strict=True))
        for column in {one for row in asked for one in row}:
            own = columns[column.stored_as]
            places = np.arange(len(own))
            for at, place in told:
                if (row := asked[place].get(column)) is not None:
                    places[row] = len(own) + at
                    absent[row].remove(column.stored_as)
            new = values[column.name].combine_chunks().cast(own.type)
            columns[column.stored_as] = pa.concat_arrays([own, new]).take(pa.array(places))
        rows = pa.StructArray.from_arrays(
            list(columns.values()), fields=list(self.rows.type), mask=self.rows.is_null()
        )
        return Images(rows, pa.array(absent, self.absent.type))


class ImageReader:
    """Reads images of rows of one version of a table.

    Args:
        schema: The version.
        form: How a stream's images are read.
        masks: What lands in place of values.
    """

    def __init__(self, schema: TableSchema, form: StreamForm, masks: Masks) -> None:
        self._masks = masks
        self._table, self._writer = schema.table, form.wording.name
        here = schema.as_in_rows().in_oracle().columns
        self._columns = [one for one in here if not is_snapshot_only(one) and one.form != OFFSET]
        self._all = schema.as_in_rows().columns
        self._beside = {one.source: one for one in here if one.form == OFFSET}
        self._rows = form.rows(schema, self._columns)
        self.unfit = 0
        """So many values of new images so far are NULL because no form holds them."""

    def images(self, before: Sequence[Any], after: Sequence[Any]) -> tuple[Images, Images]:
        """The images of changes, None where a change has none. An update's new image takes what
        it does not carry from its old one: redo has every column that changed.

        Raises:
            DecodeError: A row is not understood; its place stands under ``row``.
        """
        try:
            old, new, unfit = self._images(before, after)
        except _NOT_UNDERSTOOD as error:
            raise self._located(before, after, error) from error
        self._tell(unfit)
        return old, new

    def run_images(self, rows: HeldRows) -> tuple[Images, Images]:
        """The images of a run's changes, as :meth:`images`: by columns; those that are not read
        so, one by one.

        Raises:
            DecodeError: A row is not understood; its place stands under ``row``.
        """
        form = self._rows
        assert isinstance(form, RunForm)
        count, operations = len(rows), rows.operations
        has_old, has_new = operations != INSERT, operations != DELETE
        try:
            scanned = form.scan(rows, operations)
            olds, _ = self._rows_of(scanned.before, has_old)
            news, unfit = self._rows_of(scanned.after, has_new)
        except _NOT_UNDERSTOOD:
            return self._one_by_one(rows, range(count))
        left = np.flatnonzero(scanned.operations == 0)
        missing = ~scanned.carried_before
        missing[:, ~has_old] = False
        old, new = Images(olds, self._named(missing)), Images(news, self._named(~scanned.carried))
        if len(left):
            places = np.arange(count)
            places[left] = count + np.arange(len(left))
            own = self._one_by_one(rows, left.tolist())
            old, new = _replaced(old, own[0], places), _replaced(new, own[1], places)
        self._tell(unfit)
        return old, new

    def _named(self, missing: npt.NDArray[np.bool_]) -> pa.ListArray:
        """What each row lacks, with what is made of it; ``missing`` is column by row."""
        if not self._beside:
            return names_where(missing, [column.stored_as for column in self._columns])
        pairs = [
            (at, one.stored_as)
            for at, column in enumerate(self._columns)
            for one in (column, self._beside.get(column.name))
            if one is not None
        ]
        places, names = zip(*pairs, strict=True)
        return names_where(missing[list(places)], names)

    def _tell(self, unfit: int) -> None:
        if unfit:
            self.unfit += unfit
            _LOG.warning(
                "values that do not fit their columns are NULL table=%s values=%d",
                self._table, unfit,
            )  # fmt: skip

    def _one_by_one(self, rows: HeldRows, at: Sequence[int]) -> tuple[Images, Images]:
        form = self._rows
        assert isinstance(form, RunForm)
        before, after = (
            [form.image(rows, row, is_old=is_old) for row in at] for is_old in (True, False)
        )
        try:
            old, new = self.images(before, after)
        except DecodeError as error:
            row = error.facts["row"]
            assert isinstance(row, int)
            raise DecodeError(
                error.message, hint=error.hint, **{**error.facts, "row": at[row]}
            ) from error
        return old, replace(new, untold=[(at[row], column) for row, column in new.untold])

    def _images(self, before: Sequence[Any], after: Sequence[Any]) -> tuple[Images, Images, int]:
        has_old = [image is not None for image in before]
        has_new = [image is not None for image in after]
        old, new = self._by_column(before, has_old), self._by_column(after, has_new)
        if self._rows.asks:
            old = [[ABSENT if one is UNTOLD else one for one in values] for values in old]
        for at, values in enumerate(new):
            if any(has_old) and any(has_new) and ABSENT in values:
                new[at] = [
                    kept if value is ABSENT else value
                    for value, kept in zip(values, old[at], strict=True)
                ]
        untold = self._take_untold(new) if self._rows.asks else ()
        deleted = [a and not b for a, b in zip(has_old, has_new, strict=True)]
        olds, _ = self._rows_of(self._arrays(old) if any(has_old) else None, has_old)
        news, unfit = self._rows_of(self._arrays(new) if any(has_new) else None, has_new)
        before_absent = self._absent(old, has_old)
        after_absent = self._absent(new, has_new)
        if any(deleted):
            after_absent = [
                lost if is_gone else own
                for lost, own, is_gone in zip(before_absent, after_absent, deleted, strict=True)
            ]
        names = pa.list_(pa.string())
        before_lacks, after_lacks = pa.array(before_absent, names), pa.array(after_absent, names)
        return Images(olds, before_lacks), Images(news, after_lacks, untold), unfit

    def _take_untold(self, columns: list[list[Any]]) -> list[tuple[int, Column]]:
        """Which values are untold; they are absent from now on."""
        found: list[tuple[int, Column]] = []
        for column, values in zip(self._columns, columns, strict=True):
            rows = [row for row, value in enumerate(values) if value is UNTOLD]
            found += ((row, column) for row in rows)
            for row in rows:
                values[row] = ABSENT
        return found

    def _by_column(self, images: Sequence[Any], is_there: Sequence[bool]) -> list[list[Any]]:
        if not any(is_there):
            return [[ABSENT] * len(images) for _ in self._columns]
        return self._rows.by_column(images)

    def _absent(self, columns: Sequence[list[Any]], is_there: Sequence[bool]) -> list[list[str]]:
        found: list[list[str]] = [[] for _ in is_there]
        if not any(is_there):
            return found
        for column, values in zip(self._columns, columns, strict=True):
            if ABSENT in values:
                lacks = map(is_, values, repeat(ABSENT))
                for at in compress(range(len(values)), lacks):
                    if is_there[at]:
                        found[at].append(column.stored_as)
                        if beside := self._beside.get(column.name):
                            found[at].append(beside.stored_as)
        return found

    def _arrays(self, columns: Sequence[list[Any]]) -> list[pa.Array]:
        """The columns in the types in which they are read."""
        arrays = []
        for at, (column, values) in enumerate(zip(self._columns, columns, strict=True)):
            given = (
                [None if one is ABSENT else one for one in values] if ABSENT in values else values
            )
            try:
                arrays.append(self._rows.convert(at, given))
            except (RefusedValueError, pa.ArrowException, OverflowError) as error:
                raise RefusedValueError(f"{column.name}: {_reason(error)}") from error
        return arrays

    def _rows_of(
        self, arrays: Sequence[pa.Array] | None, is_there: Sequence[bool]
    ) -> tuple[pa.StructArray, int]:
        """Structs of the columns, NULL where there is no image; and how many of their values are
        NULL because no form holds them."""
        fields = [pa.field(one.stored_as, arrow_type(one)) for one in self._all]
        if arrays is None:
            return pa.nulls(len(is_there), pa.struct(fields)), 0
        unfit = 0
        known: dict[str, pa.Array] = {}
        for column, array in zip(self._columns, arrays, strict=True):
            known[column.name] = array
            if as_read(column) != column:
                known[column.name], lost = in_form_or_null(array, column)
                unfit += lost
            if beside := self._beside.get(column.name):
                known[beside.name], _ = in_form_or_null(array, beside)
        whole = [known.get(one.name, pa.nulls(len(is_there), arrow_type(one))) for one in self._all]
        if self._masks:
            batch = pa.RecordBatch.from_arrays(whole, names=[one.name for one in self._all])
            whole = masked(batch, self._masks).columns
        absent = pc.invert(pa.array(is_there, pa.bool_()))
        return pa.StructArray.from_arrays(whole, fields=fields, mask=absent), unfit

    def _located(
        self,
        before: Sequence[Any],
        after: Sequence[Any],
        error: Exception,
    ) -> DecodeError:
        """The error of the first row that has one."""
        at: int | None = None
        for at in range(len(before)):
            try:
                self._images(before[at : at + 1], after[at : at + 1])
            except _NOT_UNDERSTOOD as found:
                error = found
                break
        return DecodeError(
            f"a value that {self._writer} wrote is not understood: {_reason(error)}",
            hint="Name the column under columns_exclude of the table if you can do without it.",
            table=self._table,
            row=at,
        )


def _replaced(images: Images, own: Images, places: npt.NDArray[np.int64]) -> Images:
    """Images in the order of their rows, some of them others."""
    taken = pa.array(places)
    return Images(
        pa.concat_arrays([images.rows, own.rows]).take(taken),
        pa.concat_arrays([images.absent, own.absent]).take(taken),
        own.untold,
    )


def _reason(error: Exception) -> str:
    """What went wrong, without a value: the texts of msgspec and of refusals name types and
    columns only."""
    if isinstance(error, (RefusedValueError, msgspec.MsgspecError)):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return "text is not UTF-8"
    return "a value does not fit the column's type"
