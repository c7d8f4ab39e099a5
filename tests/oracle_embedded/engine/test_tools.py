"""What the navigators of database tools ask the dictionary before anyone types a statement."""

from __future__ import annotations

import pytest

from oracle_embedded.database import ADMIN, open_database
from tests.oracle_embedded.engine.conftest import Client, Connect

_SCHEMA = (
    "create table demo.t (id number primary key, v varchar2(9) not null, p number references demo.t)",
    "create index demo.ti on demo.t (upper(v))",
    "create view demo.tv as select id from demo.t",
    "create trigger demo.tt before update of v, p on demo.t for each row begin null; end;",
)


@pytest.fixture
def admin(connect: Connect) -> Client:
    client = connect(ADMIN)
    for statement in _SCHEMA:
        client(statement)
    return client


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        pytest.param("select t.table_name, t.tablespace_name, t.iot_name, t.num_rows from dba_tables t where owner = 'DEMO' and nested = 'NO' union all select o.object_name, null, null, 0 from dba_objects o where o.owner = 'DEMO' and o.object_type = 'VIEW'", 2, id="tables-and-views"),
        pytest.param("select c.constraint_name, c.search_condition, (select listagg(column_name || ':' || position, ',') within group (order by position) from all_cons_columns k where k.owner = c.owner and k.constraint_name = c.constraint_name group by constraint_name) cols from dba_constraints c where c.constraint_type <> 'R' and c.owner = 'DEMO'", 2, id="constraints-with-their-columns"),
        pytest.param("select i.index_name, i.sample_size, i.clustering_factor, c.column_name, e.column_expression from dba_indexes i join dba_ind_columns c on i.owner = c.index_owner and i.index_name = c.index_name left join dba_ind_expressions e on e.index_owner = i.owner and e.index_name = i.index_name and e.column_position = c.column_position where i.owner = 'DEMO'", 2, id="indexes-with-expressions"),
        pytest.param("select t.trigger_name, c.column_name, c.column_list from dba_triggers t left join dba_trigger_cols c on c.trigger_owner = t.owner and c.trigger_name = t.trigger_name where t.table_owner = 'DEMO'", 2, id="triggers-with-columns"),
        pytest.param("select distinct profile from dba_profiles where limit = 'UNLIMITED'", 1, id="profiles"),
        pytest.param("select username, sysdba from v$pwfile_users where sysdba = 'TRUE'", 2, id="administrators"),
        pytest.param("select * from dba_type_methods, dba_method_params, dba_method_results", 0, id="methods"),
        pytest.param("select * from all_directories, dba_col_privs, dba_scheduler_job_args", 0, id="nothing-made"),
        pytest.param("select * from all_tab_col_statistics, all_tab_histograms, all_ind_statistics", 0, id="nothing-analyzed"),
        pytest.param("select * from user_ind_partitions, user_part_indexes", 0, id="no-partitioned-indexes"),
    ],
)  # fmt: skip
def test_it_answers(admin: Client, query: str, rows: int) -> None:
    assert len(admin(query)) == rows


@pytest.mark.parametrize(
    ("option", "letters"),
    [("u", r"[A-Z]{9}"), ("l", r"[a-z]{9}"), ("A", r"[A-Za-z]{9}"), ("X", r"[A-Z0-9]{9}"), ("p", r"[ -~]{9}"), ("?", r"[A-Z]{9}")],
)  # fmt: skip
def test_random_text_is_made_of_the_letters_that_are_asked_for(
    sql: Client, option: str, letters: str
) -> None:
    query = "select 1 from dual where regexp_like(dbms_random.string(:1, 9), :2)"
    assert sql(query, option, f"^{letters}$") == [("1",)]


def test_a_release_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="18c"):
        open_database(release="18c")
