"""How are ALTER statements written?"""

from __future__ import annotations

from collections.abc import Iterator

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ddl_nodes as ddl
from oracle_embedded.engine.sql.columns import (
    is_constraint,
    read_column,
    read_log_group,
    read_nested_table,
    read_sequence_options,
    read_state,
    read_table_constraint,
)
from oracle_embedded.engine.sql.partitions import read_partition_action
from oracle_embedded.engine.sql.stream import TokenStream


def read_alter(stream: TokenStream) -> object:
    """Read ALTER behind its first word."""
    if stream.take_word("TABLE"):
        return _read_alter_table(stream)
    if stream.take_word("SESSION"):
        return _read_alter_session(stream)
    for target in ("SYSTEM", "DATABASE"):
        if stream.take_word(target):
            return _read_alter_system(stream, target)
    if stream.take_word("PLUGGABLE", "DATABASE"):
        return _read_alter_system(stream, "PLUGGABLE DATABASE")
    if stream.take_word("USER"):
        return _read_alter_user(stream)
    if stream.take_word("SEQUENCE"):
        return ddl.CreateSequence(stream.name(), read_sequence_options(stream), alter=True)
    if stream.take_word("INDEX"):
        name = stream.name()
        if stream.take_word("REBUILD"):
            stream.take_word("ONLINE")
            return ddl.AlterSystem("INDEX", ".".join(name))
    kind = stream.take_any("PROCEDURE", "FUNCTION", "PACKAGE", "TRIGGER")
    if kind is not None:
        return _read_alter_program(stream, kind)
    raise OracleError(940, "invalid ALTER command", stream.token.start)


def _read_alter_program(stream: TokenStream, kind: str) -> ddl.AlterProgram:
    name = stream.name()
    action = stream.take_any("ENABLE", "DISABLE", "COMPILE")
    if action is None:
        raise OracleError(922, "missing or invalid option", stream.token.start)
    while stream.take_any("BODY", "SPECIFICATION", "PACKAGE", "DEBUG", "REUSE", "SETTINGS"):
        continue
    return ddl.AlterProgram(kind, name, action)


# --- session and system ---------------------------------------------------------------------------


def _read_alter_session(stream: TokenStream) -> ddl.AlterSession:
    settings: list[tuple[str, str]] = []
    if stream.take_any("ENABLE", "DISABLE", "FORCE"):
        while stream.token.kind != "end":
            stream.next()
        return ddl.AlterSession(())
    if not stream.take_word("SET"):
        raise OracleError(922, "missing or invalid option", stream.token.start)
    if stream.take_word("ROW", "ARCHIVAL", "VISIBILITY"):
        shown = stream.take_any("ACTIVE", "ALL") if stream.take_op("=") else None
        if shown is None:
            raise OracleError(922, "missing or invalid option", stream.token.start)
        return ddl.AlterSession((("ROW ARCHIVAL VISIBILITY", shown),))
    while stream.token.kind != "end":
        settings.append(_read_setting(stream))
    if not settings:
        raise OracleError(2248, "invalid option for ALTER SESSION", stream.token.start)
    return ddl.AlterSession(tuple(settings))


def _read_setting(stream: TokenStream) -> tuple[str, str]:
    name = stream.identifier()
    if not stream.take_op("=") and not (name == "EVENTS" and stream.token.kind == "string"):
        raise OracleError(927, "missing equal sign", stream.token.start)
    if name == "ISOLATION_LEVEL" and stream.take_word("READ", "COMMITTED"):
        return name, "READ COMMITTED"
    token = stream.next()
    value = token.text
    if token.kind == "op" and token.text in "+-":
        value += stream.next().text
        if stream.take_op(":"):
            value += ":" + stream.next().text
    elif token.kind not in ("string", "word", "quoted", "number"):
        raise OracleError(922, "missing or invalid option", token.start)
    return name, value


def _read_alter_system(stream: TokenStream, target: str) -> ddl.AlterSystem:
    if target == "SYSTEM" and stream.take_word("SET"):
        settings = []
        while stream.token.kind != "end":
            settings.append(_read_setting(stream))
            while stream.take_any("SCOPE", "COMMENT", "SID", "CONTAINER"):
                stream.need_op("=", 927)
                stream.next()
            stream.take_op(",")
        return ddl.AlterSystem(target, "", tuple(settings))
    start = stream.token.start
    while stream.token.kind != "end":
        stream.next()
    return ddl.AlterSystem(target, stream.source_text(start))


def read_user_options(stream: TokenStream) -> bool | None:
    """Read DEFAULT TABLESPACE, QUOTA … ACCOUNT LOCK; tells whether the account is locked."""
    locked: bool | None = None
    while stream.token.kind != "end":
        if stream.take_word("ACCOUNT"):
            which = stream.take_any("LOCK", "UNLOCK")
            locked = which == "LOCK"
        elif stream.take_any("QUOTA"):
            stream.next()
            stream.need_word("ON")
            stream.identifier()
        elif (
            stream.take_word("DEFAULT", "TABLESPACE")
            or stream.take_word("TEMPORARY", "TABLESPACE")
            or stream.take_word("PROFILE")
        ):
            stream.identifier()
        elif stream.take_word("CONTAINER"):
            stream.need_op("=", 927)
            stream.next()
        elif stream.is_word("ENABLE", "EDITIONS"):
            raise unsupported("ENABLE EDITIONS: versions of programs", stream.token.start)
        else:
            raise OracleError(922, "missing or invalid option", stream.token.start)
    return locked


