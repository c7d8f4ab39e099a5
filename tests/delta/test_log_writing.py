"""Commits that Redolake puts into a log by itself: whole or not, each version once, and only where nothing more is asked of a writer."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.delta.appending import CommitInfo, FileChanges, commit_files, create_table, write_file
from cdc_core.delta.commits import put_commit, takes_commits
from cdc_core.delta.history import DeltaLog, features_of, read_log
from cdc_core.delta.log_files import Action
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import LakeError

PLAIN = DeltaLog(3, {}, {"redolake.role": "mirror"}, {"ID": "long"}, writer_features=features_of(2))
LOCAL = pafs.LocalFileSystem()
SCHEMA = pa.schema([("ID", pa.int64())])


def features(*names: str) -> DeltaLog:
    return replace(PLAIN, writer_features=features_of(7, names))


def properties(name: str, value: str) -> DeltaLog:
    return replace(PLAIN, properties={name: value})


def version(writers: int) -> DeltaLog:
    return replace(PLAIN, writer_features=features_of(writers))


def generated(rule: str) -> DeltaLog:
    fields = [{"name": "ID", "type": "long", "nullable": True, "metadata": {rule: "1"}}]
    return replace(version(6), metadata={"schemaString": json.dumps({"fields": fields})})


@pytest.mark.parametrize(
    ("log", "removed", "takes"),
    [
        pytest.param(PLAIN, ["part-0.parquet"], True, id="plain"),
        pytest.param(features("timestampNtz", "columnMapping"), [], True, id="as-created"),
        pytest.param(features("deletionVectors"), ["part-0.parquet"], True, id="deletion-vectors"),
        pytest.param(features("inCommitTimestamp"), [], True, id="times-in-commits"),
        pytest.param(features("clustering", "domainMetadata"), [], True, id="clustering"),
        pytest.param(features("v2Checkpoint"), [], True, id="checkpoints-of-version-2"),
        pytest.param(features("variantType"), ["a"], True, id="what-delta-rs-names"),
        pytest.param(features("rowTracking", "domainMetadata"), [], True, id="row-tracking"),
        pytest.param(features("of-tomorrow"), [], False, id="a-feature-of-tomorrow"),
        pytest.param(version(6), ["part-0.parquet"], True, id="rules-that-are-in-no-use"),
        pytest.param(
            properties("delta.enableChangeDataFeed", "true"), ["a"], True, id="change-data"
        ),
        pytest.param(properties("delta.constraints.c", "ID > 0"), [], False, id="constraints"),
        pytest.param(generated("delta.generationExpression"), [], False, id="generated"),
        pytest.param(generated("delta.identity.start"), [], False, id="identities"),
        pytest.param(version(8), [], False, id="a-protocol-of-tomorrow"),
        pytest.param(version(0), [], False, id="no-protocol"),
        pytest.param(replace(PLAIN, partition_columns=("ID",)), [], False, id="partitions"),
        pytest.param(properties("delta.appendOnly", "true"), [], True, id="append-only"),
        pytest.param(properties("delta.appendOnly", "TRUE"), ["a"], False, id="all-rows-stay"),
        pytest.param(PLAIN, ["a", "b%20c"], False, id="a-name-in-another-form"),
        pytest.param(PLAIN, ["aB/part-0.parquet"], True, id="a-folder-of-a-random-name"),
        pytest.param(PLAIN, ["ID=1/a.parquet"], False, id="a-file-of-a-partition"),
    ],
)
def test_what_asks_for_more_is_refused(log: DeltaLog, removed: Sequence[str], takes: bool) -> None:
    assert takes_commits(LOCAL, log, removed) is takes


def test_an_unknown_store_is_refused() -> None:
    assert not takes_commits(pafs.SubTreeFileSystem("bucket", LOCAL), PLAIN, [])


def test_one_of_many_writers_puts_a_version(tmp_path: Path) -> None:
    """Whole, and nothing of the others is left."""
    log = tmp_path / "_delta_log"
    log.mkdir()

    def put(writer: int) -> bool:
        actions: list[Action] = [
            {"commitInfo": {"writer": writer}},
            {"txn": {"appId": "a", "version": writer}},
        ]
        try:
            put_commit(LOCAL, str(tmp_path), 1, actions)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = [writer for writer, has_put in enumerate(pool.map(put, range(8))) if has_put]
    [file] = log.iterdir()
    info, txn = map(json.loads, file.read_text().splitlines())
    assert (file.name, [info["commitInfo"]["writer"]]) == (f"{1:020d}.json", won)
    assert [txn["txn"]["version"]] == won


def test_a_commit_survives_a_power_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is on the disk before anybody builds on it, and the metadata store says applied."""
    (tmp_path / "_delta_log").mkdir()
    done, sync, link = list[str](), os.fsync, os.link

    def synced(descriptor: int) -> None:
        done.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        sync(descriptor)

    def linked(source: Path, target: Path) -> None:
        done.append(target.name)
        link(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", linked)
    put_commit(LOCAL, str(tmp_path), 1, [{"commitInfo": {}}])
    temporary, *rest = done
    assert temporary.endswith(".tmp")
    assert rest == [f"{1:020d}.json", "_delta_log"]


def _append(table: str, at: int) -> None:
    file = write_file(table, SCHEMA, [pa.record_batch([pa.array([at])], SCHEMA)], ["ID"])
    assert file is not None
    info = CommitInfo(doing="appending", metadata="{}", txn=("app", at))
    commit_files(table, FileChanges(added=[file]), info, fence=lambda: None)


def test_a_checkpoint_comes_as_often_as_the_table_says(tmp_path: Path) -> None:
    """Other readers then need no older commit."""
    table = str(tmp_path / "t")
    create_table(table, SCHEMA, {"delta.checkpointInterval": "3"}, doing="creating", facts={})
    for at in range(1, 8):
        _append(table, at)
    log = tmp_path / "t" / "_delta_log"
    assert [one.name[18:20] for one in sorted(log.glob("*.checkpoint.parquet"))] == ["03", "06"]
    for version in range(6):
        (log / f"{version:020d}.json").unlink()
    delta = DeltaTable(table)
    assert (delta.version(), delta.count(), delta.transaction_version("app")) == (7, 7, 7)


def test_what_a_checkpoint_says_of_writers_counts(tmp_path: Path) -> None:
    """A process that begins behind one knows no more than that."""
    table = str(tmp_path / "t")
    write_deltalake(
        table, pa.table({"ID": [1]}), configuration={"delta.enableChangeDataFeed": "true"}
    )
    DeltaTable(table).create_checkpoint()
    (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").unlink()
    log = read_log(table)
    assert log is not None
    assert (log.writer_features, log.partition_columns) == (features_of(4), ())


def with_features(path: Path, version: int, *names: str, **switched: str) -> None:
    """What another writer asks of those that come after it."""
    metadata = DeltaTable(path).metadata()
    schema = {"type": "struct", "fields": [{"name": "ID", "type": "long", "nullable": True, "metadata": {}}]}  # fmt: skip
    info = {"timestamp": FAR, "inCommitTimestamp": FAR, "operation": "SET TBLPROPERTIES"}
    actions: list[Action] = [
        {"commitInfo": info},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": list(names)}},
        {"metaData": {"id": metadata.id, "format": {"provider": "parquet", "options": {}},
                      "schemaString": json.dumps(schema), "partitionColumns": [],
                      "configuration": {name.replace("_", "."): value for name, value in switched.items()},
                      "createdTime": 0}},
    ]  # fmt: skip
    put_commit(LOCAL, str(path), version, actions)


FAR = 4_000_000_000_000
"""Milliseconds of a clock that is ahead of ours."""


def append_one(path: Path) -> None:
    file = write_file(str(path), SCHEMA, [pa.record_batch([[1]], SCHEMA)], ["ID"])
    assert file is not None
    info = CommitInfo(
        doing="appending", metadata='{"kind": "window"}', txn=("app", 1), facts={"table": "T"}
    )
    files = FileChanges(added=[file])
    commit_files(str(path), files, info, fence=lambda: None)


def test_times_in_commits_rise_whatever_the_clock_says(tmp_path: Path) -> None:
    create_table(str(tmp_path), SCHEMA, {}, doing="creating", facts={})
    with_features(tmp_path, 1, "inCommitTimestamp", delta_enableInCommitTimestamps="true")
    append_one(tmp_path)
    lines = (tmp_path / "_delta_log" / f"{2:020d}.json").read_text().splitlines()
    first = json.loads(lines[0])["commitInfo"]
    assert first["inCommitTimestamp"] == FAR + 1
    assert count_rows(str(tmp_path)) == 1


@pytest.mark.parametrize("feature", ["allowColumnDefaults", "of-tomorrow"])
def test_a_feature_that_nobody_here_writes_is_named_and_is_no_conflict(
    tmp_path: Path, feature: str
) -> None:
    create_table(str(tmp_path), SCHEMA, {}, doing="creating", facts={})
    with_features(tmp_path, 1, feature)
    with pytest.raises(LakeError, match="has a feature that Redolake cannot work with") as caught:
        append_one(tmp_path)
    named = str(caught.value.facts["features"]).replace("-", "").lower()
    assert named == feature.replace("-", "").lower()
    assert "table rebuild --from-landing" in caught.value.hint
    assert count_rows(str(tmp_path)) == 0
