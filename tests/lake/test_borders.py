"""Whatever landing, stage and the lake ask of delta-rs or of Arrow's files, a failure is one of our errors: no call stands outside of a block that says what it means."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException

from cdc_core.delta.errors import at_work
from cdc_core.errors import ANY_TABLE, MIRROR_HINT, CdcError, LakeError, LandingDamagedError
from cdc_core.model.identifiers import TableId
from cdc_core.spark.session import translated

CORE = Path(__file__).parents[2] / "cdc_core"
MODULES = sorted(
    path
    for room in ("delta", "lake", "spark", "landing", "stage", "steps", "change_stream", "capture")
    for path in (CORE / room).rglob("*.py")
)

CALLS = {
    "DeltaTable", "QueryBuilder", "write_deltalake",
    "ParquetFile", "ParquetWriter", "read_table", "write_table",
    "open_input_file", "open_input_stream", "open_output_stream",
    "create_dir", "delete_dir", "delete_file", "get_file_info", "move",
}  # fmt: skip
"""What reads or writes, by the last part of its name."""

BLOCKS = (
    "at_work(", "committing(", "_committing(", "reading_layer(", ".reading(", "reading_chunk(", "reading_file(", "storing(",
)  # fmt: skip

INSIDE = {
    # Their callers stand in a block, in the same module.
    "_require_files", "write_file",  # appending.py
    "files_within",  # added_files.py: lake/rows/logged_changes.py asks in reading_layer
    "EncodedRows.__init__",  # column_chunks.py: in memory
    "write_patched",  # patched_files.py: MirrorFiles.reading
    "_copy_bytes",  # placed_files.py: its callers stand in storing
    "_columns",  # checkpoints.py: reading_file
    "_batches_of_mirror",  # in_process.py: ArrowComparison.reading
    "_plain_files",  # spark_reading.py: layer_sql
    "_execute",  # logged_changes.py: reading_layer
    "_read",  # mirror_files.py: MirrorFiles.read
    "MirrorFiles.opened",  # mirror/files.py: MirrorFiles.reading
    "HistoryFiles._batches",  # history/files.py
    "read_vector", "write_vectors",  # deletion_vectors.py: MirrorFiles.reading
    "_content",  # log_files.py: reading_file
    "_remove",  # log_retention.py: clean_up_log
    "write_staged", "_opened",  # staging.py
    "_PartFiles._flush",  # spread_changes.py: spread
    "LoggedChanges._file",  # logged_changes.py: its caller opens files of the lake, in reading_layer
    "_train",  # class_archive.py: a JVM that ends there trains nobody
}  # fmt: skip


def unguarded(path: Path) -> Iterator[str]:
    """The calls of a module that stand in no such block."""
    tree = ast.parse(path.read_text())
    guarded: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            managers = [ast.unparse(item.context_expr) for item in node.items]
            if any(block in one for one in managers for block in BLOCKS):
                guarded |= {one for part in (*node.body, *node.items) for one in ast.walk(part)}
        if isinstance(node, ast.Try) and any(
            "OSError" in ast.unparse(one) for one in node.handlers
        ):
            guarded |= {one for part in node.body for one in ast.walk(part)}
        if isinstance(node, ast.FunctionDef) and node.name in INSIDE:
            guarded |= set(ast.walk(node))
        if isinstance(node, ast.ClassDef):
            for one in node.body:
                if isinstance(one, ast.FunctionDef) and f"{node.name}.{one.name}" in INSIDE:
                    guarded |= set(ast.walk(one))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node not in guarded:
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in CALLS:
                yield f"{path.name}:{node.lineno}: {ast.unparse(node)[:80]}"


def test_each_call_says_what_its_failure_means() -> None:
    assert [one for path in MODULES for one in unguarded(path)] == []


def test_each_exemption_is_in_use() -> None:
    """A name that nothing has any more would hide the next function that gets it."""
    there: set[str] = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                there.add(node.name)
            if isinstance(node, ast.ClassDef):
                there |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}  # fmt: skip
    assert there >= INSIDE


@pytest.mark.parametrize(
    ("error", "said", "facts"),
    [
        pytest.param(FileNotFoundError(2, "No such file", "lake/part-1.parquet"), "a file of the Delta table is missing", {"file": "part-1.parquet"}, id="a-file-by-arrow"),
        pytest.param(Exception("External error: Object at location /l/part-2.parquet not found: No such file or directory (os error 2)"), "a file of the Delta table is missing", {"file": "part-2.parquet"}, id="a-file-by-a-query"),
        pytest.param(DeltaError("Kernel error: File not found: file:///l/deletion_vector_4b.bin"), "a deletion vector of the Delta table is missing", {"file": "deletion_vector_4b.bin"}, id="a-vector"),
        pytest.param(DeltaError("External error: Transaction failed: Unsupported table features required: [TypeWidening, RowTracking]"), "has a feature that Redolake cannot work with", {"features": "TypeWidening, RowTracking"}, id="features"),
        pytest.param(DeltaError("Kernel error: Unsupported: Feature 'of-tomorrow' is not supported"), "has a feature that Redolake cannot work with", {"features": "of-tomorrow"}, id="a-feature-of-tomorrow"),
        pytest.param(pa.ArrowInvalid("Parquet magic bytes not found in footer"), "a file of the Delta table is damaged", {"cause": "ArrowInvalid"}, id="cut"),
        pytest.param(pa.ArrowKeyError("stats"), "a file of the Delta table is damaged", {"cause": "ArrowKeyError"}, id="other-columns"),
        pytest.param(type("PanicException", (BaseException,), {})("index out of bounds"), "delta-rs refused", {"cause": "PanicException"}, id="delta-rs-gives-up"),
        pytest.param(OSError(28, "No space left on device"), "storage refuses", {}, id="a-full-disk"),
    ],
)  # fmt: skip
def test_the_cause_decides(error: BaseException, said: str, facts: dict[str, str]) -> None:
    table = TableId("HR", "EMP")
    with (
        pytest.raises(CdcError, match=said) as caught,
        at_work("reading", {"table": table}, hint=MIRROR_HINT),
    ):
        raise error
    assert caught.value.facts.items() >= facts.items()
    assert caught.value.facts["table"] == table
    assert ANY_TABLE not in caught.value.hint
    assert isinstance(caught.value, LakeError) or said == "storage refuses"


@pytest.mark.parametrize("error", [pa.ArrowMemoryError("malloc"), KeyError("ours"), ValueError("ours")])  # fmt: skip
def test_what_is_no_failure_of_theirs_stays_what_it_is(error: Exception) -> None:
    with pytest.raises(type(error)), at_work("reading", {}):
        raise error


@pytest.mark.parametrize(
    ("path", "error", "command"),
    [
        pytest.param("/l/src/changelog/SHOP.T/part-1.parquet", LakeError, "table rebuild --from-landing", id="change-log"),
        pytest.param("/l/src/mirror/SHOP.T/part-2.parquet", LakeError, "table rebuild ", id="mirror"),
        pytest.param("/l/src/mirror/SHOP.T/ab/deletion_vector_4b.bin", LakeError, "table rebuild ", id="vector"),
        pytest.param("/landing/src/redo-1.parquet", LandingDamagedError, "capture the window", id="landing"),
    ],
)  # fmt: skip
def test_a_file_that_spark_cannot_read_says_which_command_gives_it_back(
    path: str, error: type[CdcError], command: str
) -> None:
    condition = "[FAILED_READ_FILE.FILE_NOT_EXIST]"
    text = f"Job aborted: SparkException: {condition} Encountered error while reading file file://{path}."
    with pytest.raises(error) as caught, translated("deriving", table=TableId("SHOP", "T")):
        raise PySparkException(text)
    assert command in caught.value.hint
