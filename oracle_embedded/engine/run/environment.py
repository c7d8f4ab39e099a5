"""What may the compiler ask of a session: names, rights, constants?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

from oracle_embedded.charsets import CharacterSets
from oracle_embedded.engine.compile.compilation import Compilation, Environment, Rules
from oracle_embedded.engine.compile.plan import IN_CODE_POINTS, TextOrder
from oracle_embedded.engine.compile.queries import SQL
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.functions.sorting import BINARY
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.policies import predicates, redaction
from oracle_embedded.engine.run.user_types import usable_type
from oracle_embedded.engine.sql.queries import parse_query

_LINGUISTIC = "o_linguistic"


def compilation(
    session: SessionState,
    bind_types: Sequence[SqlType] | None,
    rules: Rules = SQL,
    *,
    nls: Mapping[str, str] | None = None,
) -> Compilation:
    """A new compilation with a session's names and rights; ``bind_types`` are None to describe
    only; ``nls`` are other settings than the session's."""
    return Compilation(_environment(session, nls or session.nls), bind_types, rules)


@lru_cache(maxsize=64)
def text_orders(sets: CharacterSets, sort: str, comparison: str) -> dict[int, TextOrder]:
    """By what texts of the two sets are ordered where it is not their code points.

    ORDER BY follows NLS_SORT; what compares, only where NLS_COMP says so. Otherwise the bytes of
    the set decide. Source: Globalization Support Guide 19c, "Linguistic Sorting and Matching", the
    effects of NLS_SORT and NLS_COMP.
    """
    is_linguistic = sort != BINARY
    compares = is_linguistic and comparison != BINARY
    orders = {}
    for form, own, name in ((1, sets.database, "o_bytes"), (2, sets.national, "o_national_bytes")):
        binary = None if own.sorts_by_code_points else name
        order = TextOrder(
            sorting=_LINGUISTIC if is_linguistic else binary,
            comparing=_LINGUISTIC if compares else binary,
            equality=_LINGUISTIC if compares else None,
        )
        if order != IN_CODE_POINTS:
            orders[form] = order
    return orders


def _environment(session: SessionState, nls: Mapping[str, str]) -> Environment:
    database = session.database
    security = database.security
    user = session.rights
    return Environment(
        schema=session.schema,
        user=user,
        find=partial(database.find, session),
        definition=database.store.catalog.by_id,
        virtual=partial(database.find_virtual, session),
        may_select=partial(security.may_select, user),
        may_flashback=partial(security.may_flashback, user),
        may_change=partial(security.may_change, user),
        constants=database.constants,
        parse_view=parse_query,
        filling=session.filling,
        shows_archived=session.shows_archived,
        routine=partial(database.stored_function, session),
        user_type=partial(usable_type, session),
        predicates=partial(predicates, session),
        redaction=partial(redaction, session),
        character_sets=database.character_sets,
        is_23ai=database.release == "23ai",
        orders=text_orders(
            database.character_sets, *(nls[name] for name in ("NLS_SORT", "NLS_COMP"))
        ),
    )
