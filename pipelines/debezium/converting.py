"""What does a connector's configuration become in Redolake, and what becomes of each of its
properties?"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, get_args

from cdc_core.config import ChangeLogColumn
from cdc_core.model.character_sets import CODECS
from pipelines.debezium import expressions
from pipelines.debezium.properties import Verdict, property_named

PORT = "1521"
"""Oracle's usual port."""


class Outcome(StrEnum):
    """What became of a property."""

    NOT_TAKEN = "NOT TAKEN"
    """It would have to be taken: without it more is captured than by the connector, or
    otherwise."""

    UNKNOWN = "unknown"
    """No property that Redolake knows."""

    LOOK = "changes behaviour"
    TAKEN = "taken"
    ANSWERED = "answered"
    NOT_NEEDED = "not needed"


@dataclass(frozen=True, slots=True)
class Remark:
    """One line for the reader. It never holds a secret."""

    name: str
    outcome: Outcome
    said: str


@dataclass(slots=True)
class Imported:
    """The configuration that is being made of a connector's."""

    properties: Mapping[str, str]
    attributes: dict[str, Any] = field(default_factory=dict)
    """The file's ``attributes``."""
    remarks: list[Remark] = field(default_factory=list)

    def put(self, path: str, value: Any) -> None:
        """Set an option by its dotted path."""
        *above, last = path.split(".")
        place = self.attributes
        for name in above:
            place = place.setdefault(name, {})
        place[last] = value

    def remark(self, name: str, outcome: Outcome, said: str) -> None:
        """Say what became of a property."""
        self.remarks.append(Remark(name, outcome, said))

    @property
    def is_whole(self) -> bool:
        """Was everything taken or answered?"""
        return all(one.outcome is not Outcome.NOT_TAKEN for one in self.remarks)


def imported(properties: Mapping[str, str]) -> Imported:
    """What a connector's properties become.

    Nothing is left out in silence: each property has at least one remark. Password and salts become
    names of environment variables.
    """
    made = Imported(properties)
    _name(made)
    _connection(made)
    _tables(made)
    _converters(made)
    for name, value in properties.items():
        if name in _BY_NAME:
            _BY_NAME[name](made, name, value.strip())
        elif not _is_done(made, name):
            _by_table(made, name, value)
    made.put("landing", {"type": "local", "path": "data/landing"})
    made.put("lake.path", "data/lake")
    made.put("state.url", "sqlite:///data/state.db")
    return made


def _is_done(made: Imported, name: str) -> bool:
    return any(one.name == name for one in made.remarks)


# -- name and connection


def _name(made: Imported) -> None:
    for key in ("topic.prefix", "database.server.name", "name"):
        if given := made.properties.get(key):
            name = re.sub(r"[^a-z0-9]+", "_", given.lower()).strip("_")[:40] or "oracle"
            name = name if name[0].isalpha() else f"s_{name}"[:40]
            made.put("name", name)
            if name == given:
                made.remark(key, Outcome.TAKEN, f"name: {name}")
            else:
                made.remark(
                    key, Outcome.LOOK, f"name: {name}, since {given!r} has other characters"
                )
            if key != "name" and "name" in made.properties:
                made.remark("name", Outcome.NOT_NEEDED, f"{key} names the source")
            return
    made.put("name", "oracle")
    made.remark("topic.prefix", Outcome.LOOK, "is not set; the source is named oracle")


def _connection(made: Imported) -> None:
    given = made.properties
    host, port = given.get("database.hostname", ""), given.get("database.port", "")
    service = given.get("database.dbname", "")
    if url := given.get("database.url", ""):
        made.put("oracle.dsn", _connect_string(url))
        made.remark("database.url", Outcome.TAKEN, "oracle.dsn, without what is before the @")
    elif host:
        made.put("oracle.dsn", f"{host}:{port or PORT}/{service}")
        said = f"oracle.dsn: {host}:{port or PORT}/{service}"
        made.remark("database.hostname", Outcome.TAKEN, said)
        if not port:
            made.remark("database.port", Outcome.LOOK, f"is not set; {PORT} is written")
    else:
        made.remark("database.hostname", Outcome.NOT_TAKEN, "neither it nor database.url is set")
    for name in ("database.hostname", "database.port", "database.dbname"):
        if name in given and not _is_done(made, name):
            made.remark(name, Outcome.TAKEN, "oracle.dsn")
    made.put("oracle.user", given.get("database.user", ""))
    made.remark("database.user", Outcome.TAKEN, "oracle.user")
    variable = f"{made.attributes['name'].upper()}_ORACLE_PASSWORD"
    made.put("oracle.password_env", variable)
    made.remark("database.password", Outcome.TAKEN, f"export {variable}=…; the file has no secret")


