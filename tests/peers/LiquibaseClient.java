import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.Objects;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.compare.CompareControl;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.DatabaseSnapshot;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.core.Column;
import liquibase.structure.core.ForeignKey;
import liquibase.structure.core.PrimaryKey;
import liquibase.structure.core.Sequence;
import liquibase.structure.core.UniqueConstraint;
import liquibase.structure.core.View;

/** What Liquibase does with a schema, checked by itself: {@code name<TAB>ok} or {@code name<TAB>what went wrong}. */
public class LiquibaseClient {
  interface Check {
    void run() throws Exception;
  }

  static final String CHANGES = """
      <databaseChangeLog xmlns='http://www.liquibase.org/xml/ns/dbchangelog' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'
          xsi:schemaLocation='http://www.liquibase.org/xml/ns/dbchangelog http://www.liquibase.org/xml/ns/dbchangelog/dbchangelog-latest.xsd'>
      <changeSet id='1' author='x'>
      <createTable tableName='author' remarks='who writes'>
      <column name='id' type='bigint' autoIncrement='true'>
      <constraints primaryKey='true' primaryKeyName='pk_author'/>
      </column>
      <column name='name' type='varchar(100)' remarks='full'>
      <constraints nullable='false'/>
      </column>
      <column name='born' type='date'/>
      <column name='bio' type='clob'/>
      <column name='active' type='boolean' defaultValueBoolean='true'/>
      </createTable>
      </changeSet>
      <changeSet id='2' author='x'>
      <createTable tableName='book'>
      <column name='id' type='int'>
      <constraints primaryKey='true'/>
      </column>
      <column name='author_id' type='bigint'/>
      <column name='title' type='nvarchar(200)'/>
      <column name='price' type='decimal(10,2)' defaultValueNumeric='0'/>
      <column name='made' type='timestamp' defaultValueComputed='CURRENT_TIMESTAMP'/>
      <column name='pic' type='blob'/>
      <column name='uid' type='uuid'/>
      </createTable>
      </changeSet>
      <changeSet id='3' author='x'>
      <addForeignKeyConstraint baseTableName='book' baseColumnNames='author_id' constraintName='fk_book_author' referencedTableName='author' referencedColumnNames='id' deferrable='true' initiallyDeferred='true' onDelete='CASCADE'/>
      </changeSet>
      <changeSet id='4' author='x'>
      <createIndex indexName='ix_title' tableName='book'>
      <column name='title'/>
      <column name='price' descending='true'/>
      </createIndex>
      </changeSet>
      <changeSet id='5' author='x'>
      <addUniqueConstraint tableName='author' columnNames='name' constraintName='uq_name'/>
      </changeSet>
      <changeSet id='6' author='x'>
      <createSequence sequenceName='book_seq' startValue='10' incrementBy='2' cacheSize='20'/>
      </changeSet>
      <changeSet id='7' author='x'>
      <addColumn tableName='book'>
      <column name='pages' type='int' defaultValueNumeric='1'>
      <constraints nullable='false'/>
      </column>
      </addColumn>
      </changeSet>
      <changeSet id='8' author='x'>
      <insert tableName='author'>
      <column name='name' value='Ann'/>
      <column name='born' valueDate='1990-02-03'/>
      </insert>
      <loadData tableName='book' file='books.csv'/>
      </changeSet>
      <changeSet id='9' author='x'>
      <createView viewName='v_book'>select b.title, a.name from book b join author a on a.id=b.author_id</createView>
      </changeSet>
      <changeSet id='10' author='x'>
      <createProcedure>create or replace procedure add_author(p varchar2) as begin insert into author(name) values (p); end;</createProcedure>
      </changeSet>
      <changeSet id='11' author='x'>
      <modifyDataType tableName='book' columnName='title' newDataType='nvarchar(300)'/>
      <renameColumn tableName='book' oldColumnName='pages' newColumnName='page_count' columnDataType='int'/>
      </changeSet>
      <changeSet id='12' author='x'>
      <preConditions onFail='MARK_RAN'>
      <tableExists tableName='book'/>
      <not>
      <columnExists tableName='book' columnName='pages'/>
      </not>
      <sequenceExists sequenceName='book_seq'/>
      <viewExists viewName='v_book'/>
      <foreignKeyConstraintExists foreignKeyName='fk_book_author'/>
      <indexExists indexName='ix_title'/>
      </preConditions>
      <update tableName='author'>
      <column name='bio' value='a longer text'/>
      <where>name='Ann'</where>
      </update>
      </changeSet>
      <changeSet id='13' author='x'>
      <sql splitStatements='true'>update book set price = price + 1; delete from book where id = 3;</sql>
      <rollback/>
      </changeSet>
      </databaseChangeLog>
      """;

