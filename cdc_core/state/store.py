"""What does the pipeline remember, and how is that opened?"""

from __future__ import annotations

from collections.abc import Callable

from cdc_core.state.captured_tables import CapturedTables
from cdc_core.state.chunks import Chunks
from cdc_core.state.comparisons import Comparisons
from cdc_core.state.database import Database, open_database
from cdc_core.state.images import Images
from cdc_core.state.lease_queries import Leases
from cdc_core.state.machine import Machine
from cdc_core.state.notifications import Notifications
from cdc_core.state.open_transactions import Ledger
from cdc_core.state.pattern_matches import PatternMatches
from cdc_core.state.refused_logins import StoredRefusals
from cdc_core.state.schemas import SchemaHistory
from cdc_core.state.signals import Signals
from cdc_core.state.source import SourceRow
from cdc_core.state.totals import Totals
from cdc_core.state.window_history import WindowHistory
from cdc_core.state.windows import Windows


class Store:
    """The metadata store of one source, by subject: ``store.windows.plan(…)``,
    ``store.tables.get(…)``.

    Every method of a part is one SQL transaction, and may be called from many threads and
    processes; it raises :class:`~cdc_core.errors.StoreUnavailableError` when the database cannot be
    reached.
    """

    def __init__(self, database: Database, source: str) -> None:
        self._database = database
        self.source = SourceRow(database, source)
        self.tables = CapturedTables(database, source)
        self.windows = Windows(database, source)
        self.history = WindowHistory(database, source)
        self.ledger = Ledger(database, source)
        self.chunks = Chunks(database, source)
        self.schemas = SchemaHistory(database, source)
        self.signals = Signals(database, source)
        self.matches = PatternMatches(database, source)
        self.images = Images(database, source)
        self.comparisons = Comparisons(database, source)
        self.notifications = Notifications(database, source)
        self.totals = Totals(database, source)
        self.refused_logins = StoredRefusals(database, source)
        self.leases = Leases(database, source)

    @classmethod
    def open(
        cls,
        url: str,
        source: str,
        *,
        clock: Callable[[], float] | None = None,
        machine: Machine | None = None,
    ) -> Store:
        """Open the store and bring its tables to the newest form; make it where there is none.

        Args:
            url: ``sqlite:////absolute/path.db`` or ``postgresql+psycopg2://user:password@host/db``.
            source: The source's name; several may share a database.
            clock: Seconds since 1970, for leases and moments. By default leases follow the
                database's clock, moments this process's.
            machine: Where this process runs.

        Raises:
            ConfigError: The URL is not one.
            PreflightError: A newer Redolake wrote the store.
            StoreUnavailableError: The database cannot be reached.
        """
        return cls(open_database(url, clock=clock, machine=machine), source)

    def of(self, source: str) -> Store:
        """The same database, for another source."""
        return Store(self._database, source)

    @property
    def machine(self) -> Machine:
        """Where this process runs."""
        return self._database.machine

    @property
    def write_count(self) -> int:
        """How many transactions of this process may have changed something but leases: where the
        number has not grown, nothing has changed."""
        return self._database.write_count

    def close(self) -> None:
        """Close all connections. May be called twice."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
