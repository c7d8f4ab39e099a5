"""Made mirrors and windows for what merges them: every relation of their positions, keys of every kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.stage.layout import chunk_ordinal, mirror_schema
from tests.stage.landed import Row, number, varchar

COVERED, READ = 20, 60
ABSENT = ("V", "W")
_ROWS = 60


def _column(name: str, kind: str, **more: Any) -> Column:
    facts = {
        "length": 8,
        "char_length": 0,
        "precision": None,
        "scale": None,
        "nullable": True,
        **more,
    }
    return Column(name=name, data_type=kind, **facts)


KINDS: dict[str, tuple[tuple[Column, Callable[[int], Any]], ...]] = {
    "number": ((number("K", 9, 0), lambda at: at),),
    "decimal": ((number("K", 30, 4), lambda at: Decimal(at) / 10000),),
    "double": ((_column("K", "BINARY_DOUBLE"), lambda at: (math.nan, 0.0)[at] if at < 2 else at / 7),),
    "float": ((_column("K", "BINARY_FLOAT", length=4), lambda at: (math.nan, 0.0)[at] if at < 2 else float(at)),),
    "char": ((_column("K", "CHAR", length=6, char_length=6), lambda at: f"k{at}".ljust(6)),),
    "raw": ((_column("K", "RAW"), lambda at: bytes([at])),),
    "timestamp": ((_column("K", "TIMESTAMP(6)", length=11), lambda at: datetime(2026, 1, 1) + timedelta(microseconds=at)),),
    "composite": (
        (varchar("K"), lambda at: f"k{at % 4}"),
        (number("L", 9, 0), lambda at: at // 4),
        (_column("M", "DATE", length=7), lambda at: datetime(2026, 1, 1 + at % 2)),
    ),
}  # fmt: skip
"""The key's columns, and the value of each for a number."""


@dataclass(frozen=True)
class Case:
    """A mirror, what a window sends it, and up to where chunks read it."""

    schema: TableSchema
    mirror: list[Row]
    source: list[Row]
    absent: tuple[str, ...]
    read_scn: int | None

    def with_one(self, marks: Row, *, is_there: bool, read_scn: int | None = None) -> Case:
        """With one more row in the window, whose key the mirror has or lacks, and which is newer than all."""
        key = dict.fromkeys(self.schema.key, 10**6)
        plain = {"V": "v", "W": "w", "_cdc_commit_scn": 90, "_cdc_ordinal": 1}
        unmarked = {"_cdc_kind": "row", "_cdc_missing": [], "_cdc_lost": False, "_cdc_new": False, "_cdc_new_scn": 90}  # fmt: skip
        mirror = [*self.mirror, {**key, **plain, "_cdc_commit_scn": 1}] if is_there else self.mirror
        source = [*self.source, {**key, **plain, **unmarked, **marks}]
        return replace(self, mirror=mirror, source=source, read_scn=read_scn)

    def without_last(self) -> Case:
        """Without the last row of the window."""
        return replace(self, source=self.source[:-1])


def keyed(kind: str) -> TableSchema:
    """A table with such a key and the columns V and W."""
    columns = [column for column, _ in KINDS[kind]]
    names = tuple(column.name for column in columns)
    return TableSchema(TableId("SHOP", "T"), Scn(1), (*columns, varchar("V"), varchar("W")), names)


def random_case(dice: Random, kind: str) -> Case:
    """A mirror of about sixty rows and a window of as many keys that MERGE takes without an error."""
    schema = keyed(kind)

    def key(at: int) -> Row:
        return {column.name: value(at) for column, value in KINDS[kind]}

    nothing = dict.fromkeys(schema.key)
    there = dice.sample(range(_ROWS * 2), _ROWS)
    position = {at: (scn := dice.choice((10, 20, 50)), dice.choice(_ordinals(scn))) for at in there}
    mirror = [
        {**key(at), "V": f"v{at}", "W": None if at % 3 else "w", "_cdc_commit_scn": scn, "_cdc_ordinal": ordinal}
        for at, (scn, ordinal) in position.items()
    ]  # fmt: skip
    mirror.append({**nothing, "V": "none", "W": None, "_cdc_commit_scn": 1, "_cdc_ordinal": 0})
    source = []
    for at in dice.sample(range(_ROWS * 2), _ROWS):
        scn, ordinal = dice.choice((10, 20, 21, 50, 70)), dice.randrange(3)
        is_row = dice.random() < 0.7
        is_older = (scn, ordinal) <= position.get(at, (0, 0))
        is_seen = scn > 20 and position.get(at) == (20, chunk_ordinal(20, 21))
        missing = dice.sample(ABSENT, dice.randrange(3)) if is_row and at in position else []
        source.append(
            {
                **key(at), "V": None if "V" in missing else "new", "W": None if "W" in missing else f"w{at}",
                "_cdc_commit_scn": scn, "_cdc_ordinal": ordinal, "_cdc_kind": "row" if is_row else "del",
                "_cdc_missing": missing,
                "_cdc_lost": not missing and dice.random() < 0.2,
                "_cdc_new": is_row and (at not in position or is_older or is_seen) and dice.random() < 0.5,
                "_cdc_new_scn": 21 if is_seen else scn,
            }
        )  # fmt: skip
    dice.shuffle(mirror)
    return Case(schema, mirror, source, ABSENT, None)


def _ordinals(scn: int) -> tuple[int, ...]:
    """Of rows that changes brought, and chunks: between two watermarks, and as of the SCN."""
    return 0, 1, 2, chunk_ordinal(scn, scn + 1), chunk_ordinal(scn, None)


def columns_of(case: Case) -> list[str]:
    """The mirror's columns."""
    return list(mirror_schema(case.schema).names)
