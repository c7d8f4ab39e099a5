"""What stands in place of masked values: the same on both paths, and the values themselves never land."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from cdc_core.capture.passes.batches import MinedBatch
from cdc_core.capture.passes.excluding import ExcludedValues
from cdc_core.capture.passes.mining import MINED_SCHEMA
from cdc_core.config import TableConfig
from cdc_core.decode.masking import _hashed, _serialized
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from oracle_embedded.database import ADMIN
from oracle_embedded.redo import Wart
from tests.oracle.embedded import OWNER, Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

T = table_id("T")
SALT = "pepper"
MASKS = {
    "EMAIL": "hash(sha256)",
    "PHONE": "stars(4)",
    "NAME": "truncate(2)",
    "NAT": "hash_v1(sha512, 90)",
    "PAD": "truncate(3)",
}
SECRETS = ("hidden", "+49", "Zoë O'", "夜の")


def hashed(text: str, algorithm: str = "sha256") -> str:
    return hashlib.new(algorithm, (SALT + text).encode()).hexdigest()


def hashed_v1(text: str) -> str:
    """As Java writes a short text without NUL and surrogates, cut."""
    form = b"\xac\xed\x00\x05t" + bytes([0, len(text.encode())]) + text.encode()
    return hashlib.sha512(SALT.encode() + form).hexdigest()[:90]


def row(key: int, number: int) -> tuple[Any, ...]:
    """A row as the lake must have it, whose values were written as ``values`` has them."""
    return (key, hashed(f"hidden{number}@x"), "****", "Zo", hashed_v1(f"夜の{number}"), "Zed", f"note {number}")  # fmt: skip


def values(number: int) -> str:
    return f"'hidden{number}@x', '+49 {number}', 'Zoë O''Neill {number}', N'夜の{number}', 'Zed {number}', 'note {number}'"


oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, EMAIL VARCHAR2(40), PHONE VARCHAR2(20), NAME VARCHAR2(40), NAT NVARCHAR2(20),"
    " PAD CHAR(9), NOTE VARCHAR2(40))",
    f"INSERT INTO T VALUES (1, {values(1)})",
    f"INSERT INTO T VALUES (2, {values(2)})",
    "INSERT INTO T (ID, NOTE) VALUES (3, 'nothing')",
)


def table(**more: Any) -> dict[str, Any]:
    return {"name": "T", "columns_mask": MASKS, **more}


source = capturing(table(), masks={"salt": SALT})


def landed(source: Source) -> str:
    """All values of all files in landing, as text."""
    paths = [*(source.path / "landing").rglob("*.parquet"), *(source.path / "landing").rglob("*.json")]  # fmt: skip
    assert any("chunks" in str(path) for path in paths)
    return "\n".join(
        str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else path.read_text()
        for path in paths
    )


def check_nothing_landed(source: Source) -> None:
    text = landed(source)
    assert [secret for secret in SECRETS if secret in text] == []
    assert SALT not in text


def test_both_paths_give_the_same_and_no_value_lands(oracle: Oracle, source: Source) -> None:
    nothing = (3, None, None, None, None, None, "nothing")
    assert source.lake.image(T) == [row(1, 1), row(2, 2), nothing]
    oracle.run(
        f"INSERT INTO T VALUES (4, {values(4)})",
        "UPDATE T SET NOTE = 'note 9', EMAIL = 'hidden9@x' WHERE ID = 2",
        "UPDATE T SET NAME = NULL, PHONE = '+49 8' WHERE ID IN (1, 3)",
        "DELETE FROM T WHERE ID = 3",
    )
    source.run()
    one, two, four = row(1, 1), row(2, 2), row(4, 4)
    expected = [(*one[:3], None, *one[4:]), (2, hashed("hidden9@x"), *two[2:6], "note 9"), four]
    assert source.lake.image(T) == expected
    check_nothing_landed(source)
    changed = next(one for one in source.lake.tables[T].history if one["_cdc_op"] == "u" and one["after"]["ID"] == 2)  # fmt: skip
    assert changed["before"]["EMAIL"] == hashed("hidden2@x")
    source.pipeline.resnapshot_tables([T])
    source.run()
    assert source.lake.image(T) == expected


def test_the_digest_is_debeziums() -> None:
    """Its own tests' values for the salt `salt`: of version 2, and of version 1 with two digests."""
    found = hashlib.sha256(b"salthello").hexdigest()
    assert (found[:8], found[-6:]) == ("cd31b3b9", "7a843a")
    old = partial(_hashed, salt=b"salt", form=_serialized, length=None)
    assert old("sha256", value="hello") == "af5843a0f0e728ab0332c8888b6e1190bfb79e584f0d40538de8f10df6ef29c6"  # fmt: skip
    assert old("sha256", value="world") == "4588e1f2dcdc7fefc1515d3acd5acb9033478eace68286f383c337b9ff4464a3"  # fmt: skip
    assert old("md5", value="hello") == "46f48a7a5ea32efba87cbff49d46d35a"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        pytest.param("a\0é", "aced000574000561c080c3a9", id="NUL in two bytes"),
        pytest.param("😀", "aced0005740006eda0bdedb880", id="halves of a pair"),
        pytest.param("", "aced0005740000", id="empty"),
    ],
)
def test_java_s_form_of_a_text(text: str, form: str) -> None:
    assert _serialized(text).hex() == form


