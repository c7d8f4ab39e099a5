"""How are the loops compiled, and where is the compiled code kept between processes?

Compiling takes many seconds, loading compiled code a fraction of one, and Spark starts many Python
workers: so the code is kept on disk, in the first of these folders that can be written, unless
``NUMBA_CACHE_DIR`` names one:

1. ``__pycache__`` beside this file: all processes of an installation share it;
2. the user's cache folder, when the installation is read-only;
3. a folder of the user's own below the system's temporary folder, when there is no home either.

Below it the folder is named by a digest of these sources: Numba itself looks only at the file of
the outermost function, and would go on with old code after a change in another one.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config

_LOGGER = logging.getLogger(__name__)
_HERE = Path(__file__).parent
_Function = TypeVar("_Function", bound=Callable[..., Any])


def inner(function: _Function) -> _Function:
    """Compile a part of an :func:`entry`; it is kept inside that."""
    compiled: _Function = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled


def entry(function: _Function) -> _Function:
    """Compile a function that Python calls, and keep the compiled code on disk."""
    is_kept = bool(config.CACHE_DIR or _CACHE_FOLDER)
    before = config.CACHE_DIR
    # Numba asks for the folder once, when the function is decorated; other users of Numba keep
    # their own setting.
    config.CACHE_DIR = before or _CACHE_FOLDER
    try:
        compiled: _Function = numba.njit(cache=is_kept, nogil=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before
    return compiled


def sources_digest(folder: Path) -> str:
    """A digest of all sources that compiled code depends on, and of the compiler's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def choose_cache_folder(candidates: Iterator[Path], digest: str) -> str:
    """The first folder that can be written and is nobody else's, made if need be; empty if there is
    none."""
    for candidate in candidates:
        folder = candidate / f"redolake-{digest}"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryFile(dir=folder):
                pass
            owners = {candidate.stat().st_uid, folder.stat().st_uid}
        except OSError:
            continue
        # Compiled code is run: a folder that another user made, or could exchange, is not trusted.
        if owners == {os.getuid()}:
            return str(folder)
    _LOGGER.warning(
        "no folder for compiled code can be written, so each process compiles again; set NUMBA_CACHE_DIR"
    )
    return ""


def cache_candidates() -> Iterator[Path]:
    """Where compiled code may be kept, best first."""
    yield _HERE / "__pycache__"
    with suppress(RuntimeError):  # a container's user may have no home
        yield Path.home() / ".cache" / "redolake"
    yield Path(tempfile.gettempdir()) / f"redolake-cache-{os.getuid()}"


# A package inside a zip archive has no source files that Numba could stamp its code with.
_CACHE_FOLDER = (
    choose_cache_folder(cache_candidates(), sources_digest(_HERE)) if _HERE.is_dir() else ""
)
