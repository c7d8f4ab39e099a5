"""How is a small Delta table kept that delta-rs alone reads and writes?

Each commit asks the fence first, and carries user metadata and a transaction identifier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cdc_core.delta.appending import create_table
from cdc_core.delta.errors import at_work, committing
from cdc_core.delta.history import read_log

Fence = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallTable:
    """A small Delta table; empty where there is none yet.

    Attributes:
        path: Its folder.
        name: What it is called in errors.
        schema: Its columns.
        indexed: Those of which its files have statistics.
        properties: What else its properties say.
        facts: Where it is, for errors.
        fence: Called right before each commit.
    """

    path: str
    name: str
    schema: pa.Schema
    indexed: Sequence[str]
    properties: Mapping[str, str]
    facts: dict[str, object]
    fence: Fence

    @property
    def doing(self) -> str:
        """What is under way where it is written."""
        return f"writing to the {self.name}"

    def read(self, columns: Sequence[str], *filters: tuple[str, str, object]) -> pa.Table:
        """Some columns of the rows that fulfil all ``filters`` of delta-rs."""
        if read_log(self.path) is None:
            return self.schema.empty_table().select(columns)
        from deltalake import DeltaTable

        with at_work(f"reading the {self.name}", self.facts):
            found = DeltaTable(self.path).to_pyarrow_table(
                columns=list(columns), filters=list(filters) or None
            )
        return pa.table(found).cast(pa.schema([self.schema.field(name) for name in columns]))

    def create(self) -> None:
        """Create it without rows."""
        properties = {
            "delta.enableDeletionVectors": "false",
            "delta.dataSkippingStatsColumns": ",".join(self.indexed),
            **self.properties,
        }
        self.fence()
        create_table(self.path, self.schema, properties, doing=self.doing, facts=self.facts)

    @contextmanager
    def committing(self, metadata: str, txn: tuple[str, int]) -> Iterator[Any]:
        """Commit by delta-rs in the block, with these properties of the commit. Errors are those of
        :func:`cdc_core.delta.errors.committing`."""
        from deltalake import CommitProperties, Transaction

        properties = CommitProperties(
            custom_metadata={"userMetadata": metadata},
            max_commit_retries=0,
            app_transactions=[Transaction(*txn)],
        )
        self.fence()
        with committing(self.path, self.doing, self.facts):
            yield properties

    def maintain(self, vacuum_hours: int | None, metadata: str, txn: tuple[str, int]) -> None:
        """Put small files together, and remove files that no version of so many hours has (None:
        keep them). No row changes."""
        from deltalake import DeltaTable

        with self.committing(metadata, txn) as properties:
            DeltaTable(self.path).optimize.compact(commit_properties=properties)
        if vacuum_hours is not None:
            vacuum(self.path, vacuum_hours, doing=self.doing, facts=self.facts, fence=self.fence)


def vacuum(path: str, hours: int, *, doing: str, facts: Mapping[str, object], fence: Fence) -> None:
    """Remove files that no version of a Delta table of so many hours has, by delta-rs."""
    from deltalake import DeltaTable

    fence()
    with committing(path, doing, facts):
        DeltaTable(path).vacuum(hours, dry_run=False, enforce_retention_duration=False)
