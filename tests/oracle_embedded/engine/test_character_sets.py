"""Databases with another character set than AL32UTF8, through the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import oracledb
import pytest

from oracle_embedded.charsets import BY_NAME, character_sets
from oracle_embedded.database import OWNER, open_database
from oracle_embedded.server import EmbeddedServer

EURO = "\u20ac"


@contextmanager
def cursor_of(character_set: str = "", national: str = "") -> Iterator[Any]:
    """A cursor of the owner's in a fresh database."""
    opened = open_database(character_set=character_set, national_character_set=national)
    try:
        with (
            EmbeddedServer(opened.engine) as server,
            oracledb.connect(
                user=OWNER, password=opened.password(OWNER), dsn=server.dsn
            ) as connection,
        ):
            yield connection.cursor()
    finally:
        opened.close()


@pytest.fixture(scope="module")
def western() -> Iterator[Any]:
    with cursor_of("WE8MSWIN1252") as cursor:
        yield cursor


def one(cursor: Any, sql: str, *binds: Any) -> Any:
    """The only value of the only row."""
    cursor.execute(sql, binds)
    ((value,),) = cursor.fetchall()
    return value.read() if isinstance(value, oracledb.LOB) else value


def test_the_database_says_which_sets_it_has(western: Any) -> None:
    western.execute(
        "SELECT parameter, value FROM nls_database_parameters WHERE parameter LIKE '%CHARACTERSET'"
    )
    assert dict(western.fetchall()) == {
        "NLS_CHARACTERSET": "WE8MSWIN1252",
        "NLS_NCHAR_CHARACTERSET": "AL16UTF16",
    }
    assert one(western, "SELECT userenv('LANGUAGE') FROM dual").endswith(".WE8MSWIN1252")
    assert one(western, "SELECT nls_charset_id('CHAR_CS') FROM dual") == 178
    assert one(western, "SELECT nls_charset_name(nls_charset_id('NCHAR_CS')) FROM dual") == (
        "AL16UTF16"
    )


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        pytest.param(f"lengthb('a{EURO}')", 2, id="lengthb"),
        pytest.param(f"lengthb(to_nchar('{EURO}'))", 2, id="lengthb-national"),
        pytest.param(f"vsize('{EURO}')", 1, id="vsize"),
        pytest.param(f"dump('{EURO}', 1016)", "Typ=96 Len=1 CharacterSet=WE8MSWIN1252: 80", id="dump"),
        pytest.param(
            "dump(unistr('\\20ac'), 1016)",
            "Typ=1 Len=2 CharacterSet=AL16UTF16: 20,ac",
            id="dump-national",
        ),
        pytest.param(f"ascii('{EURO}')", 128, id="ascii"),
        pytest.param("chr(128)", EURO, id="chr"),
        pytest.param("chr(384)", EURO, id="chr-takes-the-last-byte"),
        pytest.param("nchr(8364)", EURO, id="nchr"),
        pytest.param(f"substrb('{EURO}bc', 2, 1)", "b", id="substrb"),
        pytest.param(f"utl_raw.cast_to_raw('{EURO}')", b"\x80", id="cast-to-raw"),
        pytest.param("utl_raw.cast_to_varchar2(hextoraw('80e9'))", f"{EURO}é", id="cast-to-varchar2"),
        pytest.param("unistr('\\65e5')", "日", id="unistr-is-national"),
        pytest.param("cast(unistr('a\\65e5') as varchar2(5))", "a¿", id="cast-to-the-database-s-set"),
        pytest.param("N'a日'", "a¿", id="national-literals-go-through-the-database-s-set"),
        pytest.param("'日'", "¿", id="so-do-others"),
        pytest.param("convert('é', 'UTF8')", "Ã©", id="convert"),
    ],
)  # fmt: skip
def test_an_expression_has_oracles_value(western: Any, expression: str, value: Any) -> None:
    assert one(western, f"SELECT {expression} FROM dual") == value


def test_what_the_set_lacks_is_replaced_on_the_way_in(western: Any) -> None:
    western.execute("CREATE TABLE kept (id NUMBER, v VARCHAR2(20), n NVARCHAR2(20), c CLOB)")
    western.setinputsizes(None, None, oracledb.DB_TYPE_NVARCHAR)
    western.execute("INSERT INTO kept VALUES (:1, :2, :3, :4)", [1, "é日", "é日🔥", "日" * 3])
    western.execute("INSERT INTO kept (id, v) SELECT 2, n FROM kept")
    western.execute("BEGIN INSERT INTO kept (id, v) VALUES (3, unistr('\\65e5')); END;")
    western.execute("SELECT id, v, n, c FROM kept ORDER BY id")
    found = [(n, v, wide, c and c.read()) for n, v, wide, c in western]
    assert found == [
        (1, "é¿", "é日🔥", "¿¿¿"),
        (2, "é¿¿", None, None),
        (3, "¿", None, None),
    ]


