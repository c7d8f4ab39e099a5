"""What happens to the source of a life: load, DDL, long transactions, logs, lost connections."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tests.invariants.events import Event
from tests.invariants.life_judged import JudgedLife
from tests.invariants.shapes import PARTS

LONG_TRANSACTIONS = 3
SAVEPOINT, LATE = LONG_TRANSACTIONS, LONG_TRANSACTIONS + 1
"""Long transactions of their own."""
LATE_TABLES = ("EVENTS", "ACCOUNTS", "EVENTS")


class SourceEvents(JudgedLife):
    """A life to whose database something happens."""

    def _on_load(self, event: Event) -> None:
        """Some transactions, on one table if the event names it."""
        self.load.only = event.what or None
        for _ in range(self.dice.randint(1, 4)):
            self.load.step()
        self.load.only = None

    def _on_tpcc(self, _event: Event) -> None:
        for _ in range(self.dice.randint(1, 3)):
            self.load.tpcc()

    def _on_shift(self, _event: Event) -> None:
        self.load.shift()

    def _on_again(self, _event: Event) -> None:
        self.load.again()

    def _on_long(self, _event: Event) -> None:
        number = self.dice.randrange(LONG_TRANSACTIONS)
        is_other = self._is_cluster and number == LONG_TRANSACTIONS - 1
        connect = self.server.connect_other if is_other else self.server.connect
        self.load.long_part(number, connect)

    def _on_other_instance(self, event: Event) -> bool:
        """Transactions through the second instance, whose redo has a thread of its own; a moment later the first goes on."""
        if not self._is_cluster:
            return False
        with self.server.connect_other() as other, self.load.through(other):
            self._on_load(event)
            self._on_tpcc(event)
        self.load.step()
        return True

    def _on_late_redo(self, _event: Event) -> bool:
        """The last change of an open transaction waits in memory (the strand is full with its START and its first change), and reaches
        the log behind the end of a window above its SCN."""
        if self.completes:
            return False
        for _ in range(2):
            self.load.long_rows(LATE, self.server.connect, 2)
            self.load.shift()
            self.do("capture", "capture")
        self.load.long_end(LATE, commits=self.dice.random() < 0.8)
        self.load.step()
        self.do("capture", "capture")
        return True

    def _on_savepoint(self, _event: Event) -> None:
        """What a savepoint's rollback took back lies in one window, the COMMIT in the next, which has no rollback of its own."""
        self.load.long_part(SAVEPOINT, self.server.connect)
        self._on_switch(_event)
        self.do("capture", "capture")
        self.load.long_end(SAVEPOINT, commits=True)
        self.do("capture", "capture")

    def _on_long_end(self, _event: Event) -> bool:
        if not self.load.long:
            return False
        number = self.dice.choice(sorted(self.load.long))
        self.load.long_end(number, commits=self.dice.random() < 0.7)
        return True

    def _on_grow(self, _event: Event) -> None:
        with self._changed("GROWING"):
            self.load.grow()

    def _on_reshape(self, _event: Event) -> None:
        with self._changed("GROWING"):
            self.load.reshape()

    def _on_other_DDL(self, _event: Event) -> bool:
        """DDL that changes no column: its table goes on."""
        with self._changed("GROWING"):
            self.load.other_ddl()
        return True

    def _on_passing_rows(self, _event: Event) -> None:
        """Rows that a TRUNCATE takes, which no row of the redo does."""
        self.load.passing_rows()

    def _on_truncate(self, _event: Event) -> bool:
        if self._states.get("PASSING") not in ("ready", "removed"):
            return False
        with self._changed("PASSING"):
            self.load.truncate()
        return True

    def _on_partitions(self, _event: Event) -> bool:
        """A partition is dropped or truncated, which the table follows."""
        if self._states.get(PARTS) not in ("ready", "removed"):
            return False
        with self._changed(PARTS):
            self.load.partitions()
        return True

    @contextmanager
    def _changed(self, table: str) -> Iterator[None]:
        """Oracle cannot look back behind the DDL of the block: what is to be compared is compared before."""
        self._note()
        self._compare_noted(table)
        yield
        self.server.put_forward()
        self._blind_below[table] = self._scn()

    def _on_switch(self, _event: Event) -> None:
        """Of every instance: one that is idle is made to switch too, as ARCHIVE_LAG_TARGET does."""
        self.server.administer("ALTER SYSTEM ARCHIVE LOG CURRENT")

    def _on_delete_logs(self, _event: Event) -> bool:
        """Archived logs go that no window, open transaction or joining table can need."""
        limits = self._store("SELECT MIN(start_scn) FROM open_transactions")
        limits += self._store("SELECT MIN(mining_low) FROM windows WHERE state <> 'applied'")
        limits += self._store("SELECT MAX(scn_high) FROM windows")
        known = self._store("SELECT positions FROM windows WHERE positions IS NOT NULL ORDER BY ordinal DESC")  # fmt: skip
        limits += [(one["first_scn"],) for one in (json.loads(known[0][0]) if known else ())]
        with self._capture_session() as cursor:
            cursor.execute("SELECT MIN(START_SCN) FROM GV$TRANSACTION")
            limits += cursor.fetchall()
            limit = min([int(one[0]) for one in limits if one[0] is not None], default=0)
            cursor.execute(
                "SELECT SEQUENCE#, THREAD# FROM V$ARCHIVED_LOG WHERE NEXT_CHANGE# < :1 AND NAME IS NOT NULL",
                [limit],
            )
            logs = sorted({(int(sequence), int(thread)) for sequence, thread in cursor})
        if not self._store("SELECT 1 FROM windows"):
            return False
        for sequence, thread in logs:
            self.server.administer(
                "BEGIN DBMS_REDOLAKE_FAULTS.DELETE_ARCHIVED_LOG(:1, :2); END;",
                **{"1": sequence, "2": thread},
            )
        return bool(logs)

    def _on_lost_connection(self, _event: Event) -> None:
        what = self.dice.choice(("V$LOGMNR_CONTENTS", "AS OF SCN", "V$LOG", "V$TRANSACTION"))
        self.server.arm("LOST_CONNECTION", sql_contains=what, nth=self.dice.randint(1, 3))
        self.do("capture", "capture")
        self.do("capture", "read_chunks")
        self.server.clear_faults()

    def _on_short_read(self, _event: Event) -> bool:
        """A pass ends before the newest log of the second instance, without an error: what committed there comes with the next
        window, below what the first instance has changed since. Other tables than those with LOBs: an update of a row that is not
        there yet would not say all of it."""
        if not self._is_cluster or self.completes:
            return False
        self.do("capture", "capture")
        with self.server.connect_other() as other, self.load.through(other):
            for table in LATE_TABLES:
                self.load.only = table
                self.load.step()
        self.load.only = None
        self.load.tpcc()
        self.server.arm("SHORT_READ")
        self.do("capture", "capture")
        self.server.clear_faults()
        self.do("apply", "apply")
        self._note()
        self.load.step()
        self.do("capture", "capture")
        self.do("apply", "apply")
        return True

    def _on_kill_Oracle(self, _event: Event) -> None:
        self.server.kill_and_restart()
        self._connect()
        self.load.forget_open(self.connection)
        self.proof.kills["the database"] += 1
        for role, command in (("capture", "capture"), ("apply", "apply")):
            self.do(role, command)  # type: ignore[arg-type]
