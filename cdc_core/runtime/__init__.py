"""What does Spark need on this machine, is it there, and how is it installed once?

Two things: a Java (17 or newer) and Delta's two jars, which no Python package carries. Setting up
fetches the jars with Spark's own resolver; at run time nothing is resolved and no network is
needed. Nothing here imports PySpark, so checking the machine is quick.

A *runtime folder* holds ``jars/``, ``java/`` (the shim, where one is needed) and the class archive
that the lake makes.
"""
