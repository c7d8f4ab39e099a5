"""What do ALL_POLICIES and the views of Data Redaction show?

Source: Oracle Database Reference 19c, ALL_POLICIES, REDACTION_POLICIES, REDACTION_COLUMNS.
"""

from __future__ import annotations

from collections.abc import Iterator

from oracle_embedded.engine.dictionary.registry import Row, View, Views
from oracle_embedded.engine.storage.catalog import TableDef

VIEWS = Views()

_KINDS = {
    0: "NO REDACTION",
    1: "FULL REDACTION",
    2: "PARTIAL REDACTION",
    6: "NULLIFY REDACTION",
}


def _tables(view: View) -> Iterator[TableDef]:
    return (item for item in view.definitions() if isinstance(item, TableDef))


@VIEWS.family(
    "POLICIES",
    "OBJECT_OWNER:v128 OBJECT_NAME:v128 POLICY_GROUP:v128 POLICY_NAME:v128 PF_OWNER:v128 PACKAGE:v128 FUNCTION:v128 SEL:v3 INS:v3"
    " UPD:v3 DEL:v3 IDX:v3 CHK_OPTION:v3 ENABLE:v3 STATIC_POLICY:v3 POLICY_TYPE:v24 LONG_PREDICATE:v3 COMMON:v3 INHERITED:v3",
    owner="OBJECT_OWNER",
    object_name="OBJECT_NAME",
)
def _policies(view: View) -> Iterator[Row]:
    for table in _tables(view):
        for policy in table.policies:
            package, _, function = policy.function.rpartition(".")
            yield {
                "OBJECT_OWNER": table.owner, "OBJECT_NAME": table.name, "POLICY_GROUP": "SYS_DEFAULT", "POLICY_NAME": policy.name,
                "PF_OWNER": policy.owner, "PACKAGE": package, "FUNCTION": function, "SEL": _said("SELECT" in policy.kinds),
                "INS": _said("INSERT" in policy.kinds), "UPD": _said("UPDATE" in policy.kinds), "DEL": _said("DELETE" in policy.kinds),
                "IDX": "NO", "CHK_OPTION": _said(policy.update_check), "ENABLE": _said(policy.enabled), "STATIC_POLICY": "NO",
                "POLICY_TYPE": "DYNAMIC", "LONG_PREDICATE": "NO", "COMMON": "NO", "INHERITED": "NO",
            }  # fmt: skip


@VIEWS.single(
    "REDACTION_POLICIES",
    "OBJECT_OWNER:v128 OBJECT_NAME:v128 POLICY_NAME:v128 EXPRESSION:v4000 ENABLE:v7 POLICY_DESCRIPTION:v4000",
)
def _redactions(view: View) -> Iterator[Row]:
    for table in _tables(view):
        if table.redaction is not None:
            policy = table.redaction
            yield {
                "OBJECT_OWNER": table.owner, "OBJECT_NAME": table.name, "POLICY_NAME": policy.name, "EXPRESSION": policy.expression,
                "ENABLE": f"{_said(policy.enabled):<7}", "POLICY_DESCRIPTION": policy.description,
            }  # fmt: skip


@VIEWS.single(
    "REDACTION_COLUMNS",
    "OBJECT_OWNER:v128 OBJECT_NAME:v128 COLUMN_NAME:v128 FUNCTION_TYPE:v27 FUNCTION_PARAMETERS:v1000 REGEXP_PATTERN:v512"
    " REGEXP_REPLACE_STRING:v4000 REGEXP_POSITION:n REGEXP_OCCURRENCE:n REGEXP_MATCH_PARAMETER:v10 COLUMN_DESCRIPTION:v4000",
)
def _redacted_columns(view: View) -> Iterator[Row]:
    for table in _tables(view):
        for column in table.redaction.columns if table.redaction is not None else ():
            found = table.by_id.get(column.internal_id)
            if found is not None:
                yield {
                    "OBJECT_OWNER": table.owner, "OBJECT_NAME": table.name, "COLUMN_NAME": found.name,
                    "FUNCTION_TYPE": _KINDS[column.kind], "FUNCTION_PARAMETERS": column.parameters, "REGEXP_POSITION": 0,
                    "REGEXP_OCCURRENCE": 0,
                }  # fmt: skip


def _said(is_so: bool) -> str:
    return "YES" if is_so else "NO"
