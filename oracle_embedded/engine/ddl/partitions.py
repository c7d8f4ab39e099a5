"""How are partitions made, and what does ALTER TABLE do with them?

Rows lie in the table's storage, each with the number of its segment's data object. DDL that moves
rows gives them new addresses; what it leaves of the table's past cannot be looked back to
(ORA-01466).

A partition that ADD, SPLIT, MERGE or EXCHANGE makes has an object number of its own; one that is
moved or truncated keeps it.

Source: Oracle Database VLDB and Partitioning Guide 19c, "Maintenance Operations for Partitioned
Tables"; numbers measured on 23ai.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from oracle_embedded.api import OracleError
from oracle_embedded.engine.datatypes.types import DOCUMENTS
from oracle_embedded.engine.ddl.ddl_run import DdlRun
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.run.intervals import stored_value
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.storage.blocks import row_bytes
from oracle_embedded.engine.storage.catalog import TableDef
from oracle_embedded.engine.storage.partitions import (
    DEFAULT,
    MAXVALUE,
    Bound,
    Partition,
    Partitioning,
    range_place,
)

_Choice = str | nodes.PartitionFor
NO_PARTITION = OracleError(2149, "Specified partition does not exist")
MOVING = frozenset(
    {"split partition", "merge partitions", "exchange partition", "move partition", "coalesce partition"}
    | {"drop partitions", "truncate partitions", "drop subpartitions", "truncate subpartitions", "move", "shrink"}
)  # fmt: skip
"""Actions after which the table's past is gone."""


def partitioning_of(run: DdlRun, table: TableDef, spec: nodes.PartitioningSpec) -> Partitioning:
    """How a new table, whose columns are known, is partitioned."""
    sub_columns = _column_ids(table, spec.sub_columns)
    template = Partitioning(spec.sub_kind, sub_columns, ())
    for one in spec.sub_template:
        template = _with(run, table, template, one)
    made = Partitioning(
        spec.kind,
        _column_ids(table, spec.columns),
        (),
        spec.interval,
        sub_columns,
        len(spec.sub_template) or (spec.sub_count if sub_columns else 0),
        spec.sub_kind,
        template.partitions,
    )
    if spec.interval is not None and (spec.kind != "RANGE" or len(made.columns) != 1):
        raise OracleError(14750, "Range partitioned table with INTERVAL clause has wrong key")
    _refuse_text_ranges(run, table, made)
    specs = spec.partitions or (nodes.PartitionSpec(None, (), ""),) * spec.count
    for one in specs:
        made = _with(run, table, made, one)
    return made


def _refuse_text_ranges(run: DdlRun, table: TableDef, made: Partitioning) -> None:
    """Bounds are compared as they are kept here: in the order of code points."""
    sets = run.session.database.character_sets
    kinds = [table.by_id[each].type for each in made.columns] if made.kind == "RANGE" else []
    if any(
        kind.family == "text" and kind.form != 2 and not sets.database.sorts_by_code_points
        for kind in kinds
    ):
        raise unsupported(f"range partitions by text in {sets.database.name}")


def alter_partitions(run: DdlRun, table: TableDef, verb: str, argument: Any) -> TableDef:
    """One action of ALTER TABLE on partitions, or on the whole segment."""
    if verb == "move":
        if table.partitioning is not None:
            raise OracleError(14511, "cannot perform operation on a partitioned object")
        _lock(run, table, [table.object_id])
        changed = replace(table, data_object_id=_new_id(run))
        run.session.database.store.new_segment(table.object_id)
        _place_again(run, changed, "1 = 1", (), lambda _image: (table.object_id, None))
        return changed
    if verb == "shrink":
        return _shrunk(run, table)
    if table.partitioning is None:
        raise OracleError(14501, "object is not partitioned")
    return _ACTIONS[verb](run, table, table.partitioning, argument)


# --- making them ----------------------------------------------------------------------------------


