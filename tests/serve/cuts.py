#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cut streams, and kill the server, while other processes write: cuts.py ANNAL [CUTS]

No event is missed or repeated, and no stream starts again, whether it follows one session, several, or all.
"""

import http.client
import random
import signal
import sys
import threading
import time

from serve import Server

CUTS = int((sys.argv + ["100"])[2])


def write(server, names, stop):
    number = 0
    while not stop.is_set():
        server.append(names[number % len(names)], 3)
        number += 1


def read(server, query, last, most, seen):
    """Read at most so many events; returns the position of the stream."""
    stream = server.stream(query, last)
    for _ in range(most):
        kind, event = stream.next()
        assert kind == "append", kind
        seen.append((event["session_id"], event["seq"]))
    stream.close()
    return stream.last


def cut(query, names):
    with Server() as server:
        seen, last, stop, rng = [], None, threading.Event(), random.Random(3)
        writer = threading.Thread(target=write, args=(server, names, stop))
        server.append(names[0])
        writer.start()
        for number in range(1, CUTS + 1):
            got = []
            try:
                last = read(server, query, last, rng.randrange(1, 9), got)
                seen += got
            except (OSError, http.client.HTTPException):
                pass
            if number % 25 == 0:
                server.stop(signal.SIGKILL)
                server.start()
        stop.set()
        writer.join()
        count = {name: len(server.annal("query", name, "--json").splitlines()) for name in names}
        read(server, query, last, sum(count.values()) - len(seen), seen)
        for name in names:
            assert [seq for session, seq in seen if session == name] == list(range(1, count[name] + 1)), name
        print(f"{query}: {CUTS} cuts, {len(seen)} events, none missed or twice")


def main():
    begun = time.monotonic()
    cut("?session=a", ["a"])
    cut("?session=a&session=b&session=c", ["a", "b", "c"])
    cut("?from=1d", ["a", "b", "c", "d"])
    print(f"{time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    main()
