"""``redolake import-debezium``: what connectors' files become, what is said of each property, and the comparison with a database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from typer.testing import CliRunner, Result

from cdc_core.config.snapshot import SnapshotConfig
from cdc_core.config.tables import TableConfig
from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.signals.signal_types import KNOWN_TYPES
from docs.tools.options import options
from pipelines.cli import app
from pipelines.config_file import load_config
from pipelines.debezium.checking import _passes
from pipelines.debezium.connector_file import read_connector
from pipelines.debezium.converting import Imported, Outcome, imported
from pipelines.debezium.expressions import columns, listed, table_name
from pipelines.debezium.properties import PROPERTIES, Verdict, property_named
from pipelines.debezium.words import NOT_OFFERED, SIGNALS, SNAPSHOT_MODES
from tests.oracle.embedded import CAPTURE, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of, table_id

BASE = {
    "connector.class": "io.debezium.connector.oracle.OracleConnector",
    "topic.prefix": "shop",
    "database.hostname": "db.example.com",
    "database.port": "1521",
    "database.dbname": "ORCLCDB",
    "database.user": "c##dbzuser",
    "database.password": "a-secret",
}


def made_of(**more: str) -> Imported:
    return imported(BASE | {key.replace("__", "."): value for key, value in more.items()})


def with_properties(more: dict[str, str]) -> Imported:
    return imported(BASE | more)


def run(*arguments: str | Path, **env: str) -> Result:
    env = {"COLUMNS": "200", "NO_COLOR": "1"} | env
    return CliRunner(env=env).invoke(app, ["import-debezium", *map(str, arguments)])


def said(made: Imported, name: str) -> list[tuple[Outcome, str]]:
    return [(one.outcome, one.said) for one in made.remarks if one.name == name]


# -- the table of properties


def test_each_property_is_answered_once_and_by_options_that_exist() -> None:
    names = [name for one in PROPERTIES for name in one.names]
    assert len(names) == len(set(names)) > 175
    known = {one.path for one in options()}
    assert {option for one in PROPERTIES for option in one.options} <= known
    assert all(one.said for one in PROPERTIES)


def test_each_mode_and_each_signal_is_answered() -> None:
    """Those that Redolake knows, and those that Debezium alone has."""
    [modes] = [
        one.annotation for name, one in SnapshotConfig.model_fields.items() if name == "mode"
    ]
    older = {"schema_only", "schema_only_recovery"}
    assert SNAPSHOT_MODES.keys() == {*get_args(modes), *older}
    own = {"snapshot-window-open", "snapshot-window-close", "an action of your own"}
    assert SIGNALS.keys() == {*KNOWN_TYPES, *own}


def test_what_is_missing_is_on_the_page_with_its_reason() -> None:
    said = " ".join(what for what, why, instead in NOT_OFFERED if why and instead)
    missing = [one.names[0] for one in PROPERTIES if one.verdict is Verdict.MISSING]
    assert missing
    assert [name for name in missing if f"`{name}`" not in said] == []


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        pytest.param("table.include.list", "table.include.list", id="by-its-name"),
        pytest.param("table.whitelist", "table.whitelist", id="by-an-old-name"),
        pytest.param("internal.log.mining.max.scn.deviation.ms", "log.mining.max.scn.deviation.ms", id="hidden"),
        pytest.param("transforms.unwrap.type", "transforms.{transform}", id="a-transform-is-no-converter"),
        pytest.param("boolean.type", "{converter}.type", id="a-converter"),
        pytest.param("column.mask.hash.v2.SHA-256.with.salt.x", "column.mask.hash.v2.{algorithm}.with.salt.{salt}", id="the-newer-hash"),
        pytest.param("driver.oracle.net.CONNECT_TIMEOUT", "driver.{parameter}", id="of-the-driver"),
    ],
)  # fmt: skip
def test_a_property_is_found(name: str, entry: str) -> None:
    found = property_named(name)
    assert found is not None
    assert entry in found.names


def test_an_unknown_property_is_said_to_be_unknown() -> None:
    assert property_named("no.such.property") is None
    assert [one for one, _ in said(made_of(no__such__property="1"), "no.such.property")] == [
        Outcome.UNKNOWN
    ]


# -- expressions


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        pytest.param("SHOP.ORDERS", "SHOP.ORDERS", id="a-dot-fits-nothing-but-a-dot"),
        pytest.param(r"shop\.orders", "SHOP.ORDERS", id="a-name-in-capitals"),
        pytest.param(r"SHOP\.A\$B", "SHOP.A$B", id="a-dollar"),
        pytest.param(r"SHOP\..*", "SHOP.*", id="all-of-a-schema"),
        pytest.param(".*", "*.*", id="everything"),
        pytest.param(r"SHOP\.(A|B)", r"re:(?i)SHOP\.(A|B)", id="any-other-stays-an-expression"),
        pytest.param("SHOP.ORD.*", "re:(?i)SHOP.ORD.*", id="part-of-a-name"),
    ],
)
def test_an_expression_becomes_a_name_or_a_pattern(expression: str, name: str) -> None:
    assert table_name(expression) == name


def test_commas_separate_expressions_but_for_those_behind_a_backslash() -> None:
    assert listed(r"A\.B, C\.D{1\,2} ,") == [r"A\.B", r"C\.D{1,2}"]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        (r"SHOP\.ORDERS\.NOTE", [(r"SHOP\.ORDERS", "NOTE")]),
        (r".*\.SSN", [(".*", "SSN")]),
        (r"SHOP\.T\.(A|B)", [(r"SHOP\.T", "A"), (r"SHOP\.T", "B")]),
        (r"SHOP\.T\.A.*", []),
    ],
)
def test_columns_are_named_literally_or_not_at_all(
    expression: str, found: list[tuple[str, str]]
) -> None:
    assert list(columns(expression)) == found


# -- tables, columns, masks, keys


def test_schemas_and_tables_both_count() -> None:
    both = with_properties(
        {"schema.include.list": "SHOP", "table.include.list": r"SHOP\.A,HR\.B,.*\.C\d"}
    )
    assert [one["name"] for one in both.attributes["tables"]] == [
        "SHOP.A",
        r"re:(?i)(?=(?:SHOP)\.)(?:.*\.C\d)",
    ]
    schemas = with_properties({"schema.include.list": "SHOP,HR_[0-9]"})
    assert [one["name"] for one in schemas.attributes["tables"]] == [
        "SHOP.*",
        r"re:(?i)(?:HR_[0-9])\..*",
    ]
    without = with_properties(
        {"schema.exclude.list": "AUDIT", "table.exclude.list": r"SHOP\.TMP_.*"}
    )
    assert without.attributes["tables"] == [
        {"name": "*.*", "exclude": [r"re:(?i)SHOP\.TMP_.*", "AUDIT.*"]}
    ]


@pytest.mark.parametrize(
    ("more", "taken"),
    [
        pytest.param({"schema.include.list": "SHOP|HR"}, {"SHOP.A", "HR.A"}, id="schemas"),
        pytest.param(
            {"schema.include.list": "SHOP", "table.include.list": r"SHOP\.A|HR\.A"},
            {"SHOP.A"},
            id="tables-within-a-schema",
        ),
        pytest.param({"schema.exclude.list": "SHOP|HR"}, {"CRM.A"}, id="schemas-left-out"),
    ],
)
def test_an_alternative_counts_as_a_whole(more: dict[str, str], taken: set[str]) -> None:
    entries = with_properties(more).attributes["tables"]
    tables = [TableConfig(**one) for one in entries]
    known = [TableId.parse(name) for name in ("SHOP.A", "HR.A", "CRM.A")]
    assert {str(one) for one in known if any(table.takes(one) for table in tables)} == taken


def test_a_check_survives_an_expression_that_python_cannot_read() -> None:
    properties = {"table.include.list": r"SHOP\.\p{Lu}+"}
    assert not _passes(properties, TableId("SHOP", "A"))


def test_columns_go_to_the_entries_of_their_tables() -> None:
    made = with_properties(
        {
            "table.include.list": r"SHOP\.ORDERS,HR\..*",
            "column.exclude.list": r".*\.SSN,SHOP.ORDERS.NOTE,HR\.EMP\.SALARY",
            "column.mask.with.4.chars": r"HR\..*\.PHONE",
            "column.mask.hash.v2.SHA-256.with.salt.pepper": "SHOP.ORDERS.NAME",
            "message.key.columns": r"CDB.SHOP.ORDERS:ORDER_NO,LINE;HR\..*:ID",
        }
    )
    assert made.is_whole
    assert made.attributes["key"] == {"SHOP.ORDERS": ["ORDER_NO", "LINE"], "HR.*": ["ID"]}
    entries = {one["name"]: one for one in made.attributes["tables"]}
    assert entries["SHOP.ORDERS"] == {
        "name": "SHOP.ORDERS",
        "columns_exclude": ["SSN", "NOTE"],
        "columns_mask": {"NAME": "hash(sha256)"},
    }
    assert entries["HR.*"]["columns_mask"] == {"PHONE": "stars(4)"}
    own = entries["HR.EMP"]
    assert own["columns_exclude"] == ["SSN", "SALARY"], (
        "nothing of a pattern holds for an entry of its own"
    )
    assert entries["HR.*"]["columns_exclude"] == ["SSN"]
    assert "pepper" not in yaml.safe_dump(made.attributes) + repr(made.remarks)


def test_overrides_of_listed_tables_are_taken() -> None:
    name = "snapshot.select.statement.overrides"
    statement = "SELECT * FROM SHOP.ORDERS WHERE ID > 9"
    made = with_properties(
        {name: "SHOP.ORDERS,SHOP.LINES", f"{name}.SHOP.ORDERS": statement, f"{name}.SHOP.X": "?"}
    )
    assert made.attributes["snapshot"] == {"select_overrides": {"SHOP.ORDERS": statement}}
    assert said(made, name) == [(Outcome.NOT_TAKEN, "no statement for SHOP.LINES")]
    assert [one for one, _ in said(made, f"{name}.SHOP.X")] == [Outcome.NOT_NEEDED]


@pytest.mark.parametrize(
    ("rule", "mask"),
    [
        pytest.param("column.mask.hash.SHA-256.with.salt.x", "hash_v1(sha256)", id="the-older-hash"),
        pytest.param("column.mask.hash.v2.MD5.with.salt.x", "hash(md5)", id="md5"),
        pytest.param("column.mask.hash.v2.SHA3-512.with.salt.x", "hash(sha3_512)", id="sha3"),
    ],
)  # fmt: skip
def test_hashes_are_taken_without_their_salt(rule: str, mask: str) -> None:
    made = with_properties({"table.include.list": r"SHOP\.A", rule: r"SHOP\.A\.N"})
    [table] = made.attributes["tables"]
    assert table["columns_mask"] == {"N": mask}
    assert made.is_whole
    assert ".x" not in repr(made.remarks).replace("with.salt.…", "")


def test_rules_with_salts_of_their_own_keep_them() -> None:
    made = with_properties(
        {
            "table.include.list": r"SHOP\.A",
            "column.mask.hash.v2.SHA-256.with.salt.pepper": r"SHOP\.A\.N",
            "column.mask.hash.MD5.with.salt.cumin": r"SHOP\.A\.M",
            "column.mask.with.0.chars": r"SHOP\.A\.O",
        }
    )
    assert made.attributes["tables"][0]["columns_mask"] == {
        "N": "hash(sha256, salt=rule_2)",
        "M": "hash_v1(md5, salt=rule_1)",
        "O": "stars(0)",
    }
    variables = made.attributes["masks"]["salts_env"]
    assert set(variables) == {"rule_1", "rule_2"}
    assert "pepper" not in repr(made.attributes) + repr(made.remarks)


def test_columns_are_taken_by_expression() -> None:
    tables = {"table.include.list": r"SHOP\.A,SHOP\.B"}
    made = with_properties({**tables, "column.exclude.list": r".*\.SSN,SHOP\.A\.S.*_(X|Y)"})
    assert [one["columns_exclude"] for one in made.attributes["tables"]] == [
        ["SSN", "re:(?i)S.*_(X|Y)"],
        ["SSN"],
    ]
    assert made.is_whole
    made = with_properties({**tables, "column.mask.with.4.chars": r"SHOP\.A\.S.*"})
    assert made.attributes["tables"][0]["columns_mask"] == {"re:(?i)S.*": "stars(4)"}
    made = with_properties({**tables, "column.include.list": r"SHOP\.A\.(ID|V),SHOP\.B\..*"})
    assert [one["columns_include"] for one in made.attributes["tables"]] == [
        ["ID", "V"],
        ["re:(?i).*"],
    ]
    assert made.is_whole


def test_tables_whose_rows_are_read_are_taken() -> None:
    made = with_properties(
        {
            "table.include.list": r"SHOP\..*",
            "snapshot.include.collection.list": r"CDB.SHOP.ORDERS,SHOP\.LINE.*",
        }
    )
    assert made.is_whole
    assert made.attributes["snapshot"]["include"] == ["SHOP.ORDERS", r"re:(?i)SHOP\.LINE.*"]


@pytest.mark.parametrize("action", ["fail", "warn"])
def test_the_guard_rail_is_taken_where_it_stops(action: str) -> None:
    made = with_properties(
        {"guardrail.collections.max": "20", "guardrail.collections.limit.action": action}
    )
    assert made.attributes.get("tables_max") == (20 if action == "fail" else None)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"column.include.list": r"SHOP\.B\.ID"}, id="no-column-of-a-table"),
        pytest.param({"column.exclude.list": r"SHOP\..*"}, id="columns-of-no-table"),
        pytest.param({"column.exclude.list": r"OTHER\.T\.A"}, id="of-no-entry"),
        pytest.param({"column.mask.hash.v2.MD2.with.salt.x": r"SHOP\.A\.N"}, id="md2"),
        pytest.param({"message.key.columns": r"SHOP\.(:ID"}, id="keys-of-no-expression"),
        pytest.param({"message.key.columns": r"SHOP\.A"}, id="keys-of-no-columns"),
        pytest.param({"table.include.list": r"SHOP\.\p{Lu}+"}, id="not-an-expression-of-python"),
        pytest.param({"snapshot.mode": "a_mode_of_tomorrow"}, id="an-unknown-mode"),
        pytest.param({"snapshot.mode": "custom"}, id="a-class-in-java"),
    ],
)
def test_what_would_capture_more_or_otherwise_is_not_taken(more: dict[str, str]) -> None:
    made = with_properties({"table.include.list": r"SHOP\.A"} | more)
    assert not made.is_whole
    [*_, last] = [one for one in made.remarks if one.outcome is Outcome.NOT_TAKEN]
    assert last.said


# -- single properties


@pytest.mark.parametrize(
    ("name", "value", "path", "expected"),
    [
        ("database.query.timeout.ms", "30000", "oracle.call_timeout_seconds", 30),
        ("connection.validation.timeout.ms", "1500", "oracle.connect_timeout_seconds", 1.5),
        ("snapshot.fetch.size", "5000", "oracle.fetch_rows", 5000),
        ("skipped.operations", "d,t", "events.skipped_operations", ["d"]),
        ("log.mining.username.exclude.list", "SYS,BATCH", "events.users_exclude", ["SYS", "BATCH"]),
        ("log.mining.archive.log.only.mode", "true", "capture.archived_only", True),
        ("log.mining.strategy", "redo_log_catalog", "capture.strategy", "redo_log_catalog"),
        ("signal.data.collection", "ORCLPDB1.SHOP.SIGNALS", "signals.table", "SHOP.SIGNALS"),
        ("provide.transaction.metadata", "true", "lake.transactions", True),
        ("snapshot.mode", "configuration_based", "snapshot.mode", "configuration_based"),
        (
            "log.mining.include.redo.sql",
            "true",
            "lake.change_log_columns",
            ["ssn", "start_scn", "start_timestamp", "client_id", "landed", "redo_sql"],
        ),
        ("event.processing.failure.handling.mode", "warn", "policies.on_undecodable", "quarantine"),
        ("event.processing.failure.handling.mode", "skip", "policies.on_undecodable", "skip"),
        ("event.converting.failure.handling.mode", "warn", "policies.on_unfit_value", "null"),
        ("event.converting.failure.handling.mode", "skip", "policies.on_undecodable", "skip"),
        ("database.pdb.name", "ORCLPDB1", "oracle.pdb", "ORCLPDB1"),
        ("database.url", "jdbc:oracle:thin:scott/tiger@//h:1521/S", "oracle.dsn", "h:1521/S"),
        ("database.url", "jdbc:oracle:thin:@(DESCRIPTION=(X))", "oracle.dsn", "(DESCRIPTION=(X))"),
    ],
)
def test_a_property_sets_an_option(name: str, value: str, path: str, expected: Any) -> None:
    found: Any = with_properties({name: value}).attributes
    for part in path.split("."):
        found = found[part]
    assert found == expected
    assert path in {one.path for one in options()}


def test_switches_count_with_their_mode_alone() -> None:
    name = "snapshot.mode.configuration.based.snapshot.on.data.error"
    taken = with_properties({"snapshot.mode": "configuration_based", name: "true"})
    assert taken.attributes["snapshot"] == {
        "mode": "configuration_based",
        "configuration_based": {"on_lost_redo": True},
    }
    left = with_properties({"snapshot.mode": "initial", name: "true"})
    assert "snapshot" not in left.attributes
    assert [outcome for outcome, _ in said(left, name)] == [Outcome.NOT_NEEDED]


@pytest.mark.parametrize(
    ("name", "value", "types"),
    [
        ("decimal.handling.mode", "precise", None),
        ("decimal.handling.mode", "double", {"NUMBER": "double", "FLOAT": "double"}),
        ("time.precision.mode", "isostring", {"DATE": "iso8601", "TIMESTAMP": "iso8601"}),
        ("binary.handling.mode", "base64-url-safe", {"RAW": "base64url", "BLOB": "base64url"}),
    ],
)
def test_a_mode_of_values_is_a_type_of_each_entry(
    name: str, value: str, types: dict[str, str] | None
) -> None:
    made = with_properties({"table.include.list": r"SHOP\.A,HR\..*", name: value})
    assert [one.get("types_as") for one in made.attributes["tables"]] == [types, types]


def test_debeziums_converters_become_forms() -> None:
    """By selector, or for a type; a class of the user's own is said to be written anew."""
    kind = "io.debezium.connector.oracle.converters"
    made = with_properties(
        {
            "table.include.list": r"SHOP\.A,HR\..*",
            "converters": "flags, raws, zero, mine",
            "flags.type": f"{kind}.NumberOneToBooleanConverter",
            "flags.selector": r"SHOP\.A\.PAID",
            "raws.type": f"{kind}.RawToStringConverter",
            "raws.charset": "ISO-8859-1",
            "zero.type": f"{kind}.NumberToZeroScaleConverter",
            "mine.type": "com.example.Mine",
        }
    )
    one, pattern = made.attributes["tables"]
    assert one["columns_as"] == {"PAID": "boolean(>0)"}
    assert one["types_as"] == pattern["types_as"] == {"RAW": "text(WE8ISO8859P1)"}
    assert [said(made, f"{name}.type")[0][0] for name in ("flags", "raws", "zero", "mine")] == [
        Outcome.TAKEN,
        Outcome.TAKEN,
        Outcome.ANSWERED,
        Outcome.NOT_TAKEN,
    ]
    every = with_properties({"converters": "f", "f.type": f"{kind}.NumberOneToBooleanConverter"})
    assert every.attributes["tables"][0]["types_as"] == {"NUMBER(1)": "boolean(>0)"}


# -- whole files


SMALL = json.dumps(
    {"name": "Orders-DB.1", "config": {k: v for k, v in BASE.items() if k != "topic.prefix"}}
)
PROPERTIES_FILE = """\
# a worker's file
name = from-properties
connector.class=io.debezium.connector.oracle.OracleConnector
database.hostname: db.example.com
database.dbname ORCLCDB
database.user = c##dbzuser
database.password = a-secret
table.include.list = SHOP\\\\.ORDERS,\\
    SHOP\\\\.ITEMS
"""
CONFLUENT = json.dumps(
    {
        "name": "confluent",
        "config": {
            "connector.class": "io.confluent.connect.oracle.cdc.OracleCdcSourceConnector",
            "oracle.server": "db.example.com",
            "oracle.port": 1521,
            "oracle.sid": "ORCLCDB",
            "oracle.pdb.name": "ORCLPDB1",
            "oracle.username": "C##MYUSER",
            "oracle.password": "a-secret",
            "table.inclusion.regex": "ORCLPDB1[.]SHOP[.](ORDERS|ITEMS)",
            "redo.log.topic.name": "redo",
            "numeric.mapping": "best_fit",
        },
    }
)


@pytest.mark.parametrize(
    ("text", "name", "dsn", "tables"),
    [
        pytest.param(SMALL, "orders_db_1", "db.example.com:1521/ORCLCDB", ["*.*"], id="small"),
        pytest.param(PROPERTIES_FILE, "from_properties", "db.example.com:1521/ORCLCDB", ["SHOP.ORDERS", "SHOP.ITEMS"], id="properties"),
        pytest.param(CONFLUENT, "confluent", "db.example.com:1521/ORCLCDB", [r"re:(?i)SHOP\.(ORDERS|ITEMS)"], id="confluent"),
    ],
)  # fmt: skip
def test_a_file_becomes_a_configuration_without_a_secret(
    tmp_path: Path, text: str, name: str, dsn: str, tables: list[str]
) -> None:
    (tmp_path / "connector").write_text(text)
    result = run(tmp_path / "connector", "--file", tmp_path / "out" / "defs.yaml")
    assert result.exit_code == 0, result.output
    config = load_config(tmp_path / "out" / "defs.yaml", environ=None)
    assert (config.name, config.oracle.dsn) == (name, dsn)
    assert [one.name for one in config.tables] == tables
    assert "a-secret" not in result.output + (tmp_path / "out" / "defs.yaml").read_text()
    properties = read_connector(tmp_path / "connector")
    shown = {line.split(" ")[0].rstrip("…") for line in result.output.splitlines()}
    assert {one for one in properties if not any(one.startswith(s) for s in shown if s)} == set()