def test_java_s_form_of_a_long_text() -> None:
    assert _serialized("x" * 70_000)[:13].hex() == "aced00057c" + (70_000).to_bytes(8).hex()


def test_values_without_names_are_masked(oracle: Oracle, source: Source) -> None:
    oracle.database.redo.set_wart(Wart.UNNAMED_COLUMNS, shown=True)
    oracle.run(f"INSERT INTO T VALUES (4, {values(4)})", "UPDATE T SET PHONE = '+49 5' WHERE ID = 1")  # fmt: skip
    oracle.run("ALTER TABLE T ADD (N NUMBER)")
    source.run()
    assert source.record("T").state == "ready"
    assert [one[:7] for one in source.lake.image(T)][3] == row(4, 4)
    check_nothing_landed(source)


def test_a_mask_that_is_added_later_holds_from_the_next_statement_on(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path, "T", masks={"salt": SALT}) as source:
        source.begin()
        source.configure(table())
        oracle.run(f"INSERT INTO T VALUES (4, {values(4)})")
        source.run()
        assert source.lake.image(T)[3] == row(4, 4)
        assert "'hidden4" not in landed(source)
        record = source.record("T")
        assert "columns masked differently since SCN" in (record.reason or "")
        assert "redolake table resnapshot DEMO.T" in (record.way_out or "")
        source.pipeline.resnapshot_tables([T], fresh=True)
        source.run()
        assert [one[1] for one in source.lake.image(T)] == [hashed("hidden1@x"), hashed("hidden2@x"), None, hashed("hidden4@x")]  # fmt: skip
        assert source.record("T").reason is None


def test_what_cannot_be_masked_ends_the_stream_and_does_not_land(
    oracle: Oracle, source: Source
) -> None:
    call = "BEGIN DBMS_REDOLAKE_FAULTS.LEAVE_UNTRANSLATED('+49 66'); END;"
    oracle.run(call, user=ADMIN)
    oracle.run("UPDATE T SET PHONE = '+49 66' WHERE ID = 1")
    source.run()
    check_nothing_landed(source)


def test_a_comparison_with_oracle_reads_the_masks_too(oracle: Oracle, source: Source) -> None:
    """What ``redolake reconcile`` holds against a mirror, and ``redolake repair`` puts into it."""
    assert source.compared_rows("T") == source.lake.image(T)


def test_a_long_text_in_pieces_does_not_land() -> None:
    """A VARCHAR2 of more than 4,000 bytes; nothing shows of which column a piece is."""
    column = Column("NAME", "VARCHAR2", 32767, 32767, None, None, nullable=True)
    schema = TableSchema(T, Scn(1), (Column("ID", "NUMBER", 22, 0, 9, 0, nullable=False), column), ("ID",))  # fmt: skip
    codes = [Operation.INSERT, Operation.EXTENDED_BEGIN, Operation.EXTENDED_WRITE, Operation.EXTENDED_END]  # fmt: skip
    rows = pa.RecordBatch.from_pylist(
        [{"scn": 7, "operation_code": int(code), "sql_redo": "hidden"} for code in codes], schema=MINED_SCHEMA
    )  # fmt: skip
    batch = MinedBatch(rows, np.arange(4), np.array(codes, np.int32), np.zeros(4, np.int32))
    plain = ExcludedValues([schema], {})
    assert plain.remove_from(batch).rows.num_rows == 4
    masking = ExcludedValues([schema], {T: {"NAME": str.upper}})
    assert masking.remove_from(batch.slice(1)).rows.num_rows == 0
    [end] = masking.ends
    assert "a long text is written in pieces, and its column may be masked (scn=7)" in end.reason


