"""Reads streams of committed changes that another program takes from the redo: what the adapters of
such programs share.

An adapter says what its records are (:mod:`cdc_core.change_stream.form`); here they become windows:
change files, the ledger of their transactions, and a manifest.
"""
