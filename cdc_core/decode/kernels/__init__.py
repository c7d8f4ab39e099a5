"""Compiled loops over the bytes of redo text. They work on addresses, keep nothing, and raise
nothing: a row that they do not understand is flagged, and the plain form decides about it."""
