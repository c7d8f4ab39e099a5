"""What can a user configure of one table, and of what Redolake does when it cannot follow it?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator, Field, field_validator, model_validator

from cdc_core.config.base import ConfigModel, checked
from cdc_core.config.history import HistoryKind
from cdc_core.config.lake import DeletionVectors, DeltaFeature
from cdc_core.config.snapshot import Cut, Reading
from cdc_core.model.character_sets import check_character_set
from cdc_core.model.identifiers import TableId, split_container
from cdc_core.model.patterns import (
    ColumnRule,
    TablePattern,
    check_name,
    fitting,
    is_name_pattern,
)

N = TypeVar("N", bound=Iterable[str])


def check_form(form: str) -> str:
    """A form whose character set, if it names one, is known."""
    charset = form.removeprefix("text(").removesuffix(")")
    if charset != form.removesuffix(")"):
        check_character_set(charset)
    return form


HeldAs = Annotated[
    str,
    Field(
        pattern=r"^(text(\([A-Z0-9]+\))?|double|decimal\(([1-9]|[12][0-9]|3[0-8]),([0-9]|[12][0-9]|3[0-8])\)|boolean(\(>0\))?|hex|base64"
        r"|base64url|iso8601|timestamp|instant(\+offset)?|date|microseconds|nanoseconds|snapshot|[A-Za-z_][\w.]*:[A-Za-z_]\w*)$"
    ),
    AfterValidator(check_form),
]
TypeName = Literal[
    "NUMBER(1)",
    "NUMBER",
    "FLOAT",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMP WITH LOCAL TIME ZONE",
    "INTERVAL YEAR TO MONTH",
    "INTERVAL DAY TO SECOND",
    "LONG",
    "LONG RAW",
    "RAW",
    "UROWID",
    "BLOB",
]
Mask = Annotated[
    str,
    Field(
        pattern=r"^((stars|truncate)\((0|[1-9][0-9]{0,3})\)"
        r"|hash(_v1)?\((md5|sha1|sha224|sha256|sha384|sha512|sha3_224|sha3_256|sha3_384|sha3_512)(, ?[1-9][0-9]{0,2})?"
        r"(, ?salt=[a-z][a-z0-9_]{0,39})?\))$"
    ),
]
UnsupportedKind = Literal[
    "LONG", "LONG RAW", "UROWID", "BFILE", "JSON", "BOOLEAN", "VECTOR", "SDO_GEOMETRY", "OBJECT"
]
UnsupportedAnswer = Literal["refuse", "omit", "reselect"]
RESELECTED_KINDS: tuple[UnsupportedKind, ...] = ("JSON", "BOOLEAN", "VECTOR")
"""Kinds of whose tables LogMiner shows no row, and which a query can read."""
UnsupportedColumns = UnsupportedAnswer | dict[UnsupportedKind, UnsupportedAnswer]
Policy = Literal[
    "stop",
    "resnapshot",
    "remove",
    "ignore",
    "quarantine",
    "skip",
    "follow",
    "follow_or_resnapshot",
    "rewrite",
]


class PolicyConfig(ConfigModel):
    """What Redolake does with a table after an event that it cannot follow. ``stop`` stops the
    table and reports the reason and the command that brings it back. ``resnapshot`` rereads that
    table automatically with a new snapshot. ``remove`` removes the table without an error, and
    keeps its Delta tables. ``ignore`` continues with the table. Other tables always continue. Each
    table can have its own policies."""

    on_truncate: Literal["stop", "resnapshot", "follow", "follow_or_resnapshot"] = "stop"
    """Rows were removed without redo for each row: TRUNCATE, or a partition that was dropped or
    exchanged. ``follow`` empties the mirror after ``TRUNCATE TABLE``, and writes one event with the
    operation ``t`` to the change log. After DROP or TRUNCATE of a partition or subpartition by
    RANGE or LIST of one captured column, it deletes the rows within the partition's bounds. If the
    bounds do not say which rows these are, ``follow`` stops the table, and ``follow_or_resnapshot``
    rereads it. After an EXCHANGE of such a partition, ``follow_or_resnapshot`` also reads the new
    rows; ``follow`` stops the table."""

    on_drop: Literal["stop", "resnapshot", "remove"] = "stop"
    """The table was dropped, renamed, or dropped and created again. ``resnapshot`` waits until a
    table of that name exists: created again, renamed, or restored from the recycle bin. For a table
    that a pattern matched, the default is ``remove``, because a pattern names the tables that
    exist. If a table of that name exists again, it joins again."""

    on_unsupported_ddl: Literal["stop", "resnapshot"] = "stop"
    """Any other DDL that Redolake cannot follow, such as another key, or a column of another kind
    of type. If the new definition does not fit the Delta tables, the new snapshot starts new ones
    and moves the old ones aside."""

    on_widened_column: Literal["rewrite", "stop", "resnapshot"] = "rewrite"
    """A column was modified to a type that does not fit its Delta type, such as a NUMBER with more
    digits. ``rewrite`` rewrites mirror and change log once with the wider type, without Oracle. It
    takes as long as copying both, and older versions stay for time travel until VACUUM.
    ``resnapshot`` begins new Delta tables, and moves the old ones aside. The policy in force when
    the DDL is captured decides."""

    on_undecodable: Literal["stop", "resnapshot", "quarantine", "skip"] = "stop"
    """Redolake cannot turn a redo row into a change without guessing. ``quarantine`` stores the
    redo row in a separate Delta table, and continues with the table: in the mirror, the affected
    row is missing, stale or left over until ``redolake table resnapshot`` or ``redolake repair``.
    ``skip`` does the same for any number of rows, and stores only the position of each and the
    reason, without its text."""

    on_unfit_value: Literal["refuse", "null"] = "refuse"
    """Oracle has a value that does not fit the column's type in the lake: a day that Delta's
    calendar lacks, a number that does not fit a ``decimal(p,s)``, a value that a converter refuses.
    ``refuse`` treats a redo row with such a value as undecodable (``on_undecodable``); in a
    snapshot, it stops the table. ``null`` (in quotes, because a bare null means nothing in YAML)
    stores NULL instead of the value, in snapshots, in the log and in comparisons, and counts it
    (``redolake_unfit_values_total``), but never in columns of the key."""

    on_invalid_text: Literal["refuse", "replace"] = "refuse"
    """A text has bytes that are not UTF-8, which a client with a wrong character set can store in
    Oracle. ``refuse`` treats a redo row with such a value as undecodable (``on_undecodable``); in a
    snapshot, it stops the table. ``replace`` replaces such bytes with the character U+FFFD, in
    snapshots and in the log, but never in columns of the key."""

    quarantine_rows_max: Annotated[int, Field(gt=0)] = 1000
    """A table with more rows than this in quarantine stops."""

    on_unlogged: Literal["stop", "resnapshot", "ignore"] = "stop"
    """Something was written without redo into a tablespace of the table (UNRECOVERABLE_CHANGE# of a
    data file grew). Oracle does not say what it was: a load into a NOLOGGING table, or an index
    that was rebuilt. ``ignore`` only logs a warning; use it if captured tables are never written
    that way."""

    on_snapshot_too_old: Literal["stop", "resnapshot"] = "resnapshot"
    """Oracle can no longer read a table as of the SCN of its unfinished snapshot, and all chunks
    must be read as of one SCN, because a DDL changed a table that is read by ranges of ROWIDs
    (``snapshot.cut``), or renamed and dropped its columns. ``resnapshot`` starts that snapshot
    again at a newer SCN, once; if the same happens again, Redolake stops the table. In all other
    snapshots, Redolake reads such chunks as of a newer SCN."""

    on_redo_gone: Literal["stop", "resnapshot"] = "stop"
    """Redo that the table needs is permanently lost: an archived log was deleted, or is missing
    while later ones are archived. ``stop``: the table keeps its position, and every window waits
    until you restore the log or run ``redolake source skip-gap``. ``resnapshot`` ends the table's
    stream before the gap and rereads the table after it with a new snapshot."""

    resnapshot_hours_min: Annotated[float, Field(gt=0)] = 12
    """If the same problem recurs within this many hours after a policy reread the table, or before
    its new snapshot is complete, Redolake stops the table instead of rereading it endlessly."""


class TableConfig(ConfigModel):
    """One captured table, or a pattern for many."""

    name: str
    """``OWNER.TABLE``; double quotes around a part that is not upper case. With ``oracle.pdbs``
    also ``PDB.OWNER.TABLE``, for the table of one pluggable database; it takes precedence over an
    entry of the same name without one. With ``*`` (any characters) or ``?`` (one character), a
    pattern, for example ``SHOP.*``: Redolake captures every matching table that it supports. With
    the prefix ``re:``, a regular expression over ``OWNER.TABLE``, for example
    ``re:SHOP\\.ORDERS_[0-9]{4}``: it must match the whole name, case-sensitively. If another entry
    names a table in full, that entry applies, else the first pattern that matches."""

    exclude: tuple[str, ...] = ()
    """For a pattern: tables, or patterns of tables, that it skips."""

    columns_include: tuple[str, ...] = ()
    """The only columns to capture, by name or pattern as in ``columns_exclude``, which takes
    precedence; they must include those of the key. A column that is added later and matches none is
    not captured, and the log says so. Empty, the default: all columns."""

    columns_exclude: tuple[str, ...] = ()
    """Columns not to capture, for example of unsupported types: names, patterns with ``*`` and
    ``?``, or regular expressions after ``re:``, such as ``re:.*_(SSN|IBAN)``, which must match the
    whole name. They also apply to columns that are added later. For a pattern: in every table that
    has them; columns of unsupported types are omitted automatically."""

    unsupported_columns: UnsupportedColumns | None = None
    """As ``unsupported_columns`` of the source, for this table; by default that of the source."""

    columns_as: dict[str, HeldAs] = Field(default_factory=dict)
    """Types to use for columns instead of the default type mapping, in snapshots and in the log. A
    NUMBER or FLOAT: ``text`` (exact), ``decimal(p,s)``, or ``double``, which may round; a NUMBER of
    up to 18 digits: ``boolean`` or ``boolean(>0)``. A DATE or TIMESTAMP: ``date``, ``text``,
    ``iso8601``, ``microseconds`` or ``nanoseconds`` since 1970, a TIMESTAMP also ``timestamp``. A
    time with zone: ``instant`` (Delta's TIMESTAMP, in UTC), ``iso8601``, or, WITH TIME ZONE,
    ``instant+offset``, which adds a column ``<NAME>_OFFSET`` (``+02:00``). An interval: ``iso8601``
    or ``microseconds``. A RAW or BLOB: ``hex``, ``base64`` or ``base64url``, a RAW also ``text``
    (UTF-8) or ``text(WE8ISO8859P1)``, with Oracle's name of a character set. A LONG, LONG RAW or
    UROWID: ``snapshot``, with which only snapshots read values; a change in the redo that sets one
    is undecodable. Any type: ``package.module:Class``, a converter of your own. A value that does
    not fit is an error. A column of the key may only become a ``decimal(p,s)``. You can name
    columns by pattern, as in ``columns_exclude``; a column's own name takes precedence, and
    patterns skip columns of the key. For a pattern: in every table that has them."""

    types_as: dict[TypeName, HeldAs] = Field(default_factory=dict)
    """The same for all columns of a type, for example ``{NUMBER(1): boolean, RAW: hex}``; the name
    is the type without digits, or ``NUMBER(1)``. It does not apply to columns that ``columns_as``
    names, nor to columns of the key."""

    columns_mask: dict[str, Mask] = Field(default_factory=dict)
    """Masks that replace the values of columns, in snapshots and in the log, before anything lands:
    ``stars(n)`` for n asterisks, ``truncate(n)`` for the first n characters, ``hash(sha256)`` for
    the hexadecimal digest of ``masks.salt`` and the value, ``hash(sha256, 20)`` for its first 20
    characters, ``hash(sha256, salt=crm)`` with the salt ``crm`` of ``masks.salts`` instead of
    ``masks.salt``. Other digests are ``md5``, ``sha1``, ``sha224``, ``sha384``, ``sha512`` and
    ``sha3_224`` to ``sha3_512``; ``hash_v1(…)`` hashes as Debezium's first version does. Masks
    apply to CHAR, VARCHAR2, NCHAR, NVARCHAR2, CLOB and NCLOB; a CLOB needs
    ``capture.lobs: reselect``. A column of the key may have a hash of 32 characters or more, which
    then is the mirror's key. NULL stays NULL; ``stars(0)`` and ``truncate(0)`` turn every value
    into NULL. You can name columns by pattern, as in ``columns_exclude``; a column's own name takes
    precedence, then the first pattern that matches. For a pattern: in every table that has
    them."""

    key: tuple[str, ...] = ()
    """Columns that identify a row, all NOT NULL; by default those of the source's ``key``, else the
    primary key, else a unique index over NOT NULL columns. Not for a pattern."""

    identity: Literal["key", "rowid"] = "key"
    """What identifies a row. ``key``, the default: its key. ``rowid``: its ROWID, for a table
    without a key; mirror and change log have it in the column ``_cdc_row_id``. Any operation that
    changes ROWIDs (``ALTER TABLE … MOVE``, ``SHRINK SPACE``, partitions that are split or merged)
    stops the table until you resnapshot it. ``rowid`` is not possible for index-organized tables,
    tables in a cluster, tables with XMLTYPE columns, and patterns. A table with LOBs needs Oracle
    23ai and supplemental logging of all columns."""

    on_truncate: Literal["stop", "resnapshot", "follow", "follow_or_resnapshot"] | None = None
    """As ``policies.on_truncate``, for this table; by default that of the source."""

    on_drop: Literal["stop", "resnapshot", "remove"] | None = None
    """As ``policies.on_drop``, for this table; by default that of the source."""

    on_unsupported_ddl: Literal["stop", "resnapshot"] | None = None
    """As ``policies.on_unsupported_ddl``, for this table; by default that of the source."""

    on_widened_column: Literal["rewrite", "stop", "resnapshot"] | None = None
    """As ``policies.on_widened_column``, for this table; by default that of the source."""

    on_undecodable: Literal["stop", "resnapshot", "quarantine", "skip"] | None = None
    """As ``policies.on_undecodable``, for this table; by default that of the source."""

    on_unfit_value: Literal["refuse", "null"] | None = None
    """As ``policies.on_unfit_value``, for this table; by default that of the source."""

    on_invalid_text: Literal["refuse", "replace"] | None = None
    """As ``policies.on_invalid_text``, for this table; by default that of the source."""

    on_unlogged: Literal["stop", "resnapshot", "ignore"] | None = None
    """As ``policies.on_unlogged``, for this table; by default that of the source."""

    on_snapshot_too_old: Literal["stop", "resnapshot"] | None = None
    """As ``policies.on_snapshot_too_old``, for this table; by default that of the source."""

    on_redo_gone: Literal["stop", "resnapshot"] | None = None
    """As ``policies.on_redo_gone``, for this table; by default that of the source."""

    read: Reading | None = None
    """As ``snapshot.read``, for this table; by default that of the source."""

    cut: Cut | None = None
    """As ``snapshot.cut``, for this table; by default that of the source."""

    surrogate_key: str | None = None
    """As ``snapshot.surrogate_key``, for this table; by default that of the source."""

    skipped_operations: tuple[Literal["c", "u", "d"], ...] | None = None
    """As ``events.skipped_operations``, for this table; by default that of the source."""

    skip_unchanged: bool | None = None
    """As ``events.skip_unchanged``, for this table; by default that of the source."""

    deletion_vectors: DeletionVectors | None = None
    """As ``maintenance.deletion_vectors``, for this table; by default that of the source."""

    history: HistoryKind | None = None
    """As ``lake.history``, for this table; by default that of the source."""

    history_columns: tuple[str, ...] = ()
    """Only changes of these columns, by name or pattern as in ``columns_exclude``, begin a state in
    the table's history; a state shows the last values of the others. Empty, the default: all
    columns. For a pattern: in every table that has them."""

    cluster_by_key: bool | None = None
    """As ``maintenance.cluster_by_key``, for this table; by default that of the source."""

    delta_features: tuple[DeltaFeature, ...] | None = None
    """As ``maintenance.delta_features``, for this table; by default those of the source."""

    @field_validator("name")
    @classmethod
    def _is_table(cls, name: str) -> str:
        _, own = split_container(name)
        checked(own, TablePattern.parse if TablePattern.is_in(own) else TableId.parse)
        return name

    @field_validator("unsupported_columns")
    @classmethod
    def _can_be_read(cls, answer: UnsupportedColumns | None) -> UnsupportedColumns | None:
        named = answer.items() if isinstance(answer, dict) else ()
        wrong = [kind for kind, own in named if own == "reselect" and kind not in RESELECTED_KINDS]
        if wrong:
            kinds = ", ".join(RESELECTED_KINDS)
            raise ValueError(f"reselect is for {kinds}, not for {', '.join(wrong)}")
        return answer

    @field_validator("exclude")
    @classmethod
    def _are_patterns(cls, exclude: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(checked(text, TablePattern.parse) for text in exclude)

    @field_validator(
        "columns_include", "columns_exclude", "columns_mask", "columns_as", "history_columns"
    )
    @classmethod
    def _are_names(cls, names: N) -> N:
        for name in names:
            checked(name, check_name)
        return names

    @model_validator(mode="after")
    def _fits_what_is_named(self) -> Self:
        if self.is_pattern and (self.key or self.identity != "key"):
            raise ValueError(
                "a pattern has no key or identity: name the columns under the source's `key`, or "
                "give the table its own entry"
            )
        if self.key and self.identity != "key":
            raise ValueError(
                "key names columns, and identity says that rows have none: leave one of them out"
            )
        masked = (name for name in self.columns_mask if not is_name_pattern(name))
        if both := sorted(filter(self.column_rule.excludes, masked)):
            raise ValueError(f"columns are both excluded and masked: {', '.join(both)}")
        if self.exclude and not self.is_pattern:
            raise ValueError("only a pattern excludes tables, for example the name 'SHOP.*'")
        return self

    @property
    def column_rule(self) -> ColumnRule:
        """Which columns it leaves out."""
        return ColumnRule(self.columns_include, self.columns_exclude)

    def mask_of(self, column: str) -> str | None:
        """How it masks a column, whether or not the table has it yet; None for not at all."""
        return fitting(self.columns_mask, column)

    def form_of(self, column: str) -> str | None:
        """As what it holds a column; None where it says nothing of it."""
        return fitting(self.columns_as, column)

    @property
    def leaving_out(self) -> str:
        """What an error says of a column that is left out, in front of which one it is."""
        said = {
            "columns_include lacks": self.columns_include,
            "columns_exclude names": self.columns_exclude,
        }
        return " or ".join(text for text, names in said.items() if names)

    def excludes(self, column: str) -> bool:
        """Does it leave a column out, whether or not the table has it yet?"""
        return self.column_rule.excludes(column)

    @property
    def is_pattern(self) -> bool:
        """Does the entry name tables by a pattern?"""
        return TablePattern.is_in(self._own_name)

    def omits(self, data_type: str) -> bool:
        """Is a column of a type that is not captured left out by itself? ``data_type`` is Oracle's
        own text."""
        return self._answer_for(data_type) == "omit"

    def reselects(self, data_type: str) -> bool:
        """Is a column of a type whose rows LogMiner does not show captured all the same, by reading
        the rows that change from Oracle?"""
        is_kind = data_type in RESELECTED_KINDS
        return is_kind and self._answer_for(data_type) == "reselect"

    @property
    def reselects_some(self) -> bool:
        """May it have columns that :meth:`reselects`?"""
        return any(map(self.reselects, RESELECTED_KINDS))

    def _answer_for(self, data_type: str) -> UnsupportedAnswer | None:
        answer = self.unsupported_columns
        if not isinstance(answer, dict):
            return answer
        kind = data_type if data_type in get_args(UnsupportedKind) else "OBJECT"
        return next((own for named, own in answer.items() if named == kind), None)

    @property
    def container(self) -> str | None:
        """The pluggable database that is named with the table, as Oracle keeps it."""
        return split_container(self.name)[0]

    def without_container(self) -> Self:
        """The entry as the source of its pluggable database has it."""
        return self.model_copy(update={"name": self._own_name})

    @property
    def identity_in_file(self) -> TableId | TablePattern:
        """What two entries for one pluggable database may not share."""
        return TablePattern.parse(self._own_name) if self.is_pattern else self.table

    @property
    def _own_name(self) -> str:
        return split_container(self.name)[1]

    @property
    def has_own_key(self) -> bool:
        """Is it for the table itself to say what identifies a row?"""
        return not self.key and self.identity == "key"

    @property
    def table(self) -> TableId:
        """The table that is named. A pattern names none."""
        return _table_of(self._own_name)

    def takes(self, table: TableId) -> bool:
        """Is the table one that this pattern names and does not exclude?"""
        if not self.is_pattern or not TablePattern.parse(self._own_name).matches(table):
            return False
        return not any(TablePattern.parse(text).matches(table) for text in self.exclude)


@lru_cache(maxsize=16_384)
def _table_of(name: str) -> TableId:
    """Asked again and again for each of maybe thousands of tables."""
    return TableId.parse(name)


class MatchedTable(TableConfig):
    """A table that a pattern took in. Its lists may name columns that the table does not have, or
    not yet."""

    matched_by: TablePattern | None = None
    """The pattern."""

    @property
    def is_pattern(self) -> bool:
        """Never, whatever characters the table's name has."""
        return False
