"""Dagster asset factories: thin, everything real is in :mod:`cdc_core`."""
