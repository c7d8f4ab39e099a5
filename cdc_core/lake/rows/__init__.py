"""How do the change log's rows become the rows of a change of the mirror? In this process, in
executors, or by key in Spark's tasks; ``derivation`` does so for the whole change log."""
