"""What does Redolake make of this redo, and of this database? Instruments for people: they use the
library, and no step needs them."""
