"""As of one SCN, which version of each Delta table is Oracle's table?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

from cdc_core.delta.history import DeltaCommit
from cdc_core.errors import ConfigError, LakeError, NotYetError
from cdc_core.lake.mirror.versions import NoImage, image_at
from cdc_core.lake.side_tables.positions import Positions, TablePosition, positions_path
from cdc_core.model.identifiers import TableId
from redolake.reader.changes import ChangePosition, Changes, changes_between, key_condition
from redolake.reader.rows import Rows
from redolake.reader.storage import READER_HINT, Storage

_GENERATION = "redolake.generation"


def open(
    lake: str | os.PathLike[str],
    *,
    source: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Lake:
    """Open the lake of a source.

    Args:
        lake: What ``lake.path`` is in Redolake's configuration: a folder, or a URI such as
            ``s3://bucket/lake``.
        source: Name of the source; needed where the lake has several.
        storage_options: Those of delta-rs, for credentials that the environment does not have.

    Raises:
        ConfigError: The lake has no such source, or several.
        StoreUnavailableError: The storage does not answer.
    """
    storage = Storage(os.fspath(lake), dict(storage_options or {}))
    sources = [one for one in storage.folders("") if _is_source(storage, one)]
    if (source is None and len(sources) != 1) or (source is not None and source not in sources):
        raise ConfigError(
            "this lake has no such source" if source else "which source of this lake?",
            hint=f"Set source to one of: {', '.join(sources)}."
            if sources
            else "A lake has a folder for each source, with positions.json or its tables below"
            " `mirror`.",
            lake=storage.root,
            **({} if source is None else {"source": source}),
        )
    return Lake(storage, source or sources[0])


def _is_source(storage: Storage, folder: str) -> bool:
    said = storage.text(positions_path("", folder).lstrip("/"))
    return said is not None or bool(storage.folders(f"{folder}/mirror"))


@dataclass(frozen=True)
class Lake:
    """The tables of one source. It keeps no connection, and every call sees what is there by
    then."""

    storage: Storage
    source: str

    def tables(self) -> tuple[str, ...]:
        """The Oracle names of the tables, in order."""
        return tuple(sorted(self._found()))

    def table(self, name: str) -> Table:
        """One table.

        Args:
            name: ``OWNER.TABLE``, with double quotes around parts that are not upper case.

        Raises:
            ConfigError: The lake does not have it.
        """
        found, wanted = self._found(), str(TableId.parse(name))
        if wanted not in found:
            raise ConfigError(
                "this lake does not have the table",
                hint=f"It has: {', '.join(sorted(found)) or 'none'}.",
                table=wanted,
            )
        return found[wanted]

    def at(self, moment: int | datetime | None = None) -> Cut:
        """All tables as of one SCN.

        Args:
            moment: An SCN. A time means the end of the last window that ended at or before it (in
                UTC if it has no zone) and brought a change. None means the newest SCN that all
                tables in their stream have taken; while a window is applied that is the SCN before
                it.

        Raises:
            NotYetError: No table has taken anything yet, or no window ended by then.
        """
        found = self._found()
        if isinstance(moment, datetime):
            return Cut(self, _scn_by(found.values(), moment), found)
        return Cut(self, _newest(found.values()) if moment is None else moment, found)

    def _found(self) -> dict[str, Table]:
        """The tables by name, as the positions in the lake say it; without these, as the folders
        of the default layout do."""
        text = self.storage.text(positions_path("", self.source).lstrip("/"))
        if text is not None:
            return {
                name: Table(self.storage, name, one.mirror, one.changelog, one)
                for name, one in Positions.parse(text).tables.items()
            }
        tables = {}
        for folder in self.storage.folders(f"{self.source}/mirror"):
            mirror, changelog = (
                f"{self.source}/{kind}/{folder}" for kind in ("mirror", "changelog")
            )
            try:
                said = self.storage.delta_table(mirror).metadata().configuration
            except LakeError:  # a folder that holds no table
                continue
            if said.get("redolake.role") == "mirror" and ".before-g" not in folder:
                name = said["redolake.table"]
                tables[name] = Table(self.storage, name, mirror, changelog, None)
        return tables


@dataclass(frozen=True)
class Table:
    """One table of a lake: its mirror, which is the table, and its change log."""

    storage: Storage
    name: str
    mirror: str
    changelog: str
    position: TablePosition | None
    """What the pipeline wrote of it; None where it wrote nothing."""

    def at(self, scn: int) -> TableVersion:
        """The table as of one SCN.

        Raises:
            NotYetError: No version is proved to be the table as of it; the message says why.
            LakeError: There is no mirror, or delta-rs cannot read it.
        """
        found = self._image(scn)
        if isinstance(found, NoImage):
            raise NotYetError(
                f"no version of the table is proved to be Oracle as of this SCN: {found.reason}",
                hint=found.way_out,
                table=self.name,
                scn=scn,
            )
        return TableVersion(
            name=self.name,
            version=found,
            open_table=partial(self.storage.delta_table, self.mirror, found),
            scn=scn,
            path=self.storage.path(self.mirror),
        )

    def changes(
        self, since: ChangePosition | int | None = None, until: int | None = None
    ) -> Changes:
        """The change log's rows behind ``since`` up to ``until``.

        Args:
            since: The ``position`` of the changes that were read last: each row comes exactly once
                then. Or an SCN: rows of the windows that end behind it, and of chunks that came
                behind these. None: all rows.
            until: An SCN; None for everything that is there.

        Raises:
            ConfigError: The position is of another table, or the table was begun anew since.
            LakeError: The Delta log does not reach back so far any more, or there is none.
        """
        newest = self.storage.delta_table(self.changelog)
        commits = [
            one for one in self.storage.commits(self.changelog) if one.version <= newest.version()
        ]
        generation = int(newest.metadata().configuration.get(_GENERATION, 1))
        return changes_between(self._logged(newest), commits, generation, since, until)

    def history(self, key: object) -> Rows:
        """The life of one row: its changes, oldest first.

        Args:
            key: The value of the key's column; of a key of several columns, a mapping from their
                names to values. After a change of key, the rows of the change itself are in the
                history of both keys.

        Returns:
            Rows of the change log (:class:`Changes` says their columns), ordered by
            ``(_cdc_commit_scn, _cdc_ordinal)``.

        Raises:
            ConfigError: These are not the key's columns.
        """
        newest = self.storage.delta_table(self.changelog)
        condition = key_condition(newest.metadata().configuration, key)
        rows = self._logged(newest).where(condition)
        return rows.ordered("_cdc_commit_scn, _cdc_ordinal")

    @cached_property
    def commits(self) -> tuple[DeltaCommit, ...]:
        """The commits of the mirror's log, oldest first."""
        return self.storage.commits(self.mirror)

    def _image(self, scn: int) -> int | NoImage:
        if self.position is not None and self.position.is_partial:
            return NoImage(
                "no snapshot has read all of its rows",
                "Ask for one (`redolake snapshot --table`), or read the change log.",
            )
        image = image_at(self.commits, scn, known=self._known)
        if isinstance(image, NoImage) and self.position is not None and self.position.reason:
            return NoImage(f"{image.reason}; {self.position.reason}", image.way_out)
        return image

    @cached_property
    def _known(self) -> tuple[int, int] | None:
        """Between which SCNs the table's stream had no interruption, if the pipeline's words are
        about these Delta tables."""
        one = self.position
        if one is None or one.low is None or one.high is None:
            return None
        said = self.storage.delta_table(self.mirror).metadata().configuration
        is_same = int(said.get(_GENERATION, 1)) == one.generation
        return (one.low, one.high) if is_same else None

    def _logged(self, newest: Any) -> Rows:
        return Rows(name=self.name, version=newest.version(), open_table=lambda: newest)


