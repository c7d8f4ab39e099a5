"""Which types of signals are there, and what data does each carry?

The JSON has the form of Debezium's. A signal has an id, a type and data: the type is one of
:data:`KNOWN_TYPES`, or one that ``signals.actions`` names; the data are an object whose keys depend
on the type, for example ``{"data-collections": ["SHOP.ORDERS"]}`` of ``execute-snapshot``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.signals.data import SignalData, said
from cdc_core.signals.data_collections import tables_of_collections
from cdc_core.signals.schema_changes import SchemaChanges, parse_schema_changes

EXECUTE_SNAPSHOT = "execute-snapshot"
STOP_SNAPSHOT = "stop-snapshot"
PAUSE_SNAPSHOT = "pause-snapshot"
RESUME_SNAPSHOT = "resume-snapshot"
LOG = "log"
SCHEMA_CHANGES = "schema-changes"
DROP_TRANSACTION = "drop-transaction"
KNOWN_TYPES = (
    EXECUTE_SNAPSHOT,
    STOP_SNAPSHOT,
    PAUSE_SNAPSHOT,
    RESUME_SNAPSHOT,
    LOG,
    SCHEMA_CHANGES,
    DROP_TRANSACTION,
)

SnapshotType = Literal["incremental", "blocking"]


class AdditionalCondition(SignalData):
    """Rows that a snapshot of some tables is limited to: the first condition whose
    ``data-collection`` names a table is the table's."""

    data_collection: Annotated[str, Field(alias="data-collection")]
    filter: Annotated[str, Field(min_length=1)]


class ExecuteSnapshot(SignalData):
    """Read some tables now. A ``blocking`` snapshot may have whole SELECT statements as filters."""

    type: SnapshotType = "incremental"
    data_collections: Annotated[tuple[str, ...], Field(alias="data-collections", min_length=1)]
    additional_conditions: Annotated[
        tuple[AdditionalCondition, ...], Field(alias="additional-conditions")
    ] = ()
    additional_condition: Annotated[str | None, Field(alias="additional-condition")] = None
    surrogate_key: Annotated[str | None, Field(alias="surrogate-key", min_length=1)] = None

    @field_validator("type", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value


class StopSnapshot(SignalData):
    """Leave out the chunks that were not read yet: of some tables, or of all without an entry."""

    type: Literal["incremental", "blocking"] = "incremental"
    data_collections: Annotated[tuple[str, ...], Field(alias="data-collections")] = ()

    @field_validator("type", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class PauseSnapshot:
    """Read no further chunks. Whatever the sender gives as data has no meaning."""


@dataclass(frozen=True, slots=True)
class ResumeSnapshot:
    """Read chunks again. Whatever the sender gives as data has no meaning."""


class LogMessage(SignalData):
    """Write a line to the log; ``{}`` stands for the source's position."""

    message: Annotated[str, Field(min_length=1, max_length=2000)]


class DropTransaction(SignalData):
    """Leave a transaction out."""

    transaction_id: Annotated[str, Field(alias="transaction-id", min_length=1, max_length=100)]

    @property
    def xid(self) -> str:
        """The transaction as the ledger has it."""
        return self.transaction_id.strip().lower()


@dataclass(frozen=True, slots=True)
class CustomAction:
    """Call what ``signals.actions`` names under the type."""

    type: str
    data: dict[str, Any]


Request = (
    ExecuteSnapshot
    | StopSnapshot
    | PauseSnapshot
    | ResumeSnapshot
    | LogMessage
    | DropTransaction
    | SchemaChanges
    | CustomAction
)

_FORMS: dict[str, tuple[type[SignalData], str]] = {
    EXECUTE_SNAPSHOT: (
        ExecuteSnapshot,
        'Write {"type": "incremental", "data-collections": ["OWNER.TABLE"]}.',
    ),
    STOP_SNAPSHOT: (
        StopSnapshot,
        'Write {"data-collections": ["OWNER.TABLE"]}, or {} to stop all snapshots.',
    ),
    LOG: (LogMessage, 'Write {"message": "text, with {} for the position"}.'),
    DROP_TRANSACTION: (DropTransaction, 'Write {"transaction-id": "0a001f00c2030000"}.'),
}


def parse_signal(kind: str, data: dict[str, Any], custom: Collection[str] = ()) -> Request:
    """Understand a signal.

    Args:
        kind: Its type.
        data: Its data.
        custom: The types of ``signals.actions``.

    Raises:
        ConfigError: Its type is unknown, or its data is not what the type needs; says which part
            and why.
        UnsupportedTypeError: A column that it defines has a type that is not read.
    """
    if kind in custom:
        return CustomAction(kind, data)
    if kind == SCHEMA_CHANGES:
        return parse_schema_changes(data)
    if kind == PAUSE_SNAPSHOT:
        return PauseSnapshot()
    if kind == RESUME_SNAPSHOT:
        return ResumeSnapshot()
    if kind not in _FORMS:
        raise ConfigError(
            "unknown type of signal",
            hint=f"Known: {', '.join((*KNOWN_TYPES, *sorted(custom)))}.",
            type=kind[:80],
        )
    model, hint = _FORMS[kind]
    try:
        return model.model_validate(data)  # type: ignore[return-value]  # one of Request
    except ValidationError as error:
        raise ConfigError(f"the signal's data cannot be used: {said(error)}", hint=hint) from error


def conditions_asked(
    request: ExecuteSnapshot,
    tables: Sequence[TableId],
    captured: Sequence[TableId],
    databases: Iterable[str],
) -> dict[TableId, str]:
    """The filter of each table that has one, as the sender wrote it.

    Raises:
        ConfigError: A condition names a table that the snapshot does not read.
    """
    known = tuple(databases)
    found: dict[TableId, str] = {}
    for one in request.additional_conditions:
        named = tables_of_collections([one.data_collection], captured, known)
        meant = [table for table in named if table in tables]
        if not meant:
            raise ConfigError(
                "a condition names a table that is not among data-collections",
                hint="Add the table to data-collections, or remove the condition.",
                tables=", ".join(map(str, named)),
            )
        for table in meant:
            found.setdefault(table, one.filter)
    if request.additional_condition and request.additional_condition.strip():
        for table in tables:
            found.setdefault(table, request.additional_condition)
    return found
