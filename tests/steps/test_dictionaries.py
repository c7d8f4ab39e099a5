"""Whatever dictionary LogMiner names rows by, the same changes land and the mirror is the same: one contract for all strategies, with DDL
before, inside and behind a window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc_core.capture.logs.coverage import read_logs
from cdc_core.errors import PreflightError, RedoUnavailableError, TransientError
from cdc_core.model.scn import Scn
from oracle_embedded.redo.settings import DEFAULT_WARTS
from tests.oracle.embedded import ADMIN, Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of
from tests.steps.ways import (
    SWITCH,
    WAYS,
    WINDOW,
    build_in_redo,
    changes,
    check_equal,
    play,
    sources_of,
)

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20), B VARCHAR2(20), D DATE)",
    "INSERT INTO T VALUES (1, 'a1', 'b1', DATE '2026-01-01')",
    "INSERT INTO T VALUES (2, 'a2', 'b2', NULL)",
    warts=DEFAULT_WARTS,
)


@pytest.fixture
def sources(
    request: pytest.FixtureRequest, oracle: Oracle, tmp_path: Path
) -> Iterator[dict[str, Source]]:
    """One for each way, or for the named dictionaries."""
    ways = {name: WAYS[name] for name in getattr(request, "param", WAYS)}
    with sources_of(oracle, tmp_path, "T", ways=ways) as opened:
        yield opened


ADD = "ALTER TABLE T ADD (C NUMBER(5))"
DROP = "ALTER TABLE T DROP COLUMN B"
RENAME = "ALTER TABLE T RENAME COLUMN B TO B2"
INSERT = "INSERT INTO T (ID, A, D) VALUES (3, 'a3', DATE '2026-03-03')"
UPDATE = "UPDATE T SET A = 'changed', ID = ID + 10 WHERE ID <= 2"
DELETE = "DELETE FROM T WHERE ID = 3"
LATER = "INSERT INTO T (ID, A) VALUES (4, 'later')"

STORIES = {
    "ddl-at-both-ends": [DROP, INSERT, WINDOW, UPDATE, DELETE, ADD],
    "several-ddls-inside": [INSERT, RENAME, UPDATE, ADD, LATER, DROP.replace(" B", " A"), DELETE],
}
MORE = {
    f"{ddl.split(' T ')[1].split(' ')[0].lower()}-{where}": story
    for ddl in (ADD, DROP, RENAME, "ALTER TABLE T MODIFY (A VARCHAR2(60))", "ALTER TABLE T SET UNUSED (B)")
    for where, story in {
        "before": [ddl, WINDOW, INSERT, UPDATE, DELETE],
        "first": [ddl, INSERT, UPDATE, DELETE],
        "inside": [INSERT, ddl, UPDATE, DELETE],
        "last": [INSERT, UPDATE, DELETE, ddl],
        "after": [INSERT, UPDATE, WINDOW, ddl, DELETE],
    }.items()
}  # fmt: skip


@pytest.mark.parametrize(
    "story",
    [
        *(pytest.param(story, id=name) for name, story in STORIES.items()),
    ],
)
def test_the_same_changes_land_with_every_dictionary(
    oracle: Oracle, sources: dict[str, Source], story: list[str]
) -> None:
    play(oracle, sources, story)
    check_equal(sources, "T")


@pytest.mark.slow
@pytest.mark.parametrize("story", [pytest.param(story, id=name) for name, story in MORE.items()])
def test_every_ddl_at_every_place_by_every_way(
    oracle: Oracle, tmp_path: Path, story: list[str]
) -> None:
    with sources_of(oracle, tmp_path, "T", ways=WAYS) as sources:
        play(oracle, sources, story)
        check_equal(sources, "T")


@pytest.mark.parametrize(
    "sources", [("online_catalog", "redo_log_catalog", "dictionary_from_file")], indirect=True
)
def test_a_table_that_takes_anothers_name_is_told_apart(
    oracle: Oracle, sources: dict[str, Source]
) -> None:
    """The dictionary file calls the old table by the captured name for ever, LogMiner with the online catalog by none."""
    for source in sources.values():
        source.close()
        source.more["policies"] = {"on_drop": "resnapshot"}
    swap = [
        "CREATE TABLE U AS SELECT * FROM T",
        "ALTER TABLE T RENAME TO OLD",
        "ALTER TABLE U RENAME TO T",
    ]
    play(oracle, sources, [INSERT, *swap, "ALTER TABLE T ADD PRIMARY KEY (ID)"])
    for source in sources.values():
        source.run()
    old = ["UPDATE OLD SET A = 'not T' WHERE ID = 1", "INSERT INTO OLD (ID, A) VALUES (8, 'not T')"]
    play(oracle, sources, [*old, DELETE, LATER])
    for source in sources.values():
        source.run()
        source.check_current("T")
        assert "not T" not in repr(changes(source)[-2:]), (
            "rows of the table that had the name before"
        )
    check_equal(sources, "T")


@pytest.mark.parametrize("sources", [("online_catalog", "redo_log_catalog")], indirect=True)
def test_windows_behind_the_newest_dictionary_are_read_with_the_one_before(
    oracle: Oracle, sources: dict[str, Source]
) -> None:
    """Which dictionary is used depends on the window, not on when it is read."""
    oracle.run(INSERT)
    oracle.run(SWITCH, user=ADMIN)
    build_in_redo(oracle)
    play(oracle, sources, [UPDATE, ADD, DELETE])
    check_equal(sources, "T")


def test_a_source_that_lacks_a_dictionary_in_the_redo_says_how_to_build_one(
    tmp_path: Path,
) -> None:
    capture = {"close_at": "completed_logs", "strategy": "redo_log_catalog"}
    with running_oracle(warts=DEFAULT_WARTS) as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)")
        with source_of(oracle, tmp_path, "T", capture=capture) as source:
            with pytest.raises(PreflightError, match=r"deploy/oracle/build_dictionary\.sql"):
                source.run()
            with oracle.owner() as open_before:
                open_before.cursor().execute("INSERT INTO T VALUES (1)")
                build_in_redo(oracle)
                with pytest.raises(TransientError, match="oldest open transaction"):
                    source.run()
                open_before.commit()
            source.run()
            play(oracle, {"": source}, ["INSERT INTO T VALUES (2)"])
            source.check_current("T")


def test_redo_from_the_dictionary_on_must_be_there(oracle: Oracle, tmp_path: Path) -> None:
    """The window's own logs are there: with the online catalog it is read."""
    build_in_redo(oracle)
    way: dict[str, Any] = {"close_at": "completed_logs", "strategy": "redo_log_catalog"}
    with source_of(oracle, tmp_path, "T", capture=way) as source:
        source.begin()
        play(oracle, {"": source}, [INSERT])
        with source.pipeline.database.session() as session:
            logs = read_logs(session, Scn(0))
        between = sorted(log.sequence for log in logs if log.state == "archived")[-2]
        oracle.run(INSERT.replace("3", "5"))
        oracle.run(SWITCH, user=ADMIN)
        oracle.database.redo.delete_archived_log(between)
        with pytest.raises(RedoUnavailableError, match=r"set capture\.strategy to online_catalog"):
            source.run()
        source.close()
        source.more["capture"] = {**way, "strategy": "online_catalog"}
        source.run()
        source.check_current("T")