def test_what_a_transaction_wrote_last_is_forgotten_with_its_commit() -> None:
    """An XID is used again: a piece of a LOB without a name does not count for the column of the transaction before."""
    key = Column("ID", "NUMBER", 22, 0, 9, 0, nullable=False)
    lobs = [Column(name, "CLOB", 4000, 0, None, None, nullable=True) for name in ("SECRET", "OPEN")]
    schema = TableSchema(T, Scn(1), (key, *lobs), ("ID",))
    locator = 'DECLARE loc CLOB; BEGIN select "OPEN" into loc from "DEMO"."T" where "ID" = \'1\' for update;'
    piece = (Operation.XML_DOC_WRITE, "XML DOC WRITE: hidden")

    def landed(*rows: tuple[Operation, str | None]) -> str:
        codes = [code for code, _ in rows]
        given = [
            {"scn": 7, "xid": "0a", "operation_code": int(code), "sql_redo": text}
            for code, text in rows
        ]
        batch = MinedBatch(
            pa.RecordBatch.from_pylist(given, schema=MINED_SCHEMA),
            np.arange(len(rows)),
            np.array(codes, np.int32),
            np.array([-1 if code == Operation.COMMIT else 0 for code in codes], np.int32),
        )
        masking.remove_from(batch)
        return str(sorted(masking._masked.items()))

    masking = ExcludedValues([schema], {T: {"SECRET": str.upper}})
    assert "False" in landed((Operation.SELECT_LOB_LOCATOR, locator), piece)
    assert landed((Operation.COMMIT, None)) == "[]"


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (
            {"ID": "stars(2)"},
            "columns_mask masks columns of the key otherwise than by a hash of 32 characters or more: ID",
        ),
        ({"ID": "hash(sha256, 31)"}, "otherwise than by a hash of 32 characters or more: ID"),
        ({"ID": "hash(sha256)"}, "columns_mask masks text alone, not ID NUMBER"),
        ({"DATA": "stars(2)"}, "columns_mask masks text alone, not DATA BLOB"),
        ({"N": "hash(sha256)"}, "not N NUMBER"),
        ({"Body": "stars(2)"}, "columns_mask of DEMO.U names columns that the table does not have"),
    ],
)
@pytest.mark.parametrize("is_later", [False, True], ids=["from the beginning", "later"])
def test_what_cannot_have_a_mask_is_refused(
    masks: dict[str, str], message: str, is_later: bool, tmp_path: Path
) -> None:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE U (ID NUMBER(9) PRIMARY KEY, BODY CLOB, N NUMBER, DATA BLOB)", "CREATE TABLE V (ID NUMBER(9) PRIMARY KEY)")  # fmt: skip
        with source_of(oracle, tmp_path, "U", "V", masks={"salt": SALT}) as source:
            if is_later:
                source.run()
            source.configure({"name": "U", "columns_mask": masks}, "V")
            if is_later and "Body" not in masks:
                oracle.run("INSERT INTO U VALUES (1, 'body', 7, NULL)")
                source.run()
                assert message in (source.record("U").reason or "")
                assert source.record("V").state == "ready"
            elif not is_later:
                with pytest.raises(Exception, match=message.split(":")[0]):
                    source.run()


@pytest.mark.parametrize(
    "mask",
    [
        "stars(00)",
        "stars()",
        "hash(md4)",
        "hash(sha256, salt=A)",
        "hash(sha256, 0)",
        "truncate(-1)",
        "stars(4) ",
        "x",
    ],
)
def test_a_mask_that_is_not_known_is_refused(mask: str) -> None:
    with pytest.raises(ValidationError):
        TableConfig(name=f"{OWNER}.T", columns_mask={"A": mask})
    with pytest.raises(ValidationError, match="both excluded and masked"):
        TableConfig(name=f"{OWNER}.T", columns_exclude=("A",), columns_mask={"A": "stars(1)"})


