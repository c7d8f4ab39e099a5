"""Columns that need a wider type in Delta since a MODIFY: both tables are written anew, each once."""

from __future__ import annotations

import dataclasses
import shutil
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.config import MaintenanceConfig
from cdc_core.decode.widened import widened
from cdc_core.errors import CommitConflictError, RowCountError
from cdc_core.lake.definitions import type_widening as widening
from cdc_core.lake.definitions.defaults import sql_literal
from cdc_core.lake.definitions.type_widening import exact_sql
from cdc_core.landing.manifest import SchemaChange
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column
from cdc_core.schema.types import arrow_type
from tests.jvm import small_session
from tests.stage.landed import prepare_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cdc_core.lake.delta_lake import DeltaLake
    from cdc_core.schema.table import TableSchema
    from tests.lake.conftest import Columns
    from tests.stage.landed import Row, Source

pytestmark = pytest.mark.spark

BIG = Decimal("12345678901234567890")


def _changed(source: Source, **parts: Any) -> SchemaChange:
    """A DDL behind everything so far."""
    source.schema = dataclasses.replace(source.schema, scn_from=Scn(source.tick()), **parts)
    return SchemaChange(
        source.schema.scn_from, source.next_ordinal(), "alter table …", source.schema
    )


def _images(source: Source) -> list[Row]:
    found = [*source.rows.values(), *(row for state in source.states.values() for row in state.values())]  # fmt: skip
    return list({id(image): image for image in found}.values())


def _killed_after_commits(prepare: Callable[..., None], kills: int) -> None:
    """Take a step as often as it is to be killed, each time right before its second commit, and once more."""
    for _ in range(kills):
        calls = iter(range(100))

        def fence(calls: Iterator[int] = calls) -> None:
            if next(calls) == 1:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            prepare(fence=fence)
    prepare()


