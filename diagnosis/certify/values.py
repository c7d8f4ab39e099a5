"""Do session settings, character sets, numbers and times behave as decoding takes them to?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from cdc_core.model.character_sets import KNOWN
from diagnosis.certify.probes import (
    Answers,
    LookProbe,
    RefusedQuery,
    Verdict,
    cannot_tell,
    decided,
    first_of,
    holds,
    rows_of,
)

_SETS = """
SELECT PARAMETER, VALUE FROM NLS_DATABASE_PARAMETERS WHERE PARAMETER IN ('NLS_CHARACTERSET', 'NLS_NCHAR_CHARACTERSET')"""
_REDACTED = """
SELECT COUNT(*)
  FROM (SELECT OBJECT_OWNER AS OWNER, OBJECT_NAME AS TABLE_NAME FROM REDACTION_POLICIES WHERE TRIM(ENABLE) = 'YES')
 WHERE {tables}"""
_EXEMPT = "SELECT COUNT(*) FROM SESSION_PRIVS WHERE PRIVILEGE = 'EXEMPT REDACTION POLICY'"
_NATIONAL = "AL16UTF16"
_GRAIN = timedelta(seconds=10)
_DATATYPES = "Oracle Call Interface Programmer's Guide 19c, internal data types"

_PRINTED = (
    "2024-02-29 01:02:03",
    "-0044-03-15 00:00:00",
    "2024-02-29 01:02:03.500000000",
    "2024-02-29 01:02:03.500000000 +02:00",
    "1.5",
)
_NUMBERS = {
    "0": "80",
    "1": "C102",
    "-1": "3E6466",
    "123.45": "C202182E",
    "1E-130": "8002",
}
"""NUMBERs and their bytes."""
_DIGITS = "12345678901234567890123456789012345678"


def _printed(answers: Answers) -> Verdict:
    row = first_of(answers, "printed")
    found = tuple(str(text).strip() for text in row)
    wrong = sum(one != wanted for one, wanted in zip(found, _PRINTED, strict=True))
    return decided(not wrong, f"{len(found) - wrong} of {len(found)} texts as expected")


def _unredacted(answers: Answers) -> Verdict:
    exempt, found = answers["exempt"], answers["policies"]
    if not isinstance(exempt, RefusedQuery) and first_of(answers, "exempt")[0]:
        return holds("the capture user is exempt from redaction")
    if isinstance(found, RefusedQuery):
        return cannot_tell(f"the capture user may not look ({found.code})")
    policies = int(first_of(answers, "policies")[0])
    return decided(not policies, f"{policies} redaction policies on the captured tables")


def _binary_order(answers: Answers) -> Verdict:
    found = len(rows_of(answers, "order"))
    return decided(
        found == 1, "text is ordered by its bytes" if found else "text is ordered by a language"
    )


def _zone(answers: Answers) -> Verdict:
    database, session = (str(zone) for zone in first_of(answers, "zones"))
    is_utc = session in ("+00:00", "00:00", "UTC")
    return decided(is_utc, f"session {'at UTC' if is_utc else 'elsewhere'}, DBTIMEZONE {database}",
                   time_zone=database)  # fmt: skip


def _sets(answers: Answers) -> Verdict:
    found = {str(name): str(value) for name, value in rows_of(answers, "sets")}
    own, national = found.get("NLS_CHARACTERSET", ""), found.get("NLS_NCHAR_CHARACTERSET", "")
    return decided(own in KNOWN, f"{own}, national {national}",
                   character_set=own, national_character_set=national)  # fmt: skip


def _national(answers: Answers) -> Verdict:
    found = {str(name): str(value) for name, value in rows_of(answers, "sets")}
    national = found.get("NLS_NCHAR_CHARACTERSET", "")
    return decided(national == _NATIONAL, national)


def _number_bytes(answers: Answers) -> Verdict:
    row = first_of(answers, "bytes")
    found = [bytes(one).hex().upper() for one in row]
    wrong = sum(one != wanted for one, wanted in zip(found, _NUMBERS.values(), strict=True))
    return decided(not wrong, f"{len(found) - wrong} of {len(found)} numbers as expected")


def _exact_numbers(answers: Answers) -> Verdict:
    row = first_of(answers, "numbers")
    wanted = (Decimal(_DIGITS), Decimal(f"-0.{_DIGITS}"), Decimal("1E+125"), Decimal("1E-130"))
    wrong = sum(Decimal(one) != other for one, other in zip(row, wanted, strict=True))
    return decided(not wrong, f"{len(row) - wrong} of {len(row)} numbers to the last digit")


def _floats(answers: Answers) -> Verdict:
    nan, infinity, negative = (float(one) for one in first_of(answers, "floats"))
    good = math.isnan(nan) and infinity == math.inf and negative == -math.inf
    return decided(good, "NaN and both infinities arrive" if good else "one arrives otherwise")


def _empty_text(answers: Answers) -> Verdict:
    is_null = len(rows_of(answers, "empty")) == 1
    return decided(is_null, "'' is NULL" if is_null else "'' is not NULL")


def _scn_time(answers: Answers) -> Verdict:
    found, now = first_of(answers, "times")
    if not isinstance(found, datetime) or not isinstance(now, datetime):
        return cannot_tell("no time is given")
    off = abs(now.replace(tzinfo=None) - found.replace(tzinfo=None))
    return decided(off <= _GRAIN, f"{off.total_seconds():.1f} seconds from the clock of the host")


def _old_scn(answers: Answers) -> Verdict:
    answer = answers["old"]
    if isinstance(answer, RefusedQuery):
        return decided(answer.code in ("ORA-08180", "ORA-08181"), answer.code)
    return decided(False, "a time is given")


def _steps(answers: Answers) -> Verdict:
    """How many SCNs share a time: SCN_TO_TIMESTAMP of neighbours."""
    row = [one for one in first_of(answers, "times") if isinstance(one, datetime)]
    if len(row) < 2:
        return cannot_tell("no time is given")
    in_order = all(earlier <= later for earlier, later in pairwise(row))
    return decided(in_order, f"{len(set(row))} times for {len(row)} SCNs")


def _columns(names: Sequence[Any]) -> str:
    return ", ".join(map(str, names))


VALUE_PROBES: tuple[LookProbe, ...] = (
    LookProbe(
        id="nls.formats",
        belief="The session's NLS settings print dates with the sign of the year, nine fractional "
        "digits, numeric offsets and a decimal point.",
        depends="cdc_core/oracle/session.py (SETTINGS), cdc_core/decode/literals.py",
        otherwise="Literals of SQL_REDO cannot be read. Look for a logon trigger that sets NLS.",
        source="SQL Language Reference 19c, Format Models",
        queries={
            "printed": """
