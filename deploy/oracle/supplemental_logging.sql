-- Minimal supplemental logging of the whole database: LogMiner needs it. Run as SYSDBA, in the root of a container database.
-- It waits for transactions that are open. Table by table, table.sql adds logging of all columns.
WHENEVER SQLERROR EXIT FAILURE

ALTER DATABASE ADD SUPPLEMENTAL LOG DATA;

-- To log all columns of all tables instead (more redo; new tables need nothing more):
--   ALTER DATABASE ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;

SELECT SUPPLEMENTAL_LOG_DATA_MIN, SUPPLEMENTAL_LOG_DATA_ALL FROM V$DATABASE;