@pytest.mark.slow
def test_columns_get_wider_types_with_all_that_the_tables_have(
    open_lake: Callable[..., DeltaLake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    columns: type[Columns],
    changelog: Callable[[TableSchema], list[Row]],
    tmp_path: Path,
) -> None:
    """The key, a decimal, and a column that came with a default a moment ago and becomes text; deletion vectors, clustering and column
    mapping; a kill after each commit; a chunk and windows from before; replays, and a lost mirror."""
    lake, first = open_lake(), source.schema
    paths = [tmp_path / "lake" / "shop" / layer / first.table.path for layer in ("mirror", "changelog")]  # fmt: skip
    tx = source.begin()
    ids = {i: tx.insert(row(i, f"name {i}")) for i in range(1, 8)}
    tx.commit()
    source.chunk(keep=lambda r: r["ID"] < 7).apply(lake)
    late = source.chunk(keep=lambda r: r["ID"] == 7, number=2, scn=source.scn)
    source.low, source.pending, source.ended = source.scn, [], []
    vectors = MaintenanceConfig(deletion_vectors="always", cluster_by_key=True, vacuum_hours=None)
    lake.table(first.table).maintain(vectors, first.key)
    tx = source.begin()
    tx.update(ids[1], {"ID": 10})
    tx.delete(ids[6])
    tx.commit()
    earliest = source.cut()
    earliest.apply(lake)

    tx = source.begin()
    tx.update(ids[2], {"ID": 20, "AMOUNT": Decimal("-0.05")})
    tx.commit()
    changes = [
        _changed(source, columns=(*first.columns, columns.number("COUNT", 9, 0, default="70")))
    ]
    for image in _images(source):
        image["COUNT"] = 70
    tx = source.begin()
    tx.update(ids[3], {"COUNT": 300})
    tx.commit()
    renamed = [dataclasses.replace(one, name={"NAME": "TITLE"}.get(one.name, one.name)) for one in source.schema.columns]  # fmt: skip
    changes.append(_changed(source, columns=tuple(renamed)))
    for image in _images(source):
        image["TITLE"] = image.pop("NAME")
    tx = source.begin()
    tx.update(ids[4], {"TITLE": "between"})
    tx.commit()
    wide = {"ID": (20, 0), "AMOUNT": (20, 4), "COUNT": (None, None)}
    changes.append(
        _changed(
            source,
            columns=tuple(
                dataclasses.replace(one, precision=wide[one.name][0], scale=wide[one.name][1]) if one.name in wide else one
                for one in source.schema.columns
            ),
        )
    )  # fmt: skip
    for image in _images(source):
        image["COUNT"] = str(image["COUNT"])
    tx = source.begin()
    tx.update(ids[5], {"AMOUNT": Decimal("2.1234"), "COUNT": "0.000000001"})
    tx.insert({"ID": BIG, "TITLE": "new", "AMOUNT": None, "NOTE": None, "COUNT": "1" + "0" * 40})
    tx.commit()
    window, schema = source.cut(*changes), source.schema
    for change in changes[:2]:
        prepare_schema(lake, change)
    known = [DeltaTable(str(path)) for path in paths]
    # The properties, the change log's rows; then the mirror's, and its clustering, which Delta forgets.
    _killed_after_commits(lambda **fence: prepare_schema(lake, changes[2], **fence), 2)
    for path, old in zip(paths, known, strict=True):
        table = DeltaTable(str(path))
        apps = ["redolake/shop/shop.orders/0", "redolake/shop/shop.orders/0/chunk/s1/1"]
        assert [table.transaction_version(one) for one in apps] == [earliest.scn_high, 1]
        own = dict(table.metadata().configuration)
        for name, value in old.metadata().configuration.items():
            if name not in ("redolake.schema", "redolake.added", "redolake.widened", "delta.columnMapping.maxColumnId"):  # fmt: skip
                assert own[name] == value
        assert table.version() == old.version() + 2
    version = DeltaTable(str(paths[0])).version()
    prepare_schema(lake, changes[2])
    assert DeltaTable(str(paths[0])).version() == version, "a repeat does nothing"
    wide_from = changes[2].schema.scn_from
    assert lake.table(first.table).mirror_version_at(wide_from) == version, (
        "an idle mirror after VACUUM"
    )
    assert lake.table(first.table).mirror_version_at(wide_from - 1) < version
    kinds = {one.name: str(one.type.type) for one in DeltaTable(str(paths[0])).schema().fields if hasattr(one.type, "type")}  # fmt: skip
    assert (kinds["ID"], kinds["AMOUNT"], kinds["COUNT"]) == ("decimal(20,0)", "decimal(20,4)", "string")  # fmt: skip
    detail = lake._open_session().sql(f"DESCRIBE DETAIL delta.`{paths[0]}`").collect()[0]
    assert detail["clusteringColumns"] == ["ID"]

    late.apply(lake)  # read before the columns became wider
    window.apply(lake, earlier=[first, *(change.schema for change in changes)])
    assert mirror(schema) == source.state(window.scn_high)
    counts = {one["after"]["COUNT"] for one in changelog(schema) if one["after"]}
    assert {"300", "0.000000001"} <= counts
    assert [one.replay(lake).skipped for one in (earliest, window)] == [True, True]
    before = mirror(schema, hidden=True)
    shutil.rmtree(paths[0])
    lake.table(schema.table).rebuild_mirror(schema)
    assert mirror(schema, hidden=True) == before


@pytest.mark.parametrize(
    ("values", "kind", "wide"),
    [
        pytest.param([0, -120, 10**17], pa.int64(), ("NUMBER", 20, 2), id="whole-numbers"),
        pytest.param([0, -120, 10**17], pa.int64(), ("NUMBER", None, None), id="whole-numbers-as-text"),
        pytest.param(["0", "1.50", "-100", "0.0000000001"], pa.decimal128(30, 10), ("NUMBER", None, None), id="as-text"),
        pytest.param(["-1.5", "0.05"], pa.decimal128(10, 2), ("NUMBER", 14, 4), id="more-digits"),
        pytest.param(["-1.5", "0.05", "1" + "0" * 40], pa.string(), ("NUMBER", None, None), id="text-already"),
        pytest.param([datetime(1, 1, 1), datetime(2026, 1, 2, 3, 4, 5, 120000)], pa.timestamp("us"), ("TIMESTAMP(9)", None, 9), id="nine-digits"),
        pytest.param(["2026-01-02 03:04:05.123456789", "-4712-01-01 00:00:00.000000000"], pa.string(), ("TIMESTAMP(9)", None, 9), id="moments-already"),
        pytest.param([0.1, float("inf")], pa.float32(), ("BINARY_DOUBLE", None, None), id="double"),
    ],
)  # fmt: skip
def test_both_forms_of_the_rule_give_the_same_values(
    tmp_path: Path,
    spark_process: None,
    values: list[Any],
    kind: pa.DataType,
    wide: tuple[str, int | None, int | None],
) -> None:
    """Spark's SQL, which rewrites what the tables have, and Arrow, which decodes what comes later."""
    column = Column("C", wide[0], 22, 0, wide[1], wide[2], nullable=True)
    given = [Decimal(one) if pa.types.is_decimal(kind) else one for one in values]
    array = pa.array([*given, None], kind)
    session = small_session(tmp_path)
    literals = ", ".join(f"({sql_literal(one, kind)})" for one in array.to_pylist())
    found = session.sql(
        f"SELECT {exact_sql('C', column)} AS C FROM VALUES {literals} AS t(C)"
    ).toArrow()["C"]
    expected = widened(array, arrow_type(column))
    assert found.type == expected.type
    assert found.to_pylist() == expected.to_pylist()


@pytest.mark.slow
def test_a_table_that_has_not_the_rows_that_it_had_is_an_error(
    open_lake: Callable[..., DeltaLake],
    source: Source,
    row: Callable[..., Row],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = open_lake()
    tx = source.begin()
    tx.insert(row(1))
    tx.commit()
    source.chunk().apply(lake)
    wide = tuple(dataclasses.replace(one, precision=20) if one.name == "ID" else one for one in source.schema.columns)  # fmt: skip
    counts = iter([1, 2])
    monkeypatch.setattr(widening, "_count", lambda *_: next(counts))
    with pytest.raises(RowCountError, match="may not have the rows that it had before"):
        prepare_schema(lake, _changed(source, columns=wide))


@pytest.mark.slow
def test_another_writer_wins(
    open_lake: Callable[..., DeltaLake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    tmp_path: Path,
) -> None:
    """What somebody has committed since the table was read is not overwritten: the step is repeated."""
    lake = open_lake()
    tx = source.begin()
    tx.insert(row(1))
    tx.commit()
    source.chunk().apply(lake)
    path = tmp_path / "lake" / "shop" / "mirror" / source.schema.table.path
    wide = tuple(dataclasses.replace(one, precision=20) if one.name == "ID" else one for one in source.schema.columns)  # fmt: skip
    change = _changed(source, columns=wide)
    calls = iter(range(100))

    def fence() -> None:
        if next(calls) == 2:  # the properties, the change log, and now the mirror
            rows = pa.table(DeltaTable(str(path)).to_pyarrow_table())
            write_deltalake(str(path), rows, mode="append")

    with pytest.raises(CommitConflictError):
        prepare_schema(lake, change, fence=fence)
    prepare_schema(lake, change)
    assert [one["ID"] for one in mirror(source.schema)] == [1, 1]
