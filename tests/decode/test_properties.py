"""What is printed is decoded; the compiled form agrees with the plain form on any text; damage is refused, never guessed."""

from __future__ import annotations

import random
import struct
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc_core.decode import decode_dml
from cdc_core.decode.batch import scan_batch
from cdc_core.decode.plain import decode_statement
from cdc_core.decode.plan import plan_table
from cdc_core.errors import CdcError, DecodeError, SchemaMismatchError
from tests.decode.golden_table import GOLDEN
from tests.decode.redo_printer import Row, Statement, statements
from tests.decode.test_golden import PAIRS

_PLAN = plan_table(GOLDEN)
_LITERALS = {
    "V": "'it''s'",
    "NV": r"UNISTR('\00E9x') || 'c'",
    "I": "'-123'",
    "N": "'-12.50'",
    "D": "TO_DATE('2021-06-30 12:34:56', 'YYYY-MM-DD HH24:MI:SS')",
    "T9": "TO_TIMESTAMP('2021-06-30 12:34:56.123456789')",
    "TZ": "TO_TIMESTAMP_TZ('2021-06-30 12:34:56.123456 +02:00')",
    "YM": "TO_YMINTERVAL('+000000012-03')",
    "DS": "TO_DSINTERVAL('-000000001 04:03:02.500000000')",
    "R": "HEXTORAW('00FF')",
    "B": "EMPTY_BLOB()",
}
_SETTINGS = settings(suppress_health_check=list(HealthCheck))


def _exact(value: Any) -> Any:
    """Floats by their bits, so that -0 is not 0 and NaN is NaN."""
    return struct.pack("<d", value) if isinstance(value, float) else value


def _filled(image: Row | None) -> Row | None:
    return (
        None if image is None else {name: _exact(image.get(name)) for name in GOLDEN.column_names}
    )


def _exactly(images: pa.StructArray) -> list[Row | None]:
    return [_filled(image) for image in images.to_pylist()]


@_SETTINGS
@given(st.lists(statements(), min_size=1, max_size=12))
def test_printed_statements_are_decoded(printed: list[Statement]) -> None:
    decoded = decode_dml(pa.array([one.sql for one in printed], pa.large_string()), GOLDEN)
    assert decoded.op.to_pylist() == [one.op for one in printed]
    assert _exactly(decoded.before) == [_filled(one.before) for one in printed]
    assert _exactly(decoded.after) == [_filled(one.after) for one in printed]
    carried = [one.before if one.after is None else one.after for one in printed]
    assert decoded.absent.to_pylist() == [
        [name for name in GOLDEN.column_names if name not in (image or {})] for image in carried
    ]


def _check_against_plain(texts: list[str]) -> int:
    """Each row that the loops claim to understand must mean the same in the plain form; returns their number."""
    scanned = scan_batch(pa.array(texts, pa.large_string()), _PLAN)
    understood = 0
    for row, text in enumerate(texts):
        if not scanned.operations[row]:
            continue
        understood += 1
        change = decode_statement(text, _PLAN, row=row)
        assert scanned.operations[row] == change.op, text
        for images, image in ((scanned.before, change.before), (scanned.after, change.after)):
            if image is None:
                continue
            assert images is not None
            for name, values in zip(GOLDEN.column_names, images, strict=True):
                assert _same(values[row].as_py(), image.get(name)), (name, text)
        carried = change.after if change.before is None else change.before
        carried = (carried or {}) | (change.after or {})
        assert scanned.carried[:, row].tolist() == [n in carried for n in GOLDEN.column_names], text
    return understood


def _same(left: Any, right: Any) -> bool:
    return bool(_exact(left) == _exact(right))


def _mutated(text: str, chance: random.Random) -> str:
    """The text with one to three edits of kinds that damage statements: lost, doubled, swapped and foreign pieces."""
    pieces = ["'", "''", '"', " and ", "NULL", ")", "(", ",", ";", " || ", "\\", "0", "9", ".", "-",
              "E", " ", "UNISTR('", "HEXTORAW('", "é", " or ", " IS NULL", "\0", "𝄞"]  # fmt: skip
    for _edit in range(chance.choice((1, 1, 1, 2, 3))):
        # Three in four edits are in the second half, where the values are.
        at = chance.randint(len(text) // 2 if chance.randint(0, 3) else 0, len(text))
        end = min(len(text), at + chance.choice((1, 1, 2, 12)))
        match chance.randint(0, 3):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:at] + chance.choice(pieces) + text[at:]
            case 2:
                text = text[:at] + chance.choice(pieces) + text[at + 1 :]
            case _:
                text = text[:at] + text[at:end] * 2 + text[end:]
    return text


def test_mutated_text_is_decoded_alike_or_refused() -> None:
    """24,000 damaged statements: the compiled form never claims one that the plain form reads otherwise or refuses."""
    chance = random.Random(20)
    originals = [pair.sql for pair in PAIRS]
    understood = 0
    for _round in range(24):
        texts = [_mutated(chance.choice(originals), chance) for _ in range(1000)]
        understood += _check_against_plain(texts)
    assert understood > 1000


def test_each_character_of_a_literal_counts() -> None:
    """One literal of each column, with each of its characters left out, doubled, or replaced by another kind of character."""
    others = ("'", "(", ")", "9", "Z", " ", ",", "-", "\0")
    texts = []
    for column, value in _LITERALS.items():
        start, end = f'update "S"."T" set "{column}" = ', ' where "ID" = 1;'
        assert _check_against_plain([start + value + end]) == 1, value
        for at in range(len(value)):
            for piece in ("", value[at] * 2, *others):
                texts.append(start + value[:at] + piece + value[at + 1 :] + end)
    assert _check_against_plain(texts) < len(texts)


def test_mutated_text_gives_typed_errors_only() -> None:
    chance = random.Random(21)
    originals = [pair.sql for pair in PAIRS]
    refused = 0
    for _round in range(2000):
        text = _mutated(chance.choice(originals), chance)
        try:
            decode_dml(pa.array([text]), GOLDEN)
        except (DecodeError, SchemaMismatchError) as error:
            refused += error.facts["row"] == 0
    assert refused > 1000


@_SETTINGS
@given(st.lists(st.text(max_size=60), min_size=1, max_size=5))
def test_arbitrary_text_is_refused(texts: list[str]) -> None:
    try:
        decode_dml(pa.array(texts), GOLDEN)
    except CdcError:
        return
    raise AssertionError(texts)


@_SETTINGS
@given(statements(), st.randoms(use_true_random=False))
def test_mutated_statements_agree_with_the_plain_form(
    one: Statement, chance: random.Random
) -> None:
    _check_against_plain([one.sql, *(_mutated(one.sql, chance) for _ in range(30))])
