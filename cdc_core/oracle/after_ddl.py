"""Does ORA-01466 say that a table was altered after an SCN, or that it was altered a moment ago?

Oracle decides whether the past of a table can be read by times with a grain of about three seconds.
Within seconds of a DDL it may refuse to read as of an SCN that lies behind that DDL, and allows it
later (seen on 23ai by others).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from cdc_core.errors import SchemaMismatchError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import SLACK_SECONDS
from cdc_core.schema.dictionary_queries import Queries

T = TypeVar("T")

ALTERED = "ORA-01466"
_WAIT_SECONDS = 3
_ATTEMPTS = 5
_RECENT = """
SELECT COUNT(*) FROM ALL_OBJECTS
 WHERE OBJECT_TYPE = 'TABLE' AND OWNER = :owner AND OBJECT_NAME = :name
   AND LAST_DDL_TIME > SYSDATE - :seconds / 86400"""


def read_after_ddl(session: Queries, tables: Sequence[TableId], read: Callable[[], T]) -> T:
    """Give what ``read`` gives; where Oracle refuses the past of ``tables`` that were altered
    seconds ago, wait and read again.

    Raises:
        SchemaMismatchError: Oracle refuses, and no DDL was near, or it goes on after that.
    """

    def is_near(error: BaseException) -> bool:
        refused = isinstance(error, SchemaMismatchError) and error.facts.get("ora") == ALTERED
        return refused and any(_was_altered(session, table) for table in tables)

    attempts = Retrying(
        retry=retry_if_exception(is_near),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_fixed(_WAIT_SECONDS),
        reraise=True,
    )
    return attempts(read)


def _was_altered(session: Queries, table: TableId) -> bool:
    binds = {"owner": table.owner, "name": table.name, "seconds": SLACK_SECONDS}
    [(count,)] = session.fetch_all(_RECENT, binds)
    return int(count) > 0
