"""Generated schedules: whatever comes late, twice, or without its name, every row is read once and every transaction is whole.

Each schedule is a throw of dice over transactions, savepoints, strands, log switches, a second thread, killed sessions, passes
at any moment and lost passes, in both ways to close a window. Then each rule of reading is broken on purpose, and the same
schedules must see it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cdc_core.capture import logminer
from cdc_core.capture.logs import coverage as logs
from cdc_core.capture.logs.coverage import RedoState, RedoThread, read_logs
from cdc_core.capture.logs.positions import read_start, upper_bound
from cdc_core.capture.logs.windows import cut_windows
from cdc_core.capture.passes import reading_position
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.capture.transactions import ledger as ledger_module
from cdc_core.capture.transactions.entry import Entry
from cdc_core.capture.transactions.ledger import TransactionLedger
from cdc_core.capture.transactions.orphans import judged
from cdc_core.capture.transactions.stream import Event, Stream
from cdc_core.change_reader import WindowWork
from cdc_core.config import CloseAt, LogMinerConfig, LogsBy, TableConfig
from cdc_core.errors import CdcError, TransientError
from cdc_core.landing.layout import window_folder
from cdc_core.landing.ledger import LIVING_STATES, ledger_from_rows
from cdc_core.landing.manifest import WindowManifest, read_window_manifest
from cdc_core.model.records import SourceRecord, WindowRecord
from cdc_core.model.redo_address import ThreadPosition
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.transactions import OpenTransaction
from tests.capture.memory_landing import MemoryLanding
from tests.capture.redo_world import Transaction, World, WorldSession
from tests.capture.test_rows import EMP
from tests.landing.facts import PLANNED

SHORT = 30
LONG_PARTS = [range(first, first + 200) for first in range(SHORT, SHORT + 1000, 200)]
MUTANT_SCHEDULES = 150
"""How many are tried until a broken rule is seen; most are by the first."""

STEPS = 140


@dataclass
class Run:
    """A source that captures a world's windows."""

    world: World
    close_at: CloseAt
    logs_by: LogsBy
    source: SourceRecord
    landing: MemoryLanding = field(default_factory=MemoryLanding)
    planned: list[ScnWindow] = field(default_factory=list)
    captured: list[str] = field(default_factory=list)
    ledger: list[OpenTransaction] = field(default_factory=list)
    positions: tuple[ThreadPosition, ...] | None = ()
    evicted: int = 0
    manifests: list[WindowManifest] = field(default_factory=list)

    @classmethod
    def begin(cls, world: World, close_at: CloseAt, logs_by: LogsBy) -> Run:
        start = read_start(WorldSession(world))  # type: ignore[arg-type]
        source = SourceRecord(
            name="src",
            snapshot_scn=start.snapshot_scn,
            mining_low=start.mining_low,
            resetlogs_change=1,
        )
        return cls(world, close_at, logs_by, source)

    @property
    def low(self) -> int:
        return self.planned[-1].scn_high if self.planned else self.source.snapshot_scn

    def plan(self) -> None:
        session: Any = WorldSession(self.world)
        high = upper_bound(session, self.close_at)
        size = self.world.dice.choice((100, 10_000))
        self.planned += cut_windows(Scn(self.low), high, read_logs(session, Scn(self.low)), size)

    def capture(self, *, is_lively: bool) -> None:
        """The next window, unless the pass is lost."""
        ordinal = len(self.captured)
        if ordinal >= len(self.planned):
            return
        window = self.planned[ordinal]
        session: Any = WorldSession(
            self.world, is_lively=is_lively, is_cdb=self.logs_by == "scn_range"
        )
        low = window.scn_low if ordinal else self.source.mining_low
        work = WindowWork(
            source=self.source, record=_record(ordinal, window, low), tables=[EMP],
            ledger=self.ledger, positions=self.positions, joins={}, planned=PLANNED,
        )  # fmt: skip
        try:
            logminer.capture_window(
                session,
                work,
                CaptureRules(
                    tables=(TableConfig(name="HR.EMP"),),
                    rows=9,
                    how=LogMinerConfig(close_at=self.close_at, logs=self.logs_by),
                ),
                self.landing,  # type: ignore[arg-type]
            )
        except TransientError:
            return
        folder = window_folder("src", window)
        manifest = read_window_manifest(self.landing.landed[folder], where=folder)
        self.captured.append(folder)
        kept = [
            row
            for row in self.landing.rows(folder, "transactions")
            if row["state"] in LIVING_STATES
        ]
        self.ledger, self.positions = ledger_from_rows(kept), manifest.positions
        self.evicted += manifest.facts["transactions_evicted"]
        self.manifests.append(manifest)

    def finish(self) -> None:
        """Everything that is left, twice: what came late with the first windows is read with the last."""
        for _ in range(2):
            self.world.settle()
            self.plan()
            while len(self.captured) < len(self.planned):
                self.capture(is_lively=False)


