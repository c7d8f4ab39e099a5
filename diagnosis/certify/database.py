"""What database is it, and do its dictionary and its undo behave as snapshots take them to?"""

from __future__ import annotations

import re

from diagnosis.certify.probes import (
    Answers,
    LookProbe,
    RefusedQuery,
    Verdict,
    cannot_tell,
    decided,
    first_of,
    holds,
    known_words,
    rows_of,
)

_REFERENCE = "Oracle Database Reference 19c"
_LONG_NAME = 30
_TYPES = {
    "NUMBER", "FLOAT", "BINARY_FLOAT", "BINARY_DOUBLE", "VARCHAR2", "NVARCHAR2", "CHAR", "NCHAR", "CLOB", "NCLOB", "BLOB", "BFILE",
    "RAW", "LONG", "LONG RAW", "DATE", "ROWID", "UROWID", "XMLTYPE", "JSON", "BOOLEAN", "VECTOR",
}  # fmt: skip
_WITH_PRECISION = re.compile(r"^(TIMESTAMP|INTERVAL)\b")
_UNSUPPORTED = {"BOOLEAN", "JSON", "VECTOR"}
_PARAMETER = "SELECT NAME, VALUE FROM V$PARAMETER WHERE NAME IN ({names})"
_LOGGING = {"YES", "NO", "IMPLICIT"}


def _release(answers: Answers) -> Verdict:
    versions = [str(version) for (version,) in rows_of(answers, "release")]
    majors = [int(one.partition(".")[0]) for one in versions if one[:1].isdigit()]
    if not majors:
        return cannot_tell("no version of the database is shown")
    release = f"{majors[0]}{'c' if majors[0] < 23 else 'ai'}"
    return decided(19 <= majors[0] <= 26, versions[0], release=release)


def _container(answers: Answers) -> Verdict:
    cdb, number = first_of(answers, "container")
    if cdb not in ("YES", "NO"):
        return decided(False, "V$DATABASE.CDB is neither YES nor NO")
    where = "no containers" if cdb == "NO" else (
        "the root" if str(number) == "1" else "a pluggable database"
    )  # fmt: skip
    return holds(where, is_cdb=int(cdb == "YES"))


def _platform(answers: Answers) -> Verdict:
    service, rds = first_of(answers, "service")[0], int(first_of(answers, "rds")[0])
    kind = "Autonomous Database" if service else "Amazon RDS" if rds else "neither"
    return decided(not (service and rds), kind)


def _logging_words(answers: Answers) -> Verdict:
    minimal, everything = (str(word) for word in first_of(answers, "logging"))
    words = {minimal, everything}
    return decided(
        words <= _LOGGING,
        f"MIN {known_words({minimal}, _LOGGING)}, ALL {known_words({everything}, _LOGGING)}",
    )


def _strings(answers: Answers) -> Verdict:
    found = {str(name): str(value) for name, value in rows_of(answers, "parameters")}
    size = found.get("max_string_size", "")
    return decided(size in ("STANDARD", "EXTENDED"), size if size in ("STANDARD", "EXTENDED") else "another word",
                   extended_strings=int(size == "EXTENDED"))  # fmt: skip


def _undo(answers: Answers) -> Verdict:
    found = {str(name): str(value) for name, value in rows_of(answers, "parameters")}
    seconds = int(found.get("undo_retention") or 0)
    managed = found.get("undo_management", "AUTO")
    seen = (
        f"UNDO_RETENTION {seconds} seconds, management {known_words({managed}, {'AUTO', 'MANUAL'})}"
    )
    return decided(seconds >= 900 and managed == "AUTO", seen, undo_retention=seconds)


def _dictionary_past(answers: Answers) -> Verdict:
    answer = answers["past"]
    if isinstance(answer, RefusedQuery):
        if answer.code in ("ORA-01031", "ORA-00942"):
            return cannot_tell(f"Oracle refuses the question ({answer.code})")
        return decided(False, answer.code)
    return decided(len(answer) == 1, "the dictionary can be read as of an SCN")


def _view_past(answers: Answers) -> Verdict:
    answer = answers["past"]
    if isinstance(answer, RefusedQuery):
        return holds(answer.code)
    return decided(False, "V$DATABASE can be read as of an SCN")


def _types(answers: Answers) -> Verdict:
    counts: dict[str, int] = {}
    others = 0
    for name, count in rows_of(answers, "types"):
        kind = str(name)
        if kind in _TYPES or _WITH_PRECISION.match(kind):
            counts[kind] = counts.get(kind, 0) + int(count)
        else:
            others += int(count)
    shown = [f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda one: -one[1])]
    unsupported = sum(counts.get(kind, 0) for kind in _UNSUPPORTED)
    if not counts and not others:
        return cannot_tell("no captured table is shown")
    more = [f"{others} of other types"] if others else []
    return decided(not unsupported and not others, ", ".join([*shown, *more]))


