-- The capture user of an Amazon RDS for Oracle instance, with containers or without; Amazon's package RDSADMIN does what only SYS may do.
-- Run as the master user; with containers, connected to the tenant database (capture.logs: scn_range). Asks for the password.
-- Then run table.sql for each table, with REDOLAKE as the capture user. Automated backups must be on: they are what sets archive
-- log mode.
WHENEVER SQLERROR EXIT FAILURE
-- Without this, SQL*Plus prints every statement with the password in it.
SET VERIFY OFF
ACCEPT capture_password CHAR PROMPT 'Password of REDOLAKE: ' HIDE

-- RDS removes archived logs at once, unless told otherwise.
BEGIN rdsadmin.rdsadmin_util.set_configuration('archivelog retention hours', 48); END;
/
COMMIT;
BEGIN rdsadmin.rdsadmin_util.alter_supplemental_logging('ADD'); END;
/

CREATE USER REDOLAKE IDENTIFIED BY "&capture_password";

GRANT CREATE SESSION TO REDOLAKE;
GRANT LOGMINING TO REDOLAKE;

-- The names of object and user are written in upper case.
BEGIN
  rdsadmin.rdsadmin_util.grant_sys_object('DBMS_LOGMNR', 'REDOLAKE', 'EXECUTE');
  rdsadmin.rdsadmin_util.grant_sys_object('UTL_RAW', 'REDOLAKE', 'EXECUTE');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$DATABASE', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$LOG', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$LOGFILE', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$ARCHIVED_LOG', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$THREAD', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$TRANSACTION', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('GV_$TRANSACTION', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$PARAMETER', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$DATAFILE', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$TABLESPACE', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$PDB_INCARNATION', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('GV_$SESSION', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$ARCHIVE_DEST_STATUS', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$LOGMNR_LOGS', 'REDOLAKE', 'SELECT');
  rdsadmin.rdsadmin_util.grant_sys_object('V_$LOGMNR_CONTENTS', 'REDOLAKE', 'SELECT');
END;
/
