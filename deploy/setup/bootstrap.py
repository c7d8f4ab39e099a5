"""How does a bare clone get everything it needs, with nothing but Python and its venv module?

Run by ``deploy/setup/setup`` before every ``make`` target. What is made: ``.redolake/tools`` (pip,
and uv as the lock file pins it), ``.venv`` (exactly the packages of ``requirements.lock``, and this
folder as an editable package), Delta's jars and a Java for Spark (``redolake setup``). A stamp over
the inputs makes every further run a check of a few milliseconds.

Only the standard library is imported here. No package index is named: pip and uv use the index,
proxy and certificates that their own settings name, and where only pip is configured, uv is told
the same.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".redolake"
TOOLS = STATE / "tools"
VENV = ROOT / ".venv"
JARS = VENV / "share" / "redolake" / "jars"
STAMP = STATE / "setup.json"
RUNNING = STATE / "setup.running"
LOCK_FILE = ROOT / "requirements.lock"
BUILD_CONSTRAINTS = ROOT / "deploy" / "setup" / "build.lock"
INPUTS = (
    LOCK_FILE,
    BUILD_CONSTRAINTS,
    ROOT / "pyproject.toml",
    ROOT / "deploy" / "setup" / "bootstrap.py",
    ROOT / "cdc_core" / "runtime" / "jars.py",  # the list of jars
    ROOT / "cdc_core" / "runtime" / "java.py",  # the shim, to which a class archive belongs
)
FREE_BYTES_MIN = 4 * 1024**3
PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
"""pip's settings, and uv's environment variable for each."""


class SetUpError(Exception):
    """Set-up cannot go on; the text says what to do."""


def main() -> int:
    """Set up what is missing; 0 when everything is there."""
    try:
        if is_set_up():
            return 0
        with one_at_a_time():
            if not is_set_up():
                set_up()
    except SetUpError as error:
        say(f"Set-up stopped: {error}")
        return 1
    except KeyboardInterrupt:
        say("Set-up was interrupted; run the same command again to continue.")
        return 130
    return 0


def is_set_up() -> bool:
    """Does the stamp fit the inputs, and is everything that it names still there in its size?"""
    try:
        stamp = json.loads(STAMP.read_text())
        sizes = {name: (ROOT / name).stat().st_size for name in stamp["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(stamp["inputs"] == inputs_digest() and stamp["files"] == sizes)


def inputs_digest() -> str:
    """One digest over everything that decides what set-up makes, the folder's own path included."""
    digest = hashlib.sha256(str(ROOT).encode())
    for path in INPUTS:
        digest.update(path.read_bytes() if path.exists() else b"-")
    return digest.hexdigest()


def set_up() -> None:
    """Do all steps; each is safe to repeat."""
    started = time.monotonic()
    check_machine()
    say(f"Setting up Redolake in {ROOT} (once; everything goes into .venv and .redolake).")
    with step(1, "uv, the package installer, from the Python package index"):
        make_tools()
    environment = client_environment()
    with step(2, "Python packages, those of requirements.lock (1.8 GB; a minute or more)"):
        make_venv(environment)
    with step(3, "Redolake itself, as an editable package"):
        uv(
            environment,
            ("pip", "install", "--python", str(VENV), "--no-deps", "--no-build-isolation"),
            ("--offline", "--editable", str(ROOT)),
        )
    RUNNING.unlink(missing_ok=True)
    with step(4, "Delta's jars and Java (redolake setup)"):
        run((str(VENV / "bin" / "redolake"), "setup"), environment)
    write_stamp()
    say(f"Set up in {time.monotonic() - started:.0f} s. From now on no network is needed.")


def check_machine() -> None:
    """Refuse early what cannot work.

    Raises:
        SetUpError: venv is incomplete, or the disk is too full.
    """
    try:
        import ensurepip
        import venv
    except ImportError as error:
        raise SetUpError(
            "this Python comes without its venv module. Run: apt-get install python3-venv"
        ) from error
    del ensurepip, venv
    free = shutil.disk_usage(ROOT).free
    if free < FREE_BYTES_MIN and not VENV.exists():
        raise SetUpError(
            f"{free / 1024**3:.1f} GB are free here, {FREE_BYTES_MIN / 1024**3:.0f} GB are needed. Make room and repeat."
        )


