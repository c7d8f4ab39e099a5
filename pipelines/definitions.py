"""What does Dagster load?

Every source below ``pipelines/defs`` (each a folder with a ``defs.yaml``), and the one that ``REDOLAKE_CONFIG`` names; where
there is neither, the demo's.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import dagster as dg

import pipelines.defs
from assets.components import OracleCdc
from pipelines.config_file import CONFIG_ENV, config_path, demo_config

# What Dagster calls beta and preview here (backfill policies, component folders) is said once in the documentation.
for category in (dg.BetaWarning, dg.PreviewWarning):
    warnings.filterwarnings("ignore", category=category)

ROOT = Path(__file__).resolve().parents[1]


@dg.definitions
def defs() -> dg.Definitions:
    """Everything of every source."""
    folder = dg.ComponentTree.from_module(pipelines.defs, ROOT).build_defs()
    parts = [folder]
    path = _named_source(has_others=bool(list(folder.assets or [])))
    if path is not None:
        parts.append(OracleCdc.from_file(path).build_defs())
    return dg.Definitions.merge(*parts, dg.Definitions(executor=dg.in_process_executor))


def _named_source(*, has_others: bool) -> Path | None:
    if os.environ.get(CONFIG_ENV):
        path = config_path(None, os.environ)
        inside = Path(pipelines.defs.__path__[0]).resolve() in path.resolve().parents
        return None if inside else path
    demo = demo_config()
    return demo if demo.exists() and not has_others else None
