import static org.jooq.impl.DSL.count;
import static org.jooq.impl.DSL.field;
import static org.jooq.impl.DSL.name;
import static org.jooq.impl.DSL.rowNumber;
import static org.jooq.impl.DSL.select;
import static org.jooq.impl.DSL.sum;
import static org.jooq.impl.DSL.table;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.time.LocalDate;
import java.util.List;
import java.util.Objects;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.Record;
import org.jooq.SQLDialect;
import org.jooq.Table;
import org.jooq.exception.DataAccessException;
import org.jooq.impl.DSL;
import org.jooq.impl.SQLDataType;

/**
 * What an application does through jOOQ's open source edition, which knows Oracle as the default dialect alone, checked by itself:
 * {@code name<TAB>ok} or {@code name<TAB>what went wrong}.
 */
public class JooqClient {
  interface Check {
    void run() throws Exception;
  }

  static final Table<Record> ITEM = table(name("J_ITEM"));
  static final Field<Integer> ID = field(name("ID"), SQLDataType.INTEGER);
  static final Field<String> LABEL = field(name("LABEL"), SQLDataType.VARCHAR(40));
  static final Field<BigDecimal> PRICE = field(name("PRICE"), SQLDataType.DECIMAL(10, 2));
  static final Field<LocalDate> MADE = field(name("MADE"), SQLDataType.LOCALDATE);

  static DSLContext context;

  public static void main(String[] arguments) throws Exception {
    System.setProperty("org.jooq.no-logo", "true");
    System.setProperty("org.jooq.no-tips", "true");
    java.util.logging.LogManager.getLogManager().reset();
    try (Connection connection = DriverManager.getConnection("jdbc:oracle:thin:@//" + arguments[0], "DEMO", arguments[1])) {
      context = DSL.using(connection, SQLDialect.DEFAULT);
      check("DDL", () -> context.execute("create table j_item (id number(9) primary key, label varchar2(40) not null, price number(10,2), made date)"));
      check("insert", () -> same(1, context.insertInto(ITEM, ID, LABEL, PRICE, MADE).values(1, "it's", new BigDecimal("1.50"), LocalDate.of(2024, 2, 29)).execute()));
      check("batch", JooqClient::batch);
      check("query", JooqClient::query);
      check("groups", () -> same(List.of(10, 10, 10, 10, 11), context.select(count()).from(ITEM).groupBy(ID.mod(5)).orderBy(1).fetch().getValues(0, Integer.class)));
      check("window", () -> same(3, context.select(rowNumber().over().orderBy(ID.desc())).from(ITEM).orderBy(ID.desc()).fetch().get(2).value1()));
      check("subquery", () -> same(1, context.fetchCount(context.selectFrom(ITEM).where(PRICE.eq(select(DSL.max(PRICE)).from(ITEM))))));
      check("common table expression", JooqClient::common);
      check("update", () -> same(50, context.update(ITEM).set(PRICE, PRICE.plus(1)).where(ID.gt(1)).execute()));
      check("MERGE", JooqClient::merge);
      check("transaction rolled back", JooqClient::rolledBack);
      check("lazy fetch", JooqClient::lazy);
      check("errors", JooqClient::errors);
      check("metadata", JooqClient::metadata);
      check("delete", () -> same(52, context.deleteFrom(ITEM).execute()));
    }
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

  static void batch() {
    var batch = context.batch(context.insertInto(ITEM, ID, LABEL, PRICE, MADE).values((Integer) null, null, null, null));
    for (int at = 2; at <= 51; at++) {
      batch.bind(at, "item " + at, new BigDecimal(at), LocalDate.of(2024, 1, 1).plusDays(at));
    }
    same(50, batch.execute().length);
    same(51, context.fetchCount(ITEM));
  }

  static void query() {
    var rows = context.select(ID, LABEL, PRICE, MADE).from(ITEM).where(ID.in(1, 2, 3)).and(LABEL.like("i%")).orderBy(ID).fetch();
    same(List.of("it's", "item 2", "item 3"), rows.getValues(LABEL));
    same(LocalDate.of(2024, 2, 29), rows.get(0).get(MADE));
    same(0, new BigDecimal("1.5").compareTo(rows.get(0).get(PRICE)));
  }

  static void common() {
    var dear = name("DEAR").as(select(ID, PRICE).from(ITEM).where(PRICE.gt(new BigDecimal(40))));
    var total = context.with(dear).select(sum(field(name("DEAR", "PRICE"), BigDecimal.class))).from(dear).fetchOne().value1();
    same(506, total.intValueExact());
  }

  static void merge() {
    String merge = "merge into j_item t using (select {0} id, {1} label from dual) s on (t.id = s.id)"
        + " when matched then update set t.label = s.label when not matched then insert (id, label) values (s.id, s.label)";
    same(1, context.execute(merge, DSL.val(1), DSL.val("merged")));
    same(1, context.execute(merge, DSL.val(900), DSL.val("new")));
    same("merged", context.fetchValue(context.select(LABEL).from(ITEM).where(ID.eq(1))));
  }

  static void rolledBack() {
    try {
      context.transaction(inner -> {
        DSL.using(inner).deleteFrom(ITEM).execute();
        throw new IllegalStateException("on purpose");
      });
    } catch (IllegalStateException error) {
      same(52, context.fetchCount(ITEM));
      return;
    }
    throw new AssertionError("no error");
  }

  static void lazy() {
    int found = 0;
    try (var cursor = context.selectFrom(ITEM).fetchSize(7).fetchLazy()) {
      while (cursor.hasNext()) {
        found += cursor.fetchNext(10).size();
      }
    }
    same(52, found);
  }

  static void errors() {
    try {
      context.insertInto(ITEM, ID, LABEL).values(1, "again").execute();
      throw new AssertionError("no error");
    } catch (DataAccessException error) {
      same("23000", error.sqlState());
    }
  }

  static void metadata() {
    var found = context.meta().filterSchemas(schema -> schema.getName().equals("DEMO")).getTables("J_ITEM").get(0);
    same(4, found.fields().length);
    same("ID", found.getPrimaryKey().getFields().get(0).getName());
  }
}
