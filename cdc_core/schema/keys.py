"""What identifies a table's rows, and which tables does that rule out?"""

from __future__ import annotations

import difflib
from collections.abc import Sequence, Set
from typing import Any

from cdc_core.config import TableConfig
from cdc_core.errors import (
    ConfigError,
    PreflightError,
)
from cdc_core.schema.table import (
    IN_ROW_BYTES_MAX,
    LOB_TYPES,
    Column,
)
from cdc_core.schema.types import is_decimal

_MEASURED_FROM = 23
_NO_KEY = (
    "Name unique NOT NULL columns under the table's key; or set identity: rowid in the table's "
    "own entry: rows are then identified by ROWID, and any operation that changes ROWIDs (ALTER "
    "TABLE … MOVE, SHRINK SPACE, partitions that are split or merged) stops the table until you "
    "resnapshot it, or does what on_unsupported_ddl says."
)
_NO_KEY_WITH_DOCUMENTS = (
    "Name unique NOT NULL columns under the table's key, or leave the table out. Its rows "
    "cannot be identified by ROWID, since LogMiner does not always show it in tables with "
    "XMLTYPE columns: {documents}."
)


def key_candidates(
    primary_key: Sequence[str], unique_indexes: Sequence[Sequence[str]], known_key: Sequence[str]
) -> list[tuple[str, ...]]:
    """What may identify rows: the key so far, by which the lake knows them, else the primary key,
    else the shortest unique index."""
    found = [tuple(primary_key)] if primary_key else []
    found += sorted((tuple(index) for index in unique_indexes), key=lambda key: (len(key), key))
    return sorted(found, key=lambda key: key != tuple(known_key))


def key_of(
    config: TableConfig,
    captured: Sequence[Column],
    primary_key: Sequence[str],
    candidates: Sequence[tuple[str, ...]],
    virtual: Set[str],
    documents: Sequence[str],
) -> tuple[str, ...]:
    """The configured key, else the first candidate whose columns are all NOT NULL."""
    certain = {column.name for column in captured if not column.nullable}
    names = {column.name for column in captured}
    if config.key:
        if named := virtual & set(config.key):
            raise _virtual_key(config, named)
        _refuse_unknown(config, "key", config.key, sorted(names))
        loose = [name for name in config.key if name not in certain]
        if loose:
            raise ConfigError(
                "columns of the configured key may be NULL",
                hint="Name NOT NULL columns under key, or make them NOT NULL.",
                table=config.table,
                columns=", ".join(loose),
            )
        return config.key
    for candidate in candidates:
        if candidate and certain.issuperset(candidate):
            return candidate
    if named := virtual & set(primary_key):
        raise _virtual_key(config, named)
    if primary_key and not names.issuperset(primary_key):
        raise ConfigError(
            f"{config.leaving_out} a column of the primary key",
            hint="Capture the whole key, or name another one under key.",
            table=config.table,
        )
    raise PreflightError(
        "the table has no primary key and no unique index over NOT NULL columns",
        hint=_NO_KEY_WITH_DOCUMENTS.format(documents=", ".join(documents))
        if documents
        else _NO_KEY,
        table=config.table,
    )


def _virtual_key(config: TableConfig, named: Set[str]) -> PreflightError:
    return PreflightError(
        "the key has virtual columns, which are not in the redo",
        hint="Name unique NOT NULL columns that are stored under the table's key, or set identity: rowid in the table's own entry.",
        table=config.table,
        columns=", ".join(sorted(named)),
    )


def _refuse_unknown(
    config: TableConfig, field: str, named: Sequence[str], known: Sequence[str]
) -> None:
    unknown = [name for name in named if name not in known]
    if unknown:
        near = near_names(unknown[0], known)
        raise ConfigError(
            f"{field} names columns that the table does not have",
            hint=near or "Write names as the dictionary has them.",
            table=config.table,
            columns=", ".join(unknown),
        )


def near_names(name: str, known: Sequence[str]) -> str:
    """A sentence with the names that somebody may have meant; empty if none is near."""
    near = difflib.get_close_matches(name.upper(), known, n=3, cutoff=0.5)
    return f"Similar names: {', '.join(near)}." if near else ""


