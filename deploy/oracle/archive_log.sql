-- Turns archive log mode on. Restarts the database. Run as SYSDBA, in the root of a container database.
-- Where archived logs go must be set first, for example with
--   ALTER SYSTEM SET db_recovery_file_dest_size = 100G SCOPE = BOTH;
--   ALTER SYSTEM SET db_recovery_file_dest = '/u01/fast_recovery_area' SCOPE = BOTH;
WHENEVER SQLERROR EXIT FAILURE

SHUTDOWN IMMEDIATE
STARTUP MOUNT
ALTER DATABASE ARCHIVELOG;
ALTER DATABASE OPEN;

SELECT LOG_MODE FROM V$DATABASE;
