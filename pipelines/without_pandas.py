"""How does a command do without pandas?

With the first array that pyarrow makes, it imports pandas, which may be installed for Spark's
Python workers, to know pandas's objects when it meets them. No command has any, and the import
takes a tenth of the CPU of a `redolake run` with nothing to do. pyarrow tries once in a process;
what asks for pandas by name (``to_pandas``) imports it later all the same.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


class _Hidden(MetaPathFinder):
    """Finds no pandas, and leaves all else to those behind it."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)


def make_arrays_without_pandas() -> None:
    """Let pyarrow make its first array while pandas cannot be found. Does nothing where the process
    has imported pandas."""
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([""])
    finally:
        sys.meta_path.remove(hidden)