def refuse_held_keys(config: TableConfig, key: Sequence[str]) -> None:
    """A column of the key may be held as a decimal, which is as exact as the NUMBER. In any other
    form two keys might be one value."""
    forms = {name: config.columns_as.get(name, "") for name in key}
    named = [name for name, form in forms.items() if form and not is_decimal(form)]
    if named:
        raise ConfigError(
            "columns_as names columns of the key",
            hint="Leave them out there, or store numbers among them as decimal(p,s).",
            table=config.table,
            columns=", ".join(named),
        )


def refuse_row_ids(
    config: TableConfig, columns: Sequence[tuple[Any, ...]], *, is_index_organized: bool
) -> None:
    """The ROWID of an index-organized table's row changes with its key. Of tables with LOBs
    LogMiner shows a placeholder in most rows, and the ROWID in the row that closes the statement;
    where a statement writes a document beside LOBs, that row is not told from others (SEQUENCE# is
    1, measured on 26ai by others), whether the document is captured or not."""
    if is_index_organized:
        raise ConfigError(
            "identity: rowid is not for an index-organized table, whose rows have no fixed ROWIDs",
            hint="Leave identity out: the table has a primary key.",
            table=config.table,
        )
    if documents := documents_among(columns):
        raise ConfigError(
            "identity: rowid is not for a table with XMLTYPE columns, since LogMiner does not always show the ROWIDs of rows that a "
            "statement with documents writes",
            hint="Name unique NOT NULL columns under the table's key, or leave the table out.",
            table=config.table,
            columns=", ".join(documents),
        )


def refuse_clustered(config: TableConfig, cluster: str | None) -> None:
    """Tables of a cluster share blocks: rows of two of them may have one ROWID, but within a table
    it is unique, which is all that an identity needs. An UPDATE of the cluster key, though, moves
    the row to the block of the other key while its ROWID stays; which one LogMiner shows of it from
    then on is not known, and no probe asks.

    Source: Oracle Database SQL Language Reference 19c, "ROWID Pseudocolumn"; Oracle Database
    Concepts, "Rowid Data Types".
    """
    if cluster is not None:
        raise ConfigError(
            "identity: rowid is not for a table in a cluster: an UPDATE of the cluster key "
            "moves a row, and it is unproved which ROWID LogMiner shows from then on",
            hint="Name unique NOT NULL columns under the table's key, or leave the table out.",
            table=config.table,
            cluster=cluster,
        )


def shows_closes(version: str) -> bool:
    """Does LogMiner of a release show what closes the statements of tables with LOBs? It was
    measured from 23ai on."""
    return int(version.partition(".")[0] or 0) >= _MEASURED_FROM


def refuse_unmeasured(
    config: TableConfig, columns: Sequence[tuple[Any, ...]], version: str
) -> None:
    """Where LogMiner does not show what closes a statement, nothing tells it from the one behind
    it if their rows are equal, as they may be in tables without a key."""
    if config.identity == "rowid" and lobs_among(columns) and not shows_closes(version):
        raise ConfigError(
            "identity: rowid for a table with LOBs (or VARCHAR2 over 4000 bytes) needs Oracle "
            "23ai: it is unproved that LogMiner shows the ROWIDs of all its rows before that",
            hint="Name unique NOT NULL columns under the table's key, or leave the table out.",
            table=config.table,
            columns=", ".join(lobs_among(columns)),
            version=version,
        )


def refuse_unplaced_lobs(config: TableConfig, columns: Sequence[tuple[Any, ...]]) -> None:
    """A statement that writes LOBs has several redo rows and one undo row, and in an
    index-organized table none of them has an address: nothing shows what a partial rollback takes
    back, whether the LOB is captured or not."""
    if lobs := lobs_among(columns):
        raise PreflightError(
            "an index-organized table with LOBs (or VARCHAR2 over 4000 bytes) is not captured, since its rows have no addresses by which "
            "LogMiner shows what a partial rollback takes back",
            hint="Leave the table out of `tables`, or make it a heap table (DBMS_REDEFINITION).",
            table=config.table,
            columns=", ".join(lobs),
        )


def lobs_among(columns: Sequence[tuple[Any, ...]]) -> list[str]:
    """The columns that Oracle stores as LOBs, or may store so."""
    return [
        name
        for name, data_type, length, *_ in columns
        if data_type in LOB_TYPES or length > IN_ROW_BYTES_MAX.get(data_type, length)
    ]


def documents_among(columns: Sequence[tuple[Any, ...]]) -> list[str]:
    """The columns of type XMLTYPE."""
    return [name for name, data_type, *_ in columns if data_type == "XMLTYPE"]
