"""Is the embedded Oracle installed? It is a separate distribution, which the extra ``demo``
requires."""

from __future__ import annotations

import importlib.util

from cdc_core.errors import PreflightError

EMBEDDED_ORACLE = "oracle_embedded"


def require_embedded_oracle() -> None:
    """Refuse to go on without it.

    Raises:
        PreflightError: It is not installed.
    """
    if importlib.util.find_spec(EMBEDDED_ORACLE) is None:
        raise PreflightError(
            "the embedded Oracle is not installed",
            hint="Install the extra `demo`: pip install 'redolake[demo]'.",
            package="redolake-oracle-embedded",
        )
