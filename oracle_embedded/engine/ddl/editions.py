"""How are editions made and removed?"""

from __future__ import annotations

from oracle_embedded.api import OracleError
from oracle_embedded.engine.ddl.ddl_run import DdlRun
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.storage.editions import checked_edition, editions, keep_editions


def change_editions(run: DdlRun, node: nodes.Edition) -> None:
    """CREATE EDITION, DROP EDITION."""
    catalog = run.session.database.store.catalog
    if not run.session.has_privilege("CREATE ANY EDITION"):
        raise ora(1031)
    names = editions(catalog)[1:]
    if node.is_dropped:
        checked_edition(catalog, node.name)
        if not names or node.name != names[-1]:
            raise OracleError(38810, "Implementation restriction: cannot drop edition that has a parent and a child")  # fmt: skip
        names.remove(node.name)
    elif node.name in editions(catalog):
        raise ora(955)
    else:
        names.append(node.name)
    keep_editions(catalog, names)
    run.about("SYS", node.name, 0)
