"""Where are the dictionary views declared? Importing this module loads them all."""

from cdc_core.oracle_embedded.engine import (
    dictionary_objects,
    dictionary_system,
    dictionary_tables,
)

LOADED = (dictionary_objects, dictionary_system, dictionary_tables)
