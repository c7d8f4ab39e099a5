"""What do the procedures of DBMS_RLS and DBMS_REDACT do?

Both change what a table's definition says of those who query it, and commit before and after. What
is not here: policies on views and synonyms, policy groups and contexts, columns that make a policy
relevant; RANDOM and REGEXP redaction, named expressions.

Source: Oracle Database PL/SQL Packages and Types Reference 19c, DBMS_RLS and DBMS_REDACT; Database
Error Messages, ORA-28060 to ORA-28115.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

from oracle_embedded.api import EngineSession, OracleError, OraType, Parameter, Procedure
from oracle_embedded.engine.compile.plan import (
    REDACT_FULL,
    REDACT_NONE,
    REDACT_NULLIFY,
    REDACT_PARTIAL,
)
from oracle_embedded.engine.compile.scopes import Scope
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.functions.redaction import check_parameters
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.environment import compilation
from oracle_embedded.engine.sql.queries import parse_condition
from oracle_embedded.engine.storage.catalog import ColumnDef, TableDef, ViewDef
from oracle_embedded.engine.storage.policies import RedactedColumn, Redaction, RowPolicy

Arguments = Mapping[str, object]
Change = Callable[[SessionState, TableDef, Arguments], TableDef]

CONSTANTS = {
    ("DBMS_REDACT", "NONE"): REDACT_NONE, ("DBMS_REDACT", "FULL"): REDACT_FULL, ("DBMS_REDACT", "PARTIAL"): REDACT_PARTIAL,
    ("DBMS_REDACT", "RANDOM"): 4, ("DBMS_REDACT", "REGEXP"): 5, ("DBMS_REDACT", "NULLIFY"): REDACT_NULLIFY,
    ("DBMS_REDACT", "ADD_COLUMN"): 1, ("DBMS_REDACT", "DROP_COLUMN"): 2, ("DBMS_REDACT", "MODIFY_EXPRESSION"): 3,
    ("DBMS_REDACT", "MODIFY_COLUMN"): 4, ("DBMS_RLS", "STATIC"): 1, ("DBMS_RLS", "SHARED_STATIC"): 2,
    ("DBMS_RLS", "CONTEXT_SENSITIVE"): 3, ("DBMS_RLS", "SHARED_CONTEXT_SENSITIVE"): 4, ("DBMS_RLS", "DYNAMIC"): 5,
}  # fmt: skip
_ADD_COLUMN, _DROP_COLUMN, _MODIFY_EXPRESSION, _MODIFY_COLUMN = 1, 2, 3, 4
_STATEMENTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_REDACTABLE = ("number", "float", "double", "text", "clob", "blob", "date", "timestamp", "tz")


def _changing(change: Change) -> Callable[[EngineSession, Arguments], None]:
    """A procedure that puts another definition of its table in the place of the present one; no
    DDL, so nothing in the redo."""

    def run(session: EngineSession, arguments: Arguments) -> None:
        state = cast("SessionState", session)
        state.commit()
        with state.database.changing_catalog():
            table = _table(state, arguments)
            changed = change(state, table, arguments)
            store = state.database.store
            store.catalog.put(changed, store.clock.next())

    return run


def _name(value: object, default: str = "") -> str:
    """A name as the dictionary has it: in capitals unless it stands in double quotes."""
    text = str(value or default)
    return text[1:-1] if text.startswith('"') else text.upper()


def _table(session: SessionState, arguments: Arguments) -> TableDef:
    owner = _name(arguments["OBJECT_SCHEMA"], session.schema)
    name = _name(arguments["OBJECT_NAME"])
    found = session.database.store.catalog.find(owner, name)
    if isinstance(found, ViewDef):
        raise unsupported("policies of views")
    if not isinstance(found, TableDef):
        raise OracleError(942, "table or view does not exist")
    return found


# --- DBMS_RLS -------------------------------------------------------------------------------------


def _add_row_policy(session: SessionState, table: TableDef, arguments: Arguments) -> TableDef:
    name = _name(arguments["POLICY_NAME"])
    if any(policy.name == name for policy in table.policies):
        raise OracleError(28101, "policy already exists")
    if arguments["SEC_RELEVANT_COLS"]:
        raise unsupported("columns that make a policy relevant")
    kinds = tuple(
        one.strip().upper()
        for one in str(arguments["STATEMENT_TYPES"] or ",".join(_STATEMENTS)).split(",")
    )
    if not set(kinds) <= set(_STATEMENTS):
        raise OracleError(28104, "input value for statement_types is not valid")
    made = RowPolicy(
        name=name,
        owner=_name(arguments["FUNCTION_SCHEMA"], session.schema),
        function=_name(arguments["POLICY_FUNCTION"]),
        kinds=kinds,
        update_check=bool(arguments["UPDATE_CHECK"]),
        enabled=arguments["ENABLE"] is not False,
    )
    return replace(table, policies=(*table.policies, made))


def _policy_at(table: TableDef, arguments: Arguments) -> int:
    names = [policy.name for policy in table.policies]
    name = _name(arguments["POLICY_NAME"])
    if name not in names:
        raise OracleError(28102, "policy does not exist")
    return names.index(name)


def _drop_row_policy(_session: SessionState, table: TableDef, arguments: Arguments) -> TableDef:
    at = _policy_at(table, arguments)
    return replace(table, policies=table.policies[:at] + table.policies[at + 1 :])


def _enable_row_policy(_session: SessionState, table: TableDef, arguments: Arguments) -> TableDef:
    at = _policy_at(table, arguments)
    changed = replace(table.policies[at], enabled=arguments["ENABLE"] is not False)
    return replace(table, policies=(*table.policies[:at], changed, *table.policies[at + 1 :]))


# --- DBMS_REDACT ----------------------------------------------------------------------------------


def _add_redaction(session: SessionState, table: TableDef, arguments: Arguments) -> TableDef:
    if table.redaction is not None:
        raise OracleError(28069, "A data redaction policy already exists on this object.")
    description = arguments["POLICY_DESCRIPTION"]
    made = Redaction(
        name=_name(arguments["POLICY_NAME"]),
        expression=_expression(session, arguments),
        columns=() if arguments["COLUMN_NAME"] is None else (_redacted(table, arguments),),
        enabled=arguments["ENABLE"] is not False,
        description=None if description is None else str(description),
    )
    return replace(table, redaction=made)


def _expression(session: SessionState, arguments: Arguments) -> str:
    text = str(arguments["EXPRESSION"] or "").strip()
    if not text:
        raise OracleError(28063, "The policy expression is empty.")
    compilation(session, None).condition(parse_condition(text), Scope())
    return text


def _column(table: TableDef, arguments: Arguments) -> ColumnDef:
    name = _name(arguments["COLUMN_NAME"])
    if not name:
        raise OracleError(28067, "missing or invalid column name")
    if name not in table.by_name:
        raise OracleError(28066, f'invalid column "{name}"')
    return table.by_name[name]


def _redacted(table: TableDef, arguments: Arguments) -> RedactedColumn:
    column = _column(table, arguments)
    given = arguments["FUNCTION_TYPE"]
    kind = REDACT_FULL if given is None else int(str(given))
    if kind not in (REDACT_NONE, REDACT_FULL, REDACT_PARTIAL, REDACT_NULLIFY):
        raise unsupported("redaction of this function type")
    family = column.type.family
    if family not in _REDACTABLE:
        raise OracleError(28073, f'The column "{column.name}" has an unsupported datatype.')
    parameters = arguments["FUNCTION_PARAMETERS"]
    if kind == REDACT_PARTIAL:
        check_parameters(family, str(parameters or ""))
    return RedactedColumn(
        internal_id=column.internal_id,
        kind=kind,
        parameters=None if parameters is None else str(parameters),
    )


def _redaction(table: TableDef, arguments: Arguments) -> Redaction:
    policy = table.redaction
    if policy is None or policy.name != _name(arguments["POLICY_NAME"]):
        raise OracleError(
            28068, f'The object "{table.owner}.{table.name}" does not have a data redaction policy.'
        )
    return policy


def _alter_redaction(session: SessionState, table: TableDef, arguments: Arguments) -> TableDef:
    policy = _redaction(table, arguments)
    given = arguments["ACTION"]
    action = _ADD_COLUMN if given is None else int(str(given))
    if action == _MODIFY_EXPRESSION:
        return replace(table, redaction=replace(policy, expression=_expression(session, arguments)))
    if action not in (_ADD_COLUMN, _DROP_COLUMN, _MODIFY_COLUMN):
        raise unsupported("this action of DBMS_REDACT.ALTER_POLICY")
    column = _column(table, arguments)
    others = tuple(one for one in policy.columns if one.internal_id != column.internal_id)
    is_there = others != policy.columns
    if action == _ADD_COLUMN and is_there:
        raise OracleError(28060, "A data redaction policy already exists on this column.")
    if action != _ADD_COLUMN and not is_there:
        raise OracleError(
            28070, f'The column "{column.name}" does not have a data redaction policy.'
        )
    added = () if action == _DROP_COLUMN else (_redacted(table, arguments),)
    return replace(table, redaction=replace(policy, columns=(*others, *added)))


def _drop_redaction(_session: SessionState, table: TableDef, arguments: Arguments) -> TableDef:
    _redaction(table, arguments)
    return replace(table, redaction=None)


def _enabling(enabled: bool) -> Change:
    def change(_session: SessionState, table: TableDef, arguments: Arguments) -> TableDef:
        policy = _redaction(table, arguments)
        if policy.enabled is enabled:
            raise (
                OracleError(28079, "Policy is already enabled.")
                if enabled
                else OracleError(28080, "Policy is already disabled.")
            )
        return replace(table, redaction=replace(policy, enabled=enabled))

    return change


# --- signatures -----------------------------------------------------------------------------------


def _text(name: str, *, required: bool = False) -> Parameter:
    return Parameter(name, OraType.VARCHAR, required)


def _number(name: str) -> Parameter:
    return Parameter(name, OraType.NUMBER, required=False)


def _flag(name: str, *, default: bool) -> Parameter:
    return Parameter(name, OraType.BOOLEAN, required=False, default=default)


_OBJECT = (_text("OBJECT_SCHEMA"), _text("OBJECT_NAME", required=True))
_POLICY = (*_OBJECT, _text("POLICY_NAME", required=True))
_FUNCTION = (_number("FUNCTION_TYPE"), _text("FUNCTION_PARAMETERS"))
_REGEXP = (
    _text("REGEXP_PATTERN"), _text("REGEXP_REPLACE_STRING"), _number("REGEXP_POSITION"), _number("REGEXP_OCCURRENCE"),
    _text("REGEXP_MATCH_PARAMETER"),
)  # fmt: skip

PROCEDURES = (
    Procedure(
        "DBMS_RLS",
        "ADD_POLICY",
        (
            *_POLICY, _text("FUNCTION_SCHEMA"), _text("POLICY_FUNCTION", required=True), _text("STATEMENT_TYPES"),
            _flag("UPDATE_CHECK", default=False), _flag("ENABLE", default=True), _flag("STATIC_POLICY", default=False),
            _number("POLICY_TYPE"), _flag("LONG_PREDICATE", default=False), _text("SEC_RELEVANT_COLS"), _number("SEC_RELEVANT_COLS_OPT"),
        ),
        _changing(_add_row_policy),
    ),
    Procedure("DBMS_RLS", "DROP_POLICY", _POLICY, _changing(_drop_row_policy)),
    Procedure("DBMS_RLS", "ENABLE_POLICY", (*_POLICY, _flag("ENABLE", default=True)), _changing(_enable_row_policy)),
    Procedure(
        "DBMS_REDACT",
        "ADD_POLICY",
        (
            *_POLICY, _text("POLICY_DESCRIPTION"), _text("COLUMN_NAME"), _text("COLUMN_DESCRIPTION"), *_FUNCTION,
            _text("EXPRESSION", required=True), _flag("ENABLE", default=True), *_REGEXP,
        ),
        _changing(_add_redaction),
    ),
    Procedure(
        "DBMS_REDACT",
        "ALTER_POLICY",
        (
            *_POLICY, _number("ACTION"), _text("COLUMN_NAME"), *_FUNCTION, _text("EXPRESSION"), *_REGEXP, _text("POLICY_DESCRIPTION"),
            _text("COLUMN_DESCRIPTION"),
        ),
        _changing(_alter_redaction),
    ),
    Procedure("DBMS_REDACT", "DROP_POLICY", _POLICY, _changing(_drop_redaction)),
    Procedure("DBMS_REDACT", "ENABLE_POLICY", _POLICY, _changing(_enabling(True))),
    Procedure("DBMS_REDACT", "DISABLE_POLICY", _POLICY, _changing(_enabling(False))),
)  # fmt: skip