def _with(
    run: DdlRun, table: TableDef, made: Partitioning, spec: nodes.PartitionSpec
) -> Partitioning:
    """One more partition at the end."""
    if bool(spec.values) == (made.kind == "HASH"):
        raise OracleError(14004, "missing PARTITION keyword or VALUES clause")
    bounds = tuple(_bound(run, table, made, one) for one in spec.values)
    lower = made.partitions[-1:] if made.kind == "RANGE" else ()
    if any(range_place(bounds[0]) <= range_place(one.bounds[0]) for one in lower):
        raise OracleError(
            14074, "partition bound must collate higher than that of the last partition"
        )
    if made.kind == "LIST" and any(one.bounds == ((DEFAULT,),) for one in made.partitions):
        raise OracleError(14323, "cannot add partition when DEFAULT partition exists")
    if any(bound in one.bounds for one in made.partitions for bound in bounds):
        raise OracleError(14312, "Value already exists in another partition")
    new = _new(run, made, spec.name, bounds, spec.high_value)
    return replace(made, partitions=(*made.partitions, new))


def _new(
    run: DdlRun,
    made: Partitioning,
    name: str | None,
    bounds: tuple[Bound, ...],
    high_value: str,
    low: str | None = None,
) -> Partition:
    number = _new_id(run)
    name = name or f"SYS_P{number}"
    if made.named(name) is not None:
        raise OracleError(14013, "duplicate partition name")
    subs = tuple(_sub(run, name, one) for one in made.sub_template or (None,) * made.sub_count)
    return Partition(number, 0 if subs else number, name, high_value, bounds, low, subs)


def _sub(run: DdlRun, partition: str, template: Partition | None) -> Partition:
    """A subpartition; with a template it has its bounds, and both names."""
    number = _new_id(run)
    if template is None:
        return Partition(number, number, f"SYS_SUBP{number}")
    name = f"{partition}_{template.name}"
    return replace(template, object_id=number, data_object_id=number, name=name)


def _bound(run: DdlRun, table: TableDef, made: Partitioning, texts: Sequence[str]) -> Bound:
    if made.kind == "LIST" and tuple(text.upper() for text in texts) == (DEFAULT,):
        return (DEFAULT,)
    if len(texts) != len(made.columns):
        raise OracleError(14018, "partition bound list contains too few elements")
    return tuple(
        MAXVALUE
        if text.upper() == MAXVALUE
        else stored_value(run.session, table, table.by_id[column], text)
        for text, column in zip(texts, made.columns, strict=True)
    )


# --- ALTER TABLE ----------------------------------------------------------------------------------


def _add(run: DdlRun, table: TableDef, made: Partitioning, spec: nodes.PartitionSpec) -> TableDef:
    if made.kind != "HASH":
        return _stored(run, table, _with(run, table, made, spec))
    buddy = len(made.partitions) - (1 << (len(made.partitions)).bit_length() - 1)
    _lock(run, table, _numbers([made.partitions[buddy]]))
    changed = _with(run, table, made, spec)
    return _moved(run, table, changed, [made.partitions[buddy]])


def _drop(
    run: DdlRun, table: TableDef, made: Partitioning, chosen: tuple[_Choice, ...]
) -> TableDef:
    if made.kind == "HASH":
        raise OracleError(
            14255,
            "table is not partitioned by Range, List, Composite Range or Composite List method",
        )
    gone = [_chosen(run, table, made, one) for one in chosen]
    kept = tuple(one for one in made.partitions if one not in gone)
    if not kept:
        raise OracleError(14083, "cannot drop the only partition of a partitioned table")
    _lock(run, table, _numbers(gone))
    _delete_rows(run, table, gone)
    if made.kind == "RANGE" and all(
        one.low is not None for one in kept
    ):  # 12.2 and later: the range section is never empty
        kept = (replace(kept[0], low=None), *kept[1:])
    return _stored(run, table, replace(made, partitions=kept))


def _truncate(
    run: DdlRun, table: TableDef, made: Partitioning, chosen: tuple[_Choice, ...]
) -> TableDef:
    gone = [_chosen(run, table, made, one) for one in chosen]
    _lock(run, table, _numbers(gone))
    _delete_rows(run, table, gone)
    for leaf in _leaves(gone):
        run.session.database.store.new_segment(leaf.object_id)
    return _stored(run, table, _with_new_data_objects(run, made, gone))


