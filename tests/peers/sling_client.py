"""What Sling does with a table, checked by itself: a line for each task, its name and ``ok`` or what went wrong.

Run by an interpreter that has Sling: ``python sling_client.py PORT USER PASSWORD``.
"""

# mypy: ignore-errors

import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import oracledb
import sling_linux_amd64

PROGRAM = Path(sling_linux_amd64.__file__).parent / "bin" / "sling-linux-amd64"
PROGRAM.chmod(0o755)
port, user, password = sys.argv[1:4]
folder = Path(tempfile.mkdtemp(prefix="sling"))
os.environ |= {
    "SLING_HOME_DIR": str(folder),
    "SLING_DISABLE_TELEMETRY": "TRUE",
    "ORACLE": f"oracle://{user}:{password}@127.0.0.1:{port}/ORCLPDB1",
}


def rows(query, *more):
    with oracledb.connect(user=user, password=password, dsn=f"127.0.0.1:{port}/ORCLPDB1") as made:
        cursor = made.cursor()
        cursor.execute(query, *more)
        found = cursor.fetchall() if cursor.description else None
        made.commit()
        return found


def task(name, *arguments, check=None):
    done = subprocess.run(
        [str(PROGRAM), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    told = (done.stdout + done.stderr)[-400:] if done.returncode else ""
    if not told and check is not None:
        told = check() or ""
    print(f"{name}\t{' '.join(told.split()) or 'ok'}")


def same(found, expected):
    return None if found == expected else f"{found} is not {expected}"


def lines(path):
    with path.open() as file:
        return list(csv.DictReader(file))


rows(
    "create table goods (id number primary key, name varchar2(40), price number(10,2), made date, note clob)"
)
for number in range(1, 501):
    rows(
        "insert into goods values (:1, :2, :3, date '2024-01-01' + :4, :5)",
        [number, f"good {number}", number / 4, number, "n" * number],
    )
out, more = folder / "goods.csv", folder / "more.csv"
task("test of the connection", "conns", "test", "ORACLE")
task("discover", "conns", "discover", "ORACLE")
task(
    "table to a file",
    "run",
    "--src-conn",
    "ORACLE",
    "--src-stream",
    f"{user}.goods",
    "--tgt-object",
    f"file://{out}",
    check=lambda: same(
        (len(lines(out)), sum(len(one["note"]) for one in lines(out))), (500, 125250)
    ),
)
task(
    "query to a file",
    "run",
    "--src-conn",
    "ORACLE",
    "--src-stream",
    "select id, price from goods where id <= 10 order by id",
    "--tgt-object",
    f"file://{more}",
    check=lambda: same([float(one["price"]) for one in lines(more)], [n / 4 for n in range(1, 11)]),
)
task(
    "file to a new table",
    "run",
    "--src-stream",
    f"file://{out}",
    "--tgt-conn",
    "ORACLE",
    "--tgt-object",
    f"{user}.copied",
    "--mode",
    "full-refresh",
    check=lambda: same(
        rows("select count(*), sum(price) from copied"),
        rows("select count(*), sum(price) from goods"),
    ),
)
increment = (
    *("run", "--mode", "incremental", "--primary-key", "id", "--update-key", "id"),
    *("--src-conn", "ORACLE", "--src-stream", f"{user}.goods"),
    *("--tgt-conn", "ORACLE", "--tgt-object", f"{user}.merged"),
)
rows("update goods set price = 1000 where id = 500")
rows("insert into goods values (501, 'new', 1, sysdate, 'x')")
task(
    "increment by key",
    *increment,
    check=lambda: same(rows("select count(*), max(price) from merged"), [(501, 1000)]),
)
rows("insert into goods values (502, 'newer', 2, sysdate, 'y')")
task(
    "second increment",
    *increment,
    check=lambda: same(rows("select count(*) from merged"), [(502,)]),
)
