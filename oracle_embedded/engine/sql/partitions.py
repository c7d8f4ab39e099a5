"""How are partitions written, in CREATE TABLE and in ALTER TABLE?

Values of bounds stay text: what they are worth is known when the columns are.
"""

from __future__ import annotations

from itertools import product

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.sql.expressions import read_expression
from oracle_embedded.engine.sql.stream import TokenStream

_ATTRIBUTES = frozenset({"TABLESPACE", "COMPRESS", "NOCOMPRESS", "LOGGING", "NOLOGGING"})


def read_partitioning(stream: TokenStream) -> nodes.PartitioningSpec:
    """Read ``PARTITION BY …``."""
    stream.need_word("PARTITION", "BY")
    kind = stream.take_any("RANGE", "LIST", "HASH")
    if kind is None:
        raise unsupported(f"PARTITION BY {stream.token.text}", stream.token.start)
    columns = stream.names()
    interval = None
    if stream.take_word("INTERVAL"):
        stream.need_op("(")
        interval = _value(stream)
        stream.need_op(")")
    sub_columns: tuple[str, ...] = ()
    sub_count, sub_kind = 1, "HASH"
    template: tuple[nodes.PartitionSpec, ...] = ()
    if stream.take_word("SUBPARTITION", "BY"):
        sub_kind = stream.take_any("HASH", "LIST", "RANGE") or ""
        if not sub_kind:
            raise unsupported(f"SUBPARTITION BY {stream.token.text}", stream.token.start)
        sub_columns = stream.names()
        if stream.take_word("SUBPARTITIONS"):
            sub_count = stream.integer()
        if sub_kind != "HASH":
            template = _read_template(stream)
    count = 0
    partitions: list[nodes.PartitionSpec] = []
    if stream.take_word("PARTITIONS"):
        count = stream.integer()
    else:
        stream.need_op("(")
        partitions.append(read_partition(stream))
        while stream.take_op(","):
            partitions.append(read_partition(stream))
        stream.need_op(")")
    return nodes.PartitioningSpec(
        kind,
        columns,
        tuple(partitions),
        count,
        interval,
        sub_columns,
        sub_count,
        sub_kind,
        template,
    )


def _read_template(stream: TokenStream) -> tuple[nodes.PartitionSpec, ...]:
    """Read what every partition is made of, of which each has the same."""
    if not stream.take_word("SUBPARTITION", "TEMPLATE"):
        raise unsupported("subpartitions by LIST or RANGE without a template", stream.token.start)
    stream.need_op("(")
    found = [read_partition(stream, "SUBPARTITION")]
    while stream.take_op(","):
        found.append(read_partition(stream, "SUBPARTITION"))
    stream.need_op(")")
    return tuple(found)


def read_partition(stream: TokenStream, word: str = "PARTITION") -> nodes.PartitionSpec:
    """Read ``PARTITION [name] [VALUES …]`` with its attributes, or a ``SUBPARTITION``."""
    stream.need_word(word)
    name = None
    if stream.token.kind in ("word", "quoted") and stream.token.text not in (
        "VALUES",
        *_ATTRIBUTES,
    ):
        name = stream.identifier()
    start = stream.token.start
    values: tuple[tuple[str, ...], ...] = ()
    high_value = ""
    if stream.take_word("VALUES", "LESS", "THAN"):
        values = (_tuple(stream),)
        high_value = ", ".join(values[0])
    elif stream.take_word("VALUES"):
        values = _list(stream)
        high_value = ", ".join(
            f"( {', '.join(one)} )" if len(one) > 1 else one[0] for one in values
        )
    _skip_attributes(stream)
    if stream.is_op("("):
        raise unsupported("subpartitions by name", start)
    return nodes.PartitionSpec(name, values, high_value)


def read_partition_action(stream: TokenStream) -> list[tuple[str, object]]:
    """Read what ALTER TABLE does with partitions; nothing if something else comes next."""
    action = _read_action(stream)
    if action is None:
        return []
    while stream.take_any(
        "UPDATE", "GLOBAL", "INDEXES", "INVALIDATE", "ONLINE", "INCLUDING", "EXCLUDING"
    ):
        continue
    _skip_attributes(stream)
    return [action]