def _drop_subs(
    run: DdlRun, table: TableDef, made: Partitioning, chosen: tuple[_Choice, ...]
) -> TableDef:
    if made.sub_kind == "HASH":
        raise unsupported("DROP SUBPARTITION by hash")
    gone = [_chosen_sub(run, table, made, one) for one in chosen]
    kept = [tuple(sub for sub in one.subpartitions if sub not in gone) for one in made.partitions]
    if not all(kept):
        raise OracleError(14629, "cannot drop the only subpartition of a partition")
    _lock(run, table, _numbers(gone))
    _delete_rows(run, table, gone)
    partitions = zip(made.partitions, kept, strict=True)
    changed = tuple(replace(one, subpartitions=subs) for one, subs in partitions)
    return _stored(run, table, replace(made, partitions=changed))


def _truncate_subs(
    run: DdlRun, table: TableDef, made: Partitioning, chosen: tuple[_Choice, ...]
) -> TableDef:
    gone = [_chosen_sub(run, table, made, one) for one in chosen]
    _lock(run, table, _numbers(gone))
    _delete_rows(run, table, gone)
    for one in gone:
        run.session.database.store.new_segment(one.object_id)

    def fresh(sub: Partition) -> Partition:
        return replace(sub, data_object_id=_new_id(run)) if sub in gone else sub

    changed = tuple(
        replace(one, subpartitions=tuple(map(fresh, one.subpartitions))) for one in made.partitions
    )
    return _stored(run, table, replace(made, partitions=changed))


def _chosen(run: DdlRun, table: TableDef, made: Partitioning, choice: _Choice) -> Partition:
    """The partition that is named, or takes the values."""
    if isinstance(choice, str):
        return _named(made, choice)
    plain = replace(
        made, partitions=tuple(replace(one, subpartitions=()) for one in made.partitions)
    )
    found = plain.find(_key_image(run, table, made.columns, choice.values))
    if found is None:
        raise NO_PARTITION
    return _named(made, found.name)


def _chosen_sub(run: DdlRun, table: TableDef, made: Partitioning, choice: _Choice) -> Partition:
    """The subpartition that is named, or takes the values: those of its partition's key, and of its
    own."""
    if not made.sub_columns:
        raise OracleError(14253, "table is not partitioned by Composite Range method")
    if isinstance(choice, str):
        subs = (sub for one in made.partitions for sub in one.subpartitions)
        found = next((sub for sub in subs if sub.name == choice), None)
    else:
        columns = (*made.columns, *made.sub_columns)
        found = made.find(_key_image(run, table, columns, choice.values))
    if found is None:
        raise OracleError(14251, "Specified subpartition does not exist")
    return found


def _key_image(
    run: DdlRun, table: TableDef, columns: Sequence[int], values: Sequence[str]
) -> dict[int, bytes | None]:
    if len(values) != len(columns):
        raise unsupported("FOR with values of another number than key columns")
    stored = [
        stored_value(run.session, table, table.by_id[column], text)
        for column, text in zip(columns, values, strict=True)
    ]
    made = (None if one is None else bytes.fromhex(one) for one in stored)
    return dict(zip(columns, made, strict=True))


def _split(run: DdlRun, table: TableDef, made: Partitioning, spec: nodes.SplitSpec) -> TableDef:
    old = _named(made, spec.name)
    if made.kind == "HASH" or spec.by_value != (made.kind == "RANGE"):
        raise OracleError(14255, "table is not partitioned by this method")
    _lock(run, table, _numbers([old]))
    others = replace(made, partitions=tuple(one for one in made.partitions if one is not old))
    bounds = tuple(_bound(run, table, made, one) for one in spec.values)
    text = ", ".join(", ".join(one) for one in spec.values)
    if made.kind == "RANGE":
        at = made.partitions.index(old)
        low = range_place(made.partitions[at - 1].bounds[0]) if at else [(0, b"")]
        if not low < range_place(bounds[0]) < range_place(old.bounds[0]):
            raise OracleError(14080, "partition cannot be split along the specified high bound")
        rest, rest_text = old.bounds, old.high_value
    else:
        rest = tuple(one for one in old.bounds if one not in bounds)
        if old.bounds != ((DEFAULT,),) and (not rest or not set(bounds) <= set(old.bounds)):
            raise OracleError(14314, "resulting List partition(s) must contain at least 1 value")
        rest_text = old.high_value
    first = _new(run, others, spec.into[0], bounds, text, old.low)
    others = replace(others, partitions=(*others.partitions, first))
    second = _new(run, others, spec.into[1], rest, rest_text)
    new = [item for one in made.partitions for item in ((first, second) if one is old else (one,))]
    return _moved(run, table, replace(made, partitions=tuple(new)), [old])


