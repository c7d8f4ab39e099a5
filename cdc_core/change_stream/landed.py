"""Which transactions have windows landed already?

A writer may send transactions again after a restart, and those that it was rewound for late. A
window's transactions file names all that it committed: what is in none of them has not been read.
"""

from __future__ import annotations

from collections import OrderedDict

import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.landing.damage import reading_file
from cdc_core.landing.definitions import KeptDefinitions
from cdc_core.landing.layout import windows_folder
from cdc_core.landing.manifest import MANIFEST_NAME, read_window_manifest
from cdc_core.landing.store import LandingStore
from cdc_core.model.scn import Scn, ScnWindow

_WINDOWS_HELD = 64


class LandedTransactions:
    """The transactions of the windows of a source that have landed below ``low``.

    Args:
        landing: Where they landed.
        source: The source.
        begins: Where its windows begin: what committed up to there is in its snapshots.
        low: The lower end of the window that is read.
    """

    def __init__(self, landing: LandingStore, source: str, *, begins: Scn, low: Scn) -> None:
        self._landing, self._source = landing, source
        self._begins, self._low = begins, low
        self._windows: list[tuple[ScnWindow, str]] | None = None
        self._held: OrderedDict[str, frozenset[tuple[str, int]]] = OrderedDict()

    def has(self, xid: str, commit_scn: int) -> bool:
        """Was the transaction read, or is it none that windows bring? What a window had that was
        retired counts as read."""
        if commit_scn <= self._begins:
            return True
        if self._windows is None:
            folders = self._landing.list_folders(windows_folder(self._source))
            self._windows = [
                (ScnWindow.parse(folder.rpartition("/")[2]), folder) for folder in folders
            ]
        for window, folder in reversed(self._windows):
            if window.scn_low < commit_scn <= min(window.scn_high, self._low):
                return (xid, commit_scn) in self._of(folder) or self._is_late_elsewhere(
                    xid, commit_scn, window
                )
        return True

    def _is_late_elsewhere(self, xid: str, commit_scn: int, window: ScnWindow) -> bool:
        """Did a later window bring it?"""
        assert self._windows is not None
        return any(
            (xid, commit_scn) in self._of(folder)
            for later, folder in self._windows
            if window.scn_high <= later.scn_low and later.scn_high <= self._low
        )

    def _of(self, folder: str) -> frozenset[tuple[str, int]]:
        known = self._held.get(folder)
        if known is None:
            content = self._landing.read(folder, MANIFEST_NAME)
            manifest = read_window_manifest(
                content, where=folder, definitions=KeptDefinitions(self._landing, self._source)
            )
            [path] = self._landing.local_paths(folder, [manifest.transactions_file])
            with reading_file(path), pq.ParquetFile(path) as file:
                rows = file.read(columns=["xid", "state", "commit_scn"])
            rows = rows.filter(pc.equal(rows["state"], "commit"))
            known = frozenset(
                zip(rows["xid"].to_pylist(), rows["commit_scn"].to_pylist(), strict=True)
            )
            self._held[folder] = known
            if len(self._held) > _WINDOWS_HELD:
                self._held.popitem(last=False)
        return known
