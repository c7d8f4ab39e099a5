"""Both wheels of this folder, and environments in which they are installed without the clone."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]
FOLDERS = {"redolake": ROOT, "redolake_oracle_embedded": ROOT / "oracle_embedded"}


def build(target: Path, names: Iterable[str] = FOLDERS) -> dict[str, ZipFile]:
    """Build the named wheels into a folder."""
    for name in names:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
        subprocess.run(command, cwd=FOLDERS[name], check=True, capture_output=True)
    return {path.name.split("-")[0]: ZipFile(path) for path in target.glob("*.whl")}


def install(wheels: Iterable[ZipFile], folder: Path) -> Path:
    """Install wheels into a new environment and return its ``bin``; only what they depend on comes from this environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    programs = folder / "bin"
    files = [str(wheel.filename) for wheel in wheels]
    uv = [sys.executable, "-m", "uv", "pip", "install", "--python", str(programs / "python")]
    subprocess.run([*uv, "--quiet", "--offline", "--no-index", "--no-deps", *files], check=True)
    [packages] = (folder / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs
