"""How does Dagster load a source's file from outside a project's ``defs`` folder?

Like any other: as a component tree whose one folder is the file's own, so that templates,
``requirements`` and ``post_processing`` mean there what they mean everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import dagster as dg

from assets.components import OracleCdc
from assets.config_file import FILE_NAMES, existing_file
from cdc_core.errors import CdcError, ConfigError

_MODULE = "redolake_named_source"


def component_tree(path: Path) -> dg.ComponentTree:
    """The tree that holds what a file (or the one in a folder) declares.

    Raises:
        ConfigError: There is no such file, or Dagster would not find it by its name.
    """
    file = existing_file(path)
    if file.name not in FILE_NAMES:
        raise ConfigError(
            "Dagster does not read a file of this name",
            hint=f"Rename it to {FILE_NAMES[0]}, in a folder of its own.",
            file=file,
        )
    folder = file.absolute().parent
    module = ModuleType(_MODULE)
    module.__file__ = None
    module.__path__ = [str(folder)]
    return dg.ComponentTree.from_module(module, folder)


def build_defs(path: Path) -> dg.Definitions:
    """The definitions of a file, post-processed as it says.

    Raises:
        ConfigError: The file is wrong; names every problem.
    """
    tree = component_tree(path)
    with _our_errors():
        return tree.build_defs(
            tree.defs_module_path
        )  # not the root, which belongs to the code location


def load_component(path: Path) -> OracleCdc:
    """The one source of a file.

    Raises:
        ConfigError: The file is wrong, or declares no source or several.
    """
    tree = component_tree(path)
    with _our_errors():
        sources = tree.get_all_components(of_type=OracleCdc)
    if len(sources) != 1:
        raise ConfigError(
            "the command line works on one source",
            hint="Give each source a separate file.",
            file=path,
            sources=len(sources),
        )
    return sources[0]


@contextmanager
def _our_errors() -> Iterator[None]:
    """Hand on the error of ours that Dagster's tree wraps into its own."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, CdcError):
            cause = cause.__cause__
        if cause is None:
            raise
        raise cause from None
