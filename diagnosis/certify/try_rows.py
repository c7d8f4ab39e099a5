"""What identifies rows, and which tables does LogMiner not translate?"""

from __future__ import annotations

from typing import Any

from cdc_core.model.operations import Operation
from diagnosis.certify.probes import Rows, Verdict, cannot_tell, decided, share
from diagnosis.certify.tried import DML, Ask, Trial, TryProbe, equal, of_answer, try_probe

_ROWID = "identity: rowid, cdc_core/schema/keys.py"
_STOPS = (
    "Tables with identity: rowid stop, or the comparison finds a difference: use another identity."
)
_ASKED_ROWID = "SELECT ROWIDTOCHAR(ROWID) FROM {t} WHERE ID = 1"
_WIDE = "(ID NUMBER(9) PRIMARY KEY, A VARCHAR2(4000), B VARCHAR2(4000))"


@of_answer("rowid")
def _own_rowid(tried: Trial, answer: Rows) -> Verdict:
    rows, shown = tried.of(*DML), answer[0][0]
    return share(rows, lambda row: row["row_id"] == shown, "have the ROWID that a query shows")


@of_answer("rowid")
def _own_rowid_of_one(tried: Trial, answer: Rows) -> Verdict:
    """The changes of the row with ID 1."""
    rows = [row for row in tried.of(Operation.UPDATE) if not row["csf"]]
    same = sum(row["row_id"] == answer[0][0] for row in rows)
    return decided(
        bool(rows) and same == len(rows),
        f"{same} of {len(rows)} updates have the ROWID that a query shows",
    )


def _none(tried: Trial) -> Verdict:
    rows = tried.of(*DML)
    filled = sum(bool(row["row_id"]) and set(row["row_id"]) != {"A"} for row in rows)
    return decided(not filled, f"{filled} of {len(rows)} rows have a ROWID")


def _unsupported_row_ids(tried: Trial) -> Verdict:
    rows = tried.of(Operation.UNSUPPORTED)
    if not rows:
        return cannot_tell("LogMiner shows no row of code 255")
    shown = sum(bool(row["row_id"]) and set(row["row_id"]) != {"A"} for row in rows)
    return decided(shown == len(rows), f"{shown} of {len(rows)} rows show a ROWID")


def _unsupported(tried: Trial) -> Verdict:
    rows = tried.of(*DML)
    unsupported = tried.of(Operation.UNSUPPORTED)
    if not rows and not unsupported:
        return cannot_tell("LogMiner shows no row of the table")
    return decided(
        bool(unsupported) and not rows,
        f"{len(unsupported)} rows of code 255, {len(rows)} with a statement",
    )


@of_answer("segments")
def _of_partitions(tried: Trial, answer: Rows) -> Verdict:
    segments = {int(number) for (number,) in answer}
    numbers = {row["data_obj"] for row in tried.of(*DML)}
    return decided(
        len(numbers) == 2 and numbers <= segments,
        f"{len(numbers)} object numbers, {len(numbers & segments)} of them of partitions",
    )


def _probe(id: str, belief: str, table: str, *rest: Any, **more: Any) -> TryProbe:
    subject, _, name = id.partition(".")
    given = {"depends": _ROWID, "otherwise": _STOPS, "source": "Measured on 23ai by others", **more}
    return try_probe(subject, name, belief, *rest, table=table, **given)


_LONG = "V" * 31

