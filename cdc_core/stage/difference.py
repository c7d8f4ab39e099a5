"""Which rows does the mirror have otherwise than what was derived for their keys? Found by
columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.runtime.arrow import whole
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import Flags, LightChanges, Rows, key_codes, naming
from cdc_core.stage.layout import COMMIT_SCN, mirror_schema


def touching(changes: LightChanges, others: LightChanges) -> LightChanges:
    """Of ``changes`` those that touch a key that one of ``others`` touches; only these keys are
    their part's own."""
    rows, more = changes.table.num_rows, others.table.num_rows
    columns = zip(changes.before, changes.after, others.before, others.after, strict=True)
    codes = key_codes([pa.concat_arrays(images) for images in columns])
    before, after = codes[:rows], codes[rows : 2 * rows]
    of_others = np.concatenate([others.own_before, others.own_after])
    wanted = np.unique(codes[2 * rows : 2 * (rows + more)][of_others])
    return changes.of_keys(
        changes.own_before & np.isin(before, wanted), changes.own_after & np.isin(after, wanted)
    )


def rows_of_keys(parts: Iterable[pa.Table], keys: pa.Table) -> pa.Table:
    """The rows of the parts whose key is among ``keys``, which has the key's columns."""
    return pa.concat_tables([part.filter(are_among(part, keys)) for part in parts])


def rows_of_other_keys(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """The rows whose key is not among ``keys``, which has the key's columns."""
    return rows.filter(~are_among(rows, keys))


def are_among(rows: pa.Table, keys: pa.Table) -> Flags:
    """Which rows have one of these keys, by the columns of ``keys``?"""
    columns = [
        pa.concat_arrays([whole(keys[name]), whole(rows[name])]) for name in keys.column_names
    ]
    codes = key_codes(columns)
    found: Flags = np.isin(codes[len(keys) :], codes[: len(keys)])
    return found


def touched_keys(changes: LightChanges, schema: TableSchema) -> pa.Table:
    """The keys that changes touch, old ones and new ones."""
    is_old, is_new = pa.array(changes.own_before), pa.array(changes.own_after)
    columns = [
        pa.concat_arrays([old.filter(is_old), new.filter(is_new)])
        for old, new in zip(changes.before, changes.after, strict=True)
    ]
    return pa.table(dict(zip(schema.key, columns, strict=True)))


def different_rows(
    derived: pa.Table, mirror: pa.Table, schema: TableSchema, *, covered_scn: int
) -> pa.Table | None:
    """What is to be merged so that the mirror has the derived rows; None if it has a key twice.

    Args:
        derived: One row per key, in the columns of ``stage.reduction.merge_source``.
        mirror: The mirror's rows of these keys, in those of ``stage.layout.mirror_schema``.
        schema: The table.
        covered_scn: Keys that are not in the mirror are known to be gone as of this SCN.
    """
    columns = [pa.concat_arrays([whole(mirror[key]), whole(derived[key])]) for key in schema.key]
    codes = key_codes(columns)
    held, own = codes[: len(mirror)], codes[len(mirror) :]
    if len(np.unique(held)) < len(held):
        return None
    place = np.full(int(codes.max(initial=-1)) + 1, -1)
    place[held] = np.arange(len(held))
    at = place[own]
    is_there = at >= 0
    is_row = pc.equal(derived["_cdc_kind"], "row").to_numpy()
    comes = derived[COMMIT_SCN].to_numpy() > covered_scn
    is_other = ~_are_equal(derived, mirror, at, schema)
    different = np.where(is_row, np.where(is_there, is_other, comes), is_there)
    return derived.filter(different)


def _are_equal(derived: pa.Table, mirror: pa.Table, at: Rows, schema: TableSchema) -> Flags:
    """Has the mirror's row at this place (-1: none) what was derived, where it was? NULL equals
    NULL, and NaN equals NaN."""
    places = pa.array(at, mask=at < 0)
    equal = np.ones(len(derived), dtype=np.bool_)
    missing = whole(derived["_cdc_missing"])
    for field in mirror_schema(schema):
        if field.name in schema.key:
            continue
        own = whole(derived[field.name])
        same = are_same(own, whole(mirror[field.name]).take(places))
        equal &= same | naming(missing, field.name)
    return equal


def are_same(one: pa.Array, other: pa.Array) -> Flags:
    """Value by value: are they equal? NULL equals NULL, and NaN equals NaN."""
    same = pc.fill_null(pc.equal(one, other), False)
    same = pc.or_(same, pc.and_(pc.is_null(one), pc.is_null(other)))
    if pa.types.is_floating(one.type):
        nan = pc.and_(pc.is_nan(one), pc.is_nan(other))
        same = pc.or_(same, pc.fill_null(nan, False))
    flags: Flags = same.to_numpy(zero_copy_only=False).copy()
    return flags