def test_several_files_get_a_folder_each_and_none_is_overwritten(tmp_path: Path) -> None:
    for stem in ("one", "two"):
        (tmp_path / f"{stem}.json").write_text(SMALL)
    files = (tmp_path / "one.json", tmp_path / "two.json")
    assert run(*files, "--file", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out" / "one" / "defs.yaml").exists()
    again = run(*files, "--file", tmp_path / "out")
    assert again.exit_code == 2
    assert "this file already exists" in again.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "this is not JSON"),
        (
            '{"connector.class": "io.debezium.connector.mysql.MySqlConnector"}',
            "not the configuration",
        ),
        ("a=1", "not the configuration of a connector for Oracle"),
    ],
)
def test_what_is_no_connector_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "connector").write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_connector(tmp_path / "connector")


# -- against a database


oracle = oracle_with(
    "CREATE TABLE ORDERS (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20), SSN VARCHAR2(20))",
    "CREATE TABLE ITEMS (ID NUMBER(9) PRIMARY KEY)",
    "CREATE TABLE KEYLESS (ID NUMBER(9))",
)


def connector_of(oracle: Oracle, folder: Path, **more: str) -> Path:
    host, _, rest = oracle.server.dsn.partition(":")
    port, _, service = rest.partition("/")
    found = BASE | {"database.hostname": host, "database.port": port, "database.dbname": service}
    found |= {"database.user": CAPTURE} | {
        key.replace("__", "."): value for key, value in more.items()
    }
    (folder / "connector.json").write_text(json.dumps(found))
    return folder / "connector.json"


