"""Text becomes the nearest binary number, rounded once: compared with Python's reader and with exact arithmetic."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa

from cdc_core.decode import decode_dml
from tests.decode.golden_table import GOLDEN


def _decoded(name: str, texts: list[str]) -> list[float]:
    statements = [f'delete from "S"."T" where "{name}" = \'{text}\';' for text in texts]
    values: list[float] = decode_dml(pa.array(statements), GOLDEN).before.field(name).to_pylist()
    return values


def _printed_doubles(chance: random.Random) -> Iterator[str]:
    for _ in range(20_000):
        number = struct.unpack("<d", chance.randbytes(8))[0]
        if number == number and abs(number) != float("inf"):
            yield f"{number:.16E}"
            yield repr(number)
    for _ in range(20_000):
        yield f"{chance.randrange(10**17)}E{chance.randint(-30, 30):+04d}"
        yield f"{chance.randrange(10**8)}.{chance.randrange(10**9):09d}"
    # Whole numbers halfway between two doubles, and their neighbours.
    for _ in range(5_000):
        mantissa = chance.randrange(2**52, 2**53) * 2 + 1
        yield from (str(mantissa), str(mantissa - 1), str(mantissa + 1))


def test_doubles_are_the_nearest() -> None:
    texts = list(_printed_doubles(random.Random(6)))
    assert _decoded("BD", texts) == [float(text) for text in texts]


def test_subnormal_doubles_are_the_nearest() -> None:
    chance = random.Random(7)
    texts = [f"{chance.randrange(1, 2**52) * 5e-324:.16E}" for _ in range(5_000)]
    assert _decoded("BD", texts) == [float(text) for text in texts]


def _is_nearest_float32(number: float, text: str) -> bool:
    exact, here = Fraction(text), np.float32(number)
    error = abs(Fraction(float(here)) - exact)
    infinity = np.float32("inf")
    neighbours = (np.nextafter(here, infinity), np.nextafter(here, -infinity))
    return all(error <= abs(Fraction(float(other)) - exact) for other in neighbours)


def test_floats_are_the_nearest() -> None:
    chance = random.Random(8)
    texts = [f"{chance.randrange(1, 10**9)}E{chance.randint(-40, 28):+04d}" for _ in range(5_000)]
    # Just beside the middle between two float32: a double in between would round them there.
    for _ in range(2_000):
        low = np.float32(chance.uniform(1, 2))
        middle = (float(low) + float(np.nextafter(low, np.float32(3)))) / 2
        texts.append(f"{middle:.17f}"[:18])
    for number, text in zip(_decoded("BF", texts), texts, strict=True):
        assert _is_nearest_float32(number, text), text
