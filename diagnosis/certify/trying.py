"""Level *try*: what do scratch tables show on both paths?

In a schema that the user names, each probe has a table of its own. All are created, their
definitions read, the probes' statements run, and then one pass of LogMiner reads the redo of all of
them; the rows go through the functions of ``redolake explain``, which are those of capture and
apply. What a snapshot reads is held against what the changes leave. At the end, and at the next
start after a kill, the tables are dropped.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import SecretStr

from cdc_core.capture.logs.positions import upper_bound
from cdc_core.capture.passes.mining import MINED_SCHEMA
from cdc_core.config import SourceConfig, TableConfig
from cdc_core.errors import CdcError, LogsNotReadyError, OracleUnavailableError, TransientError
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import CONTROL
from cdc_core.model.scn import Scn
from cdc_core.model.transactions import UNRESOLVED, slot_of
from cdc_core.oracle.after_ddl import read_after_ddl
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.scratch import PREFIX, ScratchSession, open_scratch
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.plan import ChunkRange
from cdc_core.snapshot.read import FetchOptions, exact_rows
from diagnosis.certify.passes import logminer_of, redo_of
from diagnosis.certify.probes import RefusedQuery
from diagnosis.certify.report import Found
from diagnosis.certify.tried import (
    Ask,
    Fails,
    Keep,
    Mine,
    Step,
    Trial,
    TryProbe,
    WriteLob,
)
from diagnosis.explain.explaining import explained
from diagnosis.explain.images import plain_value
from diagnosis.explain.outcomes import Outcome

REDO_SECONDS = 120
"""How long redo is waited for. An idle database writes some every three seconds."""
_BATCH_ROWS = 5_000
_POLL_SECONDS = 0.5
_EXPORTED = {
    "thread": "THREAD#", "data_obj": "DATA_OBJ#", "data_objv": "DATA_OBJV#", "data_objd": "DATA_OBJD#", "sequence": "SEQUENCE#",
    "container_id": "SRC_CON_ID", "session_id": "SESSION#", "serial": "SERIAL#",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scratch:
    """The schema in which tables are tried, and its owner's password."""

    schema: str
    password: SecretStr = field(repr=False)


@dataclass(slots=True)
class _Trial:
    """A probe with its table, while it runs."""

    probe: TryProbe
    table: TableId
    schema: TableSchema | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    scns: dict[str, Scn] = field(default_factory=dict)
    stopped: str | None = None


def try_out(
    config: SourceConfig,
    session: OracleSession,
    scratch: Scratch,
    probes: Sequence[TryProbe],
    *,
    sleep: Callable[[float], None] = time.sleep,
    on_statement: Callable[[str], None] | None = None,
) -> list[Found]:
    """Run the probes in the scratch schema.

    Args:
        session: The capture user's.
        on_statement: Called with each statement of the scratch session before it is sent.

    Raises:
        PreflightError: The schema holds objects of others; nothing was changed.
        OracleUnavailableError: A session is lost. The next run drops the tables.
        LogsNotReadyError: The redo did not come.
    """
    opened = open_scratch(
        config.oracle, scratch.schema, scratch.password, on_statement=on_statement
    )
    with opened as writer:
        writer.drop_own_tables()
        try:
            return _Trying(config, session, writer, sleep).found(probes)
        finally:
            writer.run("ROLLBACK")
            writer.drop_own_tables()


