"""How does a Delta table get other columns or properties without Spark? By a commit that replaces
its metadata, and its protocol where a feature comes with that; files stay as they are.

Source: the Delta transaction log protocol, sections "Change Metadata", "Protocol Evolution",
"Column Mapping", "Timestamp without timezone" and "Schema Serialization Format".
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from cdc_core.delta.appending import CommitInfo, info_action
from cdc_core.delta.commits import (
    GUARD_FEATURE,
    ICEBERG_FEATURE,
    MAPPING_FEATURE,
    VECTORS_FEATURE,
    put_commit,
    takes_commits,
)
from cdc_core.delta.errors import at_work, conflict
from cdc_core.delta.file_names import FILE_NAME, FILE_NUMBER
from cdc_core.delta.history import MAPPING, DeltaLog, features_of, filesystem_of, read_log
from cdc_core.delta.log_files import Action, log_folder
from cdc_core.errors import DEBUG_HINT, LakeError

_NTZ_FEATURE = "timestampNtz"
_NUMBER_MAX = "delta.columnMapping.maxColumnId"


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """What a Delta table's log says of the table as a whole; each method returns what it says
    after a change."""

    protocol: Action
    metadata: Action

    @classmethod
    def of(cls, log: DeltaLog) -> TableMetadata:
        """That of a version, as it can be committed again: checkpoints have NULL for what is not
        said, and maps as lists."""
        protocol = {name: said for name, said in log.protocol.items() if said is not None}
        metadata = {name: said for name, said in log.metadata.items() if said is not None}
        form = metadata["format"]
        metadata["format"] = {**form, "options": dict(form.get("options") or ())}
        return cls(protocol, metadata)

    def with_properties(self, properties: Mapping[str, str]) -> TableMetadata:
        """With these properties, which ask for no feature."""
        said = {**self._properties, **properties}
        return replace(self, metadata={**self.metadata, "configuration": said})

    def with_columns(
        self, columns: Sequence[pa.Field], structs: Sequence[str] = ()
    ) -> TableMetadata:
        """With more columns behind the others; their metadata become those of the columns. With
        ``structs``: as fields of these columns, whose fields nobody renames.

        Raises:
            ValueError: A column of that name is there, in whatever case, or a field has it in
                files: somebody has renamed that one.
        """
        new = _delta_fields(columns)
        found = self
        if any(_holds_ntz(one["type"]) for one in new):
            found = found._with_feature(_NTZ_FEATURE)
        fields = found._fields
        for place in [_part(fields, one) for one in structs] if structs else [fields]:
            names = {one["name"].casefold() for one in place}
            if structs:
                names |= {one["metadata"].get(FILE_NAME, "").casefold() for one in place}
            if taken := [one["name"] for one in new if one["name"].casefold() in names]:
                raise ValueError(f"there is a column of this name: {', '.join(taken)}")
            added = deepcopy(new)
            place.extend(added)
            found = found._numbered(list(_all_fields(added)))
        return found._with_fields(fields)

    def renamed(self, old: str, new: str) -> TableMetadata:
        """With another name of a column, of a table with column mapping."""
        fields = self._fields
        _field(fields, old)["name"] = new
        return self._with_fields(fields)

    def commented(self, path: Sequence[str], comment: str) -> TableMetadata:
        """With a comment on a column, or on a field of a struct."""
        fields = self._fields
        within = fields if len(path) == 1 else _part(fields, path[0])
        _field(within, path[-1]).setdefault("metadata", {})["comment"] = comment
        return self._with_fields(fields)

    def described(self, comment: str) -> TableMetadata:
        """With a comment on the table."""
        return replace(self, metadata={**self.metadata, "description": comment})

    def mapped(self) -> TableMetadata:
        """With column mapping by name: all columns keep the names that they have in files."""
        fields = self._fields
        found = self._with_feature(MAPPING_FEATURE).with_properties({MAPPING: "name"})
        found = found._numbered(list(_all_fields(fields)), keeps_names=True)
        return found._with_fields(fields)

    def with_vectors(self) -> TableMetadata:
        """With deletion vectors switched on, and the feature that keeps delta-rs's VACUUM away from
        them."""
        found = self._with_feature(VECTORS_FEATURE)._with_feature(GUARD_FEATURE, of_readers=False)
        return found.with_properties({"delta.enableDeletionVectors": "true"})

    @property
    def _properties(self) -> dict[str, str]:
        return dict(self.metadata.get("configuration") or {})

    @property
    def _fields(self) -> list[dict[str, Any]]:
        """A copy, to be changed."""
        found: list[dict[str, Any]] = json.loads(self.metadata["schemaString"])["fields"]
        return found

    def _with_fields(self, fields: list[dict[str, Any]]) -> TableMetadata:
        schema = json.dumps({"type": "struct", "fields": fields})
        return replace(self, metadata={**self.metadata, "schemaString": schema})

    def _numbered(
        self, fields: Sequence[dict[str, Any]], *, keeps_names: bool = False
    ) -> TableMetadata:
        """Where column mapping is on: give new fields their numbers, and their names in files."""
        if self._properties.get(MAPPING, "none") == "none":
            return self
        number = int(self._properties.get(_NUMBER_MAX, 0))
        for one in fields:
            number += 1
            name = one["name"] if keeps_names else f"col-{uuid.uuid4()}"
            one.setdefault("metadata", {}).update({FILE_NUMBER: number, FILE_NAME: name})
        return self.with_properties({_NUMBER_MAX: str(number)})

    def _with_feature(self, feature: str, *, of_readers: bool = True) -> TableMetadata:
        """With a feature that writers must know, and readers but for some."""
        said = self.protocol
        writers = said.get("writerFeatures") or sorted(features_of(said["minWriterVersion"]))
        # What older versions stand for is of writers alone, but for column mapping.
        readers = said.get("readerFeatures") or {MAPPING_FEATURE}.intersection(writers)
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": list(dict.fromkeys((*readers, *((feature,) if of_readers else ())))),
            "writerFeatures": list(dict.fromkeys((*writers, feature))),
        }
        return replace(self, protocol=protocol)


Change = Callable[[TableMetadata], TableMetadata]
"""What becomes of a table's metadata."""


