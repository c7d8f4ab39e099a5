-- An XStream outbound server, for `capture.type: xstream`. Needs a licence for Oracle GoldenGate.
-- Run as SYSDBA in CDB$ROOT (or in the database itself, where there are no containers), behind user_cdb.sql and table.sql.
-- This project has never run it: compare it with Oracle's XStream Guide, "Configuring XStream Out".
WHENEVER SQLERROR EXIT FAILURE
SET VERIFY OFF
ACCEPT capture_user CHAR DEFAULT 'C##REDOLAKE' PROMPT 'Capture user [C##REDOLAKE]: '
ACCEPT server_name CHAR DEFAULT 'XOUT' PROMPT 'Name of the outbound server [XOUT]: '
ACCEPT table_names CHAR PROMPT 'Tables, with commas between them (SHOP.ORDERS,SHOP.ITEMS): '
ACCEPT container CHAR PROMPT 'Pluggable database of the tables (empty: none): '

ALTER SYSTEM SET enable_goldengate_replication = TRUE SCOPE = BOTH;

-- From 23ai on: GRANT XSTREAM_CAPTURE TO &capture_user CONTAINER = ALL;
BEGIN
  DBMS_XSTREAM_AUTH.GRANT_ADMIN_PRIVILEGE(
    grantee => '&capture_user', privilege_type => 'CAPTURE', grant_select_privileges => FALSE,
    container => CASE WHEN '&container' IS NULL THEN 'CURRENT' ELSE 'ALL' END);
END;
/

-- What redolake doctor, and each window, looks at.
GRANT SELECT ON SYS.DBA_XSTREAM_OUTBOUND TO &capture_user;
GRANT SELECT ON SYS.DBA_XSTREAM_OUTBOUND_PROGRESS TO &capture_user;
GRANT SELECT ON SYS.DBA_CAPTURE TO &capture_user;

DECLARE
  names   DBMS_UTILITY.UNCL_ARRAY;
  schemas DBMS_UTILITY.UNCL_ARRAY;
  number_of_names BINARY_INTEGER;
  capture VARCHAR2(128);
BEGIN
  DBMS_UTILITY.COMMA_TO_TABLE('&table_names', number_of_names, names);
  schemas(1) := NULL;
  IF '&container' IS NULL THEN
    DBMS_XSTREAM_ADM.CREATE_OUTBOUND(
      server_name => '&server_name', table_names => names, schema_names => schemas, include_ddl => TRUE);
  ELSE
    DBMS_XSTREAM_ADM.CREATE_OUTBOUND(
      server_name => '&server_name', table_names => names, schema_names => schemas, include_ddl => TRUE,
      source_container_name => '&container');
  END IF;
  DBMS_XSTREAM_ADM.ALTER_OUTBOUND(server_name => '&server_name', connect_user => '&capture_user');

  SELECT capture_name INTO capture FROM DBA_XSTREAM_OUTBOUND WHERE server_name = '&server_name';
  -- ROW_ID is needed; the others go into the change log.
  FOR one IN (SELECT COLUMN_VALUE AS name FROM TABLE(SYS.ODCIVARCHAR2LIST('row_id', 'thread#', 'session#', 'serial#', 'username'))) LOOP
    DBMS_CAPTURE_ADM.INCLUDE_EXTRA_ATTRIBUTE(
      capture_name => capture, attribute_name => one.name, include => TRUE);
  END LOOP;
END;
/

-- To remove it: EXEC DBMS_XSTREAM_ADM.DROP_OUTBOUND('&server_name')
-- It keeps archived logs until Redolake has applied their changes: do not leave one behind that nobody reads.
EXIT