ROW_PROBES: tuple[TryProbe, ...] = (
    _probe(
        "rowid.own", "ROW_ID of a row's changes is the ROWID that a query shows.",
        "(ID NUMBER(9) PRIMARY KEY, V NUMBER)",
        [
            "INSERT INTO {t} VALUES (1, 1)", "UPDATE {t} SET V = 2", "COMMIT",
            Ask("rowid", _ASKED_ROWID),
        ],
        _own_rowid,
    ),
    _probe(
        "rowid.migrated",
        "A row that grew out of its block keeps its ROWID, and LogMiner shows that one.", _WIDE,
        [
            *[f"INSERT INTO {{t}} (ID, A) VALUES ({at}, RPAD('a', 300, 'a'))" for at in range(1, 21)],
            "COMMIT",
            "UPDATE {t} SET A = RPAD('b', 4000, 'b'), B = RPAD('c', 4000, 'c') WHERE ID = 1",
            "COMMIT", "DELETE FROM {t} WHERE ID > 1", "UPDATE {t} SET B = 'd' WHERE ID = 1",
            "COMMIT", Ask("rowid", _ASKED_ROWID),
        ],
        _own_rowid_of_one, source="Not settled by any source",
    ),
    _probe(
        "rowid.index-organized", "Rows of an index-organized table have no ROW_ID.",
        "(ID NUMBER(9) PRIMARY KEY, V NUMBER) ORGANIZATION INDEX",
        ["INSERT INTO {t} VALUES (1, 1)", "UPDATE {t} SET V = 2"], _none,
        depends="cdc_core/stage/rollback.py",
        otherwise="Nothing: a ROW_ID is used where there is one.", is_needed=False,
        source="Not settled by any source",
    ),
    _probe(
        "row.index-organized",
        "An index-organized table is equal on both paths, savepoints included.",
        "(ID NUMBER(9) PRIMARY KEY, V NUMBER) ORGANIZATION INDEX",
        ["INSERT INTO {t} VALUES (1, 1)", "UPDATE {t} SET V = 2", "INSERT INTO {t} VALUES (2, 1)"],
        equal(2), depends="cdc_core/schema/segments.py",
        otherwise="Leave such tables out, and report the rows.",
    ),
    _probe(
        "row.partition-numbers",
        "DATA_OBJ# of a row in a partitioned table is the object number of its partition.",
        "(ID NUMBER(9) PRIMARY KEY, V NUMBER) PARTITION BY RANGE (ID) (PARTITION P1 VALUES LESS THAN (10), "
        "PARTITION P2 VALUES LESS THAN (MAXVALUE))",
        [
            "INSERT INTO {t} VALUES (1, 1)", "INSERT INTO {t} VALUES (11, 1)", "COMMIT",
            Ask("segments", "SELECT OBJECT_ID FROM ALL_OBJECTS WHERE OWNER = '{owner}' AND OBJECT_NAME = '{name}' AND OBJECT_TYPE = 'TABLE PARTITION'"),
        ],
        _of_partitions, depends="cdc_core/schema/segments.py",
        otherwise="Rows of dropped partitions are lost: their tables must stop by hand.",
    ),
    _probe(
        "row.partitions", "A partitioned table is equal on both paths.",
        "(ID NUMBER(9) PRIMARY KEY, V NUMBER) PARTITION BY RANGE (ID) (PARTITION P1 VALUES LESS THAN (10), "
        "PARTITION P2 VALUES LESS THAN (MAXVALUE))",
        [
            "INSERT INTO {t} VALUES (1, 1)", "INSERT INTO {t} VALUES (11, 1)",
            "UPDATE {t} SET V = 5", "DELETE FROM {t} WHERE ID = 1",
        ],
        equal(1), depends="cdc_core/schema/segments.py",
        otherwise="Leave such tables out, and report the rows.",
    ),
    _probe(
        "row.identity", "A table with an identity column is equal on both paths.",
        "(ID NUMBER(9) GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, V NUMBER)",
        ["INSERT INTO {t} (ID, V) VALUES (1, 1)", "COMMIT", "UPDATE {t} SET V = 2"], equal(1),
        depends="cdc_core/capture/preflight.py, which does not refuse them",
        otherwise="Leave such tables out, and report the rows.",
        source="Oracle's list of what LogMiner supports says otherwise; others stream such tables",
    ),
    _probe(
        "row.virtual-column",
        "A table with a virtual column is equal on both paths, without that column.",
        "(ID NUMBER(9) PRIMARY KEY, V NUMBER, W NUMBER GENERATED ALWAYS AS (V * 2) VIRTUAL)",
        ["INSERT INTO {t} (ID, V) VALUES (1, 1)", "COMMIT", "UPDATE {t} SET V = 2"], equal(1),
        depends="cdc_core/schema/dictionary_rows.py",
        otherwise="Leave such tables out, and report the rows.",
    ),
    _probe(
        "row.invisible-column", "An invisible column is equal on both paths.",
        "(ID NUMBER(9) PRIMARY KEY, V NUMBER INVISIBLE)",
        ["INSERT INTO {t} (ID, V) VALUES (1, 1)", "COMMIT", "UPDATE {t} SET V = 2"], equal(1),
        depends="cdc_core/schema/dictionary.py",
        otherwise="Leave the column out, and report the rows.",
    ),
    _probe(
        "row.archival",
        "Rows of a table with row archival are equal on both paths, archived ones too.",
        "(ID NUMBER(9) PRIMARY KEY, V NUMBER) ROW ARCHIVAL",
        [
            "INSERT INTO {t} (ID, V) VALUES (1, 1)", "INSERT INTO {t} (ID, V) VALUES (2, 1)",
            "UPDATE {t} SET ORA_ARCHIVE_STATE = '1' WHERE ID = 1",
        ],
        equal(2), depends="cdc_core/oracle/session.py (ROW_ARCHIVAL)",
        otherwise="Leave such tables out, and report the rows.",
        source="SQL Language Reference 19c, row archival",
    ),
    _probe(
        "row.compressed", "A compressed table is equal on both paths.",
        "(ID NUMBER(9) PRIMARY KEY, V NUMBER) ROW STORE COMPRESS ADVANCED",
        ["INSERT INTO {t} VALUES (1, 1)", "COMMIT", "UPDATE {t} SET V = 2"], equal(1),
        depends="rule 1", otherwise="Leave such tables out, and report the rows.",
        source="Oracle Database Utilities 19c, LogMiner",
    ),
    _probe(
        "row.direct-path", "Rows of a direct-path INSERT with redo are equal on both paths.",
        "(ID NUMBER(9) PRIMARY KEY, V NUMBER) LOGGING",
        [
            "INSERT /*+ APPEND */ INTO {t} SELECT 1, 1 FROM DUAL UNION ALL SELECT 2, 2 FROM DUAL",
            "COMMIT", "UPDATE {t} SET V = 3",
        ],
        equal(2), depends="cdc_core/capture/stream_ends/unlogged.py",
        otherwise="Read such tables again after each load (redolake table resnapshot).",
        source="Not settled by any source",
    ),
    _probe(
        "row.wide", "A row that is larger than a block is equal on both paths.", _WIDE,
        [
            "INSERT INTO {t} VALUES (1, RPAD('a', 4000, 'a'), RPAD('b', 4000, 'b'))", "COMMIT",
            "UPDATE {t} SET B = 'c'",
        ],
        equal(1), depends="rule 1", otherwise="Report the rows.",
    ),
    _probe(
        "row.many-columns", "A row of more than 255 columns is equal on both paths.",
        "(ID NUMBER(9) PRIMARY KEY, " + ", ".join(f"C{at} NUMBER(3)" for at in range(300)) + ")",
        [
            "INSERT INTO {t} (ID, C0, C299) VALUES (1, 1, 2)", "COMMIT",
            "UPDATE {t} SET C150 = 3, C299 = 4",
        ],
        equal(1), depends="rule 1", otherwise="Leave such tables out, and report the rows.",
        source="Not settled by any source",
    ),
    _probe(
        "row.long-names",
        "Rows of a table with a name longer than 30 bytes come with code 255 and without a statement.",
        f"(ID NUMBER(9) PRIMARY KEY, {_LONG} NUMBER)", ["INSERT INTO {t} VALUES (1, 1)"],
        _unsupported, depends="cdc_core/preflight/redo.py",
        otherwise="Nothing: such tables are refused although they could be read.", is_needed=False,
        wart="UNSUPPORTED_ROWS",
        source='Database Utilities 19c, "LogMiner Requirements"; met on 23ai',
    ),
    _probe(
        "row.boolean", "Rows of a table with a BOOLEAN come with code 255 and without a statement.",
        "(ID NUMBER(9) PRIMARY KEY, V BOOLEAN)", ["INSERT INTO {t} VALUES (1, TRUE)"], _unsupported,
        depends="cdc_core/schema/types.py",
        otherwise="Nothing: such tables are refused although they could be read.", is_needed=False,
        wart="UNSUPPORTED_ROWS",
    ),
    _probe(
        "row.json-rowid",
        "Rows of a table with a JSON column, which come without a statement, show their ROWIDs.",
        "(ID NUMBER(9) PRIMARY KEY, V JSON)",
        ["INSERT INTO {t} VALUES (1, '{{}}')", "COMMIT", "UPDATE {t} SET V = NULL"],
        _unsupported_row_ids, depends="cdc_core/steps/windows/reselecting_rows.py",
        otherwise="unsupported_columns: reselect asks the flashback version query which rows a transaction changed: that reads the table.",
        is_needed=False, wart="UNSUPPORTED_ROWS",
        source="Not settled by any source",
    ),
    _probe(
        "row.json",
        "Rows of a table with a JSON column come with code 255 and without a statement.",
        "(ID NUMBER(9) PRIMARY KEY, V JSON)", ["INSERT INTO {t} VALUES (1, '{{}}')"], _unsupported,
        depends="cdc_core/schema/types.py",
        otherwise="Nothing: such tables are refused although they could be read.", is_needed=False,
        wart="UNSUPPORTED_ROWS",
    ),
)  # fmt: skip
"""Of rows, their identity, and what is not translated."""
