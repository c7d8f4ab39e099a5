"""Which errors does Redolake raise, and what does it make of Oracle's codes? Asked of the code that
decides."""

from __future__ import annotations

from collections import defaultdict

from cdc_core import errors
from cdc_core.errors import CdcError, TransientError
from cdc_core.oracle import ora_codes
from docs.tools.markdown import code, table


def error_classes() -> list[type[CdcError]]:
    """Every class of the tree, in the order of the module."""
    found = [one for one in vars(errors).values() if isinstance(one, type)]
    return [one for one in found if issubclass(one, CdcError) and one.__module__ == errors.__name__]


def known_codes() -> list[str]:
    """Every code of Oracle or the driver that :mod:`cdc_core.oracle.ora_codes` names."""
    return sorted(ora_codes.KNOWN_CODES)


def oracle_codes() -> str:
    """Codes by what Redolake makes of them."""
    groups: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for one in known_codes():
        error = ora_codes.cdc_error(Exception(f"{one}: Oracle's own text"))
        verdict = "yes" if isinstance(error, TransientError) else "no"
        link = f"[{type(error).__name__}](#{type(error).__name__.lower()})"
        groups[link, error.message, error.hint, verdict].append(one)
    rows = sorted(
        (", ".join(map(code, codes)), message, link, verdict, hint)
        for (link, message, hint, verdict), codes in groups.items()
    )
    return table(("code", "what happened", "raised as", "retried", "what to do"), rows)