def _record(ordinal: int, window: ScnWindow, low: Scn) -> WindowRecord:
    return WindowRecord(
        source="src", ordinal=ordinal, window=window, mining_low=low, state="planned", rows=None, seconds=None,
        apply_seconds=None, manifest_sha256=None, created=datetime.now(UTC), captured=None, applied=None,
        last_error=None, key=window.key,
    )  # fmt: skip


def play(seed: int, close_at: CloseAt, logs_by: LogsBy = "files") -> Run:
    """One schedule to its end."""
    dice = Random(seed)
    world = World(dice, threads=dice.choice((1, 2)))
    for _ in range(dice.randint(0, 40)):
        world.step()
    run = Run.begin(world, close_at, logs_by)
    for _ in range(STEPS):
        world.step()
        if dice.random() < 0.10:
            run.plan()
        if dice.random() < 0.12:
            run.capture(is_lively=True)
    run.finish()
    return run


def differences(run: Run) -> list[str]:
    """What is not as it must be; empty for a schedule that was read rightly."""
    redo = [row for folder in run.captured for row in run.landing.rows(folder, "redo")]
    ended = [
        row | {"window": manifest.window}
        for folder, manifest in zip(run.captured, run.manifests, strict=True)
        for row in run.landing.rows(folder, "transactions")
    ]
    found = [f"{text} landed {n} times" for text, n in Counter(row["sql_redo"] for row in redo).items() if n > 1]  # fmt: skip
    landed = {row["sql_redo"]: row for row in redo}
    commits: dict[str, list[dict[str, Any]]] = {}
    for row in ended:
        if row["state"] == "commit":
            commits.setdefault(row["xid"], []).append(row)
    for one in run.world.transactions:
        found += _row_differences(one, landed, run.source.mining_low)
        found += _commit_differences(one, landed, commits.pop(one.xid, []), run.source.snapshot_scn)  # fmt: skip
    found += [f"nobody committed {xid}" for xid in commits if not xid.endswith("ffffffff")]
    vanished = sum(one.has_vanished for one in run.world.transactions)
    found += _ledger_differences(run)
    found += _late_differences(run, ended)
    if run.evicted > vanished:
        found.append(f"{run.evicted} transactions were evicted, and {vanished} had no end")
    return found


def _late_differences(run: Run, ended: list[dict[str, Any]]) -> list[str]:
    """What a window tells of commits that belong to earlier ones is what it brings of them, and no table stops for it."""
    found = [
        f"{manifest.left} in {manifest.window.key}" for manifest in run.manifests if manifest.left
    ]
    for manifest in run.manifests:
        scns = [
            row["commit_scn"] for row in ended if row["window"] == manifest.window and row["late"]
        ]
        told = (manifest.transactions_late, manifest.late_scn, manifest.tables_late)
        if told != (len(scns), min(scns, default=None), ("HR.EMP",) if scns else ()):
            found.append(f"{told} for {scns} in {manifest.window.key}")
    return found


