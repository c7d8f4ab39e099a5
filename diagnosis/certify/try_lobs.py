"""How do LOBs stand in the redo, and the rows that have them?"""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise

from cdc_core.model.operations import Operation
from diagnosis.certify.probes import Verdict, cannot_tell, decided, otherwise
from diagnosis.certify.tried import Trial, TryProbe, WriteLob, equal, equal_paths, try_probe

_TABLE = "(ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), C CLOB)"
_PLACEHOLDER = "A" * 18
_WRITES = (Operation.LOB_WRITE, Operation.LOB_TRIM, Operation.LOB_ERASE)
_BLOCK = re.compile(r"\A\s*DECLARE\b.*\bEND;\s*\Z", re.IGNORECASE | re.DOTALL)
_OFFSET = re.compile(r"dbms_lob\.write\(\s*\w+\s*,\s*(\d+)\s*,\s*(\d+)\s*,", re.IGNORECASE)
_LARGE = "TO_CLOB(RPAD('a', 4000, 'b')) || RPAD('c', 4000, 'd') || RPAD('e', 4000, 'f')"
_LOB = "cdc_core/decode/lob.py, cdc_core/stage/lobs.py"
_MEASURED = "Measured on 23ai and 26ai by others"
_WRONG = (
    "Values of LOBs go to quarantine or differ: set capture.lobs to reselect, and report the rows."
)
_LOCATOR = "SELECT C FROM {t} WHERE ID = 1 FOR UPDATE"


def _placeholder(tried: Trial) -> Verdict:
    rows = tried.of(Operation.INSERT)
    if not rows:
        return cannot_tell("no INSERT is shown")
    without = sum(row["row_id"] == _PLACEHOLDER for row in rows)
    return decided(
        without == len(rows),
        f"{without} of {len(rows)} INSERT rows have a placeholder for the ROWID",
    )


def _closed(tried: Trial) -> Verdict:
    """A statement of a LOB table has the real ROWID somewhere behind its placeholder."""
    rows = [
        row
        for row in tried.of(Operation.UPDATE, Operation.INTERNAL)
        if row["row_id"] != _PLACEHOLDER
    ]
    if not any(row["row_id"] == _PLACEHOLDER for row in tried.of(Operation.INSERT)):
        return cannot_tell("INSERT rows have their own ROWID")
    return decided(bool(rows), f"{len(rows)} rows with a ROWID follow")


def _one_undo(tried: Trial) -> Verdict:
    rows = [row for row in tried.rows if row["rollback"] == 1]
    if not rows:
        return otherwise("no undo row is shown")
    real = sum(row["row_id"] not in (None, _PLACEHOLDER) for row in rows)
    return decided(
        len(rows) == 1 and real == 1,
        f"{len(rows)} undo rows for one statement, {real} with a ROWID",
    )


def _blocks(tried: Trial) -> Verdict:
    texts = tried.texts(*_WRITES)
    if not texts:
        return cannot_tell("no LOB is written piece by piece")
    blocks = sum(_BLOCK.match(text) is not None for text in texts)
    shape = "blocks" if blocks == len(texts) else "pieces" if not blocks else "both"
    return decided(
        shape == "blocks", f"{blocks} of {len(texts)} writes are whole blocks", lob_rows=shape
    )


def _trim_last(tried: Trial) -> Verdict:
    rows = tried.of(*_WRITES)
    if not rows:
        return cannot_tell("no LOB is written piece by piece")
    trims = sum(row["operation_code"] == Operation.LOB_TRIM for row in rows)
    return decided(
        rows[-1]["operation_code"] == Operation.LOB_TRIM,
        f"{len(rows)} writes, {trims} of them trims",
    )


def _offset(tried: Trial) -> Verdict:
    """The first piece has one character outside the basic plane, and amounts count characters:
    where does the second begin?"""
    found = [_OFFSET.search(text) for text in tried.texts(Operation.LOB_WRITE)]
    writes = [(int(one[1]), int(one[2])) for one in found if one is not None]
    for (amount, offset), (_, then) in pairwise(writes):
        if offset == 1 and then in (amount + 1, amount + 2):
            is_units = then == amount + 2
            return decided(is_units, "UTF-16 units" if is_units else "characters")
    return cannot_tell(f"{len(writes)} writes, none behind another")


def _never_wrong(tried: Trial) -> Verdict:
    """What the redo does not show is not decoded; what is decoded is right."""
    if tried.undecodable:
        return cannot_tell("the redo does not show it: the row is not decoded")
    return equal_paths(tried, 1)


_probe = partial(try_probe, "lob", table=_TABLE, depends=_LOB, otherwise=_WRONG, source=_MEASURED)


