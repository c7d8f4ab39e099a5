"""Is each table in the stream, and if not, why, since when, and which command brings it back? And
what did its last comparison with Oracle find?

A table that left the stream, was paused, or failed in the lake takes no windows while the others
do. The check ``in_the_stream`` of its mirror fails as long as that lasts, or as redo rows of the
table are in quarantine. Runs over windows evaluate it at their end; sensors report what changed
between runs, by a command or by a window that needed no run.

The check ``equals_oracle`` says as of which SCN, and when, the mirror was compared with Oracle
last, whoever did that: the check ``mirror_equals_oracle`` of the table in Oracle, a command, the
demo. It compares nothing itself, so a run over windows may evaluate it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from assets.translator import Translator
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import Comparison, TableRecord
from cdc_core.model.streams import StreamEnd
from cdc_core.model.wording import counted
from cdc_core.steps.source_view import SourceView

CHECK_NAME = "in_the_stream"
PROOF_NAME = "equals_oracle"

_STATES = {
    "new": "has no snapshot yet",
    "snapshotting": "is being read for its snapshot, while its redo is captured",
    "ready": "is in the stream",
    "paused": "is paused: its redo is captured but not applied",
    "failed": "is stopped",
    "removed": "is removed",
}


@dataclass(frozen=True)
class Verdict:
    """What the check says of one table. Asking for a pause or a removal makes a warning of it,
    everything else an error."""

    passed: bool
    description: str
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
    metadata: dict[str, Any] = field(default_factory=dict)

    def as_result(self, check: dg.AssetCheckKey) -> dg.AssetCheckResult:
        """For a step that evaluates the check."""
        return dg.AssetCheckResult(asset_key=check.asset_key, check_name=check.name, **vars(self))

    def as_event(self, check: dg.AssetCheckKey) -> dg.AssetCheckEvaluation:
        """For an event without a run."""
        return dg.AssetCheckEvaluation(
            asset_key=check.asset_key, check_name=check.name, **vars(self)
        )


def stream_check(names: Translator, table: TableId) -> dg.AssetCheckSpec:
    """The check of one table's mirror."""
    return dg.AssetCheckSpec(
        CHECK_NAME,
        asset=names.key("mirror", table),
        description=f"Every window is applied to {table}. Fails while the table is stopped, "
        "paused or removed, or has redo rows in quarantine, with the reason, the "
        "SCN and the command that brings it back.",
    )


def proof_check(names: Translator, table: TableId) -> dg.AssetCheckSpec:
    """The check that says what the mirror's last comparison found."""
    return dg.AssetCheckSpec(
        PROOF_NAME,
        asset=names.key("mirror", table),
        description=f"The mirror of {table} equalled Oracle, in all rows and columns, at its last "
        "comparison; the result says when that was, and as of which SCN. This check shows that "
        "comparison and runs none. To compare, execute the check mirror_equals_oracle of the table "
        f"in Oracle, launch the job {names.source}_reconcile, or run `redolake reconcile`.",
    )


def proof(compared: Comparison) -> Verdict:
    """What a comparison found, as the check's result."""
    at = f"as of SCN {compared.scn}, compared at {compared.compared:%Y-%m-%d %H:%M:%S} UTC"
    values: dict[str, Any] = {
        "cdc/scn": compared.scn,
        "cdc/compared_at": dg.MetadataValue.timestamp(compared.compared),
        "cdc/rows": compared.rows,
        "cdc/differences": compared.differences,
    }
    if compared.differences:
        values["cdc/what_to_do"] = "`redolake repair` reads these rows again."
        return Verdict(False, f"{different(compared.differences)} {at}", metadata=values)
    return Verdict(True, f"{counted(compared.rows, 'row')}, all equal, {at}", metadata=values)


def different(rows: int) -> str:
    """``1 row differs``, ``3 rows differ``."""
    return f"{counted(rows, 'row')} {'differs' if rows == 1 else 'differ'}"


def verdicts(
    records: SourceView, names: Translator, tables: Iterable[TableId]
) -> dict[dg.AssetCheckKey, Verdict]:
    """What both checks of each table say, with one reading of the store for all; of a table that
    was never compared, one."""
    known = {record.table: record for record in records.tables()}
    compared = records.comparisons()
    found: dict[dg.AssetCheckKey, Verdict] = {}
    for table in tables:
        key = names.key("mirror", table)
        found[dg.AssetCheckKey(key, CHECK_NAME)] = verdict(table, known.get(table))
        if table in compared:
            found[dg.AssetCheckKey(key, PROOF_NAME)] = proof(compared[table])
    return found


