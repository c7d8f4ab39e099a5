"""What can a user configure of one source, all parts together?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Self, TypeVar, get_args

from pydantic import Field, SecretStr, field_validator, model_validator

from cdc_core.config.alerts import AlertsConfig
from cdc_core.config.base import (
    NAME_LENGTH_MAX,
    ConfigModel,
    Name,
    checked,
)
from cdc_core.config.capture import CaptureConfig, LogMinerConfig
from cdc_core.config.events import EventsConfig
from cdc_core.config.history import HistoryKind
from cdc_core.config.lake import (
    CachedLandingConfig,
    DeletionVectors,
    DeltaFeature,
    LakeConfig,
    LandingConfig,
    MaintenanceConfig,
    RetentionConfig,
)
from cdc_core.config.metrics import MetricsConfig, OpenLineageConfig, TelemetryConfig
from cdc_core.config.notifications import NotificationConfig
from cdc_core.config.oracle import OracleConfig
from cdc_core.config.publish import PublishConfig
from cdc_core.config.signals import SignalConfig
from cdc_core.config.snapshot import SnapshotConfig
from cdc_core.config.state import StateConfig
from cdc_core.config.tables import (
    HeldAs,
    Mask,
    MatchedTable,
    Policy,
    PolicyConfig,
    TableConfig,
    UnsupportedColumns,
)
from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId, split_container
from cdc_core.model.patterns import (
    ColumnPattern,
    ColumnRule,
    TablePattern,
    is_name_pattern,
)
from cdc_core.model.streams import Trouble
from cdc_core.model.templates import LakeLayer
from cdc_core.model.texts import NOTHING_REPLACED, TextReplacement

P = TypeVar("P", bound=Iterable[str])


class MaskConfig(ConfigModel):
    """What all ``columns_mask`` share."""

    salt: SecretStr | None = None
    """Secret text that is hashed with each value, so that nobody can find values by hashing
    guesses. In a file, name an environment variable under ``salt_env`` instead. Never change it:
    with another salt, equal values get other hashes."""

    salts: dict[Name, SecretStr] = Field(default_factory=dict)
    """Further salts, by names that masks write as ``hash(sha256, salt=NAME)``. In a file, name an
    environment variable for each under ``salts_env`` instead, for example ``{crm: CRM_SALT}``."""

    def salt_of(self, mask: str) -> SecretStr | None:
        """The salt with which a mask hashes; None where there is none."""
        named = mask.partition("#")[0].rstrip(")").partition("salt=")[2]
        return self.salts.get(named) if named else self.salt


def source_name_of(name: str, pdb: str) -> str:
    """What the source of one pluggable database is called."""
    return f"{name}_{pdb.lower()}"


_RULES = ("columns_include", "columns_exclude", "columns_mask", "columns_as", "key")


def _with_rules(entry: Any, rules: Mapping[str, Any]) -> Any:
    """An entry that names a table, with what the source says of its columns. A pattern's tables get
    it when they are found; what cannot be read is refused where it stands."""
    if not isinstance(entry, dict | TableConfig):
        return entry
    given = entry if isinstance(entry, dict) else dict(entry)
    try:
        own = split_container(str(given.get("name")))[1]
        if TablePattern.is_in(own):
            return entry
        found = merged_rules(given, TableId.parse(own), rules)
    except (ConfigError, TypeError, ValueError):
        return entry
    return found if isinstance(entry, dict) else entry.model_copy(update=found)


def merged_rules(
    entry: Mapping[str, Any], table: TableId, rules: Mapping[str, Any]
) -> dict[str, Any]:
    """The entry of a table, whose own words count first, with the rules that fit it. What is left
    out needs no mask."""

    def fitting(name: str) -> list[tuple[str, str]]:
        found = ((text, ColumnPattern.parse(text)) for text in rules.get(name) or ())
        return [(text, one.column) for text, one in found if one.tables.matches(table)]

    def columns(of: Mapping[str, Any], name: str) -> tuple[str, ...]:
        return tuple(of.get(name) or ())

    merged = dict(entry)
    own = ColumnRule(columns(entry, "columns_include"), columns(entry, "columns_exclude"))
    if not own.include:
        for name in ("columns_include", "columns_exclude"):
            said = (*columns(entry, name), *(column for _, column in fitting(name)))
            if said:
                merged[name] = tuple(dict.fromkeys(said))
    if not entry.get("key") and entry.get("identity", "key") == "key":
        keys = ((TablePattern.parse(text), key) for text, key in (rules.get("key") or {}).items())
        if key := next((key for one, key in keys if one.matches(table)), None):
            merged["key"] = key
    rule = ColumnRule(columns(merged, "columns_include"), columns(merged, "columns_exclude"))

    def is_moot(column: str) -> bool:
        """Is the one column left out that has a mask? Where the entry itself says both, that is
        refused; a pattern may fit others, too."""
        says_both = column in (entry.get("columns_mask") or {}) and own.excludes(column)
        return rule.excludes(column) and not says_both and not is_name_pattern(column)

    for name in ("columns_mask", "columns_as"):
        given = dict(entry.get(name) or {})
        for text, column in fitting(name):
            given.setdefault(column, rules[name][text])
        if name == "columns_mask":
            given = {one: mask for one, mask in given.items() if not is_moot(one)}
        if given or entry.get(name):
            merged[name] = given
    return merged


def _with_defaults(table: Any, defaults: dict[str, Any]) -> Any:
    if isinstance(table, TableConfig):
        lacking = {name: one for name, one in defaults.items() if getattr(table, name) is None}
        return table.model_copy(update=lacking) if lacking else table
    if not isinstance(table, dict):
        return table
    lacking = {name: one for name, one in defaults.items() if table.get(name) is None}
    return {**table, **lacking}


class SourceConfig(ConfigModel):
    """One Oracle database and the tables captured from it."""

    name: Name
    """Name of the source: part of asset keys, folders and Delta transaction identifiers. Never
    change it."""

    oracle: OracleConfig
    tables: Annotated[tuple[TableConfig, ...], Field(min_length=1)]

    tables_max: Annotated[int, Field(ge=1)] | None = None
    """Most tables that Redolake may capture, including those of patterns. A run that would exceed
    this stops before it captures any of the new tables. Empty, the default: no limit."""

    unsupported_columns: UnsupportedColumns = "refuse"
    """How Redolake handles columns of types that it does not capture, in tables with their own
    entry. ``refuse``, the default: refuses the table until ``columns_exclude`` names the columns.
    ``omit``: omits them, including those that are added later; `redolake doctor` and `redolake
    status` name them. ``reselect``, for JSON, BOOLEAN and VECTOR: captures these columns. With each
    window, Redolake reads the rows that its transactions changed from Oracle, before and as of
    their commits, by ROWID; it refuses other types, or omits them in tables of patterns. You can
    choose by type, for example ``{LONG: omit, SDO_GEOMETRY: omit}``, which refuses the others;
    ``OBJECT`` stands for all other types. Tables of patterns always omit such columns. LogMiner
    shows no row of a table with a JSON, BOOLEAN or VECTOR column, or with a nested table: without
    ``reselect``, such a table stops with its first change."""

    columns_include: tuple[str, ...] = ()
    """The only columns to capture in the tables that these patterns name, written as in
    ``columns_exclude``; they must include those of the key. Redolake captures all columns of other
    tables. A column that is added later and matches none is not captured, and the log says so. This
    does not apply to a table with its own ``columns_include``."""

    columns_exclude: tuple[str, ...] = ()
    """Columns not to capture, in any table, by ``OWNER.TABLE.COLUMN``: each part with ``*`` and
    ``?``, as in ``SHOP.*.PASSWORD`` or ``*.*.SSN``; the last may be a regular expression,
    ``SHOP.CUSTOMERS.re:(HOME|WORK)_PHONE``. They add to those of a table's entry, and take
    precedence over the source's ``columns_include``. They do not apply to a table with its own
    ``columns_include``."""

    columns_mask: dict[str, Mask] = Field(default_factory=dict)
    """Masks for columns of any table, by patterns as in ``columns_exclude``. A table's entry takes
    precedence."""

    columns_as: dict[str, HeldAs] = Field(default_factory=dict)
    """Types in which Redolake stores columns of any table, likewise."""

    key: dict[str, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(default_factory=dict)
    """Columns that identify the rows of tables, by patterns of tables as in ``tables[].name``, for
    example ``{SHOP.LOG_*: [LOGGED_AT, SEQ]}``; Debezium's ``message.key.columns``. The first
    pattern that matches a table counts, and the table must have all these columns, NOT NULL. This
    does not apply to a table whose entry has ``key`` or ``identity``."""

    masks: MaskConfig = MaskConfig()
    policies: PolicyConfig = PolicyConfig()
    capture: CaptureConfig = LogMinerConfig()
    snapshot: SnapshotConfig = SnapshotConfig()
    landing: Annotated[LandingConfig, Field(discriminator="type")]
    lake: LakeConfig
    state: StateConfig
    signals: SignalConfig = SignalConfig()
    notifications: NotificationConfig = NotificationConfig()
    alerts: AlertsConfig = AlertsConfig()
    metrics: MetricsConfig = MetricsConfig()
    telemetry: TelemetryConfig = TelemetryConfig()
    openlineage: OpenLineageConfig = OpenLineageConfig()
    publish: PublishConfig = PublishConfig()
    retention: RetentionConfig = RetentionConfig()
    maintenance: MaintenanceConfig = MaintenanceConfig()
    events: EventsConfig = EventsConfig()

    @model_validator(mode="before")
    @classmethod
    def _tables_take_the_default(cls, data: Any) -> Any:
        """What becomes of columns that are not captured, and of values that do not fit, is the
        table's own answer, or the source's: whoever reads a definition knows the table alone."""
        if not isinstance(data, dict) or not isinstance(data.get("tables"), (list, tuple)):
            return data
        policies = data.get("policies", {})
        of_policies = policies if isinstance(policies, dict) else dict(policies)
        given = {
            "unsupported_columns": data.get("unsupported_columns"),
            "on_unfit_value": of_policies.get("on_unfit_value"),
        }
        defaults = {name: value for name, value in given.items() if value is not None}
        rules = {name: data.get(name) for name in _RULES}
        tables = [_with_defaults(one, defaults) for one in data["tables"]]
        return {**data, "tables": [_with_rules(one, rules) for one in tables]}

    @field_validator("key")
    @classmethod
    def _are_table_patterns(cls, keys: P) -> P:
        for pattern in keys:
            checked(pattern, TablePattern.parse)
        return keys

    @field_validator("columns_include", "columns_exclude", "columns_mask", "columns_as")
    @classmethod
    def _are_column_patterns(cls, patterns: P) -> P:
        for pattern in patterns:
            checked(pattern, ColumnPattern.parse)
        return patterns

    def with_rules(self, entry: Mapping[str, Any], table: TableId) -> dict[str, Any]:
        """A table's entry with what the source says of its columns."""
        return merged_rules(entry, table, {name: getattr(self, name) for name in _RULES})

    @model_validator(mode="after")
    def _tables_differ(self) -> SourceConfig:
        names = [
            (config.container, config.name if config.is_pattern else config.table)
            for config in self.tables
        ]
        twice = {
            f"{container}.{name}" if container and isinstance(name, TableId) else str(name)
            for container, name in names
            if names.count((container, name)) > 1
        }
        if twice:
            raise ValueError(f"tables named more than once: {', '.join(sorted(twice))}")
        return self

    @model_validator(mode="after")
    def _reader_shows_transactions(self) -> SourceConfig:
        asking = [one.name for one in self.tables if one.reselects_some]
        if asking and not isinstance(self.capture, LogMinerConfig):
            raise ValueError(
                "unsupported_columns: reselect, of "
                f"{', '.join(asking)}, is for capture.type logminer: other readers show such rows"
            )
        return self

    @model_validator(mode="after")
    def _what_is_published_is_there(self) -> SourceConfig:
        if self.publish.schema_change_topic is not None and not self.lake.schema_changes:
            raise ValueError("publish.schema_change_topic needs lake.schema_changes: true")
        return self

    @model_validator(mode="after")
    def _tables_are_not_too_many(self) -> SourceConfig:
        named = sum(not one.is_pattern for one in self.tables)
        if self.tables_max is not None and named > self.tables_max:
            raise ValueError(
                f"tables names {named} tables, and tables_max allows {self.tables_max}"
            )
        return self

    @model_validator(mode="after")
    def _containers_have_tables(self) -> SourceConfig:
        pdbs = self.oracle.pdbs
        if foreign := [one.name for one in self.tables if one.container not in (None, *pdbs)]:
            raise ValueError(
                f"tables are named with a pluggable database that oracle.pdbs does not list: {', '.join(foreign)}"
            )
        named = {one.container for one in self.tables}
        if bare := [pdb for pdb in pdbs if not named & {None, pdb}]:
            raise ValueError(f"pluggable databases without a table: {', '.join(bare)}")
        if long := [pdb for pdb in pdbs if len(source_name_of(self.name, pdb)) > NAME_LENGTH_MAX]:
            raise ValueError(
                f"the names of these pluggable databases' sources, <name>_<pdb>, are longer than {NAME_LENGTH_MAX} characters: "
                f"{', '.join(long)}"
            )
        return self

    @model_validator(mode="after")
    def _folders_differ(self) -> SourceConfig:
        paths, catalog = self.lake.paths, self.lake.catalog
        templates = {f"lake.{layer}_path": getattr(paths, layer) for layer in get_args(LakeLayer)}
        if catalog is not None:
            templates |= {
                f"lake.catalog.{layer}_name": template
                for layer in get_args(LakeLayer)
                if (template := getattr(catalog, f"{layer}_name")) is not None
            }
        alike = [name for name, template in templates.items() if "{source}" not in template]
        if self.oracle.pdbs and alike:
            raise ValueError(
                f"each pluggable database is a source: name {{source}} in {', '.join(alike)}"
            )
        if self.oracle.pdbs:
            return self
        named = [one.table for one in self.tables if not one.is_pattern]
        if meeting := paths.collisions(self.name, named):
            raise ValueError(
                "Delta tables would share folders, on stores that do not tell case apart too; name {digest} in the templates of lake: "
                + "; ".join(f"{table}: {why}" for table, why in meeting.items())
            )
        return self

    @model_validator(mode="after")
    def _flush_table_is_not_captured(self) -> SourceConfig:
        flushed = self.capture.flushed
        if flushed is not None and flushed in self.entries:
            raise ValueError(
                f"{flushed} is captured and capture.flush_table: each window would hold Redolake's own update"
            )
        return self

    @model_validator(mode="after")
    def _overrides_have_tables(self) -> SourceConfig:
        names = [TableId.parse(name) for name in self.snapshot.select_overrides]
        if strange := [
            str(one)
            for one in names
            if one not in self.entries and not any(c.takes(one) for c in self.tables)
        ]:
            raise ValueError(f"snapshot.select_overrides: not under tables: {', '.join(strange)}")
        return self

    @model_validator(mode="after")
    def _executors_see_landing(self) -> SourceConfig:
        if isinstance(self.lake.stage_on_executors_from_rows, int) and isinstance(
            self.landing, CachedLandingConfig
        ):
            raise ValueError(
                "lake.stage_on_executors_from_rows: executors read landing from a folder, and this landing is in an object store: "
                "use auto or never, or landing.type local in a folder that all machines share"
            )
        return self

    @model_validator(mode="after")
    def _hashes_have_a_salt(self) -> SourceConfig:
        hashes = {
            mask: one.name
            for one in self.tables
            for mask in one.columns_mask.values()
            if mask.startswith("hash")
        }
        for mask, table in hashes.items():
            if self.masks.salt_of(mask) is None:
                where = "masks.salts_env" if "salt=" in mask else "masks.salt_env"
                raise ValueError(
                    f"columns_mask hashes columns of {table}: name the environment variable with the salt under {where}"
                )
        return self

    @model_validator(mode="after")
    def _iceberg_has_no_vectors(self) -> SourceConfig:
        given = [(one.name, one.deletion_vectors, one.delta_features) for one in self.tables]
        of_source = self.maintenance
        meeting = [
            name
            for name, vectors, features in [("maintenance", None, None), *given]
            if (vectors or of_source.deletion_vectors) == "always"
            and "iceberg_compatibility"
            in (of_source.delta_features if features is None else features)
        ]
        if meeting:
            raise ValueError(
                "delta_features: iceberg_compatibility forbids deletion vectors; leave one of the two"
                f" out, or say deletion_vectors: never: {', '.join(meeting)}"
            )
        return self

    @property
    def logminer(self) -> LogMinerConfig:
        """How LogMiner reads; its defaults where another reader does."""
        return self.capture if isinstance(self.capture, LogMinerConfig) else LogMinerConfig()

    @property
    def lake_beside_landing(self) -> LakeConfig:
        """The lake's configuration; executors stage nothing where they do not see landing."""
        if isinstance(self.landing, CachedLandingConfig):
            return self.lake.model_copy(update={"stage_on_executors_from_rows": "never"})
        return self.lake

    @property
    def has_patterns(self) -> bool:
        """Must Oracle be asked which tables there are?"""
        return any(config.is_pattern for config in self.tables)

    def policy(self, table: TableId, trouble: Trouble) -> Policy:
        """What becomes of a captured table that met a trouble; KeyError if it is not captured."""
        name = f"on_{trouble}"
        entry = self.table(table)
        own: Policy | None = getattr(entry, name)
        default: Policy = getattr(self.policies, name)
        is_said = name in self.policies.model_fields_set
        if trouble == "drop" and isinstance(entry, MatchedTable) and not is_said:
            # A pattern names the tables that there are.
            default = "remove"
        if trouble == "redo_gone" and not is_said and self.snapshot.rereads_behind_gaps:
            default = "resnapshot"
        return own or default

    def with_policy(self, trouble: Trouble, *policies: Policy) -> frozenset[TableId]:
        """The captured tables that have one of these policies for a trouble."""
        named = (config.table for config in self.tables if not config.is_pattern)
        return frozenset(table for table in named if self.policy(table, trouble) in policies)

    def replacing(self, table: TableId) -> TextReplacement:
        """In which columns of a table U+FFFD stands for bytes that are no UTF-8: in masked ones
        always, whose values nobody sees. None where the table is not captured any more."""
        own = self.entries.get(table)
        if own is None:
            return NOTHING_REPLACED
        policy = own.on_invalid_text or self.policies.on_invalid_text
        return TextReplacement(policy == "replace", frozenset(own.columns_mask))

    def has_history(self, table: TableId) -> bool:
        """Has a captured table a history? KeyError if it is not captured."""
        return self.history_kind(table) != "none"

    def history_kind(self, table: TableId) -> HistoryKind:
        """What a captured table's history keeps; KeyError if it is not captured."""
        return self.table(table).history or self.lake.history

    def maintenance_of(self, table: TableId) -> MaintenanceConfig:
        """How a captured table's Delta tables are maintained; KeyError if it is not captured."""
        own = self.table(table)
        clusters = own.cluster_by_key
        given = {
            "deletion_vectors": self.deletion_vectors(table),
            "delta_features": self.delta_features(table),
            **({} if clusters is None else {"cluster_by_key": clusters}),
        }
        return self.maintenance.model_copy(update=given)

    def delta_features(self, table: TableId) -> tuple[DeltaFeature, ...]:
        """Which features of Delta the table's mirror is to have; what holds for the source where
        the table is not captured any more."""
        own = self.entries.get(table)
        said = None if own is None else own.delta_features
        return self.maintenance.delta_features if said is None else said

    def deletion_vectors(self, table: TableId) -> DeletionVectors:
        """Whether the table's mirror gets deletion vectors; what holds for the source where the
        table is not captured any more."""
        if "iceberg_compatibility" in self.delta_features(table):
            return "never"
        own = self.entries.get(table)
        return (own and own.deletion_vectors) or self.maintenance.deletion_vectors

    def events_of(self, table: TableId) -> EventsConfig:
        """Which changes of a table are no events; what holds for the source where the table is not
        captured any more."""
        own = self.entries.get(table)
        names = ("skipped_operations", "skip_unchanged")
        given = {name: getattr(own, name) for name in names if getattr(own, name, None) is not None}
        return self.events.model_copy(update=given)

    def snapshot_of(self, table: TableId) -> SnapshotConfig:
        """How the rows of a captured table are read, by what its entry says of its own."""
        entry = self.table(table)
        own = {"read": entry.read, "cut": entry.cut, "surrogate_key": entry.surrogate_key}
        said = {name: value for name, value in own.items() if value is not None}
        return self.snapshot.model_copy(update=said) if said else self.snapshot

    def table(self, table: TableId) -> TableConfig:
        """The configuration of a captured table; KeyError if it is not captured."""
        if (entry := self.entries.get(table)) is None:
            raise KeyError(str(table))
        return entry

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values; what was made of the old ones does not go with it."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("entries", None)
        return copied

    @cached_property
    def entries(self) -> Mapping[TableId, TableConfig]:
        """The entries that name a table, by the table; of two, the first. Looked up for each table
        of each window, so made once."""
        named = [entry for entry in self.tables if not entry.is_pattern]
        return {entry.table: entry for entry in reversed(named)}
