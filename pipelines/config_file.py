"""Which configuration file is meant, and what does it say?

The file is the same for Dagster and for the command line (:mod:`assets.config_file` reads it).
Which one: ``--config``, else ``REDOLAKE_CONFIG``, else the demo's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdc_core.config import SourceConfig

CONFIG_ENV = "REDOLAKE_CONFIG"
FILE_NAME = "defs.yaml"


def load_config(path: Path, *, environ: Mapping[str, str] | None) -> SourceConfig:
    """The source that a file describes. One with templates, or of a component type of the user's
    own, is loaded by Dagster.

    Raises:
        ConfigError: The file is wrong; names every problem.
    """
    from assets import (
        config_file,  # the models take half a second, which `--help` and a wrong command need not wait for
    )

    if not config_file.needs_dagster(path):
        return config_file.load_config(path, environ=environ)

    from assets.named_file import load_component

    return load_component(path).read(environ)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The configuration file that ``--config`` names, None for the default; and which source in it
    is meant, where it lists several pluggable databases."""

    named: Path | None = None
    pdb: str | None = None

    @classmethod
    def at(cls, path: str) -> SourceFile:
        """The file at a path."""
        return cls(Path(path))


def config_path(named: Path | None, environ: Mapping[str, str]) -> Path:
    """The configuration file: the one named, that of the environment, or the demo's. It need not
    exist."""
    if named is None:
        named = Path(environ[CONFIG_ENV]) if environ.get(CONFIG_ENV) else demo_config()
    named = named.expanduser().absolute()
    return named / FILE_NAME if named.is_dir() else named


def demo_config() -> Path:
    """The file that the demo writes."""
    from pipelines.demo.settings import default_folder

    return default_folder() / FILE_NAME


def is_demo(path: Path) -> bool:
    """Is this the configuration of a demo, whose database is in a folder next to it?"""
    return path.name == FILE_NAME and (path.parent / "plan.json").exists()