def make_tools() -> None:
    """A venv with pip and uv, apart from the packages, so that neither can break the other."""
    pinned = uv_requirement(LOCK_FILE.read_text())
    ready = TOOLS / "ready.txt"
    if ready.exists() and ready.read_text() == pinned and (TOOLS / "bin" / "uv").exists():
        return
    shutil.rmtree(TOOLS, ignore_errors=True)
    run((sys.executable, "-I", "-m", "venv", str(TOOLS)), dict(os.environ))
    wanted = TOOLS / "uv.txt"
    wanted.write_text(pinned)
    pip = (str(TOOLS / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check")
    run((*pip, "--quiet", "--no-deps", "--require-hashes", "-r", str(wanted)), dict(os.environ))
    ready.write_text(pinned)


def uv_requirement(lock: str) -> str:
    """The lock file's own entry for uv, with its hashes.

    Raises:
        SetUpError: There is none.
    """
    found = re.search(r"^uv==[^\n]*\n(?:    --hash=[^\n]*\n)+", lock, re.MULTILINE)
    if not found:
        raise SetUpError(
            "requirements.lock does not pin uv. Restore it: git checkout requirements.lock"
        )
    return found.group().rstrip("\n\\ ") + "\n"


def make_venv(environment: Mapping[str, str]) -> None:
    """``.venv`` with exactly the locked packages; one whose making was cut short is made anew.

    A package is laid down file by file, so that after an interruption nobody can say which are
    whole.
    """
    broken = RUNNING.exists() or not is_venv_usable()
    RUNNING.write_text("packages are being installed")
    if broken:
        if VENV.exists():
            say("      replacing an unfinished or unusable .venv")
        uv(environment, ("venv", "--no-project", "--clear", "--python", sys.executable, str(VENV)))
    uv(
        environment,
        ("pip", "sync", "--python", str(VENV), "--require-hashes"),
        ("--build-constraints", str(BUILD_CONSTRAINTS), str(LOCK_FILE)),
    )


def is_venv_usable() -> bool:
    """Does ``.venv`` start, with the same Python version as ours?"""
    python = VENV / "bin" / "python"
    ask = "import sys; print(sys.version_info[:2] == tuple(map(int, sys.argv[1:])))"
    try:
        said = subprocess.run(
            (str(python), "-I", "-c", ask, *map(str, sys.version_info[:2])),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return said.stdout.strip() == "True"


def client_environment() -> dict[str, str]:
    """Our environment, with pip's index, certificates and proxy handed to uv where uv has no
    setting of its own."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"UV_REQUIRE_HASHES", "VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH"}
    }
    listed = subprocess.run(
        (str(TOOLS / "bin" / "python"), "-m", "pip", "config", "list"),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    for name, value in uv_settings(pip_settings(listed.stdout)).items():
        environment.setdefault(name, value)
    home = environment.get("HOME", "")
    if not (home and os.access(home, os.W_OK)) and "XDG_CACHE_HOME" not in environment:
        environment.setdefault("UV_CACHE_DIR", str(STATE / "cache" / "uv"))
    return environment


def pip_settings(listing: str) -> dict[str, str]:
    """Read ``pip config list``: the environment wins over ``install.``, that over ``global.``."""
    rank = {"global": 0, "install": 1, ":env:": 2}
    found: dict[str, tuple[int, str]] = {}
    for line in listing.splitlines():
        name, equals, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if equals and section in rank and rank[section] >= found.get(key, (0, ""))[0]:
            found[key] = (rank[section], str(ast.literal_eval(value)))
    return {key: value for key, (_, value) in found.items()}


def uv_settings(pip: Mapping[str, str]) -> dict[str, str]:
    """uv's environment variables that say what pip's settings say. Folders of wheels that are not
    there are left out."""
    settings = {PIP_TO_UV[key]: value for key, value in pip.items() if key in PIP_TO_UV}
    if "UV_FIND_LINKS" in settings:
        places = settings["UV_FIND_LINKS"].split()
        kept = [place for place in places if "://" in place or Path(place).expanduser().exists()]
        settings["UV_FIND_LINKS"] = ",".join(kept)
    return {name: value for name, value in settings.items() if value}


def uv(environment: Mapping[str, str], *parts: Sequence[str]) -> None:
    """Run the pinned uv, which says only what went wrong: what it does is said by our own steps."""
    command = [str(TOOLS / "bin" / "uv"), "--quiet"]
    for part in parts:
        command.extend(part)
    run(command, environment)


def run(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run one command in the project's folder; what it prints is shown.

    Raises:
        SetUpError: It failed; its own words stand above.
    """
    ended = subprocess.run(command, cwd=ROOT, env=dict(environment), check=False)
    if ended.returncode:
        what = " ".join([Path(command[0]).name, *command[1:3]])
        raise SetUpError(
            f"'{what} …' failed with exit code {ended.returncode}; its error message is above. "
            "Fix the cause (network, proxy, certificates, disk), then run the same make command again: it continues from here."
        )


def write_stamp() -> None:
    """Note what was made from what, last of all."""
    made = [
        VENV / "bin" / "python",
        VENV / "bin" / "redolake",
        *sorted(JARS.glob("*.jar")),
    ]
    files = {str(path.relative_to(ROOT)): path.stat().st_size for path in made}
    text = json.dumps({"inputs": inputs_digest(), "files": files}, indent=1)
    fresh = STAMP.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(STAMP)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let one set-up run; a second one waits for it and then finds everything done."""
    STATE.mkdir(exist_ok=True)
    with (STATE / "setup.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up of this folder is running; waiting for it.")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def step(number: int, what: str) -> Iterator[None]:
    """Say what is done, and how long it took."""
    say(f"[{number}/4] {what} …")
    started = time.monotonic()
    yield
    say(f"      done in {time.monotonic() - started:.1f} s")


def say(text: str) -> None:
    """One line for people."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
