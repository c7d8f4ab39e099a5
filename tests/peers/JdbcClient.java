import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Blob;
import java.sql.CallableStatement;
import java.sql.Clob;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLXML;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.Objects;
import java.util.Properties;
import java.util.Random;
import oracle.jdbc.OraclePreparedStatement;
import oracle.sql.INTERVALDS;

/** What programs do through JDBC, checked by themselves: one line per check, {@code name<TAB>ok} or {@code name<TAB>what went wrong}. */
public class JdbcClient {
  interface Check {
    void run() throws Exception;
  }

  static String url;
  static String password;
  static Connection connection;

  public static void main(String[] arguments) throws Exception {
    url = "jdbc:oracle:thin:@//" + arguments[0];
    password = arguments[1];
    connection = connect();
    check("log in", JdbcClient::logIn);
    check("wrong password", JdbcClient::wrongPassword);
    check("ddl", JdbcClient::ddl);
    check("insert", JdbcClient::insert);
    check("query", JdbcClient::query);
    check("query again with other values", JdbcClient::queryAgain);
    check("batch", JdbcClient::batch);
    check("batch with an error", JdbcClient::batchWithError);
    check("roll back", JdbcClient::rollBack);
    check("savepoints", JdbcClient::savepoints);
    check("autocommit", JdbcClient::autocommit);
    check("errors", JdbcClient::errors);
    check("times", JdbcClient::times);
    check("long text", JdbcClient::longText);
    check("fetch size", JdbcClient::fetchSize);
    check("scroll", JdbcClient::scroll);
    check("updatable rows", JdbcClient::updatableRows);
    check("lobs with all prefetch sizes", JdbcClient::lobs);
    check("lob writes", JdbcClient::lobWrites);
    check("out binds", JdbcClient::outBinds);
    check("ref cursor", JdbcClient::refCursor);
    check("returning", JdbcClient::returning);
    check("generated rowid", JdbcClient::generatedRowid);
    check("generated keys by name", JdbcClient::generatedKeys);
    check("columns of a query", JdbcClient::columnsOfQuery);
    check("database metadata", JdbcClient::databaseMetadata);
    check("client info", JdbcClient::clientInfo);
    check("query timeout", JdbcClient::queryTimeout);
    check("documents", JdbcClient::documents);
    connection.close();
  }

  static Connection connect() throws SQLException {
    Connection made = DriverManager.getConnection(url, "DEMO", password);
    made.setAutoCommit(false);
    return made;
  }

  static void check(String name, Check check) throws Exception {
    String result = "ok";
    try {
      check.run();
    } catch (Exception | AssertionError error) {
      result = (error + " at " + error.getStackTrace()[0]).replaceAll("\\s+", " ");
      if (!connection.isValid(2)) {
        connection = connect();
      }
    }
    System.out.println(name + "\t" + result);
  }

  static void same(Object expected, Object found) {
    if (!Objects.equals(expected, found)) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }

  static void fails(int code, Check check) throws Exception {
    try {
      check.run();
    } catch (SQLException error) {
      same(code, error.getErrorCode());
      return;
    }
    throw new AssertionError("no ORA-" + code);
  }

