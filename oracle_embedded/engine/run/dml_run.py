"""How does a compiled INSERT, UPDATE, DELETE or MERGE run once?

The rows to change are found first, as of the statement's start; other transactions' locks are
waited for before the first change is made, and then the search starts anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from oracle_embedded.api import OracleError, Value
from oracle_embedded.engine.compile.dml import BranchPlan, DmlPlan, RowPlan
from oracle_embedded.engine.compile.plan import Plan
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.run.constraints import row_checker
from oracle_embedded.engine.run.contracts import Firing, SessionState
from oracle_embedded.engine.run.intervals import with_partition_for
from oracle_embedded.engine.run.query_run import (
    Snapshot,
    fill_virtual,
    make_ready,
    parameters,
    translated,
)
from oracle_embedded.engine.run.row_run import over_row
from oracle_embedded.engine.storage.catalog import ClusterDef
from oracle_embedded.engine.storage.fitting import Fitter, fitter
from oracle_embedded.engine.storage.keys import text_columns
from oracle_embedded.engine.storage.rows import Image, RowWriter
from oracle_embedded.engine.storage.transactions import Busy

_CHECK_EVERY = 256
BEFORE, AFTER = range(2)
_EVENTS = {
    "INSERT": ("INSERT",),
    "UPDATE": ("UPDATE",),
    "DELETE": ("DELETE",),
    "MERGE": ("INSERT", "UPDATE"),
    "INSERT ALL": (),
}


@dataclass(slots=True)
class Change:
    """What one execution did: rows changed, the last one's ROWID, and what RETURNING gives per row,
    with its address."""

    count: int = 0
    last: tuple[int, int] | None = None
    returned: list[tuple[Value, ...]] = field(default_factory=list)
    addresses: list[int] = field(default_factory=list)


class ChangeRunner:
    """Runs one plan, perhaps many times. Needs the store's lock throughout."""

    def __init__(self, session: SessionState, plan: DmlPlan) -> None:
        self.session = session
        self.plan = plan
        self.table = plan.table
        self.store = session.database.store
        self.writer: RowWriter | None = None
        sets = session.database.character_sets
        self._fitters: list[tuple[int, Fitter]] = [
            (column.internal_id, fitter(plan.table, column, sets)) for column in plan.targets
        ]
        self._insert_fitters = [
            (column.internal_id, fitter(plan.table, column, sets)) for column in plan.insert_targets
        ]
        self._change = Change()
        self._binds: Sequence[Value] = ()
        self._fired: dict[str, Firing | None] = {}
        catalog = session.database.store.catalog
        self._has_triggers = bool(catalog.triggers_of(plan.table.object_id))

    def run(self, binds: Sequence[Value]) -> Change:
        """Execute once; a failure undoes what the statement did.

        Raises:
            OracleError: As Oracle would.
        """
        session = self.session
        transactions = session.database.transactions
        while True:
            transaction = session.need_transaction()
            start = transactions.seq
            if self.writer is None or self.writer.transaction is not transaction:
                checker = row_checker(session)
                self.writer = RowWriter(
                    transactions, transaction, checker, shapes=session.database.shapes
                )
            self.writer.pending.clear()
            self._change = Change()
            self._binds = binds
            transaction.last_change = None
            try:
                transactions.lock_table(transaction, self.table.object_id, "RX")
                self._fire(BEFORE)
                self._once()
                self.writer.finish()
                self._fire(AFTER)
                transaction.changes += self._change.count
                return self._change
            except Busy as busy:
                transactions.undo_to(transaction, start)
                transactions.wait(transaction, busy.holder, session.is_interrupted, None)
            except BaseException:
                transactions.undo_to(transaction, start)
                session.drop_empty_transaction()
                raise

    def _firing(self, event: str) -> Firing | None:
        """The triggers that one kind of change fires."""
        if event not in self._fired:
            columns = [column.internal_id for column in self.plan.targets]
            programs = self.session.database.programs
            self._fired[event] = programs.firing(self.table, event, columns)
        return self._fired[event]

    def _fire(self, timing: int) -> None:
        """Run the triggers of the statement before it or after it."""
        for event in _EVENTS[self.plan.kind]:
            firing = self._firing(event) if self._has_triggers else None
            if firing is not None:
                chosen = firing.before_statement if timing == BEFORE else firing.after_statement
                for fire in chosen:
                    fire(self.session)

    def _put(self, image: Image) -> int:
        """Insert a row, its triggers around it."""
        assert self.writer is not None
        firing = self._firing("INSERT") if self._has_triggers else None
        if firing is not None:
            for fire in firing.before_row:
                fire(self.session, None, image)
        self.table = with_partition_for(self.session, self.table, image)
        rid = self.writer.insert(self.table, image)
        self._check_policy(rid, image)
        if firing is not None:
            for fire in firing.after_row:
                fire(self.session, None, image)
        return rid

    def _change_row(self, rid: int, old: Image, new: Image) -> int:
        """Update a row, its triggers around it; ``new`` is then what was assigned."""
        assert self.writer is not None
        firing = self._firing("UPDATE") if self._has_triggers else None
        if firing is not None:
            whole = {**old, **new}
            for fire in firing.before_row:
                fire(self.session, old, whole)
            new.update({at: value for at, value in whole.items() if at in new or value != old[at]})
        self.table = with_partition_for(self.session, self.table, {**old, **new})
        rid = self.writer.update(self.table, rid, old, new)
        self._check_policy(rid, {**old, **new})
        if firing is not None:
            for fire in firing.after_row:
                fire(self.session, old, {**old, **new})
        return rid

    def _check_policy(self, rid: int, image: Image) -> None:
        """Hold a new row against the policies of row-level security that check them."""
        if self.plan.check is not None and not all(self.over_row(self.plan.check, rid, image)):
            raise OracleError(28115, "policy with check option violation")

    def _take_out(self, rid: int, old: Image) -> None:
        """Delete a row, its triggers around it."""
        assert self.writer is not None
        firing = self._firing("DELETE") if self._has_triggers else None
        if firing is not None:
            for fire in firing.before_row:
                fire(self.session, old, None)
        self.writer.delete(self.table, rid, old)
        if firing is not None:
            for fire in firing.after_row:
                fire(self.session, old, None)

    def _once(self) -> None:
        match self.plan.kind:
            case "INSERT":
                self._insert()
            case "INSERT ALL":
                self._insert_all()
            case "UPDATE":
                self._update()
            case "DELETE":
                self._delete()
            case "MERGE":
                self._merge()

    # --- finding rows -----------------------------------------------------------------------------

    def _query(self, plan: Plan) -> list[tuple[Any, ...]]:
        session = self.session
        connection = self.store.writer
        snapshot = Snapshot(session)
        params = parameters(plan.slots, self._binds, snapshot.scn, snapshot.own, session.time_zone)
        text, count = snapshot.text(plan, params, connection)
        try:
            for use in plan.virtuals:
                scn = (
                    snapshot.flashback_scn(use.flashback, params, connection)
                    if use.flashback
                    else None
                )
                make_ready(use, connection)
                fill_virtual(use, session, connection, params, scn)
            with session.running(connection):
                return connection.sqlite.execute(text, params[:count]).fetchall()
        except sqlite3.Error as error:
            raise translated(error, connection) from error
        finally:
            for use in (
                plan.virtuals
            ):  # the writer's transaction may be rolled back, with tables that it made
                connection.filled.pop(use.name, None)
                connection.sqlite.execute(f"DROP TABLE IF EXISTS temp.{use.name}")

    def _check_interrupt(self, number: int) -> None:
        if number % _CHECK_EVERY == 0 and self.session.is_interrupted():
            raise ora(1013)

    # --- the four statements ----------------------------------------------------------------------

    def _check_cluster(self) -> None:
        """A cluster with an index takes no row before the index is there."""
        cluster = self.session.database.store.catalog.by_id(self.table.cluster)
        if isinstance(cluster, ClusterDef) and not (cluster.is_hash or cluster.index):
            raise OracleError(
                2032, "clustered tables cannot be used before the cluster index is built"
            )

    def _insert(self) -> None:
        assert self.writer is not None
        if self.table.cluster:
            self._check_cluster()
        plain = self.plan.plain_binds
        rows: list[tuple[Any, ...]]
        if plain is not None:
            rows = [
                tuple(None if position is None else self._binds[position] for position in plain)
            ]
        else:
            rows = self._query(self.plan.query)
        for number, row in enumerate(rows):
            self._check_interrupt(number)
            image = self._fitted(self._fitters, row)
            self._done(self._put(image), image)

    def _insert_all(self) -> None:
        """A multi-table INSERT: each branch inserts on its own, in the transaction of this
        statement."""
        inserts = [ChangeRunner(self.session, branch.insert) for branch in self.plan.branches]
        transactions = self.session.database.transactions
        assert self.writer is not None
        for one in inserts:
            one.writer = self.writer
            transactions.lock_table(self.writer.transaction, one.table.object_id, "RX")
            one._fire(BEFORE)
        for number, row in enumerate(self._query(self.plan.query)):
            self._check_interrupt(number)
            taken: set[int] = set()
            for branch, one in zip(self.plan.branches, inserts, strict=True):
                if self._takes(branch, row, taken):
                    taken.add(branch.first)
                    cells = row[branch.values_at : branch.values_at + len(one._fitters)]
                    one._put(self._fitted(one._fitters, cells))
                    self._change.count += 1
        for one in inserts:
            one._fire(AFTER)

    def _takes(self, branch: BranchPlan, row: Sequence[Any], taken: set[int]) -> bool:
        if branch.otherwise:
            return not taken or taken == {branch.first}
        if self.plan.is_first and taken and branch.first not in taken:
            return False
        return branch.condition_at is None or bool(row[branch.condition_at])

    @staticmethod
    def _fitted(fitters: list[tuple[int, Fitter]], row: Sequence[Value]) -> Image:
        return {
            internal_id: None if value is None else fit(value)
            for (internal_id, fit), value in zip(fitters, row, strict=True)
        }

    def _update(self) -> None:
        assert self.writer is not None
        width = len(self.table.ids) + 1
        rows = self._query(self.plan.query)
        self._claim(rows)
        top = self.table.top_index
        if top is not None and {one.internal_id for one in self.plan.targets} & set(top.columns):
            self._move(rows)
            return
        for number, row in enumerate(rows):
            self._check_interrupt(number)
            old = dict(zip(self.table.ids, row[1:width], strict=True))
            new = self._fitted(self._fitters, row[width:])
            rid = self._change_row(row[0], old, new)
            self._done(rid, {**old, **new})

    def _move(self, rows: list[tuple[Any, ...]]) -> None:
        """Give rows of an index other keys: an index holds a key once, so all old entries go before
        the new ones come."""
        assert self.writer is not None
        width = len(self.table.ids) + 1
        for row in rows:
            self.writer.remove(
                self.table, row[0], dict(zip(self.table.ids, row[1:width], strict=True))
            )
        for row in rows:
            old = dict(zip(self.table.ids, row[1:width], strict=True))
            new = self._fitted(self._fitters, row[width:])
            self._done(self.writer.put_again(self.table, old, new), {**old, **new})

    def _delete(self) -> None:
        assert self.writer is not None
        rows = self._query(self.plan.query)
        self._claim(rows)
        for number, row in enumerate(rows):
            self._check_interrupt(number)
            old = dict(zip(self.table.ids, row[1:], strict=True))
            self._take_out(row[0], old)
            self._done(row[0], old)

    def _claim(self, rows: list[tuple[Any, ...]]) -> None:
        session = self.session
        transactions = session.database.transactions
        rids = [row[0] for row in rows]
        transactions.claim(session.transaction, self.table, rids)
        if session.serial_scn is not None:
            transactions.check_unchanged(session.transaction, self.table, rids, session.serial_scn)

    def _merge(self) -> None:
        assert self.writer is not None
        plan = self.plan
        width = len(self.table.ids) + 1
        update_at = width
        insert_at = width + (1 + len(plan.targets) if plan.updates else 0)
        rows = self._query(plan.query)
        self._claim([row for row in rows if row[0] is not None])
        seen: set[int] = set()
        for number, row in enumerate(rows):
            self._check_interrupt(number)
            if row[0] is None:
                if plan.inserts and row[insert_at]:
                    image = dict.fromkeys(self.table.ids) | self._fitted(
                        self._insert_fitters, row[insert_at + 1 :]
                    )
                    self._done(self._put(image), image)
            elif plan.updates and row[update_at]:
                if row[0] in seen:
                    raise OracleError(
                        30926, "unable to get a stable set of rows in the source tables"
                    )
                seen.add(row[0])
                old = dict(zip(self.table.ids, row[1:width], strict=True))
                new = self._fitted(
                    self._fitters, row[update_at + 1 : update_at + 1 + len(plan.targets)]
                )
                rid = self._change_row(row[0], old, new)
                self._done(rid, {**old, **new})
                if (
                    plan.delete_where is not None
                    and self.over_row(plan.delete_where, rid, {**old, **new})[0]
                ):
                    self._take_out(rid, {**old, **new})

    def _done(self, rid: int, image: Image) -> None:
        change = self._change
        change.count += 1
        change.last = (self.table.version_of(image).data_object_id, rid)
        if self.plan.returning is not None:
            change.returned.append(self.over_row(self.plan.returning, rid, image))
            change.addresses.append(rid)

    def over_row(self, plan: RowPlan, rid: int, image: Image) -> tuple[Any, ...]:
        """Evaluate expressions over one row."""
        return over_row(
            self.session, plan, self.table_texts, rid, image, self._binds, self.table.ids
        )

    @property
    def table_texts(self) -> frozenset[int]:
        """Columns that SQLite holds as TEXT."""
        return text_columns(self.table)
