"""Run by dlt's own environment: bring one table of Oracle into Delta with dlt's ``sql_database``
source, as its documentation does.

Arguments: SQLAlchemy's address of the database, schema, table, folder, backend. Prints the seconds
of the run, without imports.
"""

import sys
import time

import dlt
from dlt.sources.sql_database import sql_table


def main() -> None:
    """Run the pipeline once."""
    address, schema, table, folder, backend = sys.argv[1:]
    started = time.perf_counter()
    source = sql_table(
        credentials=address, schema=schema, table=table, backend=backend, chunk_size=50_000
    )
    pipeline = dlt.pipeline(
        "snapshot",
        pipelines_dir=f"{folder}/state",
        destination=dlt.destinations.filesystem(f"file://{folder}/lake"),
        dataset_name="bench",
    )
    pipeline.run(source, table_format="delta", write_disposition="replace")
    print(time.perf_counter() - started)


if __name__ == "__main__":
    main()
