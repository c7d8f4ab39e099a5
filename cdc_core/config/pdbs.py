"""Which sources does a configuration of several pluggable databases stand for?

One for each: names of tables, object numbers and transaction numbers of two of them can be equal,
so each has windows, a ledger of open transactions, landing folders and Delta tables of its own,
under ``<name>_<pdb>``. Everything else is what the configuration says, once.
"""

from __future__ import annotations

from typing import TypeVar

from cdc_core.config.source import SourceConfig, source_name_of
from cdc_core.config.tables import TableConfig
from cdc_core.errors import ConfigError

C = TypeVar("C", bound=SourceConfig)


def sources_of(config: C) -> dict[str, C]:
    """The source of each pluggable database that ``oracle.pdbs`` lists, by its name, in that order;
    none where it lists none.

    A source has the tables that are named with its pluggable database, and those that are named
    without any; where both name one table or pattern, the entry with the pluggable database counts.
    """
    return {pdb: _source_of(config, pdb) for pdb in config.oracle.pdbs}


def refuse_several(config: SourceConfig) -> None:
    """Raises what one says who is given several sources where one is wanted.

    Raises:
        ConfigError: ``oracle.pdbs`` lists pluggable databases.
    """
    if config.oracle.pdbs:
        raise ConfigError(
            "the configuration names several pluggable databases, and each is a separate source",
            hint="Open each of `cdc_core.config.sources_of(config)`.",
            source=config.name,
            pdbs=", ".join(config.oracle.pdbs),
        )


def _source_of(config: C, pdb: str) -> C:
    oracle = config.oracle.model_copy(update={"pdb": pdb, "pdbs": ()})
    return config.model_copy(
        update={
            "name": source_name_of(config.name, pdb),
            "oracle": oracle,
            "tables": _tables_of(config, pdb),
        }
    )


def _tables_of(config: SourceConfig, pdb: str) -> tuple[TableConfig, ...]:
    """In the order of the file, which says to whom a table belongs that two patterns name."""
    named = {one.identity_in_file for one in config.tables if one.container == pdb}
    return tuple(
        one.without_container()
        for one in config.tables
        if one.container == pdb or (one.container is None and one.identity_in_file not in named)
    )
