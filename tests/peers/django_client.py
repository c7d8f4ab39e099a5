"""What an application in Django does, checked by itself: a line for each use, its name and ``ok`` or what went wrong.

Run by an interpreter that has Django: ``python django_client.py PORT USER PASSWORD``.
"""

# ruff: noqa: E402, F403, F405, PT018, RUF012, RUF015, UP031
# mypy: ignore-errors

import datetime
import decimal
import functools
import io
import sys
import tempfile
import types
import uuid

import django
from django.conf import settings

port, user, password = sys.argv[1:4]
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.oracle",
            "NAME": f"127.0.0.1:{port}/ORCLPDB1",
            "USER": user,
            "PASSWORD": password,
        }
    },
    INSTALLED_APPS=[
        *(
            f"django.contrib.{name}"
            for name in ("auth", "contenttypes", "sessions", "admin", "messages")
        ),
        "x",
    ],
    USE_TZ=True,
    TIME_ZONE="UTC",
    SECRET_KEY="none",
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
application = types.ModuleType("x")
application.__path__ = [tempfile.mkdtemp()]
sys.modules["x"] = application
django.setup()

from django.contrib.auth import authenticate
from django.contrib.auth.models import Group, User
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction
from django.db.models import *
from django.db.models.functions import *


def use(name, run):
    try:
        run()
        print(f"{name}\tok")
    except Exception as error:
        text = " ".join(str(error).split())
        print(f"{name}\t{type(error).__name__}: {text[:300]}")
        connection.rollback()


def migrate():
    call_command("migrate", verbosity=0)
    return "done"


use("migrate", migrate)
use("migrate again", migrate)


class Author(models.Model):
    name = models.CharField(max_length=100)
    born = models.DateField(null=True)
    bio = models.TextField(default="")

    class Meta:
        app_label = "x"


class Book(models.Model):
    title = models.CharField(max_length=200, db_index=True)
    author = models.ForeignKey(Author, models.CASCADE, related_name="books")
    price = models.DecimalField(max_digits=10, decimal_places=2)
    published = models.DateTimeField(null=True)
    pages = models.IntegerField(default=0)
    data = models.JSONField(default=dict)
    uid = models.UUIDField(default=uuid.uuid4)
    raw = models.BinaryField(default=b"")
    ok = models.BooleanField(default=True)
    took = models.DurationField(null=True)
    rate = models.FloatField(null=True)

    class Meta:
        app_label = "x"
        constraints = [
            models.CheckConstraint(condition=Q(price__gte=0), name="price_pos"),
            models.UniqueConstraint(fields=["title", "author"], name="uq_t_a"),
        ]
        indexes = [models.Index(Upper("title"), name="ix_up")]


class Tag(models.Model):
    name = models.SlugField(unique=True)
    books = models.ManyToManyField(Book, related_name="tags")

    class Meta:
        app_label = "x"


def create():
    with connection.schema_editor() as e:
        for m in (Author, Book, Tag):
            e.create_model(m)


use("schema editor", create)
U = datetime.UTC


def ins():
    a = Author.objects.create(name="Ann", born=datetime.date(1990, 2, 3), bio="é" * 5000)
    b = Book.objects.create(
        title="One",
        author=a,
        price=decimal.Decimal("9.50"),
        published=datetime.datetime(2024, 1, 2, 3, 4, 5, 6000, tzinfo=U),
        pages=100,
        data={"a": [1, 2], "b": "x"},
        raw=b"\0\1",
        took=datetime.timedelta(days=1, seconds=5),
        rate=1.25,
    )
    g = Book.objects.get(pk=b.pk)
    assert (
        g.raw
        and bytes(g.raw) == b"\0\1"
        and g.data == {"a": [1, 2], "b": "x"}
        and g.uid == b.uid
        and g.published == b.published
        and g.took == b.took
        and g.author.bio == a.bio
    ), (g.data, g.published, g.took)
    return g.pk


