"""Which dictionary names the rows of LogMiner, and which redo does LogMiner need for it?

* *Online catalog* (``online_catalog``): LogMiner knows the present
  definitions. What they do not name, Redolake decodes by the version of the row's time.
* *Redo* (``redo_log_catalog``): a database administrator wrote the dictionary into the redo.
  LogMiner loads it, reads all redo from there on, and follows each DDL (DDL_DICT_TRACKING), so rows
  have the names of their time. Redolake finds the newest one that ends before the redo it is about
  to read; it writes none.
* *File* (``dictionary_from_file``): LogMiner knows the definitions of the time when the file was
  written. What they do not name is decoded as with the online catalog.

The name of a row is that of its table now, at the time of the row, or when the file was written.
With a file the object's number says whose a row is (:func:`has_old_names`): its name may be another
table's by now.

Source: Oracle Database Utilities 19c, "LogMiner Dictionary Options" and "DDL_DICT_TRACKING and
Specified Time or SCN Ranges"; Oracle Database Reference 19c, V$ARCHIVED_LOG (DICTIONARY_BEGIN,
DICTIONARY_END).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdc_core.capture.logs.shown_names import ShownNames, read_shown_names
from cdc_core.config import LogMinerConfig, Strategy
from cdc_core.errors import RedoUnavailableError, TransientError
from cdc_core.model.scn import Scn
from cdc_core.schema.dictionary_queries import Queries
from cdc_core.schema.table import TableSchema

BUILD_SCRIPT = "deploy/oracle/build_dictionary.sql"

_DICTIONARIES = """
SELECT A.THREAD#, A.SEQUENCE#, A.FIRST_CHANGE#, A.NEXT_CHANGE#, A.DICTIONARY_BEGIN, A.DICTIONARY_END
  FROM V$ARCHIVED_LOG A, V$DATABASE D
 WHERE (A.DICTIONARY_BEGIN = 'YES' OR A.DICTIONARY_END = 'YES') AND A.NEXT_CHANGE# <= :scn
   AND A.STANDBY_DEST = 'NO' AND A.STATUS = 'A' AND A.ARCHIVED = 'YES' AND A.NAME IS NOT NULL
   AND A.RESETLOGS_CHANGE# = D.RESETLOGS_CHANGE# AND A.RESETLOGS_TIME = D.RESETLOGS_TIME"""
_DBMS = "SYS.DBMS_LOGMNR."


@dataclass(frozen=True, slots=True, order=True)
class DictionaryMark:
    """An archived log in which a dictionary begins or ends, or both."""

    thread: int
    sequence: int
    first_change: int
    next_change: int
    begins: bool
    ends: bool


@dataclass(frozen=True, slots=True)
class RedoDictionary:
    """A whole dictionary in the redo, in logs with ``first_change <= SCN < next_change``."""

    first_change: int
    next_change: int


def start_options(strategy: Strategy) -> tuple[str, ...]:
    """The options of DBMS_LOGMNR.START_LOGMNR that choose the dictionary."""
    match strategy:
        case "online_catalog":
            return (f"{_DBMS}DICT_FROM_ONLINE_CATALOG",)
        case "redo_log_catalog":
            return (f"{_DBMS}DICT_FROM_REDO_LOGS", f"{_DBMS}DDL_DICT_TRACKING")
        case "dictionary_from_file":
            return ()


def has_old_names(strategy: Strategy) -> bool:
    """May a row have a name that another table had when the row was written, and has now?"""
    return strategy == "dictionary_from_file"


def names_shown(session: Queries, tables: Sequence[TableSchema], how: LogMinerConfig) -> ShownNames:
    """Under which names LogMiner shows the tables' rows, as far as the present says it."""
    if how.strategy == "online_catalog":
        return read_shown_names(session, tables)
    return {one.table: one.table for one in tables}


def needed_from(session: Queries, how: LogMinerConfig, low: Scn) -> Scn:
    """From above which SCN on LogMiner needs redo to mine the redo above ``low``: lower where it
    reads a dictionary first.

    Raises:
        RedoUnavailableError: No dictionary ends before that redo.
    """
    if how.strategy != "redo_log_catalog":
        return low
    found = newest_dictionary(read_dictionary_marks(session, low + 1))
    if found is None:
        raise RedoUnavailableError(
            "the redo has no LogMiner dictionary before the window",
            hint=f"A dictionary that {BUILD_SCRIPT} builds now serves later windows only: set capture.strategy to online_catalog, which "
            "reads this one.",
            scn=low,
        )
    return Scn(found.first_change - 1)


def refuse_start_without(session: Queries, how: LogMinerConfig, low: Scn) -> None:
    """Tables cannot join where the first window would have no dictionary before it.

    Raises:
        TransientError: No dictionary ends at or below the SCN, so none precedes the oldest open
            transaction.
    """
    if how.strategy != "redo_log_catalog":
        return
    if newest_dictionary(read_dictionary_marks(session, low + 1)) is None:
        raise TransientError(
            "the redo has no LogMiner dictionary before the oldest open transaction",
            hint=f"Run {BUILD_SCRIPT}, wait until the transactions that were open then have ended, and try again.",
            scn=low,
        )


def read_dictionary_marks(session: Queries, scn: int) -> list[DictionaryMark]:
    """The archived logs of this incarnation that end at or below an SCN and hold the begin or the
    end of a dictionary."""
    return [
        DictionaryMark(int(thread), int(sequence), int(first), int(following), begins == "YES", ends == "YES")
        for thread, sequence, first, following, begins, ends in session.fetch_all(
            _DICTIONARIES, {"scn": scn}
        )
    ]  # fmt: skip


def newest_dictionary(marks: Iterable[DictionaryMark]) -> RedoDictionary | None:
    """The whole dictionary that ends last. A begin without an end, or an end whose begin is gone,
    is none. Pure."""
    whole = []
    begins: dict[int, DictionaryMark] = {}
    for mark in sorted(marks):
        if mark.begins:
            begins[mark.thread] = mark
        if mark.ends and mark.thread in begins:
            whole.append(RedoDictionary(begins.pop(mark.thread).first_change, mark.next_change))
    return max(whole, key=lambda one: one.next_change, default=None)