def _merge(
    run: DdlRun,
    table: TableDef,
    made: Partitioning,
    argument: tuple[tuple[str, ...], str | None],
) -> TableDef:
    names, into = argument
    old = [_named(made, name) for name in names]
    if made.kind == "HASH" or len(old) < 2:
        raise OracleError(14255, "table is not partitioned by this method")
    places = sorted(made.partitions.index(one) for one in old)
    if made.kind == "RANGE" and places != list(range(places[0], places[-1] + 1)):
        raise OracleError(14274, "partitions being merged are not adjacent")
    _lock(run, table, _numbers(old))
    last = made.partitions[places[-1]]
    bounds = last.bounds if made.kind == "RANGE" else tuple(b for one in old for b in one.bounds)
    if (DEFAULT,) in bounds:
        bounds = ((DEFAULT,),)
    kept = replace(made, partitions=tuple(one for one in made.partitions if one not in old))
    text = last.high_value if made.kind == "RANGE" else ", ".join(one.high_value for one in old)
    new = _new(run, kept, into, bounds, text, made.partitions[places[0]].low)
    partitions = [
        new if one is last else one for one in made.partitions if one is last or one not in old
    ]
    return _moved(run, table, replace(made, partitions=tuple(partitions)), old)


def _coalesce(run: DdlRun, table: TableDef, made: Partitioning, _argument: None) -> TableDef:
    if made.kind != "HASH":
        raise OracleError(14259, "table is not partitioned by Hash method")
    if len(made.partitions) == 1:
        raise OracleError(
            14285, "cannot COALESCE the only partition of this hash partitioned table or index"
        )
    *kept, last = made.partitions
    buddy = len(kept) - (1 << len(kept).bit_length() - 1)
    _lock(run, table, _numbers([last, kept[buddy]]))
    return _moved(run, table, replace(made, partitions=tuple(kept)), [last])


def _move(run: DdlRun, table: TableDef, made: Partitioning, name: str) -> TableDef:
    old = _named(made, name)
    if old.subpartitions:
        raise OracleError(14257, "cannot move a partition which is a composite partition")
    _lock(run, table, _numbers([old]))
    return _moved(run, table, _with_new_data_objects(run, made, [old]), [old])


def _rename(run: DdlRun, table: TableDef, made: Partitioning, names: tuple[str, str]) -> TableDef:
    old = _named(made, names[0])
    if made.named(names[1]) is not None:
        raise OracleError(
            14082, "new partition name must differ from that of any other partition of the object"
        )
    _lock(run, table, _numbers([old]))
    new = replace(old, name=names[1])
    partitions = tuple(new if one is old else one for one in made.partitions)
    return replace(table, partitioning=replace(made, partitions=partitions))