use("insert and get", ins)
use(
    "bulk_create 500",
    lambda: len(
        Book.objects.bulk_create(
            [
                Book(
                    title=f"B{i}",
                    author=Author.objects.first(),
                    price=i,
                    pages=i,
                    published=datetime.datetime(2023, 1 + i % 12, 1, tzinfo=U),
                )
                for i in range(500)
            ]
        )
    ),
)
use(
    "bulk_create 3000 authors",
    lambda: len(Author.objects.bulk_create([Author(name=f"A{i}") for i in range(3000)])),
)
use(
    "filter/order/slice",
    lambda: [
        b.title
        for b in Book.objects.filter(pages__gte=10, title__startswith="B").order_by("-pages")[5:10]
    ],
)
use(
    "contains/icontains/regex",
    lambda: (
        Book.objects.filter(title__contains="B1").count(),
        Book.objects.filter(title__icontains="b1").count(),
        Book.objects.filter(title__regex=r"^B1\d$").count(),
        Book.objects.filter(title__iexact="one").count(),
        Book.objects.filter(title__endswith="9").count(),
    ),
)
use(
    "aggregate",
    lambda: Book.objects.aggregate(
        Sum("price"),
        Avg("pages"),
        Max("published"),
        Count("id"),
        StdDev("pages"),
        Variance("pages"),
    ),
)
use(
    "annotate group",
    lambda: list(
        Book.objects.values("author__name").annotate(n=Count("id"), t=Sum("price")).order_by("-n")
    ),
)
use(
    "F update",
    lambda: Book.objects.filter(pages__lt=10).update(pages=F("pages") + 1, price=F("price") * 2),
)
use("Q or", lambda: Book.objects.filter(Q(pages=3) | Q(pages=4) & ~Q(title="x")).count())
use(
    "deep Q",
    lambda: Book.objects.filter(
        functools.reduce(lambda a, b: a | b, [Q(pages=i) for i in range(600)])
    ).count(),
)
use("in 1500", lambda: Book.objects.filter(pages__in=list(range(1500))).count())
use("select_related", lambda: [b.author.name for b in Book.objects.select_related("author")[:3]])


def m2m():
    t = Tag.objects.create(name="t1")
    t.books.add(*Book.objects.all()[:5])
    t.books.set(Book.objects.all()[3:8])
    return [len(x.books.all()) for x in Tag.objects.prefetch_related("books")]


