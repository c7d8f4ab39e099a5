-- Prepares one table: logging of all its columns, and the rights to read it now and as of an SCN.
-- Run as SYSDBA, in the table's pluggable database where there are containers:
--   sqlplus sys@host:1521/ORCLPDB1 as sysdba @table.sql HR EMPLOYEES C##REDOLAKE
-- Arguments: owner, table, capture user, as the dictionary has them.
WHENEVER SQLERROR EXIT FAILURE
SET VERIFY OFF

ALTER TABLE "&1"."&2" ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;
GRANT SELECT, FLASHBACK ON "&1"."&2" TO &3;

SELECT LOG_GROUP_TYPE FROM ALL_LOG_GROUPS WHERE OWNER = '&1' AND TABLE_NAME = '&2';
