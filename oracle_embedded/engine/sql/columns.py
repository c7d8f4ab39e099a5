"""How are the parts of tables written: columns, constraints, log groups?"""

from __future__ import annotations

from dataclasses import replace

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ddl_nodes as ddl
from oracle_embedded.engine.sql.expressions import read_condition, read_expression
from oracle_embedded.engine.sql.stream import TokenStream
from oracle_embedded.engine.sql.types import read_datatype

_LOG_KINDS = {
    "ALL": "ALL COLUMN LOGGING",
    "PRIMARY KEY": "PRIMARY KEY LOGGING",
    "UNIQUE": "UNIQUE KEY LOGGING",
    "FOREIGN KEY": "FOREIGN KEY LOGGING",
}


def read_sequence_options(stream: TokenStream) -> tuple[tuple[str, int | bool], ...]:
    """Read START WITH, INCREMENT BY …"""
    options: list[tuple[str, int | bool]] = []
    while stream.token.kind == "word":
        if stream.take_word("START", "WITH"):
            options.append(("start", stream.integer()))
        elif stream.take_word("INCREMENT", "BY"):
            options.append(("increment", stream.integer()))
        elif stream.take_word("RESTART"):
            options.append(("restart", True))
        elif stream.token.text in ("MINVALUE", "MAXVALUE", "CACHE"):
            word = stream.next().text
            options.append(
                (
                    {"MINVALUE": "minimum", "MAXVALUE": "maximum", "CACHE": "cache"}[word],
                    stream.integer(),
                )
            )
        elif stream.token.text in (
            "NOMINVALUE",
            "NOMAXVALUE",
            "NOKEEP",
            "NOSCALE",
            "GLOBAL",
            "NOSHARD",
        ):
            stream.next()
        elif stream.token.text in ("CYCLE", "NOCYCLE"):
            options.append(("cycle", stream.next().text == "CYCLE"))
        elif stream.token.text in ("ORDER", "NOORDER"):
            options.append(("order", stream.next().text == "ORDER"))
        elif stream.take_word("NOCACHE"):
            options.append(("cache", 0))
        else:
            break
    return tuple(options)


def read_log_group(stream: TokenStream) -> ddl.LogGroupSpec:
    """Read DATA (ALL, …) COLUMNS or GROUP name (columns) [ALWAYS]."""
    if stream.take_word("GROUP"):
        name = stream.identifier()
        columns = stream.names() if stream.is_op("(") else ()
        return ddl.LogGroupSpec("USER LOG GROUP", name, columns, stream.take_word("ALWAYS"))
    stream.need_word("DATA")
    stream.need_op("(")
    kinds = []
    while True:
        word = stream.take_any("ALL", "PRIMARY", "UNIQUE", "FOREIGN")
        if word is None:
            raise stream.error(905)
        if word in ("PRIMARY", "FOREIGN"):
            stream.need_word("KEY")
            word += " KEY"
        kinds.append(_LOG_KINDS[word])
        if not stream.take_op(","):
            break
    stream.need_op(")")
    stream.need_word("COLUMNS")
    return ddl.LogGroupSpec("+".join(kinds))


def read_column(stream: TokenStream, *, modify: bool = False) -> ddl.ColumnSpec:
    """Read a column definition."""
    name = stream.identifier()
    kind = None
    starters = (
        "DEFAULT",
        "NOT",
        "NULL",
        "CONSTRAINT",
        "PRIMARY",
        "UNIQUE",
        "CHECK",
        "REFERENCES",
        "GENERATED",
        "INVISIBLE",
        "VISIBLE",
    )
    if not (
        modify
        and (
            stream.token.text in starters
            or stream.token.text in (",", ")")
            or stream.token.kind == "end"
        )
    ):
        if (
            stream.token.text in starters
            and stream.token.kind == "word"
            and stream.token.text != "GENERATED"
        ):
            raise OracleError(
                2263, "need to specify the datatype for this column", stream.token.start
            )
        if not _is_virtual(stream):
            kind = read_datatype(stream, of_column=True)
    default: str | None = None
    has_default = False
    nullable: bool | None = None
    identity: str | None = None
    options: tuple[tuple[str, int | bool], ...] = ()
    expression: str | None = None
    is_visible: bool | None = None
    constraints: list[ddl.ConstraintSpec] = []
    while True:
        if _is_virtual(stream):
            expression = _read_virtual(stream)
        elif stream.take_word("DEFAULT"):
            if stream.take_word("ON", "NULL"):
                raise unsupported("DEFAULT ON NULL", stream.token.start)
            start = stream.token.start
            read_expression(stream)
            default, has_default = stream.source_text(start), True
        elif stream.take_word("GENERATED"):
            identity, options = _read_identity(stream)
        elif stream.is_word("COLLATE") or stream.is_word("ENCRYPT"):
            raise unsupported(f"{stream.token.text} columns", stream.token.start)
        elif word := stream.take_any("VISIBLE", "INVISIBLE"):
            is_visible = word == "VISIBLE"
        elif is_inline_constraint(stream):
            spec = _read_inline_constraint(stream, name)
            if spec is None:
                nullable = True
            elif spec.not_null:
                nullable = False
                constraints.append(spec)
            else:
                constraints.append(spec)
        else:
            break
    return ddl.ColumnSpec(
        name,
        kind,
        default,
        has_default,
        nullable,
        tuple(constraints),
        identity,
        options,
        expression,
        is_visible,
    )


