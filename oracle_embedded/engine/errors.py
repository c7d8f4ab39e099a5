"""Which errors does the engine raise, and with what text?

Texts follow Oracle's error messages manual for 19c, with names filled in.
"""

from __future__ import annotations

from oracle_embedded.api import OracleError

_TEXTS = {
    54: "resource busy and acquire with NOWAIT specified or timeout expired",
    60: "deadlock detected while waiting for resource",
    900: "invalid SQL statement",
    902: "invalid datatype",
    903: "invalid table name",
    904: "{}: invalid identifier",
    905: "missing keyword",
    906: "missing left parenthesis",
    907: "missing right parenthesis",
    909: "invalid number of arguments",
    911: "invalid character",
    913: "too many values",
    917: "missing comma",
    918: "column ambiguously defined",
    920: "invalid relational operator",
    924: "missing BY keyword",
    923: "FROM keyword not found where expected",
    928: "missing SELECT keyword",
    932: "inconsistent datatypes: expected {} got {}",
    933: "SQL command not properly ended",
    934: "group function is not allowed here",
    936: "missing expression",
    937: "not a single-group group function",
    938: "not enough arguments for function",
    939: "too many arguments for function",
    942: "table or view does not exist",
    947: "not enough values",
    955: "name is already used by an existing object",
    969: "missing ON keyword",
    926: "missing VALUES keyword",
    957: "duplicate column name",
    972: "identifier is too long",
    979: "not a GROUP BY expression",
    1008: "not all variables bound",
    1013: "user requested cancel of current operation",
    1031: "insufficient privileges",
    1403: "no data found",
    1410: "invalid ROWID",
    1422: "exact fetch returns more than requested number of rows",
    1426: "numeric overflow",
    1427: "single-row subquery returns more than one row",
    1430: "column being added already exists in table",
    1435: "user does not exist",
    1455: "converting column overflows integer datatype",
    1456: "may not perform insert/delete/update operation inside a READ ONLY transaction",
    1466: "unable to read data - table definition has changed",
    1476: "divisor is equal to zero",
    1555: 'snapshot too old: rollback segment number {} with name "{}" too small',
    1722: "invalid number",
    38301: "can not perform DDL/DML over objects in Recycle Bin",
    16000: "database or pluggable database open for read-only access",
    1733: "virtual column not allowed here",
    1747: "invalid user.table.column, table.column, or column specification",
    1756: "quoted string not properly terminated",
    1785: "ORDER BY item must be the number of a SELECT-list expression",
    1789: "query block has incorrect number of result columns",
    1790: "expression must have same datatype as corresponding expression",
    1791: "not a SELECTed expression",
    1795: "maximum number of expressions in a list is {}",
    1799: "a column may not be outer-joined to a subquery",
    2289: "sequence does not exist",
    3001: "unimplemented feature",
    8002: "sequence {}.CURRVAL is not yet defined in this session",
    8180: "no snapshot found based on specified time",
    8181: "specified number is not a valid system change number",
    12704: "character set mismatch",
    30483: "window  functions are not allowed here",
    30484: "missing window specification for this function",
}


def ora(code: int, *names: object, offset: int = 0) -> OracleError:
    """The error of a code, its text filled with names."""
    return OracleError(code, _TEXTS[code].format(*names), offset)


def too_deep() -> OracleError:
    """ORA-03001 of an expression that is nested deeper than the engine's own stacks hold."""
    return unsupported("so many operators in one expression")


def unsupported(what: str, offset: int = 0) -> OracleError:
    """ORA-03001 that names what this engine does not have."""
    return OracleError(3001, f"unimplemented feature: {what}", offset)
