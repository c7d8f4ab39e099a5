"""What of the metadata store has a sensor shown in Dagster already?

A tick shows what was done outside of Dagster. It looks at the windows and chunks behind those that
were there and finished at the last such look, so that it costs as much after a year as on the first
day. The sensor's cursor keeps what this module returns; without a cursor everything is looked at
again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.steps.source_view import SourceView

_BUCKETS = 64


@dataclass(frozen=True, slots=True)
class Shown:
    """Windows up to an SCN, and the chunks of all tables as digests: one for each of 64 groups of
    tables."""

    above: int = 0
    chunks: tuple[int, ...] = (0,) * _BUCKETS

    @classmethod
    def of(cls, kept: object) -> Shown:
        """What :attr:`as_json` gave; nothing where the cursor has none."""
        if not isinstance(kept, dict):
            return cls()
        return cls(kept["above"], tuple(kept["chunks"]))

    @property
    def as_json(self) -> dict[str, object]:
        """For a cursor."""
        return {"above": self.above, "chunks": self.chunks}

    def tables_with_news(self, now: Shown, tables: Iterable[TableId]) -> list[TableId]:
        """The tables whose chunks may be others now."""
        return [one for one in tables if self.chunks[_bucket(one)] != now.chunks[_bucket(one)]]


def shown_now(records: SourceView) -> Shown:
    """What a look at everything would show."""
    return Shown(_finished_up_to(records), _digests(records))


def _finished_up_to(records: SourceView) -> Scn:
    """Windows that end at or below it are applied, and no table wants one of them any more."""
    ends = [one.needs_above for one in records.tables()]
    ends += [one.window.scn_high for one in records.windows(newest_first=True, limit=1)]
    unfinished = records.windows(states=("planned", "captured"), limit=1)
    ends += [one.window.scn_low for one in unfinished]
    return Scn(min(ends, default=0))


def _digests(records: SourceView) -> tuple[int, ...]:
    found = [0] * _BUCKETS
    for chunk in records.chunks():
        text = f"{chunk.snapshot_id}:{chunk.number}:{chunk.state}"
        found[_bucket(chunk.table)] = _added(found[_bucket(chunk.table)], chunk.table, text)
    return tuple(found)


def _added(digest: int, table: TableId, text: str) -> int:
    return zlib.crc32(f"{table}:{text}".encode(), digest)


def _bucket(table: TableId) -> int:
    return zlib.crc32(str(table).encode()) % _BUCKETS
