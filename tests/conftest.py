"""What tests of several packages share: one Spark per test run, from the jars that set-up installed; and the tiers.

Tests that use Spark's fixtures get the marker ``spark`` by themselves, those of Dagster ``dagster``, long ones without either
``story``; ``make test-fast`` leaves all three out. A test that starts a JVM without the marker fails, so that the fast tier stays fast.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from tests.jvm import spark_submit_options
from tests.long_forms import mark_long_forms
from tests.memory_folder import use_memory

if TYPE_CHECKING:
    from cdc_core.lake.delta_lake import DeltaLake
    from tests.kafka_broker import KafkaBroker
    from tests.landing.s3_process import S3Process

os.environ.setdefault("SPARK_SUBMIT_OPTS", spark_submit_options())
"""For the processes that tests start too. Benchmarks run with what users have."""

use_memory(os.environ)

gc.disable()  # until all is collected: modules and tests stay, and are a million objects

DAGSTER_FOLDERS = ("tests/assets/",)
ENDS_THE_JVM = ("tests/lake/test_spark_gone.py", "tests/lake/test_catalog.py")
"""Come last: another JVM compiles all of Spark anew."""

settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.register_profile("random", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile("same")
"""The same generated cases in every run, so that a failure is of the change that it meets; ``make test-slow`` draws new ones."""


STORIES = (
    "tests/steps/",
    "tests/invariants/",
    "tests/capture/test_embedded.py",
    "tests/capture/test_late_redo.py",
    "tests/capture/test_memory.py",
    "tests/capture/test_schedules.py",
    "tests/pipelines/demo/test_workload.py",
)
"""Where a whole pipeline lives through something, some seconds each: ``make test-fast`` leaves it out."""


BEGIN_AT = ("assets", "landing", "steps")
"""Where the processes of a test run begin to collect, a third of the tests apart."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep the processes of a test run from doing each the same: compiling the modules of tests,
    and reading the sources of the code for constants.

    Each process begins with a third of the folders, and finds the others compiled by the rest.
    Hypothesis draws some values from the constants of the modules that happen to be loaded: with
    them, the cases of a process are not those of another one.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and config.args == ["tests"]:
        paths = sorted(path for path in Path("tests").iterdir() if _is_collected(path))
        begin = BEGIN_AT[int(worker.removeprefix("gw")) % len(BEGIN_AT)]
        at = [path.name for path in paths].index(begin)
        config.args = [str(path) for path in (*paths[at:], *paths[:at])]
    if not config.getoption("--hypothesis-profile", None):
        setattr(providers, "is_local_module_file", lambda _path: False)  # noqa: B010


def _is_collected(path: Path) -> bool:
    return next(path.glob("**/test_*.py"), None) is not None or path.match("test_*.py")


