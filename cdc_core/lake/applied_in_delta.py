"""Which windows and chunks have a table's Delta tables taken? Their own logs say it, for a metadata
store that was lost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cdc_core.delta.history import (
    DeltaCommit,
    DeltaLog,
    newest_commits,
    read_commits,
    read_log,
)
from cdc_core.lake.apply.emptied_partitions import emptied_scn as partitions_scn
from cdc_core.lake.apply.truncation import truncated_scn
from cdc_core.lake.definitions.evolution import known_schema
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.table_context import TableWork
from cdc_core.model.reports import TableApplied


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedInDelta:
    """What one table's mirror has taken.

    ``window_scn`` is the upper end of the last window that brought it changes; ``schema_scn`` the
    SCN of its newest definition. ``chunks`` maps (snapshot id, number) to the chunk's SCN, None
    where its commit has gone from the log. ``truncated_scn`` is the SCN of the last TRUNCATE that
    emptied it or partitions of it, 0 without one. ``windows`` maps upper ends to what these windows
    brought, as far as the log still reaches. ``lacks_mirror``: only the change log is there, of
    which all this is said then.
    """

    window_scn: int | None = None
    schema_scn: int | None = None
    truncated_scn: int = 0
    chunks: dict[tuple[str, int], int | None] = field(default_factory=dict)
    windows: dict[int, TableApplied] = field(default_factory=dict)
    lacks_mirror: bool = False


def read_applied(work: TableWork) -> AppliedInDelta:
    """What the mirror has taken; where it is missing, what it will have taken once it is rebuilt
    from the change log.

    A mirror that was written anew from its change log has what the change log had at that moment,
    without a transaction
    identifier for each chunk: the commit names the version of the change log that was read.
    """
    mirror, changelog = read_log(work.mirror), read_log(work.changelog)
    commits = read_commits(work.mirror)
    transactions = dict(mirror.transactions) if mirror else {}
    if mirror is None or any(one.metadata.get("kind") == "rebuild" for one in commits):
        transactions = {**_of_changelog(work, changelog, commits), **transactions}
    chunks = _chunks(work, transactions, commits)
    windows = {
        int(one.metadata["scn_high"]): _brought(work, one)
        for one in commits
        if one.metadata.get("kind") == "window" and one.metadata.get("changes")
    }
    known = known_schema(changelog)
    for scn_high, rows in QuarantineTable(work).counts().items():
        brought = windows.get(scn_high, TableApplied(table=work.table))
        windows[scn_high] = replace(brought, quarantined=rows)
    return AppliedInDelta(
        window_scn=transactions.get(work.window_app),
        schema_scn=known.scn_from if known else None,
        truncated_scn=max(
            truncated_scn(work, mirror or changelog),
            partitions_scn(changelog),
        ),
        chunks=chunks,
        windows=windows,
        lacks_mirror=mirror is None and bool(transactions),
    )


def brought_by(work: TableWork, scn_high: int) -> TableApplied:
    """What the window that ends there has brought the mirror, by the log; nothing where it made no
    commit. Reads the newest commits, down to those of an earlier window."""
    for commit in newest_commits(work.mirror):
        if commit.metadata.get("kind") != "window":
            continue
        if int(commit.metadata["scn_high"]) == scn_high and commit.metadata.get("changes"):
            return replace(_brought(work, commit), skipped=True)
        if int(commit.metadata["scn_high"]) < scn_high:
            break
    return TableApplied(table=work.table, skipped=True)


def _of_changelog(
    work: TableWork, changelog: DeltaLog | None, commits: tuple[DeltaCommit, ...]
) -> dict[str, int]:
    """What the change log had when the mirror was written from it last; all that it has, where
    there is no mirror. Nothing where its log
    reaches back no further than that any more, so that it does not say what came later: what is
    taken twice does no harm."""
    if changelog is None:
        return {}
    read = [
        one.metadata.get("changelog_version", -1)
        for one in commits
        if one.metadata.get("kind") == "rebuild"
    ]
    if not read:
        return dict(changelog.transactions)
    later = [one for one in read_commits(work.changelog) if one.version > max(read)]
    if len(later) < changelog.version - max(read):
        return {}
    since = {app for one in later for app in one.transactions}
    return {
        app: version
        for app, version in changelog.transactions.items()
        if app not in since and app != work.window_app
    }


def _chunks(
    work: TableWork, transactions: dict[str, int], commits: tuple[DeltaCommit, ...]
) -> dict[tuple[str, int], int | None]:
    prefix = f"{work.window_app}/chunk/"
    names = [app.removeprefix(prefix) for app in transactions if app.startswith(prefix)]
    places = [tuple(name.rsplit("/", 1)) for name in names]
    scns = {
        (one.metadata["snapshot"], one.metadata["number"]): int(
            one.metadata.get("chunk_scn_low", one.metadata["chunk_scn"])
        )
        for one in commits
        if one.metadata.get("kind") == "chunk"
    }
    found = [(snapshot, int(number)) for snapshot, number in places if number.isdigit()]
    return {place: scns.get(place) for place in found}


def _brought(work: TableWork, commit: DeltaCommit) -> TableApplied:
    """What a window brought, by Spark's metrics or, of a commit without Spark, by its own
    metadata."""
    said, measured = commit.metadata, commit.metrics
    inserted, updated, deleted = (
        int(said.get(what.lower()) or measured.get(f"numTargetRows{what}", 0))
        for what in ("Inserted", "Updated", "Deleted")
    )
    return TableApplied(
        table=work.table,
        changes=int(said["changes"]),
        rows_inserted=inserted,
        rows_updated=updated,
        rows_deleted=deleted,
        operations=said.get("operations", {}),
        events_skipped=said.get("skipped", {}),
    )
