"""From where does Spark read a Delta table of ours: its files, or Delta's own reader?"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.lake.rows.spark_reading import PLAIN_FILES_MAX, layer_sql
from cdc_core.lake.table_context import TableWork, no_fence
from cdc_core.lake.tables import delta
from cdc_core.stage.layout import mirror_schema
from tests.delta.vectors import with_vectors
from tests.stage.landed import orders_schema

COLUMNS = mirror_schema(orders_schema())


@dataclass
class Session:
    """Stands for Spark's: it notes of what views were made."""

    views: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    @property
    def read(self) -> Any:
        return Reader(self)


@dataclass
class Reader:
    session: Session
    columns: str = ""
    files: tuple[str, ...] = ()

    def schema(self, columns: str) -> Reader:
        return Reader(self.session, columns)

    def parquet(self, *files: str) -> Reader:
        return Reader(self.session, self.columns, files)

    def createOrReplaceTempView(self, name: str) -> None:
        self.session.views[name] = (self.columns, self.files)


def work_in(folder: Path) -> TableWork:
    return TableWork(str(folder), "shop", orders_schema().table, 0, no_fence, lambda: None)


def written(work: TableWork, files: int = 1, **options: Any) -> None:
    for _ in range(files):
        write_deltalake(work.mirror, COLUMNS.empty_table(), mode="append", **options)
        row = dict.fromkeys(COLUMNS.names) | {"ID": 1}
        write_deltalake(work.mirror, pa.Table.from_pylist([row], COLUMNS), mode="append", **options)


def test_a_few_plain_files_are_read_as_they_are(tmp_path: Path) -> None:
    """Those of the newest version alone, with the columns that are asked for."""
    work, session = work_in(tmp_path), Session()
    written(work, 2)
    DeltaTable(work.mirror).optimize.compact()
    view = layer_sql(work, session, "mirror", COLUMNS)
    assert layer_sql(work, session, "mirror", pa.schema([COLUMNS.field("ID")])) != view
    [columns, files] = session.views[view]
    assert columns.startswith("`ID` BIGINT, `NAME` STRING")
    [file] = DeltaTable(work.mirror).file_uris()
    assert [Path(one) for one in files] == [Path(file)]


@pytest.mark.parametrize(
    "why", ["vectors", "partitions", "many-files", "no-files", "a-pattern", "no-table", "a-clone"]
)
def test_everything_else_is_delta_s(tmp_path: Path, why: str) -> None:
    work, session = work_in(tmp_path / ("a*" if why == "a-pattern" else "a")), Session()
    if why == "no-files":
        write_deltalake(work.mirror, COLUMNS.empty_table())
    elif why != "no-table":
        partitions = {"partition_by": ["NAME"]} if why == "partitions" else {}
        written(work, PLAIN_FILES_MAX + 1 if why == "many-files" else 1, **partitions)
    if why == "vectors":
        with_vectors(work.mirror)
    if why == "a-clone":
        [log] = Path(work.mirror, "_delta_log").glob("*1.json")
        log.write_text(log.read_text().replace('"path":"', f'"path":"{tmp_path}/'))
    assert layer_sql(work, session, "mirror", COLUMNS) == delta(work.mirror)
    assert not session.views
