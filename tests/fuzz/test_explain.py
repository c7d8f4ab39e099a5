"""An export or a description that is changed anywhere is explained as far as it goes, or refused by an error of ours: nothing else."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdc_core.errors import ConfigError
from cdc_core.schema.create_table import tables_in
from diagnosis.explain.explaining import explained
from diagnosis.explain.export import read_xid
from diagnosis.explain.tables import read_tables

SCRIPT = "CREATE TABLE S.T (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(30), BODY CLOB) TABLESPACE \"X\";\nALTER TABLE S.T ADD UNIQUE (NAME);"  # fmt: skip
NAMES = (
    "SCN",
    "OPERATION_CODE",
    "XID",
    "SEG_OWNER",
    "TABLE_NAME",
    "SQL_REDO",
    "ROLLBACK",
    "CSF",
    "ROW_ID",
    "STATUS",
    "START_SCN",
)
ROWS = [
    (10, 6, "0100020003000000", None, None, None, 0, 0, None, 0, 10),
    (11, 1, "0100020003000000", "S", "T", 'insert into "S"."T"("ID","NAME","BODY") values (\'1\',\'a\',EMPTY_CLOB());', 0, 0, "AAAAAAAAAAAAAAAAAA", 0, 10),
    (12, 10, "0100020003000000", "S", "T", 'DECLARE BEGIN\n select "BODY" into loc_c from "S"."T" where "ID" = \'1\' for update;\n buf_c := \'data\'; \n  dbms_lob.write(loc_c, 4, 1, buf_c);\nEND;\n', 0, 0, "AAAAAAAAAAAAAAAAAA", 0, 10),
    (13, 3, "0100020003000000", "S", "T", 'update "S"."T" set "NAME" = ', 0, 1, "AAAAAAAAAAAAAAAAAB", 0, 10),
    (13, 3, "0100020003000000", "S", "T", "'b' where \"ID\" = '1';", 0, 0, "AAAAAAAAAAAAAAAAAB", 0, 10),
    (14, 3, "0100020003000000", "S", "T", 'update "S"."T" set "NAME" = \'a\' where ROWID = \'x\';', 1, 0, "AAAAAAAAAAAAAAAAAB", 0, 10),
    (15, 7, "0100020003000000", None, None, None, 0, 0, None, 0, 10),
]  # fmt: skip


def _as_csv() -> str:
    text = io.StringIO()
    csv.writer(text).writerows([NAMES, *ROWS])
    return text.getvalue()


EXPORTS = {
    ".csv": _as_csv(),
    ".jsonl": "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in ROWS),
}
SCRAPS = st.sampled_from(
    ["", '"', "'", ",", "\n", "0", "-1", "null", "ffffffff", "255", "34", "5", "36", "1e9", "{", "}", "[", ";", "OBJ# 7", "COL 1", "\udcff",
     "AAAAAAAAAAAAAAAAAA", "é", "\x00", "9" * 30]
)  # fmt: skip


@settings(deadline=None)
@given(st.sampled_from(sorted(EXPORTS)), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8), SCRAPS), max_size=4))  # fmt: skip
@example(".csv", [])
@example(".csv", [(0.4, 0, '"')])
def test_a_changed_export_is_explained_or_refused(
    suffix: str, edits: list[tuple[float, int, str]]
) -> None:
    text = EXPORTS[suffix]
    for place, cut, put in edits:
        at = int(place * len(text))
        text = text[:at] + put + text[at + cut :]
    with TemporaryDirectory() as name:
        script, export = Path(name, "t.sql"), Path(name, f"e{suffix}")
        script.write_text(SCRIPT)
        export.write_bytes(text.encode(errors="surrogateescape"))
        tables = read_tables(script, report=lambda _: None)
        try:
            with explained(export, tables) as outcomes:
                rows = list(outcomes.rows())
                counts = outcomes.counts()
        except ConfigError:
            return
    assert sum(counts.values()) == len(rows)
    assert all(one.why for one in rows if one.outcome in ("undecodable", "damaged", "waits"))
    if not edits:
        assert [one.outcome.value for one in rows] == ["begins", "change", "change", "taken back", "takes back", "commits"]  # fmt: skip


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8), SCRAPS), max_size=4))
def test_a_changed_script_describes_tables_or_is_refused(
    edits: list[tuple[float, int, str]],
) -> None:
    text = SCRIPT
    for place, cut, put in edits:
        at = int(place * len(text))
        text = text[:at] + put + text[at + cut :]
    with contextlib.suppress(ConfigError):
        tables_in(text)


@given(st.text(max_size=30) | st.binary(max_size=10) | st.none() | st.integers())
@example("1.2.3")
@example("65536.0.0")
@example("0X0000000000000000")
def test_an_xid_is_16_digits_or_refused(value: object) -> None:
    try:
        found = read_xid(value)
    except ValueError:
        return
    assert len(bytes.fromhex(found)) == 8
    assert found == found.lower()
