#!/usr/bin/env python3
"""How the server bears many live streams: load.py ANNAL [STREAMS [APPENDS-A-SECOND [SECONDS]]]

One stream a session, appends spread over all of them by HTTP, each timed from before it is sent to when its stream
has it. Prints the delays, what an append took, and the memory of the server.
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
STREAMS, RATE, SECONDS = (list(map(int, sys.argv[2:])) + [1000, 100, 10][len(sys.argv) - 2:])


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


async def run(load, pid):
    writers = [await load.connect() for _ in range(16)]
    await load.write(writers, RATE, 3)
    alone = percent(load.took, 0.5), percent(load.took, 0.99)
    load.took.clear()
    load.sent.clear()
    before = memory(pid, "VmRSS")
    ready = asyncio.Semaphore(0)
    begun = time.monotonic()
    follows = [asyncio.create_task(load.follow(number, ready)) for number in range(STREAMS)]
    for _ in range(STREAMS):
        await ready.acquire()
    print(f"{STREAMS} streams opened in {time.monotonic() - begun:.2f} s")
    await load.write(writers, RATE, SECONDS)
    await asyncio.sleep(0.5)
    print(f"{load.received} of {RATE * SECONDS} events arrived; delay ms: p50 {percent(load.delays, 0.5):.1f}, "
          f"p99 {percent(load.delays, 0.99):.1f}, most {percent(load.delays, 1):.1f}")
    print(f"append ms: p50 {percent(load.took, 0.5):.1f}, p99 {percent(load.took, 0.99):.1f}; "
          f"without streams: p50 {alone[0]:.1f}, p99 {alone[1]:.1f}")
    print(f"memory MiB: {before:.0f} before, {memory(pid, 'VmRSS'):.0f} now, {memory(pid, 'VmHWM'):.0f} at most")
    for follow in follows:
        follow.cancel()


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
        asyncio.run(run(Load(port, token), server.pid))
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