def _connect_string(url: str) -> str:
    """What stands behind the ``@`` of a JDBC URL: Easy Connect, a descriptor, or a TNS name."""
    return url.strip().partition("@")[2].removeprefix("//") or url.strip()


# -- tables and columns


def _tables(made: Imported) -> None:
    given = made.properties
    schemas = _list(made, "schema.include.list", "schema.whitelist")
    named = _list(made, "table.include.list", "table.whitelist")
    without = _list(made, "table.exclude.list", "table.blacklist")
    without += [_tables_of(one) for one in _list(made, "schema.exclude.list", "schema.blacklist")]
    names = [_pattern(made, one) for one in named or [r".*"]]
    if schemas and not named:
        names = [_pattern(made, _tables_of(one)) for one in schemas]
    elif schemas:
        names = [_within(one, schemas) for one in names if one is not None]
    excluded = [one for text in without if (one := _pattern(made, text)) is not None]
    entries: list[dict[str, Any]] = []
    for name in dict.fromkeys(one for one in names if one):
        if _is_pattern(name):
            entries.append({"name": name, **({"exclude": excluded} if excluded else {})})
        elif any(expressions.names_table(text, name) for text in without):
            made.remark("table.exclude.list", Outcome.TAKEN, f"{name} is left out")
        else:
            entries.append({"name": name})
    made.attributes["tables"] = entries
    if not all(_is_pattern(one["name"]) for one in entries):
        made.put("unsupported_columns", "omit")  # as the connector does
    said = f"{len(entries)} entries under tables" if len(entries) != 1 else "one entry under tables"
    for one in _LISTS:
        if one in given and not _is_done(made, one):
            made.remark(one, Outcome.TAKEN, said)
    if not named and not schemas:
        made.remark(
            "table.include.list", Outcome.LOOK, "is not set: every table that is not Oracle's own"
        )


_LISTS = (
    "schema.include.list", "schema.whitelist", "schema.exclude.list", "schema.blacklist",
    "table.include.list", "table.whitelist", "table.exclude.list", "table.blacklist",
)  # fmt: skip


def _list(made: Imported, *names: str) -> list[str]:
    return [one for name in names for one in expressions.listed(made.properties.get(name, ""))]


def _pattern(made: Imported, expression: str) -> str | None:
    try:
        return expressions.table_name(expression)
    except ValueError as error:
        made.remark("table.include.list", Outcome.NOT_TAKEN, f"{expression}: {error}")
        return None


def _tables_of(schema: str) -> str:
    """The expression of all tables in the schemas that an expression names."""
    is_literal = expressions.literal(schema) is not None
    return rf"{schema}\..*" if is_literal else rf"(?:{schema})\..*"


def _within(name: str, schemas: list[str]) -> str | None:
    if _is_pattern(name):
        return expressions.within_schemas(name, schemas)
    owner = name.partition(".")[0]
    return name if any(expressions.fits(one, owner) for one in schemas) else None


def _is_pattern(name: str) -> bool:
    return name.startswith("re:") or "*" in name


def _columns_of(
    made: Imported,
    name: str,
    text: str,
    change: Callable[[dict[str, Any], str], None],
    *,
    by_pattern: bool = False,
) -> None:
    """Give each column of a list to the entries whose tables it names, ``by_pattern`` also those
    that it does not name literally; what fits none is not taken."""
    for expression in expressions.listed(text):
        found = list(expressions.columns(expression))
        if not found and by_pattern and (made_of := expressions.column_pattern(expression)):
            found = [made_of]
        if not found:
            said = f"{expression}: name its columns in the entries of their tables"
            made.remark(name, Outcome.NOT_TAKEN, said)
        for table, column in found:
            if places := _entries_of(made, table):
                for entry in places:
                    change(entry, column)
                said = f"{column} of {', '.join(one['name'] for one in places)}"
                made.remark(name, Outcome.TAKEN, said)
            else:
                said = f"{expression}: no entry under tables names just its tables"
                made.remark(name, Outcome.NOT_TAKEN, said)


