"""What lies beside change logs and mirrors: quarantine, the tables of a source, and small files
that readers have."""