SELECT TO_CHAR(TO_DATE('2024-02-29 01:02:03', 'YYYY-MM-DD HH24:MI:SS')),
       TO_CHAR(TO_DATE('0044-03-15 BC', 'YYYY-MM-DD BC')), TO_CHAR(TIMESTAMP '2024-02-29 01:02:03.5'),
       TO_CHAR(TIMESTAMP '2024-02-29 01:02:03.5 +02:00'), TO_CHAR(1.5) FROM DUAL"""
        },
        judge=_printed,
    ),
    LookProbe(
        id="nls.binary-order",
        belief="Text is compared by its bytes, whatever NLS_SORT of the instance is.",
        depends="cdc_core/snapshot/plan.py: ranges of text keys",
        otherwise="Chunks of text keys may miss rows. Look for a logon trigger that sets NLS_COMP.",
        source="Globalization Support Guide 19c, NLS_COMP",
        queries={"order": "SELECT 1 FROM DUAL WHERE 'a' > 'B'"},
        judge=_binary_order,
    ),
    LookProbe(
        id="nls.time-zone",
        belief="The session's time zone is UTC.",
        depends="TIMESTAMP WITH LOCAL TIME ZONE on both paths",
        otherwise="Such values shift. Look for a logon trigger that sets TIME_ZONE.",
        source="SQL Language Reference 19c, ALTER SESSION",
        queries={"zones": "SELECT DBTIMEZONE, SESSIONTIMEZONE FROM DUAL"},
        judge=_zone,
    ),
    LookProbe(
        id="charset.database",
        belief="The database's character set is one whose bytes Redolake can decode.",
        depends="cdc_core/decode/character_sets.py",
        otherwise="Text in rows from before a DDL, and binary documents, go to quarantine; all other "
        "text is not affected.",
        source="Globalization Support Guide 19c, appendix A",
        is_needed=False,
        queries={"sets": _SETS},
        judge=_sets,
    ),
    LookProbe(
        id="charset.national",
        belief="The national character set is AL16UTF16.",
        depends="cdc_core/preflight/redo.py",
        otherwise="The driver reads no national columns (DPY-3012): leave them out.",
        source="Globalization Support Guide 19c; python-oracledb's manual",
        is_needed=False,
        queries={"sets": _SETS},
        judge=_national,
    ),
    LookProbe(
        id="value.number-bytes",
        belief="UTL_RAW.CAST_FROM_NUMBER gives the bytes in which Oracle stores a NUMBER.",
        depends="NUMBER without a scale in chunks; cdc_core/decode/column_forms.py",
        otherwise="Such columns arrive wrong: capture them with columns_as, and report the release.",
        source=_DATATYPES,
        queries={
            "bytes": "SELECT "
            + _columns([f"SYS.UTL_RAW.CAST_FROM_NUMBER({one})" for one in _NUMBERS])
            + " FROM DUAL"
        },
        judge=_number_bytes,
    ),
    LookProbe(
        id="value.number-digits",
        belief="The driver brings NUMBERs of 38 digits, and the largest and smallest ones, exactly.",
        depends="rule 8, cdc_core/oracle/session.py",
        otherwise="Snapshots would round. Report the versions of driver and database.",
        source="SQL Language Reference 19c, NUMBER",
        queries={"numbers": f"SELECT {_DIGITS}, -0.{_DIGITS}, 1E125, 1E-130 FROM DUAL"},
        judge=_exact_numbers,
    ),
    LookProbe(
        id="value.float-specials",
        belief="NaN and infinities of BINARY_FLOAT and BINARY_DOUBLE arrive as themselves.",
        depends="rule 8, cdc_core/oracle/session.py",
        otherwise="Such values differ between snapshot and redo. Report the versions.",
        source="SQL Language Reference 19c, Floating-Point Numbers",
        queries={
            "floats": "SELECT BINARY_DOUBLE_NAN, BINARY_DOUBLE_INFINITY, -BINARY_FLOAT_INFINITY FROM DUAL"
        },
        judge=_floats,
    ),
    LookProbe(
        id="value.empty-text",
        belief="An empty text is NULL.",
        depends="cdc_core/decode/literals.py",
        otherwise="Empty texts would be lost. Report the release.",
        source="SQL Language Reference 19c, Nulls",
        queries={"empty": "SELECT 1 FROM DUAL WHERE '' IS NULL"},
        judge=_empty_text,
    ),
    LookProbe(
        id="value.redaction",
        belief="Queries of the capture user give the values that the redo has: Data Redaction masks "
        "no captured table, or the user is exempt from it.",
        depends="cdc_core/oracle/hidden_rows.py, cdc_core/preflight/rows.py, rule 8",
        otherwise="Snapshots and comparisons of these tables are refused until GRANT EXEMPT "
        "REDACTION POLICY.",
        source="Advanced Security Guide 19c, Oracle Data Redaction; Database Reference 19c, "
        "REDACTION_POLICIES",
        takes_refusals=True,
        queries={"policies": _REDACTED, "exempt": _EXEMPT},
        judge=_unredacted,
    ),
    LookProbe(
        id="time.of-scn",
        belief="SCN_TO_TIMESTAMP of the present SCN is the clock of the host, to ten seconds.",
        depends="cdc_core/oracle/times.py, cdc_core/model/scn.py (SLACK_SECONDS)",
        otherwise="Snapshots may start too near a DDL (ORA-01466), and times of windows are off.",
        source="Three seconds were measured by others; PL/SQL and SQL references 19c",
        queries={
            "times": "SELECT SCN_TO_TIMESTAMP(CURRENT_SCN), CAST(SYSTIMESTAMP AS TIMESTAMP) FROM V$DATABASE"
        },
        judge=_scn_time,
    ),
    LookProbe(
        id="time.of-old-scn",
        belief="SCN_TO_TIMESTAMP of an SCN that is too old raises ORA-08181 or ORA-08180.",
        depends="cdc_core/oracle/times.py",
        otherwise="Times of old windows fail instead of being left out. Report the code.",
        source="SQL Language Reference 19c, SCN_TO_TIMESTAMP",
        takes_refusals=True,
        queries={"old": "SELECT SCN_TO_TIMESTAMP(1) FROM DUAL"},
        judge=_old_scn,
    ),
    LookProbe(
        id="time.order",
        belief="Times of ascending SCNs never go back.",
        depends="cdc_core/oracle/times.py",
        otherwise="Times of windows may be out of order; nothing is decided by them.",
        source="SQL Language Reference 19c, SCN_TO_TIMESTAMP",
        is_needed=False,
        queries={
            "times": "SELECT SCN_TO_TIMESTAMP(CURRENT_SCN - 20), SCN_TO_TIMESTAMP(CURRENT_SCN - 10), "
            "SCN_TO_TIMESTAMP(CURRENT_SCN) FROM V$DATABASE"
        },
        judge=_steps,
    ),
)
"""Of settings, character sets, numbers and times."""
