"""The embedded Oracle: a loopback server for the unmodified python-oracledb thin driver.

It exists so that the quickstart and every test run the real driver, real SQL text and real wire
bytes on a machine without Oracle. It is built from facts about Oracle and imports nothing of the
code that it helps to test.
"""
