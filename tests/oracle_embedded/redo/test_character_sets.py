"""What LogMiner shows of text in a database of another character set."""

from __future__ import annotations

from pathlib import Path

from oracle_embedded.redo import Wart
from tests.oracle_embedded.redo.driver import live, run

EURO = "\u20ac"


def test_text_is_printed_as_it_is_and_unnamed_values_in_the_bytes_of_their_sets(
    tmp_path: Path,
) -> None:
    with live(tmp_path, Wart.UNNAMED_COLUMNS, character_set="WE8MSWIN1252") as running:
        owner = running.connect()
        run(owner, "create table t (id number primary key, v varchar2(20), n nvarchar2(20))")
        run(owner, f"insert into t values (1, 'é{EURO}', unistr('\\65e5'))")
        owner.commit()
        (named,) = running.miner().mine(where="operation_code = 1 and table_name = 'T'")
        assert named["SQL_REDO"] == (
            f"""insert into "DEMO"."T"("ID","V","N") values ('1','é{EURO}',UNISTR('\\65E5'));"""
        )
        run(owner, "alter table t add (extra number)")
        (raw,) = running.miner().mine(where="operation_code = 1 and table_name = 'T'")
        assert raw["SQL_REDO"] == (
            """insert into "DEMO"."T"("COL 1","COL 2","COL 3")"""
            """ values (HEXTORAW('c102'),HEXTORAW('e980'),HEXTORAW('65e5'));"""
        )


def test_a_row_of_the_view_holds_bytes_of_the_set(tmp_path: Path) -> None:
    """4,000 of them: in a set of one byte as many characters, of three bytes each for a client that wants UTF-8."""
    with live(tmp_path, character_set="WE8MSWIN1252") as running:
        owner = running.connect()
        run(owner, "create table t (id number primary key, v varchar2(4000))")
        owner.cursor().execute("insert into t values (1, :1)", [EURO * 4000])
        owner.commit()
        rows = running.miner().mine(where="operation_code = 1 and table_name = 'T'")
        assert [(len(row["SQL_REDO"]), row["CSF"]) for row in rows[:-1]] == [(4000, 1)]
        assert "".join(row["SQL_REDO"] for row in rows).count(EURO) == 4000


def test_a_lob_of_one_byte_a_character_stays_longer_in_its_row(tmp_path: Path) -> None:
    """3,900 characters are 3,900 bytes in a set of one byte, and 7,800 in every other one."""
    for character_set, pieces in (("WE8MSWIN1252", 0), ("AL32UTF8", 2)):
        with live(tmp_path / character_set, character_set=character_set) as running:
            owner = running.connect()
            run(owner, "create table t (id number primary key, c clob)")
            owner.cursor().execute("insert into t values (1, :1)", ["é" * 3900])
            owner.commit()
            written = running.miner().mine(where="operation_code = 10 and table_name = 'T'")
            assert len(written) == pieces, character_set
