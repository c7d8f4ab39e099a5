"""Which rows does a file of CSV, JSON lines or Parquet hold, one by one, and which of them are
damaged?"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.errors import ConfigError

Values: TypeAlias = dict[str, Any]
"""One row: values by column name in upper case; NULL may be missing."""

FIELD_CHARACTERS_MAX = 64 * 2**20
"""So long may one value of a CSV file be. A quotation mark that is never closed would take in the
rest of the file."""

_BATCH_ROWS = 5_000
_LOOK_AHEAD = 1_000
_DELIMITERS = ",;\t|"
_JSON_SUFFIXES = {".json", ".jsonl", ".ndjson"}
_FOOTER = re.compile(r"\d+ rows? selected\.?")
_CALL = re.compile(r"(?:RAWTOHEX|TO_CHAR)\((\w+#?)\)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DamagedRow:
    """A row that cannot be read; ``reason`` says why, without its values."""

    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class RowFile:
    """A file's columns, names in upper case, and its rows: each with its number, from 1 on, the
    header not counted."""

    path: Path
    columns: tuple[str, ...]
    rows: Iterator[tuple[int, Values | DamagedRow]]


def open_rows(path: Path, wanted: Iterable[str]) -> RowFile:
    """Read a file by what its name ends with: ``.csv`` (also ``.txt``, ``.tsv``), ``.json``,
    ``.jsonl``, ``.ndjson``, ``.parquet``.

    Args:
        path: The file.
        wanted: The names that mean something to the caller: of a Parquet file no others are read,
            of CSV they tell the delimiter.

    Raises:
        ConfigError: There is no such file, it is of another kind, or it is empty.
    """
    if not path.is_file():
        raise ConfigError("there is no such file", hint="Give the path of a file.", file=path.name)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return _parquet(path, frozenset(wanted))
    refuse_utf16(path)
    if suffix in _JSON_SUFFIXES:
        return _json_lines(path)
    if suffix in {".csv", ".tsv", ".txt"}:
        return _csv(path, frozenset(wanted))
    raise ConfigError(
        "the file's name does not say what it holds",
        hint="Let it end with .csv, .parquet or .jsonl.",
        file=path.name,
    )


def refuse_utf16(path: Path) -> None:
    """Windows PowerShell writes UTF-16 where a command's output goes to a file by ``>``; such a
    file begins with a byte order mark.

    Raises:
        ConfigError: It does.
    """
    with path.open("rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise ConfigError(
                "the file is in UTF-16",
                hint=f"Write it in UTF-8: `iconv -f UTF-16 -t UTF-8 {path.name} > utf8{path.suffix}` does. SPOOL writes the character "
                "set of NLS_LANG, such as NLS_LANG=.AL32UTF8.",
                file=path.name,
            )


def plain_name(name: str) -> str:
    """A column's name in upper case; ``RAWTOHEX(XID)`` is the column XID."""
    name = name.strip().strip('"').upper()
    found = _CALL.fullmatch(name)
    return found[1] if found else name


# -- CSV -------------------------------------------------------------------------------------------


def _csv(path: Path, wanted: frozenset[str]) -> RowFile:
    csv.field_size_limit(FIELD_CHARACTERS_MAX)
    handle = path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")
    header = next((line for line in handle if line.strip()), "")
    delimiter = max(_DELIMITERS, key=lambda mark: len(wanted & set(_names_in(header, mark))))
    columns = _names_in(header, delimiter)
    if not header:
        handle.close()
        raise _empty(path)
    return RowFile(path, columns, _csv_rows(handle, columns, delimiter))


def _names_in(header: str, delimiter: str) -> tuple[str, ...]:
    [names] = csv.reader([header], delimiter=delimiter)
    return tuple(plain_name(name) for name in names)


