"""From the redo rows of a window to the changes of one table, in Arrow: a pure function of landed
files.

``committed`` finds the rows of the transactions that a window commits, ``rollback`` leaves out what
these took back themselves, ``decoding`` reads the statements, ``window`` joins the three;
``layout`` has the columns that come out. ``changes`` reads staged changes by columns and by rows,
and ``reducing`` finds the one row that they leave for each key. None of them knows Spark or Delta.
"""
