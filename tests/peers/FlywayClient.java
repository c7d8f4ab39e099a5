import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;

/** What Flyway does with a schema, checked by itself: {@code name<TAB>ok} or {@code name<TAB>what went wrong}. */
public class FlywayClient {
  interface Check {
    void run() throws Exception;
  }

  static final String TABLES = """
      create table author (id number primary key, name varchar2(100) not null);
      create table book (id number primary key, author_id number references author, title varchar2(200), price number(10,2));
      create sequence book_seq;
      create index book_title on book(upper(title));
""";

  static final String CODE = """
      create or replace procedure add_author(p_id in number, p_name in varchar2) as
      begin
        insert into author values (p_id, p_name);
      end;
      /
      create or replace trigger book_bi before insert on book for each row
      begin
        if :new.id is null then :new.id := book_seq.nextval; end if;
      end;
      /
      create or replace package shop as
        function total return number;
      end;
      /
      create or replace package body shop as
        function total return number is n number;
        begin select sum(price) into n from book; return n; end;
      end;
      /
      begin add_author(1, 'Ann'); end;
      /
      insert into book (author_id, title, price) values (1, 'One; two', 9.5);
""";

  static final String MORE = """
      create table sale (id number, sold date, v number) partition by range (sold) (partition p1 values less than (date '2024-01-01'), partition pm values less than (maxvalue));
      create materialized view book_count as select author_id, count(*) n from book group by author_id;
      create type addr as object (street varchar2(50), city varchar2(50));
      /
      create global temporary table gt (id number) on commit preserve rows;
      create view v_book as select b.title, a.name from book b join author a on a.id=b.author_id;
      create synonym bk for book;
""";

  static final String DATA = """
      merge into author a using (select 2 id, 'Bob' name from dual) s on (a.id=s.id) when matched then update set a.name=s.name when not matched then insert (id,name) values (s.id,s.name);
      comment on table author is 'who writes';
""";

  static final String VIEWS = """
      create or replace view v_total as select shop.total t from dual;
""";

  static Path folder;

  public static void main(String[] arguments) throws Exception {
    java.util.logging.LogManager.getLogManager().reset();
    folder = Files.createTempDirectory("flyway");
    Files.writeString(folder.resolve("V1__tables.sql"), TABLES);
    Files.writeString(folder.resolve("V2__code.sql"), CODE);
    Files.writeString(folder.resolve("V3__more.sql"), MORE);
    Files.writeString(folder.resolve("V4__data.sql"), DATA);
    Files.writeString(folder.resolve("R__views.sql"), VIEWS);
    Flyway flyway = Flyway.configure()
        .dataSource("jdbc:oracle:thin:@//" + arguments[0], "DEMO", arguments[1])
        .locations("filesystem:" + folder)
        .cleanDisabled(false)
        .load();
    check("migrate", () -> same(5, flyway.migrate().migrationsExecuted));
    check("migrate again", () -> same(0, flyway.migrate().migrationsExecuted));
    check("validate", flyway::validate);
    check("info", () -> same(5, flyway.info().applied().length));
    check("repair", () -> same(0, flyway.repair().repairActions.size()));
    check("a migration that fails", () -> fails(flyway));
    check("repair of the failed one", () -> same(1, flyway.repair().repairActions.size()));
    check("clean", () -> same(1, flyway.clean().schemasCleaned.size()));
    check("migrate after clean", () -> same(5, flyway.migrate().migrationsExecuted));
    check("baseline", () -> baseline(flyway));
  }

  static void check(String name, Check check) {
    String result = "ok";
    try {
      check.run();
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

  static void fails(Flyway flyway) throws Exception {
    Path bad = folder.resolve("V5__bad.sql");
    Files.writeString(bad, "create table good (id number);\ncreate tabel bad (id number);\n");
    try {
      flyway.migrate();
      throw new AssertionError("no error");
    } catch (FlywayException error) {
      same(true, error.getMessage().contains("ORA-00901"));
    } finally {
      Files.delete(bad);
    }
  }

  static void baseline(Flyway flyway) {
    flyway.clean();
    flyway.baseline();
    same("1", flyway.info().current().getVersion().getVersion());
  }
}
