"""Before a source is begun: which tables does a database have, and can everything that the source
needs be reached?

Each question connects by itself, so that one failure hides nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress

from cdc_core.change_reader import OpenReader
from cdc_core.config import (
    EventsConfig,
    LogMinerConfig,
    OracleConfig,
    SourceConfig,
    sources_of,
)
from cdc_core.errors import (
    ANY_TABLE,
    CdcError,
    ConfigError,
    LakeError,
    LandingDamagedError,
    PreflightError,
    SchemaMismatchError,
    UnsupportedTypeError,
)
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.foreign_words import LAYER_WORDS, replaced_hint
from cdc_core.landing.open import open_landing
from cdc_core.model.findings import Finding
from cdc_core.model.patterns import TablePattern
from cdc_core.model.records import TableRecord
from cdc_core.model.reports import FoundTable
from cdc_core.oracle.database import OracleDatabase
from cdc_core.oracle.session import connect
from cdc_core.preflight.script import dba_script, read_site
from cdc_core.preflight.tables import check_tables
from cdc_core.readers import open_reader
from cdc_core.schema.catalog import find_tables
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.dictionary_queries import UserQueries
from cdc_core.state.store import Store
from cdc_core.steps.context import Context
from cdc_core.steps.foreign_commits import foreign_changes, refuse_foreign
from cdc_core.steps.pattern_matching import look_up, with_matches
from cdc_core.steps.windows.missing_in_lake import find_lost


def tables_matching(oracle: OracleConfig, patterns: Sequence[str]) -> list[FoundTable]:
    """The tables that one of the patterns names (``SHOP.*``), and whether they can be captured.

    Raises:
        ConfigError: A text is no pattern.
        CdcError: The database cannot be reached.
    """
    wanted = [TablePattern.parse(text) for text in patterns]
    with connect(oracle) as session:
        return find_tables(session, lambda table: any(one.matches(table) for one in wanted))


def oracle_findings(
    config: SourceConfig, *, open_reader: OpenReader = open_reader
) -> tuple[list[Finding], int]:
    """What database and tables lack, and what an operator should know; and how many tables there
    are to capture.

    Args:
        open_reader: What reads the redo, by ``capture.type``.

    Raises:
        CdcError: The database cannot be reached.
    """
    with _database(config) as database, database.session() as session:
        found = look_up(session, config, []) if config.has_patterns else []
        tables = with_matches(config, found)
        findings = [
            Finding(f"left out by its pattern: {one.left_out}", "", one.table, is_problem=False)
            for one in found
            if one.left_out
        ]
        if not tables.tables:
            problem = Finding("no table can be captured", "Name other tables or patterns.")
            return [*findings, problem], 0
        of_redo = open_reader(tables, database).check(tables.tables)
        of_tables = check_tables(session, tables.tables, tables.snapshot.read)
        own = _beside_patterns(session, config)
        found_all = [*findings, *of_redo, *of_tables, *own, *_skipping(tables)]
        return list(dict.fromkeys(found_all)), len(tables.tables)


def missing_sql(config: SourceConfig) -> str:
    """The script with which a database administrator gives a source what
    :func:`oracle_findings` found missing (:func:`~cdc_core.preflight.script.dba_script`); of
    several pluggable databases, for all of them.

    Raises:
        CdcError: The database cannot be reached.
    """
    found = []
    for part in list(sources_of(config).values()) or [config]:
        logs_by = part.capture.logs if isinstance(part.capture, LogMinerConfig) else "files"
        with _database(part) as database, database.session() as session:
            site = read_site(session, logs_by)
        findings, _tables = oracle_findings(part)
        found.append((site, findings))
    return dba_script(config.name, found)


@contextmanager
def _database(config: SourceConfig) -> Iterator[OracleDatabase]:
    """The source's database, for an operator: a password that was refused is sent once more, and
    all processes of the metadata store hear what became of it."""
    with ExitStack() as opened:
        refusals = None
        with suppress(CdcError):  # a question of its own
            store = Store.open(config.state.url_with_password, config.name)
            refusals = opened.enter_context(store).refused_logins
        database = OracleDatabase(config.oracle, refusals=lambda: refusals, insists=True)
        yield opened.enter_context(closing(database))


def _beside_patterns(session: UserQueries, config: SourceConfig) -> Iterator[Finding]:
    """Which tables with an entry of their own capture columns that a pattern leaves out or masks?
    A table with an entry of its own inherits nothing from patterns."""
    for entry in config.tables:
        if entry.is_pattern:
            continue
        hiding = [one for one in config.tables if one.takes(entry.table)]
        if not any(
            one.columns_include or one.columns_exclude or one.columns_mask for one in hiding
        ):
            continue
        try:
            captured = {column.name for column in read_table_schema(session, entry).columns}
        except (ConfigError, PreflightError, SchemaMismatchError, UnsupportedTypeError):
            continue  # the table's own finding says what is wrong with it
        hidden = {
            name: pattern.name
            for pattern in hiding
            for name in captured
            if entry.mask_of(name) is None
            and (pattern.mask_of(name) is not None or pattern.excludes(name))
        }
        if shown := sorted(hidden):
            yield Finding(
                f"{entry.table}: its entry captures {', '.join(shown)} as they are, which the pattern {hidden[shown[0]]} leaves out or masks; "
                "a table with its own entry inherits nothing from patterns",
                "Name them under columns_exclude or columns_mask of the entry too, unless their "
                "values may land",
                entry.table,
                is_problem=False,
            )


def _skipping(config: SourceConfig) -> list[Finding]:
    """Which tables' change logs mark changes as skipped."""
    return [
        Finding(
            "some changes are skipped: the change log marks them",
            "Read the change log WHERE _cdc_skipped IS NULL; the mirror has every change, and `redolake reconcile` proves it",
            one.table,
            is_problem=False,
        )
        for one in config.tables
        if config.events_of(one.table) != EventsConfig()
    ]