  static void run(String sql) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  static Object one(String sql) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery(sql)) {
      rows.next();
      return rows.getObject(1);
    }
  }

  static int count(ResultSet rows) throws SQLException {
    int count = 0;
    while (rows.next()) {
      count++;
    }
    return count;
  }

  // --- statements ---

  static void logIn() throws Exception {
    same(19, connection.getMetaData().getDatabaseMajorVersion());
    same("DEMO", connection.getSchema());
    same(true, connection.isValid(5));
  }

  static void wrongPassword() throws Exception {
    fails(1017, () -> DriverManager.getConnection(url, "DEMO", "wrong"));
  }

  static void ddl() throws Exception {
    run(
        "create table t (id number(10) primary key, name varchar2(40), amount number, ts timestamp(6), d date, r raw(20),"
            + " n nvarchar2(20), bd binary_double, tz timestamp(3) with time zone, ltz timestamp with local time zone,"
            + " iv interval day to second, bf binary_float, ch char(5))");
  }

  static final BigDecimal AMOUNT = new BigDecimal("-12.345");
  static final Timestamp WHEN = Timestamp.valueOf("2024-02-29 12:13:14.123456");
  static final Date DAY = Date.valueOf("2024-01-02");

  static void insert() throws Exception {
    String sql = "insert into t (id, name, amount, ts, d, r, n, bd) values (?, ?, ?, ?, ?, ?, ?, ?)";
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      for (int i = 0; i < 57; i++) {
        statement.setInt(1, i);
        statement.setString(2, "name" + i);
        statement.setBigDecimal(3, AMOUNT.multiply(new BigDecimal(i)));
        statement.setTimestamp(4, WHEN);
        statement.setDate(5, DAY);
        statement.setBytes(6, new byte[] {1, 2, (byte) i});
        statement.setNString(7, "n\u00e9\u4e2d" + i);
        statement.setDouble(8, i / 4.0);
        same(1, statement.executeUpdate());
      }
    }
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      int[] types = {
        Types.NUMERIC, Types.VARCHAR, Types.NUMERIC, Types.TIMESTAMP, Types.DATE, Types.BINARY, Types.NVARCHAR, Types.DOUBLE
      };
      for (int at = 2; at <= types.length; at++) {
        statement.setNull(at, types[at - 1]);
      }
      statement.setInt(1, 1000);
      same(1, statement.executeUpdate());
    }
    connection.commit();
  }

  static void query() throws Exception {
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("select * from t order by id")) {
      for (int n = 0; n < 57; n++) {
        same(true, rows.next());
        same(n, rows.getInt("ID"));
        same("name" + n, rows.getString("NAME"));
        same(0, AMOUNT.multiply(new BigDecimal(n)).compareTo(rows.getBigDecimal("AMOUNT")));
        same(WHEN, rows.getTimestamp("TS"));
        same(DAY, rows.getDate("D"));
        same((byte) n, rows.getBytes("R")[2]);
        same("n\u00e9\u4e2d" + n, rows.getString("N"));
        same(n / 4.0, rows.getDouble("BD"));
      }
      same(true, rows.next());
      for (int at = 2; at <= 13; at++) {
        same(null, rows.getObject(at));
      }
      same(false, rows.next());
    }
  }

  static void queryAgain() throws Exception {
    try (PreparedStatement statement = connection.prepareStatement("select id, name from t where id >= ?")) {
      for (int low = 30; low < 34; low++) {
        statement.setInt(1, low);
        same(58 - low, count(statement.executeQuery()));
      }
    }
  }

  static PreparedStatement added(int... ids) throws SQLException {
    PreparedStatement statement = connection.prepareStatement("insert into t (id, name) values (?, ?)");
    for (int id : ids) {
      statement.setInt(1, id);
      statement.setString(2, "added" + id);
      statement.addBatch();
    }
    return statement;
  }

  static void batch() throws Exception {
    int[] ids = new int[300];
    Arrays.setAll(ids, i -> 2000 + i);
    try (PreparedStatement statement = added(ids)) {
      same(300, statement.executeBatch().length);
    }
    same(new BigDecimal(358), one("select count(*) from t"));
    connection.rollback();
  }

  static void batchWithError() throws Exception {
    try (PreparedStatement statement = added(3000, 3001, 3000, 3002)) {
      statement.executeBatch();
      throw new AssertionError("no error");
    } catch (BatchUpdateException error) {
      same(1, error.getErrorCode());
    }
    connection.rollback();
  }

  static void rollBack() throws Exception {
    try (Statement statement = connection.createStatement()) {
      same(57, statement.executeUpdate("update t set name = name || 'x' where id < 1000"));
      connection.rollback();
      same("name3", one("select name from t where id = 3"));
      same(0, statement.executeUpdate("delete from t where id = -1"));
    }
  }

  static void savepoints() throws Exception {
    run("insert into t (id) values (5001)");
    Savepoint unnamed = connection.setSavepoint();
    run("insert into t (id) values (5002)");
    connection.rollback(unnamed);
    Savepoint named = connection.setSavepoint("Q1");
    run("insert into t (id) values (5003)");
    connection.rollback(named);
    same(new BigDecimal(1), one("select count(*) from t where id > 5000"));
    connection.rollback();
  }

  static void autocommit() throws Exception {
    connection.setAutoCommit(true);
    run("insert into t (id) values (6001)");
    connection.setAutoCommit(false);
    connection.rollback();
    same(new BigDecimal(6001), one("select max(id) from t"));
    run("delete from t where id = 6001");
    connection.commit();
  }

  static void errors() throws Exception {
    fails(942, () -> run("select * from nope"));
    fails(900, () -> run("selec 1"));
    fails(1, () -> run("insert into t (id) values (1)"));
    try (PreparedStatement statement = connection.prepareStatement("insert into t (id) values (?)")) {
      for (int again = 0; again < 2; again++) {
        statement.setInt(1, 1);
        fails(1, statement::executeUpdate);
      }
      statement.setInt(1, 7000);
      same(1, statement.executeUpdate());
    }
    connection.rollback();
  }

  static void times() throws Exception {
    run(
        "insert into t (id, tz, ltz, iv, bf, ch) values (7000, timestamp '2024-05-06 07:08:09.123 +02:00',"
            + " timestamp '2024-05-06 07:08:09', interval '1 02:03:04.5' day to second, 1.5, 'ab')");
    String sql = "select tz, iv, bf, ch, rowid from t where id = 7000";
    try (Statement statement = connection.createStatement()) {
      ResultSet row = statement.executeQuery(sql);
      row.next();
      same(OffsetDateTime.parse("2024-05-06T07:08:09.123+02:00"), row.getObject(1, OffsetDateTime.class));
      same("1 2:3:4.5", row.getString(2));
      same(1.5f, row.getFloat(3));
      same("ab   ", row.getString(4));
      same(18, row.getString(5).length());
      OffsetDateTime other = OffsetDateTime.parse("2020-01-02T03:04:05.006+05:30");
      try (PreparedStatement change = connection.prepareStatement("update t set tz = ?, iv = ? where id = 7000")) {
        change.setObject(1, other);
        change.setObject(2, new INTERVALDS("-3 04:05:06.7"));
        same(1, change.executeUpdate());
      }
      row = statement.executeQuery(sql);
      row.next();
      same(other, row.getObject(1, OffsetDateTime.class));
      same("-3 4:5:6.7", row.getString(2));
    }
    connection.rollback();
  }

  static void longText() throws Exception {
    try (PreparedStatement statement = connection.prepareStatement("select length(?), ? from dual")) {
      statement.setString(1, "y".repeat(3000));
      statement.setString(2, "z".repeat(2500));
      ResultSet row = statement.executeQuery();
      row.next();
      same(3000, row.getInt(1));
      same("z".repeat(2500), row.getString(2));
    }
  }

  static void fetchSize() throws Exception {
    try (Statement statement = connection.createStatement()) {
      statement.setFetchSize(7);
      same(58, count(statement.executeQuery("select id from t")));
      statement.setMaxRows(5);
      same(5, count(statement.executeQuery("select id from t")));
    }
  }

  static void scroll() throws Exception {
    try (Statement statement =
        connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY)) {
      ResultSet rows = statement.executeQuery("select id from t order by id");
      rows.last();
      same(58, rows.getRow());
      rows.absolute(3);
      same(2, rows.getInt(1));
    }
  }

  static void updatableRows() throws Exception {
    run("create table u (id number(9) primary key, v varchar2(20))");
    run("insert into u select level, 'old' from dual connect by level < 5");
    for (int type : new int[] {ResultSet.TYPE_FORWARD_ONLY, ResultSet.TYPE_SCROLL_SENSITIVE}) {
      try (Statement statement = connection.createStatement(type, ResultSet.CONCUR_UPDATABLE)) {
        ResultSet rows = statement.executeQuery("select id, v from u where id > 1 order by id");
        same(ResultSet.CONCUR_UPDATABLE, rows.getConcurrency());
        rows.next();
        rows.updateString(2, "new" + type);
        rows.updateRow();
        same("new" + type, rows.getString(2));
        rows.next();
        rows.deleteRow();
        rows.moveToInsertRow();
        rows.updateInt(1, 100 + type);
        rows.updateString("V", "added");
        rows.insertRow();
      }
    }
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("select listagg(id || v, ' ') within group (order by id) from u")) {
      rows.next();
      same("1old 2new1005 1103added 1105added", rows.getString(1));
    }
    run("drop table u purge");
  }

  // --- LOBs ---

  static void lobs() throws Exception {
    StringBuilder built = new StringBuilder();
    for (int i = 0; i < 20000; i++) {
      built.append((char) ('a' + i % 26)).append(i % 100 == 0 ? "\u20ac" : "").append(i % 997 == 7 ? "\ud83d\ude00" : "");
    }
    String text = built.toString();
    byte[] bytes = new byte[50000];
    new Random(1).nextBytes(bytes);
    run("create table l (id number primary key, c clob, b blob, n nclob)");
    try (PreparedStatement statement = connection.prepareStatement("insert into l values (?, ?, ?, ?)")) {
      insertLobs(statement, 1, "small", new byte[] {1, 2, 3}, "nat");
      insertLobs(statement, 2, text, bytes, text);
      insertLobs(statement, 3, null, null, null);
    }
    connection.commit();
    for (String prefetch : new String[] {"4000", "100000", "7", "0", "-1"}) {
      Properties properties = new Properties();
      properties.put("user", "DEMO");
      properties.put("password", password);
      properties.put("oracle.jdbc.defaultLobPrefetchSize", prefetch);
      try (Connection other = DriverManager.getConnection(url, properties);
          Statement statement = other.createStatement();
          ResultSet rows = statement.executeQuery("select c, b, n from l order by id")) {
        rows.next();
        same("small", rows.getString(1));
        same(3, rows.getBytes(2).length);
        same("nat", rows.getString(3));
        rows.next();
        Clob clob = rows.getClob(1);
        same((long) text.length(), clob.length());
        same(text, clob.getSubString(1, text.length()));
        same(text.substring(3990, 4290), clob.getSubString(3991, 300));
        same(true, Arrays.equals(bytes, rows.getBlob(2).getBytes(1, bytes.length)));
        same(text, rows.getString(3));
        rows.next();
        same(null, rows.getString(1));
        same(null, rows.getBytes(2));
        same(false, rows.next());
      }
    }
  }

  static void insertLobs(PreparedStatement statement, int id, String text, byte[] bytes, String national)
      throws SQLException {
    statement.setInt(1, id);
    statement.setString(2, text);
    statement.setBytes(3, bytes);
    statement.setNString(4, national);
    same(1, statement.executeUpdate());
  }

  static void lobWrites() throws Exception {
    try (Statement statement = connection.createStatement()) {
      ResultSet row = statement.executeQuery("select c, b from l where id = 1 for update");
      row.next();
      row.getClob(1).setString(1, "SMALLER");
      Blob blob = row.getBlob(2);
      blob.setBytes(1, new byte[] {9, 9, 9, 9});
      blob.truncate(2);
      connection.commit();
      row = statement.executeQuery("select c, b from l where id = 1");
      row.next();
      same("SMALLER", row.getString(1));
      same(2, row.getBytes(2).length);
      Clob temporary = connection.createClob();
      temporary.setString(1, "temporary");
      try (PreparedStatement change = connection.prepareStatement("update l set c = ? where id = 3")) {
        change.setClob(1, temporary);
        same(1, change.executeUpdate());
      }
      temporary.free();
      row = statement.executeQuery("select c from l where id = 3");
      row.next();
      same("temporary", row.getString(1));
      try (PreparedStatement change = connection.prepareStatement("update l set c = ?, b = ? where id = 3")) {
        change.setCharacterStream(1, new StringReader("stream"), 6);
        change.setBinaryStream(2, new ByteArrayInputStream(new byte[70000]), 70000);
        same(1, change.executeUpdate());
      }
      row = statement.executeQuery("select c, b from l where id = 3");
      row.next();
      same("stream", row.getString(1));
      same(70000, row.getBytes(2).length);
    }
    connection.rollback();
  }

  // --- PL/SQL and keys ---

  static void outBinds() throws Exception {
    try (CallableStatement statement = connection.prepareCall("begin ? := ? * 2; ? := upper(?); end;")) {
      statement.registerOutParameter(1, Types.NUMERIC);
      statement.setInt(2, 21);
      statement.registerOutParameter(3, Types.VARCHAR);
      statement.setString(4, "abc");
      statement.execute();
      same(42, statement.getInt(1));
      same("ABC", statement.getString(3));
      statement.setInt(2, 5);
      statement.execute();
      same(10, statement.getInt(1));
    }
  }

  static void documents() throws Exception {
    try (Statement statement = connection.createStatement();
        PreparedStatement insert = connection.prepareStatement("insert into x values (2, ?)")) {
      statement.execute("create table x (id number primary key, d xmltype)");
      statement.execute("insert into x values (1, xmltype(to_clob(rpad('<a>', 1500, 'é')) || '</a>'))");
      SQLXML document = connection.createSQLXML();
      document.setString("<bound>é</bound>");
      insert.setSQLXML(1, document);
      same(1, insert.executeUpdate());
      statement.execute("insert into x values (3, null)");
      ResultSet rows = statement.executeQuery("select d from x order by id");
      same(Types.SQLXML, rows.getMetaData().getColumnType(1));
      rows.next();
      same("<a>" + "é".repeat(1497) + "</a>", rows.getSQLXML(1).getString());
      rows.next();
      same("<bound>é</bound>", rows.getString(1));
      rows.next();
      same(null, rows.getSQLXML(1));
      connection.rollback();
    }
  }

  static void refCursor() throws Exception {
    String block = "declare found sys_refcursor; begin open found for select id, name from t where id < ? order by id; ? := found; end;";
    try (CallableStatement statement = connection.prepareCall(block)) {
      statement.setInt(1, 40);
      statement.registerOutParameter(2, Types.REF_CURSOR);
      statement.execute();
      try (ResultSet rows = (ResultSet) statement.getObject(2)) {
        for (int n = 0; n < 40; n++) {
          same(true, rows.next());
          same("name" + n, rows.getString(2));
        }
        same(false, rows.next());
      }
    }
  }

  static void returning() throws Exception {
    String sql = "update t set name = 'q' where id < ? returning id into ?";
    try (OraclePreparedStatement statement = (OraclePreparedStatement) connection.prepareStatement(sql)) {
      for (int below : new int[] {5, 3}) {
        statement.setInt(1, below);
        statement.registerReturnParameter(2, Types.INTEGER);
        same(below, statement.executeUpdate());
        same(below, count(statement.getReturnResultSet()));
      }
    }
    connection.rollback();
  }

  static void generatedRowid() throws Exception {
    try (Statement statement = connection.createStatement()) {
      statement.executeUpdate("insert into t (id) values (8000)", Statement.RETURN_GENERATED_KEYS);
      ResultSet keys = statement.getGeneratedKeys();
      same(true, keys.next());
      same(new BigDecimal(8000), one("select id from t where rowid = '" + keys.getString(1) + "'"));
    }
    connection.rollback();
  }

  static void generatedKeys() throws Exception {
    String sql = "insert into t (id, name) values (?, ?)";
    try (PreparedStatement statement = connection.prepareStatement(sql, new String[] {"ID", "NAME"})) {
      statement.setInt(1, 8001);
      statement.setString(2, "key");
      same(1, statement.executeUpdate());
      ResultSet keys = statement.getGeneratedKeys();
      same(true, keys.next());
      same(new BigDecimal(8001), keys.getBigDecimal(1));
      same("key", keys.getString(2));
    }
    connection.rollback();
  }

  // --- metadata and settings ---

  static void columnsOfQuery() throws Exception {
    try (Statement statement = connection.createStatement()) {
      ResultSetMetaData columns = statement.executeQuery("select * from t").getMetaData();
      same(13, columns.getColumnCount());
      same(10, columns.getPrecision(1));
      same(0, columns.getScale(1));
      same(ResultSetMetaData.columnNoNulls, columns.isNullable(1));
      same("AMOUNT", columns.getColumnName(3));
      same(-127, columns.getScale(3));
      same(6, columns.getScale(4));
      same("TIMESTAMP", columns.getColumnTypeName(4));
    }
  }

  static void databaseMetadata() throws Exception {
    var metadata = connection.getMetaData();
    same(13, count(metadata.getColumns(null, "DEMO", "T", null)));
    same(2, count(metadata.getTables(null, "DEMO", "%", new String[] {"TABLE"})));
    ResultSet keys = metadata.getPrimaryKeys(null, "DEMO", "T");
    keys.next();
    same("ID", keys.getString("COLUMN_NAME"));
    same(2, count(metadata.getIndexInfo(null, "DEMO", "T", true, true)));
    same(0, count(metadata.getImportedKeys(null, "DEMO", "T")));
    same(0, count(metadata.getProcedures(null, "DEMO", "%")));
  }

  static void clientInfo() throws Exception {
    connection.setClientInfo("OCSID.MODULE", "loader");
    connection.setClientInfo("OCSID.CLIENTID", "me");
    same("loader", one("select sys_context('USERENV', 'MODULE') from dual"));
    same("me", one("select sys_context('USERENV', 'CLIENT_IDENTIFIER') from dual"));
  }

  static void queryTimeout() throws Exception {
    try (Statement statement = connection.createStatement()) {
      statement.setQueryTimeout(1);
      fails(1013, () -> statement.execute("begin dbms_session.sleep(60); end;"));
    }
    same(new BigDecimal(1), one("select 1 from dual"));
  }
}
