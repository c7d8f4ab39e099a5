"""How is DDL written?"""

from __future__ import annotations

from dataclasses import replace

from oracle_embedded.api import OracleError
from oracle_embedded.engine.datatypes.types import DOCUMENTS, SqlType
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.sql.alter import read_alter, read_user_options
from oracle_embedded.engine.sql.columns import (
    is_constraint,
    read_column,
    read_log_group,
    read_nested_table,
    read_sequence_options,
    read_table_constraint,
    skip_parentheses,
)
from oracle_embedded.engine.sql.expressions import read_expression
from oracle_embedded.engine.sql.partitions import read_partitioning
from oracle_embedded.engine.sql.queries import read_query
from oracle_embedded.engine.sql.stream import TokenStream
from oracle_embedded.engine.sql.types import read_datatype

_STORAGE_WORDS = frozenset(
    [
        "TABLESPACE",
        "PCTFREE",
        "PCTUSED",
        "INITRANS",
        "MAXTRANS",
        "LOGGING",
        "NOLOGGING",
        "COMPRESS",
        "NOCOMPRESS",
        "CACHE",
        "NOCACHE",
        "PARALLEL",
        "NOPARALLEL",
        "MONITORING",
        "SEGMENT",
        "STORAGE",
        "ENABLE",
        "DISABLE",
        "ROW",
        "ORGANIZATION",
        "ONLINE",
        "REVERSE",
        "COMPUTE",
        "LOB",
        "FILESYSTEM_LIKE_LOGGING",
    ]
)

_READ_ELSEWHERE = (
    ("ORGANIZATION", "INDEX"),
    ("ORGANIZATION", "EXTERNAL"),
    ("ENABLE", "ROW", "MOVEMENT"),
    ("ROW", "ARCHIVAL"),
)

_NOTHING_SAID = nodes.Storage()
_BEHIND_LOBS = _STORAGE_WORDS | {"AS", "PARTITION", "NESTED", "XMLTYPE"}
_UNSUPPORTED_KINDS = frozenset({"MATERIALIZED", "DIRECTORY", "TABLESPACE", "DATABASE", "PROFILE", "DIMENSION", "CONTEXT", "OPERATOR"})  # fmt: skip
"""Kinds of objects that Oracle has, and this database has not."""


def read_ddl(stream: TokenStream) -> object:
    """Read a DDL statement."""
    word = stream.next().text
    match word:
        case "CREATE":
            return _read_create(stream)
        case "ALTER":
            return read_alter(stream)
        case "DROP":
            return _read_drop(stream)
        case "FLASHBACK":
            return _read_flashback(stream)
        case "PURGE":
            return _read_purge(stream)
        case "TRUNCATE":
            is_cluster = stream.take_word("CLUSTER")
            if not is_cluster:
                _need_table(stream)
            name = stream.name()
            _skip_words(
                stream,
                "REUSE",
                "DROP",
                "STORAGE",
                "PURGE",
                "PRESERVE",
                "MATERIALIZED",
                "VIEW",
                "LOG",
            )
            return nodes.Truncate(name, is_cluster, stream.take_word("CASCADE"))
        case "GRANT" | "REVOKE":
            return _read_grant(stream, revoke=word == "REVOKE")
        case "COMMENT":
            return _read_comment(stream)
        case "RENAME":
            old = stream.name()
            stream.need_word("TO")
            return nodes.RenameTable(old, stream.identifier())
    raise unsupported(word, stream.tokens[0].start)


def _need_table(stream: TokenStream) -> None:
    if not stream.take_word("TABLE"):
        raise OracleError(
            3290,
            "Invalid truncate command - missing CLUSTER or TABLE keyword",
            stream.token.start,
        )


def _skip_words(stream: TokenStream, *words: str) -> None:
    while stream.take_any(*words):
        continue


# --- CREATE ---------------------------------------------------------------------------------------


