"""What does Dagster load?

Every source below ``pipelines/defs`` (each a folder with a ``defs.yaml``), and the one that
``REDOLAKE_CONFIG`` names; where there is neither, the demo's.
"""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

import pipelines.defs
from assets.named_file import build_defs
from pipelines.config_file import CONFIG_ENV, config_path, demo_config

ROOT = Path(__file__).resolve().parents[1]


@dg.definitions
def defs() -> dg.Definitions:
    """Everything of every source."""
    folder = dg.ComponentTree.from_module(pipelines.defs, ROOT).build_defs()
    path = _named_source(has_others=bool(list(folder.assets or [])))
    named = [] if path is None else [build_defs(path)]
    return dg.Definitions.merge(folder, *named)


def _named_source(*, has_others: bool) -> Path | None:
    if os.environ.get(CONFIG_ENV):
        path = config_path(None, os.environ)
        inside = Path(pipelines.defs.__path__[0]).resolve() in path.resolve().parents
        return None if inside else path
    demo = demo_config()
    return demo if demo.exists() and not has_others else None
