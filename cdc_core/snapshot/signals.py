"""What can be asked for from outside?

The JSON has the form of Debezium's: a signal ``execute-snapshot`` with ``{"type": "incremental",
"data-collections": ["OWNER.TABLE"], "additional-conditions": [{"data-collection": "OWNER.TABLE", "filter": "ID > 5"}]}``, or a
signal ``schema-changes`` with ``{"database": "ORCLPDB1", "schema": "OWNER", "changes": [{"type": "ALTER", "id": "…", "table": {…}}]}``,
whose tables have the form of Debezium's schema history.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId, parts_of
from cdc_core.model.scn import SCN_MAX, Scn
from cdc_core.model.signals import SIGNAL_ID_MAX, Signal
from cdc_core.schema.signalled_definitions import GivenColumn, GivenTable, check_given
from cdc_core.state.texts import storable

EXECUTE_SNAPSHOT = "execute-snapshot"
SCHEMA_CHANGES = "schema-changes"


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

    @property
    def databases(self) -> tuple[str, ...]:
        """The databases that names in three parts begin with, each once."""
        named = map(database_of_collection, self.data_collections)
        return tuple(dict.fromkeys(one for one in named if one is not None))

    def condition_of(self, table: TableId) -> str | None:
        """The first condition for a table, None without one."""
        for condition in self.additional_conditions:
            if condition.table == table:
                return condition.filter
        return None


class _HistoryModel(BaseModel):
    """Part of a definition. What has no meaning here (``jdbcType``, ``charsetName``, ``attributes`` …) is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class DefinedColumn(_HistoryModel):
    """A column of a definition, in the form of Debezium's schema history."""

    name: Annotated[str, Field(min_length=1, max_length=128)]
    type_name: Annotated[str, Field(alias="typeName", min_length=1, max_length=128)]
    length: Annotated[int | None, Field(ge=0, le=32767)] = None
    scale: Annotated[int | None, Field(ge=-127, le=127)] = None
    position: int | None = None
    optional: bool = True
    generated: bool | None = False
    has_default: Annotated[bool | None, Field(alias="hasDefaultValue")] = None
    default: Annotated[str | None, Field(alias="defaultValueExpression")] = None

    @property
    def given(self) -> GivenColumn:
        """The column for what makes a version of it."""
        return GivenColumn(
            name=self.name,
            type_name=self.type_name,
            length=self.length,
            scale=self.scale,
            nullable=self.optional,
            is_virtual=bool(self.generated),
            has_default=None if self.default is None and self.has_default is None else True,
            default=self.default,
        )


class DefinedTable(_HistoryModel):
    """A table's definition."""

    columns: Annotated[tuple[DefinedColumn, ...], Field(min_length=1)]
    key: Annotated[tuple[str, ...], Field(alias="primaryKeyColumnNames")] = ()


class TableChange(_HistoryModel):
    """What one table has become. A table that was dropped leaves with its DDL: that is no definition."""

    type: Literal["ALTER", "CREATE"]
    id: str
    table: DefinedTable


class SchemaChanges(_SignalModel):
    """Definitions of tables, as they are as of ``scn``: the signal's own SCN where the sender names none. The database and the schema
    beside ``changes`` are Debezium's; each change names its table in full."""

    database: str | None = None
    schema_name: Annotated[str | None, Field(alias="schema")] = None
    scn: Annotated[int | None, Field(gt=0, le=SCN_MAX)] = None
    changes: Annotated[tuple[TableChange, ...], Field(min_length=1)]

    @property
    def tables(self) -> tuple[TableId, ...]:
        """The tables meant, each once."""
        return tuple(dict.fromkeys(table_from_collection(one.id) for one in self.changes))

    def given(self, signal: str) -> tuple[GivenTable, ...]:
        """The definitions of a signal whose SCN is known."""
        return tuple(
            GivenTable(
                signal=signal,
                as_of=Scn(self.scn or 0),
                scn=Scn(self.scn or 0),
                table=table_from_collection(one.id),
                columns=tuple(
                    column.given
                    for column in sorted(one.table.columns, key=lambda each: each.position or 0)
                ),
                key=one.table.key,
            )
            for one in self.changes
        )


def parse_signal(kind: str, data: dict[str, Any]) -> ExecuteSnapshot | SchemaChanges:
    """Understand a signal.

    Raises:
        ConfigError: Its type is unknown, or its data is not what the type needs; says which part and why.
        UnsupportedTypeError: A column that it defines has a type that is not read.
    """
    if kind == EXECUTE_SNAPSHOT:
        return _snapshot_request(data)
    if kind == SCHEMA_CHANGES:
        return _definitions(data)
    raise ConfigError(
        "unknown type of signal",
        hint=f"Known: {EXECUTE_SNAPSHOT}, {SCHEMA_CHANGES}.",
        type=kind[:80],
    )


def _snapshot_request(data: dict[str, Any]) -> ExecuteSnapshot:
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


def _definitions(data: dict[str, Any]) -> SchemaChanges:
    try:
        request = SchemaChanges.model_validate(data)
    except ValidationError as error:
        raise ConfigError(
            f"the signal's data cannot be used: {_said(error)}",
            hint='Write {"changes": [{"type": "ALTER", "id": "OWNER.TABLE", "table": {"primaryKeyColumnNames": […], "columns": […]}}]}.',
        ) from error
    if len(request.tables) < len(request.changes):
        raise ConfigError(
            "the signal defines a table twice",
            hint="Send one definition of each table; another SCN takes another signal.",
        )
    for given in request.given(""):
        check_given(given)
    return request


def definitions_of(signal: Signal) -> tuple[GivenTable, ...]:
    """The definitions that a signal that was taken brings.

    Raises:
        ConfigError: It cannot be understood.
    """
    return _definitions(signal.data).given(signal.id)


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


def database_of_collection(text: str) -> str | None:
    """The database part of ``DATABASE.OWNER.TABLE``, None without one; in upper case unless it is in quotes."""
    parts = parts_of(text.strip().replace("\\.", "."))
    if len(parts) != 3:
        return None
    quoted, plain = parts[0]
    return quoted or plain.upper()


def refusal_of_id(signal_id: str) -> str | None:
    """Why a signal cannot have this id; None if it can."""
    if len(signal_id) > SIGNAL_ID_MAX:
        return f"its id has more than {SIGNAL_ID_MAX} characters"
    if storable(signal_id) != signal_id:
        return "its id has characters that the metadata store cannot hold"
    return None


def shortened_id(signal_id: str, content: str) -> str:
    """A stand-in for an id that cannot be recorded: its beginning, and a digest that tells it from others with that beginning."""
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{storable(signal_id)[: SIGNAL_ID_MAX - 20]}… {digest}"


def _said(error: ValidationError) -> str:
    """What is wrong and where, without the values."""
    return "; ".join(
        f"{'.'.join(map(str, detail['loc'])) or 'data'}: {detail['msg']}"
        for detail in error.errors(include_input=False, include_context=False, include_url=False)
    )