def _ledger_differences(run: Run) -> list[str]:
    """Only what is open, or was left without an end, may still be there as open; and one transaction a slot."""
    living = {one.xid for one in run.world.transactions if not one.has_ended or one.has_vanished}
    gone = {one.xid for one in run.world.transactions if one.has_ended and one.commit_scn is None}
    kept = [one for one in run.ledger if not one.xid.endswith("ffffffff")]
    ended = [
        f"{one.xid} is still open" for one in kept if one.state == "open" and one.xid not in living
    ]
    ended += [
        f"{one.xid} was given up" for one in kept if one.state == "released" and one.xid not in gone
    ]
    slots = Counter(one.xid[:8] for one in run.ledger if one.state != "displaced")
    return ended + [f"slot {slot} has {n} transactions" for slot, n in slots.items() if n > 1]


def _row_differences(one: Transaction, landed: Mapping[str, Any], mining_low: int) -> list[str]:
    if one.start_scn <= mining_low or one.has_vanished:
        return []
    waiting = {record.change.ident for record in one.waiting if record.change}
    expected = [change.ident for change in one.changes if change.ident not in waiting]
    lost = [f"{text} was lost" for text in expected if text not in landed]
    return lost + [
        f"{text} landed under {landed[text]['xid']}"
        for text in expected
        if text in landed and landed[text]["xid"] != one.xid
    ]


def _commit_differences(
    one: Transaction, landed: Mapping[str, Any], commits: list[dict[str, Any]], snapshot_scn: int
) -> list[str]:
    after = [row for row in commits if row["commit_scn"] > snapshot_scn]
    if one.commit_scn is None:
        return [f"{one.xid} did not commit"] if commits else []
    if one.commit_scn <= snapshot_scn or not one.changes:
        return [f"{one.xid} is in the snapshot"] if after else []
    if len(after) != 1:
        return [f"{one.xid} committed {len(after)} times"]
    [commit] = after
    mine = [
        change.ident
        for change in one.changes
        if (row := landed.get(change.ident))
        and row["xid"] == commit["xid"]
        and commit["first_ordinal"] <= row["ordinal"] < commit["commit_ordinal"]
    ]
    facts = (mine, commit["commit_scn"], commit["rows"], commit["undone"], commit["late"])
    is_late = one.commit_scn <= commit["window"].scn_low
    undone = sum(change.is_undo for change in one.changes)
    expected = (
        [change.ident for change in one.changes],
        one.commit_scn,
        len(one.changes),
        undone,
        is_late,
    )
    return [] if facts == expected else [f"{one.xid}: {facts} for {expected}"]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: None)
    logging.getLogger("cdc_core").setLevel(logging.ERROR)


def _long(logs_by: LogsBy, part: range) -> Any:
    return pytest.param(logs_by, part, marks=pytest.mark.slow)


@pytest.mark.parametrize("close_at", ["completed_logs", "online"])
@pytest.mark.parametrize(
    ("logs_by", "seeds"),
    [
        ("files", range(SHORT)),
        ("scn_range", range(SHORT, SHORT + 8)),
        *(_long("files", part) for part in LONG_PARTS),
        _long("scn_range", LONG_PARTS[0]),
    ],
    ids=str,
)
def test_every_row_is_read_once_and_every_transaction_is_whole(
    logs_by: LogsBy, seeds: range, close_at: CloseAt
) -> None:
    windows = transactions = late = released = 0
    for seed in seeds:
        run = play(seed, close_at, logs_by)
        assert differences(run) == [], f"schedule {seed}"
        windows += len(run.captured)
        transactions += len(run.world.transactions)
        late += sum(manifest.transactions_late for manifest in run.manifests)
        released += sum(manifest.transactions_released for manifest in run.manifests)
    assert windows > 3 * len(seeds)
    assert transactions > 10 * len(seeds)
    if logs_by == "files" and seeds.start == 0:  # one in a hundred schedules; these have two
        assert released, "sessions were killed"
    assert (late > 0) == (close_at == "online"), "logs that were switched are read to their ends"


