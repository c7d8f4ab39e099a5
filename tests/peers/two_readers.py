"""How do Debezium's events and our change log differ on one random load that both read while it runs? Also a command:
``python -m tests.peers.two_readers --transactions 10000 --strategy redo_log_catalog``."""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import oracledb

from oracle_embedded.database import CAPTURE
from oracle_embedded.redo import LobRows, Wart
from tests.oracle.embedded import PASSWORDS, Oracle, running_oracle
from tests.peers.debezium import UNAVAILABLE, Debezium, Event, Image, debezium, events_of_change_log
from tests.steps.harness import Source, source_of, table_id

SEED = 1
LAST = 9_999_999
KINDS = {"ID": "number", "V": "text", "N": "number", "D": "date", "T": "timestamp", "R": "raw"}
TABLES = ("ONE", "TWO")
COLUMNS = (
    "ID NUMBER(10) PRIMARY KEY, V VARCHAR2(60), N NUMBER(12,2), D DATE, T TIMESTAMP(6), R RAW(8)"
)
LOSING = (Wart.LATE_REDO, Wart.SPURIOUS_ROLLBACKS, Wart.PARTIAL_XIDS)
"""The oddities of a real LogMiner that make Debezium lose rows: docs/reference/clients.md has the figures."""

_LOB_SIZES = (0, 5, 1500, 4500, 9000)


class Load(StrEnum):
    """What the sessions do."""

    PLAIN = "plain"
    """Interleaved transactions of three sessions with savepoints, rollbacks and changes of keys."""

    LOBS = "lobs"
    """The same without savepoints and changes of keys, in a table with a CLOB and a BLOB of up to 9,000 characters or bytes."""

    LOBS_AND_KEYS = "lobs_and_keys"
    """And with changes of keys. Debezium takes the LOBs of such a row from the table as it is when the event is sent, which later
    transactions may have changed: docs/reference/clients.md has the figures."""

    LOBS_UNDONE = "lobs_undone"
    """And with savepoints that take INSERTs back."""

    DDL = "ddl"
    """The plain load, between whose parts columns are added, widened and dropped, while no transaction is open."""


_NO_SAVEPOINTS = (Load.LOBS, Load.LOBS_AND_KEYS)
WITH_LOBS = (Load.LOBS, Load.LOBS_AND_KEYS, Load.LOBS_UNDONE)


@dataclass(frozen=True, slots=True)
class Compared:
    """What came out. ``transactions`` are those whose changes are in our change log; ``missing`` are events of ours that Debezium
    lacks, ``extra`` the other way round."""

    transactions: int
    ours: int
    theirs: int
    missing: list[Event] = field(default_factory=list)
    extra: list[Event] = field(default_factory=list)
    is_in_order: bool = True
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Are the events equal, one by one, in each table's order?"""
        return not self.missing and not self.extra and self.is_in_order


def compare(
    folder: Path,
    *,
    transactions: int,
    strategy: str = "online_catalog",
    load: Load = Load.PLAIN,
    seed: int = SEED,
    hidden: Collection[Wart] = LOSING,
    lob_rows: LobRows = LobRows.PIECES,
) -> Compared:
    """Let both read the load, and compare. Our mirror equals Oracle afterwards, or an AssertionError says so."""
    tables = tables_of(load)
    columns = "ID NUMBER(10) PRIMARY KEY, V VARCHAR2(60), C CLOB, B BLOB" if load in WITH_LOBS else COLUMNS  # fmt: skip
    options = {"log.mining.strategy": strategy}
    if load in WITH_LOBS:
        options["lob.enabled"] = "true"
    began = time.monotonic()
    seconds: dict[str, float] = {}
    with running_oracle(lob_rows=lob_rows) as oracle:
        for wart in hidden:
            oracle.database.redo.set_wart(wart, shown=False)
        oracle.run(*(f"CREATE TABLE {name} ({columns})" for name in tables))
        theirs_in = folder / "debezium"
        theirs_in.mkdir(parents=True)
        names = [f"DEMO.{name}" for name in tables]
        with (
            source_of(oracle, folder / "ours", *tables) as source,
            debezium(oracle.server.port, PASSWORDS[CAPTURE], theirs_in, names, **options) as peer,
        ):
            source.run()
            seconds["start"] = time.monotonic() - began
            run_load(oracle, peer, transactions=transactions, load=load, seed=seed)
            seconds["debezium"] = time.monotonic() - began
            source.windows()
            seconds["redolake"] = time.monotonic() - began
            source.check_current(*tables)
            return _compared(source, peer, tables, load, seconds)


