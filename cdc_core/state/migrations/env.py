"""How does Alembic run our migrations? On the connection it is handed, inside that connection's transaction."""

from __future__ import annotations

from alembic import context

from cdc_core.state.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
