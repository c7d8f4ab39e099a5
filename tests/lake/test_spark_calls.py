"""Whatever a process asks of Spark, the JVM may be gone: no call to it is made where nobody says what that means."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdc_core.errors import SparkUnavailableError
from cdc_core.spark.session import configure

CORE = Path(__file__).parents[2] / "cdc_core"
MODULES = sorted(path for room in ("lake", "spark") for path in (CORE / room).rglob("*.py"))
CALLS = {
    "createOrReplaceTempView", "createDataFrame", "collect", "localCheckpoint", "mapInArrow", "sql", "toArrow",
}  # fmt: skip
ELSEWHERE = {
    "_collected", "_make_oracle_rows", "_make_wanted",  # comparison.py: their callers say it
    "of_frame",  # sent.py: so do theirs
    "_train",  # training.py: a JVM that ends there trains nobody
}  # fmt: skip


def unguarded(path: Path) -> Iterator[str]:
    """The calls to Spark of a module that stand in no ``with translated(…)`` and no commit."""
    tree = ast.parse(path.read_text())
    guarded: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            managers = " ".join(ast.unparse(item.context_expr) for item in node.items)
            if "translated(" in managers or ".commit(" in managers:
                guarded |= {one for part in node.body for one in ast.walk(part)}
        if isinstance(node, ast.FunctionDef) and node.name in ELSEWHERE:
            guarded |= set(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked = node.func.attr in CALLS or ast.unparse(node.func).endswith("conf.set")
            if asked and node not in guarded:
                yield f"{path.name}:{node.lineno}: {ast.unparse(node)[:80]}"


def test_each_call_says_what_a_lost_jvm_means() -> None:
    assert [one for path in MODULES for one in unguarded(path)] == []


def test_a_setting_that_meets_no_jvm_is_our_error() -> None:
    def refuse(_name: str, _value: str) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    session: Any = SimpleNamespace(conf=SimpleNamespace(set=refuse))
    with pytest.raises(SparkUnavailableError):
        configure(session, {"spark.sql.shuffle.partitions": "2"})
