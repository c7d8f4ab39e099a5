"""Redolake's library: Oracle redo and flashback reads into Delta Lake. Start at
:mod:`cdc_core.steps`."""