def _read_create(stream: TokenStream) -> object:
    replacing = stream.take_word("OR", "REPLACE")
    _skip_words(stream, "FORCE", "NOFORCE", "EDITIONABLE", "NONEDITIONABLE")
    if stream.is_word("PRIVATE"):
        raise unsupported("private temporary tables", stream.token.start)
    if stream.take_word("GLOBAL", "TEMPORARY"):
        stream.need_word("TABLE")
        return _read_table(stream, temporary=True)
    if stream.take_word("TABLE"):
        return _read_table(stream)
    if stream.take_word("MATERIALIZED", "VIEW"):
        return _read_materialized_view(stream)
    if stream.take_word("UNIQUE"):
        stream.need_word("INDEX")
        return _read_index(stream, unique=True)
    if stream.take_word("INDEX"):
        return _read_index(stream, unique=False)
    if stream.take_word("BITMAP", "INDEX"):
        return replace(_read_index(stream, unique=False), bitmap=True)
    if stream.take_word("CLUSTER"):
        return _read_cluster(stream)
    if stream.take_word("VIEW"):
        return _read_view(stream, replacing)
    if stream.take_word("SEQUENCE"):
        return nodes.CreateSequence(stream.name(), read_sequence_options(stream))
    if stream.take_word("EDITION"):
        edition = nodes.Edition(stream.identifier(), is_dropped=False)
        if stream.take_word("AS", "CHILD", "OF"):
            stream.identifier()
        return edition
    public = stream.take_word("PUBLIC")
    if stream.take_word("SYNONYM"):
        name = stream.name()
        stream.need_word("FOR")
        return nodes.CreateSynonym(name, stream.name(), public, replacing)
    if stream.take_word("USER"):
        return _read_user(stream)
    if stream.take_word("ROLE"):
        role = stream.identifier()
        stream.take_word("NOT", "IDENTIFIED")
        if stream.take_word("CONTAINER"):
            stream.need_op("=")
            stream.take_any("ALL", "CURRENT")
        return nodes.CreateUser(role, None, role=True)
    if stream.token.text in ("PROCEDURE", "FUNCTION", "PACKAGE", "TRIGGER"):
        return _read_program(stream, replacing)
    if stream.is_word("TYPE"):
        return _read_type(stream, replacing)
    if stream.token.kind == "word" and stream.token.text in _UNSUPPORTED_KINDS:
        kind = "DATABASE LINK" if stream.is_word("DATABASE", "LINK") else stream.token.text
        raise unsupported(f"CREATE {kind}", stream.token.start)
    raise OracleError(901, "invalid CREATE command", stream.token.start)


def _read_program(stream: TokenStream, replacing: bool) -> nodes.CreateProgram:
    """Read the head of a stored program; the rest is its compiler's."""
    start = stream.token.start
    kind = stream.next().text
    if kind == "PACKAGE" and stream.take_word("BODY"):
        kind = "PACKAGE BODY"
    name = stream.name()
    stream.at = len(stream.tokens) - 1
    return nodes.CreateProgram(kind, name, stream.sql[start:].rstrip(), replacing)


def _read_type(stream: TokenStream, replacing: bool) -> nodes.CreateType:
    """Read an object type without methods, or a collection type."""
    start = stream.next().start
    if stream.is_word("BODY"):
        raise unsupported("methods of object types", stream.token.start)
    name = stream.name()
    stream.take_word("FORCE")
    if stream.take_word("AUTHID"):  # whose rights methods have, of which there are none
        stream.take_any("CURRENT_USER", "DEFINER")
    if not stream.take_any("AS", "IS"):
        raise unsupported("incomplete and derived object types", stream.token.start)
    attributes: list[tuple[str, SqlType]] = []
    element: SqlType | None = None
    limit: int | None = None
    if stream.take_word("OBJECT"):
        stream.need_op("(")
        while True:
            if stream.token.text in (
                "MEMBER",
                "STATIC",
                "CONSTRUCTOR",
                "MAP",
                "ORDER",
                "OVERRIDING",
            ):
                raise unsupported("methods of object types", stream.token.start)
            attributes.append((stream.identifier(), _read_part(stream)))
            if not stream.take_op(","):
                break
        stream.need_op(")")
        _skip_words(stream, "NOT", "FINAL", "INSTANTIABLE", "PERSISTABLE")
    else:
        if stream.take_any("VARRAY", "VARYING"):
            stream.take_word("ARRAY")
            stream.need_op("(")
            limit = stream.integer()
            stream.need_op(")")
            stream.need_word("OF")
        else:
            stream.need_word("TABLE", "OF")
        element = _read_part(stream)
        if stream.take_word("NOT"):
            stream.need_word("NULL")
    stream.take_op(";")
    return nodes.CreateType(
        name, stream.sql[start:].rstrip(), replacing, tuple(attributes), element, limit
    )


def _read_part(stream: TokenStream) -> SqlType:
    """The type of an attribute or an element: that of a column, but for JSON and VECTOR."""
    start = stream.token.start
    kind = read_datatype(stream, of_column=True)
    if kind.family in DOCUMENTS:
        raise OracleError(902, "invalid datatype", start)
    return kind


