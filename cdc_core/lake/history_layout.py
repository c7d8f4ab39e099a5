"""What do the columns of a history table say, and what makes a state in it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.lake.tables import mirror_columns, spark_type
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.stage.layout import ORDINAL
from cdc_core.stage.states import (
    ANY_CHANGE,
    FROM_SCN,
    STATE_FIELDS,
    TO,
    TO_SCN,
    StateRule,
    states_schema,
)

_OWN_NAMES = {name: name for name in STATE_FIELDS if name != ORDINAL}


@dataclass(frozen=True, slots=True)
class HistoryLayout:
    """How states are kept.

    Attributes:
        names: What the table calls the columns of ``stage.states.STATE_FIELDS``; it has no others.
        includes_end: The end of a state is its last SCN, not the first behind it.
        rule: What makes a state.
    """

    names: Mapping[str, str] = field(default_factory=lambda: _OWN_NAMES)
    includes_end: bool = False
    rule: StateRule = ANY_CHANGE

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
                values = pc.subtract(values, _ENDS[name]).cast(STATE_FIELDS[name])
            columns.append(values)
        return pa.Table.from_arrays(columns, schema=self.columns(schema))

    def current(self, rows: pa.Table, schema: TableSchema) -> pa.Table:
        """Current states as the table has them, in the columns of ``stage.states.states_schema``;
        what it does not keep is NULL."""
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
        tracked = None if self.rule.tracked is None else sorted(self.rule.tracked)
        said = {
            "names": dict(self.names),
            "includes_end": self.includes_end,
            "tracked": tracked,
            "each_change": self.rule.each_change,
        }
        return {"columns": own, **said}

    @property
    def _kept(self) -> list[str]:
        return [name for name in STATE_FIELDS if name in self.names]


_ENDS: Mapping[str, Any] = {TO_SCN: 1, TO: pa.scalar(timedelta(microseconds=1), pa.duration("us"))}
"""What lies between the first moment behind a state and its last one."""
