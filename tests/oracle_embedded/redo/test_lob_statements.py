"""Tables with LOBs as LogMiner of 23ai shows them: placeholder ROWIDs, blocks, undo by statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oracle_embedded.redo import LobRows, Wart, XmlRows
from tests.oracle_embedded.redo.driver import Live, Row, live, run

PLACEHOLDER = "A" * 18
BIG, BIG2 = "a" * 9000 + "z", "b" * 11000 + "y"
NATIONAL, BYTES = "n" * 5000, bytes(range(256)) * 36
SHORT = {"INTERNAL": "internal", "LOB_WRITE": "write", "LOB_TRIM": "trim"}
CREATE = "create table docs (id number primary key, name varchar2(50), c clob, nc nclob, b blob)"
WHERE = """ where "ID" = '1' and "NAME" = 'one'"""
Step = Callable[[Any], None]


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path, Wart.LOB_STATEMENTS) as running:
        run(running.connect(), CREATE)
        yield running


def sql(*statements: str) -> Step:
    return lambda connection: run(connection, *statements)


def bind(statement: str, *values: Any) -> Step:
    return lambda connection: connection.cursor().execute(statement, values)


def insert(key: int, *values: Any) -> Step:
    return bind("insert into docs values (:1, :2, :3, :4, :5)", key, f"name {key}", *values)


def rows_of(running: Live, *steps: Step, before: tuple[Step, ...] = ()) -> list[Row]:
    """DOCS's rows of one transaction with these steps."""
    owner = running.connect()
    for step in before:
        step(owner)
    owner.commit()
    running.admin("alter system switch logfile")
    for step in steps:
        step(owner)
    owner.commit()
    cursor = owner.cursor()
    cursor.execute("select object_id from user_objects where object_name = 'DOCS'")
    (number,) = cursor.fetchone()
    rows = running.miner().mine(where=f"data_obj# = {number}")
    newest = max(row["RBASQN"] for row in running.miner().mine(where="operation_code = 7"))
    return [row for row in rows if row["RBASQN"] == newest]


def shape(rows: list[Row]) -> str:
    """Rows in one line: ``insert? write?+ update!``, with ``?`` for a placeholder and ``!`` for a ROWID; ``undo-`` marks undo
    rows, ``locate`` is code 9, ``close`` the INTERNAL row with code 0."""
    words: list[str] = []
    for row in rows:
        if row["CSF"]:
            continue
        name = {0: "close", 9: "locate"}.get(row["OPERATION_CODE"]) or SHORT.get(
            row["OPERATION"], row["OPERATION"].lower()
        )
        known = "?" if row["ROW_ID"] == PLACEHOLDER else "!"
        word = ("undo-" if row["ROLLBACK"] else "") + name + known
        if words and words[-1].rstrip("+") == word:
            words[-1] = word + "+"
        else:
            words.append(word)
    return " ".join(words)


SMALL = sql("insert into docs values (1, 'one', 'small', n'n', hextoraw('DEADBEEF'))")
LARGE = insert(1, BIG, NATIONAL, BYTES)


