"""Which errors does Redolake raise, and may the caller try again?

One tree: :class:`TransientError` may go away by itself, everything else will not. The message says
what happened, the facts say where, the hint says what to do next. Facts never hold row values or
secrets. An error that has found many problems lists them all, one a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

ANY_TABLE = "OWNER.TABLE"
"""Stands in a hint's commands for the table that the error is about; the error puts its fact
``table`` there."""
ANY_COLUMN = "COLUMN_NAME"
"""Stands in a hint's options for the column that the error is about; the error puts its fact
``column`` there."""


class CdcError(Exception):
    """Base of every error that Redolake raises on purpose. Survives pickling."""

    problems: tuple[str, ...] = ()
    """Everything that was found, where that is more than the message can say; see
    :meth:`listing`."""

    def __init__(self, message: str, *, hint: str = "", **facts: object) -> None:
        super().__init__(message)
        self.message = message
        table = getattr(facts.get("table"), "argument", None)
        column = facts.get("column")
        hint = hint if table is None else hint.replace(ANY_TABLE, table)
        self.hint = hint.replace(ANY_COLUMN, in_yaml(column)) if isinstance(column, str) else hint
        self.facts = facts

    def listing(self, problems: Sequence[str]) -> Self:
        """This error with all the problems that were found, one a line."""
        self.problems = tuple(problems)
        return self

    @property
    def what_happened(self) -> str:
        """The message with its facts and problems, without the hint."""
        where = ", ".join(f"{name}={value}" for name, value in self.facts.items())
        text = f"{self.message} ({where})" if where else self.message
        return "\n  ".join([f"{text}:", *self.problems]) if self.problems else text

    def __str__(self) -> str:
        if not self.hint:
            return self.what_happened
        between = "\n" if self.problems else ". "
        return f"{self.what_happened}{between}{self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.hint, self.problems, self.facts))


REPORT_HINT = "This is a fault of Redolake. Report it with this text; the runbook says how to continue meanwhile."
"""The hint of errors that no operator can have caused."""


MIRROR_HINT = f"`redolake table rebuild {ANY_TABLE}` writes a damaged mirror from its change log."
FROM_LANDING_HINT = (
    f"`redolake table rebuild --from-landing {ANY_TABLE}` writes both Delta tables from landing, or "
    f"`redolake table resnapshot --fresh {ANY_TABLE}` reads the table again into new ones."
)
CHANGELOG_HINT = f"Restore it. Without a copy, {FROM_LANDING_HINT}"
FEATURE_HINT = (
    "Remove the feature in Spark (`ALTER TABLE … DROP FEATURE …`), or run "
    f"`redolake table rebuild --from-landing {ANY_TABLE}`, which writes both Delta tables from "
    "landing without it."
)
VECTOR_HINT = (
    "VACUUM of delta-rs removes deletion vectors that are in use. "
    f"`redolake table rebuild {ANY_TABLE}` writes the mirror from its change log."
)
DELTA_LOG_HINT = (
    f"Without a copy, `redolake table rebuild {ANY_TABLE}` moves a damaged mirror aside and writes "
    f"it from its change log, and `redolake table rebuild --from-landing {ANY_TABLE}` writes both "
    "tables from landing."
)
ONE_WRITER_HINT = "Try again; a source must have one writer."

RESNAPSHOT = f"`redolake table resnapshot {ANY_TABLE}`"
RESNAPSHOT_HINT = f"{RESNAPSHOT} reads the table again from Oracle."
"""The hint where nothing but the table's present rows helps."""


def in_yaml(name: str) -> str:
    """A column's name as a configuration file takes it: between quotes unless it is a plain word
    that YAML leaves one."""
    is_plain = _PLAIN.fullmatch(name) and name.upper() not in _YAML_WORDS
    return name if is_plain else json.dumps(name, ensure_ascii=False)


_PLAIN = re.compile(r"[^\W\d][\w$]*")
_YAML_WORDS = frozenset({"Y", "N", "YES", "NO", "ON", "OFF", "TRUE", "FALSE", "NULL"})


def no_day_hint(*columns: str, as_text: bool = True) -> str:
    """The hint where a date is none of Delta's calendar.

    Args:
        columns: Those that have one, if that is known.
        as_text: The columns can be held as text, which has room for every day of Oracle's.
    """
    names = [in_yaml(one) for one in columns] or [ANY_COLUMN]
    options = ", ".join(f"{one}: text" for one in names)
    others = (
        f"orrect the row in Oracle, or set `columns_exclude: [{', '.join(names)}]` for the table; "
        f"then {RESNAPSHOT} reads the table again."
    )
    if not as_text:
        return f"C{others}"
    return (
        f"Set `columns_as: {{{options}}}` for the table, which holds every day of Oracle's "
        f"calendar, then run `redolake table resnapshot --fresh {ANY_TABLE}`. Or c{others}"
    )


DEBUG_HINT = "Run the command again as `redolake --debug …` to see the cause in full."
"""The hint where another program's words say more, which may quote row values."""

MEMORY_HINT = "Raise lake.driver_memory, or the executors' memory on a cluster."
"""The hint where Spark ran out of memory."""

_NO_MEMORY = ("can't start new thread", "failed to map segment", "Cannot allocate memory")
"""What Python, the loader of libraries and the operating system say where memory or threads are
out."""

PROCESS_MEMORY_HINT = (
    "Nothing is lost: run the command again. If it happens again, give the process more memory (`ulimit -v`, the limit of its container or "
    "service), or lower lake.driver_memory."
)

TRACEBACKS = "redolake.tracebacks"
"""The logger of the causes of what stops a table. Only ``--debug`` shows it, since other programs'
words may quote row values."""


