#!/usr/bin/env python3
"""Is the process of this container alive? Exit code 0 if it answers, 1 if not.

    redolake-health loop [PORT]        `redolake run --loop`, `redolake metrics`: metrics server
    redolake-health webserver [PORT]   Dagster's webserver

Dagster has commands of its own for the rest: `dagster api grpc-health-check -p PORT` for a code
location, `dagster-daemon liveness-check` for the daemon.
"""

from __future__ import annotations

import sys
import urllib.request

TARGETS = {"loop": (9464, "/favicon.ico"), "webserver": (3000, "/server_info")}
"""Port and path. The metrics server answers this path without asking the metadata store or Oracle:
a database that is down is no reason to restart a loop that waits for it."""
SECONDS_MAX = 5


def main(arguments: list[str]) -> int:
    """Ask the process that the arguments name."""
    if not arguments or arguments[0] not in TARGETS:
        print(f"usage: redolake-health {'|'.join(TARGETS)} [PORT]", file=sys.stderr)
        return 2
    port, path = TARGETS[arguments[0]]
    if len(arguments) > 1:
        port = int(arguments[1])
    url = f"http://127.0.0.1:{port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=SECONDS_MAX):
            return 0
    except OSError as error:
        print(f"{url}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
