"""A table whose rows all their values identify (``identity: all_columns``) is a multiset: for each
digest of values, a number of copies."""
