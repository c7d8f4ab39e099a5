"""Does every row of a change log walk a legal path? Read with delta-rs, not with the code under test."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

KEYS = {"accounts": ("ID", "BRANCH"), "notes": ("NOTE_ID",), "events": ("EVENT_ID",)}


def rows_of(path: Path) -> list[dict[str, Any]]:
    """All rows of a Delta table, through delta-rs's own query engine."""
    builder = QueryBuilder().register("t", DeltaTable(str(path)))
    rows: list[dict[str, Any]] = pa.table(builder.execute("SELECT * FROM t").read_all()).to_pylist()
    return rows


def check_changelog(lake: Path, committed: Counter[tuple[str, str]]) -> list[str]:
    """Every illegal step and every wrong count, as text without values.

    Args:
        lake: The source's folder, with ``changelog`` and ``mirror`` below it.
        committed: Changes that the load committed, by table and operation. Those before the snapshot are not in the change
            log, those of the long transaction not in the record.
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
        if table != "events":
            found += [
                f"{table}: {have[op]} changes of kind {op}, the load committed {committed[table.upper(), op]}"
                for op in "cd"
                if have[op] > committed[table.upper(), op]
            ]
    return found


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