  static final String BOOKS = """
      id,author_id,title,price
      1,1,One,9.5
      2,1,Zwei \u00e9,NULL
      3,NULL,Three,3
      """;

  static Connection connection;
  static Database database;
  static Liquibase liquibase;
  static final PrintStream told = System.out;

  public static void main(String[] arguments) throws Exception {
    java.util.logging.LogManager.getLogManager().reset();
    System.setOut(new PrintStream(new ByteArrayOutputStream()));
    Path folder = Files.createTempDirectory("liquibase");
    Files.writeString(folder.resolve("changes.xml"), CHANGES);
    Files.writeString(folder.resolve("books.csv"), BOOKS);
    connection = DriverManager.getConnection("jdbc:oracle:thin:@//" + arguments[0], "DEMO", arguments[1]);
    database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connection));
    liquibase = new Liquibase("changes.xml", new DirectoryResourceAccessor(folder), database);
    check("status", () -> waiting(13));
    check("update", LiquibaseClient::update);
    check("update again", () -> liquibase.update(""));
    check("validate", () -> liquibase.validate());
    check("tag", () -> liquibase.tag("one"));
    check("snapshot", LiquibaseClient::snapshot);
    check("difference from itself", () -> same(true, liquibase.diff(database, database, CompareControl.STANDARD).areEqual()));
    check("roll back", LiquibaseClient::rollBack);
    check("update as SQL", LiquibaseClient::asSql);
    check("locks", LiquibaseClient::locks);
    check("drop all", LiquibaseClient::dropAll);
    check("update after that", LiquibaseClient::update);
    System.exit(0);
  }

  static void check(String name, Check check) {
    String result = "ok";
    try {
      check.run();
    } catch (Throwable error) {
      result = String.valueOf(error).replace('\n', ' ').replace('\t', ' ');
    }
    told.println(name + "\t" + result);
  }

  static void same(Object expected, Object found) {
    if (!Objects.equals(expected, found)) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }

  static void waiting(int count) throws Exception {
    same(count, liquibase.listUnrunChangeSets(null, null).size());
  }

  static String one(String sql) throws Exception {
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
      rows.next();
      return rows.getString(1);
    }
  }

  static void update() throws Exception {
    liquibase.update("");
    same("2 10.5", one("select count(*) || ' ' || sum(price) from book"));
    waiting(0);
  }

  static void snapshot() throws Exception {
    DatabaseSnapshot taken = SnapshotGeneratorFactory.getInstance().createSnapshot(database.getDefaultSchema(), database, new SnapshotControl(database));
    same(4, taken.get(liquibase.structure.core.Table.class).size());
    same(1, taken.get(View.class).size());
    same(1, taken.get(ForeignKey.class).size());
    same(1, taken.get(Sequence.class).size());
    same(1, taken.get(UniqueConstraint.class).size());
    same(3, taken.get(PrimaryKey.class).size());
    same(true, taken.get(Column.class).size() > 20);
  }

  static void rollBack() throws Exception {
    liquibase.rollback(1, "");
    waiting(1);
  }

  static void asSql() throws Exception {
    StringWriter written = new StringWriter();
    liquibase.update("", written);
    same(true, written.toString().contains("DATABASECHANGELOG"));
  }

  static void locks() throws Exception {
    liquibase.forceReleaseLocks();
    same(0, liquibase.listLocks().length);
  }

  static void dropAll() throws Exception {
    liquibase.dropAll();
    same("0", one("select count(*) from user_tables where table_name in ('BOOK', 'AUTHOR')"));
  }
}
