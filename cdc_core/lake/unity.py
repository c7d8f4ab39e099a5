"""How does a Unity Catalog get names of Delta tables through its REST API, without Spark?

The API is the same for Databricks and for the open-source server. A table is an external one at its
folder; its columns are shown as they were when it got its name, and readers take those of the Delta
log. Source: the API's specification, resources Schemas and Tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

from cdc_core.config import UnityConfig
from cdc_core.delta.history import DeltaLog, read_log
from cdc_core.errors import LakeError

_API = "/api/2.1/unity-catalog"
_TIMEOUT_SECONDS = 30
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_SQL = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_NAMES = {"integer": "INT"}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


class _NoRedirects(HTTPRedirectHandler):
    """Elsewhere the token has no business, and a POST would become a GET, which changes nothing."""

    def redirect_request(self, *_: object) -> None:
        """None: the redirection is an error."""


_OPENER = build_opener(_NoRedirects)


@dataclass(frozen=True, slots=True)
class UnityNames:
    """The names in a Unity Catalog: ``catalog.schema.table``. Methods are those of
    :class:`cdc_core.lake.catalog.Names`."""

    config: UnityConfig

    def place(self, name: str) -> str | None:
        found = self._ask("GET", f"/tables/{quote(name)}")
        return None if found is None else str(found.get("storage_location") or "")

    def create(self, name: str, path: str) -> None:
        catalog, schema, table = name.split(".")
        log = read_log(path)
        if log is None:
            raise LakeError("there is no Delta table to register", hint="Try again.", path=path)
        if self._ask("GET", f"/schemas/{quote(f'{catalog}.{schema}')}") is None:
            self._ask("POST", "/schemas", {"name": schema, "catalog_name": catalog})
        body = {
            "name": table,
            "catalog_name": catalog,
            "schema_name": schema,
            "table_type": "EXTERNAL",
            "data_source_format": "DELTA",
            "storage_location": _location(path),
            "columns": _columns(log),
            "properties": {n: v for n, v in log.properties.items() if n.startswith("redolake.")},
        }
        self._ask("POST", "/tables", body)

    def drop(self, name: str) -> None:
        self._ask("DELETE", f"/tables/{quote(name)}")

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """The answer; None where what was asked for is not there."""
        headers = {"Content-Type": "application/json"}
        if (token := self.config.token) is not None:
            headers["Authorization"] = f"Bearer {token.get_secret_value()}"
        data = None if body is None else json.dumps(body).encode()
        url = f"{self.config.uri.rstrip('/')}{_API}{path}"
        request = Request(url, data, headers, method=method)  # noqa: S310  # http alone
        facts = {"uri": self.config.uri, "asked": f"{method} {path}"}
        try:
            with _OPENER.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                return dict(json.loads(answer.read() or b"{}"))
        except HTTPError as error:
            if error.code == 404 and method != "POST":
                return None
            if error.code in _PASSING:
                raise _unreachable(facts, f"status {error.code}") from error
            said = error.read().decode(errors="replace")[:300]
            raise LakeError(
                "Unity Catalog refused",
                hint="Check lake.catalog.unity.uri, lake.catalog.catalog, which must exist, and what the token may do.",
                **facts,
                status=error.code,
                said=said,
            ) from error
        except (OSError, HTTPException, ValueError) as error:  # a page that is no JSON, too
            raise _unreachable(facts, type(error).__name__) from error


def _unreachable(facts: Mapping[str, object], cause: str) -> LakeError:
    return LakeError(
        "Unity Catalog does not answer",
        hint="Check lake.catalog.unity.uri. The next round tries again.",
        **facts,
        cause=cause,
    )


def _location(path: str) -> str:
    if "://" not in path:
        return Path(path).absolute().as_uri()
    return re.sub(r"^s3[an]://", "s3://", path)


def _columns(log: DeltaLog) -> list[dict[str, Any]]:
    fields = json.loads(log.metadata["schemaString"])["fields"]
    return [_column(position, one) for position, one in enumerate(fields)]


def _column(position: int, field: Mapping[str, Any]) -> dict[str, Any]:
    kind = field["type"]
    simple = kind if isinstance(kind, str) else str(kind["type"])
    more: dict[str, Any] = {}
    if (decimal := _DECIMAL.fullmatch(simple)) is not None:
        more |= {"type_precision": int(decimal[1]), "type_scale": int(decimal[2])}
    if comment := (field.get("metadata") or {}).get("comment"):
        more["comment"] = comment
    return {
        "name": field["name"],
        "type_text": _type_text(kind),
        "type_json": json.dumps({**field, "metadata": {}}),
        "type_name": _NAMES.get(simple, simple.partition("(")[0].upper()),
        "position": position,
        "nullable": field["nullable"],
        **more,
    }


def _type_text(kind: Any) -> str:
    """A type of Delta's schema as SQL has it."""
    if isinstance(kind, str):
        return _SQL.get(kind, kind.replace(" ", ""))
    if kind["type"] == "array":
        return f"array<{_type_text(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_type_text(kind['keyType'])},{_type_text(kind['valueType'])}>"
    parts = ",".join(f"`{one['name']}`:{_type_text(one['type'])}" for one in kind["fields"])
    return f"struct<{parts}>"
