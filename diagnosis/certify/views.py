"""Do Oracle's views have the columns that Redolake reads, of the types that it reads them as?"""

from __future__ import annotations

from collections.abc import Callable

from diagnosis.certify.probes import (
    Answers,
    LookProbe,
    RefusedQuery,
    Verdict,
    cannot_tell,
    decided,
    otherwise,
)

_KINDS = {
    "N": {"DB_TYPE_NUMBER", "DB_TYPE_BINARY_INTEGER"},
    "V": {"DB_TYPE_VARCHAR", "DB_TYPE_CHAR", "DB_TYPE_LONG"},
    "D": {"DB_TYPE_DATE"},
    "R": {"DB_TYPE_RAW"},
}
_NO_COLUMN = "ORA-00904"
_REFERENCE = "Oracle Database Reference 19c"

VIEWS: dict[str, tuple[str, str]] = {
    "V$DATABASE": (
        "cdc_core/capture/logs/positions.py",
        "CURRENT_SCN:N RESETLOGS_CHANGE#:N RESETLOGS_TIME:D NAME:V DBID:N CON_DBID:N CDB:V LOG_MODE:V DATABASE_ROLE:V OPEN_MODE:V "
        "SUPPLEMENTAL_LOG_DATA_MIN:V SUPPLEMENTAL_LOG_DATA_ALL:V FORCE_LOGGING:V",
    ),
    "V$LOG": (
        "cdc_core/capture/logs/coverage.py",
        "GROUP#:N THREAD#:N SEQUENCE#:N BYTES:N STATUS:V FIRST_CHANGE#:N NEXT_CHANGE#:N",
    ),
    "V$LOGFILE": ("cdc_core/capture/logs/coverage.py", "GROUP#:N MEMBER:V"),
    "V$ARCHIVED_LOG": (
        "cdc_core/capture/logs/coverage.py",
        "THREAD#:N SEQUENCE#:N NAME:V FIRST_CHANGE#:N NEXT_CHANGE#:N BLOCKS:N BLOCK_SIZE:N STATUS:V ARCHIVED:V DEST_ID:N "
        "COMPLETION_TIME:D FIRST_TIME:D STANDBY_DEST:V RESETLOGS_CHANGE#:N RESETLOGS_TIME:D DICTIONARY_BEGIN:V DICTIONARY_END:V",
    ),
    "V$THREAD": (
        "cdc_core/capture/logs/coverage.py",
        "THREAD#:N STATUS:V ENABLED:V ENABLE_CHANGE#:N DISABLE_CHANGE#:N CHECKPOINT_CHANGE#:N LAST_REDO_CHANGE#:N",
    ),
    "V$TRANSACTION": ("cdc_core/capture/logs/positions.py", "XID:R START_SCN:N USED_UREC:N"),
    "GV$TRANSACTION": ("cdc_core/capture/logs/positions.py", "XID:R START_SCN:N USED_UREC:N"),
    "GV$SESSION": ("cdc_core/capture/transactions/orphans.py", "SID:N SERIAL#:N"),
    "V$LOGMNR_CONTENTS": (
        "cdc_core/capture/passes/mining.py",
        "SCN:N OPERATION_CODE:N ROLLBACK:N CSF:N STATUS:N THREAD#:N SSN:N DATA_OBJ#:N DATA_OBJV#:N DATA_OBJD#:N SEQUENCE#:N "
        "START_SCN:N SRC_CON_ID:N SRC_CON_NAME:V SESSION#:N SERIAL#:N TIMESTAMP:D XID:R SEG_OWNER:V TABLE_NAME:V ROW_ID:V INFO:V "
        "RS_ID:V USERNAME:V CLIENT_ID:V SQL_REDO:V",
    ),
    "V$LOGMNR_LOGS": (
        "cdc_core/capture/logs/naming.py",
        "STATUS:N THREAD_ID:N THREAD_SQN:N LOW_SCN:N FILENAME:V",
    ),
    "V$PDBS": ("cdc_core/capture/preflight.py", "NAME:V OPEN_MODE:V"),
    "V$PDB_INCARNATION": (
        "cdc_core/capture/stream_ends/unlogged.py",
        "END_RESETLOGS_SCN:N CON_ID:N",
    ),
    "V$DATAFILE": (
        "cdc_core/capture/stream_ends/unlogged.py",
        "TS#:N CON_ID:N UNRECOVERABLE_CHANGE#:N",
    ),
    "V$TABLESPACE": ("cdc_core/capture/stream_ends/unlogged.py", "TS#:N CON_ID:N NAME:V"),
    "V$ARCHIVE_DEST_STATUS": ("cdc_core/capture/preflight.py", "DEST_NAME:V STATUS:V TYPE:V"),
    "ALL_TABLES": (
        "cdc_core/schema/catalog.py",
        "OWNER:V TABLE_NAME:V NUM_ROWS:N TEMPORARY:V NESTED:V SECONDARY:V IOT_TYPE:V PARTITIONED:V CLUSTER_NAME:V DROPPED:V "
        "TABLESPACE_NAME:V",
    ),
    "ALL_TAB_COLS": (
        "cdc_core/schema/dictionary.py",
        "OWNER:V TABLE_NAME:V COLUMN_NAME:V DATA_TYPE:V DATA_LENGTH:N CHAR_LENGTH:N DATA_PRECISION:N DATA_SCALE:N NULLABLE:V "
        "HIDDEN_COLUMN:V USER_GENERATED:V VIRTUAL_COLUMN:V SEGMENT_COLUMN_ID:N INTERNAL_COLUMN_ID:N COLLATION:V",
    ),
    "ALL_CONSTRAINTS": (
        "cdc_core/schema/dictionary.py",
        "OWNER:V CONSTRAINT_NAME:V CONSTRAINT_TYPE:V TABLE_NAME:V STATUS:V VALIDATED:V DEFERRABLE:V R_OWNER:V R_CONSTRAINT_NAME:V "
        "DELETE_RULE:V",
    ),
    "ALL_CONS_COLUMNS": (
        "cdc_core/schema/dictionary.py",
        "OWNER:V CONSTRAINT_NAME:V TABLE_NAME:V COLUMN_NAME:V POSITION:N",
    ),
    "ALL_INDEXES": (
        "cdc_core/schema/dictionary.py",
        "OWNER:V INDEX_NAME:V INDEX_TYPE:V TABLE_OWNER:V TABLE_NAME:V UNIQUENESS:V",
    ),
    "ALL_IND_COLUMNS": (
        "cdc_core/schema/dictionary.py",
        "INDEX_OWNER:V INDEX_NAME:V TABLE_OWNER:V TABLE_NAME:V COLUMN_NAME:V COLUMN_POSITION:N",
    ),
    "ALL_OBJECTS": (
        "cdc_core/schema/segments.py",
        "OWNER:V OBJECT_NAME:V SUBOBJECT_NAME:V OBJECT_ID:N DATA_OBJECT_ID:N OBJECT_TYPE:V LAST_DDL_TIME:D",
    ),
    "ALL_LOG_GROUPS": (
        "cdc_core/preflight/redo.py",
        "OWNER:V TABLE_NAME:V LOG_GROUP_TYPE:V",
    ),
    "ALL_USERS": ("cdc_core/schema/catalog.py", "USERNAME:V ORACLE_MAINTAINED:V"),
    "NLS_DATABASE_PARAMETERS": ("cdc_core/schema/dictionary.py", "PARAMETER:V VALUE:V"),
    "V$PARAMETER": ("cdc_core/preflight/tables.py", "NAME:V VALUE:V"),
}
"""Per view the module that reads it, and its columns with N for NUMBER, V for text, D for DATE and
R for RAW."""