def _long_names(answers: Answers) -> Verdict:
    rows = rows_of(answers, "names")
    if not rows:
        return cannot_tell("no captured table is shown")
    longest = max(int(size) for (size,) in rows)
    return decided(longest <= _LONG_NAME, f"names of up to {longest} bytes")


def _hidden(answers: Answers) -> Verdict:
    stored, virtual, others = (int(count or 0) for count in first_of(answers, "hidden"))
    if not stored + virtual + others:
        return cannot_tell("captured tables have no hidden columns")
    return decided(not others, f"{stored} stored, {virtual} virtual, {others} neither")


def _untranslated(answers: Answers) -> Verdict:
    count = int(first_of(answers, "tables")[0])
    return decided(not count, f"{count} captured tables are named")


def _objects(answers: Answers) -> Verdict:
    tables, segments = (int(count or 0) for count in first_of(answers, "objects"))
    if not tables:
        return cannot_tell("no captured table is shown")
    return decided(segments <= tables, f"{tables} tables, {segments} with a segment of their own")


def _force_logging(answers: Answers) -> Verdict:
    word = str(first_of(answers, "forced")[0])
    return decided(word == "YES", known_words({word}, {"YES", "NO", "STANDBY NOLOGGING FOR DATA AVAILABILITY",
                                                       "STANDBY NOLOGGING FOR LOAD PERFORMANCE"}))  # fmt: skip


