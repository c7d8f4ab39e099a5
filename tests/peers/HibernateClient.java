import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.Lob;
import jakarta.persistence.LockModeType;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OptimisticLockException;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import jakarta.persistence.UniqueConstraint;
import jakarta.persistence.Version;
import jakarta.persistence.criteria.CriteriaBuilder;
import jakarta.persistence.criteria.CriteriaQuery;
import jakarta.persistence.criteria.Root;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.function.Function;
import org.hibernate.Hibernate;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.StatelessSession;
import org.hibernate.boot.registry.BootstrapServiceRegistryBuilder;
import org.hibernate.cfg.Configuration;
import org.hibernate.exception.ConstraintViolationException;

/** What an application does through Hibernate, checked by itself: {@code name<TAB>ok} or {@code name<TAB>what went wrong}. */
public class HibernateClient {
  enum Kind { NOVEL, ESSAY }

  @Entity(name = "Author")
  @Table(name = "h_author", uniqueConstraints = @UniqueConstraint(name = "h_author_name", columnNames = "name"))
  public static class Author {
    @Id
    @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "authors")
    @SequenceGenerator(name = "authors", sequenceName = "h_author_seq", allocationSize = 10)
    Long id;
    @Column(nullable = false, length = 100)
    String name;
    LocalDate born;
    boolean alive;
    @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true)
    List<Book> books = new ArrayList<>();
    @ElementCollection
    Set<String> pseudonyms = new HashSet<>();
  }

  @Entity(name = "Book")
  @Table(name = "h_book", indexes = @Index(name = "h_book_title", columnList = "title"))
  public static class Book {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    Long id;
    @Column(length = 400)
    String title;
    @Column(precision = 10, scale = 2)
    BigDecimal price;
    @Enumerated(EnumType.STRING)
    Kind kind;
    LocalDateTime published;
    Instant seen;
    UUID code;
    double score;
    @Lob
    String text;
    @Lob
    byte[] cover;
    @Version
    int version;
    @ManyToOne(fetch = FetchType.LAZY)
    @JoinColumn(name = "author_id")
    Author author;
  }

  interface Check {
    void run() throws Exception;
  }

  static SessionFactory factory;
  static Long first;

  public static void main(String[] arguments) throws Exception {
    java.util.logging.LogManager.getLogManager().reset();
    check("schema made", () -> factory = open(arguments, "create-only"));
    check("persist with children", HibernateClient::persist);
    check("find and lazy children", HibernateClient::find);
    check("values of every type", HibernateClient::values);
    check("query with a join", () -> same(List.of("Ann", "Bob"), read("select distinct a.name from Author a join a.books b where b.price > 5 order by a.name")));
    check("page of a query", HibernateClient::page);
    check("groups", () -> same(List.of(20L, 20L), read("select count(b) from Book b group by b.author having count(b) > 3")));
    check("functions", HibernateClient::functions);
    check("criteria", HibernateClient::criteria);
    check("window function", () -> same(1L, read("select rank() over (order by b.price) from Book b order by b.price").get(0)));
    check("common table expression", () -> same(List.of(40L), read("with t as (select b.id as id from Book b) select count(*) from t")));
    check("changes are written", HibernateClient::change);
    check("optimistic lock", HibernateClient::optimistic);
    check("pessimistic lock", HibernateClient::pessimistic);
    check("bulk update and delete", HibernateClient::bulk);
    check("native query", () -> same(39L, inSession(s -> s.createNativeQuery("select count(*) from h_book", Long.class).getSingleResult())));
    check("unique key", HibernateClient::unique);
    check("stateless batch", HibernateClient::stateless);
    check("upsert", HibernateClient::upsert);
    check("stored procedure", HibernateClient::procedure);
    check("orphans go", HibernateClient::orphans);
    check("schema fits", () -> open(arguments, "validate").close());
    check("schema updated", () -> open(arguments, "update").close());
    check("schema dropped", () -> {
      factory.close();
      open(arguments, "drop").close();
    });
  }

  static SessionFactory open(String[] arguments, String schema) {
    // A program that is run from its source has a class loader of its own.
    Configuration configuration = new Configuration(
        new BootstrapServiceRegistryBuilder().applyClassLoader(HibernateClient.class.getClassLoader()).build());
    configuration.setProperty("jakarta.persistence.jdbc.url", "jdbc:oracle:thin:@//" + arguments[0]);
    configuration.setProperty("jakarta.persistence.jdbc.user", "DEMO");
    configuration.setProperty("jakarta.persistence.jdbc.password", arguments[1]);
    configuration.setProperty("hibernate.hbm2ddl.auto", schema);
    configuration.setProperty("hibernate.hbm2ddl.halt_on_error", "true");
    configuration.setProperty("hibernate.jdbc.batch_size", "20");
    configuration.setProperty("hibernate.jdbc.time_zone", "UTC");
    configuration.addAnnotatedClass(Author.class);
    configuration.addAnnotatedClass(Book.class);
    return configuration.buildSessionFactory();
  }

  static void check(String name, Check check) {
    String result = "ok";
    try {
      check.run();
    } catch (Throwable error) {
      Throwable cause = error;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      result = (error + " / " + cause).replace('\n', ' ').replace('\t', ' ');
    }
    System.out.println(name + "\t" + result);
  }

  static void same(Object expected, Object found) {
    if (!Objects.equals(expected, found)) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }

  static Object inSession(Function<Session, Object> work) {
    return factory.fromTransaction(work::apply);
  }

  static void inTransaction(Consumer<Session> work) {
    factory.inTransaction(work::accept);
  }

  static List<?> read(String query) {
    return (List<?>) inSession(s -> s.createSelectionQuery(query, Object.class).getResultList());
  }

  static Author author(String name, int books) {
    Author author = new Author();
    author.name = name;
    author.born = LocalDate.of(1960, 2, 29);
    author.alive = true;
    author.pseudonyms.addAll(List.of(name + " 1", name + " 2"));
    for (int at = 1; at <= books; at++) {
      Book book = new Book();
      book.title = name + "'s book " + at;
      book.price = new BigDecimal(at + ".25");
      book.kind = at % 2 == 0 ? Kind.NOVEL : Kind.ESSAY;
      book.published = LocalDateTime.of(2024, 1, at, 12, 30, 15, 123_456_000);
      book.seen = Instant.parse("2024-03-31T01:30:00.5Z");
      book.code = new UUID(at, at);
      book.score = at / 8.0;
      book.text = "é€".repeat(3_000);
      book.cover = new byte[9_000];
      book.cover[8_999] = 7;
      book.author = author;
      author.books.add(book);
    }
    return author;
  }

  static void persist() {
    inTransaction(s -> {
      Author ann = author("Ann", 20);
      s.persist(ann);
      s.persist(author("Bob", 20));
      first = ann.id;
    });
    same(40L, read("select count(*) from Book").get(0));
  }

  static void find() {
    inTransaction(s -> {
      Author ann = s.find(Author.class, first);
      same("Ann", ann.name);
      same(false, Hibernate.isInitialized(ann.books));
      same(20, ann.books.size());
      same(Set.of("Ann 1", "Ann 2"), Set.copyOf(ann.pseudonyms));
    });
  }

  static void values() {
    inTransaction(s -> {
      Book book = s.createSelectionQuery("from Book where title = :t", Book.class).setParameter("t", "Ann's book 3").getSingleResult();
      same(new BigDecimal("3.25"), book.price);
      same(Kind.ESSAY, book.kind);
      same(LocalDateTime.of(2024, 1, 3, 12, 30, 15, 123_456_000), book.published);
      same(Instant.parse("2024-03-31T01:30:00.5Z"), book.seen);
      same(new UUID(3, 3), book.code);
      same(0.375, book.score);
      same(6_000, book.text.length());
      same((byte) 7, book.cover[8_999]);
      Author author = (Author) Hibernate.unproxy(book.author);
      same(LocalDate.of(1960, 2, 29), author.born);
      same(true, author.alive);
    });
  }

  static void page() {
    List<?> titles = (List<?>) inSession(s -> s.createSelectionQuery("select title from Book where author.name = 'Ann' order by price", String.class)
        .setFirstResult(5).setMaxResults(3).getResultList());
    same(List.of("Ann's book 6", "Ann's book 7", "Ann's book 8"), titles);
  }

  static void functions() {
    same(List.of("ANN-3-2024"), read("select upper(substring(title, 1, 3)) || '-' || cast(extract(day from published) as string) || '-' || cast(year(published) as string)"
        + " from Book where title = 'Ann''s book 3'"));
    same(List.of(19L), read("select count(*) from Book where author.name = 'Ann' and published + 1 day > datetime 2024-01-03 00:00:00 and coalesce(score, 0) >= 0"));
  }

  static void criteria() {
    Object count = inSession(s -> {
      CriteriaBuilder builder = s.getCriteriaBuilder();
      CriteriaQuery<Long> query = builder.createQuery(Long.class);
      Root<Book> book = query.from(Book.class);
      query.select(builder.count(book)).where(builder.and(builder.equal(book.get("kind"), Kind.NOVEL), builder.like(book.get("title"), "Ann%"),
          builder.between(book.<BigDecimal>get("price"), BigDecimal.ONE, BigDecimal.TEN)));
      return s.createQuery(query).getSingleResult();
    });
    same(4L, count);
  }

  static void change() {
    inTransaction(s -> s.find(Author.class, first).books.forEach(book -> book.price = book.price.add(BigDecimal.ONE)));
    same(List.of(1), read("select distinct version from Book where author.name = 'Ann'"));
  }

  static void optimistic() {
    Long id = (Long) read("select min(id) from Book").get(0);
    Session slow = factory.openSession();
    slow.beginTransaction();
    slow.find(Book.class, id).title = "slow";
    inTransaction(s -> s.find(Book.class, id).title = "quick");
    try {
      slow.getTransaction().commit();
      throw new AssertionError("no error");
    } catch (OptimisticLockException | jakarta.persistence.RollbackException error) {
      same("quick", read("select title from Book where id = " + id).get(0));
    } finally {
      slow.close();
    }
  }

  static void pessimistic() {
    inTransaction(s -> {
      Author held = s.find(Author.class, first, LockModeType.PESSIMISTIC_WRITE);
      try {
        factory.inTransaction(other -> other.createSelectionQuery("from Author where id = :id", Author.class).setParameter("id", held.id)
            .setLockMode(LockModeType.PESSIMISTIC_WRITE).setHint("jakarta.persistence.lock.timeout", 0).getSingleResult());
        throw new AssertionError("no error");
      } catch (jakarta.persistence.PessimisticLockException | jakarta.persistence.LockTimeoutException | org.hibernate.PessimisticLockException error) {
        same(List.of(), other());
      }
    });
  }

  /** The rows that SKIP LOCKED leaves. */
  static List<?> other() {
    return (List<?>) inSession(s -> s.createSelectionQuery("from Author where name = 'Ann'", Author.class)
        .setLockMode(LockModeType.PESSIMISTIC_WRITE).setHint("jakarta.persistence.lock.timeout", -2).getResultList());
  }

  static void bulk() {
    same(20, inSession(s -> s.createMutationQuery("update Book b set b.score = b.score * 2 where b.author.id = (select a.id from Author a where a.name = 'Bob')").executeUpdate()));
    same(1, inSession(s -> s.createMutationQuery("delete from Book where title = 'Bob''s book 20'").executeUpdate()));
    same(19, inSession(s -> s.createMutationQuery("update Book b set b.score = b.score / 2 where b.author.name = 'Bob'").executeUpdate()));
  }

  static void unique() {
    try {
      inTransaction(s -> s.persist(author("Ann", 0)));
      throw new AssertionError("no error");
    } catch (ConstraintViolationException error) {
      same("H_AUTHOR_NAME", error.getConstraintName().replaceAll(".*\\.", "").toUpperCase());
      same(1, error.getErrorCode());
    }
  }

  static void stateless() {
    try (StatelessSession session = factory.openStatelessSession()) {
      session.beginTransaction();
      for (int at = 0; at < 100; at++) {
        Author one = author("many " + at, 0);
        one.pseudonyms.clear();
        session.insert(one);
      }
      session.getTransaction().commit();
    }
    same(102L, read("select count(*) from Author").get(0));
    same(100, inSession(s -> s.createMutationQuery("delete from Author where name like 'many %'").executeUpdate()));
  }

  static void upsert() {
    try (StatelessSession session = factory.openStatelessSession()) {
      session.beginTransaction();
      Author made = author("Cleo", 0);
      made.id = 900L;
      session.upsert(made);
      made.name = "Cleo II";
      session.upsert(made);
      session.getTransaction().commit();
    }
    same(List.of("Cleo II"), read("select name from Author where id = 900"));
  }

  static void procedure() {
    inTransaction(s -> s.createNativeMutationQuery(
        "create or replace procedure h_double (p_in in number, p_out out number) as begin p_out := 2 * p_in; end;").executeUpdate());
    Object found = inSession(s -> {
      var call = s.createStoredProcedureQuery("h_double");
      call.registerStoredProcedureParameter(1, Integer.class, jakarta.persistence.ParameterMode.IN);
      call.registerStoredProcedureParameter(2, Integer.class, jakarta.persistence.ParameterMode.OUT);
      call.setParameter(1, 21);
      call.execute();
      return call.getOutputParameterValue(2);
    });
    same(42, found);
  }

  static void orphans() {
    inTransaction(s -> s.find(Author.class, first).books.clear());
    same(0L, read("select count(*) from Book where author.id = " + first).get(0));
    inTransaction(s -> s.remove(s.find(Author.class, first)));
    same(0L, read("select count(*) from Author where id = " + first).get(0));
  }
}
