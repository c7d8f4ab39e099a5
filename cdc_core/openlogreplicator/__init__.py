"""Reads the changes of a database as OpenLogReplicator writes them, in JSON.

It is a program of its own, under another licence: Redolake reads its output and contains nothing of
it. What it writes was observed on OpenLogReplicator 1.9.0; how-to/openlogreplicator.md names the
configuration that it needs.
"""
