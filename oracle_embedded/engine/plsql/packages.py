"""Which packaged procedures can blocks call, and how are arguments passed?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from decimal import Decimal

from oracle_embedded.api import EngineSession, OracleError, OraType, Parameter, Procedure
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.plsql.state import BlockState
from oracle_embedded.engine.plsql.values import evaluate
from oracle_embedded.engine.sql import plsql_nodes as nodes
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


BUILT_IN = (
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
    Procedure("DBMS_OUTPUT", "PUT_LINE", (_text("A", required=False),), _nothing),
    Procedure("DBMS_OUTPUT", "PUT", (_text("A", required=False),), _nothing),
    Procedure("DBMS_OUTPUT", "ENABLE", (Parameter("BUFFER_SIZE", _NUMBER, required=False),), _nothing),
    Procedure("DBMS_OUTPUT", "DISABLE", (), _nothing),
    Procedure(
        "DBMS_STATS",
        "GATHER_TABLE_STATS",
        (_text("OWNNAME"), _text("TABNAME"), _text("PARTNAME", required=False), Parameter("ESTIMATE_PERCENT", _NUMBER, required=False),
         Parameter("CASCADE", _BOOLEAN, required=False), Parameter("DEGREE", _NUMBER, required=False)),
        _nothing,
    ),
)  # fmt: skip


def call_procedure(block: BlockState, node: nodes.CallProcedure) -> None:
    """Call a procedure by name.

    Raises:
        OracleError: ORA-06550 with PLS-00201 for an unknown one or without the right, PLS-00306 for wrong arguments.
    """
    name = node.name[1:] if node.name[0] == "SYS" and len(node.name) > 1 else node.name
    if name == ("RAISE_APPLICATION_ERROR",):
        _raise_application_error(block, node)
        return
    session = block.session
    procedure = session.database.procedures.get((name[0], name[1])) if len(name) == 2 else None
    if procedure is None or not _may_execute(block, name[0]):
        raise block.error(node.pos, 201, f"identifier '{'.'.join(node.name)}' must be declared")
    given: dict[str, Expr] = {}
    if len(node.args) > len(procedure.parameters):
        raise _wrong_arguments(block, node)
    for parameter, argument in zip(procedure.parameters, node.args, strict=False):
        given[parameter.name.upper()] = argument
    for key, argument in node.named:
        if key in given or key not in {
            parameter.name.upper() for parameter in procedure.parameters
        }:
            raise _wrong_arguments(block, node)
        given[key] = argument
    values: dict[str, object] = {}
    for parameter in procedure.parameters:
        argument_node = given.get(parameter.name.upper())
        if argument_node is None:
            if parameter.required:
                raise _wrong_arguments(block, node)
            values[parameter.name] = parameter.default
        else:
            value, kind = evaluate(block, argument_node, SqlType(parameter.type).family)
            values[parameter.name] = plain_value(value, kind.family)
    procedure.run(session, values)


def _wrong_arguments(block: BlockState, node: nodes.CallProcedure) -> OracleError:
    return block.error(
        node.pos, 306, f"wrong number or types of arguments in call to '{node.name[-1]}'"
    )


def _may_execute(block: BlockState, package: str) -> bool:
    session = block.session
    if package in _PUBLIC or session.has_privilege("EXECUTE_CATALOG_ROLE"):
        return True
    return session.database.security.granted(session.username, "EXECUTE", "SYS", package)


def _raise_application_error(block: BlockState, node: nodes.CallProcedure) -> None:
    if not 2 <= len(node.args) <= 3:
        raise _wrong_arguments(block, node)
    code, _ = evaluate(block, node.args[0], "number")
    text, _ = evaluate(block, node.args[1], "text")
    number = -int(numbers.decode(code)) if code is not None else 0
    if not 20000 <= number <= 20999:
        raise OracleError(
            21000, f"error number argument to raise_application_error of {-number} is out of range"
        )
    raise OracleError(number, text.decode() if text else "")


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
