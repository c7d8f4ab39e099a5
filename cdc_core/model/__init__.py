"""Which values do all parts speak of? They are frozen, check themselves, and know nothing of the
parts."""
