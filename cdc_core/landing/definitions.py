"""Where are the definitions of a window's tables? In its manifest if they are small, else stored
once for all windows that share them.

A thousand definitions print as megabytes, and are the same from window to window until some table
is altered. Such a set has a folder of its own below what is kept, under the digest of its text; a
manifest names the digest. A set is written before the manifest that names it, and never changes. It
goes when no manifest names it any more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from threading import Lock
from typing import Any

from cdc_core.landing.layout import kept_folder
from cdc_core.landing.manifest import MANIFEST_NAME, damaged, digest_of, opened, sealed
from cdc_core.landing.store import LandingStore
from cdc_core.model.json_form import as_json, from_json
from cdc_core.schema.table import TableSchema

INLINE_BYTES_MAX = 64 * 1024
"""Definitions of some dozen tables stand in each manifest, so that reading it takes one file."""
_SETS_MAX = 4


def keep_definitions(
    landing: LandingStore, source: str, schemas: Sequence[TableSchema]
) -> str | None:
    """Write a set of definitions, in the order of the tables' names, unless it exists and is whole,
    or is small; returns its digest, None if the manifest is to have it.

    Raises:
        StoreUnavailableError: It cannot be written.
    """
    data = as_json(sorted(schemas, key=lambda one: one.table))
    text = _text_of(data)
    if len(text) <= INLINE_BYTES_MAX:
        return None
    digest = digest_of(text)
    folder, content = _folder(source, digest), sealed("definitions", {"schemas": data})
    if landing.exists(folder, MANIFEST_NAME) and landing.read(folder, MANIFEST_NAME) != content:
        landing.remove(folder)  # damaged: all that its name promises is here
    landing.write_manifest(folder, content)
    return digest


def kept_sets(landing: LandingStore, source: str) -> set[str]:
    """The digests of all stored sets."""
    folders = landing.list_folders(kept_folder(source, "definitions"))
    return {folder.rpartition("/")[2] for folder in folders}


def set_named_by(landing: LandingStore, folder: str) -> str | None:
    """The digest that the manifest in a window's folder names; None if the manifest itself has the
    definitions.

    Raises:
        LandingDamagedError: The manifest is missing or damaged.
    """
    where = f"{folder}/{MANIFEST_NAME}"
    digest: str | None = opened("window", landing.read(folder, MANIFEST_NAME), where).get(
        "definitions"
    )
    return digest


def remove_set(landing: LandingStore, source: str, digest: str) -> None:
    """Remove a set that no manifest names. May be called twice."""
    landing.remove(_folder(source, digest))


class KeptDefinitions:
    """Reads sets of definitions of a source; the last few stay in memory. Safe for use from many
    threads."""

    def __init__(self, landing: LandingStore, source: str) -> None:
        self._landing, self._source = landing, source
        self._sets: dict[str, tuple[TableSchema, ...]] = {}
        self._lock = Lock()

    def __call__(self, digest: str) -> tuple[TableSchema, ...]:
        """The set with a digest.

        Raises:
            LandingDamagedError: It is missing or damaged.
        """
        with self._lock:
            found = self._sets.get(digest)
            if found is None:
                found = self._read(digest)
                if len(self._sets) >= _SETS_MAX:
                    del self._sets[next(iter(self._sets))]
                self._sets[digest] = found
            return found

    def _read(self, digest: str) -> tuple[TableSchema, ...]:
        folder = _folder(self._source, digest)
        where = f"{folder}/{MANIFEST_NAME}"
        data = opened("definitions", self._landing.read(folder, MANIFEST_NAME), where)
        if digest_of(_text_of(data["schemas"])) != digest:
            raise damaged(where, "it is another set than its folder says")
        return tuple(from_json(TableSchema, one) for one in data["schemas"])


def _text_of(data: list[dict[str, Any]]) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def _folder(source: str, digest: str) -> str:
    return kept_folder(source, "definitions", digest)
