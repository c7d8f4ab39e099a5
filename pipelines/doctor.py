"""Which prerequisites of Redolake are installed, which are missing, and which command fixes it?

Each check answers for itself: one that fails never hides the others. What only a source needs
(driver, stores) is imported where it is used, so that a machine on which it is broken can still be
examined.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cdc_core.config import LocalLandingConfig, SourceConfig, sources_of
from cdc_core.errors import CdcError
from cdc_core.model.wording import counted
from cdc_core.runtime.folders import default_runtime_folder, jars_folder, shim_folder
from cdc_core.runtime.jars import JARS, S3_SETUP_COMMAND, SETUP_COMMAND, verify_jars
from cdc_core.runtime.java import find_java
from cdc_core.runtime.s3_jars import S3_JARS
from pipelines.config_file import demo_config

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
FREE_DISK_BYTES_MIN = 2 * 1024**3
FREE_MEMORY_BYTES_MIN = 3 * 1024**3
GIB = 1024**3
PYTHONS = ((3, 11), (3, 14))


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. ``remedy`` is the command or the sentence that says how to fix
    it; where ``ok``, what may be worth doing all the same, or empty."""

    name: str
    ok: bool
    found: str
    remedy: str = ""


def examine(config: SourceConfig | None = None, *, runtime: Path | None = None) -> list[Check]:
    """Look at the machine and, with a configuration, at the source's database, stores and lake.

    Args:
        config: The source to examine; None for the machine alone.
        runtime: The runtime folder with jars and Java; the environment's own by default.
    """
    runtime = default_runtime_folder() if runtime is None else runtime
    is_here = config is not None and "://" not in config.lake.path
    work = Path(config.lake.path) if config is not None and is_here else Path.cwd()
    checks = [
        python(sys.version_info[:2]),
        packages(LOCK),
        _guarded("Java", "make setup", lambda: java(runtime)),
        jars(jars_folder(runtime), on_s3=config is not None and config.lake.is_on_s3),
        disk(work),
        memory(Path("/proc/meminfo")),
    ]
    if config is None:
        return [*checks, writable("State folder", demo_config().parents[1])]
    return [*checks, *_sources(config)]


def as_json(checks: list[Check]) -> dict[str, object]:
    """``{"ok": …, "checks": [{"name", "ok", "found", "remedy"}]}``: these keys stay as they are."""
    return {"ok": all(check.ok for check in checks), "checks": [asdict(check) for check in checks]}


def show(checks: list[Check], console: Console) -> None:
    """Print the checks as a table, and below it what to do about what is missing, then about what
    only deserves a look."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for check in checks:
        mark = "[red]✗[/]" if not check.ok else "[yellow]![/]" if check.remedy else "[green]✓[/]"
        table.add_row(mark, escape(check.name), escape(check.found))
    console.print(table)
    for check in sorted(checks, key=lambda one: one.ok):
        if check.remedy:
            colour = "yellow" if check.ok else "red"
            console.print(
                f"[{colour}]{escape(check.name)}[/]: {escape(check.remedy)}",
                highlight=False,
                soft_wrap=True,
            )


def python(version: tuple[int, ...]) -> Check:
    """Is it a Python that the locked packages are made for?"""
    found = ".".join(map(str, version))
    wanted = " to ".join(f"{major}.{minor}" for major, minor in PYTHONS)
    if PYTHONS[0] <= version <= PYTHONS[1]:
        return Check("Python", True, f"{found} ({sys.executable})")
    return Check(
        "Python", False, found, f"Use Python {wanted}: PYTHON=/path/to/python3.11 make setup"
    )


def packages(lock: Path) -> Check:
    """Are the packages those of the lock file? Without one (an installed wheel) their own statement
    counts."""
    if not lock.exists():
        return Check("Packages", True, "no lock file; versions come from the package index")
    wrong = []
    pins = locked(lock.read_text())
    for name, version in pins.items():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = "missing"
        if found != version:
            wrong.append(f"{name} {found} instead of {version}")
    if not wrong:
        return Check("Packages", True, f"{len(pins)}, all as locked")
    shown = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
    return Check("Packages", False, shown, "rm -f .redolake/setup.json && make setup")


def locked(lock: str) -> dict[str, str]:
    """The versions by package that a lock file pins for this Python on this machine.

    One lock file serves every supported Python and platform: an entry may carry a marker.
    """
    entries = re.findall(r"^([A-Za-z0-9._-]+==[^\\\n]+)", lock, re.MULTILINE)
    pins = [Requirement(entry.strip()) for entry in entries]
    return {
        pin.name: next(iter(pin.specifier)).version
        for pin in pins
        if pin.marker is None or pin.marker.evaluate()
    }


def java(runtime: Path) -> Check:
    """Is there a Java for Spark?

    Raises:
        PreflightError: There is none.
    """
    found = find_java(shim_folder(runtime))
    return Check("Java", True, f"{found.version} ({found.origin}, {found.home})")


def jars(folder: Path, *, on_s3: bool = False) -> Check:
    """Are Delta's jars installed and whole, and those for a lake on S3 if that is used?"""
    wanted = (*JARS, *S3_JARS) if on_s3 else JARS
    problems = verify_jars(folder, wanted)
    if problems:
        command = S3_SETUP_COMMAND if on_s3 else SETUP_COMMAND
        return Check("Delta's jars", False, "; ".join(problems), command)
    return Check("Delta's jars", True, f"{len(wanted)} in {folder}, SHA-256 as pinned")


