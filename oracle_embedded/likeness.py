"""How does the embedded Oracle behave as another database did? By a report on that one.

A report is a JSON object with ``warts`` (names of :class:`Wart`, each shown or not) and ``facts``
(``release``, ``lob_rows``, ``character_set``, ``national_character_set``, ``extended_strings``,
``time_zone``, ``threads``). What it does not have stays as it is by default. `redolake certify`
writes one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oracle_embedded.charsets import DATABASE_NAMES, NATIONAL_NAMES
from oracle_embedded.redo import DEFAULT_WARTS, LobRows, Wart

_NEWER = 23
_RELEASES = ("19c", "23ai")


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """What a report says of a database, as far as the embedded one has a setting for it.

    Attributes:
        threads: How many redo threads are open.
        unlike: Names of facts that the embedded Oracle cannot have.
    """

    warts: frozenset[Wart] = DEFAULT_WARTS
    lob_rows: LobRows = LobRows.BLOCKS
    release: str = "19c"
    character_set: str = ""
    national_character_set: str = ""
    extended_strings: bool = False
    time_zone: str = "+00:00"
    threads: int = 1
    unlike: tuple[str, ...] = ()

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Likeness:
        """Read a report.

        Raises:
            ValueError: It is none.
        """
        facts, shown = report.get("facts"), report.get("warts")
        if not isinstance(facts, Mapping) or not isinstance(shown, Mapping):
            raise ValueError("it has no facts and warts")
        known = {wart.value: wart for wart in Wart}
        warts = set(DEFAULT_WARTS)
        unlike = [name for name in shown if name not in known]
        for name, is_shown in shown.items():
            if name in known:
                (warts.add if is_shown else warts.discard)(known[name])
        names = {"character_set": DATABASE_NAMES, "national_character_set": NATIONAL_NAMES}
        sets = {name: str(facts.get(name, "")) for name in names}
        unlike += [name for name, one in sets.items() if one and one not in names[name]]
        shape = str(facts.get("lob_rows", LobRows.BLOCKS.value))
        shapes = {one.value: one for one in LobRows}
        return cls(
            warts=frozenset(warts),
            lob_rows=shapes.get(shape, LobRows.BLOCKS),
            release=_release(str(facts.get("release", ""))),
            character_set=sets["character_set"] if "character_set" not in unlike else "",
            national_character_set=(
                sets["national_character_set"] if "national_character_set" not in unlike else ""
            ),
            extended_strings=bool(facts.get("extended_strings", 0)),
            time_zone=str(facts.get("time_zone", "+00:00")),
            threads=int(facts.get("threads", 1)),
            unlike=tuple(unlike),
        )

    @classmethod
    def read(cls, path: Path) -> Likeness:
        """Read a report's file.

        Raises:
            ValueError: It is no report, or cannot be read.
        """
        try:
            report = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"it cannot be read as JSON ({type(error).__name__})") from error
        if not isinstance(report, dict):
            raise ValueError("it is no JSON object")
        return cls.of(report)


def _release(name: str) -> str:
    """The nearest release that the embedded Oracle knows."""
    digits = "".join(one for one in name if one.isdigit())
    return _RELEASES[1] if digits and int(digits[:2]) >= _NEWER else _RELEASES[0]