def run_load(
    oracle: Oracle,
    peer: Debezium,
    *,
    transactions: int,
    load: Load = Load.PLAIN,
    seed: int = SEED,
) -> None:
    """Run a load, and wait until Debezium has read it: to a last row of each table."""
    tables = tables_of(load)
    _Sessions(oracle, seed, tables, load, peer).run(transactions)
    oracle.run(*(f"INSERT INTO {name} (ID) VALUES ({LAST})" for name in tables))
    peer.wait(lambda: len(re.findall(f'"ID":"?{LAST}', peer.newest())) == len(tables))


def tables_of(load: Load) -> tuple[str, ...]:
    """The tables of a load."""
    return ("DOCS",) if load in WITH_LOBS else TABLES


def _compared(
    source: Source,
    peer: Debezium,
    tables: Sequence[str],
    load: Load,
    seconds: Mapping[str, float],
) -> Compared:
    kinds = KINDS | {"C": "text", "B": "raw"} | {f"X{at}": "text" for at in range(10)}
    theirs = _reduced(peer.events(kinds), load)
    ours = [
        event
        for name in tables
        for event in _reduced(
            events_of_change_log(name, source.lake.tables[table_id(name)].history, kinds, "ID"),
            load,
        )
    ]
    by_table = [
        ([one for one in theirs if one.table == name], [one for one in ours if one.table == name])
        for name in tables
    ]
    missing, extra = Counter(ours) - Counter(theirs), Counter(theirs) - Counter(ours)
    return Compared(
        len({(event.commit_scn, event.xid) for event in ours}),
        len(ours),
        len(theirs),
        sorted(missing.elements(), key=_place),
        sorted(extra.elements(), key=_place),
        is_in_order=bool(missing or extra) or all(one == other for one, other in by_table),
        seconds=seconds,
    )


def _place(event: Event) -> tuple[int, str, str]:
    return event.commit_scn, event.table, event.op


def _reduced(events: Sequence[Event], load: Load) -> list[Event]:
    """What both readers can say, in one form. Where columns come and go, one that is not there counts as NULL. Debezium makes one event
    of a statement and its writes of LOBs, which are rows of their own in the redo and in our change log: there the rows that a
    transaction changed are compared, whole, as they are after it."""
    if load in WITH_LOBS:
        return _rows_after_transactions(events)
    if load is Load.DDL:
        return [
            replace(one, before=_without_null(one.before), after=_without_null(one.after))
            for one in events
        ]
    return list(events)


def _without_null(image: Image | None) -> Image | None:
    return image and tuple(one for one in image if one[1] not in (None, UNAVAILABLE))


def _rows_after_transactions(events: Sequence[Event]) -> list[Event]:
    """An event for each row that a transaction changed, ordered by commit and key: the row after it, with what it had before where
    a change carries no value."""
    rows: dict[Any, dict[str, Any]] = {}
    found: dict[tuple[int, str, str, Any], Event] = {}
    carried: dict[str, Any] = {}
    for event in events:
        before, after = dict(event.before or ()), dict(event.after or ())
        if event.op == "delete":
            carried = rows.pop(before["ID"], {})
            key, image = before["ID"], None
        else:
            key = after["ID"]
            known = rows.get(key, carried if event.op == "insert" else {})
            rows[key] = known | {name: value for name, value in after.items() if value != UNAVAILABLE}  # fmt: skip
            image = tuple(sorted(rows[key].items()))
            carried = {}
        at = (event.commit_scn, event.xid, event.table, key)
        found[at] = Event(*at[:3], "row", (("ID", key),), image)
    return [found[at] for at in sorted(found)]


