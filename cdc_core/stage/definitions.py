"""Which columns does the table of schema changes have?"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

DefinitionChange = Literal["CREATE", "ALTER", "DROP", "TRUNCATE"]
"""``CREATE`` is a table's first definition: what its first snapshot read."""

SCHEMA_CHANGES = pa.schema(
    [
        ("owner", pa.string()),
        ("table_name", pa.string()),
        ("scn", pa.int64()),
        ("type", pa.string()),
        ("timestamp", pa.timestamp("us")),
        ("ddl", pa.string()),
        ("changes", pa.list_(pa.string())),
        ("is_followed", pa.bool_()),
        (
            "columns",
            pa.list_(
                pa.struct(
                    [
                        ("name", pa.string()),
                        ("type", pa.string()),
                        ("nullable", pa.bool_()),
                        ("default", pa.string()),
                        ("type_name", pa.string()),
                        ("length", pa.int32()),
                        ("scale", pa.int32()),
                        ("position", pa.int32()),
                        ("previous_name", pa.string()),
                        ("identity", pa.bool_()),
                        ("character_set", pa.string()),
                    ]
                )
            ),
        ),
        ("key", pa.list_(pa.string())),
        ("scn_high", pa.int64()),
    ]
)
"""One row per change of a table's definition; ``owner, table_name, scn, type`` name it. ``columns``
and ``key`` are NULL where the table left the stream (``is_followed`` is false). ``type_name``,
``length`` (a number's digits, a text's characters) and ``scale`` are the parts of ``type``;
``position`` counts the captured columns from 1 on; ``previous_name`` is what the change renamed;
``identity`` says that Oracle numbers it, ``character_set`` in which one Oracle stores its text."""
