"""How do rows look from before and after a DDL, and how far back can the past be read?"""

from __future__ import annotations

from collections.abc import Sequence
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
from diagnosis.certify.tried import (
    DML,
    Ask,
    Keep,
    Row,
    Step,
    Trial,
    TryProbe,
    equal,
    of_answer,
    try_probe,
)

_COLUMNS = "(ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), N NUMBER(9))"
_MEASURED = "Measured on 23ai by others"
_UNNAMED = "cdc_core/decode/unnamed.py, rule 14"
_SEGMENTS = "cdc_core/schema/segments.py"
_STATUS_UNNAMED = 2
_DDL_SECONDS = 20.0
_AS_OF = "SELECT COUNT(*) FROM {t} AS OF SCN :behind"
_BEFORE = "SELECT COUNT(*) FROM {t} AS OF SCN :before"
_ROW = "INSERT INTO {t} (ID, V, N) VALUES (1, 'before', 7)"


def _is_unnamed(text: str) -> bool:
    return '"COL 1"' in text or '"COL 2"' in text


def _before_unnamed(tried: Trial) -> Verdict:
    """The first row is from before the DDL."""
    found = list(tried.statements(Operation.INSERT))
    if not found:
        return cannot_tell("no such row is shown")
    text, row = found[0]
    unnamed = row["status"] == _STATUS_UNNAMED and _is_unnamed(text)
    return decided(unnamed, f"STATUS {row['status']}, {'COL n' if _is_unnamed(text) else 'names'}")


def _after_named(tried: Trial) -> Verdict:
    found = list(tried.statements(Operation.INSERT))
    if len(found) < 2:
        return cannot_tell(f"{len(found)} rows are shown")
    text, row = found[-1]
    return decided(
        row["status"] == 0 and not _is_unnamed(text),
        f"STATUS {row['status']}, {'COL n' if _is_unnamed(text) else 'names'}",
    )


def _hexadecimal(tried: Trial) -> Verdict:
    texts = [text for text in tried.texts(*DML) if _is_unnamed(text)]
    if not texts:
        return cannot_tell("no row has COL n")
    raw = sum("HEXTORAW(" in text and "'before'" not in text for text in texts)
    return decided(
        raw == len(texts), f"{raw} of {len(texts)} such rows have their values as HEXTORAW"
    )


def _ddl_row(tried: Trial) -> Verdict:
    texts = tried.texts(Operation.DDL)
    own = [text for text in texts if " ADD (" in text.upper() and "EXTRA" in text.upper()]
    return decided(
        len(own) == 1, f"{len(texts)} DDL rows, {len(own)} with the text as it was typed"
    )


def _version_rises(tried: Trial) -> Verdict:
    versions = [row["data_objv"] for row in tried.of(Operation.INSERT)]
    if len(versions) < 2 or None in versions:
        return cannot_tell("no version is shown")
    return decided(versions[-1] > versions[0], f"the version rises by {versions[-1] - versions[0]}")


def _physical(tried: Trial) -> Verdict:
    rows = tried.of(Operation.INSERT)
    if len(rows) < 2:
        return cannot_tell(f"{len(rows)} rows are shown")
    first, last = rows[0], rows[-1]
    same = first["data_obj"] == last["data_obj"]
    other = first["data_objd"] != last["data_objd"]
    return decided(
        same and other,
        f"DATA_OBJ# {'stays' if same else 'changes'}, DATA_OBJD# {'changes' if other else 'stays'}",
    )


def _nameless(tried: Trial) -> Verdict:
    rows = tried.of(*DML)
    if not rows:
        return otherwise("the rows are not shown under the table's number")
    return share(rows, _is_nameless, "have no name of a table")


def _is_nameless(row: Row) -> bool:
    return row["table_name"] is None or str(row["table_name"]).startswith(("OBJ# ", "BIN$"))


def _recent(tried: Trial) -> Verdict:
    answer = tried.answer("past")
    seconds = float(tried.asked.get("past.seconds", 0))
    if isinstance(answer, RefusedQuery):
        return otherwise(f"{answer.code} for {seconds:.0f} seconds")
    return decided(True, f"readable after {seconds:.1f} seconds", flashback_seconds=round(seconds))


