"""Which jars does Delta need, are they there, and how are they fetched?"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cdc_core.errors import PreflightError
from cdc_core.runtime.folders import find_spark_home
from cdc_core.runtime.trust_store import trust_store_options

SETUP_COMMAND = "redolake setup"
S3_SETUP_COMMAND = "redolake setup --s3"
RESOLVE_TIMEOUT_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Jar:
    """A pinned jar: Maven coordinates and the SHA-256 of its content."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Its name in the jars folder."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinates(self) -> str:
        """``group:artifact:version``, as the resolver takes them."""
        return f"{self.group}:{self.artifact}:{self.version}"


JARS: tuple[Jar, ...] = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)
"""All of Delta that the pipeline uses, for pyspark 4.2 and Scala 2.13."""

EXCLUDED = (
    "io.delta:delta-kernel-api",
    "io.delta:delta-kernel-defaults",
    "io.delta:delta-kernel-unitycatalog",
    "io.unitycatalog:unitycatalog-client",
    "io.unitycatalog:unitycatalog-hadoop",
    "org.scala-lang:scala-library",
    "software.amazon.awssdk:bundle",
    "software.amazon.awssdk:netty-nio-client",
    "org.wildfly.openssl:wildfly-openssl",
)
"""Dependencies that must stay out: they bring an older Hadoop and Parquet beside Spark's own, or
the clients of all of Amazon's services."""


def verify_jars(folder: Path, jars: Sequence[Jar] = JARS) -> list[str]:
    """Name every jar that is missing or whose content is not the pinned one; an empty list means
    all is well."""
    problems = []
    for jar in jars:
        path = Path(folder) / jar.file_name
        if not path.is_file():
            problems.append(f"{path} is missing")
        elif _sha256(path) != jar.sha256:
            problems.append(f"{path} is damaged: its SHA-256 is not the pinned one")
    return problems


def require_jars(
    folder: Path, jars: Sequence[Jar] = JARS, *, command: str = SETUP_COMMAND
) -> list[Path]:
    """The paths of all jars; ``command`` is what fetches them.

    Raises:
        PreflightError: A jar is missing or damaged; all problems at once.
    """
    if problems := verify_jars(folder, jars):
        raise PreflightError(
            f"the jars in {folder} are not in order",
            hint=f"Run `{command}` once; it needs a network.",
        ).listing(problems)
    return [Path(folder) / jar.file_name for jar in jars]


def install_jars(
    folder: Path,
    java_home: Path,
    *,
    jars: Sequence[Jar] = JARS,
    java_options: Sequence[str] = (),
    spark_options: Mapping[str, str] | None = None,
) -> list[Path]:
    """Fetch the jars into ``folder`` with Spark's own resolver, unless they are already installed.

    Args:
        folder: Where the jars shall be; created if it is not there.
        java_home: From :func:`find_java`.
        jars: Which jars; Delta's by default.
        java_options: Further JVM options, for example ``-Dhttps.proxyHost=…``.
        spark_options: Further Spark settings, for example ``spark.jars.repositories`` or
            ``spark.jars.ivySettings``.

    Returns:
        The paths of the jars, verified.

    Raises:
        PreflightError: The resolver failed, or what it brought is not what is pinned.
    """
    folder = Path(folder)
    if not verify_jars(folder, jars):
        return require_jars(folder, jars)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".resolve-") as work:
        _resolve(Path(work), Path(java_home), jars, java_options, spark_options or {})
        for jar in jars:
            _take(jar, Path(work) / "jars" / f"{jar.group}_{jar.file_name}", folder)
    return require_jars(folder, jars)


def _resolve(
    work: Path,
    java_home: Path,
    jars: Sequence[Jar],
    java_options: Sequence[str],
    spark_options: Mapping[str, str],
) -> None:
    """Let spark-submit resolve the packages and run a program that does nothing."""
    program = work / "nothing.py"
    program.write_text("")
    settings = {
        "spark.jars.packages": ",".join(jar.coordinates for jar in jars),
        "spark.jars.excludes": ",".join(EXCLUDED),
        "spark.jars.ivy": str(work),
        "spark.ui.enabled": "false",
        **spark_options,
    }
    spark_home = find_spark_home()
    command = [str(java_home / "bin" / "java"), *trust_store_options(work), *java_options]
    command += ["-cp", str(spark_home / "jars" / "*"), "org.apache.spark.deploy.SparkSubmit"]
    command += ["--master", "local[1]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    environment = {**os.environ, "SPARK_HOME": str(spark_home), "PYSPARK_PYTHON": sys.executable}
    try:
        done = subprocess.run(
            [*command, str(program)],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=RESOLVE_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _not_fetched(str(error)) from error
    if done.returncode != 0:
        raise _not_fetched(_cause(done.stderr))


def _cause(log: str) -> str:
    """The lines of the resolver's log that say what went wrong."""
    telling = [
        line.strip()
        for line in log.splitlines()
        if re.search(r"not found|Exception|error|PKIX|unresolved", line, re.IGNORECASE)
    ]
    return " | ".join(dict.fromkeys(telling[:6])) or log.strip()[-400:]


def _not_fetched(cause: str) -> PreflightError:
    return PreflightError(
        "jars could not be fetched",
        hint="Check that this machine reaches a Maven repository, or name a mirror with spark.jars.repositories.",
        cause=cause,
    )


def _take(jar: Jar, fetched: Path, folder: Path) -> None:
    if not fetched.is_file():
        raise _not_fetched(f"the resolver did not fetch {jar.coordinates}")
    if _sha256(fetched) != jar.sha256:
        raise PreflightError(
            "a jar that was fetched is not the pinned one",
            hint="Check the Maven repository or mirror that this machine uses.",
            jar=jar.coordinates,
        )
    fetched.replace(folder / jar.file_name)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