@pytest.mark.parametrize(
    ("before", "steps", "expected"),
    [
        pytest.param((), (SMALL,), "insert? update!", id="insert-small"),
        pytest.param(
            (),
            (LARGE,),
            "insert? locate? write?+ locate? write?+ locate? write?+ close!",
            id="insert-large",
        ),
        pytest.param(
            (), (insert(1, BIG, None, None),), "insert? locate? write?+ update!", id="insert-nulls"
        ),
        pytest.param(
            (), (sql("insert into docs (id) values (1)"),), "insert? update!", id="insert-no-lob"
        ),
        pytest.param(
            (),
            (sql("insert into docs values (1, 'x', empty_clob(), empty_clob(), empty_blob())"),),
            "insert? close!",
            id="insert-empty",
        ),
        pytest.param(
            (SMALL,), (sql("update docs set c = 'changed'"),), "update!", id="update-small"
        ),
        pytest.param(
            (SMALL,), (sql("update docs set name = 'changed'"),), "update!", id="update-no-lob"
        ),
        pytest.param((SMALL,), (sql("update docs set b = null"),), "update!", id="update-null"),
        pytest.param((LARGE,), (sql("update docs set c = 'short'"),), "update!", id="shortened"),
        pytest.param(
            (LARGE,), (sql("update docs set nc = empty_clob()"),), "update!", id="emptied"
        ),
        pytest.param(
            (LARGE,),
            (bind("update docs set c = :1", BIG2),),
            "locate? write?+ trim? close!",
            id="update-large",
        ),
        pytest.param(
            (LARGE,),
            (bind("update docs set name = 'both', c = :1", BIG2),),
            "update? locate? write?+ trim? close!",
            id="update-column-and-large",
        ),
        pytest.param(
            (insert(1, BIG, None, None),),
            (bind("update docs set nc = :1", "é" * 6000),),
            "update? locate? write?+ close!",
            id="update-null-to-large",
        ),
        pytest.param(
            (SMALL,),
            (bind("update docs set name = 'x', c = :1, nc = 'small'", BIG),),
            "update? locate? write?+ trim? update!",
            id="update-large-and-small",
        ),
        pytest.param(
            (LARGE, insert(2, BIG, None, None)),
            (bind("update docs set c = :1", BIG2),),
            "locate? write?+ trim? close! locate? write?+ trim? close!",
            id="two-rows",
        ),
        pytest.param((LARGE,), (sql("delete from docs"),), "delete!", id="delete"),
    ],
)
def test_rows_of_a_statement(
    odd: Live, before: tuple[Step, ...], steps: tuple[Step, ...], expected: str
) -> None:
    assert shape(rows_of(odd, *steps, before=before)) == expected


S, BACK = sql("savepoint s"), sql("rollback to s")


@pytest.mark.parametrize(
    ("before", "steps", "expected"),
    [
        pytest.param(
            (SMALL,),
            (S, bind("update docs set c = :1", BIG2), BACK),
            "locate? write?+ trim? close! undo-update!",
            id="large-over-small",
        ),
        pytest.param(
            (LARGE,),
            (S, bind("update docs set name = 'x', c = :1", BIG2), BACK),
            "update? locate? write?+ trim? close! undo-update!",
            id="column-and-large",
        ),
        pytest.param(
            (),
            (S, LARGE, BACK, sql("insert into docs (id, name) values (2, 'two')")),
            "insert? locate? write?+ locate? write?+ locate? write?+ close! undo-delete! insert? update!",
            id="insert-large",
        ),
        pytest.param((), (S, SMALL, BACK), "insert? update! undo-delete!", id="insert-small"),
        pytest.param(
            (LARGE,), (S, sql("delete from docs"), BACK), "delete! undo-insert!", id="delete"
        ),
        pytest.param(
            (SMALL, insert(2, BIG, None, None)),
            (S, bind("update docs set c = :1", BIG2), BACK),
            "locate? write?+ trim? close! locate? write?+ trim? close! undo-update!+",
            id="two-rows",
        ),
    ],
)
def test_one_undo_row_stands_for_a_statement(
    odd: Live, before: tuple[Step, ...], steps: tuple[Step, ...], expected: str
) -> None:
    rows = rows_of(odd, *steps, before=before)
    assert shape(rows) == expected
    known = {row["ROW_ID"] for row in rows} - {PLACEHOLDER}
    assert {row["ROW_ID"] for row in rows if row["ROLLBACK"]} <= known


def test_a_failed_insert_is_undone_by_one_row(odd: Live) -> None:
    def fail(connection: Any) -> None:
        with pytest.raises(Exception, match="ORA-00001"):
            insert(1, BIG, None, None)(connection)

    rows = rows_of(odd, sql("update docs set name = 'before'"), fail, before=(SMALL,))
    assert shape(rows) == "update! insert? locate? write?+ update! undo-delete!"
    assert rows[-1]["SQL_REDO"].startswith("""delete from "DEMO"."DOCS" where ROWID = '""")
    assert rows[-1]["ROW_ID"] != rows[0]["ROW_ID"]