def _entries_of(made: Imported, table: str) -> list[dict[str, Any]]:
    """The entries of the tables that an expression names; a table that only a pattern names gets
    its own."""
    tables: list[dict[str, Any]] = made.attributes["tables"]
    every = table in (".*", r".*\..*", r"[^.]*\.[^.]*")
    places = [
        one
        for one in tables
        if every or _same(table, one["name"]) or expressions.names_table(table, one["name"])
    ]
    if places:
        return places
    parts = expressions.dotted(table)[-2:]
    if len(parts) != 2:
        return []
    name = ".".join(str(expressions.literal(part)) for part in parts)
    for pattern in tables:
        if _is_pattern(pattern["name"]) and re.fullmatch(
            expressions.as_expression(pattern["name"]), name, re.IGNORECASE
        ):
            own = {
                key: dict(value) if isinstance(value, dict) else value
                for key, value in pattern.items()
                if key != "exclude"
            } | {"name": name}
            own = {
                key: list(value) if isinstance(value, list) else value for key, value in own.items()
            }
            tables.insert(0, own)
            return [own]
    return []


def _same(expression: str, name: str) -> bool:
    try:
        return _is_pattern(name) and expressions.table_name(expression) == name
    except ValueError:
        return False


def _tables_max(made: Imported, name: str, value: str) -> None:
    if made.properties.get("guardrail.collections.limit.action", "warn") == "fail":
        made.put("tables_max", int(value))
        made.remark(name, Outcome.TAKEN, f"tables_max: {value}")
    else:
        said = "the connector only warns: `redolake doctor` shows the number; tables_max would stop"
        made.remark(name, Outcome.LOOK, said)


def _excluded(made: Imported, name: str, value: str) -> None:
    def change(entry: dict[str, Any], column: str) -> None:
        entry["columns_exclude"] = [*entry.get("columns_exclude", []), column]

    _columns_of(made, name, value, change, by_pattern=True)


def _included(made: Imported, name: str, value: str) -> None:
    """Give each entry the columns that the connector captures of it. Of a table that the list does
    not name, it captures none, which no entry of ours says."""

    def change(entry: dict[str, Any], column: str) -> None:
        entry["columns_include"] = [*entry.get("columns_include", []), column]

    _columns_of(made, name, value, change, by_pattern=True)
    for entry in made.attributes["tables"]:
        if "columns_include" not in entry:
            said = f"the list names no column of {entry['name']}, of which all would be captured"
            made.remark(name, Outcome.NOT_TAKEN, said)
    made.remark(name, Outcome.LOOK, "columns_include must name the key's columns too")


def _masked(made: Imported, name: str, value: str, mask: str) -> None:
    def change(entry: dict[str, Any], column: str) -> None:
        entry.setdefault("columns_mask", {}).setdefault(column, mask)

    _columns_of(made, name, value, change, by_pattern=True)


def _keys(made: Imported, name: str, value: str) -> None:
    for one in filter(None, (part.strip() for part in value.split(";"))):
        table, _, columns = one.rpartition(":")
        key = [column.strip().upper() for column in columns.split(",") if column.strip()]
        parts = expressions.dotted(table)[-2:]
        try:
            pattern = expressions.table_name(r"\.".join(parts) or table)
        except ValueError:
            pattern = ""
        if not (table and pattern and key):
            made.remark(name, Outcome.NOT_TAKEN, f"{one}: name tables and their columns under key")
            continue
        made.attributes.setdefault("key", {}).setdefault(pattern, key)
        made.remark(name, Outcome.TAKEN, f"key of {pattern}: {', '.join(key)}")


