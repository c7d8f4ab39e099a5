"""What does DBMS_STATS leave in a table's definition? Statistics themselves decide nothing here.

Extended statistics of a group of columns are kept on a hidden virtual column (SYS_STU…) that
ALL_TAB_COLS alone shows, and that comes and goes by DDL of the table, which the redo has. What is
not here: statistics of expressions.

Source: Oracle Database PL/SQL Packages and Types Reference 19c, DBMS_STATS (GATHER_TABLE_STATS,
``method_opt``; DROP_EXTENDED_STATS); Database SQL Tuning Guide 19c, "Managing Extended Statistics".
The clause BY USER FOR STATISTICS is undocumented; a redo reader's reports have it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from oracle_embedded.api import EngineSession, OracleError
from oracle_embedded.engine.datatypes.types import NUMBER
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.storage.catalog import ColumnDef, TableDef

_HASH = "SYS_OP_COMBINED_HASH"
_GROUP = re.compile(r"\(([^()]+)\)")


def gather(session: EngineSession, arguments: Mapping[str, object]) -> None:
    """GATHER_TABLE_STATS: each group of columns in METHOD_OPT gets its hidden column."""
    state = cast("SessionState", session)
    for group in _GROUP.findall(str(arguments["METHOD_OPT"] or "")):
        table = _table(state, arguments)
        column = _extension(table, group)
        if all(one.name != column.name for one in table.hidden):
            grown = replace(
                table,
                hidden=(*table.hidden, column),
                next_internal_id=table.next_internal_id + 1,
            )
            value = str(column.expression).replace(_HASH, _HASH.lower())
            _alter(state, grown, f"add ({column.name} as ({value}) virtual BY USER for statistics)")


def drop(session: EngineSession, arguments: Mapping[str, object]) -> None:
    """DROP_EXTENDED_STATS."""
    state = cast("SessionState", session)
    table = _table(state, arguments)
    name = _extension(table, str(arguments["EXTENSION"]).strip("() ")).name
    left = tuple(one for one in table.hidden if one.name != name)
    if len(left) == len(table.hidden):
        raise OracleError(20000, f'extension "{arguments["EXTENSION"]}" does not exist')
    _alter(state, replace(table, hidden=left), f"drop column {name}")


def _extension(table: TableDef, group: str) -> ColumnDef:
    names = [one.strip().strip('"').upper() for one in group.split(",")]
    if unknown := [one for one in names if one not in table.by_name]:
        raise OracleError(904, f'"{unknown[0]}": invalid identifier')
    quoted = ",".join(f'"{name}"' for name in names)
    expression = f"{_HASH}({quoted})"
    digest = hashlib.md5(expression.encode(), usedforsecurity=False).hexdigest().upper()
    return ColumnDef(
        internal_id=table.next_internal_id,
        name=f"SYS_STU{digest[:23]}",
        type=NUMBER,
        expression=expression,
        is_invisible=True,
        is_guard=True,
    )


def _alter(session: SessionState, table: TableDef, clause: str) -> None:
    session.commit()
    text = f'alter table "{table.owner}"."{table.name}" {clause}'
    session.database.log_ddl(session, text, table)


def _table(session: SessionState, arguments: Mapping[str, object]) -> TableDef:
    owner, name = (str(arguments[one] or session.schema).upper() for one in ("OWNNAME", "TABNAME"))
    found = session.database.store.catalog.find(owner, name)
    if not isinstance(found, TableDef):
        raise OracleError(20000, f'Unable to analyze TABLE "{owner}"."{name}"')
    if owner != session.username and not session.has_privilege("ANALYZE ANY"):
        raise OracleError(20000, f'Unable to analyze TABLE "{owner}"."{name}"')
    return found
