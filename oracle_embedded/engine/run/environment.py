"""What may the compiler ask of a session: names, rights, constants?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from oracle_embedded.charsets import CharacterSets
from oracle_embedded.engine.compile.compilation import Compilation, Environment, Rules
from oracle_embedded.engine.compile.queries import SQL
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.policies import predicates, redaction
from oracle_embedded.engine.run.user_types import usable_type
from oracle_embedded.engine.sql.queries import parse_query


def compilation(
    session: SessionState, bind_types: Sequence[SqlType] | None, rules: Rules = SQL
) -> Compilation:
    """A new compilation with a session's names and rights; ``bind_types`` are None to describe only."""
    return Compilation(_environment(session), bind_types, rules)


@lru_cache(maxsize=64)
def text_orders(sets: CharacterSets) -> dict[int, str]:
    """Which collations order texts by the bytes of their sets; none for a set that has the order of code points."""
    orders = {1: (sets.database, "o_bytes"), 2: (sets.national, "o_national_bytes")}
    return {form: name for form, (own, name) in orders.items() if not own.sorts_by_code_points}


def _environment(session: SessionState) -> Environment:
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
        orders=text_orders(database.character_sets),
    )
