"""What a project of dbt does, checked by itself: a line for each step, its name and ``ok`` or what went wrong.

Run by an interpreter that has dbt-oracle: ``python dbt_client.py PORT USER PASSWORD``.
"""

# ruff: noqa: E402
# mypy: ignore-errors

import os
import sys
import tempfile
from pathlib import Path

port, user, password = sys.argv[1:4]
# dbt starts processes that import this file again: they work in the folder of the first one.
folder = Path(os.environ.get("DBT_PROJECT_DIR") or tempfile.mkdtemp(prefix="dbt"))
os.environ |= {
    "ORA_PYTHON_DRIVER_TYPE": "thin",
    "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    "DBT_PROFILES_DIR": str(folder),
    "DBT_PROJECT_DIR": str(folder),
    "DBT_LOG_LEVEL": "none",
}
os.chdir(folder)

import oracledb
from dbt.cli.main import dbtRunner

FILES = {
    "profiles.yml": f"""
shop:
  target: dev
  outputs:
    dev:
      type: oracle
      protocol: tcp
      host: 127.0.0.1
      port: {port}
      service: ORCLPDB1
      database: ORCLPDB1
      user: {user}
      pass: "{password}"
      schema: {user}
      threads: 4
""",
    "dbt_project.yml": """
name: shop
version: "1.0"
profile: shop
seeds:
  shop:
    orders:
      +column_types: {price: "number(10,2)", ordered: "varchar2(10)"}
""",
    "seeds/orders.csv": "id,customer,price,ordered\n"
    + "".join(f"{n},{'Ann' if n % 2 else 'Bob'},{n}.50,2024-01-{n:02d}\n" for n in range(1, 21)),
    "models/staged.sql": """
select id, customer, price, to_date(ordered, 'YYYY-MM-DD') as ordered_on from {{ ref('orders') }}
""",
    "models/totals.sql": """
{{ config(materialized='table', indexes=[]) }}
select customer, sum(price) as total, count(*) as orders, max(ordered_on) as last_order
from {{ ref('staged') }} group by customer
""",
    "models/history.sql": """
{{ config(materialized='incremental', unique_key='id') }}
select id, customer, price from {{ ref('staged') }}
{% if is_incremental() %} where id > (select max(id) - 5 from {{ this }}) {% endif %}
""",
    "models/passing.sql": """
{{ config(materialized='ephemeral') }}
select customer from {{ ref('totals') }} where orders > 5
""",
    "models/loyal.sql": "select count(*) as customers from {{ ref('passing') }}",
    "models/schema.yml": """
version: 2
models:
  - name: staged
    description: Orders, one a row.
    columns:
      - name: id
        description: Their number.
        data_tests: [unique, not_null]
      - name: customer
        data_tests:
          - accepted_values: {arguments: {values: [Ann, Bob]}}
          - relationships: {arguments: {to: ref('totals'), field: customer}}
""",
    "snapshots/prices.sql": """
{% snapshot prices %}
{{ config(target_schema=target.schema, unique_key='id', strategy='check', check_cols=['price']) }}
select id, price from {{ ref('orders') }}
{% endsnapshot %}
""",
    "tests/no_negative_price.sql": "select id from {{ ref('staged') }} where price < 0",
}


def step(name, *arguments, check=None):
    done = dbtRunner().invoke([*arguments, "--quiet"])
    problems = [done.exception] if done.exception else []
    for one in done.result or () if hasattr(done.result, "__iter__") else ():
        if str(getattr(one, "status", "success")) not in ("success", "pass"):
            problems.append(f"{one.node.name}: {one.message}")
    if not done.success and not problems:
        problems.append("no success")
    if not problems and check is not None:
        found = rows(check[0])
        if found != check[1]:
            problems.append(f"{check[0]} is {found}")
    told = " ".join(" ".join(map(str, problems)).split())
    print(f"{name}\t{told or 'ok'}")


def rows(query, change=False):
    with oracledb.connect(user=user, password=password, dsn=f"127.0.0.1:{port}/ORCLPDB1") as made:
        cursor = made.cursor()
        cursor.execute(query)
        if change:
            made.commit()
            return None
        return cursor.fetchall()


def main():
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip())
    step("debug", "debug")
    step("seed", "seed", check=("select count(*), sum(price) from orders", [(20, 220)]))
    step(
        "run",
        "run",
        check=("select customer, total from totals order by 1", [("Ann", 105), ("Bob", 115)]),
    )
    step("test", "test")
    step("snapshot", "snapshot", check=("select count(*) from prices", [(20,)]))
    rows("update orders set price = 99 where id = 20", change=True)
    rows("insert into orders values (21, 'Ann', 1, '2024-02-01')", change=True)
    step(
        "run of an increment", "run", check=("select count(*), max(price) from history", [(21, 99)])
    )
    step(
        "snapshot of a change",
        "snapshot",
        check=("select count(*), count(dbt_valid_to) from prices", [(22, 1)]),
    )
    step("full refresh", "run", "--full-refresh", check=("select count(*) from history", [(21,)]))
    step("seed again", "seed", "--full-refresh", check=("select count(*) from orders", [(20,)]))
    step("build", "build")
    step("docs", "docs", "generate")
    step("list", "list")


if __name__ == "__main__":
    main()
