"""SQL engine of the embedded Oracle: Oracle's dialect over versioned rows in SQLite."""
