"""How do existing rows get into the mirrors? Snapshots are planned, and their chunks read and
applied.

The first snapshot reads all tables as of one SCN, before any window. An ad hoc snapshot reads some
tables again, whole or with a condition, while windows continue; the apply rule puts its rows right.
"""