def disk(folder: Path, name: str = "Disk") -> Check:
    """Is there room where the work is done?"""
    free = shutil.disk_usage(_nearest(folder)).free
    found = f"{free / GIB:.1f} GiB free at {_nearest(folder)}"
    if free >= FREE_DISK_BYTES_MIN:
        return Check(name, True, found)
    return Check(name, False, found, f"Make room: at least {FREE_DISK_BYTES_MIN // GIB} GiB.")


def memory(meminfo: Path) -> Check:
    """Is there memory for Spark's driver?"""
    if not meminfo.exists():
        return Check("Memory", True, "unknown on this system")
    match = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
    available = int(match[1]) * 1024 if match else 0
    found = f"{available / GIB:.1f} GiB available"
    if available >= FREE_MEMORY_BYTES_MIN:
        return Check("Memory", True, found)
    remedy = f"Free {FREE_MEMORY_BYTES_MIN // GIB} GiB, or lower lake.driver_memory."
    return Check("Memory", False, found, remedy)


def writable(name: str, folder: Path) -> Check:
    """Can files be made in a folder (or where it will be made), and get second names?"""
    at = _nearest(folder)
    try:
        with tempfile.NamedTemporaryFile(dir=at, prefix=".redolake-") as file:
            if not _links(Path(file.name)):
                remedy = "Name a folder on ext4, XFS, NFS or the like, or an object store."
                problem = f"{folder}: this file system has no hard links, by which one of two writers wins"
                return Check(name, False, problem, remedy)
    except OSError as error:
        return Check(
            name,
            False,
            f"{folder}: {error.strerror}",
            f"chown or chmod {at}, or name another folder.",
        )
    return Check(name, True, str(folder))


def _links(file: Path) -> bool:
    second = file.with_name(f"{file.name}.link")
    try:
        os.link(file, second)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            return False
        raise
    second.unlink()
    return True


def _sources(config: SourceConfig) -> Iterator[Check]:
    """Check the source, or that of each pluggable database under its name: the stores of all are
    the first one's."""
    parts = sources_of(config)
    if not parts:
        yield from source(config)
    for number, (pdb, part) in enumerate(parts.items()):
        if number == 0:
            yield from _stores(part)
        of_part = (*delta_tables(part), *_oracle(part))
        yield from (replace(check, name=f"{pdb}: {check.name}") for check in of_part)


def source(config: SourceConfig) -> Iterator[Check]:
    """Check what one source needs: landing, lake, metadata store, database."""
    yield from _stores(config)
    yield from delta_tables(config)
    yield from _oracle(config)


def _stores(config: SourceConfig) -> Iterator[Check]:
    yield _landing(config)
    if isinstance(config.landing, LocalLandingConfig):
        yield disk(Path(config.landing.path), "Landing's room")
    if "://" not in config.lake.path:
        yield writable("Lake", Path(config.lake.path))
    yield _guarded("Metadata store", "Check state.url.", lambda: _store(config))


def _landing(config: SourceConfig) -> Check:
    if isinstance(config.landing, LocalLandingConfig):
        return writable("Landing", Path(config.landing.path))
    return _guarded("Landing", "Check bucket, region and credentials.", lambda: _bucket(config))


def _bucket(config: SourceConfig) -> Check:
    from cdc_core.steps.source_checks import landed_folders

    return Check(
        "Landing",
        True,
        f"bucket answers, {counted(landed_folders(config), 'folder')} of this source",
    )


def _store(config: SourceConfig) -> Check:
    from cdc_core.steps.source_checks import recorded_tables

    tables = recorded_tables(config)
    kind = config.state.url.partition(":")[0]
    return Check(
        "Metadata store", True, f"{kind}, {counted(tables, 'table')} recorded for {config.name}"
    )


def delta_tables(config: SourceConfig) -> Iterator[Check]:
    """Check that Delta tables have what was applied to them; nothing where no table is captured
    yet."""
    from cdc_core.steps.source_checks import delta_findings

    try:
        findings, tables = delta_findings(config)
    except CdcError as error:
        yield _failed("Delta tables", error, "Check lake.path, landing and state.url.")
        return
    for finding in findings:
        where = f"Delta tables of {finding.table}"
        yield Check(where, not finding.is_problem, finding.problem, finding.remedy)
    if tables and not any(finding.is_problem for finding in findings):
        yield Check(
            "Delta tables",
            True,
            f"{counted(tables, 'table')}: every window that was applied is there",
        )


def _oracle(config: SourceConfig) -> Iterator[Check]:
    """One check for the connection, and one for each finding of the preflight."""
    from cdc_core.steps.source_checks import oracle_findings

    try:
        findings, tables = oracle_findings(config)
    except CdcError as error:
        yield _failed("Oracle", error, "Check oracle.dsn, oracle.user and the password.")
        return
    yield Check("Oracle", True, f"{config.oracle.dsn} as {config.oracle.user}")
    for finding in findings:
        where = f" {finding.table}" if finding.table else ""
        yield Check(f"Oracle{where}", not finding.is_problem, finding.problem, finding.remedy)
    if not any(finding.is_problem for finding in findings):
        yield Check("Oracle's settings", True, f"{counted(tables, 'table')}: all can be captured")


def _guarded(name: str, remedy: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except CdcError as error:
        return _failed(name, error, remedy)


def _failed(name: str, error: CdcError, remedy: str) -> Check:
    return Check(name, False, error.what_happened, error.hint or remedy)


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    found = folder.absolute()
    while not os.path.exists(found):  # noqa: PTH110 - Path.exists raises where it may not look
        found = found.parent
    return found
