"""Google Cloud Storage's JSON API over the buckets of the S3 server, as far as Hadoop's connector asks for it.

Redolake and delta-rs speak the XML API to the same buckets, so Spark sees what they write, and they what Spark writes.
Source: "Cloud Storage JSON API" of Google's documentation, resources Buckets and Objects, uploads and downloads.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

_LOGIN = "/token"
_BATCH = "/batch/storage/v1"
_REASONS = {404: "notFound", 412: "conditionNotMet", 416: "requestedRangeNotSatisfiable"}
_OBJECT = re.compile(r"/(?:download/)?storage/v1/b/(?P<bucket>[^/]+)/o/(?P<name>.+)")
_COPY = re.compile(r"/storage/v1/b/([^/]+)/o/(.+)/(?:rewriteTo|copyTo)/b/([^/]+)/o/(.+)")
_BUCKET = re.compile(r"/storage/v1/b/(?P<bucket>[^/]+)(?P<objects>/o)?")
_UPLOAD = re.compile(r"/(?:resumable/)?upload/storage/v1/b/(?P<bucket>[^/]+)/o")
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")


def is_of_json_api(path: str) -> bool:
    """Is this a path of the JSON API, or of its login?"""
    return path in (_LOGIN, _BATCH) or "storage/v1/b/" in path


@dataclass(frozen=True)
class Answer:
    """Status, headers and body."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, said: Mapping[str, Any], status: int = 200, **headers: str) -> Answer:
        """A JSON object."""
        return cls(status, json.dumps(said).encode(), {"Content-Type": "application/json", **headers})  # fmt: skip

    @classmethod
    def refusal(cls, status: int) -> Answer:
        """What Google says of an error."""
        reason = _REASONS[status]
        errors = [{"domain": "global", "reason": reason, "message": reason}]
        said = {"code": status, "message": reason, "errors": errors}
        return cls.of({"error": said}, status)


@dataclass
class _Upload:
    """One that goes on: where to, on which condition, and what came so far."""

    bucket: str
    name: str
    query: Mapping[str, str]
    data: bytearray = field(default_factory=bytearray)