class _Trying:
    def __init__(
        self,
        config: SourceConfig,
        session: OracleSession,
        writer: ScratchSession,
        sleep: Callable[[float], None],
    ) -> None:
        self._how = logminer_of(config)
        self._session, self._writer, self._sleep = session, writer, sleep
        self._low = Scn(0)

    def found(self, probes: Sequence[TryProbe]) -> list[Found]:
        trials = [
            _Trial(probe, TableId(self._writer.user, f"{PREFIX}{number}"))
            for number, probe in enumerate(probes, 1)
        ]
        for one in trials:
            self._create(one)
        self._low = current_scn(self._session)
        for one in trials:
            self._run(one)
        snapshots = {one.table: self._snapshot(one) for one in trials}
        known = [one.schema for one in trials if one.schema is not None]
        rows = self._mined(known)
        changed, undecodable = _changes(rows, known)
        return [
            Found(
                one.probe,
                one.probe.judged(
                    Trial(
                        owner=one.table.owner,
                        table=one.table.name,
                        rows=_rows_of(rows, one),
                        asked=one.asked,
                        snapshot=snapshots[one.table],
                        changed=changed.get(str(one.table), {}),
                        undecodable=undecodable.get(str(one.table), {}),
                        stopped=one.stopped,
                    )
                ),
            )
            for one in trials
        ]

    def _create(self, trial: _Trial) -> None:
        """Make the probe's table, let the capture user read it, and read its definition."""
        name = trial.table.name
        statements = [
            f"CREATE TABLE {name} {trial.probe.table}",
            f"ALTER TABLE {name} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
        ]
        if self._session.user.upper() != self._writer.user:
            statements.append(f"GRANT SELECT, FLASHBACK ON {name} TO {self._session.user}")
        try:
            for sql in statements:
                self._writer.run(sql)
            trial.schema = read_table_schema(self._session, _config_of(trial.table))
        except OracleUnavailableError:
            raise
        except CdcError as error:
            trial.stopped = _code(error)

    def _run(self, trial: _Trial) -> None:
        """Run the probe's steps up to the first that fails; then commit."""
        if trial.stopped is None:
            for step in trial.probe.steps:
                try:
                    self._step(trial, step)
                except OracleUnavailableError:
                    raise
                except CdcError as error:
                    trial.stopped = _code(error)
                    break
        self._writer.run("COMMIT")

    def _step(self, trial: _Trial, step: Step) -> None:
        name = trial.table.name
        match step:
            case str():
                self._writer.run(step.format(t=name, owner=trial.table.owner))
            case Fails(sql, code):
                try:
                    self._writer.run(sql.format(t=name))
                except CdcError as error:
                    trial.asked[code] = _code(error)
            case WriteLob(locator, text, offset):
                self._writer.write_lob(locator.format(t=name), text, offset)
            case Keep(named):
                trial.scns[named] = current_scn(self._session)
            case Ask(named, sql, seconds):
                self._ask(trial, named, sql, seconds)
            case Mine(named):
                trial.asked[named] = _rows_of(
                    self._mined([trial.schema] if trial.schema else []), trial
                )

    def _ask(self, trial: _Trial, named: str, sql: str, seconds: float) -> None:
        table = trial.table
        text = sql.format(t=table.sql, owner=table.owner, name=table.name)
        binds = {kept: scn for kept, scn in trial.scns.items() if f":{kept}" in text}
        waited = 0.0
        while True:
            try:
                trial.asked[named] = self._session.fetch_all(text, binds)
                break
            except OracleUnavailableError:
                raise
            except CdcError as error:
                trial.asked[named] = RefusedQuery(_code(error))
            if waited >= seconds:
                break
            self._sleep(_POLL_SECONDS)
            waited += _POLL_SECONDS
        trial.asked[f"{named}.seconds"] = waited

    def _snapshot(self, trial: _Trial) -> dict[int, dict[str, Any]] | None:
        """The table's rows as a chunk reads them."""
        if trial.schema is None:
            return None
        try:
            schema = read_table_schema(self._session, _config_of(trial.table))
            scn = current_scn(self._session)
            rows = read_after_ddl(
                self._session, [trial.table], lambda: self._rows_as_of(schema, scn)
            )
        except OracleUnavailableError:
            raise
        except CdcError:
            return None
        return {int(row["ID"]): _plain(row) for row in rows}

    def _rows_as_of(self, schema: TableSchema, scn: Scn) -> list[dict[str, Any]]:
        options = FetchOptions(rows=_BATCH_ROWS)
        found = exact_rows(self._session, schema, ChunkRange.whole(), scn, None, options)
        with closing(found) as batches:
            return [row for batch in batches for row in batch.to_pylist()]

    def _mined(self, schemas: Sequence[TableSchema]) -> list[dict[str, Any]]:
        """The redo rows of tables, and of all transactions, up to now."""
        high = self._redo_up_to(current_scn(self._session))
        with redo_of(self._session, self._how, schemas, self._low, high) as (_, batches):
            rows = [row for batch in batches for row in batch.to_pylist()]
        return [{**row, "xid": (row["xid"] or "").lower()} for row in rows]

    def _redo_up_to(self, scn: Scn) -> Scn:
        """Wait until redo is on disk up to an SCN."""
        give_up = time.monotonic() + REDO_SECONDS
        while time.monotonic() < give_up:
            try:
                high = upper_bound(self._session, "online")
                if high >= scn:
                    return high
            except TransientError:
                pass  # a log that is being switched
            self._sleep(_POLL_SECONDS)
        raise LogsNotReadyError(
            "the redo of the scratch tables did not come",
            hint="An idle database writes none of its own here: run the command again under load.",
            scn=scn,
        )