use("many to many", m2m)
use(
    "subquery/exists",
    lambda: (
        Author.objects.filter(Exists(Book.objects.filter(author=OuterRef("pk")))).count(),
        Author.objects.annotate(
            last=Subquery(
                Book.objects.filter(author=OuterRef("pk")).order_by("-pages").values("title")[:1]
            )
        )
        .filter(last__isnull=False)
        .values_list("last", flat=True)[0],
    ),
)
use(
    "window",
    lambda: list(
        Book.objects.annotate(
            r=Window(RowNumber(), order_by=F("pages").desc()),
            s=Window(Sum("price"), partition_by=F("author")),
        ).values_list("r", "s")[:2]
    ),
)
use(
    "case when",
    lambda: list(
        Book.objects.annotate(k=Case(When(pages__lt=100, then=Value("s")), default=Value("l")))
        .values_list("k")
        .annotate(Count("id"))
        .order_by("k")
    ),
)
use(
    "functions text",
    lambda: list(
        Book.objects.annotate(
            a=Concat("title", Value("-"), "author__name"),
            b=Length("title"),
            c=Substr("title", 1, 1),
            d=Upper("title"),
            e=Replace("title", Value("B"), Value("X")),
            f=LPad("title", 10, Value("*")),
            g=Trim("title"),
            h=Left("title", 2),
            i=Reverse("title"),
            j=StrIndex("title", Value("n")),
        ).values_list("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")[:1]
    ),
)
use(
    "functions hash",
    lambda: list(
        Book.objects.annotate(a=MD5("title"), b=SHA256("title")).values_list("a", "b")[:1]
    ),
)
use(
    "functions math",
    lambda: list(
        Book.objects.annotate(
            a=Abs("price"),
            b=Ceil("price"),
            c=Round("price"),
            d=Power("pages", 2),
            e=Sqrt("pages"),
            f=Mod("pages", 7),
            g=Sin("pages"),
            h=ATan2("pages", "pages"),
            i=Ln(F("pages") + 1),
            j=Degrees("pages"),
            k=Pi(),
            l=Log(10, F("pages") + 1),
            m=Sign("pages"),
        ).values_list()[:1]
    ),
)
use("random order", lambda: Book.objects.order_by("?").first().title[:1])
use(
    "date trunc/extract",
    lambda: (
        list(
            Book.objects.annotate(m=TruncMonth("published"))
            .values("m")
            .annotate(n=Count("id"))
            .order_by("m")[:2]
        ),
        Book.objects.filter(published__year=2023).count(),
        list(
            Book.objects.annotate(
                y=ExtractYear("published"),
                w=ExtractWeek("published"),
                d=ExtractWeekDay("published"),
                q=ExtractQuarter("published"),
            ).values_list("y", "w", "d", "q")[:1]
        ),
        list(
            Book.objects.annotate(
                d=TruncDate("published"), h=TruncHour("published"), k=TruncWeek("published")
            ).values_list("d", "h", "k")[:1]
        ),
    ),
)
use(
    "date filters",
    lambda: (
        Book.objects.filter(published__date=datetime.date(2024, 1, 2)).count(),
        Book.objects.filter(published__time__gte=datetime.time(1)).count(),
        Book.objects.filter(
            published__range=(
                datetime.datetime(2023, 1, 1, tzinfo=U),
                datetime.datetime(2023, 6, 1, tzinfo=U),
            )
        ).count(),
        list(Book.objects.dates("published", "month"))[:2],
        list(Book.objects.datetimes("published", "month"))[:1],
    ),
)
use(
    "date arithmetic",
    lambda: (
        Book.objects.filter(published__lt=Now() - datetime.timedelta(days=3)).count(),
        list(
            Author.objects.filter(born__isnull=False)
            .annotate(
                d=ExpressionWrapper(
                    F("born") + datetime.timedelta(days=3), output_field=DateField()
                )
            )
            .values_list("d", flat=True)[:1]
        ),
        list(
            Book.objects.filter(took__isnull=False)
            .annotate(
                e=F("published") + F("took"),
                z=ExpressionWrapper(
                    F("published")
                    - Value(datetime.datetime(2023, 1, 1, tzinfo=U), output_field=DateTimeField()),
                    output_field=DurationField(),
                ),
            )
            .values_list("e", "z")[:1]
        ),
    ),
)
use(
    "json",
    lambda: (
        Book.objects.filter(data__b="x").count(),
        Book.objects.filter(data__a__0=1).count(),
        Book.objects.filter(data__has_key="a").count(),
        Book.objects.filter(data__a__isnull=False).count(),
    ),
)
use(
    "json object",
    lambda: list(
        Book.objects.annotate(j=JSONObject(t="title", p="pages")).values_list("j", flat=True)[:1]
    ),
)
use(
    "json contains key in",
    lambda: (
        Book.objects.filter(data__has_keys=["a", "b"]).count(),
        Book.objects.filter(data__has_any_keys=["a", "z"]).count(),
        Book.objects.filter(data__b__in=["x", "y"]).count(),
        Book.objects.filter(data={"a": [1, 2], "b": "x"}).count(),
        Book.objects.order_by("data__b").first().title,
    ),
)
use(
    "union/intersect",
    lambda: (
        Book.objects.filter(pages=3)
        .values_list("title")
        .union(Book.objects.filter(pages=4).values_list("title"))
        .count(),
        len(
            Book.objects.values_list("pages").difference(
                Book.objects.filter(pages__gt=100).values_list("pages")
            )
        ),
    ),
)
use(
    "distinct/exists/first",
    lambda: (
        Book.objects.values("author").distinct().count(),
        Book.objects.filter(pages=-1).exists(),
        Book.objects.order_by("pages").last().pages,
        Book.objects.in_bulk([1, 2, 3]).keys(),
    ),
)


def integrity():
    try:
        with transaction.atomic():
            Book.objects.create(title="One", author=Author.objects.first(), price=1)
    except IntegrityError:
        pass
    else:
        raise AssertionError("no unique error")
    try:
        with transaction.atomic():
            Book.objects.create(title="neg", author=Author.objects.first(), price=-1)
    except IntegrityError as e:
        return str(e)[:60]
    raise AssertionError("no check error")


use("integrity", integrity)


def deferred():
    try:
        with transaction.atomic():
            Book.objects.filter(title="One").update(author_id=99999)
            Author(id=99999, name="late").save(force_insert=True)
    except IntegrityError:
        raise
    try:
        with transaction.atomic():
            Book.objects.filter(title="One").update(author_id=88888)
    except IntegrityError as e:
        return str(e)[:50]
    raise AssertionError("no error")


use("deferred keys", deferred)