def _exchange(
    run: DdlRun, table: TableDef, made: Partitioning, spec: nodes.ExchangeSpec
) -> TableDef:
    database = run.session.database
    store = database.store
    old = _named(made, spec.name)
    other = run.table(spec.table, "ALTER ANY TABLE")
    if old.subpartitions or other.partitioning is not None or other.is_index_organized:
        raise unsupported(
            "EXCHANGE with composite partitions, partitioned or index-organized tables"
        )
    if [one.type for one in table.columns] != [one.type for one in other.columns]:
        raise OracleError(14097, "column type or size mismatch in ALTER TABLE EXCHANGE PARTITION")
    _lock(run, table, _numbers([old]))
    database.transactions.check_no_locks(other.object_id, run.session.transaction)
    new = replace(old, object_id=_new_id(run), data_object_id=other.data_object_id)
    partitions = tuple(new if one is old else one for one in made.partitions)
    changed = replace(table, partitioning=replace(made, partitions=partitions))
    sqlite = store.begin()
    incoming = sqlite.execute(f"SELECT {other.storage} FROM t{other.object_id}").fetchall()
    if spec.is_checked:
        for row in incoming:
            image = _image(changed, row)
            if changed.leaf_of(image) is not new:
                raise OracleError(14099, "all rows in table do not qualify for specified partition")
    store.new_segment(new.object_id)
    store.swap_segments(new.object_id, other.object_id)
    store.swap_segments(old.object_id, other.object_id)
    store.drop_segment(old.object_id)
    # Rows keep their addresses: blocks change their owner, not their place.
    sqlite.execute(
        f"CREATE TEMP TABLE exchanged AS SELECT rid, vf, {table.storage} FROM t{table.object_id} WHERE dobj = ?",
        (old.data_object_id,),
    )
    _delete_rows(run, table, [old])
    sqlite.execute(
        f"INSERT INTO t{table.object_id} (rid, vf, {table.storage}, dobj) SELECT rid, ?, {other.storage}, ? FROM t{other.object_id}",
        (run.scn, new.data_object_id),
    )
    store.clear_rows(other.object_id)
    sqlite.execute(
        f"INSERT INTO t{other.object_id} (rid, vf, {other.storage}) SELECT rid, ?, {table.storage} FROM exchanged",
        (run.scn,),
    )
    sqlite.execute("DROP TABLE exchanged")
    store.activity[other.object_id].last_commit = run.scn
    run.put(
        replace(
            other,
            data_object_id=old.data_object_id,
            object_version=other.object_version + 1,
            structure_scn=run.scn,
            changed=run.now,
            scn_from=run.scn,
        )
    )
    return changed


_ACTIONS: dict[str, Callable[[DdlRun, TableDef, Partitioning, Any], TableDef]] = {
    "add partition": _add,
    "drop partitions": _drop,
    "truncate partitions": _truncate,
    "drop subpartitions": _drop_subs,
    "truncate subpartitions": _truncate_subs,
    "split partition": _split,
    "merge partitions": _merge,
    "exchange partition": _exchange,
    "move partition": _move,
    "coalesce partition": _coalesce,
    "rename partition": _rename,
}
ACTIONS = frozenset({*_ACTIONS, "move", "shrink"})
"""What :func:`alter_partitions` does."""


def _shrunk(run: DdlRun, table: TableDef) -> TableDef:
    """The rows move to the front of their segment: other ROWIDs of the same data object."""
    if table.partitioning is not None or table.is_index_organized:
        raise unsupported("SHRINK SPACE of partitioned or index-organized tables")
    if not table.has_row_movement:
        raise OracleError(10636, "ROW MOVEMENT is not enabled")
    _lock(run, table, [table.object_id])
    run.session.database.store.refill_segment(table.object_id)
    _place_again(run, table, "1 = 1", (), lambda _image: (table.object_id, None))
    return table


# --- rows -----------------------------------------------------------------------------------------


def _moved(
    run: DdlRun, table: TableDef, made: Partitioning, sources: Iterable[Partition]
) -> TableDef:
    """The table under new partitions, with the rows of some old ones where they belong now."""
    sources = list(sources)
    store = run.session.database.store
    changed = _stored(run, table, made)
    still = {leaf.data_object_id for leaf in made.leaves}
    for leaf in _leaves(sources):
        if leaf.data_object_id not in still and leaf.object_id in store.segments:
            store.new_segment(leaf.object_id)

    def place(image: dict[int, Any]) -> tuple[int, int | None]:
        leaf = changed.leaf_of(image)
        assert leaf is not None
        return leaf.object_id, leaf.data_object_id

    numbers = [leaf.data_object_id for leaf in _leaves(sources)]
    _place_again(run, changed, f"dobj IN ({', '.join('?' * len(numbers))})", numbers, place)
    return changed