def _config_of(table: TableId) -> TableConfig:
    return TableConfig.model_validate({"name": str(table)})


def _code(error: CdcError) -> str:
    return str(error.facts.get("ora", type(error).__name__))


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain_value(value) for name, value in row.items()}


def _rows_of(rows: Sequence[Mapping[str, Any]], trial: _Trial) -> list[Mapping[str, Any]]:
    """The rows of a trial's table by its object numbers or its name; and of their transactions
    those that begin and end them, in order."""
    schema = trial.schema
    numbers = set() if schema is None else {schema.object_id, *schema.segments} - {None, 0}
    name = (trial.table.owner, trial.table.name)
    own = [
        row["data_obj"] in numbers or (row["seg_owner"], row["table_name"]) == name for row in rows
    ]
    xids = {row["xid"] for row, is_own in zip(rows, own, strict=True) if is_own}
    xids |= {slot_of(str(xid)) + UNRESOLVED for xid in xids}
    return [
        row
        for row, is_own in zip(rows, own, strict=True)
        if is_own or (row["operation_code"] in CONTROL and row["xid"] in xids)
    ]


Changed = dict[str, dict[int, dict[str, Any]]]


def _changes(
    rows: Sequence[Mapping[str, Any]], schemas: Sequence[TableSchema]
) -> tuple[Changed, dict[str, Counter[str]]]:
    """Take redo rows through capture, stage and decoding: what the changes of each table leave, and
    why others could not be decoded."""
    changed: Changed = {}
    undecodable: dict[str, Counter[str]] = {}
    if not schemas:
        return changed, undecodable
    with TemporaryDirectory(prefix="redolake-certify-") as folder:
        path = Path(folder) / "redo.parquet"
        table = pa.Table.from_pylist(list(rows), schema=MINED_SCHEMA)
        names = [_EXPORTED.get(name, name.upper()) for name in table.column_names]
        pq.write_table(table.rename_columns(names), path)
        with explained(path, schemas) as outcomes:
            for row in sorted(outcomes.rows(), key=lambda one: one.first_row):
                if row.table is None:
                    continue
                if row.outcome is Outcome.CHANGE:
                    _apply(changed.setdefault(row.table, {}), row.before, row.after)
                elif row.outcome in (Outcome.UNDECODABLE, Outcome.DAMAGED):
                    undecodable.setdefault(row.table, Counter())[row.why or ""] += 1
    return changed, undecodable


def _apply(
    rows: dict[int, dict[str, Any]],
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
) -> None:
    """One change: its carried columns replace those of the row."""
    old = rows.pop(int(before["ID"]), {}) if before and before.get("ID") is not None else {}
    if after is not None:
        key = int(after.get("ID", old.get("ID", 0)))
        rows[key] = {**(old or rows.get(key, {})), **after}