def _is_virtual(stream: TokenStream) -> bool:
    """Does ``[GENERATED ALWAYS] AS (expression)`` come next?"""
    words = (stream.token, stream.ahead(), stream.ahead(2), stream.ahead(3))
    texts = [word.text for word in words]
    return texts[:2] == ["AS", "("] or texts == ["GENERATED", "ALWAYS", "AS", "("]


def _read_virtual(stream: TokenStream) -> str:
    stream.take_word("GENERATED", "ALWAYS")
    stream.need_word("AS")
    stream.need_op("(")
    start = stream.token.start
    read_expression(stream)
    text = stream.source_text(start)
    stream.need_op(")")
    stream.take_word("VIRTUAL")
    return text.strip()


def _read_identity(stream: TokenStream) -> tuple[str, tuple[tuple[str, int | bool], ...]]:
    if stream.take_word("ALWAYS"):
        how = "ALWAYS"
    else:
        if stream.take_word("BY"):
            stream.need_word("DEFAULT")
        how = "BY DEFAULT"
        if stream.take_word("ON", "NULL"):
            how = "BY DEFAULT ON NULL"
    stream.need_word("AS")
    stream.need_word("IDENTITY")
    options: tuple[tuple[str, int | bool], ...] = ()
    if stream.take_op("("):
        options = read_sequence_options(stream)
        stream.need_op(")")
    else:
        options = read_sequence_options(stream)
    return how, options


def is_inline_constraint(stream: TokenStream) -> bool:
    """Does a column constraint come next?"""
    return stream.token.kind == "word" and stream.token.text in (
        "CONSTRAINT", "NOT", "NULL", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES",
    )  # fmt: skip


def _read_inline_constraint(stream: TokenStream, column: str) -> ddl.ConstraintSpec | None:
    name = stream.identifier() if stream.take_word("CONSTRAINT") else None
    if stream.take_word("NULL"):
        return None
    if stream.take_word("NOT"):
        _need_null(stream)
        spec = ddl.ConstraintSpec(
            "C", name, (column,), condition=f'"{column}" IS NOT NULL', not_null=True
        )
    elif stream.take_word("PRIMARY"):
        stream.need_word("KEY")
        spec = ddl.ConstraintSpec("P", name, (column,))
    elif stream.take_word("UNIQUE"):
        spec = ddl.ConstraintSpec("U", name, (column,))
    elif stream.take_word("REFERENCES"):
        spec = _read_references(stream, name, (column,))
    else:
        spec = _read_check(stream, name, (column,))
    return _read_constraint_state(stream, spec)


def _need_null(stream: TokenStream) -> None:
    if not stream.take_word("NULL"):
        raise OracleError(908, "missing NULL keyword", stream.token.start)


def is_constraint(stream: TokenStream) -> bool:
    """Does a table constraint come next?"""
    return stream.token.kind == "word" and (
        stream.token.text == "CONSTRAINT"
        or stream.is_word("PRIMARY", "KEY")
        or stream.is_word("FOREIGN", "KEY")
        or (stream.token.text in ("UNIQUE", "CHECK") and stream.ahead().text == "(")
    )


