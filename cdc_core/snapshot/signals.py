"""What can be asked for from outside, and how is a signal table in Oracle read?

The JSON is Debezium's, so that senders need not change: a signal ``execute-snapshot`` with ``{"type": "incremental",
"data-collections": ["OWNER.TABLE"], "additional-conditions": [{"data-collection": "OWNER.TABLE", "filter": "ID > 5"}]}``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId, parts_of
from cdc_core.model.signals import Signal
from cdc_core.oracle.session import OracleSession

EXECUTE_SNAPSHOT = "execute-snapshot"
ORACLE_CHANNEL = "oracle"
_WATERMARKS = frozenset({"snapshot-window-open", "snapshot-window-close"})
_QUERY = "SELECT ID, TYPE, DATA FROM {table} ORDER BY ID"


class _SignalModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class AdditionalCondition(_SignalModel):
    """Rows of one table that a snapshot is limited to."""

    data_collection: Annotated[str, Field(alias="data-collection")]
    filter: Annotated[str, Field(min_length=1)]

    @property
    def table(self) -> TableId:
        """The table meant."""
        return table_from_collection(self.data_collection)


class ExecuteSnapshot(_SignalModel):
    """Snapshot some tables now. ``type`` is kept for senders: every snapshot here is read as of an SCN while windows go on."""

    type: Literal["incremental", "blocking"] = "incremental"
    data_collections: Annotated[tuple[str, ...], Field(alias="data-collections", min_length=1)]
    additional_conditions: Annotated[
        tuple[AdditionalCondition, ...], Field(alias="additional-conditions")
    ] = ()

    @field_validator("type", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @property
    def tables(self) -> tuple[TableId, ...]:
        """The tables meant, each once."""
        return tuple(dict.fromkeys(map(table_from_collection, self.data_collections)))

    def condition_of(self, table: TableId) -> str | None:
        """The first condition for a table, None without one."""
        for condition in self.additional_conditions:
            if condition.table == table:
                return condition.filter
        return None


class KnownSignals(Protocol):
    """What reading a signal table needs of the metadata store."""

    def signals(self, source: str) -> Sequence[Signal]:
        """All signals of a source."""


def parse_signal(kind: str, data: dict[str, Any]) -> ExecuteSnapshot:
    """Understand a signal.

    Raises:
        ConfigError: Its type is unknown, or its data is not what the type needs; says which part and why.
    """
    if kind != EXECUTE_SNAPSHOT:
        raise ConfigError(
            "unknown type of signal", hint=f"Known: {EXECUTE_SNAPSHOT}.", type=kind[:80]
        )
    try:
        request = ExecuteSnapshot.model_validate(data)
    except ValidationError as error:
        raise ConfigError(
            f"the signal's data cannot be used: {_said(error)}",
            hint='Write {"type": "incremental", "data-collections": ["OWNER.TABLE"]}.',
        ) from error
    stray = [one.table for one in request.additional_conditions if one.table not in request.tables]
    if stray:
        raise ConfigError(
            "a condition names a table that is not among data-collections",
            hint="Add the table to data-collections, or remove the condition.",
            tables=", ".join(map(str, stray)),
        )
    return request


def table_from_collection(text: str) -> TableId:
    r"""Read ``OWNER.TABLE``, or ``DATABASE.OWNER.TABLE`` as Debezium has it (``\.`` counts as a dot), parts in quotes or not.

    Raises:
        ConfigError: It names no single table.
    """
    name = text.strip().replace("\\.", ".")
    parts = parts_of(name)
    if len(parts) == 3:
        name = ".".join(f'"{quoted}"' if quoted else plain for quoted, plain in parts[1:])
    return TableId.parse(name)


def read_signal_table(
    session: OracleSession, config: SourceConfig, store: KnownSignals
) -> list[Signal]:
    """Signals of the configured table that the store does not know yet, by id. The table is only read.

    A row whose data is no JSON object comes as a rejected signal. Watermark rows that Debezium leaves in such tables are
    passed over.

    Raises:
        ConfigError: No signal table is configured.
        PreflightError: It is not there or may not be read.
    """
    if config.signals.table is None:
        raise ConfigError("no signal table is configured", hint="Name one under signals.table.")
    table = TableId.parse(config.signals.table)
    known = {signal.id for signal in store.signals(config.name)}
    rows = session.fetch_all(_QUERY.format(table=table.sql))
    return [
        _record(config.name, str(row[0]), str(row[1] or ""), row[2])
        for row in rows
        if str(row[0]) not in known and row[1] not in _WATERMARKS
    ]


def _record(source: str, signal_id: str, kind: str, text: str | None) -> Signal:
    try:
        data = json.loads(text or "{}")
    except ValueError:
        data = None
    if isinstance(data, dict):
        return Signal(id=signal_id, source=source, type=kind, data=data, channel=ORACLE_CHANNEL)
    reason = "its data is not a JSON object"
    return Signal(
        id=signal_id,
        source=source,
        type=kind,
        data={},
        channel=ORACLE_CHANNEL,
        state="rejected",
        reason=reason,
    )


def _said(error: ValidationError) -> str:
    """What is wrong and where, without the values."""
    return "; ".join(
        f"{'.'.join(map(str, detail['loc'])) or 'data'}: {detail['msg']}"
        for detail in error.errors(include_input=False, include_context=False, include_url=False)
    )
