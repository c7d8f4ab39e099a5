"""How do transactions begin, end, and take back what they did?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cdc_core.model.operations import ENDS, Operation
from cdc_core.model.transactions import UNRESOLVED
from diagnosis.certify.probes import Rows, Verdict, cannot_tell, decided, holds, otherwise, share
from diagnosis.certify.tried import (
    DML,
    Ask,
    Fails,
    Mine,
    Row,
    Step,
    Trial,
    TryProbe,
    equal,
    of_answer,
    try_probe,
)

_COLUMNS = "(ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))"
_ROLLBACK = "cdc_core/stage/rollback.py"
_LEDGER = "cdc_core/capture/transactions/ledger.py"
_MEASURED = "Measured on 23ai by others"
_OPEN = """
SELECT RAWTOHEX(T.XID), T.START_SCN FROM V$TRANSACTION T, GV$SESSION S
 WHERE S.USERNAME = '{owner}' AND T.SES_ADDR = S.SADDR"""


def _own_end(tried: Trial) -> Verdict:
    xids = {row["xid"] for row in tried.of(*DML, rollback=None)}
    ends = tried.of(Operation.COMMIT, rollback=None)
    return decided(len(ends) == len(xids), f"{len(xids)} transactions, {len(ends)} COMMIT rows")


def _own_start(tried: Trial) -> Verdict:
    xids = {row["xid"] for row in tried.of(*DML, rollback=None)}
    starts = {row["xid"] for row in tried.of(Operation.START, rollback=None)}
    return decided(xids <= starts, f"{len(xids)} transactions, {len(xids & starts)} START rows")


def _commit_last(tried: Trial) -> Verdict:
    ends = [row["scn"] for row in tried.of(Operation.COMMIT, rollback=None)]
    rows = tried.of(*DML, rollback=None)
    if not ends:
        return cannot_tell("no COMMIT row is shown")
    late = sum(row["scn"] > max(ends) for row in rows)
    return decided(not late and bool(rows), f"{len(rows)} rows, {late} above their COMMIT's SCN")


def _user_named(tried: Trial) -> Verdict:
    rows = tried.of(Operation.START, *DML, rollback=None)
    return share(rows, lambda row: row["username"] == tried.owner, "name the user")


def _undo_rows(tried: Trial) -> list[Row]:
    return [row for row in tried.rows if row["rollback"] == 1]


def _newest_first(tried: Trial) -> Verdict:
    done = [row["row_id"] for row in tried.of(*DML)]
    undone = [row["row_id"] for row in _undo_rows(tried)]
    if not undone:
        return otherwise("no undo row is shown")
    good = undone == done[: -len(undone) - 1 : -1]
    return decided(
        good, f"{len(undone)} undo rows, {'newest first' if good else 'in another order'}"
    )


def _undo_by_rowid(tried: Trial) -> Verdict:
    texts = tried.texts(Operation.DELETE, rollback=1)
    if not texts:
        return cannot_tell("no undo row of an INSERT has a statement")
    by_rowid = sum(" where ROWID = " in text for text in texts)
    return decided(
        by_rowid == len(texts), f"{by_rowid} of {len(texts)} undo rows name only a ROWID"
    )


def _rolled_back(tried: Trial) -> Verdict:
    ends = tried.of(Operation.ROLLBACK, rollback=None)
    if tried.changed:
        return otherwise(
            f"{len(tried.changed)} rows of a transaction that ended with ROLLBACK are changes"
        )
    return decided(bool(ends), f"{len(ends)} ROLLBACK rows")


def _partial_xids(tried: Trial) -> Verdict:
    rows = [*_undo_rows(tried), *tried.of(*ENDS, rollback=None)]
    rows = [row for row in rows if any(digit in row["rs_id"] for digit in "123456789abcdef")]
    partial = sum(row["xid"].endswith(UNRESOLVED) for row in rows)
    if partial:
        return holds(f"{partial} of {len(rows)} rows of undo and ends have one")
    return otherwise(f"none of {len(rows)} rows of undo and ends has one")


def _spurious(tried: Trial) -> Verdict:
    count = len(tried.of(Operation.ROLLBACK, rollback=None))
    return decided(count > 0, f"{count} ROLLBACK rows in a transaction that commits")


def _late(tried: Trial) -> Verdict:
    early, later = tried.asked.get("open"), tried.of(Operation.INSERT)
    if early is None:
        return cannot_tell("the redo of the open transaction could not be mined")
    shown = sum(row["operation_code"] == Operation.INSERT for row in early)
    return decided(shown < len(later), f"{shown} of {len(later)} rows are shown before the COMMIT")


def _all_later(tried: Trial) -> Verdict:
    shown = len(tried.of(Operation.INSERT))
    return decided(shown == 4, f"{shown} of 4 rows are shown after the COMMIT")


@of_answer("scn")
def _late_below(tried: Trial, answer: Rows) -> Verdict:
    """Rows that come late keep the SCN of their change."""
    bound = int(answer[0][0])
    above = sum(row["scn"] > bound for row in tried.of(Operation.INSERT))
    return decided(
        not above,
        f"{above} of {len(tried.of(Operation.INSERT))} rows are above the SCN that was read",
    )


@of_answer("open")
def _start_scn(tried: Trial, answer: Rows) -> Verdict:
    rows = tried.of(*DML)
    if len(answer) != 1 or not rows:
        return cannot_tell(f"{len(answer)} open transactions of the schema")
    [(xid, start)] = answer
    if int(start or 0) <= 1:
        return cannot_tell("START_SCN is not assigned yet")
    if str(xid).lower() != rows[0]["xid"]:
        return otherwise("V$TRANSACTION and the redo show different XIDs")
    first = min(row["scn"] for row in rows)
    return decided(
        int(start) <= first, f"START_SCN is {first - int(start)} SCNs below the first change"
    )


def _key_change(tried: Trial) -> Verdict:
    updates = tried.of(Operation.UPDATE)
    return decided(
        len(updates) == 1,
        f"{len(updates)} UPDATE rows, {len(tried.of(Operation.DELETE))} DELETE rows",
    )


def _rows_of_merge(tried: Trial) -> Verdict:
    return decided(
        len(tried.of(Operation.UPDATE)) == 3,
        f"{len(tried.of(Operation.UPDATE))} UPDATE rows for three rows",
    )


_probe = partial(try_probe, "transaction", table=_COLUMNS, depends=_ROLLBACK, source=_MEASURED)


_SIMPLE: Sequence[Step] = ("INSERT INTO {t} VALUES (1, 'a')", "UPDATE {t} SET V = 'b' WHERE ID = 1")
_SAVEPOINT: Sequence[Step] = (
    "INSERT INTO {t} VALUES (1, 'kept')",
    "SAVEPOINT S",
    "INSERT INTO {t} VALUES (2, 'gone')",
    "INSERT INTO {t} VALUES (3, 'gone')",
    "ROLLBACK TO S",
)
_FAILED: Sequence[Step] = (
    "INSERT INTO {t} VALUES (5, 'a')",
    Fails("INSERT INTO {t} SELECT 6, 'b' FROM DUAL UNION ALL SELECT 5, 'b' FROM DUAL", "ORA-00001"),
    "INSERT INTO {t} VALUES (7, 'c')",
)
_LATE: Sequence[Step] = (
    *[f"INSERT INTO {{t}} VALUES ({at}, 'x')" for at in range(1, 5)],
    Ask("scn", "SELECT CURRENT_SCN FROM V$DATABASE"),
    Mine("open"),
)
_LOST = "Changes would be lost, or taken for others. Report what LogMiner shows."

TRANSACTION_PROBES: tuple[TryProbe, ...] = (
    _probe(
        "start", "Each transaction has a START row with its XID.", _SIMPLE, _own_start,
        depends=_LEDGER,
        otherwise="Transactions count as begun before the source: their tables leave the stream.",
        source="Oracle Database Reference 19c, V$LOGMNR_CONTENTS",
    ),
    _probe(
        "commit",
        "Each committed transaction has one COMMIT row, with its XID or with its undo segment and slot.",
        [*_SIMPLE, "COMMIT", "DELETE FROM {t} WHERE ID = 1"], _own_end, depends=_LEDGER,
        otherwise=_LOST, source="Oracle Database Reference 19c, V$LOGMNR_CONTENTS",
    ),
    _probe(
        "commit-scn", "No row of a transaction has an SCN above that of its COMMIT row.", _SIMPLE,
        _commit_last, depends="rule 3",
        otherwise="Windows would cut transactions. Report the rows.",
        source="Oracle Database Concepts 19c, transactions",
    ),
    _probe(
        "user", "USERNAME names who began a transaction that is mined from its start.", _SIMPLE,
        _user_named, depends="capture.users", otherwise="Filters by user do not work.",
        is_needed=False,
    ),
    _probe(
        "key-change", "An UPDATE of a key is one UPDATE row.",
        ["INSERT INTO {t} VALUES (1, 'a')", "UPDATE {t} SET ID = 2 WHERE ID = 1"], _key_change,
        depends="cdc_core/stage/reduction.py",
        otherwise="Key changes are a delete and an insert, which is applied as well.",
        is_needed=False, source="Debezium reads key changes so",
    ),
    _probe(
        "key-swap", "Keys that one transaction exchanges between rows are the same on both paths.",
        [
            "INSERT INTO {t} VALUES (1, 'one')", "INSERT INTO {t} VALUES (2, 'two')", "COMMIT",
            "UPDATE {t} SET ID = 9 WHERE ID = 1", "UPDATE {t} SET ID = 1 WHERE ID = 2",
            "UPDATE {t} SET ID = 2 WHERE ID = 9",
        ],
        equal(2), depends="cdc_core/stage/reduction.py", otherwise=_LOST,
    ),
    _probe(
        "many-rows", "An UPDATE of several rows is one row of the redo for each.",
        [*[f"INSERT INTO {{t}} VALUES ({at}, 'a')" for at in range(3)], "UPDATE {t} SET V = 'b'"],
        _rows_of_merge, depends="rule 1", otherwise=_LOST,
        source="Oracle Database Utilities 19c, LogMiner",
    ),
    _probe(
        "merge", "What a MERGE updates and inserts is equal on both paths.",
        [
            "INSERT INTO {t} VALUES (1, 'a')", "COMMIT",
            "MERGE INTO {t} T USING (SELECT 1 ID, 'b' V FROM DUAL UNION ALL SELECT 2, 'c' FROM DUAL) S "
            "ON (T.ID = S.ID) WHEN MATCHED THEN UPDATE SET V = S.V WHEN NOT MATCHED THEN INSERT (ID, V) VALUES (S.ID, S.V)",
        ],
        equal(2), depends="rule 1", otherwise=_LOST,
        source="Oracle Database Utilities 19c, LogMiner",
    ),
    _probe(
        "same-key-again",
        "A key that one transaction deletes and inserts again is equal on both paths.",
        [
            "INSERT INTO {t} VALUES (1, 'a')", "COMMIT", "DELETE FROM {t} WHERE ID = 1",
            "INSERT INTO {t} VALUES (1, 'b')", "DELETE FROM {t} WHERE ID = 1",
            "INSERT INTO {t} VALUES (1, 'c')",
        ],
        equal(1), depends="cdc_core/stage/reduction.py", otherwise=_LOST,
    ),
    _probe(
        "nested-savepoints",
        "Savepoints within savepoints, taken back from the inside and from the outside, are equal on both paths.",
        [
            "INSERT INTO {t} VALUES (1, 'kept')", "SAVEPOINT A",
            "UPDATE {t} SET V = 'one' WHERE ID = 1", "SAVEPOINT B",
            "UPDATE {t} SET V = 'two' WHERE ID = 1", "DELETE FROM {t} WHERE ID = 1",
            "ROLLBACK TO B", "INSERT INTO {t} VALUES (2, 'gone')", "ROLLBACK TO A",
            "INSERT INTO {t} VALUES (3, 'kept')",
        ],
        equal(2), otherwise=_LOST,
    ),
    _probe(
        "savepoint-undo",
        "ROLLBACK TO SAVEPOINT shows undo rows (ROLLBACK 1) with the ROW_IDs of what they take back, newest first.",
        _SAVEPOINT, _newest_first,
        otherwise="Redolake cannot see what a transaction takes back: its tables stop.",
    ),
    _probe(
        "savepoint-undo-form",
        "The undo row of an INSERT is a DELETE by nothing but ROWID, also with NO_ROWID_IN_STMT.",
        _SAVEPOINT, _undo_by_rowid, otherwise="Nothing: undo rows are not decoded.",
        is_needed=False,
    ),
    _probe(
        "savepoint", "What is rolled back to a savepoint is on neither path.",
        [*_SAVEPOINT, "INSERT INTO {t} VALUES (4, 'kept')"], equal(2), otherwise=_LOST,
    ),
    _probe(
        "savepoint-same-row",
        "A row that is changed, taken back to a savepoint and changed again is the same on both paths.",
        [
            "INSERT INTO {t} VALUES (1, 'a')", "SAVEPOINT S", "UPDATE {t} SET V = 'b'",
            "UPDATE {t} SET V = 'c'", "ROLLBACK TO S", "UPDATE {t} SET V = 'd'",
        ],
        equal(1), otherwise=_LOST,
    ),
    _probe(
        "failed-statement",
        "A statement that fails after some rows (ORA-00001) leaves undo rows, and nothing on either path.",
        _FAILED, equal(2), otherwise=_LOST,
    ),
    _probe(
        "rollback", "A transaction that is rolled back has a ROLLBACK row, and no change.",
        ["INSERT INTO {t} VALUES (1, 'a')", "ROLLBACK"], _rolled_back, depends=_LEDGER,
        otherwise=_LOST,
    ),
    _probe(
        "partial-xid",
        "Undo rows, ROLLBACK and COMMIT rows can have an XID whose sequence is ffffffff.",
        [
            *_SAVEPOINT, "ROLLBACK", *_SAVEPOINT, "COMMIT", "INSERT INTO {t} VALUES (8, 'x')",
            "ROLLBACK",
        ],
        _partial_xids, depends=_LEDGER, otherwise="Nothing: XIDs need not be resolved.",
        is_needed=False, wart="PARTIAL_XIDS", source="Seen on 23ai, reported from production",
    ),
    _probe(
        "spurious-rollback", "A ROLLBACK row can close just a rollback to a savepoint.",
        _SAVEPOINT, _spurious, depends=_LEDGER,
        otherwise="Nothing: a ROLLBACK row ends its transaction.", is_needed=False,
        wart="SPURIOUS_ROLLBACKS", source="Seen on 23ai, in online logs",
    ),
    _probe(
        "late-redo",
        "Redo of an open transaction can be missing below an SCN that is read after it.", _LATE,
        _late, depends="docs/design/late-redo.md",
        otherwise="Nothing: the look back finds nothing. On an idle database this may be chance.",
        is_needed=False, wart="LATE_REDO",
    ),
    _probe(
        "late-redo-comes", "After the COMMIT, all redo of a transaction is shown.", _LATE,
        _all_later, depends="rule 5", otherwise=_LOST,
    ),
    _probe(
        "late-redo-below", "Redo that comes late keeps the SCN of its change.", _LATE, _late_below,
        depends="cdc_core/capture/passes/reading_position.py",
        otherwise="Nothing: it is read with the window of its SCN.", is_needed=False,
    ),
    _probe(
        "start-scn",
        "V$TRANSACTION shows an open transaction under the XID of the redo, with a START_SCN not above its first change.",
        ["INSERT INTO {t} VALUES (1, 'a')", Ask("open", _OPEN), Ask("open", _OPEN)], _start_scn,
        depends="rule 4, cdc_core/capture/logs/positions.py",
        otherwise="A snapshot's first window may begin too late. Report the release.",
        source="Oracle Database Reference 19c, V$TRANSACTION",
    ),
)  # fmt: skip
"""Of transactions."""
