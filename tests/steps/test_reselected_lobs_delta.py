"""LOBs that were read as of their commit, from Oracle to Delta; Oracle is gone when they are applied."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from tests.oracle.embedded import OWNER, running_oracle

DOCS = TableId(OWNER, "DOCS")


def test_lobs_of_which_the_redo_has_a_part_reach_delta(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE DOCS (ID NUMBER(9) PRIMARY KEY, C CLOB, B BLOB)",
            *(
                f"INSERT INTO DOCS VALUES ({key}, 'old {key}', HEXTORAW('0001'))"
                for key in range(4)
            ),
        )
        config = oracle.config(
            tmp_path,
            "DOCS",
            capture={"close_at": "online", "lobs": "reselect"},
        )
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            with oracle.owner() as connection:
                cursor = connection.cursor()
                cursor.execute("SELECT C, B FROM DOCS WHERE ID < 3 ORDER BY ID FOR UPDATE")
                (zero, zeroes), (one, _), (two, _) = cursor.fetchall()
                zero.write("new", 5)
                zeroes.write(b"\xff", 2)
                one.write("gone", 1)
                two.trim(3)
                cursor.execute("DELETE FROM DOCS WHERE ID = 1")
                connection.commit()
                cursor.execute("UPDATE DOCS SET ID = 20 WHERE ID = 2")
                connection.commit()
            [window] = pipeline.plan_windows()
            pipeline.capture_window(window)
            oracle.server.stop()
            for take in (pipeline.apply_window, pipeline.replay_window, pipeline.apply_window):
                assert take(window).stopped == ()
                assert mirror(tmp_path) == {
                    0: ("old new", b"\x00\xff"),
                    3: ("old 3", b"\x00\x01"),
                    20: ("old", b"\x00\x01"),
                }


def mirror(path: Path) -> dict[int, tuple[str, bytes]]:
    rows = DeltaTable(str(path / "lake" / "src" / "mirror" / DOCS.path)).to_pyarrow_table()
    return {row["ID"]: (row["C"], row["B"]) for row in rows.to_pylist()}