_MVIEW_WORDS = (
    "BUILD", "IMMEDIATE", "DEFERRED", "REFRESH", "FAST", "COMPLETE", "FORCE", "NEVER", "ON", "DEMAND", "COMMIT", "STATEMENT", "WITH",
    "PRIMARY", "KEY", "ROWID", "ENABLE", "DISABLE", "QUERY", "REWRITE", "USING", "INDEX", "NO", "TRUSTED", "ENFORCED", "CONSTRAINTS",
    "COMPUTATION", "NEXT", "START",
)  # fmt: skip


def _read_materialized_view(stream: TokenStream) -> nodes.CreateTable:
    """A materialized view is a table with a query; when it is refreshed means nothing here, but on
    demand."""
    if stream.is_word("LOG"):
        raise unsupported("materialized view logs", stream.token.start)
    name = stream.name()
    names = stream.names() if stream.is_op("(") else ()
    while not stream.take_word("AS"):
        read_storage(stream)
        if stream.is_word("AS"):
            continue
        if stream.is_word("ON", "COMMIT"):
            raise unsupported(
                "materialized views that are refreshed at each commit", stream.token.start
            )
        if stream.take_any(*_MVIEW_WORDS) is None:
            raise stream.error(905)
    start = stream.token.start
    query = read_query(stream)
    return nodes.CreateTable(name, (), (), (), query, names, view_text=stream.source_text(start))


def _read_table(stream: TokenStream, *, temporary: bool = False) -> nodes.CreateTable:
    name = stream.name()
    columns: list[nodes.ColumnSpec] = []
    constraints: list[nodes.ConstraintSpec] = []
    groups: list[nodes.LogGroupSpec] = []
    names: tuple[str, ...] = ()
    object_type = stream.name() if stream.take_word("OF") else None
    if stream.is_op("("):
        if _has_untyped_columns(stream):
            names = stream.names()
        else:
            _read_elements(stream, columns, constraints, groups)
    is_index_organized = has_row_movement = has_row_archival = False
    partitioning = None
    cluster = None
    external = None
    nested: list[tuple[str, str]] = []
    index_words: set[str] = set()
    keeps_rows = False
    storage = nodes.Storage()
    while True:
        storage = read_storage(stream, storage)
        if temporary and stream.take_word("ON", "COMMIT"):
            keeps_rows = stream.take_any("PRESERVE", "DELETE") == "PRESERVE"
            stream.need_word("ROWS")
            continue
        if stream.take_word("ORGANIZATION", "INDEX"):
            is_index_organized = True
            index_words = _read_index_clauses(stream)
        elif is_index_organized and (words := _read_index_clauses(stream)):
            index_words |= words
        elif stream.take_word("ORGANIZATION", "EXTERNAL"):
            external = _read_external(stream)
        elif stream.take_word("XMLTYPE"):  # its redo has one form for all, which the database says
            stream.take_word("COLUMN")
            stream.identifier()
            _skip_lob_storage(stream)
        elif stream.take_word("NESTED", "TABLE"):
            nested.append(read_nested_table(stream))
        elif stream.take_word("ROW", "ARCHIVAL"):
            has_row_archival = True
        elif stream.take_word("ENABLE", "ROW", "MOVEMENT"):
            has_row_movement = True
        elif stream.is_word("PARTITION", "BY"):
            partitioning = read_partitioning(stream)
        elif stream.take_word("CLUSTER"):
            cluster = nodes.ClusterSpec(stream.name(), stream.names())
        else:
            break
    query = None
    if stream.take_word("AS"):
        query = read_query(stream)
        if stream.bind_names:
            raise OracleError(1027, "bind variables not allowed for data definition operations")
    elif not columns and object_type is None:
        raise stream.error(902 if names else 906)
    return nodes.CreateTable(
        name,
        tuple(columns),
        tuple(constraints),
        tuple(groups),
        query,
        names,
        partitioning=partitioning,
        is_index_organized=is_index_organized,
        has_row_movement=has_row_movement,
        has_row_archival=has_row_archival,
        temporary=temporary,
        keeps_rows=keeps_rows,
        cluster=cluster,
        external=external,
        nested=tuple(nested),
        has_overflow="OVERFLOW" in index_words,
        has_mapping="MAPPING" in index_words,
        object_type=object_type,
        storage=storage,
    )


