"""What do the columns of a history table say, and what makes a state in it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.config.history import HistoryColumn, HistoryConfig
from cdc_core.errors import SchemaMismatchError
from cdc_core.lake.tables import mirror_columns, spark_type
from cdc_core.model.patterns import ColumnRule
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.stage.layout import ORDINAL
from cdc_core.stage.states import (
    ENDED_BY,
    FROM,
    FROM_SCN,
    IS_CURRENT,
    STATE_FIELDS,
    TO,
    TO_SCN,
    StateRule,
    states_schema,
)

_FIELDS: Mapping[str, HistoryColumn] = {
    FROM_SCN: "valid_from_scn",
    TO_SCN: "valid_to_scn",
    FROM: "valid_from",
    TO: "valid_to",
    IS_CURRENT: "is_current",
    ENDED_BY: "op",
    ORDINAL: "ordinal",
}
"""What the configuration calls the columns of ``stage.states.STATE_FIELDS``."""


@dataclass(frozen=True, slots=True)
class HistoryLayout:
    """How states are kept.

    Attributes:
        names: What the table calls the columns of ``stage.states.STATE_FIELDS``; it has no others.
        includes_end: The end of a state is its last SCN, not the first behind it.
        each_change: Each change of a transaction makes a state.
        tracked: Names and patterns of the columns whose changes make a state; none for all.
        days: For so many days states are kept that have ended; None for ever.
        only_last: Of each key its last state alone is kept.
    """

    names: Mapping[str, str]
    includes_end: bool = False
    each_change: bool = False
    tracked: tuple[str, ...] = ()
    days: int | None = None
    only_last: bool = False

    @classmethod
    def of(
        cls, config: HistoryConfig, tracked: tuple[str, ...] = (), days: int | None = None
    ) -> HistoryLayout:
        """That of a configuration, and what it says of a table."""
        names = _fields(config.named)
        return cls(names, config.end == "inclusive", config.changes == "all", tracked, days)

    @classmethod
    def of_soft_deletes(cls, config: HistoryConfig, days: int | None = None) -> HistoryLayout:
        """That of a table that has a row per key, deleted ones among them."""
        return cls(_fields(config.of_soft_deletes), days=days, only_last=True)

    def rule(self, schema: TableSchema) -> StateRule:
        """What makes a state.

        Raises:
            SchemaMismatchError: The table has none of the columns whose changes count, or has a
                column of the name that one of the history's has.
        """
        wanted = ColumnRule(include=self.tracked)
        tracked = frozenset(one for one in schema.column_names if not wanted.excludes(one))
        if self.tracked and not tracked - set(schema.key):
            raise SchemaMismatchError(
                "the table has none of the columns whose changes make a state",
                hint="Name columns that it has under its history_columns.",
                table=schema.table,
            )
        own = {name.lower() for name in self.names.values()}
        if taken := sorted(one for one in schema.column_names if one.lower() in own):
            raise SchemaMismatchError(
                "columns of the history have the same names as columns of the table",
                hint="Give them other names under lake.history_table.columns.",
                table=schema.table,
                columns=", ".join(taken),
            )
        return StateRule(tracked if self.tracked else None, self.each_change)

    def limit(self, scn: int) -> int:
        """What the table says as the end of a state that ended at an SCN."""
        return scn - self.includes_end

    @property
    def starts(self) -> str:
        """The column with the SCN at which a state begins."""
        return self.names[FROM_SCN]

    @property
    def ends(self) -> str:
        """The column with the SCN of its end; NULL for current ones."""
        return self.names[TO_SCN]

    def columns(self, schema: TableSchema) -> pa.Schema:
        """The table's columns, with Oracle's types as comments."""
        said = mirror_columns(schema)
        own = [
            one.with_metadata(said.field(one.name).metadata) if one.name in said.names else one
            for one in arrow_schema(schema)
        ]
        return pa.schema(
            [*own, *(pa.field(self.names[one], STATE_FIELDS[one]) for one in self._kept)]
        )

    def stored(self, states: pa.Table, schema: TableSchema) -> pa.Table:
        """States, in the columns of ``stage.states.states_schema``, as the table has them."""
        columns = [states[name] for name in schema.column_names]
        for name in self._kept:
            values = states[name]
            if self.includes_end and name in _ENDS:
                last = pa.scalar(1, pa.int64() if name == TO_SCN else pa.duration("us"))
                values = pc.subtract(values, last).cast(STATE_FIELDS[name])
            columns.append(values)
        return pa.Table.from_arrays(columns, schema=self.columns(schema))

    def read(self, rows: pa.Table, schema: TableSchema) -> pa.Table:
        """States as the table has them, in the columns of ``stage.states.states_schema``; what it
        does not keep is NULL. The ends are the table's."""
        kinds = states_schema(schema)
        names = {
            **dict.fromkeys(schema.column_names),
            **{one: self.names[one] for one in self._kept},
        }
        columns = [
            rows[names[one.name] or one.name]
            if one.name in names
            else pa.nulls(len(rows), one.type)
            for one in kinds
        ]
        return pa.Table.from_arrays(columns, schema=kinds)

    def described(self, schema: TableSchema) -> dict[str, Any]:
        """What decides whether a table has these columns and states: of each column name, identity
        and type, and the rule."""
        fields = states_schema(schema)
        own = {
            one.name: [one.stored_as, spark_type(fields.field(one.name).type)]
            for one in schema.columns
        }
        tracked = self.rule(schema).tracked
        said = {
            "names": dict(self.names),
            "includes_end": self.includes_end,
            "tracked": None if tracked is None else sorted(tracked),
            "each_change": self.each_change,
            "only_last": self.only_last,
        }
        return {"columns": own, **said}

    @property
    def _kept(self) -> list[str]:
        return [name for name in STATE_FIELDS if name in self.names]


def _fields(said: Mapping[HistoryColumn, str]) -> dict[str, str]:
    return {field: said[name] for field, name in _FIELDS.items() if name in said}


_ENDS = frozenset({TO_SCN, TO})
"""Columns with the first moment behind a state, which lies 1 behind its last one."""
