"""How does the embedded Oracle speak TNS and TTC with the unmodified python-oracledb thin driver?

From the socket upwards: ``packets`` (packets, reading thread, breaks), ``ttc`` (primitive fields),
``connect`` and ``login`` (what happens once), ``requests``, ``binds``, ``placeholders``,
``piggybacks`` (what clients send), ``replies``, ``rows``, ``lobs`` (what they get), ``statements``
and ``calls`` (what is done), ``session`` (one connection's life).

Facts about the protocol were found by reading and running the driver (26.1.0, 4.0.2, 3.4.2), not a
database: the wire shows what the driver accepts, with the field version of 19c and everything
optional left off.
"""