class _Sessions:
    """Three sessions, each of which changes rows that it made, so that they do not wait for each other."""

    def __init__(
        self, oracle: Oracle, seed: int, tables: Sequence[str], load: Load, peer: Debezium
    ) -> None:
        self.oracle, self.tables, self.load, self.peer = oracle, tables, load, peer
        self.dice = random.Random(seed)
        self.owned: list[dict[str, list[int]]] = [{name: [] for name in tables} for _ in range(3)]
        self.columns: list[str] = []

    def run(self, transactions: int) -> None:
        """So many transactions that change something and commit, besides those that roll back."""
        parts = 8 if self.load is Load.DDL else 1
        number = 0
        for part in range(parts):
            number = self._part(number, transactions * (part + 1) // parts - transactions * part // parts)  # fmt: skip
            if part + 1 < parts:
                self._change_columns(part)

    def _part(self, number: int, transactions: int) -> int:
        dice, committed, changed = self.dice, 0, [0, 0, 0]
        with ExitStack() as stack:
            sessions = [stack.enter_context(self.oracle.owner()) for _ in self.owned]
            while committed < transactions:
                number += 1
                at = dice.randrange(len(sessions))
                with sessions[at].cursor() as cursor:
                    for step in range(dice.randrange(1, 6)):
                        if self.load not in _NO_SAVEPOINTS and dice.random() < 0.2:
                            cursor.execute("SAVEPOINT S")
                            self._undone(cursor, self.owned[at], number * 20 + step)
                            cursor.execute("ROLLBACK TO SAVEPOINT S")
                        self._change(cursor, self.owned[at], number * 20 + 10 + step)
                        changed[at] += cursor.rowcount
                if dice.random() < 0.7:
                    if dice.random() < 0.8:
                        sessions[at].commit()
                        committed += changed[at] > 0
                    else:
                        sessions[at].rollback()
                    changed[at] = 0
            for session in sessions:
                session.commit()
        return number

    def _undone(self, cursor: Any, owned: dict[str, list[int]], number: int) -> None:
        """What a savepoint takes back. Of LOBs an INSERT: LogMiner does not say which writes of an UPDATE are taken back, and a table
        where that happens stops."""
        if self.load in WITH_LOBS:
            both = ("C", "B")
            self._put(cursor, "INSERT INTO DOCS (ID, V, C, B) VALUES (:id, 'v', :c, :b)", number * 3 + 1, both)  # fmt: skip
        else:
            self._change(cursor, owned, number)

    def _change_columns(self, part: int) -> None:
        """A column more, a longer one, one less. Debezium has read what came before, since its online catalog knows no past."""
        mark = LAST - 1 - part
        self.oracle.run(f"INSERT INTO ONE (ID) VALUES ({mark})")
        self.peer.wait(lambda: f'"ID":"{mark}"' in self.peer.newest())
        kind = part % 3
        if kind == 0:
            self.columns.append(f"X{part}")
            ddl = [f"ALTER TABLE {name} ADD (X{part} VARCHAR2(20))" for name in self.tables]
        elif kind == 1:
            ddl = [f"ALTER TABLE {name} MODIFY (V VARCHAR2({60 + 20 * part}))" for name in self.tables]  # fmt: skip
        else:
            gone = self.columns.pop(0)
            ddl = [f"ALTER TABLE {name} DROP COLUMN {gone}" for name in self.tables]
        self.oracle.run(*ddl)

    def _change(self, cursor: Any, owned: dict[str, list[int]], number: int) -> None:
        """One statement."""
        table = self.dice.choice(self.tables)
        ids, what = owned[table], self.dice.random()
        if not ids or what < 0.5:
            new = number * 3 + 1
            if self.load in WITH_LOBS:
                self._put(cursor, "INSERT INTO DOCS (ID, V, C, B) VALUES (:id, 'v', :c, :b)", new, ("C", "B"))  # fmt: skip
            else:
                self._insert(cursor, table, new)
            ids.append(new)
        elif what < 0.75 and self.load in WITH_LOBS:
            names = self.dice.sample(("C", "B"), self.dice.randint(1, 2))
            sets = ", ".join(f"{name} = :{name.lower()}" for name in names)
            self._put(cursor, f"UPDATE DOCS SET {sets} WHERE ID = :id", self.dice.choice(ids), names)  # fmt: skip
        elif what < 0.75:
            cursor.execute(
                f"UPDATE {table} SET V = :1, N = :2 WHERE ID = :3",
                [f"v{number}", self.dice.randrange(100), self.dice.choice(ids)],
            )
        elif what < 0.85 and self.load is not Load.LOBS:
            old = self.dice.choice(ids)
            cursor.execute(f"UPDATE {table} SET ID = :1 WHERE ID = :2", [number * 3 + 2, old])
            ids.append(number * 3 + 2)
        else:
            cursor.execute(f"DELETE FROM {table} WHERE ID = :1", [self.dice.choice(ids)])

    def _insert(self, cursor: Any, table: str, new: int) -> None:
        dice = self.dice
        values: list[Any] = [
            new,
            dice.choice(("a'b", "naïve ✓", None, "x" * 60)),
            dice.randrange(-(10**9), 10**9) / 100,
            dice.randrange(900),
        ]
        more = "".join(f", {name}" for name in self.columns)
        marks = "".join(f", :{5 + at}" for at in range(len(self.columns)))
        cursor.execute(
            f"INSERT INTO {table} (ID, V, N, D, T, R{more}) VALUES (:1, :2, :3, DATE '2024-02-29' + :4,"
            f" TIMESTAMP '2024-02-29 01:02:03.456789', HEXTORAW('0AFF'){marks})",
            [*values, *(f"{name} of {new}" for name in self.columns)],
        )

    def _put(self, cursor: Any, sql: str, key: int, names: Sequence[str]) -> None:
        held: dict[str, Any] = {"id": key}
        for name in names:
            size = self.dice.choice(_LOB_SIZES)
            text = "".join(self.dice.choices("ab'|();é日 ", k=size)) or None
            held[name.lower()] = text if name == "C" else self.dice.randbytes(size) or None
        kinds = {"c": oracledb.DB_TYPE_CLOB, "b": oracledb.DB_TYPE_BLOB}
        cursor.setinputsizes(**{name: kinds[name] for name in kinds if name in held})
        cursor.execute(sql, held)


def _printed(found: Compared, say: Callable[[str], None]) -> None:
    said = {
        "transactions": found.transactions,
        "redolake": found.ours,
        "debezium": found.theirs,
        "missing": len(found.missing),
        "transactions with missing events": len({event.xid for event in found.missing}),
        "extra": len(found.extra),
        "in order": found.is_in_order,
        "seconds": {name: round(value, 1) for name, value in found.seconds.items()},
    }
    say(json.dumps(said))
    for what, events in (("only Redolake", found.missing), ("only Debezium", found.extra)):
        for event in events[:20]:
            say(f"{what}: {event}"[:600])


def main() -> None:
    """Compare once, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transactions", type=int, default=10_000)
    parser.add_argument(
        "--strategy", choices=["online_catalog", "redo_log_catalog"], default="online_catalog"
    )
    parser.add_argument("--load", choices=list(Load), type=Load, default=Load.PLAIN)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--lob-rows", choices=list(LobRows), type=LobRows, default=LobRows.PIECES)
    parser.add_argument(
        "--show", choices=list(Wart), type=Wart, action="append", default=[],
        help="an oddity of LogMiner that makes Debezium lose rows, shown nevertheless",
    )  # fmt: skip
    parser.add_argument("--hide", choices=list(Wart), type=Wart, action="append", default=[])
    parser.add_argument("--keep", type=Path, help="a new folder for both readers' files")
    asked = parser.parse_args()
    hidden = ({*LOSING} - {*asked.show}) | {*asked.hide}
    with tempfile.TemporaryDirectory() as name:
        found = compare(
            asked.keep or Path(name),
            transactions=asked.transactions,
            strategy=asked.strategy,
            load=asked.load,
            seed=asked.seed,
            hidden=hidden,
            lob_rows=asked.lob_rows,
        )
    _printed(found, print)
    raise SystemExit(not found.is_equal)


if __name__ == "__main__":
    main()