def nested():
    with transaction.atomic():
        Author.objects.create(name="out")
        try:
            with transaction.atomic():
                Author.objects.create(name="in")
                raise ValueError
        except ValueError:
            pass
    return (Author.objects.filter(name="out").count(), Author.objects.filter(name="in").count())


use("savepoints", nested)


def lock():
    with transaction.atomic():
        return (
            Book.objects.select_for_update().get(title="One").pk,
            len(
                Book.objects.select_for_update(skip_locked=True, of=("self",))
                .select_related("author")
                .filter(pages__lt=3)
            ),
            list(Book.objects.select_for_update(nowait=True).filter(pages=5))[0].pk,
        )


use("select for update", lock)
use(
    "update_or_create",
    lambda: (Tag.objects.update_or_create(name="t2")[1], Tag.objects.get_or_create(name="t2")[1]),
)
use(
    "bulk_update",
    lambda: Book.objects.bulk_update(
        [
            Book(id=b.id, pages=7, title="U%d" % b.id)
            for b in Book.objects.filter(title__startswith="B4")
        ],
        ["pages", "title"],
    ),
)
use(
    "values iterator",
    lambda: sum(1 for _ in Book.objects.values_list("id").iterator(chunk_size=100)),
)
use(
    "raw",
    lambda: [b.title for b in Book.objects.raw("select * from x_book where pages < %s", [3])][:2],
)
use(
    "cursor",
    lambda: (
        lambda c: (
            c.execute(
                "select count(*), max(title) from x_book where pages > %s and title like %s",
                [3, "B%"],
            ),
            c.fetchone(),
        )
    )(connection.cursor())[1],
)
use(
    "callproc",
    lambda: (
        lambda c: (
            c.execute(
                "create or replace procedure pq(a in number, b out number) as begin b := a*2; end;/"
            ),
            c.callproc("pq", [4, 0]),
        )
    )(connection.cursor())[1],
)
use(
    "introspection",
    lambda: (
        lambda i, c: (
            len(i.table_names(c)),
            [f.name for f in i.get_table_description(c, "x_book")],
            sorted(i.get_constraints(c, "x_book"))[:9],
            i.get_relations(c, "x_book"),
            i.get_sequences(c, "x_book"),
        )
    )(connection.introspection, connection.cursor()),
)


def inspect():
    o = io.StringIO()
    call_command("inspectdb", stdout=o)
    return len(o.getvalue())


use("inspectdb", inspect)


def alter():
    f = models.CharField(max_length=50, null=True)
    f.set_attributes_from_name("extra")
    g = models.IntegerField(default=5)
    g.set_attributes_from_name("count")
    with connection.schema_editor() as e:
        e.add_field(Book, f)
        e.add_field(Book, g)
        n = models.CharField(max_length=80, default="x")
        n.set_attributes_from_name("extra")
        n.model = Book
        f.model = Book
        e.alter_field(Book, f, n)
        p = Book._meta.get_field("pages")
        q = models.BigIntegerField(default=0, null=True)
        q.set_attributes_from_name("pages")
        q.model = Book
        e.alter_field(Book, p, q)
        r = models.CharField(max_length=80, default="x")
        r.set_attributes_from_name("extra2")
        r.model = Book
        e.alter_field(Book, n, r)
        tx = models.TextField(default="")
        tx.set_attributes_from_name("title2")
        tx.model = Book
        e.add_field(Book, tx)
        e.remove_field(Book, r)
        e.alter_db_table(Tag, "x_tag", "x_label")
        e.alter_db_table(Tag, "x_label", "x_tag")
        e.remove_constraint(Book, Book._meta.constraints[0])
        e.add_index(Book, models.Index(fields=["-pages", "title"], name="ix_pt"))
    return ""


use("alter schema", alter)
use("delete cascade", lambda: Author.objects.filter(name="Ann").delete())
use("flush", lambda: call_command("flush", verbosity=0, interactive=False))


def users():
    u = User.objects.create_user("joe", password="pw")
    u.groups.add(Group.objects.create(name="g"))
    assert authenticate(username="joe", password="pw")
    return u.has_perm("auth.add_user")


use("users", users)
use(
    "sessions",
    lambda: (lambda s: (s.__setitem__("a", 1), s.save(), type(s)(s.session_key)["a"]))(
        SessionStore()
    ),
)
use("backwards migration", lambda: call_command("migrate", "sessions", "zero", verbosity=0))