_SMALL = "INSERT INTO {t} VALUES (1, 'a', 'small')"
_BIG = f"INSERT INTO {{t}} VALUES (1, 'a', {_LARGE})"
_NOTHING = "Nothing: rows with their own ROWID are read as well."

LOB_PROBES: tuple[TryProbe, ...] = (
    _probe(
        "placeholder", "In a table with LOBs an INSERT row has a placeholder for the ROWID.",
        [_SMALL], _placeholder, depends="cdc_core/stage/undone_statements.py", otherwise=_NOTHING,
        is_needed=False, wart="LOB_STATEMENTS",
    ),
    _probe(
        "closing-row", "Behind such an INSERT an UPDATE or an INTERNAL row has the real ROWID.",
        [_SMALL, _BIG.replace("(1,", "(2,")], _closed, depends="cdc_core/stage/closing_updates.py",
        otherwise="Redolake cannot see what a transaction takes back in tables with LOBs: they stop.",
    ),
    _probe(
        "statement-undo",
        "One undo row with the real ROWID takes back a whole INSERT of a row with a LOB.",
        ["SAVEPOINT S", _SMALL, "ROLLBACK TO S", "INSERT INTO {t} VALUES (3, 'kept', NULL)"],
        _one_undo, depends="cdc_core/stage/undone_statements.py",
        otherwise="Nothing: each undo row has the ROWID of its row.", is_needed=False,
        wart="LOB_STATEMENTS",
    ),
    _probe(
        "savepoint", "What is rolled back to a savepoint in a table with LOBs is on neither path.",
        [
            _SMALL, "SAVEPOINT S", "INSERT INTO {t} VALUES (2, 'gone', 'gone')",
            "UPDATE {t} SET C = 'gone' WHERE ID = 1", "ROLLBACK TO S",
            "INSERT INTO {t} VALUES (3, 'kept', 'kept')",
        ],
        equal(2), depends="cdc_core/stage/undone_statements.py",
    ),
    _probe(
        "savepoint-large",
        "So is what is rolled back of LOBs that are written piece by piece, unless the redo does not show which rows those are.",
        [
            _BIG, "COMMIT", "SAVEPOINT S", f"UPDATE {{t}} SET C = {_LARGE} || 'gone' WHERE ID = 1",
            "ROLLBACK TO S", "UPDATE {t} SET V = 'b' WHERE ID = 1",
        ],
        _never_wrong, depends="cdc_core/stage/undone_statements.py",
    ),
    _probe(
        "blocks", "Each write of a LOB is a whole PL/SQL block, with STATUS 2.", [_BIG], _blocks,
        otherwise="Nothing: writes in pieces, as older releases print them, are read as well.",
        is_needed=False,
    ),
    _probe(
        "trim", "What replaces the value of a LOB ends with a trim to its length.",
        [_SMALL, "COMMIT", f"UPDATE {{t}} SET C = {_LARGE}"], _trim_last,
        otherwise="Only its first write shows whether a LOB is whole.", is_needed=False,
    ),
    _probe(
        "written-at",
        "What is written into the middle of a LOB is there on both paths, unless the redo has only a part of the value.",
        [_BIG, "COMMIT", WriteLob(_LOCATOR, "xy", 4003)], _never_wrong,
    ),
    _probe("large", "A LOB of several pieces is equal on both paths.", [_BIG], equal(1)),
    _probe(
        "replaced",
        "A large LOB that is replaced by a small one, and a small one by a large, are equal on both paths.",
        [
            _BIG, "INSERT INTO {t} VALUES (2, 'b', 'small')", "COMMIT",
            "UPDATE {t} SET C = 'short' WHERE ID = 1",
            f"UPDATE {{t}} SET C = {_LARGE} WHERE ID = 2",
        ],
        equal(2),
    ),
    _probe(
        "emptied", "A LOB that is emptied or set to NULL is so on both paths.",
        [
            _BIG, "INSERT INTO {t} VALUES (2, 'b', 'x')", "COMMIT",
            "UPDATE {t} SET C = NULL WHERE ID = 1", "UPDATE {t} SET C = EMPTY_CLOB() WHERE ID = 2",
        ],
        equal(2),
    ),
    _probe(
        "offset-units", "LogMiner's offsets into a CLOB count UTF-16 units, as DBMS_LOB's do.",
        [
            "INSERT INTO {t} VALUES (1, 'a', "
            r"TO_CLOB(UNISTR('\D83D\DD25')) || RPAD('x', 4000, 'y') || RPAD('z', 4000, 'z'))",
        ],
        _offset,
        otherwise="Nothing: a value that differs between both readings is not taken from the redo.",
        is_needed=False, wart="LOB_OFFSETS_IN_UNITS",
        source="DBMS_LOB's manual; not measured of LogMiner",
    ),
)  # fmt: skip
"""Of LOBs."""
