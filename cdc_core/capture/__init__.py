"""How does LogMiner's redo land, window by window?

``source`` is the adapter; ``logminer`` captures one window. It proves the logs (``logs``), makes a
pass over them (``passes``), follows the transactions (``transactions``), lands the rows
(``window_rows``), and judges which tables leave (``stream_ends``). ``preflight`` is what is checked
before.
"""