def view_probes() -> tuple[LookProbe, ...]:
    """One probe for each view."""
    return tuple(
        _probe(view, module, dict(_pair(word) for word in columns.split()))
        for view, (module, columns) in VIEWS.items()
    )


def _probe(view: str, module: str, columns: dict[str, str]) -> LookProbe:
    return LookProbe(
        id=f"view.{view.lower()}",
        belief=f"{view} has the {len(columns)} columns that Redolake reads, of the types that it "
        "reads them as.",
        depends=module,
        otherwise="What reads the view fails with ORA-00904, or reads another value. Report the "
        "release.",
        source=f"{_REFERENCE}, {view}",
        queries={"columns": f"SELECT {', '.join(columns)} FROM {view}"},
        is_described=True,
        takes_refusals=True,
        judge=_judge(columns),
    )


def _judge(columns: dict[str, str]) -> Callable[[Answers], Verdict]:
    def judge(answers: Answers) -> Verdict:
        answer = answers["columns"]
        if isinstance(answer, RefusedQuery):
            if answer.code == _NO_COLUMN:
                return otherwise("a column is not there (ORA-00904)")
            return cannot_tell(f"the view cannot be described ({answer.code})")
        types: dict[str, str] = {str(name): str(kind) for name, kind in answer}
        wrong = [
            f"{name} is {types.get(name, 'missing')}"
            for name, kind in columns.items()
            if types.get(name) not in _KINDS[kind]
        ]
        return decided(not wrong, "; ".join(wrong) or f"{len(columns)} columns as expected")

    return judge


def _pair(word: str) -> tuple[str, str]:
    name, _, kind = word.partition(":")
    return name, kind
