-- Writes the LogMiner dictionary into the redo, for capture.strategy: redo_log_catalog. Run it as SYSDBA in the root (or in a database
-- without containers): once before the first snapshot, then from time to time, since Oracle reads all redo from it on for each window.
-- It needs ARCHIVELOG mode and supplemental logging; no DDL runs meanwhile. Redolake itself never builds one.

WHENEVER SQLERROR EXIT SQL.SQLCODE

BEGIN SYS.DBMS_LOGMNR_D.BUILD(OPTIONS => SYS.DBMS_LOGMNR_D.STORE_IN_REDO_LOGS); END;
/

-- Redolake uses a dictionary as soon as its logs are archived:
ALTER SYSTEM ARCHIVE LOG CURRENT;

SELECT THREAD#, SEQUENCE#, FIRST_CHANGE#, NEXT_CHANGE#, DICTIONARY_BEGIN, DICTIONARY_END
  FROM V$ARCHIVED_LOG
 WHERE DICTIONARY_BEGIN = 'YES' OR DICTIONARY_END = 'YES'
 ORDER BY SEQUENCE#;
