"""Reads the changes of a database as its XStream outbound server gives them: logical change records
(LCRs), from recordings in files, or through Oracle's client library.

The library's side follows Oracle's documentation and public header; this project has never run it
against Oracle's own library. Recordings and everything behind them are tested as all else is.
"""
