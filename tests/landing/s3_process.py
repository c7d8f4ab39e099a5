"""An S3 of our own in a process of its own, which writes down what it is asked, takes whole folders at once, and refuses on purpose.

A process of its own: delta-rs's query engine holds Python's lock while it waits for an answer.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, urlencode
from urllib.request import urlopen

from tests.free_port import free_port
from tests.landing.google_json import GoogleJson, is_of_json_api

LOGIN = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}
"""What a client of S3 finds in its environment; the last is delta-rs's, for a store without TLS."""

_START_SECONDS = 300
_CONTROL = "/_control/"


@dataclass(frozen=True, slots=True)
class S3Process:
    """The server, as its owner sees it."""

    endpoint: str
    _log: Path

    def environment(self) -> dict[str, str]:
        """What a client needs in its environment."""
        return {**LOGIN, "AWS_ENDPOINT_URL": self.endpoint}

    def requests(self) -> list[str]:
        """What was asked so far, in order: method, key and status; a listing is a ``LIST`` of what it asked for."""
        return self._log.read_text().splitlines()

    def count(self) -> int:
        """How often it was asked so far."""
        with self._log.open("rb") as log:
            return sum(1 for _ in log)

    def load(self, folder: Path, bucket: str, prefix: str) -> None:
        """Put all files of a folder into a bucket, which is made if it is not there, without a request for each."""
        self._ask("load", folder=str(folder), bucket=bucket, prefix=prefix)

    def refuse_puts(
        self, ending: str, times: int = 1, *, answer: str = "500 InternalError", done: bool = True
    ) -> None:
        """Answer the next PUT requests of keys that end so with a status and a code of S3's, whether ``done`` or not."""
        self._ask("refuse", ending=ending, times=str(times), answer=answer, done="y" * done)

    def begin_anew(self) -> None:
        """Forget all buckets, and what was to go wrong."""
        self._ask("reset")

    def ignore_conditions(self) -> None:
        """Put objects whatever the condition says, as stores do that know no conditional writes."""
        self._ask("conditions", has="")

    def heed_conditions(self) -> None:
        """Know conditional writes again."""
        self._ask("conditions", has="y")

    def _ask(self, name: str, **said: str) -> None:
        with urlopen(f"{self.endpoint}{_CONTROL}{name}?{urlencode(said)}") as answer:
            answer.read()


def kinds(requests: Iterable[str]) -> Counter[str]:
    """How many requests of each method."""
    return Counter(line.split(" ")[0] for line in requests)


@contextmanager
def running_s3_process() -> Iterator[S3Process]:
    """Run it for the block, on a free port."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests"
        log.touch()
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.landing.s3_process", str(port), str(log)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(port)
            yield S3Process(f"http://127.0.0.1:{port}", log)
        finally:
            server.kill()  # who starts the tests may have SIGTERM ignored
            server.wait()


def _wait_for(port: int) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError("the S3 server did not start")


class _Application:
    """moto's application behind what is written down and what is done on purpose."""

    def __init__(self, inner: Callable[..., Iterable[bytes]], log: Path) -> None:
        self._inner, self._log, self._lock = inner, log, Lock()
        self._ending, self._answer, self._is_done = "", "", True
        self._times, self._has_conditions = 0, True
        self._json = GoogleJson()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path.startswith(_CONTROL):
            said = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
            getattr(self, f"_{path.removeprefix(_CONTROL)}")(**said)
            start("200 OK", [])
            return [b""]
        if is_of_json_api(path):
            return self._google(environ, start)
        _as_s3(environ)
        if not self._has_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        status: list[str] = []

        def noted(code: str, headers: list[Any], *more: Any) -> Any:
            status.append(code)
            return start(code, headers, *more)

        method, query = environ["REQUEST_METHOD"], environ["QUERY_STRING"]
        with self._lock:
            is_refused = method == "PUT" and self._times > 0 and path.endswith(self._ending)
            self._times -= is_refused
        answer: list[bytes] = []
        if not is_refused:
            answer = list(self._inner(environ, noted))
        elif self._is_done:
            list(self._inner(environ, lambda *_: None))
        if is_refused:
            number, code = self._answer.split(" ")
            noted(f"{number} {code}", [("Content-Type", "application/xml")])
            answer = [f"<Error><Code>{code}</Code></Error>".encode()]
        is_listing = method == "GET" and "list-type" in query
        asked = f"LIST {path}?{query}" if is_listing else f"{method} {path}"
        with self._lock, self._log.open("a") as log:
            log.write(f"{asked} {status[0].split(' ')[0]}\n")
        return answer

    def _google(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """What a client of Google's JSON API asks."""
        method, path, query = (environ[name] for name in ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING"))  # fmt: skip
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_") or name.startswith("CONTENT_")
        }
        size = environ.get("CONTENT_LENGTH")
        body = environ["wsgi.input"]
        sent = body.read(int(size)) if size else b""
        if not size and environ.get("wsgi.input_terminated"):
            sent = body.read()
        answer = self._json.answer(method, path, query, headers, sent)
        with self._lock, self._log.open("a") as log:
            log.write(f"{method} {path} {answer.status}\n")
        length = ("Content-Length", str(len(answer.body)))
        phrase = HTTPStatus(answer.status).phrase
        start(f"{answer.status} {phrase}", [*answer.headers.items(), length])
        return [answer.body]

    def _reset(self) -> None:
        from moto.core import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].reset()
        self._times, self._has_conditions = 0, True

    def _load(self, folder: str, bucket: str, prefix: str) -> None:
        from moto.core import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        if bucket not in backend.buckets:
            backend.create_bucket(bucket, "us-east-1")
        for file in Path(folder).rglob("*"):
            if file.is_file():
                key = f"{prefix}/{file.relative_to(folder)}"
                backend.put_object(bucket, key, file.read_bytes())

    def _refuse(self, ending: str, times: str, answer: str, done: str) -> None:
        self._ending, self._times = ending, int(times)
        self._answer, self._is_done = answer, bool(done)

    def _conditions(self, has: str) -> None:
        self._has_conditions = bool(has)


def _as_s3(environ: dict[str, Any]) -> None:
    """What clients of Google's XML API say differently: the condition of a put, and the login,
    which moto takes the service from."""
    if environ.get("HTTP_X_GOOG_IF_GENERATION_MATCH") == "0":
        environ["HTTP_IF_NONE_MATCH"] = "*"
    if not environ.get("HTTP_AUTHORIZATION", "").startswith("AWS4"):
        login = (
            "Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        )
        environ["HTTP_AUTHORIZATION"] = f"AWS4-HMAC-SHA256 {login}"


def main() -> None:
    """Serve: ``PORT LOG``."""
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import run_simple

    port, log = int(sys.argv[1]), Path(sys.argv[2])
    app = _Application(DomainDispatcherApplication(create_backend_app), log)
    run_simple("127.0.0.1", port, app, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main()
