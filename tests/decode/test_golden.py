"""Redo text means what the golden pairs say, in the compiled form, the plain form, and among other rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.decode import decode_dml
from cdc_core.decode.plain import decode_statement
from cdc_core.decode.plan import plan_table
from cdc_core.errors import CdcError
from tests.decode.golden_table import GOLDEN, value_from_json

_FILE = Path(__file__).parents[1] / "golden" / "decode.txt"
_OPERATIONS = {"insert": 1, "delete": 2, "update": 3}


@dataclass(frozen=True)
class Pair:
    """One case: its title, the redo text, and what it means."""

    title: str
    sql: str
    meaning: str

    @property
    def is_refusal(self) -> bool:
        return not self.meaning.startswith("{")


def _pairs() -> list[Pair]:
    blocks = _FILE.read_text().split("\n\n")[1:]
    return [Pair(title[2:], *rest) for title, *rest in map(str.splitlines, blocks)]


PAIRS = _pairs()
CHANGES = [pytest.param(pair, id=pair.title) for pair in PAIRS if not pair.is_refusal]
REFUSALS = [pytest.param(pair, id=pair.title) for pair in PAIRS if pair.is_refusal]


def _meaning(pair: Pair) -> tuple[int, dict[str, Any] | None, dict[str, Any] | None, list[str]]:
    meaning = json.loads(pair.meaning)
    before, after = (
        None
        if meaning.get(side) is None
        else {name: value_from_json(name, value) for name, value in meaning[side].items()}
        for side in ("before", "after")
    )
    carried = before if after is None else after
    assert carried is not None
    absent = [name for name in GOLDEN.column_names if name not in carried]
    return _OPERATIONS[meaning["op"]], before, after, absent


def _filled(image: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if image is None else {name: image.get(name) for name in GOLDEN.column_names}


def test_there_are_enough_pairs() -> None:
    assert len(PAIRS) >= 120


@pytest.mark.parametrize("pair", CHANGES)
def test_decode_dml_gives_the_change(pair: Pair) -> None:
    op, before, after, absent = _meaning(pair)
    decoded = decode_dml(pa.array([pair.sql], pa.large_string()), GOLDEN)
    assert decoded.op.to_pylist() == [op]
    assert repr(decoded.before.to_pylist()) == repr([_filled(before)])
    assert repr(decoded.after.to_pylist()) == repr([_filled(after)])
    assert decoded.absent.to_pylist() == [absent]


@pytest.mark.parametrize("pair", CHANGES)
def test_the_plain_form_gives_the_change(pair: Pair) -> None:
    op, before, after, absent = _meaning(pair)
    change = decode_statement(pair.sql, plan_table(GOLDEN), row=0)
    assert (change.op, list(change.absent)) == (op, absent)
    assert _comparable(change.before) == _comparable(before)
    assert _comparable(change.after) == _comparable(after)


def _comparable(image: dict[str, Any] | None) -> dict[str, Any] | None:
    """NaN made equal to itself."""
    if image is None:
        return None
    return {name: "NaN" if value != value else value for name, value in image.items()}


def test_all_changes_decode_alike_in_one_batch() -> None:
    """A row's neighbours do not change its meaning, whatever came before it."""
    pairs = [pair for pair in PAIRS if not pair.is_refusal]
    decoded = decode_dml(pa.array([pair.sql for pair in pairs], pa.string()), GOLDEN)
    meanings = [_meaning(pair) for pair in pairs]
    assert decoded.op.to_pylist() == [op for op, *_rest in meanings]
    for side, number in (("before", 1), ("after", 2)):
        expected = [_filled(meaning[number]) for meaning in meanings]  # type: ignore[arg-type]
        assert repr(getattr(decoded, side).to_pylist()) == repr(expected)
    assert decoded.absent.to_pylist() == [meaning[3] for meaning in meanings]
    decoded.before.validate(full=True)
    decoded.after.validate(full=True)


@pytest.mark.parametrize("pair", REFUSALS)
def test_decode_dml_refuses(pair: Pair) -> None:
    """The error is of the named type, names row and column, says what to do, and shows no value."""
    name, _, facts = pair.meaning.partition(" ")
    good = 'insert into "S"."T"("ID") values (\'1\');'
    with pytest.raises(CdcError) as raised:
        decode_dml(pa.array([good, pair.sql, good], pa.large_string()), GOLDEN)
    assert type(raised.value).__name__ == name
    assert raised.value.facts["row"] == 1
    assert raised.value.facts.items() >= json.loads(facts).items()
    assert raised.value.hint
