"""What does the pipeline remember, and how is that opened?"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from cdc_core.state.chunks import ChunkQueries
from cdc_core.state.comparisons import ComparisonQueries
from cdc_core.state.database import Database, open_database
from cdc_core.state.found import FoundQueries
from cdc_core.state.images import ImageQueries
from cdc_core.state.lease_queries import LeaseQueries
from cdc_core.state.ledger import LedgerQueries
from cdc_core.state.machine import Machine
from cdc_core.state.schemas import SchemaQueries
from cdc_core.state.signals import SignalQueries
from cdc_core.state.sources import SourceQueries
from cdc_core.state.streams import StreamQueries
from cdc_core.state.window_history import WindowHistoryQueries
from cdc_core.state.window_progress import WindowProgressQueries
from cdc_core.state.windows import WindowQueries


class Store(
    SourceQueries,
    StreamQueries,
    WindowQueries,
    WindowProgressQueries,
    WindowHistoryQueries,
    LedgerQueries,
    ChunkQueries,
    SchemaQueries,
    SignalQueries,
    FoundQueries,
    ImageQueries,
    ComparisonQueries,
    LeaseQueries,
):
    """The metadata store. Every method is one SQL transaction; may be used from many threads and processes.

    All methods raise :class:`~cdc_core.errors.StoreUnavailableError` when the database cannot be reached.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Callable[[], float] | None = None,
        machine: Machine | None = None,
    ) -> Store:
        """Open the store and bring its tables to the newest form; makes it where there is none.

        Args:
            url: ``sqlite:////absolute/path.db`` or ``postgresql+psycopg2://user:password@host/db``.
            clock: Seconds since 1970, for leases and moments. By default leases follow the database's clock, moments this
                process's.
            machine: Where this process runs.

        Raises:
            ConfigError: The URL is not one.
            PreflightError: A newer Redolake wrote the store.
            StoreUnavailableError: The database cannot be reached.
        """
        return cls(open_database(url, clock=clock, machine=machine))

    @property
    def machine(self) -> Machine:
        """Where this process runs."""
        return self._database.machine

    @property
    def changes(self) -> int:
        """How often this process may have changed something but leases: where it has not grown, nothing has changed."""
        return self._database.changes

    def close(self) -> None:
        """Close all connections. May be called twice."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
