"""A batch is decoded block by block: where its blocks end, and when a column's text outgrows its memory, changes nothing."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from cdc_core.decode import DecodedDml, batch, decode_dml
from tests.decode.golden_table import GOLDEN

_VALUES = (
    "'short'",
    "NULL",
    "UNISTR('\\65E5\\672C')",
    "'it''s' || UNISTR('\\00FC')",
    f"'{'long ' * 700}'",
)


def _update(row: int, chance: random.Random, *sets: str) -> str:
    old = {
        "ID": f"'{row}'",
        "V": chance.choice(_VALUES),
        "N": f"'{row}.5'" if row % 20 else "'15E-1'",  # left to the plain form
        "I": f"'{row * 7}'",
        "WIDE": f"'{row}.25'",
    }
    where = " and ".join(
        f'"{name}" IS NULL' if text == "NULL" else f'"{name}" = {text}'
        for name, text in old.items()
    )
    new = {"V": "'short'", "C": "'c'", "I": f"'{row}'"}
    values = ", ".join(f'"{name}" = {new[name]}' for name in sets)
    return f'update "S"."T" set {values} where {where};'


def _insert(row: int, chance: random.Random) -> str:
    return f'insert into "S"."T"("ID","V") values (\'{row}\',{chance.choice(_VALUES)});'


def _batch(kind: str) -> list[str]:
    chance = random.Random(kind)
    if kind == "inserts":
        return [_insert(row, chance) for row in range(61)]
    if kind == "updates that set columns from the third block on":
        return [
            _update(row, chance, *("VI" if row == 19 or row > 40 else "C")) for row in range(61)
        ]
    updates = [_update(row, chance, "C") for row in range(45)]
    return [
        *updates,
        _insert(45, chance),
        f'delete from "S"."T" where "ID" = \'46\' and "V" = {_VALUES[-1]};',
    ]


def _exact(decoded: DecodedDml) -> list[list[object]]:
    return [
        values.to_pylist()
        for values in (
            decoded.op,
            decoded.before,
            decoded.after,
            decoded.absent,
            decoded.before_absent,
        )
    ]


@pytest.mark.parametrize(
    "kind",
    [
        "inserts",
        "updates that set columns from the third block on",
        "updates, and at the end rows that are none",
    ],
)
def test_the_rows_of_a_batch_mean_what_each_means_alone(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "_BLOCK_ROWS_MAX", 8)
    texts = _batch(kind)
    whole = decode_dml(pa.array(texts, pa.large_string()), GOLDEN)
    for image in (whole.before, whole.after):
        image.validate(full=True)
    alone = [_exact(decode_dml(pa.array([text], pa.large_string()), GOLDEN)) for text in texts]
    assert _exact(whole) == [[row[part][0] for row in alone] for part in range(5)]


def test_new_values_that_no_update_sets_are_the_old_ones_without_a_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch, "_BLOCK_ROWS_MAX", 8)
    texts = _batch("updates that set columns from the third block on")[1:20]
    decoded = decode_dml(pa.array(texts, pa.large_string()), GOLDEN)

    def text_of(image: pa.StructArray, name: str) -> int:
        return int(image.field(name).buffers()[2].address)

    assert text_of(decoded.before, "N") == text_of(decoded.after, "N")
    assert text_of(decoded.before, "V") != text_of(decoded.after, "V")