def _read_alter_user(stream: TokenStream) -> ddl.CreateUser:
    name = stream.identifier()
    password = None
    if stream.take_word("IDENTIFIED", "BY"):
        token = stream.next()
        password = stream.sql[token.start : token.stop].strip('"')
    container_data = stream.take_word("SET", "CONTAINER_DATA")
    if container_data:
        stream.need_op("=", 927)
        stream.need_word("ALL")
    proxy_change = stream.take_any("GRANT", "REVOKE")
    if proxy_change is not None:
        stream.need_word("CONNECT", "THROUGH")
        return ddl.CreateUser(
            name,
            None,
            alter=True,
            proxies=stream.names_listed(),
            revokes_proxies=proxy_change == "REVOKE",
        )
    options = read_user_options(stream)
    return ddl.CreateUser(name, password, options, alter=True, container_data=container_data)


# --- ALTER TABLE ----------------------------------------------------------------------------------


def _read_alter_table(stream: TokenStream) -> object:
    name = stream.name()
    if stream.take_word("RENAME", "TO"):
        return ddl.RenameTable(name, stream.identifier())
    actions: list[tuple[str, object]] = []
    while stream.token.kind != "end":
        actions.extend(_read_actions(stream))
    if not actions:
        raise OracleError(1735, "invalid ALTER TABLE option", stream.token.start)
    return ddl.AlterTable(name, tuple(actions))


def _read_actions(stream: TokenStream) -> list[tuple[str, object]]:
    start = stream.token.start
    if partition_action := read_partition_action(stream):
        return partition_action
    if stream.take_word("ADD"):
        return _read_additions(stream)
    if stream.take_word("MODIFY"):
        return _read_modifications(stream)
    if stream.take_word("DROP"):
        return _read_removal(stream)
    if stream.take_word("RENAME", "COLUMN"):
        old = stream.identifier()
        stream.need_word("TO")
        return [("rename column", (old, stream.identifier()))]
    if stream.take_word("RENAME", "CONSTRAINT"):
        old = stream.identifier()
        stream.need_word("TO")
        return [("rename constraint", (old, stream.identifier()))]
    if stream.take_word("SET", "UNUSED"):
        stream.take_word("COLUMN")
        names = stream.names() if stream.is_op("(") else (stream.identifier(),)
        stream.take_word("CASCADE", "CONSTRAINTS")
        stream.take_word("ONLINE")
        return [("set unused", names)]
    state = read_state(stream)
    if state is not None:
        return [("constraint state", (_read_constraint(stream), state))]
    if stream.take_any("LOGGING", "NOLOGGING", "CACHE", "NOCACHE", "PARALLEL", "NOPARALLEL"):
        return [("nothing", None)]
    if stream.token.kind == "word" and stream.token.text in (
        "SPLIT",
        "EXCHANGE",
        "MERGE",
    ):
        raise unsupported(f"ALTER TABLE … {stream.token.text}", start)
    raise OracleError(1735, "invalid ALTER TABLE option", start)


def _read_additions(stream: TokenStream) -> list[tuple[str, object]]:
    if stream.take_word("SUPPLEMENTAL", "LOG"):
        return [("add log group", read_log_group(stream))]
    if is_constraint(stream):
        return [("add constraint", read_table_constraint(stream))]
    stream.take_word("COLUMN")
    if not stream.is_op("("):
        return [("add column", read_column(stream)), *_read_nested(stream)]
    stream.need_op("(")
    actions: list[tuple[str, object]] = []
    while True:
        if is_constraint(stream):
            actions.append(("add constraint", read_table_constraint(stream)))
        else:
            actions.append(("add column", read_column(stream)))
        if not stream.take_op(","):
            break
    stream.need_op(")")
    return [*actions, *_read_nested(stream)]


def _read_nested(stream: TokenStream) -> Iterator[tuple[str, object]]:
    while stream.take_word("NESTED", "TABLE"):
        yield "nested table", read_nested_table(stream)


def _read_modifications(stream: TokenStream) -> list[tuple[str, object]]:
    if stream.is_word("CONSTRAINT") or stream.is_word("PRIMARY", "KEY"):
        constraint = _read_constraint(stream)
        state = read_state(stream)
        if state is None:
            raise OracleError(933, "SQL command not properly ended", stream.token.start)
        return [("constraint state", (constraint, state))]
    if not stream.is_op("("):
        return [("modify column", read_column(stream, modify=True))]
    stream.need_op("(")
    actions: list[tuple[str, object]] = [("modify column", read_column(stream, modify=True))]
    while stream.take_op(","):
        actions.append(("modify column", read_column(stream, modify=True)))
    stream.need_op(")")
    return actions


def _read_constraint(stream: TokenStream) -> str | None:
    """Read ``CONSTRAINT name`` or, for None, ``PRIMARY KEY``, and what is to become of its
    index."""
    name = None
    if not stream.take_word("PRIMARY", "KEY"):
        stream.need_word("CONSTRAINT")
        name = stream.identifier()
    stream.take_word("CASCADE")
    if stream.take_any("KEEP", "DROP"):
        stream.need_word("INDEX")
    return name


def _read_removal(stream: TokenStream) -> list[tuple[str, object]]:
    if stream.take_word("SUPPLEMENTAL", "LOG"):
        return [("drop log group", read_log_group(stream))]
    if stream.take_word("PRIMARY", "KEY"):
        stream.take_word("CASCADE")
        return [("drop primary key", None)]
    if stream.take_word("CONSTRAINT"):
        name = stream.identifier()
        stream.take_word("CASCADE")
        return [("drop constraint", name)]
    if stream.take_word("UNUSED", "COLUMNS"):
        return [("drop unused", None)]
    if stream.take_word("COLUMN"):
        names: tuple[str, ...] = (stream.identifier(),)
    elif stream.is_op("("):
        names = stream.names()
    else:
        raise OracleError(905, "missing keyword", stream.token.start)
    stream.take_word("CASCADE", "CONSTRAINTS")
    return [("drop column", names)]