# --- each rule broken on purpose ------------------------------------------------------------------


def _new_by_scn_alone(rows: pa.RecordBatch, scn_low: int, positions: Any) -> Any:
    return rows.column("scn").to_numpy(zero_copy_only=False) > scn_low


def _new_by_address_alone(rows: pa.RecordBatch, scn_low: int, positions: Any) -> Any:
    is_new = REAL_NEW_ROWS(rows, 2**62, positions)
    unknown = ~np.isin(rows.column("thread").to_numpy(zero_copy_only=False), list(positions))
    return is_new | (unknown & _new_by_scn_alone(rows, scn_low, positions))


def _new_by_one_mark_for_all(rows: pa.RecordBatch, scn_low: int, positions: Any) -> Any:
    marks = [one.address for one in positions.values() if one.address is not None]
    one_mark = max(marks, default=None)
    mixed = {thread: replace(one, address=one_mark) for thread, one in positions.items()}
    return REAL_NEW_ROWS(rows, scn_low, mixed)


def _new_is_everything(rows: pa.RecordBatch, scn_low: int, positions: Any) -> Any:
    return np.ones(rows.num_rows, dtype=np.bool_)


def _forgets_older_marks(self: Reading, thread: int) -> ThreadPosition:
    return replace(REAL_POSITION(self, thread), address=self._highest.get(thread))


def _reads_log_starts_later(state: RedoState) -> Any:
    found, scn = REAL_LOG_STARTS(state), state.database.current_scn
    return {thread: replace(one, first_change=scn + 1) for thread, one in found.items()}


def _leaves_partial_xids(self: TransactionLedger, stream: Stream[Entry], event: Event) -> None:
    stream.leave_out(event)


def _resolves_by_the_ledger_before(
    self: TransactionLedger, stream: Stream[Entry], event: Event
) -> None:
    """As a ledger that looks slots up once, when the window begins."""
    if not hasattr(_resolves_by_the_ledger_before, "of") or _resolves_by_the_ledger_before.of[0] is not self:  # fmt: skip
        _resolves_by_the_ledger_before.of = (self, dict(self._slots))  # type: ignore[attr-defined]
    occupant = _resolves_by_the_ledger_before.of[1].get(event.slot)  # type: ignore[attr-defined]
    if occupant is not None:
        stream.give(event, occupant)


def _believes_rollbacks(self: TransactionLedger, stream: Any, entry: Entry, event: Event) -> bool:
    return True


def _believes_no_rollback(self: TransactionLedger, stream: Any, entry: Entry, event: Event) -> bool:
    return event.operation == ledger_module.COMMIT


def _knows_full_xids_only(self: TransactionLedger, stream: Stream[Entry], event: Event) -> Any:
    return None if event.is_partial else REAL_ENDED_BY(self, stream, event)


def _ends_whatever_is_in_the_slot(self: TransactionLedger, stream: Any, event: Event) -> Any:
    return self._slots.get(event.slot)


def _drops_late_commits(self: TransactionLedger, entry: Entry, event: Event) -> None:
    """As if whatever committed at or below the lower end were in the snapshot."""
    if event.scn > self._window.scn_low:
        REAL_COMMIT(self, entry, event)


def _evicts_nobody(self: TransactionLedger, entry: Entry, *_more: Any) -> None:
    return None


def _counts_no_undo(self: TransactionLedger, stream: Any, entry: Entry, event: Event) -> bool:
    """Ends a transaction at a doubtful ROLLBACK row instead of setting it aside."""
    if event.operation == ledger_module.COMMIT or not (event.is_partial or event.has_no_address):
        return True
    return not stream.has_changes(entry, event.at)


