"""Do the templates of paths still lead to the Delta tables that there are?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import get_args

from cdc_core.config import LakeConfig
from cdc_core.delta.history import folder_exists
from cdc_core.errors import ConfigError, LakeError
from cdc_core.lake.side_tables.positions import Positions, TablePosition, positions_path
from cdc_core.lake.side_tables.small_files import read_text
from cdc_core.model.identifiers import TableId
from cdc_core.model.templates import LakeLayer


def refuse_moved(config: LakeConfig, source: str) -> None:
    """Refuse templates of paths that lead elsewhere than to the Delta tables that there are.

    Raises:
        ConfigError: A table has folders at the place of earlier templates.
        StoreUnavailableError: The storage does not answer.
    """
    moved = []
    for name, one in _positions_in(positions_path(config.path, source)).items():
        table, was = TableId.parse(name), asdict(one)
        places = [
            (was[layer], config.paths.below(layer, source, table)) for layer in get_args(LakeLayer)
        ]
        moved += [
            f"{old} → {new}"
            for old, new in places
            if old != new
            and one.state != "removed"
            and folder_exists(f"{config.path.rstrip('/')}/{old}")
        ]
    if moved:
        raise ConfigError(
            "lake.mirror_path, changelog_path or history_path has changed since Delta tables were"
            " made",
            hint="Put the template back; or move these folders below lake.path, then start again.",
            source=source,
        ).listing(moved)


def _positions_in(path: str) -> Mapping[str, TablePosition]:
    """What an earlier step wrote; nothing where there is no file, or none that can be read, which
    the next step writes anew."""
    try:
        text = read_text(path)
        return {} if text is None else Positions.parse(text).tables
    except LakeError:
        return {}
