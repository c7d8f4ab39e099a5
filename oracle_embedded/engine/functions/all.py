"""Where is every registered function declared? Importing this module loads them all."""

from oracle_embedded.engine.functions import convert as functions_convert
from oracle_embedded.engine.functions import dates as functions_date
from oracle_embedded.engine.functions import misc as functions_misc
from oracle_embedded.engine.functions import numbers as functions_number
from oracle_embedded.engine.functions import text as functions_text

LOADED = (functions_convert, functions_date, functions_misc, functions_number, functions_text)