def _read_cluster(stream: TokenStream) -> nodes.CreateCluster:
    name = stream.name()
    columns: list[nodes.ColumnSpec] = []
    stream.need_op("(")
    while True:
        columns.append(nodes.ColumnSpec(stream.identifier(), read_datatype(stream, of_column=True)))
        stream.take_word("SORT")
        if not stream.take_op(","):
            break
    stream.need_op(")")
    is_hash = False
    while True:
        read_storage(stream)
        if stream.take_word("HASHKEYS"):
            is_hash = True
            stream.integer()
            if stream.take_word("HASH", "IS"):
                read_expression(stream)
        elif stream.take_word("SIZE"):
            stream.integer()
            stream.take_any("K", "M", "G")
        elif stream.take_word("SINGLE", "TABLE") or stream.take_word("INDEX"):
            continue
        else:
            return nodes.CreateCluster(name, tuple(columns), is_hash)


def _read_index_clauses(stream: TokenStream) -> set[str]:
    """What comes behind ORGANIZATION INDEX, by its words: whether there is a table for the rest of
    long rows, or a mapping table."""
    words = set()
    while word := stream.take_any("INCLUDING", "OVERFLOW", "PCTTHRESHOLD", "MAPPING", "NOMAPPING"):
        words.add(word)
        if word == "INCLUDING":
            stream.identifier()
        elif word == "PCTTHRESHOLD":
            stream.integer()
        elif word == "MAPPING":
            stream.need_word("TABLE")
        read_storage(stream)
    return words


def _read_external(stream: TokenStream) -> nodes.ExternalSpec:
    """What is in parentheses behind ORGANIZATION EXTERNAL, and REJECT LIMIT behind them."""
    driver, directory, parameters = "ORACLE_LOADER", "", None
    locations: list[str] = []
    stream.need_op("(")
    while not stream.take_op(")"):
        if stream.take_word("TYPE"):
            driver = stream.identifier()
        elif stream.take_word("DEFAULT", "DIRECTORY"):
            directory = stream.identifier()
        elif stream.take_word("ACCESS", "PARAMETERS"):
            start = stream.token.start
            skip_parentheses(stream)
            parameters = stream.source_text(start).strip()[1:-1].strip()
        elif stream.take_word("LOCATION"):
            stream.need_op("(")
            while not stream.take_op(")"):
                locations.append(stream.next().text)
                stream.take_op(",")
        else:
            raise stream.error(905)
    limit = "0"
    if stream.take_word("REJECT", "LIMIT"):
        limit = stream.next().text
    return nodes.ExternalSpec(driver, directory, parameters, tuple(locations), limit)


def _has_untyped_columns(stream: TokenStream) -> bool:
    return stream.ahead(2).kind == "op" and stream.ahead(2).text in (",", ")")


def _read_elements(
    stream: TokenStream,
    columns: list[nodes.ColumnSpec],
    constraints: list[nodes.ConstraintSpec],
    groups: list[nodes.LogGroupSpec],
) -> None:
    stream.need_op("(")
    while True:
        if is_constraint(stream):
            constraints.append(read_table_constraint(stream))
        elif stream.take_word("SUPPLEMENTAL", "LOG"):
            groups.append(read_log_group(stream))
        else:
            columns.append(read_column(stream))
        if not stream.take_op(","):
            break
    stream.need_op(")")


def read_storage(stream: TokenStream, found: nodes.Storage = _NOTHING_SAID) -> nodes.Storage:
    """Read physical attributes: those that the dictionary shows, the others do nothing here."""
    while stream.token.kind == "word" and stream.token.text in _STORAGE_WORDS:
        if any(stream.is_word(*words) for words in _READ_ELSEWHERE):
            return found
        word = stream.next().text
        if word == "TABLESPACE":
            found = replace(found, tablespace=stream.identifier())
            continue
        if word in ("COMPRESS", "NOCOMPRESS"):
            compression = _read_compression(stream) if word == "COMPRESS" else ""
            found = replace(found, compression=compression)
            continue
        if word == "LOB":
            skip_parentheses(stream)
            _skip_lob_storage(stream)
            continue
        if word == "ORGANIZATION" and not stream.is_word("HEAP"):
            raise unsupported(f"ORGANIZATION {stream.token.text}", stream.token.start)
        if stream.is_op("("):
            skip_parentheses(stream)
        elif stream.token.kind in ("word", "quoted", "number") and stream.token.text not in (
            "AS",
            "PARTITION",
            "LOCAL",
            "BUILD",
            "REFRESH",
            *_STORAGE_WORDS,
        ):
            stream.next()
            if stream.is_op("("):
                skip_parentheses(stream)
            while stream.take_any(
                "CREATION",
                "IMMEDIATE",
                "DEFERRED",
                "MOVEMENT",
                "STORE",
                "STATISTICS",
            ):
                continue
    return found


