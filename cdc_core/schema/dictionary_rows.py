"""What table do rows of the dictionary describe?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdc_core.config import TableConfig
from cdc_core.errors import ConfigError
from cdc_core.model.scn import Scn
from cdc_core.schema.forms import in_forms
from cdc_core.schema.keys import (
    documents_among,
    key_candidates,
    key_of,
    lobs_among,
    refuse_held_keys,
    refuse_row_ids,
    refuse_unplaced_lobs,
    shows_closes,
)
from cdc_core.schema.masks import mask_refusal, masks_of
from cdc_core.schema.table import (
    ROW_ID,
    ROW_ID_COLUMN,
    Column,
    TableSchema,
)
from cdc_core.schema.types import is_captured


@dataclass(frozen=True, slots=True)
class TableKeys:
    """What may identify a table's rows.

    Attributes:
        primary: The columns of its primary key; empty without one.
        unique: The columns of each unique index.
        is_deferrable: Oracle may check the primary key at the end of a transaction. (An index that
            is unique is checked at once.)
        known: The key so far, which it stays as long as it is one of the table's.
    """

    primary: Sequence[str] = ()
    unique: Sequence[Sequence[str]] = ()
    is_deferrable: bool = False
    known: Sequence[str] = ()


def schema_from_rows(
    config: TableConfig,
    columns: Sequence[tuple[Any, ...]],
    keys: TableKeys,
    *,
    object_id: int,
    scn: Scn,
    character_sets: Mapping[str, str] | None = None,
    is_index_organized: bool = False,
) -> TableSchema:
    """Build one table's schema from dictionary rows. Pure.

    Args:
        config: What the user wants of it.
        columns: Rows (name, type, length, char length, precision, scale, nullable, default, hidden
            by Oracle, virtual, segment position) in order. Those that are hidden and virtual are no
            columns of the table.
        keys: Its keys.
        character_sets: The database's ``NLS_CHARACTERSET`` and ``NLS_NCHAR_CHARACTERSET``, and its
            ``DBTIMEZONE`` and ``VERSION``.
        is_index_organized: Its rows have no ROWIDs of a place, and a key. Asked for where that
            matters: with LOBs, or where no key identifies rows.
    """
    unique = _of_columns(columns, keys.unique)
    columns = [row for row in columns if not is_derived(row)]
    left_out = [row[0] for row in columns if row[8] == "YES" or row[9] == "YES"]
    of_keys = {name for one in (keys.primary, *unique) for name in one}
    own = tuple(column_from_row(row) for row in columns if row[0] not in left_out)
    omitted = omitted_among(config, in_forms(config, own, tuple(of_keys)), of_keys)
    left_out += [one.name for one in omitted]
    usable = [column_from_row(row) for row in columns if row[0] not in left_out]
    captured = tuple(column for column in usable if not config.excludes(column.name))
    if is_index_organized:
        refuse_unplaced_lobs(config, columns)
    key: tuple[str, ...] = (ROW_ID,)
    if config.identity == "rowid":
        refuse_row_ids(config, columns, is_index_organized=is_index_organized)
        captured = (ROW_ID_COLUMN, *captured)
    else:
        virtual = {row[0] for row in columns if row[9] == "YES"}
        candidates = key_candidates(keys.primary, unique, keys.known)
        documents = documents_among(columns)
        key = key_of(config, captured, keys.primary, candidates, virtual, documents)
    refuse_held_keys(config, key)
    if refusal := mask_refusal(config, captured, key):
        raise ConfigError(
            refusal,
            hint="Leave them out there, or name them under columns_exclude.",
            table=config.table,
        )
    names = config.column_rule.left_out(column.name for column in usable)
    excluded = tuple(dict.fromkeys([*names, *left_out]))
    checked = [*unique, *([] if keys.is_deferrable else [keys.primary])]
    sets = character_sets or {}
    return TableSchema(
        table=config.table,
        scn_from=scn,
        columns=in_forms(config, captured, key),
        key=key,
        object_id=object_id,
        excluded=excluded,
        stored=_stored(columns),
        charset=sets.get("NLS_CHARACTERSET", ""),
        ncharset=sets.get("NLS_NCHAR_CHARACTERSET", ""),
        time_zone=sets.get("DBTIMEZONE", "") if any(one.is_local_time for one in captured) else "",
        masked=masks_of(config, captured),
        omitted=tuple((one.name, one.data_type) for one in omitted),
        key_is_deferred=config.identity == "key"
        and not any(one and set(one) <= set(key) for one in checked),
        key_is_configured=bool(config.key),
        has_lobs=bool(lobs_among(columns)),
        closes_shown=bool(lobs_among(columns)) and shows_closes(sets.get("VERSION", "")),
    )


def omitted_among(
    config: TableConfig, columns: Iterable[Column], key: Collection[str]
) -> list[Column]:
    """The columns that are left out because nobody can capture their types. Those of a key are
    refused instead."""
    return [
        one
        for one in columns
        if config.omits(one.data_type)
        and not config.excludes(one.name)
        and one.name not in key
        and not is_captured(one)
    ]


def indexes_from_rows(rows: Sequence[tuple[Any, ...]]) -> list[list[str]]:
    """The columns of each index, in their order."""
    found: dict[tuple[str, str], list[str]] = {}
    for owner, index, column in rows:
        found.setdefault((owner, index), []).append(column)
    return list(found.values())


def is_derived(row: tuple[Any, ...]) -> bool:
    """Is a column one that Oracle made for an index or for statistics? See :data:`OF_ROWS`."""
    return bool(row[8] == "YES" and row[9] == "YES")


def _of_columns(
    columns: Sequence[tuple[Any, ...]], indexes: Sequence[Sequence[str]]
) -> list[list[str]]:
    """The indexes with the columns that they are on in descending order in the place of what Oracle
    derives from them: values are as unique from the last to the first. An index on another
    expression keeps a name that no column of the table has, and is no key.

    Source: Oracle Database Reference 19c, ALL_IND_EXPRESSIONS; the expression of such a column is
    its name in quotes alone.
    """
    names = {f'"{row[0]}"': row[0] for row in columns if not is_derived(row)}
    turned = {row[0]: names.get((row[7] or "").strip()) for row in columns if is_derived(row)}
    return [[turned.get(name) or name for name in index] for index in indexes]


def column_from_row(row: tuple[Any, ...]) -> Column:
    """A column from its row of ALL_TAB_COLS."""
    name, data_type, length, char_length, precision, scale, nullable, default = row[:8]
    return Column(
        name=name,
        data_type=data_type,
        length=int(length),
        char_length=int(char_length or 0),
        precision=None if precision is None else int(precision),
        scale=None if scale is None else int(scale),
        nullable=nullable == "Y",
        default=_default(default),
    )


def _stored(columns: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """Names by segment position, which only stored columns have."""
    placed = sorted((int(row[10]), row[0]) for row in columns if row[10] is not None)
    return tuple(name for _, name in placed)


def _default(text: str | None) -> str | None:
    stripped = (text or "").strip()
    return None if stripped.upper() in {"", "NULL"} else stripped
