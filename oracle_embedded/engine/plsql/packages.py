"""Which packaged procedures can blocks call, and how are arguments passed?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from decimal import Decimal

from oracle_embedded.api import EngineSession, OracleError, OraType, Parameter, Procedure
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.datatypes.types import TEXT, SqlType, family_type
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.plsql import redefinition, statistics
from oracle_embedded.engine.plsql.calls import wrong_arguments
from oracle_embedded.engine.plsql.output import SPECIAL
from oracle_embedded.engine.plsql.state import Frame
from oracle_embedded.engine.plsql.values import evaluate, integer
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.ast import Expr
from oracle_embedded.values import datetime_from_date, float_from_double

_TEXT, _NUMBER, _BOOLEAN = OraType.VARCHAR, OraType.NUMBER, OraType.BOOLEAN
_SLEEP_SLICE = 0.05
_PUBLIC = frozenset(
    {
        "DBMS_OUTPUT",
        "DBMS_SESSION",
        "DBMS_APPLICATION_INFO",
        "DBMS_LOCK",
        "DBMS_STATS",
        "DBMS_FLASHBACK",
        "DBMS_METADATA",
        "DBMS_UTILITY",
        "DBMS_REDEFINITION",
    }
)


def _sleep(session: EngineSession, arguments: Mapping[str, object]) -> None:
    seconds = arguments["SECONDS"]
    deadline = time.monotonic() + float(seconds if isinstance(seconds, int | Decimal) else 0)
    while (left := deadline - time.monotonic()) > 0:
        if session.is_interrupted():
            raise ora(1013)
        time.sleep(min(left, _SLEEP_SLICE))


def _nothing(_session: EngineSession, _arguments: Mapping[str, object]) -> None:
    """What has an effect only on performance or on a screen."""


def _attribute(name: str, parameter: str) -> Callable[[EngineSession, Mapping[str, object]], None]:
    def run(session: EngineSession, arguments: Mapping[str, object]) -> None:
        value = arguments[parameter]
        session.set_attribute(name, None if value is None else str(value))

    return run


def _set_module(session: EngineSession, arguments: Mapping[str, object]) -> None:
    for attribute, parameter in (("MODULE", "MODULE_NAME"), ("ACTION", "ACTION_NAME")):
        _attribute(attribute, parameter)(session, arguments)


def _text(name: str, *, required: bool = True) -> Parameter:
    return Parameter(name, _TEXT, required)


def _redefinition(
    name: str, run: Callable[[EngineSession, Mapping[str, object]], None]
) -> Procedure:
    tables = (_text("UNAME"), _text("ORIG_TABLE"), _text("INT_TABLE"))
    return Procedure("DBMS_REDEFINITION", name, tables, run)


BUILT_IN = (
    _redefinition("START_REDEF_TABLE", redefinition.start),
    _redefinition("SYNC_INTERIM_TABLE", redefinition.synchronize),
    _redefinition("FINISH_REDEF_TABLE", redefinition.finish),
    _redefinition("ABORT_REDEF_TABLE", redefinition.abort),
    Procedure("DBMS_SESSION", "SLEEP", (Parameter("SECONDS", _NUMBER),), _sleep),
    Procedure("DBMS_LOCK", "SLEEP", (Parameter("SECONDS", _NUMBER),), _sleep),
    Procedure("DBMS_SESSION", "SET_IDENTIFIER", (_text("CLIENT_ID"),), _attribute("CLIENT_IDENTIFIER", "CLIENT_ID")),
    Procedure("DBMS_APPLICATION_INFO", "SET_MODULE", (_text("MODULE_NAME"), _text("ACTION_NAME")), _set_module),
    Procedure("DBMS_APPLICATION_INFO", "SET_ACTION", (_text("ACTION_NAME"),), _attribute("ACTION", "ACTION_NAME")),
    Procedure("DBMS_APPLICATION_INFO", "SET_CLIENT_INFO", (_text("CLIENT_INFO"),), _attribute("CLIENT_INFO", "CLIENT_INFO")),
    Procedure(
        "DBMS_METADATA",
        "SET_TRANSFORM_PARAM",
        (Parameter("TRANSFORM_HANDLE", _NUMBER), _text("NAME"), Parameter("VALUE", _BOOLEAN, required=False), _text("OBJECT_TYPE", required=False)),
        _nothing,
    ),
    Procedure(
        "DBMS_STATS",
        "GATHER_TABLE_STATS",
        (_text("OWNNAME"), _text("TABNAME"), _text("PARTNAME", required=False), Parameter("ESTIMATE_PERCENT", _NUMBER, required=False),
         Parameter("CASCADE", _BOOLEAN, required=False), Parameter("DEGREE", _NUMBER, required=False),
         _text("METHOD_OPT", required=False)),
        statistics.gather,
    ),
    Procedure("DBMS_STATS", "DROP_EXTENDED_STATS", (_text("OWNNAME"), _text("TABNAME"), _text("EXTENSION")), statistics.drop),
)  # fmt: skip


def call_packaged(frame: Frame, node: ast.Call) -> None:
    """Call a procedure of a package that every database has.

    Raises:
        OracleError: ORA-06550 with PLS-00201 for an unknown one or without the right, PLS-00306 for
            wrong arguments.
    """
    name = node.name[1:] if node.name[0] == "SYS" and len(node.name) > 1 else node.name
    if name == ("RAISE_APPLICATION_ERROR",):
        _raise_application_error(frame, node)
        return
    special = SPECIAL.get(name)
    if special is not None:
        special(frame, node)
        return
    session = frame.session
    procedure = session.database.procedures.get((name[0], name[1])) if len(name) == 2 else None
    if procedure is None or not _may_execute(frame, name[0]):
        raise frame.undeclared(node.pos, node.name)
    given: dict[str, Expr] = {}
    if len(node.args) > len(procedure.parameters):
        raise wrong_arguments(frame, node.pos, node.name[-1])
    for parameter, argument in zip(procedure.parameters, node.args, strict=False):
        given[parameter.name.upper()] = argument
    known = {parameter.name.upper() for parameter in procedure.parameters}
    for key, argument in node.named:
        if key in given or key not in known:
            raise wrong_arguments(frame, node.pos, node.name[-1])
        given[key] = argument
    values: dict[str, object] = {}
    for parameter in procedure.parameters:
        argument_node = given.get(parameter.name.upper())
        if argument_node is None:
            if parameter.required:
                raise wrong_arguments(frame, node.pos, node.name[-1])
            values[parameter.name] = parameter.default
        else:
            kind = family_type(SqlType(parameter.type).family)
            value, _ = evaluate(frame, argument_node, kind)
            assert value is None or isinstance(value, bytes)
            values[parameter.name] = plain_value(value, kind.family)
    procedure.run(session, values)


def _may_execute(frame: Frame, package: str) -> bool:
    session = frame.session
    if package in _PUBLIC or session.has_privilege("EXECUTE_CATALOG_ROLE"):
        return True
    return session.database.security.granted(session.username, "EXECUTE", "SYS", package)


def _raise_application_error(frame: Frame, node: ast.Call) -> None:
    if not 2 <= len(node.args) <= 3:
        raise wrong_arguments(frame, node.pos, node.name[-1])
    number = -integer(frame, node.args[0])
    text, _ = evaluate(frame, node.args[1], TEXT)
    if not 20000 <= number <= 20999:
        raise OracleError(
            21000, f"error number argument to raise_application_error of {-number} is out of range"
        )
    raise OracleError(number, text.decode() if isinstance(text, bytes) else "")


def plain_value(value: bytes | None, family: str) -> object:
    """A value as plain Python, as procedures get it."""
    if value is None:
        return None
    match family:
        case "number":
            number = numbers.decode(value)
            return int(number) if number == number.to_integral_value() else number
        case "text" | "clob" | "rowid":
            return value.decode()
        case "date" | "timestamp":
            return datetime_from_date(value)
        case "double":
            return Decimal(repr(float_from_double(value)))
        case "bool":
            return value == b"\x01"
    return value
