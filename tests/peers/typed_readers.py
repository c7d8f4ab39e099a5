"""Do Debezium and Redolake give the same value of every type: in the rows of a snapshot, and in INSERT, UPDATE and DELETE from the redo?

One database, one table per row of the type table. Both readers take a snapshot of it, then read one story.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oracle_embedded.database import CAPTURE
from oracle_embedded.redo import LobRows
from tests.oracle.embedded import PASSWORDS, Oracle, running_oracle
from tests.peers.debezium import UNAVAILABLE, debezium
from tests.peers.exact import Options, our_value, their_value
from tests.peers.two_readers import LOSING
from tests.steps.harness import Source, source_of, table_id
from tests.steps.test_type_parity import CHANGED, Types, name_of, names_of

INSERTED = 300
"""A row this much above its literal's number is inserted while both stream; those at the number, and at CHANGED without the value, are
there at the snapshot."""
LAST = 99_999


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One value of an event: the declaration and literal of its row, what happened to the row, and the image that has it."""

    declaration: str
    literal: str
    op: str
    image: str


@dataclass(frozen=True, slots=True)
class Differing:
    """What both say of one value."""

    place: Place
    ours: Any
    theirs: Any


@dataclass(frozen=True, slots=True)
class Compared:
    """How many values were held against each other, and those that differ."""

    values: int
    differing: list[Differing]


def compare(folder: Path, types: Types, options: Options, **database: Any) -> Compared:
    """Let both read the snapshot and the story."""
    with running_oracle(lob_rows=LobRows.PIECES, **database) as oracle:
        for wart in LOSING:
            oracle.database.redo.set_wart(wart, shown=False)
        names = names_of(types)
        _prepare(oracle, types)
        theirs_in, ours_in = folder / "debezium", folder / "ours"
        for each in (theirs_in, ours_in):
            each.mkdir(parents=True)
        more = {
            "snapshot.mode": "initial",
            "lob.enabled": "true",
            "decimal.handling.mode": "precise",
            **options.debezium,
        }
        tables = [f"DEMO.{name}" for name in names]
        with ExitStack() as stack:
            source = stack.enter_context(source_of(oracle, ours_in))
            source.configure(
                *({"name": name, "types_as": dict(options.types_as)} for name in names)
            )
            peer = stack.enter_context(
                debezium(oracle.server.port, PASSWORDS[CAPTURE], theirs_in, tables, **more)
            )
            source.run()
            oracle.run(*_story(types))
            peer.wait(lambda: f'"ID":{LAST}' in peer.newest() or f'"ID":"{LAST}"' in peer.newest())
            source.windows()
            for name in names:
                assert source.record(name).state == "ready", source.record(name).reason
            lines = (theirs_in / "events.json").read_text().splitlines()
            theirs = _theirs([json.loads(line) for line in lines])
            ours = {name: _ours(source, name) for name in names}
    return _compared(types, options, ours, theirs)


def literals_of(group: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, str, str, str]]:
    """Number, column, declaration and text of each literal of a table."""
    number = 0
    for at, (declaration, literals) in enumerate(group.items()):
        for literal in literals:
            number += 1
            yield number, f"C{at}", declaration, literal


def _prepare(oracle: Oracle, types: Types) -> None:
    for name, group in zip(names_of(types), types.values(), strict=True):
        listed = ", ".join(f"C{at} {declaration}" for at, declaration in enumerate(group))
        oracle.run(f"CREATE TABLE {name} (ID NUMBER(5) PRIMARY KEY, {listed})")
        for number, column, _, literal in literals_of(group):
            oracle.run(f"INSERT INTO {name} (ID, {column}) VALUES ({number}, {literal})")
            oracle.run(f"INSERT INTO {name} (ID) VALUES ({number + CHANGED})")


def _story(types: Types) -> list[str]:
    """Each statement in a transaction of its own."""
    steps: list[str] = []
    for name, group in zip(names_of(types), types.values(), strict=True):
        for number, column, _, literal in literals_of(group):
            steps += [
                f"INSERT INTO {name} (ID, {column}) VALUES ({number + INSERTED}, {literal})",
                f"UPDATE {name} SET {column} = {literal} WHERE ID = {number + CHANGED}",
                f"DELETE FROM {name} WHERE ID = {number + INSERTED}",
            ]
    steps.append(f"INSERT INTO {name_of(0)} (ID) VALUES ({LAST})")
    return [one for step in steps for one in (step, "COMMIT")]


Images = dict[tuple[int, str], dict[str, Mapping[str, Any] | None]]
"""Before and after by key and operation."""


def _theirs(events: Sequence[Mapping[str, Any]]) -> dict[str, Images]:
    found: dict[str, Images] = {}
    for event in events:
        row = event["after"] or event["before"]
        at = (int(row["ID"]), event["op"])
        images = found.setdefault(event["source"]["table"], {})
        assert at not in images, at
        images[at] = {image: event[image] for image in ("before", "after")}
    return found


def _ours(source: Source, name: str) -> Images:
    """The change log. A statement and its writes of LOBs are one event, as with Debezium."""
    images: Images = {}
    xids: dict[int, tuple[str, str]] = {}
    rows = source.lake.tables[table_id(name)].history
    for row in sorted(rows, key=lambda one: (one["_cdc_commit_scn"], one["_cdc_ordinal"])):
        key, op = (row["after"] or row["before"])["ID"], row["_cdc_op"]
        after = row["after"] and {
            column: value
            for column, value in row["after"].items()
            if column not in row["_cdc_absent"]
        }
        if op == "u" and xids.get(key, ("", ""))[0] == row["_cdc_xid"]:
            held = images[key, xids[key][1]]
            held["after"] = {**(held["after"] or {}), **after}
            continue
        if op != "r":
            xids[key] = (row["_cdc_xid"], op)
        absent = [
            *(row.get("_cdc_before_absent") or ()),
            *(row["_cdc_absent"] if op == "d" else ()),
        ]
        before = row["before"] and {**row["before"], **dict.fromkeys(absent, UNAVAILABLE)}
        images[key, op] = {"before": before, "after": after}
    return images


def _compared(
    types: Types, options: Options, ours: Mapping[str, Images], theirs: Mapping[str, Images]
) -> Compared:
    values, differing = 0, []
    for name, group in zip(names_of(types), types.values(), strict=True):
        mine, other = dict(ours[name]), dict(theirs[name])
        if name == name_of(0):
            assert (LAST, "c") in mine
            assert (LAST, "c") in other
        for number, column, declaration, literal in literals_of(group):
            for key, op in ((number, "r"), (number + CHANGED, "r"), (number + CHANGED, "u"), (number + INSERTED, "c"), (number + INSERTED, "d")):  # fmt: skip
                for image in ("before", "after"):
                    one, two = mine[key, op][image], other[key, op][image]
                    place = Place(declaration, literal, op, image)
                    if one is None or two is None:
                        if one is not two:
                            differing.append(Differing(place, one, two))
                        continue
                    first = our_value(one.get(column, UNAVAILABLE), declaration, options)
                    second = their_value(two.get(column, UNAVAILABLE), declaration, options)
                    values += 1
                    if repr(first) != repr(second):
                        differing.append(Differing(place, first, second))
    return Compared(values, differing)