def _csv_rows(
    handle: TextIO, columns: Sequence[str], delimiter: str
) -> Iterator[tuple[int, Values | DamagedRow]]:
    with handle:
        reader = csv.reader(handle, delimiter=delimiter)
        number = 0
        while True:
            before = reader.line_num
            try:
                values = next(reader)
            except StopIteration:
                return
            except csv.Error:
                reason = "a value in double quotes has no end; the rest of the file was not read"
                yield number + 1, DamagedRow(reason, _QUOTE_HINT)
                return
            if not values or (len(values) == 1 and _FOOTER.fullmatch(values[0].strip())):
                continue
            number += 1
            yield number, _csv_row(values, columns, lines=reader.line_num - before)


_QUOTE_HINT = (
    "Quote every value, and double each double quote within one, as SET MARKUP CSV ON does."
)


def _csv_row(values: list[str], columns: Sequence[str], *, lines: int) -> Values | DamagedRow:
    if len(values) != len(columns):
        over = f", over {lines} lines" if lines > 1 else ""
        return DamagedRow(
            f"the row has {len(values)} values{over}, and the header {len(columns)} names",
            _QUOTE_HINT,
        )
    row = {name: value for name, value in zip(columns, values, strict=True) if value}
    return _not_text(row) or row


def _not_text(row: Values) -> DamagedRow | None:
    """Bytes that are not UTF-8 were read as lone surrogates."""
    for name, value in row.items():
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                return DamagedRow(f"{name} is not UTF-8", "Export with NLS_LANG=.AL32UTF8.")
    return None


# -- JSON lines ------------------------------------------------------------------------------------


def _json_lines(path: Path) -> RowFile:
    handle = path.open(encoding="utf-8-sig", errors="surrogateescape")
    rows = _json_rows(handle)
    first = list(islice(rows, _LOOK_AHEAD))
    if not first:
        raise _empty(path)
    columns = dict.fromkeys(name for _, row in first if isinstance(row, dict) for name in row)
    if not columns or "RESULTS" in columns:
        handle.close()
        raise ConfigError(
            "the file does not hold JSON lines: one object a line, one line a row",
            hint="Make lines of a document, for example of SQLcl's: `jq -c '.results[].items[]' export.json > export.jsonl`.",
            file=path.name,
        )
    return RowFile(path, tuple(columns), chain(first, rows))


def _json_rows(handle: TextIO) -> Iterator[tuple[int, Values | DamagedRow]]:
    number = 0
    with handle:
        for line in handle:
            if line.strip():
                number += 1
                yield number, _json_row(line)


def _json_row(line: str) -> Values | DamagedRow:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return DamagedRow("the line is not JSON", "One JSON object a line, in UTF-8.")
    if not isinstance(found, dict):
        return DamagedRow("the line is not a JSON object", "One JSON object a line, in UTF-8.")
    row = {plain_name(name): value for name, value in found.items() if value not in (None, "")}
    return _not_text(row) or row


# -- Parquet ---------------------------------------------------------------------------------------


def _parquet(path: Path, wanted: frozenset[str]) -> RowFile:
    file = _readable(path, lambda: pq.ParquetFile(path))
    named = {plain_name(name): name for name in file.schema_arrow.names}
    read = [name for upper, name in named.items() if upper in wanted]
    return RowFile(path, tuple(named), _parquet_rows(path, file, read))


def _parquet_rows(
    path: Path, file: pq.ParquetFile, names: list[str]
) -> Iterator[tuple[int, Values | DamagedRow]]:
    columns = [plain_name(name) for name in names]
    number = 0
    with file:
        batches = file.iter_batches(_BATCH_ROWS, columns=names)
        while (batch := _readable(path, lambda: next(batches, None))) is not None:
            values = [column.to_pylist() for column in batch.columns]
            for row in zip(*values, strict=True):
                number += 1
                yield (
                    number,
                    {
                        name: value
                        for name, value in zip(columns, row, strict=True)
                        if value is not None
                    },
                )


def _readable(path: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(
            "the file cannot be read as Parquet", hint="Write it again.", file=path.name
        ) from error


def _empty(path: Path) -> ConfigError:
    return ConfigError("the file is empty", hint="Export at least one row.", file=path.name)