def test_bytes_are_those_of_the_set(western: Any) -> None:
    """Ten letters of two bytes in UTF-8 fit into ten bytes here, eleven do not; VARCHAR2(n CHAR) has n bytes."""
    western.execute("CREATE TABLE sized (v VARCHAR2(10), c CHAR(3), l VARCHAR2(5 CHAR))")
    western.execute("INSERT INTO sized VALUES (:1, :2, :3)", ["é" * 10, EURO, "é"])
    with pytest.raises(oracledb.DatabaseError, match=r"ORA-12899.*actual: 11, maximum: 10"):
        western.execute("INSERT INTO sized (v) VALUES (:1)", ["é" * 11])
    assert one(western, "SELECT c FROM sized") == EURO + "  "
    western.execute(
        "SELECT column_name, data_length, char_length FROM user_tab_columns WHERE table_name = 'SIZED'"
    )
    assert set(western.fetchall()) == {("V", 10, 10), ("C", 3, 3), ("L", 5, 5)}


def test_texts_are_ordered_by_the_bytes_of_the_set(western: Any) -> None:
    """The euro sign is 0x80, below é; as a code point it is far above."""
    western.execute("CREATE TABLE ordered (id NUMBER, v VARCHAR2(4))")
    western.executemany(
        "INSERT INTO ordered VALUES (:1, :2)", [(1, "z"), (2, EURO), (3, "é"), (4, "ÿ")]
    )

    def ids(sql: str) -> list[int]:
        western.execute(sql)
        return [number for (number,) in western]

    assert ids("SELECT id FROM ordered ORDER BY v") == [1, 2, 3, 4]
    assert ids("SELECT id FROM ordered ORDER BY v DESC") == [4, 3, 2, 1]
    assert ids(f"SELECT id FROM ordered WHERE v > '{EURO}' ORDER BY 1") == [3, 4]
    assert ids(f"SELECT id FROM ordered WHERE v BETWEEN 'z' AND '{EURO}' ORDER BY 1") == [1, 2]
    assert ids("SELECT row_number() OVER (ORDER BY v) FROM ordered ORDER BY id") == [1, 2, 3, 4]
    western.execute(f"SELECT min(v), max(v), greatest('{EURO}', max(v)) FROM ordered WHERE id > 1")
    assert western.fetchone() == (EURO, "ÿ", "ÿ")
    assert one(western, "SELECT id FROM ordered WHERE v = :1", EURO) == 2
    western.execute("SELECT v FROM ordered UNION SELECT 'a' FROM dual ORDER BY 1")
    assert [text for (text,) in western] == ["a", "z", EURO, "é", "ÿ"]


def test_national_texts_are_ordered_by_their_units() -> None:
    """In UTF-16 a character beyond U+FFFF begins with 0xD8, below U+FF21."""
    with cursor_of() as cursor:
        cursor.execute("SELECT unistr('\\ff21') n FROM dual UNION ALL SELECT unistr('\\d83d\\dd25') FROM dual ORDER BY 1")  # fmt: skip
        assert [text for (text,) in cursor] == ["🔥", "\uff21"]


@pytest.mark.parametrize(
    ("name", "text", "stored"),
    [
        pytest.param("US7ASCII", "aé", "613f", id="seven-bits"),
        pytest.param("WE8ISO8859P1", f"é{EURO}", "e9bf", id="latin-1-has-no-euro-sign"),
        pytest.param("WE8ISO8859P15", f"é{EURO}", "e9a4", id="latin-9-has-one"),
        pytest.param("EE8MSWIN1250", "łé日", "b3e93f", id="eastern-europe"),
        pytest.param("CL8MSWIN1251", "Жé", "c63f", id="cyrillic"),
        pytest.param("JA16SJIS", "a日〜\uff5e", "6193fa81608160", id="japanese"),
        pytest.param("JA16SJISTILDE", "a日\uff5e", "6193fa8160", id="japanese-with-the-tilde"),
    ],
)
def test_each_set_stores_its_bytes(name: str, text: str, stored: str) -> None:
    with cursor_of(name) as cursor:
        assert one(cursor, "SELECT utl_raw.cast_to_raw(:1) FROM dual", text).hex() == stored


