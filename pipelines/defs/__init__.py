"""Sources of this installation: one folder each with a ``defs.yaml`` of type
``assets.components.OracleCdc``."""