def _read_action(stream: TokenStream) -> tuple[str, object] | None:
    if stream.is_word("ADD", "PARTITION"):
        stream.next()
        return "add partition", read_partition(stream)
    for word, kind in product(("DROP", "TRUNCATE"), ("PARTITION", "SUBPARTITION")):
        if stream.take_word(word, kind) or stream.take_word(word, f"{kind}S"):
            chosen = [_read_choice(stream)]
            while stream.take_op(","):
                chosen.append(_read_choice(stream))
            if not stream.take_word("DROP", "STORAGE"):
                stream.take_word("REUSE", "STORAGE")
            return f"{word.lower()} {kind.lower()}s", tuple(chosen)
    if stream.take_word("SPLIT", "PARTITION"):
        return "split partition", _read_split(stream)
    if stream.take_word("MERGE", "PARTITIONS"):
        names = [stream.identifier()]
        while stream.take_op(","):
            names.append(stream.identifier())
        into = read_partition(stream).name if stream.take_word("INTO") else None
        return "merge partitions", (tuple(names), into)
    if stream.take_word("EXCHANGE", "PARTITION"):
        return "exchange partition", _read_exchange(stream)
    if stream.take_word("MOVE", "PARTITION"):
        return "move partition", stream.identifier()
    if stream.take_word("MOVE"):
        return "move", None
    if stream.take_word("SHRINK", "SPACE"):
        stream.take_any("COMPACT", "CASCADE")
        return "shrink", None
    if stream.take_word("COALESCE", "PARTITION"):
        return "coalesce partition", None
    if stream.take_word("RENAME", "PARTITION"):
        old = stream.identifier()
        stream.need_word("TO")
        return "rename partition", (old, stream.identifier())
    for word in ("ENABLE", "DISABLE"):
        if stream.take_word(word, "ROW", "MOVEMENT"):
            return "row movement", word == "ENABLE"
    return None


def _read_choice(stream: TokenStream) -> str | nodes.PartitionFor:
    """Read the name of a partition, or FOR with the values that it takes."""
    if stream.take_word("FOR"):
        return nodes.PartitionFor(_tuple(stream))
    return stream.identifier()


def _read_split(stream: TokenStream) -> nodes.SplitSpec:
    name = stream.identifier()
    by_value = stream.take_word("AT")
    values: tuple[tuple[str, ...], ...]
    if by_value:
        values = (_tuple(stream),)
    else:
        stream.need_word("VALUES")
        values = _list(stream)
    into: tuple[str | None, str | None] = (None, None)
    if stream.take_word("INTO"):
        stream.need_op("(")
        first = read_partition(stream).name
        stream.need_op(",")
        into = (first, read_partition(stream).name)
        stream.need_op(")")
    return nodes.SplitSpec(name, values, by_value, into)


def _read_exchange(stream: TokenStream) -> nodes.ExchangeSpec:
    name = stream.identifier()
    stream.need_word("WITH", "TABLE")
    table = stream.name()
    while stream.take_any("INCLUDING", "EXCLUDING", "INDEXES"):
        continue
    is_checked = not stream.take_word("WITHOUT", "VALIDATION")
    stream.take_word("WITH", "VALIDATION")
    return nodes.ExchangeSpec(name, table, is_checked)


def _list(stream: TokenStream) -> tuple[tuple[str, ...], ...]:
    """Read the values of a list: each one value, or one per key column in parentheses."""
    stream.need_op("(")
    values = [_tuple(stream) if stream.is_op("(") else (_value(stream),)]
    while stream.take_op(","):
        values.append(_tuple(stream) if stream.is_op("(") else (_value(stream),))
    stream.need_op(")")
    return tuple(values)


def _tuple(stream: TokenStream) -> tuple[str, ...]:
    stream.need_op("(")
    values = [_value(stream)]
    while stream.take_op(","):
        values.append(_value(stream))
    stream.need_op(")")
    return tuple(values)


def _value(stream: TokenStream) -> str:
    start = stream.token.start
    if stream.take_any("DEFAULT", "MAXVALUE") is None:
        read_expression(stream)
        if stream.bind_names:
            raise OracleError(1027, "bind variables not allowed for data definition operations")
    return stream.source_text(start)


def _skip_attributes(stream: TokenStream) -> None:
    while word := stream.take_any(*_ATTRIBUTES):
        if word == "TABLESPACE":
            stream.identifier()
