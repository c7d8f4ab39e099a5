"""The commands of ``redolake``, by what they are about."""
