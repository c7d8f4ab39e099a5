"""Oracle's sample schema HR is captured, what its triggers write included."""

from __future__ import annotations

from pathlib import Path

from tests.oracle.embedded import running_oracle
from tests.oracle_embedded.sample_schemas import HR, HR_TABLES
from tests.steps.harness import source_of, table_id


def test_hr_is_captured_with_what_its_triggers_write(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run(*HR)
        with source_of(oracle, tmp_path, *HR_TABLES) as source:
            source.run()
            oracle.run(
                "UPDATE employees SET job_id = 'RE_LEAD', department_id = 20 WHERE employee_id = 200",
                "INSERT INTO employees (employee_id, last_name, email, hire_date, job_id, department_id) VALUES"
                " (employees_seq.NEXTVAL, 'Meier', 'MMEIER', DATE '2020-01-01', 'AD_ASST', 10)",
                "UPDATE departments SET manager_id = 207 WHERE department_id = 10",
                "CALL add_job_history(207, DATE '2019-01-01', DATE '2019-12-31', 'AD_ASST', 10)",
                "DELETE FROM job_history WHERE employee_id = 200 AND end_date < DATE '2013-01-01'",
                "UPDATE countries SET country_name = 'Schweiz'",
            )
            source.windows()
            # The harness gives NUMBER without a size as bytes.
            unsized = {"REGIONS": [("10", "Europe")], "COUNTRIES": [("CH", "Schweiz", "10")]}
            source.check_current(*(name for name in HR_TABLES if name not in unsized))
            for name, rows in unsized.items():
                assert source.lake.image(table_id(name), of_oracle=True) == rows
            # Two rows of triggers and one of a procedure, besides one that was deleted.
            assert len(source.lake.image(table_id("JOB_HISTORY"))) == 2
