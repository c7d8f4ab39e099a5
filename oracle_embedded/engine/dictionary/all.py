"""Where are the dictionary views declared? Importing this module loads them all."""

from oracle_embedded.engine.dictionary import objects as dictionary_objects
from oracle_embedded.engine.dictionary import system as dictionary_system
from oracle_embedded.engine.dictionary import tables as dictionary_tables

LOADED = (dictionary_objects, dictionary_system, dictionary_tables)
