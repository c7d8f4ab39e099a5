"""What should a mirror hold by its whole change log, and how is it made so again?

Replaying an old window derives its keys from everything the change log has of them, compares, and
commits only if something
differs: no transaction identifier is needed, since doing it twice changes nothing. Rebuilding does
so for all keys.
"""

from __future__ import annotations

import time

from cdc_core.delta.history import read_commits, read_log
from cdc_core.errors import REPORT_HINT, LakeError, NotYetError, RowCountError
from cdc_core.lake.apply.emptied_partitions import emptied_scn
from cdc_core.lake.apply.mirror_repair import find_different
from cdc_core.lake.apply.truncation import settle_truncation, truncated_scn
from cdc_core.lake.definitions.evolution import known_schema, settle_schema
from cdc_core.lake.foreign_words import replaced_hint, replaced_words
from cdc_core.lake.mirror.merge import merge_report
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
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL


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
    return merge_report(work.table, written.counts, count, started, written.how)


def _not_applied(work: TableWork, manifest: WindowManifest, position: int | None) -> NotYetError:
    return NotYetError(
        "only a window that was applied can be replayed",
        hint="Apply it first: `redolake run`.",
        **work.facts(window=manifest.window.key, mirror_scn=position),
    )


def rebuild_mirror(work: TableWork, schema: TableSchema) -> int:
    """Write the mirror anew from the change log alone, in one commit; returns its number of rows. A
    mirror whose log cannot be read is moved aside first.

    Raises:
        LakeError: There is no change log, or it does not hold the beginning of every row.
    """
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
    session = work.session_for()
    if read_log(work.mirror) is None:
        work.create_table(work.mirror, known_schema(log) or schema)
    schema = settle_schema(work, schema)
    done = work.position()
    partitions_scn = log.transactions.get(work.partitions_app, 0)
    position = max(done.changelog_scn or 0, done.mirror_scn or 0, partitions_scn)
    with translated("deriving the mirror", **work.facts()):
        frame = derived(work, session, schema, position)
        columns = [quote_name(one) for one in (*schema.column_names, COMMIT_SCN, ORDINAL)]
        rows = frame.where("_cdc_kind = 'row'").select(*columns)
        counts = frame.selectExpr(
            "COUNT_IF(_cdc_kind = 'row') AS n",
            "COUNT_IF(SIZE(_cdc_missing) > 0) AS missing",
            "COUNT(*) AS reduced",
            f"COUNT(DISTINCT STRUCT({listed(schema.key)})) AS keys",
        ).collect()[0]
    if counts["keys"] != counts["reduced"]:
        raise RowCountError(
            "reducing the change log left more than one row of a key; the mirror was not changed",
            hint=REPORT_HINT,
            **work.facts(rows=counts["reduced"], keys=counts["keys"]),
        )
    if counts["missing"]:
        raise LakeError(
            "the change log lacks the first change of some rows",
            hint="`redolake table resnapshot OWNER.TABLE` reads the table again from Oracle.",
            **work.facts(rows=counts["missing"]),
        )
    said = (commit.metadata.get("scn_high", 0) for commit in read_commits(work.changelog))
    scn = max(position or max(said, default=0), truncated_scn(work, log))
    work.fence()
    with translated("rewriting the mirror", **work.facts()):
        writer = rows.write.format("delta").mode("overwrite")
        writer = writer.option(
            "userMetadata", work.metadata("rebuild", scn, changelog_version=version)
        )
        if done.changelog_scn is not None and done.changelog_scn > (done.mirror_scn or -1):
            writer = writer.option("txnAppId", work.window_app)
            writer = writer.option("txnVersion", done.changelog_scn)
        writer.save(work.mirror)
    settle_truncation(work)
    return int(counts["n"])