def _place_again(
    run: DdlRun,
    table: TableDef,
    where: str,
    params: Sequence[int],
    place: Callable[[dict[int, Any]], tuple[int, int | None]],
) -> None:
    """Give rows new addresses in the segments that ``place`` names, with their data objects."""
    store = run.session.database.store
    sqlite = store.begin()
    oid = table.object_id
    rows = sqlite.execute(
        f"SELECT rid, {table.storage} FROM t{oid} WHERE {where}", params
    ).fetchall()
    # A new address may be the old one of another row.
    sqlite.execute(f"UPDATE t{oid} SET rid = -rid WHERE {where}", params)
    for rid, *row in rows:
        segment, data_object = place(_image(table, row))
        new = store.place(segment, row_bytes(row))
        sqlite.execute(f"UPDATE t{oid} SET rid = ? WHERE rid = ?", (new, -rid))
        if data_object is not None:
            sqlite.execute(f"UPDATE t{oid} SET dobj = ? WHERE rid = ?", (data_object, new))
    store.activity[oid].last_commit = run.scn


def _delete_rows(run: DdlRun, table: TableDef, partitions: Iterable[Partition]) -> None:
    """Rows and their past go, without redo for each."""
    store = run.session.database.store
    for leaf in _leaves(partitions):
        for prefix in "th":
            store.begin().execute(
                f"DELETE FROM {prefix}{table.object_id} WHERE dobj = ?", (leaf.data_object_id,)
            )
    store.activity[table.object_id].last_commit = run.scn


def _stored(run: DdlRun, table: TableDef, made: Partitioning) -> TableDef:
    """The table under these partitions; segments come and go with them."""
    store = run.session.database.store
    assert table.partitioning is not None
    new = {leaf.object_id for leaf in made.leaves}
    old = {leaf.object_id for leaf in table.partitioning.leaves}
    for number in sorted(new - old):
        store.new_segment(number)
    for number in sorted(old - new):
        store.drop_segment(number)
    return replace(table, partitioning=made)


def _with_new_data_objects(
    run: DdlRun, made: Partitioning, chosen: Sequence[Partition]
) -> Partitioning:
    def fresh(one: Partition) -> Partition:
        if one.subpartitions:
            return replace(one, subpartitions=tuple(fresh(sub) for sub in one.subpartitions))
        return replace(one, data_object_id=_new_id(run))

    return replace(
        made, partitions=tuple(fresh(one) if one in chosen else one for one in made.partitions)
    )


def truncated(run: DdlRun, table: TableDef) -> Partitioning | None:
    """The partitions of a table that is truncated."""
    made = table.partitioning
    return None if made is None else _with_new_data_objects(run, made, made.partitions)


def _image(table: TableDef, row: Sequence[Any]) -> dict[int, Any]:
    return dict(zip(table.ids, row, strict=True))


def _named(made: Partitioning, name: str) -> Partition:
    found = made.named(name)
    if found is None:
        raise NO_PARTITION
    return found


def _leaves(partitions: Iterable[Partition]) -> list[Partition]:
    return [leaf for one in partitions for leaf in one.leaves]


def _numbers(partitions: Iterable[Partition]) -> list[int]:
    return [leaf.object_id for leaf in _leaves(partitions)]


def _lock(run: DdlRun, table: TableDef, segments: Iterable[int]) -> None:
    run.session.database.transactions.check_no_segment_locks(
        table, segments, run.session.transaction
    )


def _new_id(run: DdlRun) -> int:
    return run.session.database.store.catalog.new_id()


def _column_ids(table: TableDef, names: Sequence[str]) -> tuple[int, ...]:
    found = []
    for name in names:
        column = table.by_name.get(name)
        if column is None:
            raise ora(904, f'"{name}"')
        if column.type.family in ("clob", "blob", "tz", *DOCUMENTS):
            raise OracleError(14135, "a LOB column cannot serve as a partitioning column")
        found.append(column.internal_id)
    return tuple(found)