def test_an_undo_row_shows_small_values_and_empties_large_ones(odd: Live) -> None:
    change = bind("update docs set name = 'x', c = :1", BIG2)
    rows = rows_of(odd, S, change, BACK, before=(SMALL,))
    small = """update "DEMO"."DOCS" set "NAME" = 'one', "C" = 'small';"""
    assert rows[-1]["SQL_REDO"] == small
    odd.admin("truncate table demo.docs")
    rows = rows_of(odd, S, change, BACK, before=(LARGE,))
    assert rows[-1]["SQL_REDO"] == small.replace("one", "name 1").replace("'small'", "EMPTY_CLOB()")


def test_an_insert_empties_all_lobs_and_sets_what_fits(odd: Live) -> None:
    first, last = rows_of(odd, sql("insert into docs values (1, 'one', 'it''s', null, null)"))
    assert first["SQL_REDO"] == (
        """insert into "DEMO"."DOCS"("ID","NAME","C","NC","B") values ('1','one',EMPTY_CLOB(),EMPTY_CLOB(),EMPTY_BLOB());"""
    )
    assert last["SQL_REDO"] == (
        f"""update "DEMO"."DOCS" set "C" = 'it''s', "NC" = NULL, "B" = NULL{WHERE};"""
    )


def test_national_text_is_plain(odd: Live) -> None:
    last = rows_of(odd, sql("insert into docs (id, nc) values (1, n'é')"))[-1]
    assert """"NC" = 'é'""" in last["SQL_REDO"]


def joined(rows: list[Row], operation: str) -> list[str]:
    texts = [""]
    for row in rows:
        if row["OPERATION"] == operation:
            texts[-1] += row["SQL_REDO"]
            if not row["CSF"]:
                texts.append("")
    return texts[:-1]


def test_each_write_is_a_whole_block_that_cannot_be_executed(odd: Live) -> None:
    wide = "x" * 5000 + "\N{FIRE}" + "it's"
    rows = rows_of(odd, bind("update docs set c = :1", wide), before=(SMALL,))
    writes, (trim,) = joined(rows, "LOB_WRITE"), joined(rows, "LOB_TRIM")
    head = re.compile(
        r"DECLARE \n loc_c CLOB; \n buf_c VARCHAR2\(\d+\); \n loc_b BLOB; \n buf_b RAW\(\d+\); \n"
        r" loc_nc NCLOB; \n buf_nc NVARCHAR2\(\d+\); \n e_len NUMBER; \nBEGIN\n"
        + re.escape(f""" select "C" into loc_c from "DEMO"."DOCS"{WHERE} for update;\n\n""")
    )
    assert all(head.match(text) for text in (*writes, trim))
    text, offset = "", 1
    for write in writes:
        match = re.search(
            r" buf_c := '(.*)'; \n  dbms_lob\.write\(loc_c, (\d+), (\d+), buf_c\);\nEND;\n\n\Z",
            write,
            re.DOTALL,
        )
        assert match is not None
        piece = match[1].replace("''", "'")
        assert (len(piece), offset) == (int(match[2]), int(match[3]))  # code points
        text, offset = text + piece, offset + len(piece)
    assert text == wide
    assert trim.endswith(f"  dbms_lob.trim(loc_c, {len(wide)});\nEND;\n\n")
    lob_rows = [row for row in rows if row["OPERATION_CODE"] in (10, 11)]
    assert {(row["STATUS"], row["INFO"]) for row in lob_rows} == {
        (2, "LOB sql_redo not re-executable")
    }


