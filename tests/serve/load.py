#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server with many live streams: load.py ANNAL [STREAMS [APPENDS-A-SECOND [SECONDS]]]

Each session has one stream, and HTTP appends go to all sessions in turn; the time of each counts from its sending to
its arrival in the stream. Another process appends to its own session, one event after the other. Rounds with streams
and without them take turns, with the same appends. Prints each goal beside the measured value; the exit status is 1 if
a goal is missed. SPARE=2 in the environment doubles the limits, for a shared machine.
"""

import asyncio
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ANNAL = sys.argv[1]
STREAMS, RATE, SECONDS = (list(map(int, sys.argv[2:])) + [1000, 100, 5][len(sys.argv) - 2:])
SPARE = float(os.environ.get("SPARE", "1"))
ROUNDS = 4 # of each kind
DELAY_MS, MEMORY_MIB, SLOWER = 50, 96, 0.05


def percent(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] * 1000 if values else -1


def memory(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) / 1024


class Load:
    def __init__(self, port, token):
        self.port, self.head = port, f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        self.sent, self.delays, self.took, self.received = {}, [], [], 0

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)

    async def follow(self, number, ready):
        reader, writer = await self.connect()
        writer.write(f"GET /api/v1/stream?session=load-{number}&from=now HTTP/1.1\r\n{self.head}\r\n".encode())
        await reader.readuntil(b"retry:")
        ready.release()
        while True:
            line = await reader.readline()
            if not line:
                return
            if line.startswith(b"data: {"):
                mark = json.loads(line[6:])["data"]["mark"]
                self.received += 1
                if mark in self.sent:
                    self.delays.append(time.monotonic() - self.sent.pop(mark))

    async def append(self, connection, number, mark):
        reader, writer = connection
        body = json.dumps({"type": "load.mark", "data": {"mark": mark, "text": "x" * 300}}).encode()
        begun = self.sent[mark] = time.monotonic()
        writer.write(f"POST /api/v1/sessions/load-{number}/events HTTP/1.1\r\n{self.head}"
                     f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r")[0])
        await reader.readexactly(length)
        self.took.append(time.monotonic() - begun)

    async def write(self, connections, rate, seconds):
        free = asyncio.Queue()
        for connection in connections:
            free.put_nowait(connection)
        begun, tasks = time.monotonic(), []

        async def one(mark):
            connection = await free.get()
            await self.append(connection, random.randrange(STREAMS), mark)
            free.put_nowait(connection)

        for mark in range(rate * seconds):
            delay = begun + mark / rate - time.monotonic()
            if delay > 0:
                await asyncio.sleep(delay)
            tasks.append(asyncio.create_task(one(mark)))
        await asyncio.gather(*tasks)


async def other(store, took, stop):
    """Appends of another process, from line to answer."""
    process = await asyncio.create_subprocess_exec(ANNAL, "--store", store, "append", "other",
                                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    while not stop.is_set():
        begun = time.monotonic()
        process.stdin.write(b'{"type":"load.other","data":{"text":"' + b"x" * 300 + b'"}}\n')
        await process.stdout.readline()
        took.append(time.monotonic() - begun)
        await asyncio.sleep(0.01)
    process.stdin.close()
    await process.wait()


async def round_of(load, writers, store, streams):
    """The times of appends: by the other process, and by HTTP."""
    ready, stop, took, begun = asyncio.Semaphore(0), asyncio.Event(), [], time.monotonic()
    follows = [asyncio.create_task(load.follow(number, ready)) for number in range(streams)]
    for _ in follows:
        await ready.acquire()
    opened = time.monotonic() - begun
    load.took.clear()
    load.sent.clear()
    process = asyncio.create_task(other(store, took, stop))
    await load.write(writers, RATE, SECONDS)
    await asyncio.sleep(0.5)
    stop.set()
    await process
    for follow in follows:
        follow.cancel()
    await asyncio.gather(*follows, return_exceptions=True)
    return opened, percent(took, 0.5), percent(load.took, 0.5)


def middle(values):
    return sorted(values)[len(values) // 2]


async def run(load, store, pid):
    writers = [await load.connect() for _ in range(16)]
    rounds = []
    await round_of(load, writers, store, 0)
    for _ in range(ROUNDS):
        rounds.append((await round_of(load, writers, store, 0), await round_of(load, writers, store, STREAMS)))
        await asyncio.sleep(1)
    delay, most = percent(load.delays, 0.99), memory(pid, "VmHWM")
    slower = middle([withs[1] / without[1] - 1 for without, withs in rounds])
    by_http = middle([withs[2] / without[2] - 1 for without, withs in rounds])
    missed = ROUNDS * RATE * SECONDS - load.received
    table = [(f"events that {STREAMS} streams missed", 0, missed, missed == 0),
             ("append to stream, p50, ms", "", f"{percent(load.delays, 0.5):.1f}", True),
             ("append to stream, p99, ms", f"< {DELAY_MS}", f"{delay:.1f}", delay < DELAY_MS * SPARE),
             ("memory of the server at most, MiB", f"< {MEMORY_MIB}", f"{most:.0f}", most < MEMORY_MIB * SPARE),
             ("appends of another process slower by, %", f"<= {SLOWER * 100:.0f}", f"{slower * 100:.1f}",
              slower <= SLOWER * SPARE),
             ("appends by HTTP slower by, %", "", f"{by_http * 100:.1f}", True),
             ("streams opened in, s", "", f"{middle([withs[0] for _, withs in rounds]):.2f}", True)]
    print(f"{'':44}{'asked':>8}{'measured':>10}")
    for what, asked, measured, good in table:
        print(f"{what:44}{asked!s:>8}{measured!s:>10}{'' if good else '  NOT MET'}")
    return all(row[3] for row in table)


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    directory = tempfile.mkdtemp(prefix="annal-load-")
    store = os.path.join(directory, "store")
    server = subprocess.Popen([ANNAL, "--store", store, "serve", "--listen", "127.0.0.1:0"],
                              stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline().rsplit(":", 1)[1].split("/")[0])
        with open(os.path.join(store, "serve.token"), encoding="ascii") as file:
            token = file.read().strip()
        good = asyncio.run(run(Load(port, token), store, server.pid))
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(directory)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
