"""How does a history table, one row per state, follow the change log that it is derived from?"""