def _rebuild(
    kind: type[CdcError],
    message: str,
    hint: str,
    problems: tuple[str, ...],
    facts: dict[str, object],
) -> CdcError:
    return kind(message, hint=hint, **facts).listing(problems)


@contextmanager
def noticing_memory() -> Iterator[None]:
    """Turn what Python and its libraries raise where memory is out into one error.

    Raises:
        NotEnoughMemoryError: It is out.
    """
    try:
        yield
    except CdcError:
        raise
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise NotEnoughMemoryError(
            "this process does not have enough memory",
            hint=PROCESS_MEMORY_HINT,
            cause=type(error).__name__,
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Was an error, or one that led to it, raised because memory or threads were out?"""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        is_told = isinstance(found, OSError | RuntimeError | ImportError)
        if isinstance(found, MemoryError) or (
            is_told and any(one in str(found) for one in _NO_MEMORY)
        ):
            return True
        found = found.__cause__ or found.__context__
    return False


class ConfigError(CdcError):
    """The configuration, a signal or a command's argument is wrong; nothing was done."""


class PreflightError(CdcError):
    """The database, the machine or the set-up lacks something that the work needs."""


class TransientError(CdcError):
    """Trying again, later, may succeed."""


class OracleUnavailableError(TransientError):
    """The database cannot be reached, or the session was lost."""


class LogsNotReadyError(TransientError):
    """Redo that a window needs is not there yet; the window waits."""


class LogsChangedError(LogsNotReadyError):
    """A redo log was switched, archived or written over while LogMiner read it; the pass counts for
    nothing and is mined again."""


class NotYetError(TransientError):
    """A step was asked for before one that it builds on is done; the hint names the command that
    does it."""


class WindowFirstError(NotYetError):
    """A chunk was read behind a DDL that no window has captured yet, and only the redo says what it
    did."""


class SnapshotPausedError(NotYetError):
    """Somebody has paused snapshots: no further chunk is read until they are resumed."""


class LeaseHeldError(TransientError):
    """Another living process works on the same source."""


class OvertakenError(LeaseHeldError):
    """Another process did this work first, or took it over. Nothing is wrong and nothing is lost:
    whoever meets it looks again at what is left to do."""


class FencedError(OvertakenError):
    """This process lost its lease to another one and must not write any more."""


class SecondWriterError(LeaseHeldError):
    """Another process writes to a lake whose commits are not atomic: two writers would lose commits
    without an error."""


class StoreUnavailableError(TransientError):
    """The metadata store, the landing store or the lake's storage cannot be reached, or is full."""


class SignalsUnavailableError(TransientError):
    """A place that signals come from cannot be reached. Everything else goes on."""


class CommitConflictError(TransientError):
    """Another writer committed to the same Delta table."""


class NotEnoughMemoryError(TransientError):
    """This process got no more memory, or no more threads; what was under way is done again by the
    next attempt."""


class SparkUnavailableError(TransientError):
    """Spark's JVM did not start, ran out of memory, or ended; the next attempt starts another."""


class SparkMemoryError(SparkUnavailableError):
    """Spark ran out of memory; its JVM was ended."""


class SnapshotTooOldError(TransientError):
    """Oracle no longer has the undo for the chunk's SCN (ORA-01555); the chunk is read again at a
    newer SCN."""


class SnapshotBrokenError(SnapshotTooOldError):
    """Oracle cannot read a table any more as of the one SCN as of which all chunks of its snapshot
    are read: the undo is gone, or a DDL came. The table's snapshot begins anew."""


class TerminalError(CdcError):
    """Trying again gives the same; someone has to act."""


class OracleError(TerminalError):
    """Oracle refused a statement; the facts hold the ORA code."""


class RedoUnavailableError(TerminalError):
    """Redo that a window needs is gone."""


class IncarnationError(RedoUnavailableError):
    """The database was opened with RESETLOGS since the source began: its redo does not continue
    what was read."""


class OtherDatabaseError(RedoUnavailableError):
    """The database is not the one that the source began with: another one, a restored clone, or
    another pluggable database under the same name."""


class RedoUnreadableError(RedoUnavailableError):
    """The control file names a redo log, and the file behind it cannot be opened."""


class TableStoppedError(TerminalError):
    """One table failed and was stopped; the others go on."""


class DecodeError(TerminalError):
    """A redo row cannot be turned into a change without guessing."""


class ConverterError(DecodeError):
    """A converter of the user's own cannot be imported, or does not do what a converter does."""


class UnsupportedTypeError(TerminalError):
    """A column has a type that is not captured yet."""


class SchemaMismatchError(TerminalError):
    """A table's definition does not fit what was captured, or a DDL cannot be followed."""


class RowsGoneError(SchemaMismatchError):
    """Rows went without redo for each, and what the lake holds of the table does not say which they
    were."""


class AlteredMeanwhileError(SchemaMismatchError):
    """A table was altered while a chunk was read: columns got other names, so a query may have read
    one for another, or a DDL came between two watermarks. The chunk is read again."""


class DuplicateKeyError(TerminalError):
    """Two rows of a table have one key, so the key does not identify the row of a change."""


class WindowConflictError(TerminalError):
    """A window overlaps or leaves out what was taken before: metadata store and lake do not belong
    together."""


class PartitionKeyError(TerminalError, ValueError):
    """A text is not the key of a window or a chunk."""


class StoreBehindError(TerminalError):
    """The metadata store is older than what landing and lake hold, or empty: it was lost, or
    restored from a copy."""


class RowCountError(TerminalError):
    """Two counts of the same rows, made at two places, differ: rows were lost or doubled on the way
    between them."""


class LandingDamagedError(TerminalError):
    """A landing file or manifest is missing, cut or changed."""


class LakeError(TerminalError):
    """Spark or Delta refused, or a Delta table is not in the state that the store records."""
