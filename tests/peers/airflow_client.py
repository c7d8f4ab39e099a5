"""What Airflow's hook and operators for Oracle do, checked by themselves: a line for each use, its name and ``ok`` or what went wrong.

Run by an interpreter that has apache-airflow-providers-oracle: ``python airflow_client.py PORT USER
PASSWORD``.
"""

# ruff: noqa: E402
# mypy: ignore-errors

import json
import os
import sys
import tempfile

port, user, password = sys.argv[1:4]
os.environ |= {
    "AIRFLOW_HOME": tempfile.mkdtemp(prefix="airflow"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
    "AIRFLOW_CONN_ORACLE": json.dumps(
        {
            "conn_type": "oracle",
            "host": "127.0.0.1",
            "port": int(port),
            "login": user,
            "password": password,
            "schema": user,
            "extra": {"service_name": "ORCLPDB1"},
        }
    ),
}

from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.providers.oracle.hooks.oracle import OracleHook
from airflow.providers.oracle.operators.oracle import OracleStoredProcedureOperator


def use(name, run, expected=None):
    try:
        found = run()
        told = "ok" if expected is None or found == expected else f"{found} is not {expected}"
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
    print(f"{name}\t{' '.join(told.split())}")


hook = OracleHook(oracle_conn_id="oracle")
many = [(n, f"name {n}", n / 2) for n in range(1, 1201)]
fields = ["id", "name", "score"]
use("test of the connection", lambda: hook.test_connection()[0], True)
use(
    "DDL",
    lambda: hook.run(
        ["create table people (id number primary key, name varchar2(40), score number)"],
        autocommit=True,
    ),
)
use("rows one by one", lambda: hook.insert_rows("people", [(0, "it's", None)], fields))
use("rows in bulk", lambda: hook.bulk_insert_rows("people", many, fields, commit_every=500))
use("one row", lambda: hook.get_first("select count(*), sum(score) from people"), (1201, 360300))
use(
    "records with a parameter",
    lambda: hook.get_records("select name from people where id = :id", {"id": 7}),
    [("name 7",)],
)
use(
    "data frame",
    lambda: len(hook.get_df("select * from people where id < 100", df_type="pandas")),
    100,
)
use(
    "several statements",
    lambda: hook.run(
        ["update people set score = 1 where id = 1", "delete from people where id = 2"],
        autocommit=True,
    ),
)
use(
    "handler",
    lambda: hook.run("select count(*) from people", handler=lambda cursor: cursor.fetchone()),
    (1200,),
)
use(
    "procedure",
    lambda: hook.run(
        "create or replace procedure twice (p_in in number, p_out out number) as begin p_out := 2 * p_in; end;"
    ),
)
use("call of a procedure", lambda: hook.callproc("twice", False, [21, int]), [21, 42])
use(
    "operator of a procedure",
    lambda: OracleStoredProcedureOperator(
        task_id="t", procedure="twice", oracle_conn_id="oracle", parameters=[4, int]
    ).execute({}),
    [4, 8],
)
use(
    "operator of a query",
    lambda: SQLExecuteQueryOperator(
        task_id="q", sql="select count(*) from people", conn_id="oracle"
    ).execute({"ti": None}),
    [(1200,)],
)
use(
    "SQLAlchemy",
    lambda: (
        hook.get_sqlalchemy_engine()
        .connect()
        .exec_driver_sql("select count(*) from people")
        .scalar()
    ),
    1200,
)
