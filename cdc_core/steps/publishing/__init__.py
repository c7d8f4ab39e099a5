"""How do events get into Kafka? The topics and their transactions, the tables' events, and the
topics beside them."""
