"""Which tables does a pattern such as ``SHOP.ORDER*`` name?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId, refuse_container

_PART = re.compile(r'"([^"]+)"|([A-Za-z0-9_$#*?]+)')


@dataclass(frozen=True, slots=True)
class TablePattern:
    """Tables by owner and name, as the dictionary has them: ``*`` is any number of characters, ``?`` is one.

    Oracle allows neither character in a plain name; a quoted name that has one is read as a pattern too.
    """

    owner: str
    name: str

    @classmethod
    @lru_cache(maxsize=1024)
    def parse(cls, text: str) -> TablePattern:
        """Read ``OWNER.TABLE``: unquoted parts fold to upper case, quoted parts keep theirs.

        Raises:
            ConfigError: The text is not a pattern.
        """
        parts = list(_PART.finditer(text.strip()))
        is_whole = ".".join(part[0] for part in parts) == text.strip()
        if is_whole:
            refuse_container(parts, text)
        if len(parts) != 2 or not is_whole:
            raise ConfigError(
                "this is not a table name or a pattern",
                hint="Write OWNER.TABLE, for example 'SHOP.*' or 'SHOP.ORDER?', with double quotes around a part that is "
                "not upper case.",
                pattern=text[:200],
            )
        return cls(*(part[1] or part[2].upper() for part in parts))

    @classmethod
    def is_in(cls, text: str) -> bool:
        """Has the text a wildcard?"""
        return "*" in text or "?" in text

    def matches(self, table: TableId) -> bool:
        """Is the table among those that the pattern names?"""
        return _fits(self.owner, table.owner) and _fits(self.name, table.name)


def _fits(pattern: str, text: str) -> bool:
    return _expression(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(one) or re.escape(one) for one in pattern), re.DOTALL)
