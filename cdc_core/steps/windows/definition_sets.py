"""Which sets of definitions in landing does no window need any more?

Whoever reads a window reads the set that its manifest names: to apply it, to replay it, or to take
rows of a transaction that is open. So a set stays as long as the manifest of any window that has
landed names it. A set is written right before the manifest that names it, both under the lease of
capture; while somebody captures, nothing is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from cdc_core.errors import LandingDamagedError, LeaseHeldError
from cdc_core.landing.definitions import kept_sets, remove_set, set_named_by
from cdc_core.landing.layout import window_folder, windows_folder
from cdc_core.model.records import WindowRecord
from cdc_core.steps.context import LOG, Context


def sets_of(ctx: Context, windows: Iterable[WindowRecord]) -> set[str]:
    """The sets that windows name which are about to go, but for those that the oldest or the newest
    window that stays names as well. A manifest that is damaged names nothing. Reads nothing where
    there is one set at most, as of sources whose tables are never altered."""
    if len(kept_sets(ctx.landing, ctx.source)) < 2:
        return set()
    ends = [
        *ctx.store.windows.find(states=("captured", "applied"), limit=1),
        *ctx.captured_windows(),
    ]
    return _named(ctx, windows) - _named(ctx, ends)


def remove_unnamed(ctx: Context, sets: set[str] | None = None) -> list[str]:
    """Remove those of the sets (None: of all) that the manifest of no window names; their digests.
    Repeatable; removes nothing while a window is captured, or where a manifest is damaged, so that
    nobody knows what it names."""
    with suppress(LeaseHeldError, LandingDamagedError), ctx.lease("capture"):
        there = kept_sets(ctx.landing, ctx.source)
        unnamed = there if sets is None else there & sets
        if sets is None and len(there) < 2:
            return []  # the newest window, which always stays, may name it
        for folder in _from_both_ends(ctx.landing.list_folders(windows_folder(ctx.source))):
            if not unnamed:
                break
            unnamed = unnamed - {set_named_by(ctx.landing, folder)}
        for digest in sorted(unnamed):
            remove_set(ctx.landing, ctx.source, digest)
        if unnamed:
            LOG.info("definitions that no window names were removed sets=%d", len(unnamed))
        return sorted(unnamed)
    return []


def _named(ctx: Context, windows: Iterable[WindowRecord]) -> set[str]:
    found: set[str] = set()
    for one in windows:
        with suppress(LandingDamagedError):
            digest = set_named_by(ctx.landing, window_folder(ctx.source, one.window))
            found |= {digest} if digest else set()
    return found


def _from_both_ends(folders: Sequence[str]) -> Iterator[str]:
    """The first, the last, the second and so on: what is in use is named by the oldest windows or
    by the newest."""
    for at in range(len(folders)):
        half, is_last = divmod(at, 2)
        yield folders[-1 - half] if is_last else folders[half]