def _snapshot_tables(made: Imported, name: str, value: str) -> None:
    found = [
        pattern
        for one in expressions.listed(value)
        if (pattern := _pattern(made, r"\.".join(expressions.dotted(one)[-2:]) or one))
    ]
    made.put("snapshot.include", found)
    made.remark(name, Outcome.TAKEN, f"snapshot.include: {', '.join(found)}")


def _converters(made: Imported) -> None:
    """Debezium's own converters become forms; a class of the user's is written anew."""
    listed = made.properties.get("converters", "")
    for one in filter(None, (part.strip() for part in listed.split(","))):
        given = {
            key.removeprefix(f"{one}."): text.strip()
            for key, text in made.properties.items()
            if key.startswith(f"{one}.")
        }
        kind = given.pop("type", "").rpartition(".")[2]
        form, of_type = "", ""
        if kind == "NumberOneToBooleanConverter":
            form, of_type = "boolean(>0)", "NUMBER(1)"
        elif kind == "RawToStringConverter":
            form, of_type = _text_form(given.get("charset", "UTF-8")), "RAW"
        if kind == "NumberToZeroScaleConverter":
            said = "a NUMBER without a fraction is a decimal or BIGINT without one by default"
            made.remark(f"{one}.type", Outcome.ANSWERED, said)
        elif not form:
            said = f"{kind or one}: write it as a Python class, and name it under columns_as"
            made.remark(f"{one}.type", Outcome.NOT_TAKEN, said)
        elif selector := given.get("selector"):
            _held_as(made, f"{one}.selector", selector, form)
            made.remark(f"{one}.type", Outcome.TAKEN, f"columns_as: {form}")
        else:
            for entry in made.attributes["tables"]:
                entry.setdefault("types_as", {})[of_type] = form
            made.remark(f"{one}.type", Outcome.TAKEN, f"types_as: {{{of_type}: {form}}}")
        for key in given:
            if not _is_done(made, f"{one}.{key}"):
                made.remark(f"{one}.{key}", Outcome.TAKEN if form else Outcome.LOOK, kind)
        made.remark("converters", Outcome.TAKEN, f"{one}: {one}.type says what became of it")


def _held_as(made: Imported, name: str, value: str, form: str) -> None:
    def change(entry: dict[str, Any], column: str) -> None:
        entry.setdefault("columns_as", {}).setdefault(column, form)

    _columns_of(made, name, value, change, by_pattern=True)


def _text_form(charset: str) -> str:
    """The form of a RAW that is text in a character set by Java's name; empty where Redolake does
    not read it."""
    try:
        codec = codecs.lookup(charset).name
    except LookupError:
        return ""
    if codec == codecs.lookup("utf-8").name:
        return "text"
    known = (name for name, one in CODECS.items() if codecs.lookup(one).name == codec)
    return next((f"text({name})" for name in known), "")


# -- single properties

_Rule = Callable[[Imported, str, str], None]


def _seconds(path: str) -> _Rule:
    def rule(made: Imported, name: str, value: str) -> None:
        if not value.isdigit() or int(value) == 0:
            made.remark(name, Outcome.LOOK, f"{value!r} is not offered; the default stays")
            return
        seconds = int(value) / 1000
        made.put(path, int(seconds) if seconds == int(seconds) else max(seconds, 0.001))
        made.remark(name, Outcome.TAKEN, f"{path}: {seconds:g}")

    return rule


def _number(path: str, least: int = 1) -> _Rule:
    def rule(made: Imported, name: str, value: str) -> None:
        if not value.isdigit() or int(value) < least:
            made.remark(name, Outcome.LOOK, f"{value!r} is not offered; the default stays")
            return
        made.put(path, int(value))
        made.remark(name, Outcome.TAKEN, f"{path}: {value}")

    return rule


def _boolean(path: str) -> _Rule:
    def rule(made: Imported, name: str, value: str) -> None:
        made.put(path, value.lower() == "true")
        made.remark(name, Outcome.TAKEN, f"{path}: {value.lower()}")

    return rule


def _texts(path: str) -> _Rule:
    def rule(made: Imported, name: str, value: str) -> None:
        texts = expressions.listed(value)
        made.put(path, texts)
        made.remark(name, Outcome.LOOK, f"{path}: {', '.join(texts)}. {_said(name)}")

    return rule


