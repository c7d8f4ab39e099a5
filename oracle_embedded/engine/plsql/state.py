"""What does a PL/SQL block hold while it runs?"""

from __future__ import annotations

from dataclasses import dataclass, field

from oracle_embedded.api import OracleError, Value
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.sql.blocks import compile_error


@dataclass(slots=True)
class BlockState:
    """State of one run: values of binds first, then of variables, all in Oracle's encodings."""

    session: SessionState
    sql: str
    values: list[Value]
    types: list[SqlType]
    bind_count: int
    names: dict[str, int] = field(default_factory=dict)
    """Variables in scope, as positions in ``values``."""
    constants: set[str] = field(default_factory=set)
    read_binds: set[int] = field(default_factory=set)
    row_count: int = 0
    handling: OracleError | None = None
    """The error whose handler is at work."""

    def new_value(self, kind: SqlType) -> int:
        """Make room for one more value; gives its position."""
        self.values.append(None)
        self.types.append(kind)
        return len(self.values) - 1

    def error(self, pos: int, code: int, text: str) -> OracleError:
        """ORA-06550 at a place of the block."""
        return compile_error(self.sql, pos, code, text)
