"""How are scratch tables written? The one session that does, in a schema that the user names, for
`redolake certify --level try`.

It logs on as the schema's owner, and sends no statement that is not about its own tables.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from pydantic import SecretStr

from cdc_core.config import OracleConfig
from cdc_core.errors import CdcError, OracleUnavailableError, PreflightError
from cdc_core.oracle.session import OracleSession, connect

_LOG = logging.getLogger(__name__)

PREFIX = "REDOLAKE_CERTIFY_"
"""Of every table that is created, changed and dropped here."""

_TABLE = rf"{PREFIX}\w+"
_OWN = re.compile(
    rf"""(?: COMMIT | ROLLBACK (?:\ TO\ \w+)? | SAVEPOINT\ \w+
       | INSERT\ (?:/\*\+\ APPEND\ \*/\ )?INTO\ {_TABLE}\b.* | MERGE\ INTO\ {_TABLE}\b.* | UPDATE\ {_TABLE}\b.* | DELETE\ FROM\ {_TABLE}\b.*
       | (?:CREATE|ALTER|DROP|TRUNCATE)\ TABLE\ {_TABLE}\b.*
       | FLASHBACK\ TABLE\ {_TABLE}\ TO\ BEFORE\ DROP | PURGE\ TABLE\ {_TABLE}
       | BEGIN\ DBMS_REDEFINITION\.(?:START|FINISH|ABORT)_REDEF_TABLE\('\w+',\ '{_TABLE}',\ '{_TABLE}'\);\ END;
       | CREATE\ (?:UNIQUE\ )?INDEX\ {_TABLE}\ ON\ {_TABLE}\b.*
       | COMMENT\ ON\ (?:TABLE|COLUMN)\ {_TABLE}\b.*
       | GRANT\ SELECT,\ FLASHBACK\ ON\ {_TABLE}\ TO\ .*
       | SELECT\ \w+\ FROM\ {_TABLE}\ WHERE\ ID\ =\ \d+\ FOR\ UPDATE )\Z""",
    re.VERBOSE | re.DOTALL,
)
_LIKE = PREFIX.replace("_", "!_")
_FOREIGN = f"""
SELECT COUNT(*) FROM USER_OBJECTS
 WHERE OBJECT_NAME NOT LIKE '{_LIKE}%' ESCAPE '!' AND OBJECT_NAME NOT LIKE 'BIN$%'
   AND OBJECT_NAME NOT LIKE 'MLOG$!_{_LIKE}%' ESCAPE '!' AND OBJECT_NAME NOT LIKE 'RUPD$!_{_LIKE}%' ESCAPE '!'
   AND OBJECT_TYPE IN ('TABLE', 'VIEW', 'SEQUENCE', 'PROCEDURE',
       'FUNCTION', 'PACKAGE', 'TRIGGER', 'TYPE', 'MATERIALIZED VIEW', 'SYNONYM', 'CLUSTER')"""
_OWN_TABLES = f"""
SELECT TABLE_NAME FROM USER_TABLES WHERE TABLE_NAME LIKE '{_LIKE}%' ESCAPE '!' ORDER BY TABLE_NAME"""
_OWN_IN_BIN = f"""
SELECT ORIGINAL_NAME FROM USER_RECYCLEBIN WHERE TYPE = 'TABLE' AND ORIGINAL_NAME LIKE '{_LIKE}%' ESCAPE '!'"""
INTERIM = "_I"
"""Behind the name of a scratch table: the table that it is redefined with."""
_ABORT = "BEGIN DBMS_REDEFINITION.ABORT_REDEF_TABLE('{owner}', '{table}', '{interim}'); END;"


class ScratchSession(OracleSession):
    """A session of a scratch schema's owner."""

    def run(self, sql: str) -> None:
        """Run a statement about scratch tables, or one that ends a transaction.

        Raises:
            PreflightError: It is about something else; nothing was sent.
        """
        self._check(sql)
        with self._cursor(sql) as cursor:
            cursor.execute(sql)

    @staticmethod
    def _check(sql: str) -> None:
        if _OWN.match(sql.strip()) is None:
            raise PreflightError(
                "this statement is not about a scratch table",
                hint=f"Scratch tables are those whose names begin with {PREFIX}.",
                statement=sql.split(None, 1)[0],
            )

    def write_lob(self, locator: str, text: str, offset: int) -> None:
        """Write into the LOB of the row that a SELECT … FOR UPDATE of a scratch table gives, from
        a character on (1 is the first, as DBMS_LOB counts)."""
        self._check(locator)
        with self._cursor(locator) as cursor:
            cursor.execute(locator)
            [(lob,)] = cursor.fetchall()
            lob.write(text, offset)

    def own_tables(self) -> list[str]:
        """The scratch tables that are there."""
        return [str(name) for (name,) in self.fetch_all(_OWN_TABLES)]

    def drop_own_tables(self) -> int:
        """Drop every scratch table for good, also those of the recycle bin; says how many there
        were. A redefinition that was not finished is given up first: its interim table cannot be
        dropped before."""
        tables = self.own_tables()
        for name in tables:
            if name.endswith(INTERIM):
                self._give_up(name.removesuffix(INTERIM), name)
        for name in tables:
            self.run(f"DROP TABLE {name} CASCADE CONSTRAINTS PURGE")
        recycled = self.fetch_all(_OWN_IN_BIN)
        for (name,) in recycled:
            self.run(f"PURGE TABLE {name}")
        return len(tables) + len(recycled)

    def _give_up(self, table: str, interim: str) -> None:
        try:
            self.run(_ABORT.format(owner=self.user, table=table, interim=interim))
        except OracleUnavailableError:
            raise
        except CdcError as error:
            _LOG.debug("no redefinition of %s is open: %s", table, error)

    def refuse_foreign(self) -> None:
        """Refuse a schema that holds anything but scratch tables.

        Raises:
            PreflightError: It does.
        """
        [(count,)] = self.fetch_all(_FOREIGN)
        if count:
            raise PreflightError(
                "the scratch schema contains other objects",
                hint="Name a schema that is empty: CREATE USER … QUOTA UNLIMITED ON USERS, with CREATE SESSION and CREATE TABLE.",
                schema=self.user,
                objects=int(count),
            )


def open_scratch(
    config: OracleConfig,
    schema: str,
    password: SecretStr,
    *,
    on_statement: Callable[[str], None] | None = None,
) -> ScratchSession:
    """A session of the scratch schema's owner, in the container of a source's tables.

    Raises:
        ConfigError: User name or password is wrong.
        PreflightError: The schema holds objects of others; nothing was changed.
        OracleUnavailableError: The database cannot be reached.
    """
    login = config.model_copy(update={"user": schema, "password": password, "pdb": None})
    session = connect(login, on_statement=on_statement, kind=ScratchSession)
    try:
        session.refuse_foreign()
    except BaseException:
        session.close()
        raise
    return session
