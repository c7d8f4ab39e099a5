"""How does DBMS_REDEFINITION give a table another form while it is in use?

START fills the interim table with the table's rows, SYNC brings it to what they are now, FINISH
does so once more and lets the two tables change names: the definition and the object number that a
name stands for are others from then on, without a DDL statement of anybody. All rows go as DML.
What is not here: column mappings, partitions, dependent objects, materialized view logs.

Source: Oracle Database PL/SQL Packages and Types Reference 19c, DBMS_REDEFINITION; Database
Administrator's Guide 19c, "Redefining Tables Online".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from oracle_embedded.api import EngineSession, OracleError
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.storage.catalog import TableDef


def start(session: EngineSession, arguments: Mapping[str, object]) -> None:
    """START_REDEF_TABLE."""
    _synchronize(cast("SessionState", session), arguments)


def synchronize(session: EngineSession, arguments: Mapping[str, object]) -> None:
    """SYNC_INTERIM_TABLE."""
    _synchronize(cast("SessionState", session), arguments)


def finish(session: EngineSession, arguments: Mapping[str, object]) -> None:
    """FINISH_REDEF_TABLE."""
    state = cast("SessionState", session)
    _synchronize(state, arguments)
    database = state.database
    with database.changing_catalog():
        table, interim = _tables(state, arguments)
        scn, now = database.store.clock.next(), database.store.now()
        waiting = replace(interim, name=f"{interim.name}$")  # two tables never share a name
        for one in (waiting, replace(table, name=interim.name), replace(interim, name=table.name)):
            changed = replace(
                one, object_version=one.object_version + 1, changed=now, structure_scn=scn, scn_from=scn
            )  # fmt: skip
            database.store.catalog.put(changed, scn)


def abort(session: EngineSession, arguments: Mapping[str, object]) -> None:
    """ABORT_REDEF_TABLE."""
    _tables(cast("SessionState", session), arguments)


def _synchronize(session: SessionState, arguments: Mapping[str, object]) -> None:
    session.commit()
    table, interim = _tables(session, arguments)
    names = [column.name for column in table.columns if column.name in interim.by_name]
    columns = ", ".join(f'"{name}"' for name in names)
    source, target = (f'"{one.owner}"."{one.name}"' for one in (table, interim))
    session.run(
        f"DELETE FROM {target} WHERE ROWID IN (SELECT R FROM (SELECT ROWID R, {columns} FROM {target}) i "
        f"WHERE NOT EXISTS (SELECT 1 FROM {source} t WHERE {_same(names)}))"
    )
    session.run(
        f"INSERT INTO {target} ({columns}) SELECT {columns} FROM {source} MINUS SELECT {columns} FROM {target}"
    )
    session.commit()


def _same(names: list[str]) -> str:
    return " AND ".join(f'DECODE(t."{name}", i."{name}", 1, 0) = 1' for name in names)


def _tables(session: SessionState, arguments: Mapping[str, object]) -> tuple[TableDef, TableDef]:
    owner = str(arguments["UNAME"])
    found = [
        session.database.store.catalog.find(owner, str(arguments[name]))
        for name in ("ORIG_TABLE", "INT_TABLE")
    ]
    table, interim = found
    if not isinstance(table, TableDef) or not isinstance(interim, TableDef):
        raise OracleError(942, "table or view does not exist")
    if not any(key.kind == "P" for key in table.constraints):
        raise OracleError(
            12089, f'cannot online redefine table "{owner}"."{table.name}" with no primary key'
        )
    return table, interim
