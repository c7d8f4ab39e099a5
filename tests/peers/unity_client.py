"""Does Unity Catalog's own client for Python know what Redolake sends to its REST API? Run by a Python of its own, which has that client: prints
the kinds of each table's columns as JSON. Argument: a file with the bodies of the requests."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    models = import_module("unitycatalog.client.models")
    found = {}
    for body in json.loads(Path(sys.argv[1]).read_text()):
        table = models.CreateTable.from_dict(body)
        assert json.loads(table.to_json()) == body
        found[table.name] = {one.name: one.type_name.value for one in table.columns}
    print(json.dumps(found))