def test_check_compares_both_with_the_database(oracle: Oracle, tmp_path: Path) -> None:
    file = connector_of(
        oracle, tmp_path, table__include__list=r"DEMO\..*", column__exclude__list=r".*\.SSN"
    )
    password = {"SHOP_ORACLE_PASSWORD": oracle.login(CAPTURE)["password"]}
    result = run(file, "--file", tmp_path / "defs.yaml", "--check", **password)
    assert result.exit_code == 1
    assert "Captured by both: 2 tables." in result.output
    assert (
        "DEMO.KEYLESS: only the connector captures it: the table has no primary key"
        in result.output
    )
    assert "ORDERS:" not in result.output


def test_what_was_imported_is_captured(oracle: Oracle, tmp_path: Path) -> None:
    """From the connector's file to rows, by the command line alone."""
    file = connector_of(
        oracle,
        tmp_path,
        table__include__list=r"demo\.(orders|items)",
        column__exclude__list=r"DEMO\.ORDERS\.SSN",
    )
    oracle.run("INSERT INTO ORDERS VALUES (1, 'a', 'hidden')", "INSERT INTO ITEMS VALUES (1)")
    password = {"SHOP_ORACLE_PASSWORD": oracle.login(CAPTURE)["password"]}
    imported = run(file, "--file", tmp_path / "defs.yaml", "--check", **password)
    assert imported.exit_code == 0, imported.output
    written = yaml.safe_load((tmp_path / "defs.yaml").read_text())["attributes"]
    with source_of(oracle, tmp_path) as source:
        source.tables = written["tables"]
        source.run()
        oracle.run("INSERT INTO ORDERS VALUES (2, 'b', 'hidden')", "DELETE FROM ITEMS")
        source.run()
        source.check_current("ORDERS", "ITEMS")
        assert source.lake.image(table_id("ORDERS")) == [(1, "a"), (2, "b")]
