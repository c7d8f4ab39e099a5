"""Alembic migrations of the metadata store, run by :meth:`cdc_core.state.store.Store.open`."""
