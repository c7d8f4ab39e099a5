"""What can a user configure of history tables?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cdc_core.config.base import ConfigModel

HistoryKind = Literal["none", "scd2", "soft_deletes"]

HistoryColumn = Literal[
    "valid_from_scn", "valid_to_scn", "valid_from", "valid_to", "is_current", "op", "ordinal"
]

_OWN: Mapping[HistoryColumn, str | None] = {
    "valid_from_scn": "_cdc_valid_from_scn",
    "valid_to_scn": "_cdc_valid_to_scn",
    "valid_from": "_cdc_valid_from",
    "valid_to": "_cdc_valid_to",
    "is_current": "_cdc_is_current",
    "op": "_cdc_op",
    "ordinal": None,
}
_OF_SOFT_DELETES: Mapping[HistoryColumn, str | None] = {
    "valid_from_scn": "_cdc_changed_scn",
    "valid_to_scn": "_cdc_deleted_scn",
    "valid_from": "_cdc_changed_at",
    "valid_to": "_cdc_deleted_at",
    "op": "_cdc_deleted_by",
}
_NEEDED: tuple[HistoryColumn, HistoryColumn] = ("valid_from_scn", "valid_to_scn")


class HistoryConfig(ConfigModel):
    """Columns of history tables, and what begins a state. If you change this, the next update
    rewrites the histories from the change logs."""

    names: Literal["redolake", "auto_cdc"] = "redolake"
    """Names of the columns that the history adds to the table's own. ``auto_cdc``: the names of
    Databricks' AUTO CDC (SCD type 2, sequenced by the commit SCN): only ``__START_AT`` and
    ``__END_AT``."""

    columns: dict[
        HistoryColumn, Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")] | None
    ] = Field(default_factory=dict)
    """Other names for some of them; ``null`` omits a column, except the SCNs. ``ordinal``, the
    position of the change that began the state among all changes, exists only if it has a name
    here, or with ``changes: all``, as ``_cdc_ordinal``."""

    end: Literal["exclusive", "inclusive"] = "exclusive"
    """Meaning of a state's end. ``exclusive``: the SCN and the time at which the next state began
    or the row was deleted. ``inclusive``: the SCN and the microsecond before that, for queries with
    BETWEEN. Current states have NULL."""

    changes: Literal["last", "all"] = "last"
    """Which changes of one transaction begin a state of a row. ``last``: only the last, the
    committed one. ``all``: each; states within a transaction begin and end at its SCN, in the order
    of ``_cdc_ordinal``. If a row leaves its key in the transaction, only the key's last change
    counts. ``all`` needs ``end: exclusive``."""

    @model_validator(mode="after")
    def _can_be_kept(self) -> Self:
        for named in (self.named, self.of_soft_deletes):
            if missing := [name for name in _NEEDED if name not in named]:
                raise ValueError(f"columns: {', '.join(missing)}: a history cannot do without")
            if len({name.lower() for name in named.values()}) < len(named):
                raise ValueError("columns: two of them have one name")
        if self.changes == "all" and self.end == "inclusive":
            raise ValueError(
                "changes: all, and end: inclusive: a state within a transaction would end before it begins"
            )
        return self

    @property
    def named(self) -> dict[HistoryColumn, str]:
        """The columns that there are, in their order, with their names."""
        return self._renamed(self._by_default())

    @property
    def of_soft_deletes(self) -> dict[HistoryColumn, str]:
        """The same of a table that keeps deleted rows."""
        return self._renamed(dict(_OF_SOFT_DELETES))

    def _by_default(self) -> dict[HistoryColumn, str | None]:
        found = dict(_OWN)
        if self.changes == "all":
            found["ordinal"] = "_cdc_ordinal"
        if self.names == "auto_cdc":
            found = dict.fromkeys(found)
            found |= {"valid_from_scn": "__START_AT", "valid_to_scn": "__END_AT"}
            if self.changes == "all":
                found["ordinal"] = "_cdc_ordinal"
        return found

    def _renamed(self, names: dict[HistoryColumn, str | None]) -> dict[HistoryColumn, str]:
        names |= self.columns
        return {name: own for name, own in names.items() if own is not None}