def _skip_lob_storage(stream: TokenStream) -> None:
    """Step over what says how a LOB or a document is stored."""
    stream.need_word("STORE", "AS")
    stream.take_any("SECUREFILE", "BASICFILE")
    if not (stream.take_word("BINARY", "XML") or stream.take_any("CLOB")) and (
        stream.token.kind in ("word", "quoted") and stream.token.text not in _BEHIND_LOBS
    ):
        stream.identifier()
    if stream.is_op("("):
        skip_parentheses(stream)


def _read_compression(stream: TokenStream) -> str:
    """What stands behind COMPRESS.

    Raises:
        OracleError: ORA-64307 for compression that needs Oracle's own storage.
    """
    start = stream.token.start
    if stream.token.kind == "number":
        return str(stream.integer())
    if stream.take_word("FOR"):
        if stream.take_word("OLTP") or stream.take_word("ALL", "OPERATIONS"):
            return "ADVANCED"
        text = "Exadata Hybrid Columnar Compression is not supported for tablespaces on this storage type"
        raise OracleError(64307, text, start)
    word = stream.take_any("BASIC", "ADVANCED")
    stream.take_any("LOW", "HIGH")
    return word or "BASIC"


def _read_index(stream: TokenStream, *, unique: bool) -> nodes.CreateIndex:
    name = stream.name()
    stream.need_word("ON", code=969)
    if stream.take_word("CLUSTER"):
        cluster = stream.name()
        read_storage(stream)
        return nodes.CreateIndex(name, cluster, (), unique=False, is_of_cluster=True)
    table = stream.name()
    stream.need_op("(")
    columns = []
    has_expressions = False
    while True:
        start = stream.token.start
        if stream.ahead().text in (",", ")", "ASC", "DESC"):
            column = stream.identifier()
        else:
            read_expression(stream)
            column, has_expressions = stream.source_text(start), True
        columns.append((column, stream.take_any("ASC", "DESC") == "DESC"))
        if not stream.take_op(","):
            break
    stream.need_op(")")
    storage = read_storage(stream)
    if stream.take_word("LOCAL"):
        storage = read_storage(stream, storage)
    return nodes.CreateIndex(
        name, table, tuple(columns), unique, has_expressions=has_expressions, storage=storage
    )


def _read_view(stream: TokenStream, replacing: bool) -> nodes.CreateView:
    name = stream.name()
    columns = stream.names() if stream.is_op("(") else ()
    stream.need_word("AS")
    start = stream.token.start
    query = read_query(stream)
    if stream.bind_names:
        raise OracleError(1027, "bind variables not allowed for data definition operations")
    text = stream.source_text(start)
    if stream.take_word("WITH", "READ", "ONLY") or stream.take_word("WITH", "CHECK", "OPTION"):
        text = text.strip()
    return nodes.CreateView(name, columns, text, query, replacing)


def _read_user(stream: TokenStream) -> nodes.CreateUser:
    name = stream.identifier()
    if not stream.take_word("IDENTIFIED", "BY"):
        raise OracleError(1935, "missing user or role name", stream.token.start)
    token = stream.next()
    if token.kind not in ("word", "quoted"):
        raise OracleError(988, "missing or invalid password(s)", token.start)
    password = stream.sql[token.start : token.stop].strip('"')
    locked = read_user_options(stream)
    return nodes.CreateUser(name, password, locked)


# --- DROP, GRANT, COMMENT -------------------------------------------------------------------------


