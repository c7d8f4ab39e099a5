"""What do readers without Spark make of Delta tables with features? Run by a Python of its own, which has deltalake, DuckDB with its Delta extension,
and Polars: prints, as JSON, per reader and table ``right``, ``wrong`` or ``refused``.

Arguments: a folder of tables; the rows that each has are in ``rows.json`` there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

Rows = list[dict[str, Any]]


def by_dataset(path: str) -> Rows:
    rows: Rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    return rows


def by_query(path: str) -> Rows:
    found = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t").read_all()
    rows: Rows = pa.table(found).to_pylist()
    return rows


def changes_by_delta_rs(path: str) -> Rows:
    found = pa.table(DeltaTable(path).load_cdf(starting_version=0).read_all())
    kept: Rows = [row for row in found.to_pylist() if row["_change_type"] == "delete"]
    return kept


def by_duckdb(path: str) -> Rows:
    duckdb, extension = map(import_module, ("duckdb", "duckdb_extension_delta"))
    [file] = Path(str(extension.__file__)).parent.rglob("*.duckdb_extension")
    with duckdb.connect() as database:
        database.execute(f"LOAD '{file}'")
        found = database.execute(f"SELECT * FROM delta_scan('file://{path}')")
        names = [one[0] for one in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def by_polars(path: str) -> Rows:
    rows: Rows = import_module("polars").scan_delta(path).collect().to_dicts()
    return rows


READERS: dict[str, Callable[[str], Rows]] = {
    "delta-rs, to_pyarrow_table": by_dataset,
    "delta-rs, QueryBuilder": by_query,
    "DuckDB": by_duckdb,
    "Polars": by_polars,
}


def verdict(read: Callable[[str], Rows], path: str, wanted: Rows) -> tuple[str, str]:
    """What a reader makes of a table, and its error."""
    try:
        found = read(path)
    except BaseException as error:
        return "refused", f"{type(error).__name__}: {error}"[:200]
    names = list(wanted[0])
    told, own = (
        sorted(([row.get(name) for name in names] for row in rows), key=repr)
        for rows in (found, wanted)
    )
    return ("right" if told == own else "wrong"), ""


def main(folder: Path) -> None:
    wanted = json.loads((folder / "rows.json").read_text())
    found = {}
    for name, rows in wanted.items():
        path = str(folder / name)
        found[name] = {reader: verdict(read, path, rows) for reader, read in READERS.items()}
        if name == "change_data_feed":
            gone = [{"ID": 2, "NAME": "two"}]
            found["changes of the feed"] = {
                "delta-rs, QueryBuilder": verdict(changes_by_delta_rs, path, gone)
            }
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
