"""What is said of a landing folder that is not as its manifest says, or that has landed already?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cdc_core.errors import CdcError, LandingDamagedError, OvertakenError, StoreUnavailableError

_WINDOW = (
    "Restore it from backup, or run `redolake recapture`, which reads lost windows again from Oracle "
    "as long as it has their redo; then run `redolake run`."
)
_CHUNK = (
    "Restore it from backup. If the chunk is not applied yet, move its folder aside instead, and run "
    "`redolake snapshot`, which reads it again from Oracle."
)


def restore_hint(where: str) -> str:
    """How a file or a manifest comes back, by the folder in which it is: that of a chunk, or of a
    window."""
    return _CHUNK if where.rfind("/chunks/") > where.rfind("/windows/") else _WINDOW


def missing_file(where: str) -> LandingDamagedError:
    """The error for a file that a manifest or a step names and that is not there."""
    return LandingDamagedError("a landing file is missing", hint=restore_hint(where), file=where)


def changed_file(where: str, what: str) -> LandingDamagedError:
    """The error for a file that is not what its manifest says."""
    return LandingDamagedError(
        f"a landing file does not match its manifest: {what} differs",
        hint=restore_hint(where),
        file=where,
    )


@contextmanager
def reading_file(where: str) -> Iterator[None]:
    """Read a landing file in the block.

    Raises:
        LandingDamagedError: It is missing, or is not Parquet with the columns that are read.
        StoreUnavailableError: The disk or the share does not give it now.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise missing_file(where) from error
    except (OSError, ValueError, KeyError) as error:
        raise unless_away(error, changed_file(where, "its content")) from error


def unless_away(error: Exception, damaged: LandingDamagedError) -> CdcError:
    """What is said of a file that cannot be read: that it is ``damaged``, unless the system says
    what else it is. A share that does not answer, a right or a limit may pass, and nothing is to be
    restored."""
    is_missing = isinstance(error, FileNotFoundError | NotADirectoryError)
    if isinstance(error, OSError) and error.errno and not is_missing:
        return unavailable("a landing file cannot be read", error)
    return damaged


def unavailable(message: str, error: Exception) -> StoreUnavailableError:
    """A landing store's own failure, with the operating system's or the service's reason."""
    reason = getattr(error, "strerror", None) or type(error).__name__
    return StoreUnavailableError(
        message,
        hint="Check that the landing store can be reached, has room, and lets this user read and "
        "write.",
        reason=reason,
    )


def landed_already(folder: str) -> OvertakenError:
    """The error for writing into a folder that has landed: what landed first stays."""
    return OvertakenError(
        "this folder has landed already and is immutable",
        hint="Another attempt finished first. Run the step again to use its result.",
        folder=folder,
    )
