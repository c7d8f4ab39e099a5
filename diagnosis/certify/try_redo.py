"""In which forms does LogMiner print statements and values?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from cdc_core.model.operations import Operation
from cdc_core.model.redo_address import RedoAddress
from diagnosis.certify.probes import Verdict, cannot_tell, decided
from diagnosis.certify.tried import DML, Judge, Row, Step, Trial, TryProbe, each_row, try_probe

_DECODER = "cdc_core/decode/dml.py, cdc_core/decode/literals.py"
_GOES_WRONG = "Such rows go to quarantine. Report the statement's form and the release."
_SEEN = "Debezium's parser and rows of real databases"
_ROW_ID = re.compile(r"[A-Za-z0-9+/]{18}\Z")
_XID = re.compile(r"[0-9A-Fa-f]{16}\Z")
_PLACEHOLDER = "A" * 18


def _matches(pattern: str, *operations: Operation) -> Judge:
    """A judge: does every such statement have the form? ``<t>`` is the quoted table."""

    def judge(tried: Trial) -> Verdict:
        table = re.escape(f'"{tried.owner}"."{tried.table}"')
        expression = re.compile(pattern.replace("<t>", table), re.DOTALL)
        texts = tried.texts(*operations)
        if not texts:
            return cannot_tell("no such row is shown")
        fits = sum(expression.search(text) is not None for text in texts)
        return decided(fits == len(texts), f"{fits} of {len(texts)} statements have the form")

    return judge


def _form(name: str, belief: str, columns: str, *rest: Any, **more: Any) -> TryProbe:
    given = {"depends": _DECODER, "otherwise": _GOES_WRONG, "source": _SEEN, **more}
    table = f"(ID NUMBER(9) PRIMARY KEY, {columns})"
    return try_probe("redo", name, belief, *rest, table=table, **given)


def _literal(
    name: str, belief: str, kind: str, literal: str, pattern: str, *, is_needed: bool = True
) -> TryProbe:
    return _form(
        f"literal-{name}",
        belief,
        f"V {kind}",
        [f"INSERT INTO {{t}} VALUES (1, {literal})"],
        _matches(rf"values \('1',{pattern}\);?\s*\Z", Operation.INSERT),
        is_needed=is_needed,
    )


def _split(tried: Trial) -> Verdict:
    rows = tried.of(Operation.INSERT)
    split = [row for row in rows if row["csf"]]
    if not rows:
        return cannot_tell("no such row is shown")
    whole = [text for text in tried.texts(Operation.INSERT) if text.rstrip(";").endswith(")")]
    return decided(
        bool(split) and len(whole) == 1, f"{len(rows)} rows, {len(split)} of them with CSF 1"
    )


def _row_ids(tried: Trial) -> Verdict:
    rows = tried.of(*DML)
    filled = [str(row["row_id"] or "") for row in rows]
    good = sum(_ROW_ID.match(one) is not None and one != _PLACEHOLDER for one in filled)
    same = len(set(filled)) == 1
    return decided(good == len(rows) and same, f"{good} of {len(rows)} rows have a ROW_ID")


def _has_address(row: Row) -> bool:
    try:
        RedoAddress.parse(row["rs_id"])
    except ValueError:
        return False
    return True


def _ascending(tried: Trial) -> Verdict:
    found = [RedoAddress.parse(row["rs_id"]) for row in tried.of(*DML)]
    good = all(one <= other for one, other in pairwise(found))
    return decided(good, f"{len(found)} rows, addresses {'ascend' if good else 'do not ascend'}")


def _objects(tried: Trial) -> Verdict:
    rows = tried.of(*DML)
    numbers = {row["data_obj"] for row in rows}
    good = len(numbers) == 1 and None not in numbers and 0 not in numbers
    return decided(good, f"{len(rows)} rows of {len(numbers)} object numbers")


_THREE: Sequence[Step] = (
    "INSERT INTO {t} VALUES (1, 'a', 5)",
    "UPDATE {t} SET V = 'b' WHERE ID = 1",
    "DELETE FROM {t} WHERE ID = 1",
)
_TWO_COLUMNS = "V VARCHAR2(10), N NUMBER(5)"
_POSITIONS = "cdc_core/capture/passes/reading_position.py, rule 17"

REDO_PROBES_TRIED: tuple[TryProbe, ...] = (
    _form(
        "insert", 'An INSERT is printed as insert into "OWNER"."TABLE"("C1","C2") values (…).',
        _TWO_COLUMNS, _THREE,
        _matches(r'\Ainsert into <t>\("ID","V","N"\) values \(\'1\',\'a\',\'5\'\);?\Z', Operation.INSERT),
    ),
    _form(
        "update",
        "An UPDATE names only the changed columns behind set, and all columns behind where.",
        _TWO_COLUMNS, _THREE,
        _matches(r'\Aupdate <t> set "V" = \'b\' where "ID" = \'1\' and "V" = \'a\' and "N" = \'5\';?\Z', Operation.UPDATE),
    ),
    _form(
        "delete", "A DELETE names all columns behind where.", _TWO_COLUMNS, _THREE,
        _matches(r'\Adelete from <t> where "ID" = \'1\' and "V" = \'b\' and "N" = \'5\';?\Z', Operation.DELETE),
    ),
    _form(
        "no-rowid", "With NO_ROWID_IN_STMT no statement has a ROWID.", _TWO_COLUMNS, _THREE,
        _matches(r"\A(?!.*\bROWID\b)", *DML),
    ),
    _form(
        "null", "NULL is printed as NULL among values, and as IS NULL behind where.", _TWO_COLUMNS,
        ["INSERT INTO {t} VALUES (1, NULL, NULL)", "DELETE FROM {t} WHERE ID = 1"],
        _matches(r'values \(\'1\',NULL,NULL\)|where "ID" = \'1\' and "V" IS NULL and "N" IS NULL', *DML),
    ),
    _form(
        "set-null", "A column that an UPDATE empties is printed as = NULL behind set.",
        _TWO_COLUMNS,
        ["INSERT INTO {t} VALUES (1, 'a', 1)", "UPDATE {t} SET V = NULL WHERE ID = 1"],
        _matches(r'set "V" = NULL where', Operation.UPDATE),
    ),
    _form(
        "long-statement",
        "A statement of more than 4,000 bytes is continued in rows with CSF 1 before the last.",
        "V VARCHAR2(4000), W VARCHAR2(4000)",
        ["INSERT INTO {t} VALUES (1, RPAD('a', 4000, 'b'), RPAD('c', 4000, 'd'))"], _split,
        depends="cdc_core/capture/passes/rows.py",
        otherwise="Long statements are cut. Report the release.",
        source="Oracle Database Reference 19c, V$LOGMNR_CONTENTS",
    ),
    _form(
        "names", "Names are printed in double quotes, in their own letters.",
        '"mixed Case" NUMBER(3)', ["INSERT INTO {t} VALUES (1, 2)"],
        _matches(r'\("ID","mixed Case"\) values', Operation.INSERT),
    ),
    _literal("number", "NUMBERs are printed in quotes.", "NUMBER", "-12.5", r"'-12\.5'"),
    _literal("quote", "A quote within text is doubled.", "VARCHAR2(20)", "'it''s'", "'it''s'"),
    _literal(
        "date", "A DATE is printed as TO_DATE with the session's format, and the sign of the year.",
        "DATE", "DATE '2024-02-29'",
        r"TO_DATE\('[ +]?2024-02-29 00:00:00', ?'SYYYY-MM-DD HH24:MI:SS'\)",
    ),
    _literal(
        "date-bc", "A year before Christ is printed with a minus.", "DATE",
        "TO_DATE('0044-03-15 BC', 'YYYY-MM-DD BC')",
        r"TO_DATE\('-0044-03-15 00:00:00', ?'SYYYY-MM-DD HH24:MI:SS'\)",
    ),
    _literal(
        "timestamp", "A TIMESTAMP is printed as TO_TIMESTAMP with nine fractional digits.",
        "TIMESTAMP(3)", "TIMESTAMP '2024-02-29 01:02:03.5'",
        r"TO_TIMESTAMP\('[ +]?2024-02-29 01:02:03\.500000000'\)",
    ),
    _literal(
        "timestamp-zone",
        "A TIMESTAMP WITH TIME ZONE is printed as TO_TIMESTAMP_TZ with its offset.",
        "TIMESTAMP(3) WITH TIME ZONE", "TIMESTAMP '2024-02-29 01:02:03.5 +05:30'",
        r"TO_TIMESTAMP_TZ\('[ +]?2024-02-29 01:02:03\.500000000 \+05:30'\)",
    ),
    _literal(
        "timestamp-local",
        "A TIMESTAMP WITH LOCAL TIME ZONE is printed in the session's zone, without an offset.",
        "TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP '2024-02-29 01:02:03.5 +00:00'",
        r"TO_TIMESTAMP_TZ\('[ +]?2024-02-29 01:02:03\.500000000 ?'\)", is_needed=False,
    ),
    _literal(
        "interval-seconds", "An interval has a sign, and as many digits as were declared.",
        "INTERVAL DAY(5) TO SECOND(6)", "INTERVAL '5 04:03:02.123456' DAY TO SECOND",
        r"TO_DSINTERVAL\('\+00005 04:03:02\.123456'\)", is_needed=False,
    ),
    _literal(
        "interval-months", "An interval of months has a sign, and as many digits as were declared.",
        "INTERVAL YEAR(4) TO MONTH", "INTERVAL '12-3' YEAR TO MONTH",
        r"TO_YMINTERVAL\('\+0012-03'\)", is_needed=False,
    ),
    _literal(
        "raw", "A RAW is printed as HEXTORAW.", "RAW(10)", "HEXTORAW('00ff')",
        r"HEXTORAW\('00[fF]{2}'\)",
    ),
    _literal(
        "national",
        "National text is printed as UNISTR, with a backslash and four digits for each UTF-16 unit.",
        "NVARCHAR2(10)", r"UNISTR('\65E5\D83D\DD25')", r"UNISTR\('\\65E5\\D83D\\DD25'\)",
    ),
    _literal(
        "binary-float", "A BINARY_FLOAT is printed in quotes, with an exponent.", "BINARY_FLOAT",
        "1.5f", r"'1\.5\d*E\+0*'", is_needed=False,
    ),
    _literal(
        "infinity", "Infinity of a BINARY_DOUBLE is printed as Inf, in quotes or not.",
        "BINARY_DOUBLE", "BINARY_DOUBLE_INFINITY", r"'?Inf'?",
    ),
    _literal(
        "nan", "NaN of a BINARY_DOUBLE is printed as Nan, in quotes or not.", "BINARY_DOUBLE",
        "BINARY_DOUBLE_NAN", r"'?Na[nN]'?",
    ),
    _form(
        "row-id", "ROW_ID is the row's own, also with NO_ROWID_IN_STMT.", _TWO_COLUMNS, _THREE,
        _row_ids, depends="cdc_core/stage/rollback.py, identity: rowid",
        otherwise="Redolake cannot see what a transaction takes back: its tables stop.",
    ),
    _form(
        "status", "Rows of a table that was not altered since have STATUS 0.", _TWO_COLUMNS, _THREE,
        each_row(lambda row: row["status"] == 0, "have STATUS 0"),
        depends="cdc_core/capture/passes/unnamed_rows.py",
        otherwise="Each row is decoded without names. Look for DDL, or report the release.",
        source="Oracle Database Reference 19c, V$LOGMNR_CONTENTS",
    ),
    _form(
        "object-number", "DATA_OBJ# is one number for all rows of a table.", _TWO_COLUMNS, _THREE,
        _objects, depends="cdc_core/schema/segments.py",
        otherwise="Rows without a name are not recognised. Report the release.",
        source="Measured on 23ai by others",
    ),
    _form(
        "address", "RS_ID is a sequence, a block and a byte in hexadecimal digits.", _TWO_COLUMNS,
        _THREE, each_row(_has_address, "have a redo address"), depends=_POSITIONS,
        otherwise="The reading position cannot be kept: windows stop.",
        source="Oracle Database Reference 19c, V$LOGMNR_CONTENTS",
    ),
    _form(
        "address-order", "Within a transaction redo addresses ascend in LogMiner's order.",
        _TWO_COLUMNS, _THREE, _ascending, depends=_POSITIONS,
        otherwise="Changes of one transaction may be applied in another order. Report the release.",
        source="Measured by others; a transaction lives in one redo thread",
    ),
    _form(
        "xid", "XID has eight bytes.", _TWO_COLUMNS, _THREE,
        each_row(lambda row: _XID.match(str(row["xid"] or "")) is not None, "have an XID of eight bytes"),
        depends="cdc_core/capture/transactions/ledger.py",
        otherwise="Transactions cannot be followed: windows stop.",
        source="Oracle Database Reference 19c, V$LOGMNR_CONTENTS",
    ),
    _form(
        "container", "SRC_CON_ID is filled on rows of the online catalog.", _TWO_COLUMNS, _THREE,
        each_row(lambda row: row["container_id"] is not None, "name their container"),
        depends="cdc_core/capture/passes/mining.py",
        otherwise="Set capture.logs to scn_range, in which LogMiner shows only one container.",
        source="Measured on 23ai by others",
    ),
)  # fmt: skip
"""Of statements, literals, and the columns that say whose a row is."""