@cache
def _says_spark(path: Path) -> bool:
    text = path.read_text()
    return "spark" in text or "who_merges" in text


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """For the tests of Spark alone, import no module that says nothing of it: four in five do not."""
    is_module = collection_path.match("test_*.py")
    for_spark = str(config.option.markexpr).startswith("spark and")
    return True if for_spark and is_module and not _says_spark(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by what they start; leave out those of a real Oracle where there is none."""
    items.sort(key=lambda item: item.path.parts)
    if "REDOLAKE_TEST_ORACLE_DSN" not in os.environ:
        real = [item for item in items if item.get_closest_marker("oracle")]
        config.hook.pytest_deselected(items=real)
        items[:] = [item for item in items if item not in real]
    mark_long_forms(items)
    items.sort(key=lambda item: [item.nodeid.startswith(one) for one in ENDS_THE_JVM])
    for item in items:
        if "spark_process" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("spark") and not _says_spark(item.path):
            raise pytest.UsageError(f"{item.nodeid} starts Spark: its module must say so")
        if item.nodeid.startswith(DAGSTER_FOLDERS):
            item.add_marker(pytest.mark.dagster)
        if item.nodeid.startswith(STORIES):
            item.add_marker(pytest.mark.story)


def pytest_collection_finish() -> None:
    """What collection made lives until the end. Left to the garbage collector, all of it is looked at again and again: an eighth of
    the CPU time of the plain tests."""
    _keep_command_lines()
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 50)


def _keep_command_lines() -> None:
    """Typer's runner makes the commands of an application anew for each call, 40 ms of CPU time for ours."""
    testing = sys.modules.get("typer.testing")
    if testing is not None:
        setattr(testing, "_get_command", cache(testing._get_command))  # noqa: B010


def _has_jvm() -> bool:
    module = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark.context")
    return bool(module and module.SparkContext._active_spark_context)


@pytest.fixture(autouse=True)
def _jvm_only_where_marked(request: pytest.FixtureRequest) -> Iterator[None]:
    """A JVM that was not there before a test may be there after it only if the test says so."""
    before = _has_jvm()
    yield
    if not before and _has_jvm() and request.node.get_closest_marker("spark") is None:
        pytest.fail("this test starts Spark: mark it with pytest.mark.spark")


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """A command of the command line sets up the log of its process; the next test finds it as it was."""
    logger = logging.getLogger("cdc_core")
    handlers, level, propagate = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers, logger.propagate = handlers, propagate
    logger.setLevel(level)


@pytest.fixture(scope="session")
def spark_process() -> Iterator[None]:
    """End the JVM with the test run; it starts at first use."""
    yield
    from cdc_core.spark.session import stop_spark

    stop_spark()


@pytest.fixture
def open_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., DeltaLake]:
    """Open a lake in the test's own folder. In a test that is marked with ``spark``, Spark merges
    what is not appended, unless the mark says ``merges=False``: what a MERGE makes of a change is
    what this process makes of it (``tests/lake/test_rewriting.py``), and costs a hundred times as
    much. Or who merges is a parameter, ``lake.merge`` (:data:`tests.lake.who_merges.BY_BOTH`)."""
    mark = request.node.get_closest_marker("spark")
    if mark is not None:
        request.getfixturevalue("spark_process")
    by_spark = mark is not None and mark.kwargs.get("merges", True)
    from cdc_core.config import LakeConfig
    from cdc_core.lake.delta_lake import DeltaLake

    def opened(**options: object) -> DeltaLake:
        merge = getattr(request, "param", None)
        who: dict[str, Any] = {"rewrite_mirrors_up_to_mb": 0} if by_spark else {}
        who = {"merge": merge} if merge else who
        config = LakeConfig(path=str(tmp_path / "lake"), driver_memory="1g", **who)
        return DeltaLake(config, "shop", **options)  # type: ignore[arg-type]

    return opened


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A real Kafka broker on loopback, one per test process; it starts at first use."""
    from tests.kafka_broker import kafka_broker

    with kafka_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def azurite() -> Iterator[str]:
    """Azurite's endpoint, one server per test process; it starts at first use."""
    from tests.landing.clouds import running_azurite

    with running_azurite() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def bucket_server() -> Iterator[S3Process]:
    """What stands for S3 and for Google Cloud Storage, likewise."""
    from tests.landing.s3_process import running_s3_process

    with running_s3_process() as server:
        yield server


@pytest.fixture
def azure(azurite: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Make a container and return its URL; the environment leads all clients to Azurite."""
    from tests.landing.clouds import azure_environment, azure_url, make_container

    for name, value in azure_environment(azurite).items():
        monkeypatch.setenv(name, value)

    def made(container: str) -> str:
        make_container(azurite, container)
        return azure_url(container)

    return made


@pytest.fixture
def google(
    bucket_server: S3Process, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], str]:
    """Make a bucket and return its URL; the environment leads all clients to the server."""
    from tests.landing.clouds import google_environment, make_bucket

    for name, value in google_environment(bucket_server.endpoint, tmp_path).items():
        monkeypatch.setenv(name, value)

    def made(bucket: str) -> str:
        make_bucket(bucket_server, bucket)
        return f"gs://{bucket}"

    return made
