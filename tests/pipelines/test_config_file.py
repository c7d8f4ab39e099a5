"""One file for Dagster and the command line; a wrong one is told with file, line, key and what to write."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.components import Attributes, OracleCdc
from assets.named_file import component_tree
from cdc_core.config import LocalLandingConfig, S3LandingConfig
from cdc_core.errors import ConfigError
from pipelines.config_file import config_path, demo_config, load_config

RIGHT = """\
type: assets.components.OracleCdc
attributes:
  name: hr
  oracle:
    dsn: localhost:1521/FREEPDB1
    user: cdc
    password_env: HR_PASSWORD
  tables:
    - name: HR.EMPLOYEES
      columns_exclude: [PHOTO]
    - name: hr."Jobs"
  landing: {type: local, path: landing}
  lake: {path: lake}
  state: {url: "sqlite:///state.db"}
"""
ENVIRON = {"HR_PASSWORD": "tiger"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "defs.yaml"
    path.write_text(RIGHT)
    return path


def problems_of(path: Path, text: str, environ: dict[str, str] | None = None) -> list[str]:
    """The lines about problems, without the file's name."""
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_config(path, environ=ENVIRON if environ is None else environ)
    assert raised.value.hint
    lines = raised.value.what_happened.splitlines()[1:]
    assert all(line.startswith(f"  {path}:") for line in lines)
    return [line.removeprefix(f"  {path}:") for line in lines]


def test_a_right_file_is_a_source(file: Path) -> None:
    config = load_config(file, environ=ENVIRON)
    assert config.oracle.password.get_secret_value() == "tiger"
    assert [str(table.table) for table in config.tables] == ["HR.EMPLOYEES", 'HR."Jobs"']


def test_relative_paths_are_relative_to_the_file(file: Path) -> None:
    config = load_config(file.parent, environ=ENVIRON)
    assert isinstance(config.landing, LocalLandingConfig)
    assert config.landing.path == str(file.parent / "landing")
    assert config.lake.path == str(file.parent / "lake")
    assert config.state.url == f"sqlite:///{file.parent}/state.db"


def test_all_folders_and_files_are_relative_to_the_file(file: Path) -> None:
    """Dagster and the command line run in different folders: neither may find no recordings, or
    write views elsewhere."""
    text = RIGHT.replace(
        "user: cdc\n", "user: cdc\n    thick: {lib_dir: client, config_dir: network}\n"
    )
    text = text.replace("{path: lake}", "{path: lake, current_views: {duckdb: views.db}}")
    for kind in ("xstream", "openlogreplicator"):
        file.write_text(f"{text}  capture: {{type: {kind}, folder: recordings}}\n")
        config = load_config(file, environ=ENVIRON)
        assert config.capture.folder == str(file.parent / "recordings")  # type: ignore[union-attr]
    assert config.lake.current_views.duckdb == str(file.parent / "views.db")
    assert config.oracle.thick is not None
    assert config.oracle.thick.lib_dir == str(file.parent / "client")
    assert config.oracle.thick.config_dir == str(file.parent / "network")
    file.write_text(f"{text}  capture: {{type: xstream, folder: 's3://bucket/lcrs'}}\n")
    config = load_config(file, environ=ENVIRON)
    assert config.capture.folder == "s3://bucket/lcrs"  # type: ignore[union-attr]


def test_paths_and_addresses_that_are_whole_stay(file: Path) -> None:
    text = RIGHT.replace("{path: lake}", "{path: s3a://bucket/lake}")
    text = text.replace("type: local, path: landing", "type: s3, bucket: b, cache: cache")
    file.write_text(text.replace("sqlite:///state.db", "postgresql+psycopg2://db/x"))
    config = load_config(file, environ=ENVIRON)
    assert config.lake.path == "s3a://bucket/lake"
    assert config.state.url == "postgresql+psycopg2://db/x"
    assert isinstance(config.landing, S3LandingConfig)
    assert config.landing.cache == str(file.parent / "cache")