def _text(path: str) -> _Rule:
    def rule(made: Imported, name: str, value: str) -> None:
        made.put(path, value)
        made.remark(name, Outcome.TAKEN, f"{path}: {value}")

    return rule


def _types(**forms: tuple[dict[str, str], str]) -> _Rule:
    """``types_as`` of every entry by the value; a form of its own says what the default does."""

    def rule(made: Imported, name: str, value: str) -> None:
        if value.replace("-", "_") not in forms:
            made.remark(name, Outcome.NOT_TAKEN, f"{value!r} is not a value that Redolake knows")
            return
        types, said = forms[value.replace("-", "_")]
        for entry in made.attributes["tables"] if types else ():
            entry.setdefault("types_as", {}).update(types)
        shown = ", ".join(f"{key}: {form}" for key, form in types.items())
        outcome = Outcome.LOOK if said else Outcome.TAKEN
        made.remark(
            name, outcome, said or f"types_as: {{{shown}}}" if types else said or "the default"
        )

    return rule


def _all_as(form: str, *types: str) -> tuple[dict[str, str], str]:
    return dict.fromkeys(types, form), ""


def _failure(made: Imported, name: str, value: str) -> None:
    if value == "fail":
        made.remark(name, Outcome.LOOK, "policies.on_undecodable: stop (one table, not all)")
        return
    answer = "skip" if value == "skip" else "quarantine"
    made.put("policies.on_undecodable", answer)
    said = f"policies.on_undecodable: {answer}, which counts what {value!r} would lose"
    made.remark(name, Outcome.LOOK, said)


def _unfit(made: Imported, name: str, value: str) -> None:
    if value == "warn":
        made.put("policies.on_unfit_value", "null")
        made.remark(name, Outcome.TAKEN, "policies.on_unfit_value: null")
    elif value == "skip":
        made.put("policies.on_undecodable", "skip")
        made.remark(name, Outcome.TAKEN, "policies.on_undecodable: skip, which counts the rows")
    else:
        made.remark(name, Outcome.TAKEN, "policies.on_unfit_value: refuse, the default")


def _strategy(made: Imported, name: str, value: str) -> None:
    known = {"online_catalog": "online_catalog", "hybrid": "online_catalog",
             "redo_log_catalog": "redo_log_catalog", "dictionary_from_file": "dictionary_from_file"}  # fmt: skip
    found = known.get(value.lower())
    if found is None:
        made.remark(name, Outcome.NOT_TAKEN, f"{value!r} is not a strategy that Redolake knows")
        return
    if found != "online_catalog":
        made.put("capture.strategy", found)
    made.remark(name, Outcome.TAKEN, f"capture.strategy: {found}")


def _skipped(made: Imported, name: str, value: str) -> None:
    operations = [one for one in expressions.listed(value) if one in ("c", "u", "d")]
    said = _said(name)
    if operations:
        made.put("events.skipped_operations", operations)
        said = f"events.skipped_operations: [{', '.join(operations)}]. {said}"
    made.remark(name, Outcome.LOOK, said)


def _redo_sql(made: Imported, name: str, value: str) -> None:
    if value.lower() == "true":
        made.put("lake.change_log_columns", [*get_args(ChangeLogColumn)])
        made.remark(name, Outcome.TAKEN, "lake.change_log_columns, with redo_sql")
    else:
        made.remark(name, Outcome.TAKEN, "the default")


_SWITCHES = {
    "snapshot.data": "data",
    "snapshot.schema": "definitions",
    "start.stream": "stream",
    "snapshot.on.schema.error": "on_lost_definitions",
    "snapshot.on.data.error": "on_lost_redo",
}
_OF_CONFIGURATION = "snapshot.mode.configuration.based."


def _switch(made: Imported, name: str, value: str) -> None:
    """One of the five switches of ``snapshot.mode: configuration_based``; else nothing."""
    if made.properties.get("snapshot.mode", "").lower() == "configuration_based":
        option = _SWITCHES[name.removeprefix(_OF_CONFIGURATION)]
        _boolean(f"snapshot.configuration_based.{option}")(made, name, value)
    else:
        made.remark(name, Outcome.NOT_NEEDED, "snapshot.mode is not configuration_based")