def test_a_mask_may_leave_nothing_and_have_a_salt_of_its_own(
    oracle: Oracle, tmp_path: Path
) -> None:
    """What is left empty is NULL, as in Oracle."""
    masks = {"EMAIL": "hash(sha256, salt=crm)", "PHONE": "stars(0)", "NAME": "truncate(0)", "NAT": "hash(md5)"}  # fmt: skip
    salts = {"salt": SALT, "salts": {"crm": "cumin"}}
    with source_of(oracle, tmp_path, masks=salts) as source:
        source.configure({"name": "T", "columns_mask": masks})
        source.begin()
        oracle.run(f"INSERT INTO T VALUES (4, {values(4)})")
        source.run()
        ours = hashlib.sha256(b"cuminhidden1@x").hexdigest()
        theirs = hashlib.md5((SALT + "夜の1").encode(), usedforsecurity=False).hexdigest()
        one, four = source.lake.image(T)[0], source.lake.image(T)[3]
        assert one[1:5] == (ours, None, None, theirs)
        assert four[2:4] == (None, None)
        assert four[1] == hashlib.sha256(b"cuminhidden4@x").hexdigest()
        assert "cumin" not in landed(source)
        source.more["masks"] = {"salt": SALT}
        source.close()
        with pytest.raises(ValidationError, match=r"masks\.salts_env"):
            source.run()


@pytest.fixture
def keyed(oracle: Oracle, tmp_path: Path) -> Iterator[Source]:
    oracle.run(
        "CREATE TABLE K (ID VARCHAR2(40), N NUMBER(3), V VARCHAR2(20), PRIMARY KEY (ID, N))",
        "INSERT INTO K VALUES ('hidden1', 1, 'a')",
        "INSERT INTO K SELECT 'hidden-' || LEVEL, 1, 'x' FROM DUAL CONNECT BY LEVEL <= 250",
        "INSERT INTO K VALUES ('hidden2', 1, 'b')",
        "INSERT INTO K VALUES ('hidden2', 2, 'c')",
    )
    with source_of(oracle, tmp_path, masks={"salt": SALT}, snapshot={"chunk_rows": 100}) as opened:
        opened.configure({"name": "K", "columns_mask": {"ID": "hash(sha256)"}})
        opened.run()
        yield opened


K = table_id("K")


def keys(source: Source) -> dict[tuple[str, int], str]:
    """The rows but for those that only fill chunks."""
    return {(row[0], row[1]): row[2] for row in source.lake.image(K) if row[2] != "x"}


def test_a_hash_may_be_the_key(oracle: Oracle, keyed: Source) -> None:
    """Changes of key, deletes, replays and new snapshots find their rows by it; nobody sees the value, the metadata store neither."""
    one, two = hashed("hidden1"), hashed("hidden2")
    assert keys(keyed) == {(one, 1): "a", (two, 1): "b", (two, 2): "c"}
    oracle.run(
        "UPDATE K SET ID = 'hidden3', V = 'moved' WHERE ID = 'hidden1'",
        "DELETE FROM K WHERE ID = 'hidden2' AND N = 1",
        "UPDATE K SET V = 'd' WHERE ID = 'hidden2'",
        "INSERT INTO K VALUES ('hidden1', 1, 'again')",
    )
    windows = keyed.windows()
    expected = {(hashed("hidden3"), 1): "moved", (two, 2): "d", (one, 1): "again"}
    assert keys(keyed) == expected
    keyed.check_replayed("K", windows)
    keyed.pipeline.start_snapshot([K])
    keyed.run()
    assert keys(keyed) == expected
    oracle.run("DELETE FROM K WHERE ID = 'hidden3'")
    keyed.pipeline.resnapshot_tables([K])
    keyed.run()
    del expected[hashed("hidden3"), 1]
    assert keys(keyed) == expected
    check_nothing_landed(keyed)
    stores = [path for path in keyed.path.rglob("*.db*") if path.is_file()]
    assert stores
    assert not any(b"hidden" in path.read_bytes() for path in stores)


def test_another_mask_of_a_key_asks_for_new_delta_tables(keyed: Source) -> None:
    keyed.configure({"name": "K", "columns_mask": {"ID": "hash(sha512)"}})
    keyed.run()
    assert keyed.record("K").state == "failed"
    assert "columns_mask masks columns of the key otherwise: ID" in str(keyed.record("K").reason)
    keyed.pipeline.resnapshot_tables([K], fresh=True)
    keyed.run()
    assert (hashed("hidden1", "sha512"), 1) in keys(keyed)


def test_another_salt_of_a_key_asks_for_new_delta_tables(oracle: Oracle, keyed: Source) -> None:
    """Rows would be there twice: under the hash with the old salt, and with the new one."""
    before = keys(keyed)
    keyed.more["masks"] = {"salt": "another"}
    keyed.configure({"name": "K", "columns_mask": {"ID": "hash(sha256)"}})
    oracle.run("UPDATE K SET V = 'new' WHERE ID = 'hidden1'")
    keyed.run()
    assert keyed.record("K").state == "failed"
    assert "columns_mask masks columns of the key otherwise: ID" in str(keyed.record("K").reason)
    assert keys(keyed) == before
    keyed.pipeline.resnapshot_tables([K], fresh=True)
    keyed.run()
    assert sorted(keys(keyed).values()) == ["b", "c", "new"]
    assert keys(keyed).keys().isdisjoint(before)