def test_the_wave_dash_comes_back_as_oracle_has_it() -> None:
    """Both characters are 0x8160; JA16SJIS reads that as U+301C, JA16SJISTILDE as U+FF5E."""
    with cursor_of("JA16SJISTILDE") as cursor:
        assert one(cursor, "SELECT :1 FROM dual", "\uff5e") == "\uff5e"
    with cursor_of("JA16SJIS") as cursor:
        assert one(cursor, "SELECT :1 FROM dual", "\uff5e〜") == "〜〜"
        assert one(cursor, "SELECT lengthb(:1) FROM dual", "日本") == 4
        assert one(cursor, "SELECT ascii('日') FROM dual") == 0x93FA
        assert one(cursor, f"SELECT chr({0x93FA}) FROM dual") == "日"


def test_the_driver_refuses_national_text_in_utf8() -> None:
    """As it does on a real database: thin mode knows AL16UTF16 alone. Other columns are read."""
    with cursor_of(national="UTF8") as cursor:
        cursor.execute("CREATE TABLE wide (id NUMBER, n NVARCHAR2(10))")
        cursor.execute("INSERT INTO wide VALUES (1, 'a')")
        cursor.execute("SELECT data_length FROM user_tab_columns WHERE column_name = 'N'")
        assert cursor.fetchone() == (30,)
        assert one(cursor, "SELECT id FROM wide") == Decimal(1)
        with pytest.raises(oracledb.Error, match="DPY-3012"):
            one(cursor, "SELECT n FROM wide")


def test_a_load_by_direct_path_is_in_the_set(western: Any) -> None:
    western.execute("CREATE TABLE loaded (id NUMBER, v VARCHAR2(5), n NVARCHAR2(5), c CLOB)")
    western.connection.direct_path_load(
        OWNER, "LOADED", ["ID", "V", "N", "C"], [(1, EURO, "日", f"{EURO}é")]
    )
    western.execute("SELECT v, n, c FROM loaded")
    ((text, national, large),) = [(v, n, c.read()) for v, n, c in western]
    assert (text, national, large) == (EURO, "日", f"{EURO}é")


def test_objects_carry_text_in_the_set(western: Any) -> None:
    western.execute("CREATE TYPE pair_t AS OBJECT (a VARCHAR2(5), n NVARCHAR2(5))")
    kind = western.connection.gettype("PAIR_T")
    value = kind.newobject()
    value.A, value.N = EURO, "日"
    western.execute(f"SELECT pair_t('{EURO}', unistr('\\65e5')) FROM dual")
    ((found,),) = western.fetchall()
    assert (found.A, found.N) == (EURO, "日")
    western.execute("CREATE TABLE pairs (p pair_t)")
    western.execute("INSERT INTO pairs VALUES (:1)", [value])
    western.execute("SELECT p FROM pairs")
    ((kept,),) = western.fetchall()
    assert (kept.A, kept.N) == (EURO, "日")


def test_a_database_keeps_its_set(tmp_path: Path) -> None:
    open_database(tmp_path, character_set="CL8MSWIN1251").close()
    again = open_database(tmp_path)
    assert again.engine.character_sets == character_sets("CL8MSWIN1251", "AL16UTF16")
    again.close()
    with pytest.raises(ValueError, match="CL8MSWIN1251, and keeps it"):
        open_database(tmp_path, character_set="WE8MSWIN1252")


@pytest.mark.parametrize("name", ["KLINGON", "AL16UTF16", "UTF8"])
def test_a_set_that_is_not_known_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="one of US7ASCII"):
        open_database(character_set=name)


def test_every_byte_of_a_set_comes_back() -> None:
    """Bytes that a set leaves undefined become U+FFFD, and U+FFFD its replacement character."""
    for own in BY_NAME.values():
        if own.width == 1:
            for byte in range(256):
                text = own.decode(bytes((byte,)))
                assert text == "\ufffd" or own.encode(text) == bytes((byte,)), (own.name, byte)


def test_ranges_of_text_are_refused_where_code_points_have_another_order(western: Any) -> None:
    with pytest.raises(oracledb.DatabaseError, match=r"ORA-03001.*range partitions by text"):
        western.execute(
            "CREATE TABLE ranged (v VARCHAR2(4)) PARTITION BY RANGE (v) (PARTITION a VALUES LESS THAN ('m'))"
        )
