"""Marked passwords and marked row values are nowhere but in the data itself."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from cdc_core.errors import CdcError
from cdc_core.steps import Pipeline
from oracle_embedded.database import CAPTURE
from tests.oracle.embedded import MERGED_BY_SPARK, PASSWORDS, running_oracle

pytestmark = pytest.mark.spark

SECRET = "Pw9Marked"
MARKED = "Zq7Marked"


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """Everything that the pipeline writes beside rows: manifests, the metadata store, what Delta's commits say."""
    for manifest in path.glob("landing/**/manifest.json"):
        yield str(manifest), manifest.read_text()
    with sqlite3.connect(path / "state.db") as store:
        yield "metadata store", "\n".join(store.iterdump())
    for commit in path.glob("lake/**/_delta_log/*.json"):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            # An added file's statistics belong to the data: Delta keeps the least and greatest values there.
            if "add" not in action:
                yield str(commit), line


def test_values_and_passwords_stay_out_of_everything_beside_the_rows(
    tmp_path: Path,
    spark_process: None,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG, logger="cdc_core")
    monkeypatch.setitem(PASSWORDS, CAPTURE, SECRET)
    said: list[str] = []
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(40))",
            f"INSERT INTO T VALUES (1, '{MARKED}')",
            "CREATE TABLE KEYED (K VARCHAR2(40) PRIMARY KEY, AT DATE)",
            f"INSERT INTO KEYED VALUES ('{MARKED}5', SYSDATE)",
        )
        config = oracle.config(tmp_path, "T", "KEYED", lake=MERGED_BY_SPARK)
        with Pipeline(config, report=lambda report: said.append(repr(report))) as pipeline:
            list(pipeline.run_once())
            oracle.run(
                f"INSERT INTO T VALUES (2, '{MARKED}2')",
                f"UPDATE T SET NAME = '{MARKED}3' WHERE ID = 1",
                f"UPDATE KEYED SET K = '{MARKED}6'",
            )
            list(pipeline.run_once())
            said.append(repr(asdict(pipeline.status())))
            said.append(repr(pipeline.reconcile()))
            oracle.run(  # a row that cannot be decoded stops its table
                f"INSERT INTO KEYED VALUES ('{MARKED}7', TO_DATE('-0044-03-15', 'SYYYY-MM-DD'))"
            )
            oracle.run(f"INSERT INTO T VALUES (3, '{MARKED}4')", "ALTER TABLE T DROP COLUMN NAME")
            oracle.run(
                "ALTER TABLE T ADD (NAME VARCHAR2(20))"
            )  # a name that is taken: it stops the table
            try:
                list(pipeline.run_once())
            except CdcError as error:
                said.append(f"{error} {error.facts!r}")
            said.append(repr(asdict(pipeline.status())))
    texts = [*_texts(tmp_path), *(("said", text) for text in said), ("log", caplog.text)]
    assert len(texts) > 20
    for marked in (MARKED, SECRET):
        assert [where for where, text in texts if marked in text] == []
