"""What becomes of a table that is dropped and comes back, or is redefined? Where does it begin?"""

from __future__ import annotations

from functools import partial

from cdc_core.model.operations import Operation
from diagnosis.certify.probes import (
    RefusedQuery,
    Rows,
    Verdict,
    cannot_tell,
    decided,
    otherwise,
    share,
)
from diagnosis.certify.tried import DML, Ask, Trial, TryProbe, of_answer, try_probe

_BIN = "BIN$"
_COLUMNS = "(ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), N NUMBER(9))"
_ROW = "INSERT INTO {t} (ID, V, N) VALUES (1, 'before', 7)"
_LATER = "INSERT INTO {t} (ID, V, N) VALUES (2, 'after', 8)"
_OF_TABLE = "OBJECT_TYPE = 'TABLE' AND OWNER = '{owner}' AND OBJECT_NAME = '{name}'"
_NUMBER = f"SELECT OBJECT_ID FROM ALL_OBJECTS WHERE {_OF_TABLE}"
_SEGMENT_START = f"(SELECT DBMS_ROWID.ROWID_CREATE(1, DATA_OBJECT_ID, 0, 0, 0) FROM ALL_OBJECTS WHERE {_OF_TABLE})"
_REDEFINITION = "BEGIN DBMS_REDEFINITION.{step}_REDEF_TABLE('{{owner}}', '{{t}}', '{{t}}_I'); END;"
_REDEFINED = [
    _ROW, "COMMIT", f"CREATE TABLE {{t}}_I {_COLUMNS}", _REDEFINITION.format(step="START"),
    _REDEFINITION.format(step="FINISH"),
]  # fmt: skip
_GONE = "cdc_core/capture/stream_ends/dropped_tables.py"
_STOPS = "Nothing is lost: the table stops."
_MANUAL = "SQL Language Reference 19c, "


def _recycled(tried: Trial) -> Verdict:
    rows = tried.of(*DML)
    if not rows:
        return cannot_tell("the rows are not shown under the table's number")
    return share(rows, lambda row: str(row["table_name"]).startswith(_BIN), "have a name BIN$…")


def _bin_texts(tried: Trial) -> Verdict:
    texts = [text.upper() for text in tried.texts(Operation.DDL)]
    renames = sum(text.startswith("ALTER TABLE") and f'RENAME TO "{_BIN}' in text for text in texts)
    drops = sum(text.startswith("DROP TABLE") and f'AS "{_BIN}' in text for text in texts)
    return decided(
        (renames, drops) == (1, 1),
        f"{len(texts)} DDL rows, {renames} with the rename, {drops} with the DROP",
    )


def _comes_back(tried: Trial) -> Verdict:
    rows = tried.of(Operation.INSERT)
    numbers = {row["data_obj"] for row in rows}
    if len(rows) < 2:
        return cannot_tell(f"{len(rows)} rows are shown")
    return decided(len(numbers) == 1, f"{len(rows)} rows of {len(numbers)} object numbers")


@of_answer("after")
def _renumbered(tried: Trial, after: Rows) -> Verdict:
    before = tried.answer("before")
    if isinstance(before, RefusedQuery):
        return cannot_tell(f"Oracle refuses the question ({before.code})")
    same = before[0][0] == after[0][0]
    return decided(not same, f"the name stands for {'the same' if same else 'another'} object")


def _silent(tried: Trial) -> Verdict:
    rows = tried.of(Operation.DDL)
    return decided(not rows, f"{len(rows)} DDL rows of the table")


def _range_start(tried: Trial) -> Verdict:
    answer = tried.answer("rows")
    if isinstance(answer, RefusedQuery):
        return otherwise(answer.code)
    return decided(int(answer[0][0]) == 2, f"{int(answer[0][0])} of 2 rows are in the range")


_probe = partial(try_probe, "ddl", table=_COLUMNS, depends=_GONE)

TABLE_PROBES: tuple[TryProbe, ...] = (
    _probe(
        "recycle-bin",
        "Rows of a table that was dropped without PURGE come under its name in the recycle bin.",
        [_ROW, "COMMIT", "DROP TABLE {t}"], _recycled, is_needed=False,
        otherwise="Nothing: a name of the recycle bin and none at all are both read as a drop.",
        source="Seen by others; the recycle bin may be off",
    ),
    _probe(
        "recycle-bin-text",
        "A DROP without PURGE is two DDL rows: a rename into the recycle bin, and the DROP with that name behind it.",
        [_ROW, "COMMIT", "DROP TABLE {t}"], _bin_texts, is_needed=False,
        depends="cdc_core/capture/stream_ends/ddl_rows.py", otherwise="Nothing: the table is dropped.",
        source="Measured on 12c and 19c by others",
    ),
    _probe(
        "flashback-drop", "A table that comes back from the recycle bin has its object number.",
        [_ROW, "COMMIT", "DROP TABLE {t}", "FLASHBACK TABLE {t} TO BEFORE DROP", _LATER],
        _comes_back, is_needed=False, otherwise=_STOPS, source=f"{_MANUAL}FLASHBACK TABLE",
    ),
    _probe(
        "redefinition",
        "After an online redefinition, ALL_OBJECTS has another OBJECT_ID under the table's name.",
        [Ask("before", _NUMBER), *_REDEFINED, Ask("after", _NUMBER)], _renumbered, is_mined=False,
        otherwise="Redolake does not see an online redefinition: read such a table again (redolake "
        "table resnapshot) after each one, and report the release.",
        source="PL/SQL Packages and Types Reference 19c, DBMS_REDEFINITION",
    ),
    _probe(
        "redefinition-silent", "FINISH_REDEF_TABLE leaves no DDL row of the table.", _REDEFINED,
        _silent, is_needed=False, otherwise=_STOPS, source="Not settled by any source",
    ),
    try_probe(
        "rowid", "range-of-segment",
        "A ROWID of file 0 and block 0 is below every row of its segment, and bounds a range.",
        [_ROW, _LATER, "COMMIT", Ask("rows", f"SELECT COUNT(*) FROM {{t}} WHERE ROWID >= {_SEGMENT_START}")],
        _range_start, table=_COLUMNS, is_mined=False, is_needed=False,
        depends="snapshot.cut: partition, cdc_core/snapshot/cutting.py",
        otherwise="Oracle refuses the chunks (ORA-01410), or they miss rows: use snapshot.cut: rowid.",
        source="Not settled by any source",
    ),
)  # fmt: skip
"""Of tables as a whole."""
