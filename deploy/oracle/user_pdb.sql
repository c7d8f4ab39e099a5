-- The capture user of one pluggable database, where CDB$ROOT is out of reach; 19.10 or later. LogMiner runs inside the pluggable
-- database (capture.logs: scn_range). Run as a user with the role PDB_DBA and grants on SYS's views, for example SYS, connected to
-- the pluggable database; asks for the password. Then run table.sql for each table, with REDOLAKE as the capture user.
-- (Amazon RDS: user_rds.sql instead.)
WHENEVER SQLERROR EXIT FAILURE
-- Without this, SQL*Plus prints every statement with the password in it.
SET VERIFY OFF
ACCEPT capture_password CHAR PROMPT 'Password of REDOLAKE: ' HIDE

CREATE USER REDOLAKE IDENTIFIED BY "&capture_password";

GRANT CREATE SESSION TO REDOLAKE;
GRANT LOGMINING TO REDOLAKE;
GRANT EXECUTE ON SYS.DBMS_LOGMNR TO REDOLAKE;
-- Reads NUMBER columns without a scale. PUBLIC may run it by default; some hardening guides revoke that.
GRANT EXECUTE ON SYS.UTL_RAW TO REDOLAKE;
GRANT SELECT ON SYS.V_$DATABASE TO REDOLAKE;
GRANT SELECT ON SYS.V_$LOG TO REDOLAKE;
GRANT SELECT ON SYS.V_$LOGFILE TO REDOLAKE;
GRANT SELECT ON SYS.V_$ARCHIVED_LOG TO REDOLAKE;
GRANT SELECT ON SYS.V_$THREAD TO REDOLAKE;
GRANT SELECT ON SYS.V_$TRANSACTION TO REDOLAKE;
GRANT SELECT ON SYS.GV_$TRANSACTION TO REDOLAKE;
GRANT SELECT ON SYS.V_$PARAMETER TO REDOLAKE;
GRANT SELECT ON SYS.V_$DATAFILE TO REDOLAKE;
GRANT SELECT ON SYS.V_$TABLESPACE TO REDOLAKE;
GRANT SELECT ON SYS.V_$PDB_INCARNATION TO REDOLAKE;
-- Shows which sessions are there, before a transaction is given up that Oracle no longer knows.
GRANT SELECT ON SYS.GV_$SESSION TO REDOLAKE;
-- For redolake doctor: whether archiving works.
GRANT SELECT ON SYS.V_$ARCHIVE_DEST_STATUS TO REDOLAKE;
GRANT SELECT ON SYS.V_$LOGMNR_LOGS TO REDOLAKE;
GRANT SELECT ON SYS.V_$LOGMNR_CONTENTS TO REDOLAKE;
