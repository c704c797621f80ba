#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that leave at any moment: leave.py ANNAL [SECONDS [SEED]]

Random requests after the OpenAPI document, and those that take long, of 24 clients at once: cut anywhere, sent byte by
byte, twice in a row, closed in each way that TCP has. For a build with sanitizers. At the end nothing of them is left,
and the server answers. Then it is ended a dozen times under its clients.
"""

import json
import os
import random
import socket
import struct
import sys
import threading
import time

import attack
import serve

SECONDS = int((sys.argv + ["10"])[2]) if len(sys.argv) > 2 else 10
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
CLIENTS = 24
ENDLESS = {"sql": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c", "timeout_ms": 2000}
STREAMS = ["session=s", "session=s&session=t", "", "from=1h", "session=new", "from=now&type=note.*"]
LONG = [("GET", "/api/v1/sessions/large/bundle", b"", {}), ("POST", "/api/v1/sql", json.dumps(ENDLESS).encode(), {}),
        ("GET", "/api/v1/sessions/large/share", b"", {}), ("POST", "/api/v1/verify", b"", {}),
        ("GET", "/api/v1/sessions/large/events", b"", {"Accept": "application/x-ndjson"}),
        ("POST", "/api/v1/sessions/s/events", b'{"type":"note.added","data":1}\n' * 500, {}),
        ("PUT", "/api/v1/bundle?upload=u", b"no bundle" * 9999, {"Content-Range": "bytes 0-9/20"}),
        ("GET", "/api/v1/search?q=x", b"", {})]


def choose(rng):
    made = attack.make(serve.DOCUMENT, rng) if rng.random() < 0.7 else rng.choice(LONG)
    return made or ("GET", "/api/v1/stream?" + rng.choice(STREAMS), b"", {})


def write(server, rng):
    method, path, body, headers = choose(rng)
    body = body or b""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", f"Authorization: Bearer {server.token}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body and rng.random() < 0.15:
        lines.append("Transfer-Encoding: chunked")
        body = b"%x\r\n" % len(body) + body + b"\r\n" + rng.choice([b"0\r\n\r\n", b"zz\r\n"])
    elif method in ("POST", "PUT"):
        lines.append(f"Content-Length: {len(body) + rng.choice([0, 0, 0, 5, 1000])}")
    text = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
    if rng.random() < 0.2:
        text *= 2
    return text[:rng.randrange(len(text))] if rng.random() < 0.3 else text


def visit(server, rng):
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
        if rng.random() < 0.3: # closing it is a reset
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        text = write(server, rng)
        step = 97 if rng.random() < 0.2 else len(text) + 1
        for at in range(0, min(len(text), 20 * step), step):
            client.sendall(text[at:at + step])
        if rng.random() < 0.3:
            client.shutdown(socket.SHUT_WR)
        client.settimeout(rng.choice([0.001, 0.01, 0.1, 0.5]))
        client.recv(rng.choice([1, 100, 65536]))


def drain(client):
    try:
        while client.recv(1 << 20):
            pass
    except OSError:
        pass


def end_under_clients(server, rounds):
    """The server ends while it creates answers that it sends in pieces."""
    for number in range(rounds):
        clients = [server.send("/sessions/large/share") for _ in range(16)]
        readers = [threading.Thread(target=drain, args=(client,)) for client in clients]
        for reader in readers:
            reader.start()
        time.sleep(0.05 * (number % 4))
        status = server.stop()
        for client, reader in zip(clients, readers):
            client.close()
            reader.join()
        assert status == 0, status
        server.start()


def main():
    print(f"seed {SEED}")
    with serve.Server() as server:
        for name in ("s", "t"):
            server.append(name, 20)
        server.annal("append", "large", text=('{"type":"note.added","data":"%s"}\n' % ("x" * 900)) * 20000)
        due, visits = time.monotonic() + SECONDS, [0] * CLIENTS

        def run(number):
            rng = random.Random(SEED * CLIENTS + number)
            while time.monotonic() < due and server.process.poll() is None:
                visits[number] += 1
                try:
                    visit(server, rng)
                except OSError:
                    pass

        clients = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        assert server.process.poll() is None, "the server ended"
        begun = time.monotonic()
        server.get("/sessions?limit=2")
        print(f"{sum(visits)} visits; then an answer after {time.monotonic() - begun:.2f} s")
        serve.wait_for(lambda: not server.children(), 60)
        end_under_clients(server, 12)


if __name__ == "__main__":
    main()
