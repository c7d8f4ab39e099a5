"""A Delta table with a history that chance makes: commits of ours beside those of delta-rs and Spark, and the rows that it must have."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.schema import Field, PrimitiveType

from cdc_core.delta.added_files import AddedFile, read_added
from cdc_core.delta.altering import commit_change, takes_changes
from cdc_core.delta.appending import (
    CommitInfo,
    FileChanges,
    MarkedFile,
    NewFile,
    OldFile,
    commit_files,
    create_table,
    write_file,
)
from cdc_core.delta.deletion_vectors import (
    Deleted,
    places_of,
    read_vector,
    with_places,
    write_vectors,
)
from cdc_core.delta.history import filesystem_of, read_log
from cdc_core.delta.log_files import log_names
from cdc_core.delta.log_retention import clean_up_log
from cdc_core.errors import CommitConflictError

Row = tuple[Any, ...]

_ROWS_MAX = 12


class History:
    """A table of ID, NAME and columns that come later. ``rows`` is what it must have, by ID.

    Args:
        path: Its folder.
        chance: What decides.
        properties: Properties of the table.
        spark: A session, for commits of Spark.
    """

    def __init__(
        self, path: str, chance: Random, properties: dict[str, str], spark: Any = None
    ) -> None:
        self.path, self.rows, self.columns = path, dict[int, Row](), ["NAME"]
        self.done: list[str] = []
        self._chance, self._spark, self._next = chance, spark, 0
        every = {"delta.checkpointInterval": "4"}
        create_table(path, self._schema, every | properties, doing="creating", facts={})

    @property
    def wanted(self) -> list[Row]:
        """The rows, as readers give them."""
        return sorted((key, *values) for key, values in self.rows.items())

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([("ID", pa.int64()), *((name, pa.string()) for name in self.columns)])

    # -- commits of ours ---------------------------------------------------------------------------------------------

    def append(self) -> None:
        """New rows."""
        rows = self._new()
        self._commit(FileChanges(added=[self._written(rows)]))
        self.rows |= rows

    def replace(self) -> None:
        """Copy-on-write: a file goes, and some of its rows come in another one, changed."""
        if (found := self._file()) is None:
            return
        old, live = found
        kept = {key: self._values() for key in live.values() if self._chance.random() < 0.6}
        added = [self._written(kept)] if kept else []
        self._commit(FileChanges(added=added, replaced=[old]))
        for key in live.values():
            del self.rows[key]
        self.rows |= kept

    def mark(self) -> None:
        """Merge-on-read: rows of a file are deleted by its vector, and others come."""
        found = self._file()
        if found is None or "deletionVectors" not in self._features:
            return
        old, live = found
        gone = {at: key for at, key in live.items() if self._chance.random() < 0.4}
        if not gone:
            return
        filesystem, root = filesystem_of(self.path)
        said = self._added()[old.name]
        before = read_vector(filesystem, root, old.vector) if old.vector else Deleted()
        deleted = with_places(before, pa.array(sorted(gone)).to_numpy())
        vectors, file = write_vectors(filesystem, root, {old.name: deleted})
        marked = MarkedFile(old, said.statistics or "{}", vectors[old.name])
        rows = self._new()
        self._commit(FileChanges(added=[self._written(rows)], marked=[marked], vectors=file))
        for key in gone.values():
            del self.rows[key]
        self.rows |= rows

    def say_nothing(self) -> None:
        """A commit that changes no file."""
        self._commit(FileChanges())

    def try_again(self) -> None:
        """A commit that is there, and one behind a version that is not the newest: both are refused."""
        log = read_log(self.path)
        if log is None or not log.transactions:
            return
        files = FileChanges(added=[self._written(self._new())])
        [(app, version)] = log.transactions.items()
        with pytest.raises(CommitConflictError):
            commit_files(self.path, files, _info((app, version)), fence=lambda: None)
        with pytest.raises(CommitConflictError):
            commit_files(self.path, files, _info(None), fence=lambda: None, version=log.version - 1)

    def clean_up(self) -> None:
        """What no version of now needs leaves the log."""
        clean_up_log(self.path, time.time(), lambda: None)

    def alter(self) -> None:
        """A column behind the others, by a commit of the metadata alone, where we know all that the table asks for."""
        log = read_log(self.path)
        assert log is not None
        if takes_changes(self.path, log):
            field = pa.field(self._new_column(), pa.string(), metadata={"comment": "VARCHAR2(9)"})
            change = lambda table: table.with_columns([field])  # noqa: E731
            commit_change(self.path, "ADD COLUMNS", change, _info(None), fence=lambda: None)

    def rename(self) -> None:
        """A column gets a name that is new, or was another one's."""
        log = read_log(self.path)
        assert log is not None
        if log.is_mapped and takes_changes(self.path, log):
            old, new = self._renamed()
            change = lambda table: table.renamed(old, new)  # noqa: E731
            commit_change(self.path, "RENAME COLUMN", change, _info(None), fence=lambda: None)

    def map_columns(self) -> None:
        """Names of columns are those of files no more."""
        change = lambda table: table.mapped()  # noqa: E731
        commit_change(self.path, "SET TBLPROPERTIES", change, _info(None), fence=lambda: None)

    # -- commits of delta-rs -----------------------------------------------------------------------------------------

    def rs_append(self) -> None:
        rows = self._new()
        write_deltalake(self.path, self._table(rows), mode="append")
        self.rows |= rows

    def rs_delete(self) -> None:
        DeltaTable(self.path).delete('"ID" % 5 = 1')
        self.rows = {key: values for key, values in self.rows.items() if key % 5 != 1}

    def rs_optimize(self) -> None:
        DeltaTable(self.path).optimize.compact()

    def rs_vacuum(self) -> None:
        DeltaTable(self.path).vacuum(0, dry_run=False, enforce_retention_duration=False)

    def rs_alter(self) -> None:
        name = self._new_column()
        DeltaTable(self.path).alter.add_columns([Field(name, PrimitiveType("string"))])

    def rs_checkpoint(self) -> None:
        DeltaTable(self.path).create_checkpoint()

    # -- commits of Spark --------------------------------------------------------------------------------------------

    def spark_insert(self) -> None:
        rows = self._new()
        frame = self._spark.createDataFrame(self._table(rows))
        frame.write.format("delta").mode("append").save(self.path)
        self.rows |= rows

    def spark_delete(self) -> None:
        self._sql("DELETE FROM {} WHERE ID % 7 = 3")
        self.rows = {key: values for key, values in self.rows.items() if key % 7 != 3}

    def spark_update(self) -> None:
        self._sql(f"UPDATE {{}} SET {self.columns[0]} = 'by Spark' WHERE ID % 4 = 2")
        for key, values in self.rows.items():
            if key % 4 == 2:
                self.rows[key] = ("by Spark", *values[1:])

    def spark_optimize(self) -> None:
        self._sql("OPTIMIZE {}")

    def spark_vacuum(self) -> None:
        self._spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        self._sql("VACUUM {} RETAIN 0 HOURS")

    def spark_alter(self) -> None:
        self._sql(f"ALTER TABLE {{}} ADD COLUMNS ({self._new_column()} STRING)")

    def spark_rename(self) -> None:
        old, new = self._renamed()
        self._sql(f"ALTER TABLE {{}} RENAME COLUMN {old} TO {new}")

    def spark_drop(self) -> None:
        """Of the columns that came later, the last one goes."""
        if len(self.columns) > 1:
            self._sql(f"ALTER TABLE {{}} DROP COLUMN {self.columns.pop()}")
            self.rows = {key: values[:-1] for key, values in self.rows.items()}

    # -- what they need ----------------------------------------------------------------------------------------------

    def step(self, names: Sequence[str]) -> str:
        """Do one of these, and say which."""
        name = self._chance.choice(names)
        getattr(self, name)()
        self.done.append(name)
        return name

    @property
    def _features(self) -> frozenset[str]:
        log = read_log(self.path)
        return frozenset() if log is None else frozenset(log.writer_features)

    def _sql(self, text: str) -> None:
        self._spark.sql(text.format(f"delta.`{self.path}`"))

    def _values(self) -> Row:
        return tuple(f"{name} {self._chance.random():.6f}" for name in self.columns)

    def _new(self) -> dict[int, Row]:
        count = self._chance.randrange(1, _ROWS_MAX)
        self._next += count
        return {key: self._values() for key in range(self._next - count, self._next)}

    def _new_column(self) -> str:
        self.columns.append(self._new_name())
        self.rows = {key: (*values, None) for key, values in self.rows.items()}
        return self.columns[-1]

    def _new_name(self) -> str:
        """One that no column has, but one of a file may have had."""
        names = (f"C{number}" for number in count(1))
        return next(name for name in names if name not in self.columns)

    def _renamed(self) -> tuple[str, str]:
        """One of the columns, and what it is called now."""
        at, new = self._chance.randrange(len(self.columns)), self._new_name()
        old, self.columns[at] = self.columns[at], new
        return old, new

    def _table(self, rows: dict[int, Row]) -> pa.Table:
        columns = list(zip(*((key, *values) for key, values in rows.items()), strict=True))
        return pa.Table.from_arrays(list(map(pa.array, columns)), schema=self._schema)

    def _written(self, rows: dict[int, Row]) -> NewFile:
        file = write_file(self.path, self._schema, self._table(rows).to_batches(), ["ID"])
        assert file is not None
        return file

    def _commit(self, files: FileChanges) -> None:
        log = read_log(self.path)
        assert log is not None
        done = log.transactions.get("app", 0)
        info = _info(("app", done + 1))
        commit_files(self.path, files, info, fence=lambda: None, version=log.version)

    def _added(self) -> dict[str, AddedFile]:
        filesystem, root = filesystem_of(self.path)
        log = read_log(self.path)
        assert log is not None
        return dict(read_added(filesystem, root, log_names(filesystem, root), log.version))

    def _file(self) -> tuple[OldFile, dict[int, int]] | None:
        """One of the files, and the IDs of its rows by their places."""
        added = self._added()
        names = sorted(name for name in added if "%" not in name)
        if not names:
            return None
        name = self._chance.choice(names)
        filesystem, root = filesystem_of(self.path)
        vector, file = added[name].vector, Path(self.path) / name
        gone = set(places_of(read_vector(filesystem, root, vector)).tolist()) if vector else set()
        ids = pq.read_table(file, columns=["ID"])["ID"].to_pylist()
        live = {at: key for at, key in enumerate(ids) if at not in gone}
        return OldFile(name, file.stat().st_size, vector), live


def _info(txn: tuple[str, int] | None) -> CommitInfo:
    return CommitInfo(doing="changing a table", metadata='{"kind": "test"}', txn=txn)


Reader = Callable[[str], list[Row]]
