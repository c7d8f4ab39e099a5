"""What does a landed window or chunk say of itself?

A manifest is the point at which a window or chunk has landed, and enough to rebuild the metadata
store: it names every file with its SHA-256, rows and bytes. It never holds row values or secrets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from cdc_core.errors import ConfigError, LandingDamagedError
from cdc_core.landing.damage import restore_hint
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.data_objects import DataObjects
from cdc_core.model.identifiers import TableId
from cdc_core.model.json_form import as_json, from_json
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.model.redo_address import ThreadPosition
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamBegin, StreamEnd
from cdc_core.schema.table import TableSchema

MANIFEST_NAME = "manifest.json"
MANIFEST_VERSION = 1

NO_ROW = -1
"""Stands for the ordinal of what no redo row says."""

ReadDefinitions = Callable[[str], Sequence[TableSchema]]
"""Gives the set of definitions with a digest."""


@dataclass(frozen=True, slots=True)
class LandedFile:
    """One Parquet file: its name inside the folder, rows, bytes and the SHA-256 of its content."""

    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogUsed:
    """One redo log that was read: thread and sequence identify it."""

    thread: int
    sequence: int
    name: str
    first_change: int
    next_change: int


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A DDL on a captured table: ``schema`` is the definition that is valid from ``scn`` on. One
    that ``empties`` the table, or the ``partitions`` that are named, leaves the definition as it
    was; with ``has_new_rows`` other rows came in their place, which are to be read. Of a definition
    that a signal brought, ``ddl`` names the signal, and ``ordinal`` is :data:`NO_ROW` where it
    stands in for no DDL."""

    scn: int
    ordinal: int
    ddl: str
    schema: TableSchema
    empties: bool = False
    partitions: tuple[PartitionRows, ...] = ()
    has_new_rows: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalOutcome:
    """What became of a definition that a signal brought: it holds from ``scn`` on, unless
    ``refusal`` says why it does not."""

    id: str
    scn: int
    refusal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWindow:
    """What the metadata store knew of a window when it was captured, so that a lost store can be
    made anew.

    ``key`` is its partition in Dagster; ``created`` when it was planned, ``ended`` the time of its
    upper end in Oracle (ISO 8601). Every window from ordinal ``idle_from`` up to this one is idle,
    and may be gone from landing therefore. ``before_sha256`` is the digest of the manifest of the
    window before; None for the first.
    """

    key: str
    created: str
    ended: str | None
    idle_from: int
    before_sha256: str | None


