"""Is every value the same on both paths: read by a snapshot, and decoded from the redo?"""

from __future__ import annotations

from collections.abc import Sequence

from diagnosis.certify.tried import Step, TryProbe, equal

_UPDATED = 100
"""So much above a literal's number stands a row that gets it by an UPDATE."""
_GONE = 200
"""And one that is inserted with it and deleted."""

TYPES: dict[str, tuple[str, Sequence[str]]] = {
    "number": (
        "NUMBER",
        ("0", "1", "-1", "0.1", "1E125", "-1E-130", "9" * 38, "-" + "9" * 38, "1234567890.0987654321"),
    ),
    "number-scaled": ("NUMBER(38,17)", ("0", "1" * 21 + "." + "2" * 17, "-0." + "0" * 16 + "1")),
    "number-whole": ("NUMBER(38)", ("0", "9" * 38, "-" + "9" * 38)),
    "number-small": ("NUMBER(9,2)", ("0", "-0.01", "1234567.89", "-9999999.99")),
    "number-negative-scale": ("NUMBER(20,-5)", ("0", "1E24", "-100000")),
    "number-large-scale": ("NUMBER(3,5)", ("0.00999", "-0.00001")),
    "float": ("FLOAT", ("1.5", "-1E-20", "123456789012345678901234567890")),
    "binary-double": (
        "BINARY_DOUBLE",
        ("1.1", "-0d", "5E-324d", "TO_BINARY_DOUBLE('-1E300')", "BINARY_DOUBLE_INFINITY", "-BINARY_DOUBLE_INFINITY", "BINARY_DOUBLE_NAN"),
    ),
    "binary-float": (
        "BINARY_FLOAT",
        ("0.1", "-0f", "1E-45f", "TO_BINARY_FLOAT('-3E38')", "-BINARY_FLOAT_INFINITY", "BINARY_FLOAT_NAN"),
    ),
    "char": ("CHAR(5)", ("'a'", "'abcde'", "' b'")),
    "varchar2": (
        "VARCHAR2(60 CHAR)",
        ("'it''s'", "' x '", "'a\\b;'", "'two' || CHR(10) || 'lines'", "''", "'a || ''b'', NULL)'", "UNISTR('\\00E9\\65E5')", "UNISTR('\\D83D\\DD25')"),
    ),
    "varchar2-long": ("VARCHAR2(4000)", ("RPAD('x', 4000, 'y''z')", "RPAD('q', 3999)")),
    "nchar": ("NCHAR(4)", ("N'ab'", "UNISTR('\\65E5\\672C')")),
    "nvarchar2": ("NVARCHAR2(60)", ("N'it''s'", "UNISTR('\\65E5\\672C')", "UNISTR('\\D83D\\DD25x\\\\')")),
    "raw": ("RAW(2000)", ("HEXTORAW('00FF')", "HEXTORAW(RPAD('A5', 2000, 'A5'))")),
    "date": (
        "DATE",
        ("DATE '0001-01-01'", "DATE '1582-10-15'", "DATE '1969-12-31'", "TO_DATE('9999-12-31 23:59:59', 'YYYY-MM-DD HH24:MI:SS')"),
    ),
    "timestamp": (
        "TIMESTAMP(6)",
        ("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '2024-02-29 01:02:03.5'", "TIMESTAMP '9999-12-31 23:59:59.999999'"),
    ),
    "timestamp-nanoseconds": (
        "TIMESTAMP(9)",
        ("TIMESTAMP '2001-02-03 04:05:06.000000001'", "TIMESTAMP '9999-12-31 23:59:59.999999999'"),
    ),
    "timestamp-zone": (
        "TIMESTAMP(9) WITH TIME ZONE",
        ("TIMESTAMP '2001-02-03 04:05:06.789 +02:00'", "TIMESTAMP '2001-01-01 00:30:00 -05:30'", "TIMESTAMP '9999-12-31 23:59:59.999999999 +14:00'"),
    ),
    "timestamp-region": (
        "TIMESTAMP WITH TIME ZONE",
        ("TIMESTAMP '2001-07-03 04:05:06 Europe/Berlin'", "TIMESTAMP '2001-12-03 04:05:06 America/New_York'"),
    ),
    "timestamp-local": (
        "TIMESTAMP(9) WITH LOCAL TIME ZONE",
        ("TIMESTAMP '2001-02-03 01:05:06.789 +02:00'", "TIMESTAMP '2001-02-03 04:05:06.000000001 +00:00'"),
    ),
    "interval-months": (
        "INTERVAL YEAR(9) TO MONTH",
        ("INTERVAL '123456789-11' YEAR(9) TO MONTH", "INTERVAL '-1' MONTH", "INTERVAL '0' MONTH"),
    ),
    "interval-seconds": (
        "INTERVAL DAY(9) TO SECOND(9)",
        ("INTERVAL '5 04:03:02.5' DAY TO SECOND", "INTERVAL '-0.000001' SECOND", "INTERVAL '-999999999 23:59:59.999999999' DAY(9) TO SECOND(9)"),
    ),
    "rowid": ("ROWID", ("CHARTOROWID('AAAAECAABAAAAgiAAA')",)),
    "clob": ("CLOB", ("'small'", "EMPTY_CLOB()", "TO_CLOB(RPAD('x', 4000, 'yz''')) || RPAD('q', 4000)")),
    "nclob": ("NCLOB", ("UNISTR('\\65E5\\672C')", "EMPTY_CLOB()")),
    "blob": ("BLOB", ("HEXTORAW('00FF')", "EMPTY_BLOB()")),
    "xmltype": ("XMLTYPE", ("XMLTYPE('<a>1</a>')",)),
    "varchar2-extended": ("VARCHAR2(32767)", ("RPAD('x', 4000, 'y')", "TO_CLOB(RPAD('x', 4000, 'yz')) || RPAD('q', 4000)")),
}  # fmt: skip
"""Types with values at their ends; each literal is inserted, set by an UPDATE, and deleted."""
_LARGE = ("CLOB", "NCLOB", "BLOB", "XMLTYPE", "VARCHAR2(32767)")


