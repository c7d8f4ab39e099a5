"""Row-level security and Data Redaction on captured tables: the redo has all, queries have not, and no such row gets into the lake.

The policies are the database's own: a query of the capture user runs under them, also as of an SCN before they came.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cdc_core.errors import PreflightError, TableStoppedError
from cdc_core.landing.layout import chunk_folder
from cdc_core.landing.manifest import MANIFEST_NAME
from cdc_core.snapshot import read
from oracle_embedded.database import ADMIN, CAPTURE
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

ADD = {
    "access": "BEGIN DBMS_RLS.ADD_POLICY('DEMO', 'T', 'HALF', 'DEMO', 'SEC'); END;",
    "redaction": "BEGIN DBMS_REDACT.ADD_POLICY(object_schema => 'DEMO', object_name => 'T', policy_name => 'HALF', column_name => 'V',"
    " function_type => DBMS_REDACT.FULL, expression => '1=1'); END;",
}
DROP = {
    "access": "BEGIN DBMS_RLS.DROP_POLICY('DEMO', 'T', 'HALF'); END;",
    "redaction": "BEGIN DBMS_REDACT.DROP_POLICY('DEMO', 'T', 'HALF'); END;",
}
KINDS = pytest.mark.parametrize("kind", list(ADD))
TRUE_ROWS = [(1, "a"), (2, "b")]

oracle = oracle_with(
    "CREATE FUNCTION SEC(O VARCHAR2, N VARCHAR2) RETURN VARCHAR2 IS BEGIN RETURN 'ID < 2'; END;",
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))",
    "CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY)",
    "INSERT INTO T VALUES (1, 'a')",
    "INSERT INTO T VALUES (2, 'b')",
    "INSERT INTO OTHER VALUES (1)",
)
source = capturing("T", "OTHER", runs=False)


def exempt(oracle: Oracle, kind: str) -> None:
    oracle.run(f"GRANT EXEMPT {kind} POLICY TO {CAPTURE}", user=ADMIN)


@KINDS
def test_a_table_with_a_policy_is_refused_until_the_capture_user_is_exempt(
    oracle: Oracle, source: Source, kind: str
) -> None:
    oracle.run(ADD[kind], user=ADMIN)
    with pytest.raises(PreflightError, match=f"GRANT EXEMPT {kind.upper()} POLICY"):
        source.run()
    exempt(oracle, kind)
    source.run()
    assert source.lake.image(table_id("T")) == TRUE_ROWS


@KINDS
def test_a_policy_that_comes_before_a_chunk_is_read_keeps_it_out_of_landing(
    oracle: Oracle, source: Source, kind: str
) -> None:
    """The table stops, the other goes on; once the capture user is exempt, the same chunk has all rows."""
    keys = source.pipeline.start_snapshot()
    [key] = [one for one in keys if one.table == table_id("T")]
    oracle.run(ADD[kind], user=ADMIN)
    with pytest.raises(TableStoppedError, match=f"GRANT EXEMPT {kind.upper()} POLICY"):
        source.pipeline.snapshot_chunk(key)
    folder = chunk_folder("src", key)
    assert not source.pipeline.landing.exists(folder, MANIFEST_NAME)
    source.run()
    source.check_current("OTHER")
    assert source.record("T").state == "failed"
    exempt(oracle, kind)
    source.pipeline.resume_tables([table_id("T")])
    oracle.run("UPDATE T SET V = 'c' WHERE ID = 1")
    source.run()
    assert source.lake.image(table_id("T")) == [(1, "c"), (2, "b")]
    source.check_current("T", "OTHER")


@KINDS
@pytest.mark.parametrize("goes", [False, True], ids=["comes", "goes"])
def test_a_policy_that_comes_or_goes_while_a_chunk_is_read_is_noticed(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch, kind: str, goes: bool
) -> None:
    keys = source.pipeline.start_snapshot()
    [key] = [one for one in keys if one.table == table_id("T")]
    if goes:
        oracle.run(ADD[kind], user=ADMIN)
    _around(monkeypatch, lambda: oracle.run((DROP if goes else ADD)[kind], user=ADMIN), after=goes)
    with pytest.raises(TableStoppedError, match="queries of the capture user"):
        source.pipeline.snapshot_chunk(key)


def _around(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], *, after: bool) -> None:
    """Do something right before a chunk's rows are fetched, or right after."""
    land = read._land

    def landing(*arguments: object) -> object:
        if not after:
            act()
        found = land(*arguments)  # type: ignore[arg-type]
        if after:
            act()
        return found

    monkeypatch.setattr(read, "_land", landing)


@KINDS
def test_windows_go_on_under_a_policy_and_what_is_compared_is_not(
    oracle: Oracle, source: Source, kind: str
) -> None:
    """The redo has what the policy hides. A comparison would call true rows of the mirror wrong, or wrong ones equal."""
    source.begin()
    oracle.run(ADD[kind], user=ADMIN)
    oracle.run("INSERT INTO T VALUES (3, 'c')")
    source.windows()
    assert source.lake.image(table_id("T")) == [*TRUE_ROWS, (3, "c")]
    with pytest.raises(PreflightError, match=f"GRANT EXEMPT {kind.upper()} POLICY"):
        source.compared_rows("T")
    exempt(oracle, kind)
    source.check_current("T")