def test_executors_stage_nothing_where_they_do_not_see_landing(file: Path) -> None:
    """A number asks for it, and is refused; the default leaves it to threads."""
    on_s3 = RIGHT.replace("type: local, path: landing", "type: s3, bucket: b, cache: cache")
    [found] = problems_of(
        file, on_s3.replace("{path: lake}", "{path: lake, stage_on_executors_from_rows: 9}")
    )
    assert "executors read landing from a folder" in found
    for text, wanted in ((on_s3, "never"), (RIGHT, "auto")):
        file.write_text(text)
        lake = load_config(file, environ=ENVIRON).lake_beside_landing
        assert lake.stage_on_executors_from_rows == wanted


def test_the_store_takes_its_password_or_its_whole_url_from_the_environment(file: Path) -> None:
    url = "postgresql+psycopg2://cdc@db/x"
    environ = ENVIRON | {"STORE": url.replace("cdc", "cdc:p%40ss"), "STORE_PASSWORD": "p@ss"}
    for state in ("url_env: STORE", f'url: "{url}", password_env: STORE_PASSWORD'):
        file.write_text(RIGHT.replace('url: "sqlite:///state.db"', state))
        config = load_config(file, environ=environ)
        assert config.state.url == url
        assert config.state.url_with_password == environ["STORE"]
        assert load_config(file, environ=None).name == "hr"


def test_a_wallet_is_relative_to_the_file_and_its_password_in_the_environment(file: Path) -> None:
    wallet = "user: cdc\n    wallet_location: wallet\n    wallet_password_env: WALLET"
    file.write_text(RIGHT.replace("user: cdc", wallet))
    config = load_config(file, environ=ENVIRON | {"WALLET": "secret"})
    assert config.oracle.wallet_location == str(file.parent / "wallet")
    assert config.oracle.wallet_password is not None
    assert config.oracle.wallet_password.get_secret_value() == "secret"


MASKED = RIGHT.replace(
    "      columns_exclude: [PHOTO]\n", "      columns_mask: {EMAIL: hash(sha256)}\n"
)


def test_the_salt_of_masks_is_in_the_environment(file: Path) -> None:
    text = MASKED + "  masks: {salt_env: SALT}\n"
    file.write_text(text)
    salt = load_config(file, environ=ENVIRON | {"SALT": "pepper"}).masks.salt
    assert salt is not None
    assert salt.get_secret_value() == "pepper"
    assert load_config(file, environ=None).tables[0].columns_mask == {"EMAIL": "hash(sha256)"}
    assert "no passwords in files" in problems_of(file, text.replace("salt_env", "salt"))[0]
    assert "the environment variable SALT is not set" in problems_of(file, text)[0]
    assert "masks.salt_env" in problems_of(file, MASKED)[0]


@pytest.mark.parametrize(
    ("before", "after", "value"),
    [
        pytest.param(
            "  lake: {path: lake}\n",
            "  lake: {path: lake, catalog: {catalog: unity, unity: {uri: 'https://u', token_env: SECRET}}}\n",
            lambda config: config.lake.catalog.unity.token,
            id="unity",
        ),
        pytest.param(
            "  lake: {path: lake}\n",
            "  lake: {path: lake}\n  publish: {bootstrap_servers: 'k:9092', sasl_password_env: SECRET}\n",
            lambda config: config.publish.sasl_password,
            id="publish",
        ),
    ],
)
def test_secrets_of_services_are_in_the_environment(
    file: Path, before: str, after: str, value: Callable[[Any], Any]
) -> None:
    text = RIGHT.replace(before, after)
    assert text != RIGHT
    file.write_text(text)
    config = load_config(file, environ=ENVIRON | {"SECRET": "s3cret"})
    assert value(config).get_secret_value() == "s3cret"
    assert "s3cret" not in repr(config)
    assert load_config(file, environ=None).name == config.name
    plain = text.replace("_env: SECRET", ": s3cret")
    assert "no passwords in files" in problems_of(file, plain)[0]


