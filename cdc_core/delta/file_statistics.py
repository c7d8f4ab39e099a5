"""Which statistics does Delta's log get of a Parquet file? Those that the file has of its own row
groups."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TEXT_MAX = 32
"""Longer texts get no minimum and maximum: Delta's statistics are for skipping files."""


def statistics_of(file: pq.FileMetaData, schema: pa.Schema, columns: Sequence[str]) -> str:
    """Rows of a file, and minimum, maximum and number of NULLs of some of its top-level columns, as
    the JSON of Delta's ``stats``. ``schema`` is the file's."""
    found = {}
    place = 0
    for one in schema:
        if one.name in columns and not pa.types.is_nested(one.type):
            found[one.name] = _column(file, place, one.type)
        place += _leaves(one.type)
    ordered = [(name, found[name]) for name in columns if name in found]
    return json.dumps(
        {
            "numRecords": file.num_rows,
            "minValues": {name: one.least for name, one in ordered if one.least is not None},
            "maxValues": {name: one.most for name, one in ordered if one.most is not None},
            "nullCount": {name: one.nulls for name, one in ordered if one.nulls is not None},
        }
    )


@dataclass(slots=True)
class _Bounds:
    """``bounds`` are the minima and maxima of row groups; None once one is not to be given.
    ``nulls`` is None once a row group does not say it: Spark leaves out all statistics of long
    texts."""

    nulls: int | None = 0
    bounds: list[Any] | None = field(default_factory=list)

    @property
    def least(self) -> Any:
        return min(self.bounds) if self.bounds else None

    @property
    def most(self) -> Any:
        return max(self.bounds) if self.bounds else None


def _column(file: pq.FileMetaData, place: int, kind: pa.DataType) -> _Bounds:
    found = _Bounds()
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind)):
        found.bounds = None
    for number in range(file.num_row_groups):
        group = file.row_group(number)
        known = group.column(place).statistics
        if known is None or known.null_count is None:
            return _Bounds(None, None)
        found.nulls = (found.nulls or 0) + known.null_count
        if found.bounds is None or known.null_count == group.num_rows:
            continue
        bounds = [known.min, known.max] if known.has_min_max else None
        if bounds is None or _are_long(bounds):
            found.bounds = None
        else:
            found.bounds += bounds
    return found


def _are_long(bounds: Sequence[Any]) -> bool:
    return any(isinstance(one, str) and len(one) > TEXT_MAX for one in bounds)


def _leaves(kind: pa.DataType) -> int:
    """The columns of a file that one of a schema has."""
    if not pa.types.is_nested(kind):
        return 1
    return sum(_leaves(kind.field(at).type) for at in range(kind.num_fields))