def type_probes() -> tuple[TryProbe, ...]:
    """One probe for each type."""
    return tuple(_probe(name, kind, literals) for name, (kind, literals) in TYPES.items())


def _probe(name: str, kind: str, literals: Sequence[str]) -> TryProbe:
    is_large = kind in _LARGE
    return TryProbe(
        id=f"type.{name}",
        belief=f"{kind}: a snapshot reads the values that INSERT and UPDATE have in the redo.",
        depends="rule 8, cdc_core/schema/types.py, "
        + ("cdc_core/decode/lob.py" if is_large else "cdc_core/decode/literals.py"),
        otherwise="Tables with such columns differ from Oracle, or rows go to quarantine: leave the "
        "column out (columns_exclude), and report the release"
        + (", or set capture.lobs to reselect." if is_large else "."),
        source="SQL Language Reference 19c, Data Types; literals of SQL_REDO as Debezium reads them",
        table=f"(ID NUMBER(9) PRIMARY KEY, V {kind})",
        steps=_steps(literals),
        judge=equal(2 * len(literals)),
    )


def _steps(literals: Sequence[str]) -> list[Step]:
    steps: list[Step] = []
    for at, literal in enumerate(literals, 1):
        escaped = literal.replace("{", "{{").replace("}", "}}")
        for key in (at, at + _GONE):
            steps.append(f"INSERT INTO {{t}} (ID, V) VALUES ({key}, {escaped})")
        steps.append(f"INSERT INTO {{t}} (ID) VALUES ({at + _UPDATED})")
        steps.append(f"UPDATE {{t}} SET V = {escaped} WHERE ID = {at + _UPDATED}")
    return [*steps, f"DELETE FROM {{t}} WHERE ID > {_GONE}", "COMMIT"]
