"""Why is a source behind: each verdict by facts that lead to it, and to no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from cdc_core.model.lag import (
    LagCause,
    LagFacts,
    LagPart,
    LagVerdict,
    RecentWork,
    Stretch,
    TableWork,
    WaitingTable,
    explain_lag,
)
from cdc_core.model.reports import TransactionStatus

WORK = RecentWork(
    windows=4,
    redo_seconds=1200,
    logs=8,
    rows_mined=5000,
    rows_landed=4000,
    capture_seconds=100,
    start_seconds=10,
    fetch_seconds=80,
    apply_seconds=50,
    tables=(
        TableWork(
            table="SHOP.ORDERS",
            changes=4000,
            seconds=45,
            ways=("merge",),
            stage_seconds=5,
            merge_seconds=40,
        ),
    ),
)
OPEN = TransactionStatus(
    xid="0a001b00c1230000",
    state="open",
    username="SHOP",
    client_id=None,
    session_id=7,
    serial=9,
    start_scn=50,
    started=None,
    seen=None,
    open_seconds=4000,
    tables=("SHOP.ORDERS",),
    rows=12,
    keeps_windows_from=None,
)
PAUSED = WaitingTable(
    table="SHOP.ITEMS",
    state="paused",
    position=100,
    reason="paused by a command",
    way_out="`redolake table resume SHOP.ITEMS`",
)


def parts(**seconds: float) -> tuple[LagPart, ...]:
    """A lag in its four parts of 10 SCNs each; seconds by part, 0 if not named."""
    whats: tuple[Stretch, ...] = get_args(Stretch)
    return tuple(
        LagPart(
            what=what,
            scn_low=100 + 10 * place,
            scn_high=110 + 10 * place,
            seconds=seconds.get(what, 0),
        )
        for place, what in enumerate(whats)
    )


FACTS = LagFacts(
    source="shop",
    scn_oracle=140,
    scn_closable=130,
    scn_captured=120,
    scn_applied=110,
    scn_table=100,
    parts=parts(open=5),
    oracle_error=None,
    not_closable=None,
    last_error=None,
    windows_to_capture=3,
    windows_to_apply=2,
    work_waits_seconds=600,
    idle_seconds=1,
    holders=("shop/capture",),
    waiting=(),
    oldest_open=None,
    work=WORK,
    reader="logminer",
    waits_for_log_switch=True,
    can_close_online=True,
    reads_dictionary=False,
    sessions=2,
    merges_by_spark=False,
)
BEHIND: dict[str, Any] = {"parts": parts(capture=900, open=30)}
UNAPPLIED: dict[str, Any] = {"parts": parts(apply=900, open=30)}
UNCLOSED: dict[str, Any] = {"parts": parts(open=900)}


def table_work(**changed: Any) -> RecentWork:
    return replace(WORK, tables=(replace(WORK.tables[0], **changed),))


CASES: dict[str, tuple[dict[str, Any], LagCause, str]] = {
    "keeps up": ({}, "nothing", "Nothing"),
    "long transaction": ({"oldest_open": OPEN}, "transaction", "`redolake status`"),
    "young transaction": (
        {"oldest_open": replace(OPEN, open_seconds=30)}, "nothing", "Nothing"
    ),
    "no Oracle": ({"oracle_error": "ORA-12541", "parts": ()}, "oracle", "`redolake doctor`"),
    "no snapshot": ({"scn_table": None, "parts": ()}, "snapshot", "`redolake snapshot`"),
    "a window fails": ({**UNAPPLIED, "last_error": "it broke"}, "error", "`redolake run`"),
    "nobody captures": (
        {**BEHIND, "holders": (), "idle_seconds": 900}, "nobody", "`redolake run --loop`"
    ),
    "nobody applies": (
        {**UNAPPLIED, "holders": (), "idle_seconds": None}, "nobody", "`redolake run --loop`"
    ),
    "between two rounds": ({**BEHIND, "holders": ()}, "logminer-fetch", "capture.sessions: 4"),
    "a table": (
        {"parts": parts(table=900, open=30), "waiting": (PAUSED,)}, "table",
        "redolake table resume SHOP.ITEMS",
    ),
    "log switch": (UNCLOSED, "log-switch", "capture.close_at: online"),
    "log switch, archived only": (
        {**UNCLOSED, "can_close_online": False}, "log-switch", "ARCHIVE_LAG_TARGET"
    ),
    "idle instance": ({**UNCLOSED, "waits_for_log_switch": False}, "redo-end", "flush_table"),
    "other reader": (
        {**UNCLOSED, "reader": "openlogreplicator"}, "reader", "openlogreplicator runs"
    ),
    "redo is missing": (
        {**UNCLOSED, "not_closable": ("a log is not archived", "Wait for it.")},
        "redo-missing", "Wait for it.",
    ),
    "slow fetch, all sessions": ({**BEHIND, "sessions": 16}, "logminer-fetch", "`tables`"),
    "slow start": (
        {**BEHIND, "work": replace(WORK, start_seconds=80, fetch_seconds=10)},
        "logminer-start", "capture.window_redo_bytes_max",
    ),
    "slow start by the dictionary": (
        {
            **BEHIND,
            "work": replace(WORK, start_seconds=80, fetch_seconds=10),
            "reads_dictionary": True,
        },
        "logminer-start", "capture.strategy: online_catalog",
    ),
    "slow landing": (
        {**BEHIND, "work": replace(WORK, start_seconds=5, fetch_seconds=10)}, "landing",
        "`landing`",
    ),
    "Spark merges": (UNAPPLIED, "spark-merge", "maintenance.deletion_vectors"),
    "Spark merges all": ({**UNAPPLIED, "merges_by_spark": True}, "spark-merge", "lake.merge"),
    "copy-on-write": (
        {**UNAPPLIED, "work": table_work(ways=("copy-on-write", "merge"))}, "copy-on-write",
        "maintenance.deletion_vectors",
    ),
    "deletion vectors": (
        {**UNAPPLIED, "work": table_work(ways=("deletion vectors",))}, "deletion-vectors",
        "`redolake maintain`",
    ),
    "append": (
        {**UNAPPLIED, "work": table_work(ways=("append",))}, "append", "lake.tables_at_once"
    ),
    "staging": (
        {**UNAPPLIED, "work": table_work(stage_seconds=50)}, "staging", "lake.tables_at_once"
    ),
    "nothing was timed": (
        {**UNAPPLIED, "work": replace(WORK, tables=())}, "staging", "`redolake run`"
    ),
}  # fmt: skip


def verdict(**changed: Any) -> LagVerdict:
    return explain_lag(replace(FACTS, **changed))


@pytest.mark.parametrize(("changed", "cause", "change"), CASES.values(), ids=list(CASES))
def test_facts_lead_to_one_cause_and_one_change(
    changed: dict[str, Any], cause: LagCause, change: str
) -> None:
    found = verdict(**changed)
    assert found.cause == cause
    assert change in found.change


def test_each_cause_has_facts_that_lead_to_it() -> None:
    assert {cause for _, cause, _ in CASES.values()} == set(get_args(LagCause))


def test_parts_add_up() -> None:
    facts = replace(FACTS, parts=parts(table=1, apply=2, capture=3, open=4))
    assert (facts.scns, facts.seconds) == (40, 10)
    assert replace(FACTS, parts=()).seconds is None


def test_a_verdict_says_the_numbers_that_it_was_made_of() -> None:
    assert "of 100.0 s of capture, 80.0 s" in verdict(**BEHIND).why
    assert "SHOP.ORDERS took 45.0 s of 50.0 s" in verdict(**UNAPPLIED).why
    assert (
        "3 windows to capture and 2 to apply" in verdict(**BEHIND, holders=(), idle_seconds=900).why
    )
