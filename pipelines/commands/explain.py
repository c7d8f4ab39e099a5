"""The command that explains an export of V$LOGMNR_CONTENTS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId, parts_of
from cdc_core.model.wording import counted

if TYPE_CHECKING:
    from diagnosis.explain import ExplainedRow, ExplainedTransaction, Finding, Outcomes

EXIT_UNEXPLAINED = 1
TRANSACTIONS_SHOWN = 20
ROWS_SHOWN = 12
FINDINGS_SHOWN = 20
_VALUE_SHOWN = 40
_GROUPED = ("undecodable", "damaged")

_COLOURS = {"change": "green", "undecodable": "red", "damaged": "red", "waits": "yellow"}
_OPS = {"c": "insert", "u": "update", "d": "delete"}
_MARKS = {"committed": "green", "rolled back": "bright_black", "open": "yellow", "evicted": "red"}


def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Export: .csv, .jsonl or .parquet.")],
    tables: Annotated[
        Path,
        typer.Option(
            "--tables",
            metavar="FILE",
            help="Description of the tables: a CREATE TABLE script, or rows of ALL_TAB_COLS as "
            ".csv, .jsonl or .parquet.",
        ),
    ],
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner",
            metavar="OWNER",
            help="Default schema, for tables described without one.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="OWNER.TABLE=COLUMN,…",
            help="Columns that identify a row (or ROWID), for a table described without a key; "
            "repeatable.",
        ),
    ] = None,
    character_set: Annotated[
        str,
        typer.Option(
            "--character-set",
            metavar="NAME",
            help="The database's character set, in which columns that LogMiner calls COL n are "
            "encoded.",
        ),
    ] = "AL32UTF8",
    container: Annotated[
        str | None,
        typer.Option(
            "--container",
            metavar="NAME",
            help="The pluggable database of the tables, if the export covers several with the "
            "same tables.",
        ),
    ] = None,
    transaction: Annotated[
        str | None,
        typer.Option(
            "--transaction",
            metavar="XID",
            help="Print this transaction with all its rows: 16 hexadecimal digits, or usn.slot.sqn.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FILE", help="Write every row with its outcome: .jsonl or .parquet."
        ),
    ] = None,
) -> None:
    """Explain how Redolake interprets rows of V$LOGMNR_CONTENTS: transactions, changes, rollbacks,
    undecodable rows.

    Needs only an export and a description of its tables: no configuration, no database, no Spark.
    The rows go through the functions that capture and apply use. The guide "Explain what the redo
    says" shows how to export, and what each outcome means.

    The output contains values of your rows. Exits with code 1 if rows are damaged or undecodable.
    """  # fmt: skip
    from diagnosis.explain import check_target, explained, read_tables, read_xid, write_rows

    if to is not None:
        check_target(to)
    try:
        wanted = None if transaction is None else read_xid(transaction)
    except ValueError:
        raise ConfigError(
            "--transaction is not an XID",
            hint="Write 16 hexadecimal digits, or usn.slot.sqn.",
        ) from None
    left_out: list[Finding] = []
    schemas = read_tables(
        tables,
        owner=owner,
        keys=_keys(key or []),
        character_set=character_set,
        report=left_out.append,
    )
    console = Console(highlight=False)
    with explained(file, schemas, container=container) as outcomes:
        if to is not None:
            count = write_rows(to, outcomes.rows())
            console.print(f"{counted(count, 'statement')} written to {to}")
        keys = {str(one.table): one.key for one in schemas}
        show_transactions(outcomes, wanted, keys, console, is_brief=to is not None)
        show_summary(outcomes, left_out, console)
        counts = outcomes.counts()
    if any(outcome.value in ("undecodable", "damaged") for outcome in counts):
        raise typer.Exit(EXIT_UNEXPLAINED)


def _keys(texts: list[str]) -> Mapping[TableId, list[str]]:
    found = {}
    for text in texts:
        table, _, columns = text.rpartition("=")
        names = [part for one in columns.split(",") for part in parts_of(one)]
        if not table or not names:
            raise ConfigError(
                "--key does not say which columns", hint="Write OWNER.TABLE=COLUMN,COLUMN."
            )
        found[TableId.parse(table)] = [quoted or plain.upper() for quoted, plain in names]
    return found


class Told:
    """The reasons that were printed, each with the first row that has it."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str | None, str | None], int] = {}

    def first_of(self, row: ExplainedRow) -> int | None:
        """The row with which the reason of an undecodable row was printed; None if it was not."""
        return self._first.get(self._reason(row)) if row.outcome.value in _GROUPED else None

    def tell(self, row: ExplainedRow) -> None:
        """The row is printed with its reason."""
        if row.outcome.value in _GROUPED:
            self._first.setdefault(self._reason(row), row.first_row)

    @staticmethod
    def _reason(row: ExplainedRow) -> tuple[str, str | None, str | None]:
        return row.outcome.value, row.why, row.way_out


def show_transactions(
    outcomes: Outcomes,
    xid: str | None,
    keys: Mapping[str, tuple[str, ...]],
    console: Console,
    *,
    is_brief: bool,
) -> None:
    """Print the transactions, or that of one XID, for people; only their number if ``is_brief``."""
    if xid is None and is_brief:
        return
    total = sum(outcomes.transaction_counts().values())
    shown = outcomes.transactions(xid)
    rows_max = None if xid else ROWS_SHOWN
    count, told = 0, Told()
    for one in islice(shown, None if xid else TRANSACTIONS_SHOWN):
        count += 1
        console.print(_title(one))
        _show_rows(outcomes.rows_of(one), rows_max, keys, told, console)
    if xid and not count:
        raise ConfigError(
            "the export has no such transaction with rows of the described tables",
            hint="Leave --transaction out to see which it has.",
        )
    if not xid and total > count:
        console.print(
            f"… {total - count:,} more transactions: --transaction XID prints one, --to FILE writes all."
        )
    if not xid:
        _show_rows(
            outcomes.loose_rows(),
            rows_max,
            keys,
            told,
            console,
            title="Outside of these transactions:",
        )


