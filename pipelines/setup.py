"""What does ``redolake setup`` bring to this machine?

Delta's two jars, on request those for a lake on S3, and a Java for Spark, into the runtime folder
(:mod:`cdc_core.runtime`); then compiled code and an archive of Spark's classes, which make every
later start quicker. The Python packages are there already when this runs. Repositories and proxies
come from the settings that people have for them: Maven's mirrors (``~/.m2/settings.xml``),
``HTTPS_PROXY`` and ``NO_PROXY``, and Spark's own ``SPARK_CONF_DIR``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from cdc_core.errors import ConfigError
from cdc_core.runtime.folders import default_runtime_folder, jars_folder, shim_folder
from cdc_core.runtime.jars import JARS, install_jars, verify_jars
from cdc_core.runtime.java import JavaHome, find_java
from cdc_core.runtime.s3_jars import S3_JARS
from cdc_core.spark.class_archive import NoArchive, compile_decoder, train_class_archive

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SetUp:
    """What Spark will use: the Java, and the jars (paths)."""

    java: JavaHome
    jars: tuple[Path, ...]
    fetched: bool


def set_up(
    runtime: Path | None = None,
    *,
    s3: bool = False,
    say: Say = print,
    environ: Mapping[str, str] | None = None,
) -> SetUp:
    """Find Java, fetch missing or damaged jars, and say what was done. Safe to repeat.

    Args:
        runtime: The runtime folder; the environment's own by default.
        s3: Fetch what a lake on S3 needs, too.
        say: Takes one line for people at a time.
        environ: Looked at for Java, proxies and the home folder; the process's own by default.

    Raises:
        PreflightError: There is no Java, or the jars cannot be had.
        ConfigError: A proxy's address or Maven's settings cannot be read.
    """
    environ = os.environ if environ is None else environ
    runtime = default_runtime_folder() if runtime is None else runtime
    java = find_java(shim_folder(runtime), environ=environ)
    say(f"Java {java.version} ({java.origin}) in {java.home}")
    jars = jars_folder(runtime)
    wanted = (*JARS, *S3_JARS) if s3 else JARS
    missing = bool(verify_jars(jars, wanted))
    if missing:
        named = ", ".join(jar.coordinates for jar in JARS)
        more = " and those for S3" if s3 else ""
        say(f"Fetching {len(wanted)} jars with Spark's resolver: {named}{more}")
    paths = install_jars(
        jars,
        java.path,
        jars=wanted,
        java_options=proxy_options(environ),
        spark_options=repository_options(Path(environ.get("HOME") or "/nonexistent")),
    )
    say(f"{len(paths)} jars in {jars}, each with the SHA-256 that is pinned")
    return SetUp(java, tuple(paths), missing)


def prepare(runtime: Path | None = None, *, java: JavaHome, say: Say = print) -> None:
    """Spare the first runs what can be done once: the decoder's loops are compiled, and Spark's
    classes archived.

    Both only save time: where they cannot be had, that is said and everything works.
    """
    runtime = default_runtime_folder() if runtime is None else runtime
    say(
        "Compiling the redo decoder, and archiving Spark's classes, which halves its start-up time (about half a minute)"
    )
    with ThreadPoolExecutor(max_workers=1) as beside:  # Spark trains in a process of its own
        archive = beside.submit(train_class_archive, runtime, java)
        compile_decoder()
    found = archive.result()
    if isinstance(found, NoArchive):
        say(
            f"Spark's start-up cache was not built ({found.value}): Spark will start more "
            "slowly. `redolake setup` tries again."
        )


def proxy_options(environ: Mapping[str, str]) -> list[str]:
    """JVM options for the proxies that the environment names: a JVM does not read these variables
    itself.

    Raises:
        ConfigError: An address has no host.
    """
    options = []
    for scheme in ("http", "https"):
        name = f"{scheme}_proxy"
        address = environ.get(name) or environ.get(name.upper()) or environ.get("ALL_PROXY", "")
        if not address:
            continue
        url = urlsplit(address if "://" in address else f"http://{address}")
        if not url.hostname:
            raise ConfigError(
                "the proxy's address has no host",
                hint=f"Write {name.upper()} as http://host:port.",
                variable=name.upper(),
            )
        options += [
            f"-D{scheme}.proxyHost={url.hostname}",
            f"-D{scheme}.proxyPort={url.port or 80}",
        ]
    direct = environ.get("no_proxy") or environ.get("NO_PROXY", "")
    if options and direct:
        hosts = [host.strip() for host in direct.split(",") if host.strip()]
        java_hosts = "|".join(f"*{host}" if host.startswith(".") else host for host in hosts)
        options.append(f"-Dhttp.nonProxyHosts={java_hosts}")
    return options


def repository_options(home: Path) -> dict[str, str]:
    """Spark settings that add the mirrors of Maven Central from ``~/.m2/settings.xml`` to Spark's
    own repositories.

    Raises:
        ConfigError: The file is not XML.
    """
    settings = home / ".m2" / "settings.xml"
    if not settings.is_file():
        return {}
    try:
        tree = ElementTree.parse(settings)  # noqa: S314 - the user's own file
    except ElementTree.ParseError as error:
        raise ConfigError(
            "Maven's settings cannot be read", hint="Fix or remove the file.", file=settings
        ) from error
    urls = []
    for mirror in tree.iterfind(".//{*}mirror"):
        of = {part.strip() for part in mirror.findtext("{*}mirrorOf", "").split(",")}
        url = mirror.findtext("{*}url", "").strip()
        if url and of & {"*", "central", "external:*"} and "!central" not in of:
            urls.append(url)
    return {"spark.jars.repositories": ",".join(urls)} if urls else {}