def _across(tried: Trial) -> Verdict:
    answer = tried.answer("past")
    if isinstance(answer, RefusedQuery):
        return decided(answer.code == "ORA-01466", answer.code)
    return otherwise("the past can be read across the DDL")


def _definition_past(tried: Trial) -> Verdict:
    answer = tried.answer("past")
    if isinstance(answer, RefusedQuery):
        return otherwise(answer.code)
    return decided(int(answer[0][0]) == 3, f"{int(answer[0][0])} columns as of before the DDL")


@of_answer("hidden")
def _guard(_tried: Trial, answer: Rows) -> Verdict:
    return decided(int(answer[0][0]) == 1, f"{int(answer[0][0])} hidden columns")


@of_answer("time")
def _ddl_time(_tried: Trial, answer: Rows) -> Verdict:
    off = abs(float(answer[0][0]))
    return decided(off <= 10, f"{off:.0f} seconds apart")


_probe = partial(try_probe, "ddl", table=_COLUMNS, depends=_UNNAMED, source=_MEASURED)


_ADD: Sequence[Step] = (
    _ROW,
    "UPDATE {t} SET N = 8 WHERE ID = 1",
    "COMMIT",
    "ALTER TABLE {t} ADD (EXTRA NUMBER(5))",
    "INSERT INTO {t} (ID, V, EXTRA) VALUES (2, 'after', 3)",
)
_LOST = "Rows from before a DDL go to quarantine, or differ: snapshot the table again after each DDL, and report the rows."
_EITHER = "Nothing: names are read as well."

