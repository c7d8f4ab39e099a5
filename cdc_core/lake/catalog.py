"""Under which names does Spark's catalog know the Delta tables of a captured table, and what do
people read of it there?

Whatever catalog the session has: Hive's metastore, Unity Catalog, Glue. A catalog keeps names and
places; columns and comments are in the Delta tables, so a catalog follows them by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cdc_core.errors import ConfigError, LakeError
from cdc_core.lake.side_tables.small_files import read_text, replace_text
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import delta, quote_name, string_literal
from cdc_core.model.json_form import as_json, from_json
from cdc_core.spark.session import translated

_DOING = "registering a Delta table"


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


def register(work: TableWork, wanted: Registration, known: Registration | None) -> bool:
    """Let the catalog have the names, and the mirror the comments. Repeatable. False if it had all
    of them.

    Raises:
        ConfigError: The catalog has another table under a name.
        LakeError: The catalog refuses, or the mirror is not there.
        SparkUnavailableError: Spark does not start.
    """
    session = work.open_session()
    is_changed = False
    for layer, name in wanted.names.items():
        is_ours = known is not None and known.names.get(layer) == name
        moved_from = known.paths.get(layer) if known is not None and is_ours else None
        is_changed |= _name(work, session, name, wanted.paths[layer], moved_from)
    return _comment(work, session, wanted) or is_changed


def _name(work: TableWork, session: Any, name: str, path: str, moved_from: str | None) -> bool:
    schema, sql = name.rpartition(".")[0], _quoted(name)
    with translated(_DOING, **work.facts(name=name)):
        if not session.catalog.databaseExists(schema):
            session.sql(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")
        if (place := _place(session, name)) == _plain(path):
            return False
        if place is not None:
            if moved_from is None or place not in ("", _plain(moved_from)):
                raise ConfigError(
                    "the catalog has another table under this name",
                    hint="Change the template under lake.catalog, or take that table out of the catalog.",
                    **work.facts(name=name, found=place or "a folder that is not there"),
                )
            session.sql(f"DROP TABLE {sql}")  # of a table with a LOCATION, the files stay
        session.sql(f"CREATE TABLE {sql} USING delta LOCATION {string_literal(path)}")
        return True


def _place(session: Any, name: str) -> str | None:
    """The folder of a table of the catalog; None where there is no table, and empty where nothing
    is in its folder any more, which Spark refuses to describe."""
    try:
        with translated(_DOING):
            if not session.catalog.tableExists(name):
                return None
            rows = session.sql(f"DESCRIBE TABLE EXTENDED {_quoted(name)}").collect()
    except LakeError:
        return ""
    places = [str(value) for column, value, *_ in rows if column == "Location"]
    return _plain(places[-1]) if places else ""


def _plain(path: str) -> str:
    """A folder as both sides can write it."""
    return re.sub(r"^s3[an]?://", "s3://", re.sub(r"^file:/*", "/", path)).rstrip("/")


def _comment(work: TableWork, session: Any, wanted: Registration) -> bool:
    """Give the mirror the comments that it does not have yet."""
    mirror = delta(work.mirror)
    with translated("reading a mirror's comments", **work.facts()):
        [detail] = session.sql(f"DESCRIBE DETAIL {mirror}").collect()
        has = {
            one.name: one.metadata.get("comment", "") for one in session.table(mirror).schema.fields
        }
    changes = [
        f"ALTER TABLE {mirror} ALTER COLUMN {quote_name(column)} COMMENT {string_literal(text)}"
        for column, text in wanted.column_comments.items()
        if has.get(column, text) != text
    ]
    if (detail["description"] or "") != wanted.comment:
        changes.append(f"COMMENT ON TABLE {mirror} IS {string_literal(wanted.comment)}")
    # No column changes: what the mirror is an image of stays what it was.
    metadata = json.dumps({**work.facts(), "kind": "schema", "definition_scn": 0}, default=str)
    for change in changes:
        with work.commit(session, "commenting a mirror", metadata):
            session.sql(change)
    return bool(changes)


def _quoted(name: str) -> str:
    return ".".join(map(quote_name, name.split(".")))