def test_a_mask_may_have_a_salt_of_its_own(file: Path) -> None:
    named = MASKED.replace("hash(sha256)", '"hash(sha256, salt=crm)"')
    text = named + "  masks: {salts_env: {crm: CRM, hr: HR}}\n"
    file.write_text(text)
    salts = load_config(file, environ=ENVIRON | {"CRM": "pepper", "HR": "cumin"}).masks.salts
    assert {name: one.get_secret_value() for name, one in salts.items()} == {
        "crm": "pepper",
        "hr": "cumin",
    }
    assert load_config(file, environ=None).tables[0].columns_mask == {
        "EMAIL": "hash(sha256, salt=crm)"
    }
    assert "no passwords in files" in problems_of(file, text.replace("salts_env", "salts"))[0]
    unset = problems_of(file, text)
    assert ["CRM is not set" in unset[0], "HR is not set" in unset[1]] == [True, True]
    assert "masks.salts_env" in problems_of(file, named)[0]


TEMPLATES = (
    RIGHT.replace("localhost:1521/FREEPDB1", '"{{ env.HR_DSN }}"')
    .replace("path: landing", "path: \"{{ env('HR_ROOT', '/data') }}/landing\"")
    .replace("path: lake", 'path: "{{ context.project_root }}/lake"')
    + """\
requirements: {env: [HR_DSN]}
post_processing:
  assets:
    - target: "*"
      attributes: {owners: ["team:people"], tags: {domain: hr}}
"""
)


