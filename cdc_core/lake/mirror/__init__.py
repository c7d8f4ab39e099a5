"""How does a mirror take rows? ``write`` chooses: ``append_only`` where no row can be there,
``copy_on_write`` (or deletion vectors) where the mirror is small, ``merge`` by Spark elsewhere.
``files`` reads it as it is, ``versions`` tells which version shows which SCN."""
