"""Every error says what to do next, in one way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_core import errors
from cdc_core.errors import (
    ANY_TABLE,
    DEBUG_HINT,
    RESNAPSHOT_HINT,
    CdcError,
    DecodeError,
    LakeError,
    TableStoppedError,
)
from cdc_core.model.identifiers import TableId
from cdc_core.oracle.ora_codes import cdc_error
from cdc_core.steps.table_errors import way_back

ROOT = Path(__file__).parents[1]
CLASSES = {
    name
    for name, one in vars(errors).items()
    if isinstance(one, type) and issubclass(one, CdcError)
}
ODD = TableId("SHOP", "odd name")


def _raised() -> Iterator[tuple[str, ast.Call]]:
    for folder in ("cdc_core", "diagnosis", "assets", "pipelines", "redolake"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                    if name in CLASSES:
                        yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def test_every_error_has_a_hint() -> None:
    calls = list(_raised())
    assert len(calls) > 200
    hints = [
        (where, next((word.value for word in call.keywords if word.arg == "hint"), None))
        for where, call in calls
    ]
    assert [
        where
        for where, hint in hints
        if hint is None or (isinstance(hint, ast.Constant) and not hint.value)
    ] == []


@pytest.mark.parametrize("text", ["ORA-00001: unique constraint", "ORA-99999: never seen", "odd"])
def test_an_error_that_is_not_known_has_a_hint(text: str) -> None:
    assert cdc_error(Exception(text)).hint


def test_a_hint_names_the_errors_table_as_a_shell_takes_it() -> None:
    error = DecodeError("it happened", hint=RESNAPSHOT_HINT, table=ODD)
    assert f"`redolake table resnapshot {ODD.argument}`" in error.hint
    assert ANY_TABLE in DecodeError("it happened", hint=RESNAPSHOT_HINT).hint


@pytest.mark.parametrize(
    ("hint", "commands"),
    [
        pytest.param(RESNAPSHOT_HINT, ["resnapshot"], id="the-hint-is-the-way"),
        pytest.param(DEBUG_HINT, ["resume", "resnapshot"], id="the-hint-is-a-first-step"),
        pytest.param(
            "Repair it, then run `redolake table resume OWNER.TABLE`.",
            ["resume"],
            id="the-hint-ends-with-the-way",
        ),
    ],
)
def test_a_stopped_table_has_one_way_back(hint: str, commands: list[str]) -> None:
    for error in (LakeError("it happened", hint=hint), LakeError("it", hint=hint, table=ODD)):
        text = way_back(ODD, error)
        parts = text.split("`redolake table ")[1:]
        assert [part.split()[0] for part in parts] == commands
        assert all(ODD.argument in part for part in parts)
        assert ANY_TABLE not in text
        assert str(TableStoppedError("it stopped", hint=text, table=ODD)).count("Then `") <= 1