def test_rows_without_a_statement_have_no_owner(odd: Live) -> None:
    rows = rows_of(odd, LARGE)
    silent = [row for row in rows if row["OPERATION_CODE"] in (0, 9)]
    assert len(silent) == 4
    for row in silent:
        assert (row["OPERATION"], row["STATUS"], row["SQL_REDO"]) == ("INTERNAL", 0, None)
        assert (row["SEG_OWNER"], row["TABLE_NAME"], row["SEG_NAME"]) == (None, None, None)
    assert silent[-1]["SEQUENCE#"] > 1
    assert {row["SEQUENCE#"] for row in rows[:-1]} == {1}


def test_row_piece_and_locators_share_an_address(odd: Live) -> None:
    rows = [row for row in rows_of(odd, LARGE) if not row["CSF"]]
    shared = [row for row in rows if row["OPERATION_CODE"] in (1, 9)]
    assert len({row["RS_ID"] for row in shared}) == 1
    assert [row["SSN"] for row in shared] == [0, 1, 2, 3]
    others = [row["RS_ID"] for row in rows if row["OPERATION_CODE"] in (0, 10)]
    assert others == sorted(set(others))
    assert min(others) > shared[0]["RS_ID"]


def test_older_releases_write_fragments_behind_a_locator(tmp_path: Path) -> None:
    with live(tmp_path, Wart.LOB_STATEMENTS, lob_rows=LobRows.PIECES) as old:
        run(old.connect(), CREATE)
        rows = rows_of(old, bind("update docs set c = :1", BIG), before=(SMALL,))
    assert shape(rows) == "locate? write?+ trim? close!"
    assert rows[0]["OPERATION"] == "SELECT_LOB_LOCATOR"
    assert (
        f""" select "C" into loc_c from "DEMO"."DOCS"{WHERE} for update;""" in rows[0]["SQL_REDO"]
    )
    assert joined(rows, "LOB_WRITE")[0].startswith(" buf_c := 'aaa")
    assert {row["STATUS"] for row in rows} == {0}


def test_every_row_has_its_rowid_when_it_is_switched_off(odd: Live) -> None:
    odd.opened.redo.set_wart(Wart.LOB_STATEMENTS, shown=False)
    rows = rows_of(odd, S, SMALL, BACK)
    assert shape(rows) == "insert! update!+ undo-update!+ undo-delete!"


def test_an_extended_string_is_bound_to_an_update_in_three_kinds_of_rows(tmp_path: Path) -> None:
    """A short one lies in the row; none is in an old image, and each INSERT shows it empty."""
    with live(tmp_path, Wart.LOB_STATEMENTS, extended_strings=True) as running:
        create = "create table docs (id number primary key, v varchar2(32767), r raw(2001))"
        run(running.connect(), create)
        add = "insert into docs values (:1, :2, :3)"
        long, short = bind(add, 1, "it's" * 2000, b"\x01"), bind(add, 2, "short", None)
        rows = rows_of(running, long, short, sql("delete from docs where id = 1"))
        shown = [row for row in rows if row["OPERATION_CODE"] not in (0, 6, 7)]
        assert [row["OPERATION_CODE"] for row in shown if row["CSF"] == 0] == [
            1,
            91,
            92,
            93,
            3,
            1,
            3,
            2,
        ]
        texts = [row["SQL_REDO"] for row in shown]
        assert texts[0].endswith("values ('1',LM_EMPTY_STRING,LM_EMPTY_STRING);")
        assert texts[1].endswith(
            """Stmt := 'update "DEMO"."DOCS" set "V" = :DATA where "ID" = ''1'';';"""
        )
        assert texts[2].startswith("  buf_c := 'it''sit''s")
        assert """set "R" = HEXTORAW('01')""" in texts[-4]
        assert """set "V" = 'short', "R" = NULL""" in texts[-2]
        assert texts[-1] == """delete from "DEMO"."DOCS" where "ID" = '1';"""