@dataclass(frozen=True, kw_only=True)
class TableVersion(Rows):
    """A table as of an SCN: the rows of one version of its mirror, one per row in Oracle, with the
    table's columns and two hidden ones (``_cdc_commit_scn``, ``_cdc_ordinal``)."""

    scn: int
    """The SCN."""

    path: str
    """The mirror's folder, for other readers of this ``version``."""


@dataclass(frozen=True)
class Cut:
    """All tables as of one SCN: a join over them is one moment."""

    lake: Lake
    scn: int
    found: Mapping[str, Table] = field(repr=False)

    def table(self, name: str) -> TableVersion:
        """One table as of the SCN.

        Raises:
            ConfigError: The lake does not have it.
            NotYetError: No version is proved to be the table as of the SCN; the message says why.
        """
        wanted = str(TableId.parse(name))
        known = self.found.get(wanted)
        return (self.lake.table(name) if known is None else known).at(self.scn)

    def tables(self) -> tuple[TableVersion, ...]:
        """All tables that have a version for the SCN, in the order of their names."""
        return tuple(one for one in self._each().values() if isinstance(one, TableVersion))

    def left_out(self) -> dict[str, NotYetError]:
        """The other tables, each with the reason."""
        return {name: one for name, one in self._each().items() if isinstance(one, NotYetError)}

    def _each(self) -> dict[str, TableVersion | NotYetError]:
        found: dict[str, TableVersion | NotYetError] = {}
        for name, table in sorted(self.found.items()):
            try:
                found[name] = table.at(self.scn)
            except NotYetError as error:
                found[name] = error
        return found


def _newest(tables: Sequence[Table] | Any) -> int:
    """The newest SCN that all tables in their stream have taken: as the pipeline says, or else by
    the newest windows in the mirrors' logs."""
    said = [
        one.position.high
        for one in tables
        if one.position is not None
        and one.position.state == "ready"
        and one.position.high is not None
    ]
    ends = said or [
        max(found)
        for one in tables
        if (found := [c.metadata["scn_high"] for c in one.commits if c.metadata.get("scn_high")])
    ]
    if not ends:
        raise NotYetError("no table of this lake has taken anything yet", hint=READER_HINT)
    return int(min(ends))


def _scn_by(tables: Any, moment: datetime) -> int:
    at = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    newest = _newest(tables)
    ends = [
        int(one.metadata["scn_high"])
        for table in tables
        for one in table.commits
        if "ended" in one.metadata
        and datetime.fromisoformat(one.metadata["ended"]) <= at
        and one.metadata["scn_high"] <= newest
    ]
    if not ends:
        raise NotYetError(
            "no window that brought changes ended at or before this time",
            hint="Choose a later time, or an SCN.",
            time=at.isoformat(),
        )
    return max(ends)
