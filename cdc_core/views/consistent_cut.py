"""With which SQL do other engines read one consistent cut?"""

from __future__ import annotations

from collections.abc import Iterable

from cdc_core.delta.errors import at_work
from cdc_core.errors import ConfigError
from cdc_core.lake.tables import delta, quote_name
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import CutEngine, MirrorVersion

_TEMPLATE = "{owner}_{table}"

_NOT_PLAIN = frozenset({"deletionVectors", "columnMapping"})
"""Features with which a table's rows are not those of its files."""


def view_sql(
    engine: CutEngine, one: MirrorVersion, *, view: str | None = None, table: str | None = None
) -> str:
    """The statement that makes a view of one mirror at its version.

    Args:
        engine: Whose SQL.
        one: The mirror.
        view: Template of the view's name.
        table: Template of the table's name in the engine's catalog; None to read it by its path.
            Trino has no other way.

    Raises:
        ConfigError: A template has another placeholder than ``{owner}`` and ``{table}``, or Trino
            got none.
    """
    name = _named(view or _TEMPLATE, one)
    if engine == "duckdb":
        uri = one.path if "://" in one.path else f"file://{one.path}"
        # The Delta extension finds no secret for s3a:// (DuckDB 1.5).
        known = f"s3://{uri.removeprefix('s3a://')}" if uri.startswith("s3a://") else uri
        source = f"delta_scan({_text(known)}, version => {one.version})"
        return f"CREATE OR REPLACE VIEW {_dotted(name)} AS SELECT * FROM {source};"
    if engine == "spark":
        parts = name.split(".")
        kind = "TEMPORARY VIEW" if len(parts) == 1 else "VIEW"
        source = delta(one.path) if table is None else _dotted(_named(table, one), spark=True)
        return (
            f"CREATE OR REPLACE {kind} {_dotted(name, spark=True)} AS SELECT * FROM {source}"
            f" VERSION AS OF {one.version};"
        )
    if table is None:
        raise ConfigError(
            "Trino reads tables by the names that they have in its catalog",
            hint="Say what these are: --tables 'delta.{owner}.{table}'.",
        )
    return (
        f"CREATE OR REPLACE VIEW {_dotted(name)} AS SELECT * FROM {_dotted(_named(table, one))}"
        f" FOR VERSION AS OF {one.version};"
    )


def refuse_shared_names(tables: Iterable[MirrorVersion], view: str | None = None) -> None:
    """Two tables whose views have one name would be one view, of whichever came last.

    Raises:
        ConfigError: There are such tables, as ``A_B.C`` and ``A.B_C`` by the default template.
    """
    names: dict[str, str] = {}
    for one in tables:
        name = _named(view or _TEMPLATE, one).lower()
        if name in names:
            raise ConfigError(
                "the views of two tables would have the same name",
                hint="Name the views apart: `redolake at --views '{owner}__{table}'`.",
                tables=f"{names[name]}, {one.table}",
                view=name,
            )
        names[name] = one.table


def files_view_sql(one: MirrorVersion) -> str | None:
    """The same for DuckDB without its Delta extension, by the list of the version's files. None for
    a table with deletion vectors or column mapping: its rows are not those of its files.

    Raises:
        LakeError: The version cannot be read.
        StoreUnavailableError: The storage does not answer.
    """
    from deltalake import DeltaTable

    with at_work("listing the files of a mirror", {"table": one.table, "version": one.version}):
        found = DeltaTable(one.path, version=one.version)
        protocol, files = found.protocol(), found.file_uris()
        columns = [field.name for field in found.schema().fields]
    if _NOT_PLAIN & set(protocol.reader_features or ()):
        return None
    name = _dotted(_named(_TEMPLATE, one))
    if not files:
        listed = ", ".join(f"NULL AS {_quoted(column)}" for column in columns)
        return f"CREATE OR REPLACE VIEW {name} AS SELECT {listed} WHERE false;"
    paths = ", ".join(_text(file) for file in files)
    listed = ", ".join(map(_quoted, columns))
    return (
        f"CREATE OR REPLACE VIEW {name} AS SELECT {listed} FROM"
        f" read_parquet([{paths}], union_by_name => true);"
    )


def _named(template: str, one: MirrorVersion) -> str:
    table = TableId.parse(one.table)
    try:
        return template.format(owner=table.owner.lower(), table=table.name.lower())
    except (KeyError, IndexError, ValueError) as error:
        raise ConfigError(
            "this is not a template of names",
            hint="Write it with {owner} and {table}, such as 'lake.{owner}_{table}'.",
            given=template[:100],
        ) from error


def _dotted(name: str, *, spark: bool = False) -> str:
    return ".".join(quote_name(part) if spark else _quoted(part) for part in name.split("."))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
