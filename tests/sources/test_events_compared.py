"""``redolake compare-events`` behind each reader: events of LogMiner's changes are those of its change log, and one that differs is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diagnosis.events import compare_events
from tests.lake.test_envelope import written
from tests.lake.test_event_comparison import debeziums
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.sources.adapters import READERS
from tests.steps.harness import source_of

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, N NUMBER, AT TIMESTAMP(6), ZONED TIMESTAMP(3) WITH TIME ZONE, R RAW(8))",
    "INSERT INTO T (ID, N) VALUES (1, 0.1)",
)
CHANGES = 7


@pytest.mark.parametrize("name", sorted(READERS.keys() - {"logminer"}))
def test_events_are_compared_with_the_change_log(oracle: Oracle, tmp_path: Path, name: str) -> None:
    with (
        READERS[name](oracle, tmp_path) as reader,
        source_of(oracle, tmp_path / "one", "T", lake={"path": str(tmp_path / "a")}) as logminer,
        source_of(
            oracle,
            tmp_path / "two",
            "T",
            capture=reader.capture,
            lake={"path": str(tmp_path / "b")},
        ) as other,
    ):
        for source in (logminer, other):
            source.run()
        oracle.run(
            "INSERT INTO T VALUES (2, 1E-20, TIMESTAMP '2026-01-02 03:04:05.123456',"
            " TIMESTAMP '2026-07-02 03:04:05.123 +02:00', HEXTORAW('00FF'))",
            "UPDATE T SET N = N / 7 WHERE ID IN (1, 2)",
        )
        oracle.run("UPDATE T SET ID = 3 WHERE ID = 2", "DELETE FROM T WHERE ID = 3")
        oracle.run("INSERT INTO T (ID) VALUES (4)")
        reader.bring()
        for source in (logminer, other):
            source.windows()
            written(source, "T")
        events = debeziums(logminer)
        found = compare_events(other.pipeline, map(json.dumps, events))
        assert (found.equal, found.differences) == (len(events), ())
        assert len(events) == CHANGES
        events[0]["after"]["R"] = "AP4="
        [told] = compare_events(other.pipeline, map(json.dumps, events)).differences
        assert (told.what, told.op, told.fields) == ("differs", "c", ("after.R",))