DDL_PROBES: tuple[TryProbe, ...] = (
    _probe(
        "before-unnamed",
        "Rows from before an ADD COLUMN come with STATUS 2 and COL n in place of names.", _ADD,
        _before_unnamed, otherwise=_EITHER, is_needed=False, wart="UNNAMED_COLUMNS",
    ),
    _probe(
        "before-raw", "Values of such rows are HEXTORAW, in the form in which Oracle stores them.",
        _ADD, _hexadecimal, otherwise=_LOST,
    ),
    _probe(
        "after-named", "Rows from after the DDL have names and STATUS 0.", _ADD, _after_named,
        otherwise=_LOST,
    ),
    _probe("add-column", "An ADD COLUMN leaves both paths equal.", _ADD, equal(2), otherwise=_LOST),
    _probe(
        "drop-column",
        "COL n of a row from before a DROP COLUMN counts the columns that the segment had then: both paths are equal.",
        [
            _ROW, "COMMIT", "ALTER TABLE {t} DROP COLUMN V",
            "INSERT INTO {t} (ID, N) VALUES (2, 9)", "COMMIT", "DELETE FROM {t} WHERE ID = 1",
        ],
        equal(1), otherwise=_LOST, source="Inferred; not settled by any source",
    ),
    _probe(
        "rename-column",
        "A RENAME COLUMN leaves the rows from before with the names of now, or with COL n: the row after it has the new name.",
        [
            _ROW, "COMMIT", "ALTER TABLE {t} RENAME COLUMN V TO W",
            "INSERT INTO {t} (ID, W) VALUES (2, 'after')",
        ],
        _after_named, otherwise=_LOST,
    ),
    _probe(
        "modify-column", "A MODIFY to more digits leaves both paths equal.",
        [
            _ROW, "COMMIT", "ALTER TABLE {t} MODIFY (N NUMBER(12))",
            "INSERT INTO {t} (ID, V, N) VALUES (2, 'after', 123456789012)",
        ],
        equal(2), otherwise=_LOST,
    ),
    _probe(
        "default-guard",
        "ADD of a nullable column with a DEFAULT makes one hidden stored column (SYS_NC…$).",
        [
            "ALTER TABLE {t} ADD (EXTRA NUMBER(5) DEFAULT 4)",
            Ask("hidden", "SELECT COUNT(*) FROM ALL_TAB_COLS WHERE OWNER = '{owner}' AND TABLE_NAME = '{name}' AND HIDDEN_COLUMN = 'YES'"),
        ],
        _guard, otherwise=_EITHER, is_needed=False, is_mined=False,
        source="Rows of a real dictionary",
    ),
    _probe(
        "text", "A DDL is one row with code 5 and the text as it was typed.", _ADD, _ddl_row,
        depends="cdc_core/capture/stream_ends/ddl_rows.py", otherwise="DDL is not followed: its tables stop.",
        source="Oracle Database Reference 19c, V$LOGMNR_CONTENTS",
    ),
    _probe(
        "version", "DATA_OBJV# rises with a structural DDL.", _ADD, _version_rises,
        depends="cdc_core/capture/passes/unnamed_rows.py",
        otherwise="Nothing: STATUS distinguishes the rows.", is_needed=False,
    ),
    _probe(
        "truncate", "After a TRUNCATE, DATA_OBJ# is the same and DATA_OBJD# another one.",
        [_ROW, "COMMIT", "TRUNCATE TABLE {t}", "INSERT INTO {t} (ID, V) VALUES (2, 'after')"],
        _physical, depends=_SEGMENTS,
        otherwise="Rows after a TRUNCATE are not recognised. Report the numbers.",
    ),
    _probe(
        "move", "After a MOVE, DATA_OBJ# is the same and DATA_OBJD# another one.",
        [_ROW, "COMMIT", "ALTER TABLE {t} MOVE", "INSERT INTO {t} (ID, V) VALUES (2, 'after')"],
        _physical, depends=_SEGMENTS,
        otherwise="Rows after a MOVE are not recognised. Report the numbers.",
    ),
    _probe(
        "dropped-table",
        "Rows of a table that was dropped come without its name, under its number.",
        [_ROW, "COMMIT", "DROP TABLE {t} PURGE"], _nameless,
        depends="cdc_core/capture/passes/unnamed_rows.py, rule 13", otherwise=_EITHER, is_needed=False,
        wart="UNNAMED_COLUMNS",
    ),
    _probe(
        "time", "LAST_DDL_TIME is the clock of the host, to ten seconds.",
        [
            "ALTER TABLE {t} ADD (EXTRA NUMBER(5))",
            Ask("time", "SELECT (SYSDATE - LAST_DDL_TIME) * 86400 FROM ALL_OBJECTS WHERE OBJECT_TYPE = 'TABLE' AND OWNER = '{owner}' "
                "AND OBJECT_NAME = '{name}'"),
        ],
        _ddl_time, depends="cdc_core/schema/ddl_times.py",
        otherwise="Definitions of the past may be refused, or taken too early.", is_mined=False,
        source="Oracle Database Reference 19c, ALL_OBJECTS",
    ),
    _probe(
        "flashback-behind", "An SCN behind a DDL can be read within twenty seconds of it.",
        [
            _ROW, "COMMIT", "ALTER TABLE {t} ADD (EXTRA NUMBER(5))", Keep("behind"),
            Ask("past", _AS_OF, until_seconds=_DDL_SECONDS),
        ],
        _recent, depends="cdc_core/oracle/after_ddl.py",
        otherwise="Snapshots after a DDL fail with ORA-01466: raise the wait, and report it.",
        source="About three seconds were seen on 23ai",
    ),
    _probe(
        "flashback-across", "A table cannot be read as of an SCN before a DROP COLUMN (ORA-01466).",
        [_ROW, "COMMIT", Keep("before"), "ALTER TABLE {t} DROP COLUMN V", Ask("past", _BEFORE)],
        _across, depends="rule 19", otherwise="Nothing: the past is not read across a DDL.",
        is_needed=False, source='Database Development Guide 19c, "Using Oracle Flashback Query"',
    ),
    _probe(
        "dictionary-past", "ALL_TAB_COLS as of an SCN shows the columns of that time.",
        [
            _ROW, "COMMIT", Keep("before"), "ALTER TABLE {t} DROP COLUMN V",
            Ask("past", "SELECT COUNT(*) FROM ALL_TAB_COLS AS OF SCN :before WHERE OWNER = '{owner}' AND TABLE_NAME = '{name}'"),
        ],
        _definition_past, depends="rule 19, cdc_core/schema/dictionary.py",
        otherwise="Definitions of the past are taken only from the DDL in the redo.",
        source='Database Development Guide 19c, "Using Oracle Flashback Query"',
    ),
)  # fmt: skip
"""Of DDL."""