@pytest.mark.parametrize("shape", list(XmlRows), ids=lambda shape: shape.value)
def test_a_document_is_a_bind_in_its_statement_and_has_rows_of_its_own(
    tmp_path: Path, shape: XmlRows
) -> None:
    """INSERT and UPDATE can be executed, what begins and writes the document cannot. A NULL one has no rows."""
    with live(tmp_path, Wart.LOB_STATEMENTS, xml_rows=shape) as running:
        run(running.connect(), "create table docs (id number primary key, d xmltype)")
        rows = rows_of(
            running,
            sql(
                "insert into docs values (1, xmltype('<é/>'))", "insert into docs values (2, null)"
            ),
            sql("update docs set d = '<b/>' where id = 2", "delete from docs where id = 1"),
        )
        shown = [row for row in rows if row["OPERATION_CODE"] not in (0, 6, 7)]
        assert [(row["OPERATION_CODE"], row["STATUS"]) for row in shown] == [
            (1, 0), (68, 2), (70, 2), (71, 0), (1, 0), (3, 0), (3, 0), (68, 2), (70, 2), (71, 0), (2, 0),
        ]  # fmt: skip
        texts = [row["SQL_REDO"] for row in shown]
        assert texts[0].endswith("values ('1',XMLType(:1));")
        assert texts[4].endswith("values ('2',NULL);")
        assert """set "D" = XMLType(:1)""" in texts[6]
        begin, write = {
            XmlRows.BINARY: (
                """XML DOC BEGIN:  select "D" from "DEMO"."DOCS" where "ID" = '1'""",
                "XML_REDO := HEXTORAW('3cc3a92f3e'):5",
            ),
            XmlRows.AMOUNT: (
                """XML DOC BEGIN:  select "D" from "DEMO"."DOCS" where "ID" = '1'""",
                "XML_REDO := '<é/>'\n amount: 5",
            ),
            XmlRows.TEXT: (
                """update "DEMO"."DOCS" set "D" = XMLType(:1)  where "ID" = '1';""",
                "<é/>",
            ),
        }[shape]
        assert texts[1:4] == [begin, write, None]
        assert texts[-1] == """delete from "DEMO"."DOCS" where "ID" = '1';"""


@pytest.mark.parametrize("is_there", [True, False], ids=["pieces", "blocks"])
def test_the_end_of_a_document_names_its_table_where_lobs_come_in_pieces(
    tmp_path: Path, is_there: bool
) -> None:
    """Debezium looks its table up without asking whether there is one."""
    rows_as = LobRows.PIECES if is_there else LobRows.BLOCKS
    with live(tmp_path, Wart.LOB_STATEMENTS, lob_rows=rows_as) as running:
        run(running.connect(), "create table docs (id number primary key, d xmltype)")
        rows = rows_of(running, sql("insert into docs values (1, xmltype('<a/>'))"))
        [end] = [row for row in rows if row["OPERATION_CODE"] == 71]
        named = ("DEMO", "DOCS", "XML DOC END") if is_there else (None, None, "INTERNAL")
        assert (end["SEG_OWNER"], end["TABLE_NAME"], end["OPERATION"]) == named
        assert (end["STATUS"], end["SQL_REDO"]) == (0, None)


