"""Oracle's sample schemas load through the driver, and their rules hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import oracledb
import pytest

from oracle_embedded.database import OpenDatabase
from oracle_embedded.server import EmbeddedServer
from tests.oracle_embedded.sample_schemas import CO, HR, REFUSED, SH


@pytest.fixture
def connection(database: OpenDatabase, server: EmbeddedServer) -> Iterator[oracledb.Connection]:
    dsn = f"127.0.0.1:{server.port}/ORCLPDB1"
    with oracledb.connect(user="DEMO", password=database.password("DEMO"), dsn=dsn) as made:
        yield made


def load(connection: oracledb.Connection, statements: Sequence[str]) -> oracledb.Cursor:
    cursor = connection.cursor()
    for text in statements:
        cursor.execute(text)
        assert cursor.warning is None, text
    return cursor


def test_hr_keeps_the_history_of_jobs(connection: oracledb.Connection) -> None:
    cursor = load(connection, HR)
    cursor.execute("update employees set job_id = 'RE_LEAD', department_id = 20 where employee_id = 200")  # fmt: skip
    cursor.execute("select job_id, department_id from job_history where employee_id = 200 order by start_date")  # fmt: skip
    assert cursor.fetchall() == [("AD_ASST", 10), ("AD_ASST", 10)]
    cursor.execute("select last_name, job_title, region_name from emp_details_view order by 1")
    assert cursor.fetchall() == [("Keller", "Lead", "Europe"), ("Lund", "Lead", "Europe")]
    for refused, code in {
        "update employees set salary = 0": "ORA-02290",
        "delete departments where department_id = 20": "ORA-02292",
        "insert into employees (employee_id, last_name, email, hire_date, job_id) values (1, 'x', 'BLUND', sysdate, 'RE_LEAD')": "ORA-00001",
    }.items():
        with pytest.raises(oracledb.DatabaseError, match=code):
            cursor.execute(refused)


def test_co_reads_reviews_from_documents_and_totals_by_store(
    connection: oracledb.Connection,
) -> None:
    cursor = load(connection, CO)
    cursor.execute("select rating, avg_rating, review from product_reviews order by 1")
    assert cursor.fetchall() == [(2, 3, "small"), (4, 3, "warm")]
    cursor.execute("select total, order_count, total_sales from store_orders order by 1 nulls first")  # fmt: skip
    assert cursor.fetchall() == [
        (None, 1, 79), ("GRAND TOTAL", 1, 79), ("STATUS TOTAL", 1, 79), ("STORE TOTAL", 1, 79),
    ]  # fmt: skip
    cursor.execute("select full_name, order_total, items from customer_order_products")
    assert cursor.fetchall() == [("Ada", 79, "Shirt")]
    with pytest.raises(oracledb.DatabaseError, match="ORA-02290"):
        cursor.execute("update products set product_details = utl_raw.cast_to_raw('{')")


def test_sh_has_partitions_bitmaps_and_a_materialized_view(connection: oracledb.Connection) -> None:
    cursor = load(connection, SH)
    assert cursor.execute("select * from cal_month_sales_mv").fetchall() == [(1997, 301.5)]
    cursor.execute("select count(*) from sales partition (sales_h1_1997)")
    assert cursor.fetchall() == [(3,)]
    cursor.execute("select count(*) from user_indexes where index_type = 'BITMAP'")
    assert cursor.fetchall() == [(3,)]
    for text, code in REFUSED.items():
        with pytest.raises(oracledb.DatabaseError, match=f"ORA-{code:05d}"):
            cursor.execute(text)
