"""What is said of a landing folder that is not as its manifest says, or that has landed already?"""

from __future__ import annotations

from cdc_core.errors import LandingDamagedError, OvertakenError

_RESTORE = (
    "Restore the file from backup, or read it again: `redolake recapture` reads lost windows from Oracle, as long as it has their "
    "redo; of a chunk that is not applied, move the folder aside and run `redolake snapshot`."
)


def missing_file(where: str) -> LandingDamagedError:
    """The error for a file that a manifest or a step names and that is not there."""
    return LandingDamagedError("a landing file is missing", hint=_RESTORE, file=where)


def changed_file(where: str, what: str) -> LandingDamagedError:
    """The error for a file that is not what its manifest says."""
    return LandingDamagedError(
        f"a landing file is not what its manifest says: {what} differs", hint=_RESTORE, file=where
    )


def landed_already(folder: str) -> OvertakenError:
    """The error for writing into a folder that has landed: what landed first stays."""
    return OvertakenError(
        "this folder has landed already and is immutable",
        hint="Another attempt finished first. Run the step again to use its result.",
        folder=folder,
    )
