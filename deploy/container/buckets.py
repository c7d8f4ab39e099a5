"""Make the buckets that the arguments name, unless they are there; wait a minute for the server."""

from __future__ import annotations

import sys
import time

import boto3
from botocore.exceptions import ClientError, EndpointConnectionError

SECONDS_MAX = 60
OURS = {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}


def main(buckets: list[str]) -> int:
    """Address, region and credentials come from the environment."""
    client = boto3.client("s3")
    deadline = time.monotonic() + SECONDS_MAX
    for bucket in buckets:
        while True:
            try:
                client.create_bucket(Bucket=bucket)
            except EndpointConnectionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)
                continue
            except ClientError as error:
                if error.response["Error"]["Code"] not in OURS:
                    raise
            break
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