def verdict(table: TableId, record: TableRecord | None) -> Verdict:
    """What the metadata store knows of a table, as the check's result."""
    state = "new" if record is None else record.state
    what = f"{table} {_STATES[state]}"
    values: dict[str, Any] = {"cdc/state": state}
    if record is None or state == "new":
        values["cdc/what_to_do"] = "`redolake snapshot` reads it."
        return Verdict(False, what, dg.AssetCheckSeverity.WARN, values)
    values |= _facts(record)
    if record.in_quarantine:
        values["cdc/rows_in_quarantine"] = record.in_quarantine
    if state == "ready" and record.in_quarantine:
        values["cdc/what_to_do"] = settles_quarantine(table)
        return Verdict(False, f"{what}, but {in_quarantine(record.in_quarantine)}", metadata=values)
    if state in {"ready", "snapshotting"}:
        return Verdict(True, what, metadata=values)
    wanted = record.asked_by is not None
    severity = dg.AssetCheckSeverity.WARN if wanted else dg.AssetCheckSeverity.ERROR
    scn = _scn(record)
    at = "" if scn is None else f" at SCN {scn}"
    text = f"{what}{at}: {record.reason}. {record.way_out}"
    return Verdict(False, text, severity, values)


def in_quarantine(rows: int) -> str:
    """What rows in quarantine mean for a mirror."""
    return f"has {counted(rows, 'redo row')} in quarantine that could not be decoded: rows of the mirror are missing, stale or left over"


def settles_quarantine(table: TableId) -> str:
    """What brings the mirror right again."""
    return (
        f"`redolake table quarantine {table.argument}` says why; `redolake repair --table {table.argument}` or "
        f"`redolake table resnapshot {table.argument}` reads the rows from Oracle."
    )


def stopping_line(end: StreamEnd) -> str:
    """One line of a run's log for a table that a step stopped."""
    return f"{end.table} is stopped at SCN {end.scn}: {end.reason}. {end.way_out}"


def show_streams(
    instance: dg.DagsterInstance,
    records: SourceView,
    names: Translator,
    tables: Iterable[TableId],
    shown: dict[dg.AssetCheckKey, str] | None = None,
) -> int:
    """Report the checks where they differ from their last evaluation; return how many events were
    written.

    Args:
        instance: Where they are reported.
        records: Of the source.
        names: Of its assets.
        tables: Whose checks are looked at.
        shown: What checks are known to say, and do from now on: those that say the same now are
            not looked up in Dagster.
    """
    if not records.is_begun:
        return 0
    now, known = verdicts(records, names, tables), {} if shown is None else shown
    news = {key: one for key, one in now.items() if known.get(key) != one.description}
    count = report_changed(instance, news)
    known |= {key: one.description for key, one in news.items()}
    return count


def report_changed(instance: dg.DagsterInstance, now: Mapping[dg.AssetCheckKey, Verdict]) -> int:
    """Report the verdicts that differ from the last evaluation of their checks; return how many."""
    if not now:
        return 0
    seen = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(now))
    changed = {key: one for key, one in now.items() if _shown(seen.get(key)) != one.description}
    for key, one in changed.items():
        instance.report_runless_asset_event(one.as_event(key))
    return len(changed)


def _facts(record: TableRecord) -> dict[str, Any]:
    values: dict[str, Any] = {
        "cdc/scn": _scn(record),
        "cdc/reason": record.reason,
        "cdc/what_to_do": record.way_out,
        "cdc/since": None if record.since is None else dg.MetadataValue.timestamp(record.since),
    }
    return {name: value for name, value in values.items() if value is not None}


def _scn(record: TableRecord) -> int | None:
    """The SCN of which a table's mirror is an image, or where its stream ended."""
    return record.stopped_scn or record.mirror_scn or record.snapshot_scn


def _shown(record: Any) -> str | None:
    """The description of the last evaluation; None where there is none, or where a run is about to
    make one."""
    event = None if record is None or record.event is None else record.event.dagster_event
    if event is None or event.event_type_value != dg.DagsterEventType.ASSET_CHECK_EVALUATION.value:
        return None
    description: str | None = event.asset_check_evaluation_data.description
    return description