def _title(one: ExplainedTransaction) -> str:
    parts = [f"[bold]{one.xid}[/] [{_MARKS[one.state]}]{one.state}[/]"]
    if one.end_scn is not None:
        parts.append(f"at SCN {one.end_scn}")
    if one.username:
        parts.append(f"by {escape(one.username)}")
    parts.append(f"({counted(one.rows, 'row')}, {counted(one.changes, 'change')})")
    return " ".join(parts) + (f"\n  [yellow]{escape(one.why)}[/]" if one.why else "")


def _show_rows(
    rows: Iterable[ExplainedRow],
    rows_max: int | None,
    keys: Mapping[str, tuple[str, ...]],
    told: Told,
    console: Console,
    *,
    title: str = "",
) -> None:
    again: Counter[tuple[str, int]] = Counter()
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1, 0, 0))
    table.add_column("row", justify="right", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    table.add_column("what", overflow="fold")
    more = 0
    for row in rows:
        if (first := told.first_of(row)) is not None:
            again[row.outcome.value, first] += 1
            continue
        if rows_max is not None and table.row_count >= rows_max:
            more += 1
            continue
        told.tell(row)
        table.add_row(_place(row), _outcome(row), _what(row, keys))
    for (outcome, first), count in again.items():
        colour = _COLOURS.get(outcome, "default")
        table.add_row(
            "",
            f"[{colour}]{outcome}[/]",
            f"{counted(count, 'more row')}, for the reason of row {first}",
        )
    if not table.row_count:
        return
    if title:
        console.print(f"[bold]{title}[/]")
    console.print(table)
    if more:
        console.print(f"  … {more:,} more rows")


def _place(row: ExplainedRow) -> str:
    return (
        f"{row.first_row}" if row.last_row == row.first_row else f"{row.first_row}-{row.last_row}"
    )


def _outcome(row: ExplainedRow) -> str:
    name = _OPS[row.op] if row.outcome == "change" and row.op else row.outcome.value
    return f"[{_COLOURS.get(row.outcome, 'default')}]{name}[/]"


def _what(row: ExplainedRow, keys: Mapping[str, tuple[str, ...]]) -> str:
    table = escape(row.table or "")
    if row.op is not None:
        op = f"{_OPS[row.op]} " if row.outcome != "change" else ""
        return f"{op}{table} {escape(_change(row, keys.get(row.table or '', ())))}"
    operation = "" if row.operation == "DDL" else row.operation or ""
    parts = [f"{operation} {table}".strip(), escape(row.why or "")]
    if row.part_of is not None:
        parts.append(f"of the change at row {row.part_of}")
    if row.sql_redo is not None:
        parts.append(escape(_cut(row.sql_redo)))
    if row.way_out:
        parts.append(f"[bright_black]{escape(row.way_out)}[/]")
    return ": ".join(part for part in parts if part)


def _change(row: ExplainedRow, key: tuple[str, ...]) -> str:
    before, after = row.before or {}, row.after or {}
    if row.op != "u":
        return _values(after or before)
    named = {name: before[name] for name in key if name in before}
    changed = [
        f"{name} {_value(before[name])} → {_value(value)}"
        if name in before
        else f"{name} → {_value(value)}"
        for name, value in after.items()
        if name not in before or before[name] != value
    ]
    return f"{_values(named)}: {', '.join(changed) or 'nothing changed'}"


def _values(image: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_value(value)}" for name, value in image.items())


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{_cut(value)}'" if isinstance(value, str) else str(value)


def _cut(text: str) -> str:
    """The beginning of a text, in one line."""
    line = text if text.isprintable() else repr(text)[1:-1]
    return (
        line if len(line) <= _VALUE_SHOWN else f"{line[:_VALUE_SHOWN]}… ({len(text):,} characters)"
    )


def show_summary(outcomes: Outcomes, left_out: list[Finding], console: Console) -> None:
    """Print what became of all rows, and what is wrong with them."""
    states = outcomes.transaction_counts()
    console.print(
        "[bold]transactions[/] with rows of the described tables: "
        + (", ".join(f"{count:,} {state}" for state, count in states.items()) or "none")
    )
    counts = outcomes.counts()
    console.print(
        "[bold]statements[/]: "
        + ", ".join(
            f"{count:,} {_COUNTED.get(outcome.value, outcome.value)}"
            for outcome, count in counts.items()
        )
    )
    for why, way_out, count, first in outcomes.reasons(FINDINGS_SHOWN):
        console.print(
            f"[red]•[/] {counted(count, 'row')} undecodable, the first at row {first}: {escape(why)}"
        )
        if way_out:
            console.print(f"  {escape(way_out)}")
    findings = [*left_out, *outcomes.findings]
    for one in findings[:FINDINGS_SHOWN]:
        place = f"{one.place}: " if one.place else ""
        console.print(f"[red]•[/] {place}{escape(one.message)}")
        if one.hint:
            console.print(f"  {escape(one.hint)}")
    more = len(findings) + outcomes.findings_more - FINDINGS_SHOWN
    if more > 0:
        console.print(f"… {more:,} more; --to FILE writes all damaged rows with their reasons.")


_COUNTED = {
    "change": "changes", "waits": "without COMMIT", "other": "of other tables", "begins": "START", "commits": "COMMIT",
    "ends": "ROLLBACK", "ddl": "DDL",
}  # fmt: skip
