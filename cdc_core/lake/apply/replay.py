"""What should a mirror hold by its whole change log, and how is it made so again?

Replaying an old window derives its keys from everything the change log has of them, compares, and
commits only if something
differs: no transaction identifier is needed, since doing it twice changes nothing. Rebuilding does
so for all keys.
"""

from __future__ import annotations

import time

import pyarrow.compute as pc

from cdc_core.delta.appending import CommitInfo
from cdc_core.delta.history import read_commits, read_log
from cdc_core.errors import REPORT_HINT, LakeError, NotYetError, RowCountError
from cdc_core.lake.apply.emptied_partitions import emptied_scn
from cdc_core.lake.apply.mirror_repair import find_different, whole_in_hand
from cdc_core.lake.apply.truncation import settle_truncation, truncated_scn
from cdc_core.lake.definitions.evolution import known_schema, settle_schema
from cdc_core.lake.foreign_words import replaced_hint, replaced_words
from cdc_core.lake.mirror.copy_on_write import replace_rows
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.mirror.ways import why_rewritten_by_spark
from cdc_core.lake.mirror.write import write
from cdc_core.lake.rows.derivation import derived
from cdc_core.lake.rows.logged_changes import files_of, logged_changes
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import listed, quote_name
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.reports import TableApplied
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import translated
from cdc_core.stage.changes import of_window
from cdc_core.stage.layout import mirror_schema


def replay_window(
    work: TableWork,
    manifest: WindowManifest,
    schema: TableSchema,
    *,
    covered_scn: int,
    applied_scn: int = 0,
) -> TableApplied:
    """Derive the window's keys again and correct the mirror where it differs; ``skipped`` if it
    does not. The metadata store says that windows up to ``applied_scn`` were applied: of one that
    left no change, neither log says so.

    Raises:
        NotYetError: The mirror has not taken the window yet.
    """
    started = time.monotonic()
    position, scn_high = work.position().mirror_scn, manifest.window.scn_high
    if position is None or max(position, applied_scn) < scn_high:
        raise _not_applied(work, manifest, position)
    schema = settle_schema(work, schema)
    settle_truncation(work)
    names = files_of(work, scn_high)
    with logged_changes(work.changelog, schema, of_window(scn_high), names) as changes:
        count = changes.facts().changes
    if count == 0:
        return TableApplied(table=work.table, seconds=time.monotonic() - started, skipped=True)
    if position < scn_high:
        raise _not_applied(work, manifest, position)
    facts = work.facts(window=manifest.window.key)
    different = find_different(
        work,
        schema,
        scn_high,
        position=max(position, emptied_scn(read_log(work.changelog))),
        covered_scn=covered_scn,
        facts=facts,
    )
    if not different.count:
        seconds = time.monotonic() - started
        return TableApplied(table=work.table, changes=count, seconds=seconds, skipped=True)
    metadata = work.metadata("replay", position, window=manifest.window.key)
    info = work.info("repairing the mirror", metadata)
    written = write(work, different.change(schema, info))
    return written.report(work.table, count, started)


def _not_applied(work: TableWork, manifest: WindowManifest, position: int | None) -> NotYetError:
    return NotYetError(
        "only a window that was applied can be replayed",
        hint="Apply it first: `redolake run`.",
        **work.facts(window=manifest.window.key, mirror_scn=position),
    )


