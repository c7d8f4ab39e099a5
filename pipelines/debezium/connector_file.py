"""What does a connector's configuration file say? JSON as Kafka Connect takes it, or Java
properties."""

from __future__ import annotations

import json
import re
from pathlib import Path

from cdc_core.errors import ConfigError

_DIALECT = {
    "oracle.server": "database.hostname",
    "oracle.port": "database.port",
    "oracle.service.name": "database.dbname",
    "oracle.sid": "database.dbname",
    "oracle.pdb.name": "database.pdb.name",
    "oracle.username": "database.user",
    "oracle.password": "database.password",
    "oracle.connection.url": "database.url",
    "table.inclusion.regex": "table.include.list",
    "table.exclusion.regex": "table.exclude.list",
    "query.timeout.ms": "database.query.timeout.ms",
    "redo.log.row.fetch.size": "query.fetch.size",
    "snapshot.row.fetch.size": "snapshot.fetch.size",
    "log.mining.archive.destination.name": "archive.destination.name",
    "emit.tombstone.on.delete": "tombstones.on.delete",
}
_STARTS = {"snapshot": "initial", "current": "no_data", "force_current": "no_data"}
"""``start.from`` → ``snapshot.mode``."""
"""Confluent's Oracle CDC source → Debezium's name of the same thing.

Source: Confluent's Configuration Reference for Oracle CDC Source Connector.
"""
CONFLUENT = "io.confluent.connect.oracle.cdc"


def read_connector(path: Path) -> dict[str, str]:
    """Property → value of one connector, in the file's order, under Debezium's names.

    Raises:
        ConfigError: The file cannot be read, or holds no connector for Oracle.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "this file cannot be read",
            hint="Name the connector's JSON or properties file.",
            file=path,
        ) from error
    found = _from_json(text, path) if text.lstrip().startswith("{") else _from_properties(text)
    kind = found.get("connector.class", "")
    if "oracle" not in kind.lower():
        raise ConfigError(
            "this is not the configuration of a connector for Oracle",
            hint="It needs connector.class, for example io.debezium.connector.oracle.OracleConnector.",
            file=path,
            connector=kind or "none",
        )
    if kind.startswith(CONFLUENT):
        return _in_debezium_words(found)
    return found


def _from_json(text: str, path: Path) -> dict[str, str]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"this is not JSON: {error.msg}",
            hint="Mend the file at that line.",
            file=path,
            line=error.lineno,
        ) from None
    inside = found.get("config", found)
    if not isinstance(inside, dict):
        raise ConfigError("config is not an object", hint="Write properties under it.", file=path)
    named = {"name": found["name"]} if inside is not found and "name" in found else {}
    return {key: _text(value) for key, value in {**named, **inside}.items()}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _from_properties(text: str) -> dict[str, str]:
    """Java's form: ``key=value``, ``key: value`` or ``key value``; a backslash continues a line."""
    joined = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t]*", r"\1", text)
    found = {}
    for line in joined.splitlines():
        line = line.lstrip()
        if line and line[0] not in "#!":
            key, _, value = _parted(line)
            found[_unescaped(key)] = _unescaped(value)
    return found


def _parted(line: str) -> tuple[str, str, str]:
    end = re.search(r"(?<!\\)(?:\s*[=:]\s*|\s+)", line)
    if end is None:
        return line.strip(), "", ""
    return line[: end.start()], end[0], line[end.end() :].rstrip("\r\n")


def _unescaped(text: str) -> str:
    named = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
    return re.sub(
        r"\\(u[0-9a-fA-F]{4}|.)",
        lambda one: chr(int(one[1][1:], 16)) if len(one[1]) == 5 else named.get(one[1], one[1]),
        text,
    )


def _in_debezium_words(found: dict[str, str]) -> dict[str, str]:
    """Confluent's properties under Debezium's names. Its expressions name three parts,
    ``SID.SCHEMA.TABLE``."""
    renamed: dict[str, str] = {}
    for key, value in found.items():
        name = _DIALECT.get(key, key)
        if key == "start.from" and value in _STARTS:
            name, value = "snapshot.mode", _STARTS[value]
        if key in ("table.inclusion.regex", "table.exclusion.regex"):
            value = _without_database(value)
        renamed.setdefault(name, value)
    return renamed


def _without_database(expression: str) -> str:
    r"""``ORCLPDB1[.]SHOP[.](A|B)`` → ``SHOP\.(A|B)``: the first part names the database."""
    plain = expression.replace("[.]", "\\.")
    return re.sub(r"^(?:[A-Za-z0-9_$#]+|\.\*)(?:\\\.|\.)(?=.*(?:\\\.|\.))", "", plain).replace(
        ",", "\\,"
    )
