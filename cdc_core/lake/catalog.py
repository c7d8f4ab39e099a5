"""Under which names does a catalog know the Delta tables of a captured table, and what do people
read of it there?

Whatever catalog Spark's session has (Hive's metastore, Unity Catalog, Glue), or a Unity Catalog
without Spark. A catalog keeps names and places; columns and comments are in the Delta tables, so a
catalog follows them by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from cdc_core.config import UnityConfig
from cdc_core.errors import ConfigError, LakeError
from cdc_core.lake.definitions.altering import alter, comment_column, comment_table
from cdc_core.lake.side_tables.small_files import read_text, replace_text
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import quote_name, string_literal
from cdc_core.lake.unity import UnityNames
from cdc_core.model.json_form import as_json, from_json
from cdc_core.spark.session import translated


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A captured table in a catalog: names and folders of its Delta tables by layer, and of its
    mirror the columns with their types, its comment and those of its columns."""

    names: Mapping[str, str]
    paths: Mapping[str, str]
    columns: Mapping[str, str]
    comment: str
    column_comments: Mapping[str, str]


def catalog_file(root: str, source: str) -> str:
    """The file of what is registered, below the folder of the lake."""
    return f"{root.rstrip('/')}/{source}/catalog.json"


def read_registered(path: str) -> dict[str, Registration]:
    """What is registered, by the tables' Oracle names; nothing where there is no file that can be
    read: registering again changes nothing."""
    try:
        said: dict[str, Any] = json.loads(read_text(path) or "{}")
        return {name: from_json(Registration, one) for name, one in said.items()}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}


def write_registered(path: str, registered: Mapping[str, Registration]) -> None:
    """Keep what is registered."""
    replace_text(path, json.dumps(as_json(registered), indent=1, sort_keys=True))


class Names(Protocol):
    """A catalog, as far as names of Delta tables go."""

    def place(self, name: str) -> str | None:
        """The folder of a table; None where there is no table, and empty where nobody can say.

        Raises:
            LakeError: The catalog refuses, or does not answer.
            SparkUnavailableError: Spark does not start.
        """

    def create(self, name: str, path: str) -> None:
        """Give a Delta table a name, in a schema that is made if need be. Errors as above."""

    def drop(self, name: str) -> None:
        """Take a name away; the files of the table stay. Errors as above."""


def register(
    work: TableWork,
    wanted: Registration,
    known: Registration | None,
    *,
    unity: UnityConfig | None = None,
) -> bool:
    """Let the catalog have the names, and the mirror the comments. Repeatable. False if it had all
    of them.

    Args:
        work: The table.
        wanted: Its names, and its comments.
        known: What was registered last.
        unity: The catalog; None for that of Spark's session.

    Raises:
        ConfigError: The catalog has another table under a name.
        LakeError: The catalog refuses or does not answer, or the mirror does not exist.
        SparkUnavailableError: Spark does not start.
    """
    names: Names = SparkNames(work) if unity is None else UnityNames(unity)
    is_changed = False
    for layer, name in wanted.names.items():
        is_ours = known is not None and known.names.get(layer) == name
        moved_from = known.paths.get(layer) if known is not None and is_ours else None
        is_changed |= _name(work, names, name, wanted.paths[layer], moved_from)
    return _comment(work, wanted) or is_changed


def _name(work: TableWork, names: Names, name: str, path: str, moved_from: str | None) -> bool:
    found = names.place(name)
    place = None if found is None else _plain(found)
    if place == _plain(path):
        return False
    if place is not None:
        if moved_from is None or place not in ("", _plain(moved_from)):
            raise ConfigError(
                "the catalog has another table under this name",
                hint="Change the template under lake.catalog, or remove that table from the catalog.",
                **work.facts(name=name, found=place or "a folder that is not there"),
            )
        names.drop(name)
    names.create(name, path)
    return True


def _plain(path: str) -> str:
    """A folder as both sides can write it."""
    return re.sub(r"^s3[an]?://", "s3://", re.sub(r"^file:/*", "/", path)).rstrip("/")


@dataclass(frozen=True, slots=True)
class SparkNames:
    """The catalogs of Spark's session: its own, and those that its configuration names. Methods are
    those of :class:`Names`."""

    work: TableWork

    def place(self, name: str) -> str | None:
        session = self.work.open_session()
        try:
            with self._translated(name):
                if not session.catalog.tableExists(name):
                    return None
                rows = session.sql(f"DESCRIBE TABLE EXTENDED {_quoted(name)}").collect()
        except LakeError:  # nothing is in its folder any more
            return ""
        places = [str(value) for column, value, *_ in rows if column == "Location"]
        return places[-1] if places else ""

    def create(self, name: str, path: str) -> None:
        session, schema = self.work.open_session(), name.rpartition(".")[0]
        with self._translated(name):
            if not session.catalog.databaseExists(schema):
                session.sql(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")
            location = string_literal(path)
            session.sql(f"CREATE TABLE {_quoted(name)} USING delta LOCATION {location}")

    def drop(self, name: str) -> None:
        with self._translated(name):
            self.work.open_session().sql(f"DROP TABLE {_quoted(name)}")

    def _translated(self, name: str) -> AbstractContextManager[None]:
        return translated("registering a Delta table", **self.work.facts(name=name))


def _comment(work: TableWork, wanted: Registration) -> bool:
    """Give the mirror the comments that it does not have yet."""
    said = work.require_mirror().metadata
    fields = json.loads(said["schemaString"])["fields"]
    has = {one["name"]: (one.get("metadata") or {}).get("comment", "") for one in fields}
    changes = [
        comment_column([column], text)
        for column, text in wanted.column_comments.items()
        if has.get(column, text) != text
    ]
    if (said.get("description") or "") != wanted.comment:
        changes.append(comment_table(wanted.comment))
    for change in changes:
        alter(work, work.mirror, change)
    return bool(changes)


def _quoted(name: str) -> str:
    return ".".join(map(quote_name, name.split(".")))