def through_locator(column: str, *calls: tuple[str, Any]) -> Step:
    """Calls of the driver's LOB, of the row with ID 1, which is locked for that."""

    def step(connection: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(f"select {column} from docs where id = 1 for update")
        (lob,) = cursor.fetchone()
        for name, arguments in calls:
            getattr(lob, name)(*arguments)

    return step


@pytest.mark.parametrize(
    ("step", "rows", "calls"),
    [
        pytest.param(
            through_locator("c", ("write", ("🔥!", 6))), "locate! write?", ["write(loc_c, 2, 6, buf_c)"],
            id="appended-characters",
        ),
        pytest.param(
            through_locator("c", ("write", ("🔥", 1)), ("write", ("x", 3))), "locate! write? locate! write?",
            ["write(loc_c, 1, 1, buf_c)", "write(loc_c, 1, 2, buf_c)"],
            id="offsets-count-characters-not-utf-16",
        ),
        pytest.param(
            through_locator("b", ("write", (b"\x00\x01", 2))), "locate! write?", ["write(loc_b, 2, 2, buf_b)"],
            id="bytes-within",
        ),
        pytest.param(through_locator("c", ("trim", (2,))), "locate! trim?", ["trim(loc_c, 2)"], id="cut"),
    ],
)  # fmt: skip
def test_a_call_through_a_locator_has_that_call_alone(
    odd: Live, step: Step, rows: str, calls: list[str]
) -> None:
    """The redo has what was written, and nothing of the value that was there before."""
    found = rows_of(odd, step, before=(SMALL,))
    assert shape(found) == rows
    texts = [row["SQL_REDO"] or "" for row in found]
    assert re.findall(r"dbms_lob\.(\w+\([^)]*\))", " ".join(texts)) == calls
    assert "small" not in " ".join(texts)


def test_older_releases_show_a_call_behind_its_locator(tmp_path: Path) -> None:
    with live(tmp_path, Wart.LOB_STATEMENTS, lob_rows=LobRows.PIECES) as running:
        run(running.connect(), CREATE)
        found = rows_of(running, through_locator("c", ("write", ("!", 6))), before=(SMALL,))
    assert shape(found) == "locate! write?"


def test_a_block_writes_a_lob_as_a_client_does(odd: Live) -> None:
    block = "declare l clob; begin select c into l from docs where id = 1 for update; dbms_lob.write(l, 2, 4, 'xy'); dbms_lob.trim(l, 4); end;"
    found = rows_of(odd, sql(block), before=(SMALL,))
    assert shape(found) == "locate! write? locate! trim?"
    assert calls(found) == ["2, 4", "4"]


def test_an_insert_of_several_rows_shows_its_row_pieces_first(tmp_path: Path) -> None:
    two = SMALL, sql("insert into docs (id) values (2)")
    copy = sql("insert into docs select id + 10, name, c, nc, empty_blob() from docs where id < 3")
    again = sql("insert into docs select id + 20, name, c, nc, b from docs where id < 3")
    with live(tmp_path, Wart.LOB_STATEMENTS, Wart.LOB_INSERTS_TOGETHER) as running:
        run(running.connect(), CREATE)
        rows = rows_of(running, sql("savepoint s"), copy, sql("rollback to s"), before=two)
        running.opened.redo.set_wart(Wart.LOB_INSERTS_TOGETHER, shown=False)
        apart = rows_of(running, again)
    assert shape(rows) == "insert?+ update!+ undo-delete!+"
    assert len(rows) == 6
    assert shape(apart) == "insert? update! insert? update!"


def test_an_update_of_other_columns_may_have_a_placeholder(tmp_path: Path) -> None:
    with live(tmp_path, Wart.LOB_STATEMENTS, Wart.LOB_UPDATES_UNPLACED) as running:
        run(running.connect(), CREATE)
        rows = rows_of(running, sql("update docs set name = 'changed'"), before=(SMALL,))
    assert shape(rows) == "update? close!"


def test_offsets_may_count_utf16_units(tmp_path: Path) -> None:
    text = "🔥" + "a" * 5000
    with live(tmp_path, Wart.LOB_STATEMENTS, Wart.LOB_OFFSETS_IN_UNITS) as running:
        run(running.connect(), CREATE)
        rows = rows_of(running, bind("update docs set c = :1", text), before=(SMALL,))
        running.opened.redo.set_wart(Wart.LOB_OFFSETS_IN_UNITS, shown=False)
        characters = rows_of(running, bind("update docs set c = :1", text))
    assert calls(rows) == ["4066, 1", "935, 4068", "5002"]
    assert calls(characters) == ["4066, 1", "935, 4067", "5001"]


def calls(rows: list[Row]) -> list[str]:
    texts = "".join(row["SQL_REDO"] or "" for row in rows)
    found = re.findall(r"dbms_lob\.(?:write|trim)\(loc_c, ([\d, ]+?)(?:, buf_c)?\)", texts)
    return [one.strip() for one in found]
