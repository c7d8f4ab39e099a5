"""What does Redolake know of a captured table at one SCN?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cdc_core.model.data_objects import DataObjects
from cdc_core.model.identifiers import TableId, quote
from cdc_core.model.scn import Scn

LOGMINER_NAME_BYTES_MAX = 30
"""LogMiner shows no usable rows for tables and columns with longer names (DBMS_LOGMNR,
"Restrictions")."""

ROW_ID = "_cdc_row_id"
"""The column that holds each row's ROWID where the ROWID is what identifies a row. No captured
column may have a name like this."""

OR_NULL = " or null"
"""Behind a column's form: what it does not hold is NULL."""

WITH_OFFSET = "instant+offset"
"""The form of a time with zone of which the lake holds the moment, and its offset in a column
beside."""

OFFSET, OFFSET_SUFFIX = "offset", "_OFFSET"
"""The form of that column, which no table of Oracle has, and how its name ends: what is in front is
the name of the column beside which it stands."""

LOB_TYPES = frozenset({"CLOB", "NCLOB", "BLOB", "XMLTYPE", "JSON"})
IN_ROW_BYTES_MAX = {"VARCHAR2": 4000, "NVARCHAR2": 4000, "RAW": 2000}
"""A column that may be longer is stored as a LOB (Database SQL Language Reference 19c, "Extended
Data Types")."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column as ALL_TAB_COLS has it.

    ``data_type`` is Oracle's own text (``NUMBER``, ``VARCHAR2``, ``TIMESTAMP(6)``). ``char_length``
    is in characters, ``length`` in bytes. ``default`` is the DEFAULT clause's text, None without
    one. ``held_as`` is what the configuration wants the lake to hold it as (``columns_as``,
    ``types_as``), empty for the type table's own answer; perhaps with :data:`OR_NULL` behind it.

    ``stored_as`` is what the column is for life, whatever Oracle calls it later: the field of the
    change log that has its values. It is the column's first name, or that with a number behind it
    (``B__2``) where another column had this name before
    (:func:`cdc_core.schema.evolution.identified`).
    """

    name: str
    data_type: str
    length: int
    char_length: int
    precision: int | None
    scale: int | None
    nullable: bool
    default: str | None = None
    held_as: str = ""
    stored_as: str = ""

    @property
    def form(self) -> str:
        """The form alone, empty for the type table's own answer."""
        return self.held_as.removesuffix(OR_NULL)

    @property
    def nulls_unfit(self) -> bool:
        """Does a value that the form does not hold become NULL (``on_unfit_value: null``)?"""
        return self.held_as.endswith(OR_NULL)

    @property
    def source(self) -> str:
        """The column of Oracle's table that has the value."""
        return self.name.removesuffix(OFFSET_SUFFIX) if self.form == OFFSET else self.name

    def under(self, names: Mapping[str, str]) -> Column:
        """The column where columns of Oracle's table have other names."""
        if self.source not in names:
            return self
        suffix = OFFSET_SUFFIX if self.form == OFFSET else ""
        return replace(self, name=f"{names[self.source]}{suffix}")

    def __post_init__(self) -> None:
        if not self.stored_as:
            object.__setattr__(self, "stored_as", self.name)

    @property
    def is_lob(self) -> bool:
        """Is the column stored as a LOB, which LogMiner leaves out of old images, so that changes
        may not carry it?"""
        return self.data_type in LOB_TYPES or self.is_extended

    @property
    def is_extended(self) -> bool:
        """Is the column a text or RAW that is so long that Oracle stores it as a LOB?"""
        return self.length > IN_ROW_BYTES_MAX.get(self.data_type, self.length)

    @property
    def is_local_time(self) -> bool:
        """Does the column hold times WITH LOCAL TIME ZONE, which blocks have in the database's time
        zone?"""
        return self.data_type.endswith("WITH LOCAL TIME ZONE")

    @property
    def may_be_empty(self) -> bool:
        """Has the column an empty value that is not NULL? An extended string has none, nor has a
        document."""
        return self.is_lob and not self.is_extended and self.data_type not in ("XMLTYPE", "JSON")

    @property
    def sql(self) -> str:
        """How a query names the column."""
        return "ROWID" if self.name == ROW_ID else quote(self.name)


