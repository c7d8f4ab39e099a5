"""Which definitions of tables does a signal ``schema-changes`` bring?

Its data has the form of Debezium's: ``{"database": "ORCLPDB1", "schema": "OWNER", "changes":
[{"type": "ALTER", "id": "…", "table": {…}}]}``, whose tables have the form of Debezium's schema
history.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import SCN_MAX, Scn
from cdc_core.model.signals import Signal
from cdc_core.schema.signalled_definitions import GivenColumn, GivenTable, check_given
from cdc_core.signals.data import SignalData, said
from cdc_core.signals.data_collections import table_from_collection


class _HistoryModel(BaseModel):
    """Part of a definition. What has no meaning here (``jdbcType``, ``charsetName``, ``attributes``
    …) is passed over."""

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
    """What one table has become. A table that was dropped leaves with its DDL: that is no
    definition."""

    type: Literal["ALTER", "CREATE"]
    id: str
    table: DefinedTable


class SchemaChanges(SignalData):
    """Definitions of tables, as they are as of ``scn``: the signal's own SCN where the sender names
    none. The database and the schema beside ``changes`` are Debezium's; each change names its table
    in full."""

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


def parse_schema_changes(data: dict[str, Any]) -> SchemaChanges:
    """Understand the data of a signal ``schema-changes``.

    Raises:
        ConfigError: It is not what the signal needs, or defines a table twice.
        UnsupportedTypeError: A column has a type that is not read.
    """
    try:
        request = SchemaChanges.model_validate(data)
    except ValidationError as error:
        raise ConfigError(
            f"the signal's data cannot be used: {said(error)}",
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
    return parse_schema_changes(signal.data).given(signal.id)