def test_another_salt_of_a_column_is_told(oracle: Oracle, tmp_path: Path) -> None:
    entry = {"name": "T", "columns_mask": {"EMAIL": "hash(sha256)", "NOTE": "stars(3)"}}
    with source_of(oracle, tmp_path, masks={"salt": SALT}) as source:
        source.configure(entry)
        source.begin()
        source.more["masks"] = {"salt": "another"}
        source.configure(entry)
        source.run()
        assert source.record("T").state == "ready"
        assert "columns masked differently since SCN" in str(source.record("T").reason)
        assert "EMAIL;" in str(source.record("T").reason)


@pytest.mark.parametrize("lobs", ["reselect", "redo"])
def test_a_clob_is_masked(oracle: Oracle, tmp_path: Path, lobs: str) -> None:
    """What lies in its row by the redo; what is written in pieces by a look at Oracle as of the commit, without which the table stops."""
    long = "hidden" * 3000
    oracle.run(
        "CREATE TABLE C (ID NUMBER(9) PRIMARY KEY, DOC CLOB, V VARCHAR2(20), OTHER CLOB)",
        "INSERT INTO C VALUES (1, 'hidden1', 'a', 'plain')",
    )
    table = table_id("C")
    with source_of(
        oracle, tmp_path, masks={"salt": SALT}, capture={"lobs": lobs, "close_at": "online"}
    ) as source:
        source.configure({"name": "C", "columns_mask": {"DOC": "hash(sha256)"}})
        source.run()
        assert source.lake.image(table) == [(1, hashed("hidden1"), "a", "plain")]
        oracle.run("INSERT INTO C VALUES (2, 'hidden2', 'b', EMPTY_CLOB())", "UPDATE C SET V = 'c' WHERE ID = 1")  # fmt: skip
        source.run()
        short = [(1, hashed("hidden1"), "c", "plain"), (2, hashed("hidden2"), "b", "")]
        assert source.lake.image(table) == short
        with oracle.owner() as connection, connection.cursor() as cursor:
            cursor.execute("UPDATE C SET DOC = :doc, OTHER = :other WHERE ID = 1", doc=long, other="o" * 9000)  # fmt: skip
            cursor.execute("INSERT INTO C VALUES (3, :doc, 'd', NULL)", doc=long + "3")
            cursor.execute("UPDATE C SET DOC = NULL WHERE ID = 2")
            connection.commit()
        windows = source.windows()
        assert "hidden" not in landed(source)
        if lobs == "redo":
            assert source.record("C").state == "failed"
            assert "reselect" in str(source.record("C").way_out)
            return
        expected = [
            (1, hashed(long), "c", "o" * 9000),
            (2, None, "b", ""),
            (3, hashed(long + "3"), "d", None),
        ]
        assert source.lake.image(table) == expected
        source.check_replayed("C", windows)
        source.pipeline.resnapshot_tables([table])
        source.run()
        assert source.lake.image(table) == expected


def test_a_hash_needs_a_salt(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "T") as source:
        source.configure(table())
        with pytest.raises(ValidationError, match=r"masks\.salt_env"):
            source.run()
        source.more["masks"] = {"salt": ""}
        with pytest.raises(Exception, match="the salt is empty"):
            source.run()


@pytest.mark.parametrize("is_masked", [True, False], ids=["masked", "excluded"])
def test_values_under_a_new_name_do_not_land(
    is_masked: bool, oracle: Oracle, tmp_path: Path
) -> None:
    """Behind a RENAME COLUMN the redo names the column as nobody has configured it."""
    own = table() if is_masked else {"name": "T", "columns_exclude": list(MASKS)}
    with source_of(oracle, tmp_path, "T", masks={"salt": SALT}) as source:
        source.configure(own)
        source.begin()
        oracle.run(f"INSERT INTO T VALUES (4, {values(4)})")
        oracle.run("ALTER TABLE T RENAME COLUMN EMAIL TO ADDRESS")
        oracle.run(f"INSERT INTO T VALUES (5, {values(5)})", "UPDATE T SET NOTE = 'x' WHERE ID = 1")
        source.run()
        check_nothing_landed(source)
