"""Where do Oracle's JDBC drivers come from, and how does the Java client run with one?"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from cdc_core.runtime.folders import default_runtime_folder, shim_folder
from cdc_core.runtime.jars import Jar, install_jars
from cdc_core.runtime.java import find_java

DRIVERS = {
    "ojdbc11-23": Jar(
        "com.oracle.database.jdbc",
        "ojdbc11",
        "23.26.1.0.0",
        "94ff71df1cb409bf355b61f2e485994231cda233f918594f63b605a4da92c792",
    ),
    "ojdbc11-21": Jar(
        "com.oracle.database.jdbc",
        "ojdbc11",
        "21.18.0.0",
        "93cc999edf194a0a56bd7bb28e8df8e3ed4850a3db57280d03192619d6a068b7",
    ),
}
"""The newest of each line that was tried; Oracle's license lets everyone use them and not us ship them."""

XML_JARS = (
    Jar("com.oracle.database.xml", "xdb", "23.9.0.25.07", "52f3cc779b4cd0a09641ee3b87e58dd25612d42fd10a8dbd62db29c1df2258f7"),
    Jar("com.oracle.database.xml", "xmlparserv2", "23.9.0.25.07", "c63334f59caa09623b724b697fdc5384c6690c026b2dab42560e92af48639fc4"),
)  # fmt: skip
"""What every driver needs for columns of XMLTYPE."""

_FOLDER = Path(__file__).parents[2] / ".redolake" / "peers" / "jdbc"
JVM_OPTIONS = ("-Xmx512m", "-XX:TieredStopAtLevel=1")


def driver_jar(name: str) -> Path:
    """The jar of a driver, fetched at first use.

    Raises:
        PreflightError: There is no Java, or the jar cannot be fetched.
    """
    java = find_java(shim_folder(default_runtime_folder()))
    [path] = install_jars(_FOLDER, java.path, jars=[DRIVERS[name]])
    return path


def xml_jars() -> list[Path]:
    """The jars for XMLTYPE, fetched at first use.

    Raises:
        PreflightError: There is no Java, or a jar cannot be fetched.
    """
    java = find_java(shim_folder(default_runtime_folder()))
    return install_jars(_FOLDER / "xml", java.path, jars=XML_JARS)


def has_java_compiler() -> bool:
    """Can ``java`` run a source file?"""
    return shutil.which("java") is not None and shutil.which("javac") is not None


def run_client(
    class_path: str, address: str, password: str, *, program: str = "JdbcClient.java"
) -> dict[str, str]:
    """Run a Java client of this folder against a server; the result of each of its checks by name, ``ok`` or what went wrong."""
    client = Path(__file__).with_name(program)
    command = ["java", *JVM_OPTIONS, "-cp", class_path, str(client), address, password]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=dict(os.environ)
    )
    results = dict(line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)
    if done.returncode != 0:
        results["the client ends well"] = done.stderr.strip()[-400:]
    return results