@dataclass(frozen=True, kw_only=True)  # without slots, which leave no place for what is cached
class WindowManifest:
    """A landed window.

    ``mining_low < row SCN <= window.scn_high`` is the redo that was looked at, ``positions`` how
    far each thread was read when that was done: the next window begins there. ``tables_committed``
    names the captured tables that transactions committed in this window touched, in this or earlier
    windows: the only ones that the lake must visit. ``tables_late`` are those of them that a commit
    at or below ``scn_low`` touched, ``late_scn`` the lowest such commit. ``transactions_evicted``
    left the ledger without an end; ``transactions_released`` were given up in it, since Oracle no
    longer knows them. ``schemas`` are the versions valid at ``scn_high``, of the tables whose redo
    the window holds; ``schema_changes`` the DDLs inside the window, in order, with definitions that
    signals brought; ``signals`` what became of those. ``joined`` and ``left`` name the tables whose
    stream begins or ends here. ``data_objects`` are the numbers of the tables' data objects, as far
    as the dictionary showed them as of the window's end; of a table with several segments only
    where its rows are known by ROWID. ``redo_files`` hold redo rows, or changes where the reader
    gives typed values; ``files_by_table`` says, per table, which of them have rows of it, by their
    place among them. ``reader`` is where such a reader goes on with the next window: plain JSON
    values that it alone understands. It ``is_gap`` where no table takes part in it, so nothing was
    read. ``planned`` is what the metadata store knew of it, ``landed`` the moment of the manifest
    (ISO 8601, UTC). ``unfit_values`` counts, by table, values of changes that landed typed and are
    NULL because the form of their column does not hold them. The pass gave ``rows_mined`` rows; of
    its ``seconds``, LogMiner took ``mining_start_seconds`` to start and ``mining_fetch_seconds`` to
    give them.
    """

    source: str
    window: ScnWindow
    ordinal: int
    mining_low: int
    redo_files: tuple[LandedFile, ...]
    files_by_table: dict[str, tuple[int, ...]]
    transactions_file: LandedFile
    rows_by_table: dict[str, int]
    tables_committed: tuple[str, ...]
    transactions_committed: int
    transactions_rolled_back: int
    transactions_open: int
    logs: tuple[LogUsed, ...]
    schemas: tuple[TableSchema, ...]
    schema_changes: tuple[SchemaChange, ...]
    resetlogs_change: int
    seconds: float
    positions: tuple[ThreadPosition, ...]
    planned: PlannedWindow
    landed: str
    reader: dict[str, Any] = field(default_factory=dict)
    joined: tuple[StreamBegin, ...] = ()
    left: tuple[StreamEnd, ...] = ()
    transactions_evicted: int = 0
    transactions_released: int = 0
    transactions_late: int = 0
    late_scn: int | None = None
    tables_late: tuple[str, ...] = ()
    data_objects: dict[str, DataObjects] = field(default_factory=dict)
    signals: tuple[SignalOutcome, ...] = ()
    is_gap: bool = False
    unfit_values: dict[str, int] = field(default_factory=dict)
    rows_mined: int = 0
    mining_start_seconds: float = 0.0
    mining_fetch_seconds: float = 0.0

    def files_of(self, table: TableId) -> tuple[LandedFile, ...]:
        """The redo files that may have rows of a table."""
        return tuple(self.redo_files[at] for at in self.files_by_table.get(str(table), ()))

    @cached_property
    def tables_held(self) -> frozenset[TableId]:
        """The tables whose redo the window holds."""
        return frozenset(schema.table for schema in self.schemas)

    @cached_property
    def tables_touched(self) -> frozenset[TableId]:
        """The tables whose rows or whose definitions the window changes."""
        changed = {change.schema.table for change in self.schema_changes}
        return frozenset(map(TableId.parse, self.tables_committed)) | changed

    @property
    def facts(self) -> dict[str, int]:
        """Its numbers for people."""
        return {
            "transactions_committed": self.transactions_committed,
            "transactions_rolled_back": self.transactions_rolled_back,
            "transactions_open": self.transactions_open,
            "transactions_evicted": self.transactions_evicted,
            "transactions_released": self.transactions_released,
            "transactions_late": self.transactions_late,
            "schema_changes": len(self.schema_changes),
            "logs": len(self.logs),
            "rows_mined": self.rows_mined,
            "mining_start_ms": round(self.mining_start_seconds * 1000),
            "mining_fetch_ms": round(self.mining_fetch_seconds * 1000),
            **({"is_gap": 1} if self.is_gap else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkManifest:
    """A landed chunk: the rows of ``table`` in one key or ROWID range as of ``scn``; or, if there
    is a ``scn_high``, as of one SCN from ``scn`` up to it. That of a chunk that is still to be read
    has no files.

    ``condition`` is the text of an ad hoc snapshot's additional condition, None for a whole table;
    ``landed`` the moment at which reading began, otherwise as of a window. ``unfit_values`` are
    NULL because the form of their column does not hold them. Rows that ``have_own_keys`` have keys
    that no other chunk of their snapshot has, of whatever SCN it is.
    """

    source: str
    schema: TableSchema
    snapshot_id: str
    number: int
    scn: Scn
    files: tuple[LandedFile, ...]
    rows: int
    condition: str | None
    seconds: float
    landed: str
    unfit_values: int = 0
    scn_high: Scn | None = None
    have_own_keys: bool = False

    @property
    def chunk_key(self) -> ChunkKey:
        """Which chunk it is."""
        return ChunkKey(self.schema.table, self.snapshot_id, self.number)

    @property
    def is_exact(self) -> bool:
        """Was it read as of ``scn``?"""
        return self.scn_high is None

    @property
    def read_up_to(self) -> Scn:
        """Highest SCN whose changes its rows may have."""
        return self.scn if self.scn_high is None else self.scn_high


def moment_of(landed: str) -> datetime:
    """The moment of a manifest in UTC, without a zone, as the lake holds it."""
    return datetime.fromisoformat(landed).replace(tzinfo=None)


def digest_of(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def window_manifest_bytes(manifest: WindowManifest, definitions: str | None = None) -> bytes:
    """Print a window's manifest; :func:`read_window_manifest` is the inverse.

    Args:
        manifest: The manifest.
        definitions: Digest of the set in which its ``schemas`` are kept; None if they are to stand
            in it.
    """
    data: dict[str, Any] = as_json(
        manifest if definitions is None else replace(manifest, schemas=())
    )
    if definitions is not None:
        del data["schemas"]
        data["definitions"] = definitions
    return sealed("window", data)


def read_window_manifest(
    content: bytes, *, where: str, definitions: ReadDefinitions | None = None
) -> WindowManifest:
    """Read and check a window's manifest; ``definitions`` reads those that it does not contain.

    Raises:
        LandingDamagedError: It is not what :func:`window_manifest_bytes` printed.
    """
    data = opened("window", content, where)
    try:
        digest = data.pop("definitions", None)
        if digest is not None and definitions is not None:
            data["schemas"] = []
        manifest = from_json(WindowManifest, data)
        _check_names((*manifest.tables_committed, *manifest.tables_late, *manifest.files_by_table))
    except (KeyError, TypeError, ValueError, ConfigError) as error:
        raise damaged(where, "a field is missing or has a wrong type") from error
    if digest is not None and definitions is not None:
        return replace(manifest, schemas=tuple(definitions(digest)))
    return manifest


def _check_names(texts: Sequence[str]) -> None:
    """Tables are looked up by the text of their names: one that is written otherwise would never be
    visited."""
    for text in texts:
        if str(TableId.parse(text)) != text:
            raise ValueError("this is not how the name of a table is written")


def chunk_manifest_bytes(manifest: ChunkManifest) -> bytes:
    """Print a chunk's manifest; :func:`read_chunk_manifest` is the inverse."""
    return sealed("chunk", as_json(manifest))


def read_chunk_manifest(content: bytes, *, where: str) -> ChunkManifest:
    """Read and check a chunk's manifest.

    Raises:
        LandingDamagedError: It is not what :func:`chunk_manifest_bytes` printed.
    """
    data = opened("chunk", content, where)
    try:
        return from_json(ChunkManifest, data)
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(where, "a field is missing or has a wrong type") from error


def sealed(kind: str, data: dict[str, Any]) -> bytes:
    """Print a manifest of some kind with its digest; :func:`opened` is the inverse."""
    body = json.dumps(data, sort_keys=True, separators=(",", ":"))
    seal = {"kind": kind, "version": MANIFEST_VERSION, "sha256": digest_of(body.encode())}
    # The body is printed once: with indents, which Python's slow encoder prints, it took a tenth of
    # the CPU of a small window (measured).
    return f'{json.dumps(seal)[:-1]},\n"body": {body}}}\n'.encode()


def opened(kind: str, content: bytes, where: str) -> dict[str, Any]:
    """What :func:`sealed` printed.

    Raises:
        LandingDamagedError: It is another kind of manifest, or was changed.
    """
    try:
        seal = json.loads(content)
        body: dict[str, Any] = seal["body"]
        right = digest_of(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())
        found = (seal["kind"], seal["sha256"])
        version = int(seal["version"])
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(where, "it is not a manifest") from error
    if version > MANIFEST_VERSION:
        raise LandingDamagedError(
            "a newer version of Redolake wrote the manifest",
            hint="Run that version; an older one does not read what a newer one has landed.",
            manifest=where,
            version=version,
        )
    if found != (kind, right) or version < MANIFEST_VERSION:
        raise damaged(where, "its kind, version or digest is not the one expected")
    return body


def damaged(where: str, what: str) -> LandingDamagedError:
    """The error for a manifest that is not one."""
    return LandingDamagedError(
        f"the manifest cannot be trusted: {what}",
        hint=restore_hint(where),
        manifest=where,
    )