def read_table_constraint(stream: TokenStream) -> ddl.ConstraintSpec:
    """Read a table constraint."""
    name = stream.identifier() if stream.take_word("CONSTRAINT") else None
    if stream.take_word("PRIMARY", "KEY"):
        spec = ddl.ConstraintSpec("P", name, stream.names())
    elif stream.take_word("UNIQUE"):
        spec = ddl.ConstraintSpec("U", name, stream.names())
    elif stream.take_word("FOREIGN", "KEY"):
        columns = stream.names()
        stream.need_word("REFERENCES")
        spec = _read_references(stream, name, columns)
    else:
        spec = _read_check(stream, name, ())
    return _read_constraint_state(stream, spec)


def _read_references(
    stream: TokenStream, name: str | None, columns: tuple[str, ...]
) -> ddl.ConstraintSpec:
    referenced = stream.name()
    referenced_columns = stream.names() if stream.is_op("(") else ()
    rule = None
    if stream.take_word("ON", "DELETE"):
        if stream.take_word("CASCADE"):
            rule = "CASCADE"
        else:
            stream.need_word("SET", "NULL")
            rule = "SET NULL"
    return ddl.ConstraintSpec(
        "R",
        name,
        columns,
        referenced=referenced,
        referenced_columns=referenced_columns,
        delete_rule=rule,
    )


def _read_check(
    stream: TokenStream, name: str | None, columns: tuple[str, ...]
) -> ddl.ConstraintSpec:
    stream.need_word("CHECK")
    stream.need_op("(")
    start = stream.token.start
    read_condition(stream)
    text = stream.source_text(start)
    stream.need_op(")")
    return ddl.ConstraintSpec("C", name, columns, condition=text)


def read_state(stream: TokenStream) -> tuple[bool, bool] | None:
    """Read ``[ENABLE | DISABLE] [VALIDATE | NOVALIDATE]``: is it enabled, and are existing rows
    checked?"""
    switch = stream.take_any("ENABLE", "DISABLE")
    check = stream.take_any("VALIDATE", "NOVALIDATE")
    if switch is None and check is None:
        return None
    enabled = switch != "DISABLE"
    return enabled, enabled if check is None else check == "VALIDATE"


def _read_constraint_state(stream: TokenStream, spec: ddl.ConstraintSpec) -> ddl.ConstraintSpec:
    while True:
        if stream.is_word("INITIALLY", "DEFERRED"):
            if spec.kind not in "PUR":
                raise unsupported("conditions that are checked at the commit", stream.token.start)
            stream.take_word("INITIALLY", "DEFERRED")
            spec = replace(spec, deferrable=True, deferred=True)
        elif (
            stream.take_word("NOT", "DEFERRABLE")
            or stream.take_word("INITIALLY", "IMMEDIATE")
            or stream.take_any("RELY", "NORELY")
        ):
            continue
        elif stream.take_word("DEFERRABLE"):
            spec = replace(spec, deferrable=True)
        elif (state := read_state(stream)) is not None:
            spec = replace(spec, enabled=state[0], validated=state[1])
        elif stream.take_word("USING", "INDEX"):
            if stream.token.kind in ("word", "quoted") and stream.token.text not in (
                "TABLESPACE",
                "PCTFREE",
                "ENABLE",
                "DISABLE",
                "INITRANS",
                "STORAGE",
            ):
                stream.name()
            while stream.take_any("TABLESPACE", "PCTFREE", "INITRANS"):
                stream.next()
        else:
            return spec


def read_nested_table(stream: TokenStream) -> tuple[str, str]:
    """The column behind NESTED TABLE, and the table that stores its rows."""
    column = stream.identifier()
    stream.take_any("LOCAL", "GLOBAL")
    if stream.is_op("("):
        skip_parentheses(stream)
    stream.need_word("STORE", "AS")
    stored = stream.identifier()
    if stream.is_op("("):
        skip_parentheses(stream)
    if stream.take_word("RETURN"):
        stream.take_word("AS")
        stream.take_any("VALUE", "LOCATOR")
    return column, stored


def skip_parentheses(stream: TokenStream) -> None:
    """Step over a parenthesis and all that is in it."""
    depth = 0
    while True:
        token = stream.next()
        if token.kind == "end":
            raise stream.error(907)
        depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "op" else 0
        if not depth:
            return
