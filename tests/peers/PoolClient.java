import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.math.BigDecimal;
import java.sql.CallableStatement;
import java.sql.Clob;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** What applications do through HikariCP, checked by themselves: {@code name<TAB>ok} or {@code name<TAB>what went wrong}. */
public class PoolClient {
  interface Check {
    void run(Connection connection) throws Exception;
  }

  static HikariDataSource pool;

  public static void main(String[] arguments) throws Exception {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl("jdbc:oracle:thin:@//" + arguments[0]);
    config.setUsername("DEMO");
    config.setPassword(arguments[1]);
    config.setMaximumPoolSize(8);
    config.setTransactionIsolation("TRANSACTION_READ_COMMITTED");
    config.setConnectionTestQuery("SELECT 1 FROM DUAL");
    pool = new HikariDataSource(config);
    check("200 tasks on 8 connections", PoolClient::tasks);
    check("isolation levels", PoolClient::isolation);
    check("read only and back", PoolClient::readOnly);
    check("a LOB of a megabyte", PoolClient::megabyte);
    check("deadlock", PoolClient::deadlock);
    check("NOWAIT", PoolClient::noWait);
    check("arrays of rows", PoolClient::arrays);
    check("MERGE", PoolClient::merge);
    check("OUT and REF CURSOR", PoolClient::procedures);
    check("NCHAR literals", PoolClient::national);
    check("tables and columns", PoolClient::tables);
    check("keys", PoolClient::keys);
    check("indexes", PoolClient::indexes);
    check("type info", PoolClient::typeInfo);
    check("procedure columns", PoolClient::procedureColumns);
    check("function columns", PoolClient::functionColumns);
    check("schemas", PoolClient::schemas);
    check("eviction", PoolClient::eviction);
    pool.close();
  }

  static void check(String name, Check check) {
    String result = "ok";
    try (Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      check.run(connection);
      connection.rollback();
    } catch (Throwable error) {
      result = String.valueOf(error).replace('\n', ' ').replace('\t', ' ');
    }
    System.out.println(name + "\t" + result);
  }

  static void same(Object expected, Object found) {
    if (!Objects.equals(expected, found)) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }

  static void run(Connection connection, String... statements) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      for (String sql : statements) {
        statement.execute(sql);
      }
    }
  }

  static Object one(Connection connection, String sql) throws SQLException {
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
      return rows.next() ? rows.getObject(1) : null;
    }
  }

  static void tasks(Connection connection) throws Exception {
    run(connection, "create table job (id number primary key, v varchar2(20))");
    ExecutorService threads = Executors.newFixedThreadPool(16);
    List<Future<Integer>> done = new ArrayList<>();
    for (int number = 0; number < 200; number++) {
      int id = number;
      done.add(threads.submit((Callable<Integer>) () -> {
        try (Connection own = pool.getConnection(); PreparedStatement insert = own.prepareStatement("insert into job values (?, ?)")) {
          insert.setInt(1, id);
          insert.setString(2, "task " + id);
          return insert.executeUpdate();
        }
      }));
    }
    int sum = 0;
    for (Future<Integer> one : done) {
      sum += one.get(60, TimeUnit.SECONDS);
    }
    threads.shutdown();
    same(200, sum);
    try (Connection own = pool.getConnection()) {
      same(new BigDecimal(200), one(own, "select count(*) from job"));
    }
  }

  static void isolation(Connection connection) throws Exception {
    same(Connection.TRANSACTION_READ_COMMITTED, connection.getTransactionIsolation());
    connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
    run(connection, "create table seen (v number)");
    same(new BigDecimal(0), one(connection, "select count(*) from seen"));
    try (Connection other = pool.getConnection()) {
      run(other, "insert into seen values (1)");
    }
    same(new BigDecimal(0), one(connection, "select count(*) from seen"));
    connection.commit();
    same(new BigDecimal(1), one(connection, "select count(*) from seen"));
    connection.commit();
    connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
  }

  static void readOnly(Connection connection) throws Exception {
    connection.setReadOnly(true);
    same(new BigDecimal(1), one(connection, "select 1 from dual"));
    connection.setReadOnly(false);
  }

  static void megabyte(Connection connection) throws Exception {
    run(connection, "create table long_text (id number, c clob)");
    String text = "añ".repeat(512 * 1024);
    try (PreparedStatement insert = connection.prepareStatement("insert into long_text values (1, ?)")) {
      insert.setString(1, text);
      insert.executeUpdate();
    }
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery("select c from long_text")) {
      rows.next();
      Clob clob = rows.getClob(1);
      same((long) text.length(), clob.length());
      same(text, clob.getSubString(1, text.length()));
    }
  }

  static void deadlock(Connection connection) throws Exception {
    run(connection, "create table pair (id number primary key, v number)", "insert into pair values (1, 0)", "insert into pair values (2, 0)");
    connection.commit();
    CountDownLatch both = new CountDownLatch(2);
    List<Integer> codes = new ArrayList<>();
    Thread[] threads = new Thread[2];
    for (int number = 0; number < 2; number++) {
      int first = number + 1;
      threads[number] = new Thread(() -> {
        try (Connection own = pool.getConnection()) {
          own.setAutoCommit(false);
          run(own, "update pair set v = v + 1 where id = " + first);
          both.countDown();
          both.await();
          try {
            run(own, "update pair set v = v + 1 where id = " + (3 - first));
            own.commit();
          } catch (SQLException error) {
            synchronized (codes) {
              codes.add(error.getErrorCode());
            }
            own.rollback();
          }
        } catch (Exception error) {
          throw new RuntimeException(error);
        }
      });
      threads[number].start();
    }
    for (Thread thread : threads) {
      thread.join(60_000);
    }
    same(List.of(60), codes);
  }

  static void noWait(Connection connection) throws Exception {
    run(connection, "create table held (id number)", "insert into held values (1)");
    connection.commit();
    run(connection, "update held set id = 2");
    try (Connection other = pool.getConnection()) {
      other.setAutoCommit(false);
      one(other, "select id from held for update nowait");
      throw new AssertionError("no error");
    } catch (SQLException error) {
      same(54, error.getErrorCode());
    }
  }

  static void arrays(Connection connection) throws Exception {
    run(connection, "create table many (id number, v varchar2(20))");
    try (PreparedStatement insert = connection.prepareStatement("insert into many values (?, ?)")) {
      for (int number = 0; number < 500; number++) {
        insert.setInt(1, number);
        insert.setString(2, number % 7 == 0 ? null : "v" + number);
        insert.addBatch();
      }
      same(500, insert.executeBatch().length);
    }
    same(new BigDecimal(72), one(connection, "select count(*) from many where v is null"));
  }

  static void merge(Connection connection) throws Exception {
    run(connection, "create table target (id number primary key, v number)", "insert into target values (1, 1)");
    try (PreparedStatement merge = connection.prepareStatement(
        "merge into target t using (select ? id, ? v from dual) s on (t.id = s.id) when matched then update set t.v = s.v when not matched then insert values (s.id, s.v)")) {
      for (int id = 1; id <= 2; id++) {
        merge.setInt(1, id);
        merge.setInt(2, 10 * id);
        same(1, merge.executeUpdate());
      }
    }
    same(new BigDecimal(30), one(connection, "select sum(v) from target"));
  }

  static void procedures(Connection connection) throws Exception {
    run(connection, "create or replace procedure twice(a in number, b out number, c out sys_refcursor) as begin b := 2 * a; open c for select a from dual; end;",
        "create or replace function thrice(a in number) return number as begin return 3 * a; end;");
    try (CallableStatement call = connection.prepareCall("{call twice(?, ?, ?)}")) {
      call.setInt(1, 21);
      call.registerOutParameter(2, Types.NUMERIC);
      call.registerOutParameter(3, Types.REF_CURSOR);
      call.execute();
      same(42, call.getInt(2));
      try (ResultSet rows = call.getObject(3, ResultSet.class)) {
        rows.next();
        same(21, rows.getInt(1));
      }
    }
    try (CallableStatement call = connection.prepareCall("{? = call thrice(?)}")) {
      call.registerOutParameter(1, Types.INTEGER);
      call.setInt(2, 5);
      call.execute();
      same(15, call.getInt(1));
    }
  }

  static void national(Connection connection) throws Exception {
    run(connection, "create table worldly (v nvarchar2(20))", "insert into worldly values (N'\u00e9\u4e2d')");
    same("\u00e9\u4e2d", one(connection, "select v from worldly where v = N'\u00e9\u4e2d'"));
  }

  static List<String> listed(ResultSet rows, String column) throws SQLException {
    List<String> found = new ArrayList<>();
    while (rows.next()) {
      found.add(rows.getString(column));
    }
    rows.close();
    return found;
  }

  static void tables(Connection connection) throws Exception {
    DatabaseMetaData facts = connection.getMetaData();
    run(connection, "create table described (id number(9) not null primary key, n varchar2(10) default 'x', parent number references target)",
        "comment on table described is 'told'", "create index described_n on described (upper(n))");
    same(List.of("DESCRIBED"), listed(facts.getTables(null, "DEMO", "DESCRIBED", new String[] {"TABLE"}), "TABLE_NAME"));
    same(List.of("ID", "N", "PARENT"), listed(facts.getColumns(null, "DEMO", "DESCRIBED", "%"), "COLUMN_NAME"));
  }

  static void keys(Connection connection) throws Exception {
    DatabaseMetaData facts = connection.getMetaData();
    same(List.of("ID"), listed(facts.getPrimaryKeys(null, "DEMO", "DESCRIBED"), "COLUMN_NAME"));
    same(List.of("TARGET"), listed(facts.getImportedKeys(null, "DEMO", "DESCRIBED"), "PKTABLE_NAME"));
    same(List.of("DESCRIBED"), listed(facts.getExportedKeys(null, "DEMO", "TARGET"), "FKTABLE_NAME"));
    same(true, listed(facts.getBestRowIdentifier(null, "DEMO", "DESCRIBED", DatabaseMetaData.bestRowSession, false), "COLUMN_NAME").contains("ID"));
  }

  static void indexes(Connection connection) throws Exception {
    List<String> names = listed(connection.getMetaData().getIndexInfo(null, "DEMO", "DESCRIBED", false, true), "INDEX_NAME");
    same(true, names.contains("DESCRIBED_N"));
  }

  static void typeInfo(Connection connection) throws Exception {
    List<String> names = listed(connection.getMetaData().getTypeInfo(), "TYPE_NAME");
    same(true, names.contains("NUMBER") && names.contains("VARCHAR2") && names.contains("DATE"));
  }

  static void procedureColumns(Connection connection) throws Exception {
    same(List.of("A", "B", "C"), listed(connection.getMetaData().getProcedureColumns(null, "DEMO", "TWICE", "%"), "COLUMN_NAME"));
  }

  static void functionColumns(Connection connection) throws Exception {
    List<String> names = listed(connection.getMetaData().getFunctionColumns(null, "DEMO", "THRICE", "%"), "COLUMN_NAME");
    same(true, names.contains("A"));
  }

  static void schemas(Connection connection) throws Exception {
    DatabaseMetaData facts = connection.getMetaData();
    same(true, listed(facts.getSchemas(), "TABLE_SCHEM").contains("DEMO"));
    same(true, listed(facts.getProcedures(null, "DEMO", "%"), "PROCEDURE_NAME").contains("TWICE"));
    same(true, listed(facts.getTableTypes(), "TABLE_TYPE").contains("TABLE"));
  }

  static void eviction(Connection connection) throws Exception {
    Connection other = pool.getConnection();
    pool.evictConnection(other);
    try (Connection fresh = pool.getConnection()) {
      same(new BigDecimal(1), one(fresh, "select 1 from dual"));
    }
  }
}
