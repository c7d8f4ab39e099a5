"""Where is every registered function declared? Importing this module loads them all."""

from cdc_core.oracle_embedded.engine import (
    functions_convert,
    functions_date,
    functions_misc,
    functions_number,
    functions_text,
)

LOADED = (functions_convert, functions_date, functions_misc, functions_number, functions_text)
