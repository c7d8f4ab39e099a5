"""What a captured window left in landing."""

from __future__ import annotations

from cdc_core.landing.layout import window_folder
from cdc_core.landing.ledger import ledger_from_landing
from cdc_core.landing.manifest import MANIFEST_NAME, WindowManifest, read_window_manifest
from cdc_core.landing.store import LandingStore
from cdc_core.model.scn import ScnWindow
from cdc_core.model.transactions import OpenTransaction


def landed_window(
    landing: LandingStore, source: str, window: ScnWindow
) -> tuple[WindowManifest, list[OpenTransaction]]:
    """Its manifest, and the transactions that are open after it."""
    folder = window_folder(source, window)
    manifest = read_window_manifest(landing.read(folder, MANIFEST_NAME), where=folder)
    return manifest, ledger_from_landing(landing, manifest)
