"""An S3 of our own on loopback, and the credentials that it wants."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer


@contextmanager
def running_s3() -> Iterator[str]:
    """Its endpoint, for the block."""
    saved = dict(os.environ)
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()
        os.environ.clear()
        os.environ |= saved
