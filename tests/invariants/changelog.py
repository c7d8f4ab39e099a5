"""Does every row of a change log walk a legal path, to exactly the mirror, and is the log complete? Judged by a way of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.invariants.load import KEYS, WITH_LOB, Committed

Image = dict[str, Any]
DROPPED = "__dropped"
"""Ends the mirror's name of a column that was dropped, and whose name another one has since."""

Names = Sequence[tuple[str | None, str]]
"""What became of the names of columns: old and new ones, None for one that was added under the name
of another, in the order of the DDL."""
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Stream:
    """A time in which a table was captured: commits above ``start`` (the SCN of its snapshot) up to ``end`` (None: to this day)."""

    start: int
    end: int | None = None


def rows_of(path: Path) -> list[dict[str, Any]]:
    """All rows of a Delta table, through delta-rs's own query engine."""
    builder = QueryBuilder().register("t", DeltaTable(str(path)))
    rows: list[dict[str, Any]] = pa.table(builder.execute("SELECT * FROM t").read_all()).to_pylist()
    return rows


def check_table(
    table: str,
    changelog: Sequence[dict[str, Any]],
    mirror: Sequence[Image],
    committed: Sequence[Committed],
    streams: Sequence[Stream],
    position: int,
    dropped: Sequence[tuple[int, str]] = (),
    *,
    renamed: Names = (),
    loses_columns: bool = False,
    emptied: Sequence[Committed] = (),
) -> list[str]:
    """Every illegal step and every wrong count, as text without values.

    Args:
        table: The table's name in Oracle. changelog: Its change log's rows, those of chunks
            included. mirror: Its mirror's rows. committed: What the load committed. streams: When
            the table was captured. position: The SCN up to which it has windows. dropped: Columns
            that went, with an SCN behind which nothing has them. renamed: Columns that were called
            otherwise, and names that others got. A change log has each under its first name.
            loses_columns: Does the mirror lose such columns? emptied: Rows that DDL took from the
            table: one DDL, one row of the redo, however many they are.
    """
    ordered = sorted(changelog, key=lambda row: (row["_cdc_commit_scn"], row["_cdc_ordinal"]))
    fields = {name for row in ordered for image in ("before", "after") for name in row[image] or ()}
    names = present_names(fields, renamed)
    ordered = [with_present_names(row, names) for row in ordered]
    walk = Walk(table, streams, dropped)
    for row in ordered:
        walk.step(row)
    walk.end_transaction()
    found = walk.found
    gone = {name for _, name in dropped} | {one for one in names.values() if one.endswith(DROPPED)}
    lost = gone if loses_columns else set[str]()
    if without(walk.image(), lost) != without(walk.image_of(table, mirror), lost):
        found.append(f"{table}: the change log does not lead to the mirror")
    changes = [row for row in ordered if row["_cdc_op"] != "t" and not row["_cdc_snapshot"]]
    times = Counter(row["_cdc_ordinal"] for row in changes if not _is_emptied(row, emptied))
    if any(number > 1 for number in times.values()):
        found.append(f"{table}: a redo row is in the change log twice")
    return found + complete(table, changes, committed, streams, position)


def _is_emptied(row: Mapping[str, Any], emptied: Sequence[Committed]) -> bool:
    """Did the row go by DDL?"""
    scn = row["_cdc_commit_scn"]
    return row["_cdc_op"] == "d" and any(one.before < scn <= one.after for one in emptied)


def present_names(fields: set[str], renamed: Names) -> dict[str, str]:
    """What the columns are called now whose values are in these fields of a change log."""
    names = {field: field for field in fields}

    def holder(name: str) -> str | None:
        return next((field for field, now in names.items() if now == name), None)

    for old, new in renamed:
        if old is None:
            number = 2
            while f"{new}__{number}" in names and names[f"{new}__{number}"] != f"{new}__{number}":
                number += 1
            field = f"{new}__{number}"
        else:
            field = holder(old) or old
        if (dropped := holder(new)) not in (None, field):
            names[str(dropped)] = f"{dropped}{DROPPED}"
        names[field] = new
    return {field: name for field, name in names.items() if field in fields}


