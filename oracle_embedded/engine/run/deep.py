"""How is a statement read and compiled that nests deeper than Python's usual stack?"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from oracle_embedded.engine.errors import too_deep

_CALLS_MAX = 30_000
"""About 3,000 parentheses inside each other; Python's own calls take no room on the C stack."""
_one_at_a_time = threading.Lock()
T = TypeVar("T")


def deeply(work: Callable[[], T]) -> T:
    """The result of ``work``, done once more with a higher limit where it runs into Python's.

    Raises:
        OracleError: ORA-03001 where that is not enough.
    """
    try:
        return work()
    except RecursionError:
        with _one_at_a_time:
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(max(limit, _CALLS_MAX))
            try:
                return work()
            except RecursionError:
                raise too_deep() from None
            finally:
                sys.setrecursionlimit(limit)