DATABASE_PROBES: tuple[LookProbe, ...] = (
    LookProbe(
        id="database.release",
        belief="The release is 19c or later.",
        depends="all that is known of LogMiner",
        otherwise="Older releases are not known: LOB rows, containers and views differ.",
        source=f"{_REFERENCE}, PRODUCT_COMPONENT_VERSION",
        queries={
            "release": "SELECT VERSION FROM PRODUCT_COMPONENT_VERSION WHERE PRODUCT LIKE 'Oracle%Database%'"
        },
        judge=_release,
    ),
    LookProbe(
        id="database.container",
        belief="V$DATABASE.CDB says YES or NO, and SYS_CONTEXT names the session's container.",
        depends="cdc_core/oracle/session.py, where LogMiner runs",
        otherwise="LogMiner may be started in the wrong container. Report the release.",
        source=f"{_REFERENCE}, V$DATABASE",
        queries={"container": "SELECT CDB, SYS_CONTEXT('USERENV', 'CON_ID') FROM V$DATABASE"},
        judge=_container,
    ),
    LookProbe(
        id="database.platform",
        belief="CLOUD_SERVICE names Autonomous Database, the user RDSADMIN names Amazon RDS, and never "
        "both.",
        depends="nothing yet: the report names it",
        otherwise="Nothing.",
        source="Oracle's and Amazon's manuals",
        is_needed=False,
        queries={
            "service": "SELECT SYS_CONTEXT('USERENV', 'CLOUD_SERVICE') FROM DUAL",
            "rds": "SELECT COUNT(*) FROM ALL_USERS WHERE USERNAME = 'RDSADMIN'",
        },
        judge=_platform,
    ),
    LookProbe(
        id="logging.words",
        belief="Supplemental logging of the database is YES, NO or IMPLICIT.",
        depends="cdc_core/capture/preflight.py",
        otherwise="The check of supplemental logging is wrong. Report the words.",
        source=f"{_REFERENCE}, V$DATABASE",
        queries={
            "logging": "SELECT SUPPLEMENTAL_LOG_DATA_MIN, SUPPLEMENTAL_LOG_DATA_ALL FROM V$DATABASE"
        },
        judge=_logging_words,
    ),
    LookProbe(
        id="logging.forced",
        belief="FORCE LOGGING is on, so that every row has redo.",
        depends="cdc_core/capture/stream_ends/unlogged.py",
        otherwise="A NOLOGGING load into a captured table stops that table (policies.on_unlogged).",
        source=f"{_REFERENCE}, V$DATABASE",
        is_needed=False,
        queries={"forced": "SELECT FORCE_LOGGING FROM V$DATABASE"},
        judge=_force_logging,
    ),
    LookProbe(
        id="database.string-size",
        belief="MAX_STRING_SIZE is STANDARD or EXTENDED.",
        depends="cdc_core/decode/lob.py: strings over 4,000 bytes",
        otherwise="Nothing.",
        source=f"{_REFERENCE}, MAX_STRING_SIZE",
        is_needed=False,
        queries={"parameters": _PARAMETER.format(names="'max_string_size'")},
        judge=_strings,
    ),
    LookProbe(
        id="undo.retention",
        belief="Undo is managed automatically and kept for 15 minutes at least.",
        depends="chunks, redolake reconcile, reselected LOBs",
        otherwise="Reads as of an SCN end with ORA-01555: raise UNDO_RETENTION, or use smaller chunks.",
        source=f"{_REFERENCE}, UNDO_RETENTION",
        is_needed=False,
        queries={"parameters": _PARAMETER.format(names="'undo_retention', 'undo_management'")},
        judge=_undo,
    ),
    LookProbe(
        id="flashback.dictionary",
        belief="ALL_TAB_COLS can be read as of an SCN.",
        depends="rule 19, cdc_core/schema/dictionary.py",
        otherwise="Definitions of the past are taken only from the DDL in the redo.",
        source='Database Development Guide 19c, "Using Oracle Flashback Query"',
        takes_refusals=True,
        queries={"past": "SELECT COUNT(*) FROM ALL_TAB_COLS AS OF SCN :scn WHERE ROWNUM = 0"},
        judge=_dictionary_past,
    ),
    LookProbe(
        id="flashback.fixed-view",
        belief="V$ views cannot be read as of an SCN.",
        depends="nothing: cdc_core/schema/dictionary.py does not try",
        otherwise="Nothing.",
        source='Database Development Guide 19c, "Using Oracle Flashback Query"',
        is_needed=False,
        takes_refusals=True,
        queries={"past": "SELECT COUNT(*) FROM V$LOG AS OF SCN :scn"},
        judge=_view_past,
    ),
    LookProbe(
        id="table.types",
        belief="Captured tables have columns of types that LogMiner writes rows for.",
        depends="cdc_core/schema/types.py",
        otherwise="Rows of a table with BOOLEAN, JSON or VECTOR come with code 255: the table stops "
        "at its first change.",
        source="Measured on 23ai by others",
        is_needed=False,
        queries={
            "types": "SELECT DATA_TYPE, COUNT(*) FROM ALL_TAB_COLS WHERE {tables} AND HIDDEN_COLUMN = 'NO' GROUP BY DATA_TYPE"
        },
        judge=_types,
    ),
    LookProbe(
        id="table.name-length",
        belief="Names of captured tables, their owners and columns have 30 bytes at most.",
        depends="cdc_core/preflight/redo.py",
        otherwise="LogMiner writes no statements for rows of such a table (code 255).",
        source='Database Utilities 19c, "LogMiner Requirements"; met on 23ai',
        queries={
            "names": "SELECT GREATEST(LENGTHB(OWNER), LENGTHB(TABLE_NAME), LENGTHB(COLUMN_NAME)) FROM ALL_TAB_COLS WHERE {tables}"
        },
        judge=_long_names,
    ),
    LookProbe(
        id="table.hidden-columns",
        belief="Hidden columns that are stored have a segment position, and virtual ones have none.",
        depends="cdc_core/decode/unnamed.py: COL n counts the stored ones",
        otherwise="Rows from before a DDL are decoded by the wrong column: report ALL_TAB_COLS of the "
        "table.",
        source=f"{_REFERENCE}, ALL_TAB_COLS; rows of a real dictionary",
        queries={
            "hidden": """
SELECT SUM(CASE WHEN SEGMENT_COLUMN_ID IS NOT NULL AND VIRTUAL_COLUMN = 'NO' THEN 1 ELSE 0 END),
       SUM(CASE WHEN SEGMENT_COLUMN_ID IS NULL AND VIRTUAL_COLUMN = 'YES' THEN 1 ELSE 0 END),
       SUM(CASE WHEN SEGMENT_COLUMN_ID IS NULL AND VIRTUAL_COLUMN = 'NO'
                  OR SEGMENT_COLUMN_ID IS NOT NULL AND VIRTUAL_COLUMN = 'YES' THEN 1 ELSE 0 END)
  FROM ALL_TAB_COLS WHERE {tables} AND HIDDEN_COLUMN = 'YES'"""
        },
        judge=_hidden,
    ),
    LookProbe(
        id="table.segments",
        belief="ALL_OBJECTS gives a table that is not partitioned one object number and at most one "
        "data object number.",
        depends="cdc_core/schema/segments.py",
        otherwise="Rows are not recognised after a MOVE or TRUNCATE. Report the release.",
        source=f"{_REFERENCE}, ALL_OBJECTS",
        queries={
            "objects": """
SELECT COUNT(DISTINCT O.OBJECT_ID), COUNT(O.DATA_OBJECT_ID)
  FROM ALL_OBJECTS O,
       (SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE PARTITIONED = 'NO' AND IOT_TYPE IS NULL AND {tables}) T
 WHERE O.OBJECT_TYPE = 'TABLE' AND T.OWNER = O.OWNER AND T.TABLE_NAME = O.OBJECT_NAME"""
        },
        judge=_objects,
    ),
    LookProbe(
        id="table.untranslated",
        belief="DBA_LOGSTDBY_UNSUPPORTED_TABLE names no captured table.",
        depends="cdc_core/preflight/redo.py",
        otherwise="LogMiner may not translate rows of that table: try it with redolake certify --level try "
        "before you rely on it.",
        source=f"{_REFERENCE}, DBA_LOGSTDBY_UNSUPPORTED_TABLE",
        is_needed=False,
        queries={"tables": "SELECT COUNT(*) FROM DBA_LOGSTDBY_UNSUPPORTED_TABLE WHERE {tables}"},
        judge=_untranslated,
    ),
)
"""Of the database, its dictionary, its undo, and the captured tables."""
