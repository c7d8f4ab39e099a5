"""By which bytes does a linguistic sort order texts, and which texts does it find equal?

BINARY, BINARY_CI and BINARY_AI are as documented: the bytes of the text, in lower case, and without
accents. The sorts of languages go by base letters, then by accents, then by case, whatever the
language, and do not know letters that stand elsewhere in it.

Source: Oracle Database Globalization Support Guide 19c, "Linguistic Sorting and Matching"; SQL
Language Reference 19c, NLSSORT.
"""

from __future__ import annotations

import re
import unicodedata

from oracle_embedded.api import OracleError
from oracle_embedded.engine.functions.context import CallContext
from oracle_embedded.engine.functions.registry import COLLATIONS, register

BINARY = "BINARY"
_LANGUAGES = frozenset(
    [
        "GERMAN", "XGERMAN", "GERMAN_DIN", "XGERMAN_DIN", "FRENCH", "XFRENCH", "SPANISH", "XSPANISH", "ITALIAN", "SWEDISH", "DANISH", "XDANISH",
        "NORWEGIAN", "FINNISH", "DUTCH", "XDUTCH", "POLISH", "CZECH", "XCZECH", "HUNGARIAN", "XHUNGARIAN", "TURKISH", "XTURKISH", "RUSSIAN",
        "WEST_EUROPEAN", "XWEST_EUROPEAN", "GENERIC_M", "FRENCH_M", "SPANISH_M", "CANADIAN_M",
    ]
)  # fmt: skip
_PARAMETER = re.compile(r"\s*NLS_SORT\s*=\s*'?(\w+)'?\s*", re.IGNORECASE)


def is_sort(name: str) -> bool:
    """Is this a sort that there is here?"""
    return name == BINARY or _plain(name)[0] in _LANGUAGES | {BINARY}


def _plain(name: str) -> tuple[str, str]:
    """A sort's name without what it ignores: ``CI`` the case, ``AI`` accents too."""
    base, _, suffix = name.rpartition("_")
    return (base, suffix) if suffix in ("CI", "AI") else (name, "")


def _without_accents(text: str) -> str:
    parts = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def sort_key(context: CallContext, text: str, name: str) -> bytes:
    """What NLSSORT gives: keys are in the order of their texts, and equal where these are."""
    language, ignored = _plain(name)
    if language == BINARY:
        folded = _without_accents(text) if ignored == "AI" else text
        folded = folded.lower() if ignored else folded
        return context.character_sets.database.encode(folded) + b"\0"
    base = _without_accents(text).lower()
    base = base.replace("ß", "ss") if language.startswith("X") else base
    levels = [base]
    if ignored != "AI":
        levels.append(unicodedata.normalize("NFD", text).lower())
    if not ignored:
        levels.append(text.swapcase())
    return b"\0".join(level.encode() for level in levels) + b"\0"


def _nlssort(context: CallContext, text: str, parameter: str | None = None) -> bytes:
    """NLSSORT.

    Raises:
        OracleError: ORA-12702 for a parameter that is none, ORA-03001 for a sort that is not there.
    """
    if parameter is None:
        return sort_key(context, text, context.nls["NLS_SORT"])
    found = _PARAMETER.fullmatch(parameter)
    if found is None:
        raise OracleError(12702, "invalid NLS parameter string used in SQL function")
    name = found.group(1).upper()
    if not is_sort(name):
        raise OracleError(3001, f"unimplemented feature: NLS_SORT = {name}")
    return sort_key(context, text, name)


def _folded(context: CallContext, text: str) -> str:
    """A text, or a pattern of LIKE, without what the session's sort ignores."""
    _, ignored = _plain(context.nls["NLS_SORT"])
    folded = _without_accents(text) if ignored == "AI" else text
    return folded.lower() if ignored else folded


COLLATIONS["o_linguistic"] = lambda context, text: sort_key(context, text, context.nls["NLS_SORT"])
register("o_nlssort", _nlssort, 1, with_context=True)
register("o_nlssort", _nlssort, 2, with_context=True)
register("o_folded", _folded, 1, with_context=True)