def _signals(made: Imported, name: str, value: str) -> None:
    table = ".".join(value.split(".")[-2:])
    made.put("signals.table", table)
    made.remark(name, Outcome.TAKEN, f"signals.table: {table}")


def _fetch_size(made: Imported, name: str, value: str) -> None:
    """Redolake has one number for both kinds of queries: the snapshot's, where it is set."""
    if "snapshot.fetch.size" in made.properties:
        made.remark(name, Outcome.LOOK, "snapshot.fetch.size became oracle.fetch_rows")
    else:
        _number("oracle.fetch_rows", least=100)(made, name, value)


_ADAPTERS = {"olr": "openlogreplicator", "xstream": "xstream"}


def _adapter(made: Imported, name: str, value: str) -> None:
    if value.lower() in ("logminer", "logminer_unbuffered", ""):
        made.remark(name, Outcome.TAKEN, "LogMiner")
    elif kind := _ADAPTERS.get(value.lower()):
        made.put("capture.type", kind)
        made.remark(name, Outcome.LOOK, f"capture.type: {kind}. {_said(name)}")
    else:
        made.remark(name, Outcome.LOOK, f"{value} is not offered: Redolake reads through LogMiner")


def _of(adapter: str, rule: _Rule) -> _Rule:
    """What counts with one adapter alone."""

    def with_adapter(made: Imported, name: str, value: str) -> None:
        if made.properties.get("database.connection.adapter", "").lower() == adapter:
            rule(made, name, value)
        else:
            made.remark(name, Outcome.NOT_TAKEN, "the connector reads through another adapter")

    return with_adapter


def _mode(made: Imported, name: str, value: str) -> None:
    if value.lower() in ("primary", ""):
        made.remark(name, Outcome.TAKEN, "the default")
        return
    host = made.properties.get("secondary.hostname", "")
    url = made.properties.get("secondary.url", "")
    if value.lower() != "physical_standby" or not (host or url):
        made.remark(name, Outcome.NOT_TAKEN, f"{value!r} is not offered")
        return
    port = made.properties.get("secondary.port") or made.properties.get("database.port") or PORT
    service = made.properties.get("secondary.dbname") or made.properties.get("database.dbname", "")
    dsn = _connect_string(url) if url else f"{host}:{port}/{service}"
    made.put("capture.standby_dsn", dsn)
    made.put("capture.close_at", "completed_logs")
    made.remark(name, Outcome.TAKEN, f"capture.standby_dsn: {dsn}")


