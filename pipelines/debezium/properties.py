"""What answers each property of Debezium's Oracle connector? The reference page and the import
read it from ``properties.csv``.

Names are those of the 3.x line; older names stand beside them. ``{…}`` in a name is a part that
the user chooses. A hidden property has the prefix ``internal.``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files


class Verdict(StrEnum):
    """How Redolake answers a property."""

    TAKEN = "taken"
    """An option does the same. The import sets it."""

    DIFFERS = "differs"
    """An option does the job in another way, or with another default: look at it after the
    import."""

    ANSWERED = "answered"
    """Redolake does it always, or its design makes the question go away. Nothing to set."""

    NOT_NEEDED = "not needed"
    """About Kafka, Connect, or memory of a streaming process."""

    MISSING = "missing"
    """Redolake does not offer it."""


@dataclass(frozen=True, slots=True)
class Property:
    """One property, or several that are answered together."""

    names: tuple[str, ...]
    verdict: Verdict
    options: tuple[str, ...]
    """Options of Redolake's configuration file, dotted."""
    said: str
    """One or two sentences for someone who comes from Debezium; Markdown."""
    group: str


@lru_cache(maxsize=1024)
def _expression(name: str) -> re.Pattern[str]:
    parts = re.split(r"\{[^}]*\}", name)
    return re.compile(r"(internal\.)?" + r".+".join(map(re.escape, parts)))


def property_named(name: str) -> Property | None:
    """The entry that answers a property of a connector's file; None for one that nobody knows.

    Of several that fit, the one with the longest text that the user does not choose.
    """
    fitting = [
        (len(re.sub(r"\{[^}]*\}", "", text)), one)
        for one in PROPERTIES
        for text in one.names
        if _expression(text).fullmatch(name)
    ]
    return max(fitting, key=lambda one: one[0])[1] if fitting else None


def counterparts() -> dict[str, tuple[str, ...]]:
    """Option → the properties that it answers, newest names only; for the page of all options."""
    found: dict[str, list[str]] = {}
    for one in PROPERTIES:
        for option in one.options:
            found.setdefault(option, []).append(one.names[0])
    return {option: tuple(names) for option, names in found.items()}


def _read() -> Iterator[Property]:
    """The entries of ``properties.csv``: names (newest first) and options stand between blanks."""
    text = (files(__package__) / "properties.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        yield Property(
            tuple(row["names"].split()),
            Verdict(row["verdict"]),
            tuple(row["options"].split()),
            row["said"],
            row["group"],
        )


PROPERTIES = tuple(_read())
"""Every property, in the groups and the order of Debezium's documentation."""
