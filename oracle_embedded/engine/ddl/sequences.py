"""How are sequences made and altered?"""

from __future__ import annotations

from dataclasses import replace

from oracle_embedded.api import OracleError
from oracle_embedded.engine.ddl.ddl_run import DdlRun
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.storage.catalog import SequenceDef

_SEQUENCE_LIMIT = 10**28 - 1


def create_sequence(run: DdlRun, node: nodes.CreateSequence) -> None:
    """CREATE SEQUENCE and ALTER SEQUENCE."""
    database = run.session.database
    catalog = database.store.catalog
    options = dict(node.options)
    if node.alter:
        owner = node.name[0] if len(node.name) > 1 else run.session.schema
        found = catalog.find(owner, node.name[-1])
        if not isinstance(found, SequenceDef):
            raise ora(2289)
        if "start" in options and not options.get("restart"):
            raise OracleError(2283, "cannot alter starting sequence number")
        last = database.sequences.last_number(found)
        changed = replace(
            found,
            increment=int(options.get("increment", found.increment)),
            minimum=int(options.get("minimum", found.minimum)),
            maximum=int(options.get("maximum", found.maximum)),
            cycle=bool(options.get("cycle", found.cycle)),
            cache=int(options.get("cache", found.cache)),
            order=bool(options.get("order", found.order)),
            changed=run.now,
        )
        run.put(changed)
        database.sequences.restart(
            found.object_id,
            int(options.get("start", changed.start)) if options.get("restart") else last,
        )
        run.about(owner, found.name, found.object_id)
        return
    owner, name = run.own_name(node.name, "CREATE SEQUENCE", "CREATE ANY SEQUENCE")
    run.must_be_new(owner, name)
    definition = sequence_from(catalog.new_id(), owner, name, options, run.now)
    run.put(definition)
    run.about(owner, name, definition.object_id)


def sequence_from(
    identifier: int, owner: str, name: str, options: dict[str, int | bool], now: float
) -> SequenceDef:
    """A sequence with Oracle's defaults for what the options leave out."""
    increment = int(options.get("increment", 1))
    if increment == 0:
        raise OracleError(4002, "INCREMENT must be a non-zero integer")
    minimum = int(options.get("minimum", 1 if increment > 0 else -_SEQUENCE_LIMIT))
    maximum = int(options.get("maximum", _SEQUENCE_LIMIT if increment > 0 else -1))
    start = int(options.get("start", minimum if increment > 0 else maximum))
    if minimum >= maximum:
        raise OracleError(4004, "MINVALUE must be less than MAXVALUE")
    if start < minimum:
        raise OracleError(4006, "START WITH cannot be less than MINVALUE")
    if start > maximum:
        raise OracleError(4008, "START WITH cannot be more than MAXVALUE")
    return SequenceDef(
        object_id=identifier, owner=owner, name=name, start=start, increment=increment, minimum=minimum, maximum=maximum, cycle=bool(options.get("cycle")),
        cache=int(options.get("cache", 20)), order=bool(options.get("order")), created=now, changed=now,
    )  # fmt: skip