def _read_drop(stream: TokenStream) -> nodes.Drop | nodes.Edition:
    if stream.take_word("EDITION"):
        edition = nodes.Edition(stream.identifier(), is_dropped=True)
        stream.take_word("CASCADE")
        return edition
    public = stream.take_word("PUBLIC")
    if stream.take_word("CLUSTER"):
        name = stream.name()
        including = stream.take_word("INCLUDING", "TABLES")
        cascade = including and stream.take_word("CASCADE", "CONSTRAINTS")
        return nodes.Drop("CLUSTER", name, cascade, including_tables=including)
    kind = stream.take_any("TABLE", "VIEW", "INDEX", "SEQUENCE", "SYNONYM", "USER", "ROLE")
    if kind is None:
        kind = stream.take_any("PROCEDURE", "FUNCTION", "PACKAGE", "TRIGGER", "TYPE")
        if stream.take_word("MATERIALIZED", "VIEW"):
            kind = "MATERIALIZED VIEW"
        if kind == "PACKAGE" and stream.take_word("BODY"):
            kind = "PACKAGE BODY"
    if kind is None:
        if stream.token.kind == "word" and stream.token.text in _UNSUPPORTED_KINDS:
            raise unsupported(f"DROP {stream.token.text}", stream.token.start)
        raise OracleError(950, "invalid DROP option", stream.token.start)
    name = stream.name()
    cascade = stream.take_word("CASCADE", "CONSTRAINTS") or stream.take_word("CASCADE")
    purge = stream.take_word("PURGE")
    stream.take_word("FORCE")
    preserves = kind == "MATERIALIZED VIEW" and stream.take_word("PRESERVE", "TABLE")
    whole = ("PUBLIC", *name) if public else name
    return nodes.Drop(kind, whole, cascade, purge, preserves_table=preserves)


def _read_flashback(stream: TokenStream) -> nodes.FlashbackDrop | nodes.FlashbackRows:
    stream.need_word("TABLE")
    names = [stream.name()]
    while stream.take_op(","):
        names.append(stream.name())
    stream.need_word("TO")
    if stream.take_word("BEFORE", "DROP"):
        new_name = stream.identifier() if stream.take_word("RENAME", "TO") else None
        return nodes.FlashbackDrop(names[0], new_name)
    if not (stream.is_word("SCN") or stream.is_word("TIMESTAMP")):
        raise unsupported("this form of FLASHBACK TABLE", stream.token.start)
    start = stream.token.start
    while stream.token.kind != "end":
        stream.next()
    return nodes.FlashbackRows(tuple(names), stream.source_text(start))


def _read_purge(stream: TokenStream) -> nodes.Purge:
    if stream.take_word("TABLE"):
        return nodes.Purge(stream.name())
    if stream.take_word("RECYCLEBIN"):
        return nodes.Purge()
    if stream.take_word("DBA_RECYCLEBIN"):
        return nodes.Purge(is_of_all=True)
    raise unsupported("this form of PURGE", stream.token.start)


def _read_grant(stream: TokenStream, *, revoke: bool) -> nodes.Grant:
    privileges = [_read_privilege(stream)]
    while stream.take_op(","):
        privileges.append(_read_privilege(stream))
    target: ast.Name = ()
    if stream.take_word("ON", "EDITION"):
        # Whoever may log in may use every edition here.
        stream.identifier()
        privileges = []
    elif stream.take_word("ON"):
        target = stream.name()
    stream.need_word("FROM" if revoke else "TO")
    users = [_read_grantee(stream)]
    while stream.take_op(","):
        users.append(_read_grantee(stream))
    while stream.take_any(
        "WITH", "ADMIN", "GRANT", "OPTION", "CONTAINER", "CURRENT", "ALL"
    ) or stream.take_op("="):
        continue
    return nodes.Grant(tuple(privileges), target, tuple(users), revoke)


def _read_grantee(stream: TokenStream) -> str:
    return "PUBLIC" if stream.take_word("PUBLIC") else stream.identifier()


def _read_privilege(stream: TokenStream) -> str:
    words: list[str] = []
    while (
        stream.token.kind in ("word", "quoted")
        and not stream.is_word("ON")
        and not stream.is_word("TO")
        and not stream.is_word("FROM")
    ):
        words.append(stream.next().text)
    if not words:
        raise OracleError(990, "missing or invalid privilege", stream.token.start)
    if stream.is_op("("):
        raise unsupported("privileges on columns", stream.token.start)
    return " ".join(words)


def _read_comment(stream: TokenStream) -> nodes.Comment:
    stream.need_word("ON")
    is_materialized = stream.take_word("MATERIALIZED", "VIEW")
    kind = "TABLE" if is_materialized else stream.take_any("TABLE", "COLUMN")
    if kind is None:
        raise OracleError(
            2208, "ON keyword must be followed by TABLE or COLUMN", stream.token.start
        )
    name = stream.name()
    stream.need_word("IS")
    return nodes.Comment(kind, name, stream.text())