def test_templates_have_their_values_on_the_command_line_too(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HR_DSN", "db.example:1521/HR")
    file.write_text(TEMPLATES)
    config = load_config(file, environ=ENVIRON)
    assert config.oracle.dsn == "db.example:1521/HR"
    assert config.landing == LocalLandingConfig(path="/data/landing")
    assert config.lake.path == str(file.parent.resolve() / "lake")
    assert config.oracle.password.get_secret_value() == "tiger"


def test_a_template_without_a_value_is_told_with_its_place(file: Path) -> None:
    found = problems_of(file, TEMPLATES)
    assert found == [
        "5:10 attributes.oracle.dsn: the environment variable HR_DSN is not set: export HR_DSN=… first"
    ]


def test_post_processing_holds_for_the_file_that_the_environment_names(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HR_DSN", "db.example:1521/HR")
    monkeypatch.setenv("REDOLAKE_CONFIG", str(file))
    file.write_text(TEMPLATES)
    from pipelines.definitions import defs

    specs = defs().resolve_all_asset_specs()
    assert specs
    assert all(spec.owners == ["team:people"] for spec in specs)
    assert all(spec.tags["domain"] == "hr" for spec in specs)


def test_dagster_reads_several_sources_from_one_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = RIGHT.replace("name: hr\n", "name: crm\n").replace("state.db", "crm.db")
    file.write_text(f"{RIGHT}---\n{second}")
    monkeypatch.setenv("REDOLAKE_CONFIG", str(file))
    from pipelines.definitions import defs

    keys = {key.path[0] for key in defs().resolve_all_asset_keys()}
    assert keys == {"hr", "crm"}
    with pytest.raises(ConfigError, match="give each a separate file"):
        load_config(file, environ=ENVIRON)


def test_a_component_type_of_ones_own_is_read_too(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_component.py").write_text(
        "from assets.components import OracleCdc\nclass Own(OracleCdc): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    file.write_text(RIGHT.replace("assets.components.OracleCdc", "own_component.Own"))
    assert load_config(file, environ=ENVIRON).name == "hr"


def test_dagster_needs_its_own_file_name(tmp_path: Path) -> None:
    other = tmp_path / "hr.yaml"
    other.write_text(RIGHT)
    assert load_config(other, environ=ENVIRON).name == "hr"
    with pytest.raises(ConfigError, match=r"Rename it to defs\.yaml"):
        component_tree(other)


def test_dagster_finds_the_component() -> None:
    """By the entry point that ``dg`` looks for, in the distribution and in this project's settings."""
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    registered = settings["project"]["entry-points"]["dagster_dg_cli.registry_modules"]
    assert registered == {"redolake": "assets.components"}
    project = settings["tool"]["dg"]["project"]
    assert project["registry_modules"] == list(registered.values())
    assert OracleCdc.get_spec().description
    assert hasattr(OracleCdc, "__dg_package_entry__")


def test_definitions_need_no_password(file: Path) -> None:
    assert load_config(file, environ=None).name == "hr"
    assert OracleCdc.from_file(file).build_defs().assets


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        pytest.param(
            "user: cdc",
            "usr: cdc",
            "6:5 attributes.oracle.usr: unknown key; did you mean `user`?",
            id="wrong-key",
        ),
        pytest.param(
            "lake:",
            "lakes:",
            "13:3 attributes.lakes: unknown key; did you mean `lake`?",
            id="wrong-key-at-the-top",
        ),
        pytest.param(
            "columns_exclude",
            "exclude_columns",
            "10:7 attributes.tables[0].exclude_columns: unknown key; did you mean `columns_exclude`?",
            id="wrong-key-in-a-list",
        ),
        pytest.param(
            "user: cdc",
            "user: cdc\n    fetch_rows: many",
            "7:17 attributes.oracle.fetch_rows: should be a valid integer",
            id="wrong-type",
        ),
        pytest.param(
            "user: cdc",
            "user: cdc\n    fetch_rows: 1",
            "7:17 attributes.oracle.fetch_rows: should be greater than or equal to 100",
            id="impossible-value",
        ),
        pytest.param(
            "name: HR.EMPLOYEES",
            "name: EMPLOYEES",
            "9:13 attributes.tables[0].name: this is not a table name",
            id="table-without-owner",
        ),
        pytest.param(
            "name: HR.EMPLOYEES",
            "name: HR.EMP-LOYEES",
            "9:13 attributes.tables[0].name: an unquoted identifier has characters",
            id="table-name-with-a-dash",
        ),
        pytest.param(
            'hr."Jobs"',
            "hr.employees",
            "2:1 attributes: tables named more than once: HR.EMPLOYEES",
            id="table-twice",
        ),
        pytest.param(
            "name: hr\n",
            "name: HR\n",
            "3:9 attributes.name: write a name of lower-case letters",
            id="source-name-in-capitals",
        ),
        pytest.param(
            'hr."Jobs"',
            'hr."Jobs"\n      columns_mask: {V: "stars(00)"}',
            "12:25 attributes.tables[1].columns_mask.V: none of the forms that this option takes — "
            "Masks that replace the values of columns",
            id="mask-of-no-form",
        ),
        pytest.param(
            "  lake: {path: lake}\n",
            "  lake: {path: lake, driver_memory: lots}\n",
            "13:37 attributes.lake.driver_memory: none of the forms that this option takes — ",
            id="memory-of-no-form",
        ),
        pytest.param(
            "type: local, path: landing",
            "type: nfs, path: landing",
            "12:12 attributes.landing: unknown kind 'nfs'; write one of 'local', 's3'",
            id="unknown-kind",
        ),
        pytest.param(
            "type: local, path: landing",
            "path: landing",
            "12:12 attributes.landing: missing: add `type: local`",
            id="kind-missing",
        ),
        pytest.param(
            "type: local, path: landing",
            "type: s3, bucket: b, cach: c, cache: d",
            "12:34 attributes.landing.cach: unknown key; did you mean `cache`? "
            "Known here: cache, cache_hours, type, bucket, prefix, endpoint_url",
            id="wrong-key-of-the-chosen-kind",
        ),
        pytest.param(
            "  lake: {path: lake}\n",
            "",
            "2:1 attributes.lake: missing: add `lake:`",
            id="missing-key",
        ),
        pytest.param(
            "password_env: HR_PASSWORD",
            "password: tiger",
            "7:5 attributes.oracle.password: no passwords in files: write `password_env: NAME`",
            id="password-in-the-file",
        ),
        pytest.param(
            "dsn: localhost:1521/FREEPDB1",
            "dsn: cdc/tiger@localhost:1521/FREEPDB1",
            "5:10 attributes.oracle.dsn: it holds a user name or a password",
            id="password-in-the-dsn",
        ),
        pytest.param(
            "sqlite:///state.db",
            "postgresql+psycopg2://cdc:tiger@db/x",
            "14:16 attributes.state.url: it holds a password",
            id="password-in-the-url",
        ),
        pytest.param(
            'state: {url: "sqlite:///state.db"}',
            "state: {url: x, url_env: X}",
            "14:19 attributes.state.url_env: `url` says the same; keep one of them",
            id="url-twice",
        ),
        pytest.param(
            "path: landing",
            'path: "{{ env.NOWHERE }}/landing"',
            "12:32 attributes.landing.path: the environment variable NOWHERE is not set",
            id="template-of-a-variable-that-is-not-set",
        ),
        pytest.param(
            "    password_env: HR_PASSWORD\n",
            "",
            "4:3 attributes.oracle.password_env: missing: add `password_env:`",
            id="password-missing",
        ),
        pytest.param(
            "password_env: HR_PASSWORD",
            "password_env: NOT_SET",
            "7:19 attributes.oracle.password_env: the environment variable NOT_SET is not set",
            id="variable-not-set",
        ),
        pytest.param(
            "type: assets.components.OracleCdc",
            "type: assets.components.Oracle",
            "1:7 type: write `type: assets.components.OracleCdc`",
            id="another-component",
        ),
        pytest.param(
            "attributes:",
            "atributes:",
            "2:1 atributes: unknown key; did you mean `attributes`?",
            id="wrong-key-of-the-file",
        ),
        pytest.param(
            "user: cdc",
            "user: cdc\n    user: cdd",
            "7:5 attributes.oracle.user: this key is repeated (first in line 6)",
            id="key-twice",
        ),
        pytest.param("user: cdc", "user: [cdc", "7:17 the file: this is not YAML", id="not-yaml"),
    ],
)
def test_a_problem_is_told_with_its_place(file: Path, right: str, wrong: str, problem: str) -> None:
    assert right in RIGHT
    found = problems_of(file, RIGHT.replace(right, wrong, 1))
    assert any(line.startswith(problem) for line in found), found


def test_all_problems_are_told_at_once_in_order(file: Path) -> None:
    text = RIGHT.replace("user: cdc", "usr: cdc").replace("HR.EMPLOYEES", "EMPLOYEES")
    found = problems_of(file, text, environ={})
    assert [line.split(":")[0] for line in found] == ["4", "6", "7", "9"]


def test_a_wrong_password_variable_never_shows_a_value(file: Path) -> None:
    found = problems_of(file, RIGHT.replace("password_env: HR_PASSWORD", "password: tiger"))
    assert "tiger" not in "".join(found)


def test_a_missing_file_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--config FILE or the environment variable"):
        load_config(tmp_path / "nothing.yaml", environ=ENVIRON)


def test_which_file_is_meant(tmp_path: Path) -> None:
    named, other = tmp_path / "named.yaml", tmp_path / "other.yaml"
    assert config_path(named, {"REDOLAKE_CONFIG": str(other)}) == named
    assert config_path(None, {"REDOLAKE_CONFIG": str(other)}) == other
    assert config_path(None, {}) == demo_config()
    assert config_path(tmp_path, {}) == tmp_path / "defs.yaml"


def test_editors_see_the_schema_without_a_password() -> None:
    schema = Attributes.model_json_schema()
    oracle = schema["$defs"]["OracleConfig"]
    assert "password_env" in oracle["required"]
    assert "password" not in oracle["properties"]
    assert oracle["properties"]["dsn"]["description"].startswith("Easy Connect string")


def test_dagster_loads_the_same_file(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDOLAKE_CONFIG", str(file))
    from pipelines.definitions import defs

    found = defs()
    assert isinstance(found, dg.Definitions)
    keys = {key.to_user_string() for key in found.resolve_all_asset_keys()}
    assert "hr/mirror/hr/_jobs" in keys or "hr/mirror/hr/_Jobs" in keys
    assert found.executor is dg.in_process_executor
    file.write_text(RIGHT.replace("user: cdc", "usr: cdc"))
    with pytest.raises(ConfigError, match="did you mean `user`"):
        defs()