def rebuild_mirror(work: TableWork, schema: TableSchema) -> int:
    """As :meth:`cdc_core.lake.lake.TableLake.rebuild_mirror` says, in one commit. A mirror whose
    log cannot be read is moved aside first."""
    if (log := read_log(work.changelog)) is None:
        raise LakeError(
            "there is no change log to rebuild from",
            hint="`redolake table resnapshot OWNER.TABLE --fresh` reads the table again from Oracle.",
            **work.facts(path=work.changelog),
        )
    if (found := log.foreign.replacing) is not None:
        raise LakeError(
            replaced_words("changelog", found),
            hint=replaced_hint("changelog"),
            **work.facts(delta_version=found.version),
        )
    version = log.version
    work.set_damaged_mirror_aside()
    if read_log(work.mirror) is None:
        work.create_table(work.mirror, known_schema(log) or schema)
    schema = settle_schema(work, schema)
    done = work.position()
    partitions_scn = log.transactions.get(work.partitions_app, 0)
    position = max(done.changelog_scn or 0, done.mirror_scn or 0, partitions_scn)
    said = (commit.metadata.get("scn_high", 0) for commit in read_commits(work.changelog))
    scn = max(position or max(said, default=0), truncated_scn(work, log))
    metadata = work.metadata("rebuild", scn, changelog_version=version)
    is_behind = done.changelog_scn is not None and done.changelog_scn > (done.mirror_scn or -1)
    txn = (work.window_app, done.changelog_scn or 0) if is_behind else None
    info = work.info("rewriting the mirror", metadata, txn)
    rows = _rebuild_in_hand(work, schema, position, info)
    if rows is None:
        rows = _rebuild_by_spark(work, schema, position, info)
    settle_truncation(work)
    return rows


def _rebuild_in_hand(
    work: TableWork, schema: TableSchema, position: int, info: CommitInfo
) -> int | None:
    """Write the rows of a small change log into a small mirror; how many they are, None if Spark
    has to."""
    if work.merges_by_spark or not work.rewrite_bytes_max:
        return None
    mirror = MirrorFiles.read(work)
    if why_rewritten_by_spark(mirror, schema) is not None:
        return None
    found = whole_in_hand(work, schema, position)
    if found is None:
        return None
    keys = found.group_by(list(schema.key)).aggregate([]).num_rows
    lacking = pc.sum(pc.greater(pc.list_value_length(found["_cdc_missing"]), 0)).as_py() or 0
    _check_derived(work, rows=found.num_rows, keys=keys, lacking=lacking)
    columns = mirror_schema(schema)
    rows = found.filter(pc.equal(found["_cdc_kind"], "row")).select(columns.names).cast(columns)
    replace_rows(mirror, schema, iter(rows.combine_chunks().to_batches()), len(rows), info)
    return len(rows)


def _rebuild_by_spark(work: TableWork, schema: TableSchema, position: int, info: CommitInfo) -> int:
    """The same by Spark, of a change log of any size."""
    session = work.session_for()
    with translated("deriving the mirror", **work.facts()):
        frame = derived(work, session, schema, position)
        columns = [quote_name(one) for one in mirror_schema(schema).names]
        rows = frame.where("_cdc_kind = 'row'").select(*columns)
        counts = frame.selectExpr(
            "COUNT_IF(_cdc_kind = 'row') AS n",
            "COUNT_IF(SIZE(_cdc_missing) > 0) AS missing",
            "COUNT(*) AS reduced",
            f"COUNT(DISTINCT STRUCT({listed(schema.key)})) AS keys",
        ).collect()[0]
    _check_derived(work, rows=counts["reduced"], keys=counts["keys"], lacking=counts["missing"])
    work.fence()
    with translated(info.doing, **work.facts()):
        writer = rows.write.format("delta").mode("overwrite").option("userMetadata", info.metadata)
        if info.txn is not None:
            writer = writer.option("txnAppId", info.txn[0]).option("txnVersion", info.txn[1])
        writer.save(work.mirror)
    return int(counts["n"])


def _check_derived(work: TableWork, *, rows: int, keys: int, lacking: int) -> None:
    """Hold what was derived for the keys of a change log against what it must be."""
    if keys != rows:
        raise RowCountError(
            "reducing the change log left more than one row of a key; the mirror was not changed",
            hint=REPORT_HINT,
            **work.facts(rows=rows, keys=keys),
        )
    if lacking:
        raise LakeError(
            "the change log lacks the first change of some rows",
            hint="`redolake table resnapshot OWNER.TABLE` reads the table again from Oracle.",
            **work.facts(rows=lacking),
        )