def delta_findings(config: SourceConfig) -> tuple[list[Finding], int]:
    """Which tables' Delta tables lack windows that were applied by the metadata store; and how many
    tables were looked at. Neither Oracle nor Spark is asked.

    Raises:
        CdcError: Metadata store, landing or lake cannot be reached.
    """
    ctx = Context(
        config, report=None, on_statement=None, open_lake=DeltaLake, open_reader=open_reader
    )
    findings: list[Finding] = []
    with closing(ctx):
        states = [one for one in ctx.store.tables.all() if one.mirror_scn is not None]
        for state in states:
            try:
                findings += _gone_files(ctx, state)
                position = ctx.table_lake(state).position()
                refuse_foreign(state, position)
                lost = find_lost(ctx, state, position)
            except (LakeError, LandingDamagedError) as error:
                remedy = error.hint.replace(ANY_TABLE, state.table.argument)
                findings.append(Finding(error.what_happened, remedy, state.table))
                continue
            findings += [
                Finding(problem, remedy, state.table, is_problem=False)
                for problem, remedy in foreign_changes(state.table, position)
            ]
            if lost:
                findings.append(
                    Finding(
                        f"the mirror lacks windows that were applied, {lost[0].record.key} to {lost[-1].record.key}: "
                        "its Delta tables are older than the metadata store says",
                        "`redolake run` takes them again before the next window that changes the table; to have them now, run "
                        f"`redolake table rebuild --from-landing {state.table.argument}`.",
                        state.table,
                    )
                )
    return findings, len(states)


def _gone_files(ctx: Context, record: TableRecord) -> Iterator[Finding]:
    table = record.table
    for layer, names in ctx.lake.table(table).missing_files().items():
        way_out = f"Restore what is gone. Without a copy: {replaced_hint(layer, table.argument)}"
        if names is None and record.state != "removed":
            yield Finding(f"the {LAYER_WORDS[layer]} is not there", way_out, table)
        elif names:
            yield Finding(
                f"{len(names)} files of the {LAYER_WORDS[layer]} are gone, the first of them {names[0]}",
                way_out,
                table,
            )


def as_last_found(config: SourceConfig) -> SourceConfig:
    """The configuration with the tables that its patterns named when somebody last looked them up
    in Oracle.

    Raises:
        CdcError: The store cannot be opened.
    """
    if not config.has_patterns:
        return config
    with Store.open(config.state.url_with_password, config.name) as store:
        return with_matches(config, store.matches.get())


def as_found_now(config: SourceConfig) -> SourceConfig:
    """The configuration with the tables that its patterns name now.

    Raises:
        CdcError: The database cannot be reached.
    """
    if not config.has_patterns:
        return config
    with _database(config) as database, database.session() as session:
        return with_matches(config, look_up(session, config, []))


def landed_folders(config: SourceConfig) -> int:
    """How many folders of the source landing has.

    Raises:
        CdcError: Landing cannot be reached.
    """
    return len(open_landing(config.landing).list_folders(config.name))


def recorded_tables(config: SourceConfig) -> int:
    """How many tables of the source the metadata store has; makes the store where there is none.

    Raises:
        CdcError: The store cannot be opened.
    """
    with Store.open(config.state.url_with_password, config.name) as store:
        return len(store.tables.all())
