"""Are the windows that landing holds all that there ever were, but for those that were rightly
forgotten?

A window may be missing from landing for three reasons: it was retired because it was idle, it was
retired by age, or its folder was lost. The first two are proved from what is there; what cannot be
proved is taken for the third.

**The proof.** Windows are numbered without gaps, and each begins where the one before it ended.
They are captured in order, so when window ``m`` was captured the metadata store knew every earlier
window that it had not retired.

*Retired by age.* Windows go by age only together with all windows before them, and only when every
table that will ever want them has them. Before their folders are removed, landing keeps the ordinal
below which that holds (:class:`RetiredWindows`). A lost folder above it is not covered.

*Retired because idle.* The manifest of window ``m`` says from which ordinal on all windows before
``m`` are idle (``idle_from``). The store took it from its own records: the newest window before
``m`` that is not idle, plus one. That window was in the store if it ever was: windows that are not
idle go by age alone, that is together with everything before them. An idle window holds no row, no
commit, no DDL and no end of a stream of any captured table, and leaves the ledger of open
transactions as it was. So for every table, the state after the window before the idle ones is the
state before ``m``.

The newest window of all is never retired. So every gap is followed by a window that is there, and
whose manifest speaks of it; and if the newest window's folder is lost, then so is what was applied
from it: the position of a Delta table above the end of the last window gives that away
(:mod:`cdc_core.steps.state.stale_store`). A window that was captured, applied to nothing, and lost,
is planned and captured anew from Oracle.

*Neighbours* must touch: ``m.scn_low`` is the end of window ``m - 1``, and the digest in ``m`` is
that of the manifest of ``m - 1``, so that no folder of another life of the source is taken in
between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_core.errors import LandingDamagedError
from cdc_core.landing.kept import RetiredWindows
from cdc_core.landing.manifest import WindowManifest


@dataclass(frozen=True, slots=True)
class LandedWindow:
    """A window as landing has it, and the SHA-256 of its manifest."""

    manifest: WindowManifest
    sha256: str


def proved(
    source: str, landed: Sequence[LandedWindow], retired: RetiredWindows
) -> list[LandedWindow]:
    """The windows in order, without those that were retired; see the module for why nothing is
    missing between them.

    Raises:
        LandingDamagedError: Windows are missing that were not retired, or two lives of the source
            are mixed.
    """
    windows = sorted(
        (one for one in landed if one.manifest.ordinal >= retired.ordinal),
        key=lambda one: (one.manifest.ordinal, one.manifest.window),
    )
    problems: list[str] = []
    before: LandedWindow | None = None
    for one in windows:
        problem = _problem(before, one, retired)
        if problem is not None:
            problems.append(problem)
        before = one
    if problems:
        raise LandingDamagedError(
            "landing does not hold all windows of the source",
            hint="Restore the folders from backup. Without them, start the source over under another name: "
            "docs/how-to/restore.md, section 'Start a source over'.",
            source=source,
        ).listing(problems)
    return windows


def _problem(before: LandedWindow | None, one: LandedWindow, retired: RetiredWindows) -> str | None:
    """What is wrong between a window and the one before it; None if nothing."""
    manifest = one.manifest
    known = retired.ordinal if before is None else before.manifest.ordinal + 1
    end = retired.scn if before is None else before.manifest.window.scn_high
    if before is not None and manifest.ordinal < known:
        return f"two windows have the number {manifest.ordinal}: {before.manifest.window.key} and {manifest.window.key}"
    if manifest.window.scn_low < end:
        return f"window {manifest.window.key} begins below {end}, where the one before it ended"
    if manifest.ordinal > known:
        idle_from = manifest.planned.idle_from
        if idle_from > known:
            return f"windows {known} to {idle_from - 1} are missing before {manifest.window.key}, and nothing says that they were idle"
        return None
    if manifest.window.scn_low != end:
        return (
            f"window {manifest.window.key} does not begin at {end}, where the one before it ended"
        )
    if before is None:
        return None
    digest = manifest.planned.before_sha256
    if digest is not None and digest != before.sha256:
        return f"window {manifest.window.key} was captured after another window {before.manifest.window.key} than the one that is there"
    return None
