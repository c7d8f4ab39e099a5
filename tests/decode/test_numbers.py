"""Number text of every length becomes the exact decimal or the nearest double, wherever groups of digits end in it."""

from __future__ import annotations

import random
from decimal import Context, Decimal

import pyarrow as pa
import pytest

from cdc_core.decode import batch, decode_dml
from cdc_core.decode.plan import plan_table
from tests.decode.golden_table import GOLDEN

_EXACT = Context(prec=60)


def _texts(
    whole_most: int, fraction_most: int, digits_most: int, chance: random.Random
) -> list[str]:
    """Numbers with each number of digits before and behind the point, nines and zeros among them, both signs."""
    made = []
    for whole in range(whole_most + 1):
        for fraction in range(min(fraction_most, digits_most - whole) + 1):
            if whole + fraction == 0:
                continue
            for digit in ("9", "0", ""):
                digits = "".join(
                    digit or chance.choice("0123456789") for _ in range(whole + fraction)
                )
                digits = (chance.choice("123456789") + digits[1:]) if whole else digits
                point = "." if fraction else ""
                made.append(f"{chance.choice(('', '-'))}{digits[:whole]}{point}{digits[whole:]}")
    return made


def _decoded(name: str, texts: list[str]) -> list[object]:
    statements = [f'delete from "S"."T" where "{name}" = \'{text}\';' for text in texts]
    text = pa.array(statements, pa.large_string())
    scanned = batch.scan_batch(text, plan_table(GOLDEN))
    assert scanned.operations.all(), "the compiled loops leave none of them to the plain form"
    values: list[object] = decode_dml(text, GOLDEN).before.field(name).to_pylist()
    return values


@pytest.mark.parametrize(
    ("name", "whole", "fraction", "scale"),
    [("WIDE", 21, 17, 17), ("BIG", 38, 0, 0), ("N92", 7, 2, 2)],
)
def test_decimals_of_every_length_are_exact(
    name: str, whole: int, fraction: int, scale: int
) -> None:
    texts = _texts(whole, fraction, 38, random.Random(name))
    expected = [Decimal(text).quantize(Decimal(1).scaleb(-scale), context=_EXACT) for text in texts]
    assert _decoded(name, texts) == expected


def test_doubles_of_every_length_are_the_nearest() -> None:
    texts = [text for text in _texts(17, 17, 17, random.Random(3)) if float(text) != 0]
    printed = [f"{text}E{power:+d}" for text in texts for power in (0, -7, 20)]
    assert _decoded("BD", printed) == [float(text) for text in printed]


@pytest.mark.parametrize("name", ["BIG", "BD", "WIDE"])
@pytest.mark.parametrize("sign", [*":/; ", "\x7f"])
@pytest.mark.parametrize("place", range(8))
def test_what_is_no_digit_is_none_among_eight(name: str, sign: str, place: int) -> None:
    digits = f"{'23456789'[:place]}{sign}{'23456789'[place + 1 :]}"
    number = f"1.{digits}" if name == "BD" else f"{digits}1"
    statement = f'delete from "S"."T" where "{name}" = \'{number}\';'
    scanned = batch.scan_batch(pa.array([statement], pa.large_string()), plan_table(GOLDEN))
    assert scanned.operations.tolist() == [0], "the plain form decides"