class GoogleJson:
    """The API; one for the server."""

    def __init__(self) -> None:
        self._uploads: dict[str, _Upload] = {}
        self._lock = Lock()

    def answer(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """Do what was asked.

        Args:
            method: Of HTTP.
            path: Without percent signs.
            query: What stands behind the question mark.
            headers: By their names in small letters.
            body: As it was sent.
        """
        if path == _LOGIN:
            return Answer.of({"access_token": "tests", "expires_in": 3600, "token_type": "Bearer"})
        if path == _BATCH:
            return self._batch(headers, body)
        said = dict(parse_qsl(query, keep_blank_values=True))
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if found := _UPLOAD.fullmatch(path):
            return self._upload(method, found["bucket"], said, headers, body)
        if found := _COPY.fullmatch(path):
            return self._copy(*found.groups())
        if found := _OBJECT.fullmatch(path):
            return self._object(method, found["bucket"], found["name"], said, headers)
        found = _BUCKET.fullmatch(path)
        assert found is not None, path
        bucket = _buckets().get(found["bucket"])
        if bucket is None:
            return Answer.refusal(404)
        return self._list(bucket, said) if found["objects"] else Answer.of(_bucket(bucket))

    def _batch(self, headers: Mapping[str, str], body: bytes) -> Answer:
        """Several requests in one, each answered by itself."""
        answers: list[bytes] = []
        for part in _parts(headers["content-type"], body):
            about, _, asked = part.partition(b"\r\n\r\n")
            head, _, sent = asked.partition(b"\r\n\r\n")
            line, *rest = head.decode().split("\r\n")
            method, target, *_ = line.split(" ")
            there = urlsplit(target)
            named = _headers(rest)
            answer = self.answer(method, unquote(there.path), there.query, named, sent)
            number = _headers(about.decode().split("\r\n"))["content-id"].strip("<>")
            said = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
            said += [f"{name}: {value}" for name, value in answer.headers.items()]
            said += [f"Content-Length: {len(answer.body)}", "", ""]
            about_it = f"Content-Type: application/http\r\nContent-ID: <response-{number}>"
            answers.append(
                f"{about_it}\r\n\r\n".encode() + "\r\n".join(said).encode() + answer.body
            )
        joined = b"".join(b"--batch\r\n" + one + b"\r\n" for one in answers)
        kind = "multipart/mixed; boundary=batch"
        return Answer(200, joined + b"--batch--\r\n", {"Content-Type": kind})

    def _object(
        self,
        method: str,
        bucket: str,
        name: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> Answer:
        key = _key(bucket, name)
        if key is None:
            return Answer.refusal(404)
        if not _is_met(key, query):
            return Answer.refusal(412)
        if method == "DELETE":
            _backend().delete_object(bucket, name)
            return Answer(204)
        if query.get("alt") == "media":
            return _media(key, headers.get("range", ""))
        return Answer.of(_resource(key))

    def _list(self, bucket: Any, query: Mapping[str, str]) -> Answer:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter") or None
        keys, folders, _, _ = _backend().list_objects(bucket, prefix, delimiter, None, None)
        found = {key.name: key for key in keys}
        if query.get("includeTrailingDelimiter") == "true":
            found |= {name: key for name in folders if (key := _key(bucket.name, name))}
        start = query.get("startOffset", "")
        items = [_resource(key) for name, key in sorted(found.items()) if name >= start]
        said = {"items": items, "prefixes": [one for one in sorted(folders) if one >= start]}
        return Answer.of({"kind": "storage#objects", **said})

    def _copy(self, bucket: str, name: str, to_bucket: str, to_name: str) -> Answer:
        key = _key(bucket, name)
        if key is None:
            return Answer.refusal(404)
        resource = _resource(_backend().put_object(to_bucket, to_name, key.value))
        said = {"kind": "storage#rewriteResponse", "done": True, "resource": resource}
        return Answer.of({**said, "objectSize": str(key.size), "totalBytesRewritten": str(key.size)})  # fmt: skip

    def _upload(
        self,
        method: str,
        bucket: str,
        query: dict[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Answer:
        if (number := query.get("upload_id")) is not None:
            return self._go_on(number, headers.get("content-range", ""), body)
        kind = query["uploadType"]
        if kind == "multipart":
            first, second = _parts(headers["content-type"], body)
            metadata = json.loads(first.partition(b"\r\n\r\n")[2])
            content = second.partition(b"\r\n\r\n")[2]
            return self._put(bucket, query.get("name") or metadata["name"], query, content)
        if kind == "media":
            return self._put(bucket, query["name"], query, body)
        metadata = json.loads(body or b"{}")
        name = query.get("name") or metadata["name"]
        if not _is_met(_key(bucket, name), query):
            return Answer.refusal(412)
        number = uuid.uuid4().hex
        self._uploads[number] = _Upload(bucket, name, query)
        host = headers["host"]
        scheme = "https" if host.endswith("googleapis.com") else "http"
        place = f"{scheme}://{host}/upload/storage/v1/b/{bucket}/o?uploadType=resumable&upload_id={number}"
        return Answer(200, b"", {"Location": place})

    def _go_on(self, number: str, content_range: str, body: bytes) -> Answer:
        upload = self._uploads[number]
        upload.data += body
        found = _CONTENT_RANGE.fullmatch(content_range)
        if found is not None and found[3] != str(len(upload.data)):
            come = {"Range": f"bytes=0-{len(upload.data) - 1}"} if upload.data else {}
            return Answer(308, b"", come)
        del self._uploads[number]
        return self._put(upload.bucket, upload.name, upload.query, bytes(upload.data))

    def _put(self, bucket: str, name: str, query: Mapping[str, str], content: bytes) -> Answer:
        with self._lock:
            if not _is_met(_key(bucket, name), query):
                return Answer.refusal(412)
            return Answer.of(_resource(_backend().put_object(bucket, name, content)))


def _backend() -> Any:
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


def _buckets() -> Mapping[str, Any]:
    found: Mapping[str, Any] = _backend().buckets
    return found


def _key(bucket: str, name: str) -> Any | None:
    return _backend().get_object(bucket, name) if bucket in _buckets() else None


def _generation(key: Any | None) -> str:
    """Which of the objects of its name this is; 0 where there is none."""
    return "0" if key is None else str(int(_time(key).timestamp() * 1_000_000))


def _time(key: Any) -> datetime:
    found: datetime = key.last_modified
    return found.replace(tzinfo=UTC)


def _is_met(key: Any | None, query: Mapping[str, str]) -> bool:
    return query.get("ifGenerationMatch", _generation(key)) == _generation(key)


def _bucket(bucket: Any) -> dict[str, Any]:
    at = bucket.creation_date.replace(tzinfo=UTC).isoformat(timespec="milliseconds")
    names = {"kind": "storage#bucket", "id": bucket.name, "name": bucket.name, "location": "US"}
    return {**names, "storageClass": "STANDARD", "timeCreated": at, "updated": at}


def _resource(key: Any) -> dict[str, Any]:
    generation, at = _generation(key), _time(key).isoformat(timespec="milliseconds")
    return {
        "kind": "storage#object",
        "id": f"{key.bucket_name}/{key.name}/{generation}",
        "name": key.name,
        "bucket": key.bucket_name,
        "generation": generation,
        "metageneration": "1",
        "contentType": "application/octet-stream",
        "storageClass": "STANDARD",
        "size": str(key.size),
        "md5Hash": base64.b64encode(hashlib.md5(key.value).digest()).decode(),
        "etag": generation,
        "timeCreated": at,
        "updated": at,
    }


def _media(key: Any, wanted: str) -> Answer:
    data: bytes = key.value
    headers = {
        "Content-Type": "application/octet-stream",
        "X-Goog-Generation": _generation(key),
        "X-Goog-Metageneration": "1",
        "X-Goog-Stored-Content-Length": str(len(data)),
        "X-Goog-Stored-Content-Encoding": "identity",
    }
    found = _RANGE.fullmatch(wanted)
    if found is None:
        return Answer(200, data, headers)
    low, high = found.groups()
    start = int(low) if low else max(0, len(data) - int(high))
    end = min(int(high) if low and high else len(data) - 1, len(data) - 1)
    if start >= len(data):
        return Answer.refusal(416)
    headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
    return Answer(206, data[start : end + 1], headers)


def _parts(content_type: str, body: bytes) -> list[bytes]:
    """What stands between the boundaries of a body of several parts, each with its headers."""
    boundary = content_type.partition("boundary=")[2].strip('"').encode()
    _, *parts, _ = body.split(b"--" + boundary)
    return [part.removeprefix(b"\r\n").removesuffix(b"\r\n") for part in parts]


def _headers(lines: Iterable[str]) -> dict[str, str]:
    """By their names in small letters."""
    pairs = (line.partition(":") for line in lines if line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