ROW_ID_COLUMN = Column(
    ROW_ID, "ROWID", length=10, char_length=0, precision=None, scale=None, nullable=False
)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One version of a table: valid from ``scn_from`` (the DDL's SCN, or the SCN at which it was
    first read).

    ``columns`` are the captured ones in the table's order; ``key`` names the primary key's columns,
    or those of a unique index whose columns are all NOT NULL; never empty, since tables without a
    key are refused. Where the ROWID identifies a row (``identity: rowid``), :data:`ROW_ID_COLUMN`
    is the key, and the first column: no row of the redo lists it, each is shown with it.

    ``stored`` names all columns that rows hold, captured or not, in the order in which rows hold
    them (``SEGMENT_COLUMN_ID``): what LogMiner calls ``COL n`` is the n-th. ``charset`` and
    ``ncharset`` are the database's character sets, in which LogMiner then shows text. Empty in
    versions that were stored before they were read. ``time_zone`` is the database's (DBTIMEZONE),
    in which it then shows values WITH LOCAL TIME ZONE: empty where there is no such column, and
    where it is not known.

    ``key_is_deferred``: rows may share the key inside a transaction, since Oracle checks it at the
    end (a DEFERRABLE constraint) or not at all (a configured key that no unique index holds).
    ``key_is_configured``: the configuration names the key, not the table; no part of its
    definition.

    ``dropped`` says which columns were dropped since the table's Delta tables were begun, which
    keep them, and ``given`` which identities columns have had since, both as
    :attr:`Column.stored_as`. No part of Oracle's definition either.

    ``segments`` are the object numbers of all partitions and of the top index that the table is
    known to have had: no part of its definition, but kept with it. So is ``masked``: the columns of
    which something else than the value lands, and what (``columns_mask``), by name; and
    ``omitted``: those that are left out for their types, each with its type. ``has_lobs``:
    it has columns that Oracle stores as LOBs, captured or not, so that LogMiner shows rows without
    their ROWIDs. ``closes_shown``: it has had them since its stream began, in a release that shows
    the row with which a statement ends, so capture asks for those rows. ``is_by_text``: the texts
    of DDL say what the table is, and Oracle's dictionary has not shown it so since.
    ``data_objects`` are those as of ``scn_from``, in a version that a snapshot reads.
    """

    table: TableId
    scn_from: Scn
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    object_id: int = 0
    excluded: tuple[str, ...] = field(default=())
    stored: tuple[str, ...] = field(default=())
    charset: str = ""
    ncharset: str = ""
    time_zone: str = ""
    segments: tuple[int, ...] = field(default=(), compare=False)
    masked: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    omitted: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    dropped: tuple[str, ...] = field(default=(), compare=False)
    given: tuple[str, ...] = field(default=(), compare=False)
    key_is_deferred: bool = False
    key_is_configured: bool = field(default=False, compare=False)
    has_lobs: bool = field(default=False, compare=False)
    closes_shown: bool = field(default=False, compare=False)
    is_by_text: bool = field(default=False, compare=False)
    data_objects: DataObjects | None = field(default=None, compare=False)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the captured columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def names_in_oracle(self) -> tuple[str, ...]:
        """The same, without those that no table of Oracle has."""
        return tuple(column.name for column in self.columns if column.form != OFFSET)

    @property
    def is_by_row_id(self) -> bool:
        """Does the ROWID identify a row?"""
        return self.key == (ROW_ID,)

    @property
    def has_placeholders(self) -> bool:
        """Must the ROWIDs that identify its rows be found, since LogMiner shows placeholders in
        their place?"""
        return self.is_by_row_id and self.has_lobs

    @property
    def is_undone_by_statement(self) -> bool:
        """May one undo row take back several redo rows, as in tables with LOBs?"""
        return self.has_lobs or any(column.is_lob for column in self.columns)

    @property
    def local_times(self) -> frozenset[str]:
        """Names of the columns WITH LOCAL TIME ZONE."""
        return frozenset(one.name for one in self.columns if one.is_local_time)

    def in_zone_of(self, *others: TableSchema) -> TableSchema:
        """The version with the time zone that it shares with another one of the table, the first
        that knows it; with none else.

        Oracle keeps DBTIMEZONE as long as any table has a column WITH LOCAL TIME ZONE (ORA-30079),
        so versions that have one in common have one zone.

        Source: Oracle Database SQL Language Reference 19c, "ALTER DATABASE", set_time_zone_clause.
        """
        zones = [one.time_zone for one in others if one.local_times & self.local_times]
        return replace(self, time_zone=next(filter(None, zones), ""))

    def as_in_rows(self) -> TableSchema:
        """The version with the columns that rows hold: without the ROWID."""
        if not self.is_by_row_id:
            return self
        columns = tuple(column for column in self.columns if column.name != ROW_ID)
        return replace(self, columns=columns, key=())

    def column(self, name: str) -> Column:
        """The column of that exact name; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def without(self, names: Collection[str]) -> TableSchema:
        """The version with some columns left out as well."""
        fresh = [name for name in names if name not in self.excluded]
        if not fresh:
            return self
        columns = tuple(
            one for one in self.columns if one.name not in names and one.source not in names
        )
        excluded = (*self.excluded, *fresh)
        return replace(self, columns=columns, excluded=excluded, given=self.identities)

    def held(self, stored_as: str) -> Column:
        """The column of that identity; KeyError if there is none."""
        for column in self.columns:
            if column.stored_as == stored_as:
                return column
        raise KeyError(stored_as)

    @property
    def identities(self) -> tuple[str, ...]:
        """All identities that columns of the table have had, each once."""
        own = (column.stored_as for column in self.columns)
        return tuple(dict.fromkeys((*self.given, *own)))

    @property
    def stored_names(self) -> dict[str, str]:
        """The identity of each column (:attr:`Column.stored_as`), by its name, in order."""
        return {column.name: column.stored_as for column in self.columns}

    @property
    def present_names(self) -> dict[str, str]:
        """The name of each column by its identity. One that this version lacks, and whose name
        another column has now, has none (``""``)."""
        found = {column.stored_as: column.name for column in self.columns}
        return {name: "" for name in found.values() if name not in found} | found

    def as_logged(self) -> TableSchema:
        """The version with the change log's names: each column is called what it is for life."""
        names = self.stored_names
        if all(name == stored_as for name, stored_as in names.items()):
            return self
        columns = tuple(replace(column, name=column.stored_as) for column in self.columns)
        return replace(self, columns=columns, key=tuple(names.get(key, key) for key in self.key))

    def in_oracle(self) -> TableSchema:
        """The version without the columns that the Delta tables keep and Oracle does not have any
        more."""
        return self.lacking([one.name for one in self.columns if one.stored_as in self.dropped])

    def lacking(self, names: Collection[str]) -> TableSchema:
        """The version without some columns, of which it knows what it knew before."""
        if not names:
            return self
        columns = tuple(column for column in self.columns if column.name not in names)
        return replace(self, columns=columns)

    def keeping(self, earlier: TableSchema) -> TableSchema:
        """The version with the columns that ``earlier`` has and this one leaves out, each in its
        old place.

        Delta tables keep a column that was left out or dropped later: it is NULL from then on.
        Columns have the names of the newer version. One that was dropped gives its name up to a
        column that has it now, and is called ``B__dropped`` by what it is stored as.
        """
        own = {column.stored_as: column for column in self.columns}
        known = {column.stored_as: column for column in earlier.columns}
        kept = [
            one
            for one in earlier.columns
            if one.stored_as in own or one.stored_as in self.dropped or one.name in self.excluded
        ]
        columns = [own.get(one.stored_as, one) for one in kept]
        columns += [one for one in self.columns if one.stored_as not in known]
        newest = own if self.scn_from >= earlier.scn_from else known
        named = _named(columns, {stored_as: one.name for stored_as, one in newest.items()})
        names = {one.name: named[self.stored_names[one.name]] for one in self.columns}
        return replace(
            self,
            columns=tuple(replace(one, name=named[one.stored_as]) for one in columns),
            key=tuple(names.get(name, name) for name in self.key),
            excluded=tuple(one for one in self.excluded if one not in named.values()),
            given=tuple(dict.fromkeys((*earlier.identities, *self.identities))),
        )


def _named(columns: Sequence[Column], newest: Mapping[str, str]) -> dict[str, str]:
    """Unique names of columns by their identities, ``newest`` being those that some must have."""
    named = {one.stored_as: newest[one.stored_as] for one in columns if one.stored_as in newest}
    taken = {name.casefold() for name in named.values()}
    for column in (one for one in columns if one.stored_as not in named):
        name = column.name
        if name.casefold() in taken:
            name = f"{column.stored_as}__dropped"
        while name.casefold() in taken:
            name += "_"
        named[column.stored_as] = name
        taken.add(name.casefold())
    return named
