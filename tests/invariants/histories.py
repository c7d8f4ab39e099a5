"""Has a history the states that the change log leads through? Judged by the walk of the judge of change logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from cdc_core.config import LakeConfig
from cdc_core.errors import SchemaMismatchError
from cdc_core.lake.history.table import HistoryTable
from cdc_core.lake.tables import GENERATION_PROPERTY
from cdc_core.model.identifiers import TableId
from tests.invariants.changelog import (
    ROW_KEYS,
    Image,
    Key,
    Names,
    Stream,
    Walk,
    present_names,
    rows_of,
    with_present_names,
)

State = tuple[Key, str, int, int | None]
"""Key, values as text, from, to."""


def check_history(
    table: str,
    name: TableId,
    lake: Path,
    changelog: Path,
    streams: Sequence[Stream],
    renamed: Names = (),
) -> tuple[list[str], Counter[str]]:
    """Derive the history of a table of the source ``proof`` and hold it against a walk; every difference as text without
    values, and how many states were compared. Both are looked at from the first snapshot on: what was before is known to
    neither as a whole."""
    generation = DeltaTable(str(changelog)).metadata().configuration.get(GENERATION_PROPERTY, "1")
    history = HistoryTable(LakeConfig(path=str(lake)), "proof", name, int(generation))
    try:
        history.follow(anew=True)
    except SchemaMismatchError:  # such a table has none
        return [], Counter()
    rows = rows_of(changelog)
    fields = {one for row in rows for image in ("before", "after") for one in row[image] or ()}
    names = present_names(fields, renamed)
    ordered = sorted(
        (with_present_names(row, names) for row in rows),
        key=lambda row: (row["_cdc_commit_scn"], row["_cdc_ordinal"]),
    )
    read = [row for row in ordered if row["_cdc_op"] == "r"]
    since = max(row["_cdc_commit_scn"] for row in read if row["_cdc_snapshot"].split("/")[0] == read[0]["_cdc_snapshot"].split("/")[0])  # fmt: skip
    expected = set(_clipped(_walked(table, ordered, streams), since))
    states = list(_clipped(_told(table, rows_of(Path(history.path))), since))
    found = [
        f"{table}: a state that the change log does not lead through" for _ in {*states} - expected
    ]
    found += [f"{table}: a state is missing" for _ in expected - {*states}]
    if len(states) != len(set(states)):
        found.append(f"{table}: a state is there twice")
    return found, Counter("current" if end is None else "ended" for *_, end in states)


def _walked(
    table: str, ordered: Sequence[Mapping[str, Any]], streams: Sequence[Stream]
) -> list[State]:
    walk, live, found = Walk(table, streams), dict[Key, tuple[str, int]](), list[State]()

    def look(scn: int) -> None:
        image = {key: _text(row) for key, row in walk.image().items()}
        for key in [one for one in live if image.get(one) != live[one][0]]:
            text, since = live.pop(key)
            found.append((key, text, since, scn))
        live.update({key: (text, scn) for key, text in image.items() if key not in live})

    for at, row in enumerate(ordered):
        walk.step(row)
        scn = row["_cdc_commit_scn"]
        if at + 1 == len(ordered) or ordered[at + 1]["_cdc_commit_scn"] != scn:
            walk.end_transaction()
            look(scn)
    return [*found, *((key, text, since, None) for key, (text, since) in live.items())]


def _told(table: str, rows: Sequence[Image]) -> list[State]:
    return [
        (
            tuple(row[name] for name in ROW_KEYS[table]),
            _text(row),
            row["_cdc_valid_from_scn"],
            row["_cdc_valid_to_scn"],
        )
        for row in rows
    ]


def _text(row: Image) -> str:
    values = {k: v for k, v in row.items() if v is not None and not k.startswith("_cdc_")}
    return repr(sorted(values.items()))


def _clipped(states: Sequence[State], since: int) -> list[State]:
    """What is left of states from an SCN on."""
    return [
        (key, text, max(start, since), end)
        for key, text, start, end in states
        if end is None or end > since
    ]