def _interval(made: Imported, name: str, value: str) -> None:
    seconds = max(1, int(value) // 1000) if value.isdigit() else 30
    made.put("dagster.snapshots.interval_seconds", seconds)
    made.remark(name, Outcome.TAKEN, f"dagster.snapshots.interval_seconds: {seconds}")


_OLDER_MODES = {"schema_only": "no_data", "schema_only_recovery": "recovery"}
_MODES = ("always", "configuration_based", "initial_only", "no_data", "recovery", "when_needed")


def _snapshot_mode(made: Imported, name: str, value: str) -> None:
    mode = _OLDER_MODES.get(value.lower(), value.lower())
    if mode == "initial":
        made.remark(name, Outcome.TAKEN, "the default")
    elif mode in _MODES:
        made.put("snapshot.mode", mode)
        said = f"snapshot.mode: {mode}"
        if mode == "no_data":
            said += "; snapshot.start_scn begins where the connector's offset ends"
        made.remark(name, Outcome.TAKEN, said)
    else:
        said = "write the class in Python, and name it under snapshot.custom"
        if mode != "custom":
            said = f"{value!r} is no mode that Redolake knows"
        made.remark(name, Outcome.NOT_TAKEN, said)


def _said(name: str) -> str:
    found = property_named(name)
    return found.said if found else ""


_TIME_PARTS = (
    "SQL takes the parts of a timestamp: EXTRACT(YEAR FROM …). Text, by `columns_as: text`, holds "
    "what no timestamp does: years before Christ, nanoseconds"
)

_BY_NAME: dict[str, _Rule] = {
    "database.pdb.name": _text("oracle.pdb"),
    "database.query.timeout.ms": _seconds("oracle.call_timeout_seconds"),
    "connection.validation.timeout.ms": _seconds("oracle.connect_timeout_seconds"),
    "database.connection.adapter": _adapter,
    "database.out.server.name": _of("xstream", _text("capture.server")),
    "xstream.out.server.name": _of("xstream", _text("capture.server")),
    "openlogreplicator.source": _of("olr", _text("capture.source")),
    "openlogreplicator.host": _of("olr", _text("capture.host")),
    "openlogreplicator.port": _of("olr", _number("capture.port")),
    "capture.mode": _mode,
    "snapshot.fetch.size": _number("oracle.fetch_rows", least=100),
    "query.fetch.size": _fetch_size,
    "snapshot.max.threads": _number("snapshot.sessions"),
    "snapshot.mode": _snapshot_mode,
    **{f"{_OF_CONFIGURATION}{switch}": _switch for switch in _SWITCHES},
    "column.exclude.list": _excluded,
    "column.blacklist": _excluded,
    "column.include.list": _included,
    "column.whitelist": _included,
    "message.key.columns": _keys,
    "snapshot.include.collection.list": _snapshot_tables,
    "skipped.operations": _skipped,
    "skip.messages.without.change": _boolean("events.skip_unchanged"),
    "log.mining.username.include.list": _texts("events.users_include"),
    "log.mining.username.exclude.list": _texts("events.users_exclude"),
    "log.mining.clientid.include.list": _texts("events.clients_include"),
    "log.mining.clientid.exclude.list": _texts("events.clients_exclude"),
    "include.schema.changes": _boolean("lake.schema_changes"),
    "provide.transaction.metadata": _boolean("lake.transactions"),
    "log.mining.include.redo.sql": _redo_sql,
    "log.mining.strategy": _strategy,
    "log.mining.path.dictionary": _text("capture.dictionary_file"),
    "log.mining.archive.log.only.mode": _boolean("capture.archived_only"),
    "log.mining.query.filter.mode": _text("capture.query_filter"),
    "archive.destination.name": _texts("capture.archive_destinations"),
    "log.mining.archive.destination.name": _texts("capture.archive_destinations"),
    "archive.log.hours": _number("capture.archive_hours"),
    "log.mining.archive.log.hours": _number("capture.archive_hours"),
    "event.processing.failure.handling.mode": _failure,
    "event.converting.failure.handling.mode": _unfit,
    "guardrail.collections.max": _tables_max,
    "signal.data.collection": _signals,
    "signal.poll.interval.ms": _interval,
    "signal.kafka.topic": _text("signals.kafka_topic"),
    "signal.kafka.bootstrap.servers": _text("signals.kafka_servers"),
    "retriable.restart.connector.wait.ms": _seconds("dagster.retries.delay_seconds"),
    "decimal.handling.mode": _types(
        precise=({}, ""), string=_all_as("text", "NUMBER", "FLOAT"), double=_all_as("double", "NUMBER", "FLOAT")
    ),
    "time.precision.mode": _types(
        adaptive=({}, "DATE and TIMESTAMP are timestamps in Delta, not integers"),
        adaptive_time_microseconds=({}, "DATE and TIMESTAMP are timestamps in Delta, not integers"),
        connect=({}, "DATE and TIMESTAMP are timestamps in Delta, not integers"),
        isostring=_all_as("iso8601", "DATE", "TIMESTAMP"),
        microseconds=_all_as("microseconds", "DATE", "TIMESTAMP"),
        nanoseconds=_all_as("nanoseconds", "DATE", "TIMESTAMP"),
        structured=({}, f"DATE and TIMESTAMP are timestamps in Delta. {_TIME_PARTS}"),
    ),
    "interval.handling.mode": _types(
        numeric=_all_as("microseconds", "INTERVAL YEAR TO MONTH", "INTERVAL DAY TO SECOND"),
        string=_all_as("iso8601", "INTERVAL YEAR TO MONTH", "INTERVAL DAY TO SECOND"),
    ),
    "binary.handling.mode": _types(
        bytes=({}, ""), hex=_all_as("hex", "RAW", "BLOB"), base64=_all_as("base64", "RAW", "BLOB"),
        base64_url_safe=_all_as("base64url", "RAW", "BLOB"),
    ),
}  # fmt: skip
"""What the import does with each property that it takes; all others are answered by the table."""

_OUTCOMES = {
    Verdict.TAKEN: Outcome.LOOK,
    Verdict.DIFFERS: Outcome.LOOK,
    Verdict.ANSWERED: Outcome.ANSWERED,
    Verdict.NOT_NEEDED: Outcome.NOT_NEEDED,
    Verdict.MISSING: Outcome.LOOK,
}


def _by_table(made: Imported, name: str, value: str) -> None:
    if found := re.fullmatch(r"column\.truncate\.to\.(\d+)\.chars", name):
        _masked(made, name, value, f"truncate({found[1]})")
    elif found := re.fullmatch(r"column\.mask\.with\.(\d+)\.chars", name):
        _masked(made, name, value, f"stars({found[1]})")
    elif found := _HASH.fullmatch(name):
        _hashed(made, value, found)
    elif name.startswith(_OVERRIDES):
        _override(made, name, value)
    elif (known := property_named(name)) is None:
        made.remark(name, Outcome.UNKNOWN, "no property of the connector; nothing is done for it")
    else:
        made.remark(name, _OUTCOMES[known.verdict], known.said)


_OVERRIDES = "snapshot.select.statement.overrides"


def _override(made: Imported, name: str, value: str) -> None:
    listed = made.properties.get(_OVERRIDES, "").replace(" ", "").split(",")
    table = name.removeprefix(_OVERRIDES).lstrip(".")
    if not table:
        lacking = [one for one in listed if one and f"{_OVERRIDES}.{one}" not in made.properties]
        if lacking:
            made.remark(name, Outcome.NOT_TAKEN, f"no statement for {', '.join(lacking)}")
        else:
            made.remark(name, Outcome.TAKEN, "snapshot.select_overrides")
    elif table not in listed:
        made.remark(name, Outcome.NOT_NEEDED, f"{_OVERRIDES} does not list the table")
    else:
        own = ".".join(table.split(".")[-2:])
        overrides = made.attributes.setdefault("snapshot", {}).setdefault("select_overrides", {})
        overrides[own] = value
        made.remark(name, Outcome.TAKEN, f"snapshot.select_overrides: {own}")


_HASH = re.compile(r"column\.mask\.hash(\.v2)?\.([^.]+)\.with\.salt\.(.+)")
_DIGESTS = {
    **{name: name.replace("-", "").lower() for name in ("MD5", "SHA-1", "SHA-224", "SHA-256", "SHA-384", "SHA-512")},
    **{f"SHA3-{bits}": f"sha3_{bits}" for bits in (224, 256, 384, 512)},
}  # fmt: skip
"""Java's names of digests, and ours."""


def _hashed(made: Imported, value: str, rule: re.Match[str]) -> None:
    version, algorithm, salt = rule[1] or "", rule[2].upper(), rule[3]
    shown = f"column.mask.hash{version}.{rule[2]}.with.salt.…"
    salts = {found[3] for name in made.properties if (found := _HASH.fullmatch(name))}
    if (kind := _DIGESTS.get(algorithm)) is None:
        made.remark(shown, Outcome.NOT_TAKEN, f"{algorithm} is not offered: {', '.join(_DIGESTS)}")
        return
    variable, own = f"{made.attributes['name'].upper()}_SALT", ""
    if len(salts) == 1:
        made.put("masks.salt_env", variable)
    else:
        number = sorted(salts).index(salt) + 1
        variable, own = f"{variable}_{number}", f", salt=rule_{number}"
        made.attributes.setdefault("masks", {}).setdefault("salts_env", {})[f"rule_{number}"] = (
            variable
        )
    mask = f"hash({kind}{own})" if version else f"hash_v1({kind}{own})"
    made.remark(
        shown,
        Outcome.LOOK,
        f"export {variable}=… with the connector's salt; for a column that is shorter than the "
        f"digest add its length, as in {mask.partition(kind)[0]}{kind}, 20{own})",
    )
    _masked(made, shown, value, mask)