def with_present_names(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A row of a change log in which columns have the names that they have now."""
    changed = dict(row)
    for image in ("before", "after"):
        values = changed[image]
        changed[image] = values and {names.get(field, field): one for field, one in values.items()}
    for lists in ("_cdc_absent", "_cdc_before_absent"):
        changed[lists] = [names.get(name, name) for name in changed.get(lists) or ()]
    return changed


def without(image: Mapping[Key, Image], names: set[str]) -> dict[Key, Image]:
    """An image without some columns."""
    return {
        key: {name: value for name, value in row.items() if name not in names}
        for key, row in image.items()
    }


def complete(
    table: str,
    rows: Sequence[Mapping[str, Any]],
    committed: Sequence[Committed],
    streams: Sequence[Stream],
    position: int,
) -> list[str]:
    """Has the change log exactly what the load committed while the table was captured, transaction by transaction?

    A COMMIT lies between the two SCNs that the load read around it, so each change belongs to one transaction of the record.
    One whose COMMIT may lie on either side of a stream's border is there whole or not at all. Where a table has
    a LOB, an insert may come as an insert and an update, and an update as several, so there only too few updates are wrong.
    """
    found: list[str] = []
    left = Counter((row["_cdc_commit_scn"], row["_cdc_op"]) for row in rows)
    scns = sorted({scn for scn, _ in left})
    at = 0
    for one in sorted(committed, key=lambda one: one.before):
        have: Counter[str] = Counter()
        while at < len(scns) and scns[at] <= one.before:
            at += 1
        while at < len(scns) and scns[at] <= one.after:
            for op in "cud":
                have[op] += left.pop((scns[at], op), 0)
            at += 1
        wanted = {op: one.changes[table, op] for op in "cud"}
        if not _is_expected(one, streams, position, is_there=bool(have.total())):
            wanted = dict.fromkeys("cud", 0)
        for op, times in wanted.items():
            more_is_fine = op == "u" and table in WITH_LOB and (times or wanted["c"])
            least = times - one.unseen if op == "d" else times
            if have[op] < least or (have[op] > times and not more_is_fine):
                found.append(
                    f"{table}: {have[op]} changes of kind {op} between SCN {one.before} and {one.after}, "
                    f"the load committed {times}"
                )
    if left.total():
        found.append(f"{table}: {left.total()} changes that the load did not commit")
    return found


def _is_expected(
    one: Committed, streams: Sequence[Stream], position: int, *, is_there: bool
) -> bool:
    """Must the change log have the transaction? Where the record leaves it open, it may have it or not."""
    ends = [(each.start, position if each.end is None else each.end) for each in streams]
    if all(one.after <= start or one.before >= end for start, end in ends):
        return False
    return is_there or any(one.before >= start and one.after <= end for start, end in ends)


ROW_KEYS = {**KEYS, "BARE": ("_cdc_row_id",)}
"""By which columns the change log names rows."""


class Walk:
    """The rows of one table as its change log tells of them. Within a transaction two rows may share a key for a moment."""

    def __init__(
        self, table: str, streams: Sequence[Stream], dropped: Sequence[tuple[int, str]] = ()
    ) -> None:
        self.found: list[str] = []
        self._table = table
        self._gaps = [(one.end or 0, after.start) for one, after in pairwise(streams)]
        self._state: dict[Key, list[Image]] = {}
        self._touched: set[Key] = set()
        self._dropped = dropped
        self._scn = 0

    def step(self, row: Mapping[str, Any]) -> None:
        """Take the next row of the log."""
        scn = row["_cdc_commit_scn"]
        if scn != self._scn:
            self.end_transaction()
            if any(self._scn <= end and scn >= start for end, start in self._gaps):
                self._state.clear()  # what happened meanwhile, nobody saw
            self._scn = scn
        where = f"{self._table} at {scn}/{row['_cdc_ordinal']}"
        if row["_cdc_op"] == "t":
            self._state.clear()
            return
        before, after = row["before"], row["after"]
        last: Image | None = None
        if row["_cdc_op"] == "d" and row["_cdc_snapshot"]:
            self._state[
                self._key(before)
            ] = []  # gone by a snapshot, whether the log knew it or not
        elif row["_cdc_op"] in "ud":
            last = self._leave(where, row, before)
        if row["_cdc_op"] == "r":
            self._state[self._key(after)] = [dict(after)]
        elif after is not None and row["_cdc_op"] != "d":
            kept = {name: (last or {}).get(name) for name in row["_cdc_absent"] or ()}
            self._state.setdefault(self._key(after), []).append({**after, **kept})
            self._touched.add(self._key(after))

    def _leave(self, where: str, row: Mapping[str, Any], before: Image) -> Image:
        """The image that an update or delete finds, taken out."""
        key = self._key(before)
        images = self._state.setdefault(key, [dict(before)])
        if not images:
            self.found.append(f"{where}: a change of a row that was deleted")
            return dict(before)
        silent = set(row.get("_cdc_before_absent") or ())
        silent |= {name for scn, name in self._dropped if row["_cdc_commit_scn"] > scn}
        if row["_cdc_commit_scn"] > min((scn for scn, _ in self._dropped), default=math.inf):
            silent |= {name for name in before if name.endswith(DROPPED)}
        matching = [image for image in images if self._is_same(before, image, silent)]
        if not matching:
            self.found.append(f"{where}: the before-image is not the last after-image")
        taken = (matching or images)[0]
        images.remove(taken)
        return taken

    def _is_same(self, before: Image, image: Image, silent: set[str]) -> bool:
        """LOBs are never in a before-image."""
        for name, value in before.items():
            if name in silent or (name == "BODY" and (value is None or image.get(name) is None)):
                continue
            if value != image.get(name):
                return False
        return True

    def end_transaction(self) -> None:
        """What the transaction touched has one row per key again."""
        if any(len(self._state[key]) > 1 for key in self._touched):
            self.found.append(f"{self._table} at {self._scn}: an insert of a row that is there")
        self._touched.clear()

    def image(self) -> dict[Key, Image]:
        """The rows to which the log leads."""
        return self.image_of(
            self._table, [image for images in self._state.values() for image in images]
        )

    @classmethod
    def image_of(cls, table: str, rows: Sequence[Image]) -> dict[Key, Image]:
        """Rows by key, without what is NULL or hidden."""
        return {
            tuple(row[name] for name in ROW_KEYS[table]): {
                name: value
                for name, value in row.items()
                if value is not None and not name.startswith("_cdc_")
            }
            for row in rows
        }

    def _key(self, image: Image) -> Key:
        return tuple(image[name] for name in ROW_KEYS[self._table])
