-- Rights and settings that some features want. Read it and run what you need, as SYSDBA, in the tables' pluggable database.
-- The capture user is C##REDOLAKE here; in a database without containers it is REDOLAKE.

-- Chunks by ROWID (snapshot.cut: rowid), for tables whose key makes uneven ranges:
GRANT SELECT ON SYS.DBA_EXTENTS TO C##REDOLAKE;

-- Definitions of tables as of an SCN. Without it, a DDL is followed only if no other DDL of the table came after it:
GRANT FLASHBACK ON SYS.ALL_TAB_COLS TO C##REDOLAKE;
GRANT FLASHBACK ON SYS.ALL_CONSTRAINTS TO C##REDOLAKE;
GRANT FLASHBACK ON SYS.ALL_CONS_COLUMNS TO C##REDOLAKE;
GRANT FLASHBACK ON SYS.ALL_INDEXES TO C##REDOLAKE;
GRANT FLASHBACK ON SYS.ALL_IND_COLUMNS TO C##REDOLAKE;
GRANT FLASHBACK ON SYS.ALL_OBJECTS TO C##REDOLAKE;

-- Partitioned and index-organized tables: whose rows of a partition were that is gone before its redo is read. Without it, a partition
-- that is made and goes again between two windows stops its table. Of all tables: whether a statement about another table replaced
-- their rows (EXCHANGE PARTITION … WITH TABLE, TRUNCATE … CASCADE) while they had DDL of their own:
GRANT SELECT, FLASHBACK ON SYS.DBA_OBJECTS TO C##REDOLAKE;

-- Partitions that are dropped or truncated (on_truncate: follow): which rows they had. Without it, such a DDL stops its table:
GRANT FLASHBACK ON SYS.ALL_PART_TABLES TO C##REDOLAKE;
GRANT FLASHBACK ON SYS.ALL_PART_KEY_COLUMNS TO C##REDOLAKE;
GRANT FLASHBACK ON SYS.ALL_TAB_PARTITIONS TO C##REDOLAKE;
GRANT FLASHBACK ON SYS.ALL_SUBPART_KEY_COLUMNS TO C##REDOLAKE;
GRANT FLASHBACK ON SYS.ALL_TAB_SUBPARTITIONS TO C##REDOLAKE;

-- Tables with row-level security (VPD) or Data Redaction: snapshots must read the rows and values that the redo has.
-- The first grant shows only whether there is any redaction:
GRANT SELECT ON SYS.REDACTION_POLICIES TO C##REDOLAKE;
GRANT EXEMPT ACCESS POLICY TO C##REDOLAKE;
GRANT EXEMPT REDACTION POLICY TO C##REDOLAKE;

-- Undo for chunks that take long to read and for reconciliation, in seconds:
ALTER SYSTEM SET UNDO_RETENTION = 14400 SCOPE = BOTH;

-- A flush table (capture.flush_table: APP.REDOLAKE_FLUSH, with capture.close_at: online), whose one row Redolake updates so that instances write
-- their redo buffers. Without it, Redolake writes nothing into the database:
CREATE TABLE APP.REDOLAKE_FLUSH (LAST_SCN NUMBER(19));
INSERT INTO APP.REDOLAKE_FLUSH (LAST_SCN) VALUES (0);
COMMIT;
GRANT SELECT, UPDATE ON APP.REDOLAKE_FLUSH TO C##REDOLAKE;

-- A signal table that applications write and capture reads (signals.table: APP.REDOLAKE_SIGNAL):
CREATE TABLE APP.REDOLAKE_SIGNAL (
    ID   VARCHAR2(42) PRIMARY KEY,
    TYPE VARCHAR2(32) NOT NULL,
    DATA VARCHAR2(2048)
);
GRANT SELECT ON APP.REDOLAKE_SIGNAL TO C##REDOLAKE;
