"""How do readers see change logs and mirrors who want more than Delta tables? No step that writes
needs this."""
