"""What a `redolake run` with nothing to do does not import: it starts often, and imports are most of what it takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CONFIG = """
type: assets.components.OracleCdc
attributes:
  name: shop
  oracle: {dsn: localhost:1521/SHOP, user: capture, password_env: SHOP_PASSWORD}
  tables: [{name: SHOP.ORDERS}]
  landing: {type: local, path: landing}
  lake: {path: lake}
  state: {url: "sqlite:///state.db"}
"""

CODE = """
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.commands.shared import SourceFile, opened

folder = Path(sys.argv[1])
with opened(SourceFile(folder / "redolake.yaml"), oracle=False) as pipeline:
    from cdc_core.landing.ledger import ledger_batch, ledger_from_landing
    from cdc_core.model.scn import ScnWindow

    pq.write_table(pa.Table.from_batches([ledger_batch([])]), folder / "t.parquet")
    landing = SimpleNamespace(local_paths=lambda _folder, names: [folder / name for name in names])
    window = ScnWindow(1, 2)
    manifest = SimpleNamespace(source="shop", window=window, transactions_file="t.parquet")
    assert ledger_from_landing(landing, manifest) == []
    pa.array(["a list"])
heavy = ("pandas", "pyarrow.dataset", "sqlglot", "deltalake", "duckdb", "pyspark", "dagster", "boto3")
print([name for name in heavy if name in sys.modules])
"""


def test_an_idle_run_imports_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    """Neither its modules nor what it reads bring them: the ledger of a window, and arrays of lists."""
    (tmp_path / "redolake.yaml").write_text(CONFIG)
    command = [sys.executable, "-c", CODE, str(tmp_path)]
    environ = {**os.environ, "SHOP_PASSWORD": "secret"}
    found = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (found.stdout.strip(), found.returncode) == ("[]", 0), found.stderr[-1000:]


def test_who_asks_for_pandas_gets_it() -> None:
    """A process that makes its arrays without pandas still converts to it."""
    code = (
        "import pyarrow as pa\n"
        "from pipelines.without_pandas import make_arrays_without_pandas\n"
        "make_arrays_without_pandas()\n"
        "frame = pa.table({'a': [1, 2]}).to_pandas()\n"
        "print(pa.array(frame['a']).to_pylist())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[1, 2]"