def _plans_to_the_present(self: Run) -> None:
    """Not at the end of the switched logs, without looking back for it."""
    self.planned += cut_windows(Scn(self.low), Scn(self.world.scn), (), 1)
    self.positions = None if self.captured else ()


def _gives_up_at_once(ledger: Any, living: Any, **_more: Any) -> Any:
    gone = (one.xid not in living.transactions for one in ledger)
    return [
        replace(one, state="released") if is_gone else one
        for one, is_gone in zip(ledger, gone, strict=True)
    ]


def _gives_up_unmined(ledger: Any, living: Any, *, before: Any, scn_low: int) -> Any:
    return REAL_JUDGED(ledger, living, before=before, scn_low=Scn(2**62))


REAL_JUDGED = judged
REAL_NEW_ROWS = reading_position.new_rows
REAL_POSITION = Reading._position
REAL_LOG_STARTS = logs.log_starts
REAL_ENDED_BY = TransactionLedger._ended_by
REAL_COMMIT = TransactionLedger._commit

MUTANTS: dict[str, tuple[CloseAt, object, str, object]] = {
    "a cursor by SCN": ("online", reading_position, "new_rows", _new_by_scn_alone),
    "a cursor by address": ("online", reading_position, "new_rows", _new_by_address_alone),
    "one mark for all threads": ("online", reading_position, "new_rows", _new_by_one_mark_for_all),
    "everything is new": ("online", reading_position, "new_rows", _new_is_everything),
    "marks of the last pass alone": ("online", Reading, "_position", _forgets_older_marks),
    "no looking back": ("online", Reading, "mining_low", property(lambda self: self.scn_low)),
    "log starts read too late": ("online", logminer, "log_starts", _reads_log_starts_later),
    "completed logs that end at the present": ("completed_logs", Run, "plan", _plans_to_the_present),
    "private threads left out of the bound": ("completed_logs", RedoThread, "is_written", property(lambda self: self.enabled == "PUBLIC")),
    "private threads left out": ("online", logs, "_needed", lambda thread, low, high: None if thread.enabled == "PRIVATE" else (low + 1, high)),
    "partial XIDs left as they are": ("online", TransactionLedger, "_give", _leaves_partial_xids),
    "slots looked up once a window": ("online", TransactionLedger, "_give", _resolves_by_the_ledger_before),
    "every ROLLBACK row believed": ("online", TransactionLedger, "_is_over", _believes_rollbacks),
    "a doubtful ROLLBACK forgets": ("online", TransactionLedger, "_is_over", _counts_no_undo),
    "no ROLLBACK row believed": ("online", TransactionLedger, "_is_over", _believes_no_rollback),
    "partial XIDs end nothing": ("online", TransactionLedger, "_ended_by", _knows_full_xids_only),
    "an end ends what is in its slot": ("online", TransactionLedger, "_ended_by", _ends_whatever_is_in_the_slot),
    "late commits dropped": ("online", TransactionLedger, "_commit", _drops_late_commits),
    "given up at the first absence": ("online", logminer, "judged", _gives_up_at_once),
    "given up before it was mined past": ("online", logminer, "judged", _gives_up_unmined),
    "a START evicts nobody": ("online", TransactionLedger, "_displace", _evicts_nobody),
}  # fmt: skip
"""What is broken, and in which way of closing windows it is looked for."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    close_at, where, attribute, broken = MUTANTS[name]
    monkeypatch.setattr(where, attribute, broken)
    assert any(_is_seen(seed, close_at) for seed in range(MUTANT_SCHEDULES)), "nobody saw it"


def _is_seen(seed: int, close_at: CloseAt) -> bool:
    try:
        return differences(play(seed, close_at)) != []
    except (CdcError, AssertionError, KeyError, RuntimeError):
        return True
