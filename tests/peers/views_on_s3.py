"""DuckDB with its extensions for Delta and S3 runs the statements of its views and says their rows: ``ENDPOINT SQL…``, by a Python of its own."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main(endpoint: str, statements: list[str]) -> None:
    """Print the rows of each view."""
    with import_module("duckdb").connect() as database:
        for name in ("httpfs", "delta"):
            extension = import_module(f"duckdb_extension_{name}")
            [file] = Path(str(extension.__file__)).parent.rglob("*.duckdb_extension")
            database.execute(f"LOAD '{file}'")
        database.execute(
            "CREATE SECRET (TYPE s3, KEY_ID 'test', SECRET 'test', REGION 'us-east-1',"
            f" ENDPOINT '{endpoint}', URL_STYLE 'path', USE_SSL false)"
        )
        for sql in statements:
            database.execute(sql)
            print(database.execute('SELECT "ID", "NAME" FROM shop_t ORDER BY 1').fetchall())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