def takes_changes(path: str, log: DeltaLog) -> bool:
    """Does :func:`commit_change` know all that the table asks of a commit of metadata? A table that
    readers of Iceberg know is left to those who number the elements of lists."""
    is_known = takes_commits(filesystem_of(path)[0], log, ())
    return is_known and ICEBERG_FEATURE not in log.writer_features


def commit_change(
    path: str,
    operation: str,
    change: Change,
    info: CommitInfo,
    *,
    fence: Callable[[], None],
    version: int | None = None,
) -> None:
    """Change the metadata of a Delta table, of which :func:`takes_changes` is true, in one commit.

    Args:
        path: The table's folder.
        operation: What Delta calls the change, such as ``ADD COLUMNS``.
        change: What becomes of the newest version's metadata.
        info: What the commit carries.
        fence: Called right before the commit.
        version: The version that was read; None where any is right.

    Raises:
        CommitConflictError: Another writer committed since the table was read.
        LakeError: The table does not take the change: another writer has changed its columns.
        StoreUnavailableError: The disk is full or fails, or the bucket cannot be reached.
    """
    doing, facts = info.doing, info.facts
    filesystem, root = filesystem_of(path)
    with at_work(doing, facts):
        log = read_log(path)
        if log is None:
            raise FileNotFoundError(path)
        if version is not None and log.version != version:
            raise conflict(doing, facts)
        before = TableMetadata.of(log)
        try:
            after = change(before)
        except (ValueError, KeyError) as error:
            raise LakeError(f"{doing}: {error}", hint=DEBUG_HINT, **facts) from error
        actions: list[Action] = [info_action(filesystem, root, log, info, operation, {})]
        if after.protocol != before.protocol:
            actions.append({"protocol": after.protocol})
        actions.append({"metaData": after.metadata})
        fence()
        try:
            put_commit(filesystem, root, log.version + 1, actions)
        except FileExistsError as error:
            raise conflict(doing, facts) from error


def create_mapped_table(
    path: str,
    columns: pa.Schema,
    properties: Mapping[str, str],
    *,
    doing: str,
    facts: dict[str, object],
) -> None:
    """Create a Delta table with column mapping and without rows, unless it is there, which delta-rs
    cannot: files have names of their own for all columns. Otherwise as
    :func:`~cdc_core.delta.appending.create_table`.

    Raises:
        StoreUnavailableError: The disk is full or fails, or the bucket cannot be reached.
    """
    empty = TableMetadata(
        {"minReaderVersion": 1, "minWriterVersion": 2},
        {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": []}),
            "partitionColumns": [],
            "configuration": dict(properties),
            "createdTime": int(time.time() * 1000),
        },
    )
    table = empty.mapped().with_columns(list(columns))
    filesystem, root = filesystem_of(path)
    with at_work(doing, facts):
        if read_log(path) is not None:
            return
        if isinstance(filesystem, pafs.LocalFileSystem):
            filesystem.create_dir(log_folder(root))
        before, info = DeltaLog(-1, {}, {}, {}), CommitInfo(doing=doing, metadata="{}")
        said = info_action(filesystem, root, before, info, "CREATE TABLE", {})
        with suppress(FileExistsError):
            actions = [said, {"protocol": table.protocol}, {"metaData": table.metadata}]
            put_commit(filesystem, root, 0, actions)


def _delta_fields(columns: Sequence[pa.Field]) -> list[dict[str, Any]]:
    """As a schema in the log has them."""
    from deltalake import Schema

    said = json.loads(Schema.from_arrow(pa.schema(list(columns))).to_json())
    fields: list[dict[str, Any]] = said["fields"]
    return fields


def _holds_ntz(kind: Any) -> bool:
    return "timestamp_ntz" in json.dumps(kind)


def _field(fields: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    found = next((one for one in fields if one["name"] == name), None)
    if found is None:
        raise ValueError(f"there is no column of this name: {name}")
    return found


def _part(fields: Sequence[dict[str, Any]], struct: str) -> list[dict[str, Any]]:
    """The fields of a column that is a struct."""
    found: list[dict[str, Any]] = _field(fields, struct)["type"]["fields"]
    return found


def _all_fields(fields: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Those of structs too, also in arrays and maps, each behind what it is in."""
    for one in fields:
        yield one
        yield from _within(one["type"])


def _within(kind: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(kind, Mapping):
        return
    if kind["type"] == "struct":
        yield from _all_fields(kind["fields"])
    for part in ("elementType", "keyType", "valueType"):
        yield from _within(kind.get(part))
