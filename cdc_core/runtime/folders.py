"""Where is what Spark needs on this machine?"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from cdc_core.errors import PreflightError


def default_runtime_folder() -> Path:
    """Where ``redolake setup`` puts the runtime unless told otherwise: inside the Python
    environment that has PySpark."""
    return Path(sys.prefix) / "share" / "redolake"


def jars_folder(runtime: Path) -> Path:
    """The folder of the jars inside a runtime folder."""
    return runtime / "jars"


def shim_folder(runtime: Path) -> Path:
    """The folder in which :func:`find_java` may write a shim, inside a runtime folder."""
    return runtime / "java"


def find_spark_home() -> Path:
    """The folder of the installed PySpark, found without importing it.

    Raises:
        PreflightError: PySpark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise PreflightError("PySpark is not installed", hint="Install redolake's dependencies.")
    return Path(next(iter(spec.submodule_search_locations)))
