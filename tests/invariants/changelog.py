"""Does every row of a change log walk a legal path? Read with delta-rs, not with the code under test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.invariants.load import Committed

KEYS = {"accounts": ("ID", "BRANCH"), "notes": ("NOTE_ID",), "events": ("EVENT_ID",)}
WITH_LOB = frozenset({"notes"})


def rows_of(path: Path) -> list[dict[str, Any]]:
    """All rows of a Delta table, through delta-rs's own query engine."""
    builder = QueryBuilder().register("t", DeltaTable(str(path)))
    rows: list[dict[str, Any]] = pa.table(builder.execute("SELECT * FROM t").read_all()).to_pylist()
    return rows


def check_changelog(lake: Path, committed: Sequence[Committed], position: int) -> list[str]:
    """Every illegal step and every wrong count, as text without values.

    Args:
        lake: The source's folder, with ``changelog`` and ``mirror`` below it.
        committed: What the load committed.
        position: The SCN up to which windows were applied.
    """
    found: list[str] = []
    for path in sorted((lake / "changelog").iterdir()):
        table = path.name.rpartition(".")[2]
        everything = rows_of(path)
        rows = [row for row in everything if row["_cdc_op"] != "r"]
        rows.sort(key=lambda row: (row["_cdc_commit_scn"], row["_cdc_ordinal"]))
        found += walk(table, rows)
        if len({row["_cdc_ordinal"] for row in rows}) != len(rows):
            found.append(f"{table}: a redo row is in the change log twice")
        have = Counter(row["_cdc_op"] for row in everything)
        left = len(rows_of(lake / "mirror" / path.name))
        if have["r"] + have["c"] - have["d"] != left:
            found.append(
                f"{table}: {have['r']} read + {have['c']} inserted - {have['d']} deleted is not {left}"
            )
        start = min(row["_cdc_commit_scn"] for row in everything if row["_cdc_op"] == "r")
        found += complete(table, rows, committed, start, position)
    return found


def complete(
    table: str,
    rows: Sequence[dict[str, Any]],
    committed: Sequence[Committed],
    start: int,
    position: int,
) -> list[str]:
    """Has the change log exactly what the load committed after the snapshot, transaction by transaction?

    A COMMIT lies between the two SCNs that the load read around it, so each change belongs to one transaction of the record.
    One whose COMMIT may lie on either side of the snapshot's SCN is there whole or not at all. Where a table has
    a LOB, an insert may come as an insert and an update, and an update as several, so there only too few updates are wrong.
    """
    found: list[str] = []
    left = Counter((row["_cdc_commit_scn"], row["_cdc_op"]) for row in rows)
    for one in committed:
        have: Counter[str] = Counter()
        for (scn, op), times in list(left.items()):
            if one.before < scn <= one.after:
                have[op] += times
                del left[scn, op]
        wanted = {op: one.changes[table.upper(), op] for op in "cud"}
        if not _is_expected(one, start, position, is_there=bool(have)):
            wanted = dict.fromkeys("cud", 0)
        for op, times in wanted.items():
            more_is_fine = op == "u" and table in WITH_LOB and (times or wanted["c"])
            if have[op] < times or (have[op] > times and not more_is_fine):
                found.append(
                    f"{table}: {have[op]} changes of kind {op} between SCN {one.before} and {one.after}, "
                    f"the load committed {times}"
                )
    if left:
        found.append(f"{table}: {left.total()} changes that the load did not commit")
    return found


def _is_expected(one: Committed, start: int, position: int, *, is_there: bool) -> bool:
    """Must the change log have the transaction? Where the record leaves it open, it may have it or not."""
    if one.after <= start or one.before >= position:
        return False
    return is_there or (one.before >= start and one.after <= position)


def walk(table: str, rows: list[dict[str, Any]]) -> list[str]:
    """Illegal steps of one table's changes in order: a second insert without delete, a change of a row that is gone, a
    before-image that is not the last after-image."""
    found: list[str] = []
    state: dict[tuple[Any, ...], dict[str, Any] | None] = {}
    for row in rows:
        where = f"{table} at {row['_cdc_commit_scn']}/{row['_cdc_ordinal']}"
        before, after = row["before"], row["after"]
        if row["_cdc_op"] in "ud":
            key = tuple(before[name] for name in KEYS[table])
            last = state.get(key, before)
            if last is None:
                found.append(f"{where}: a change of a row that was deleted")
            elif any(
                before[name] != last[name]
                for name in before
                if name not in _not_carried(before, last)
            ):
                found.append(f"{where}: the before-image is not the last after-image")
            state[key] = None
        if row["_cdc_op"] in "cu":
            key = tuple(after[name] for name in KEYS[table])
            if state.get(key) is not None:
                found.append(f"{where}: an insert of a row that is there")
            state[key] = after
    return found


def _not_carried(before: dict[str, Any], last: dict[str, Any]) -> set[str]:
    """LOBs are never in a before-image."""
    return {
        name for name in before if name == "BODY" and (before[name] is None or last[name] is None)
    }
