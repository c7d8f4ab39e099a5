"""How does each thing that landed get into change log and mirror, each once? Windows, chunks,
keys that no chunk has, TRUNCATE, emptied partitions, and windows again (``replay``,
``mirror_repair``)."""
