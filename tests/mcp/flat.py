#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""flat.py ANNAL COUNT: send COUNT requests to one annal mcp, and fail if its memory grows by more than 4 MB after the first
tenth. Prints requests per second and the memory."""

import json
import os
import subprocess
import sys
import tempfile
import time

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def request(number, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": META}})


def memory_kb(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def main():
    annal, count = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="annal-flat-") as directory:
        store = os.path.join(directory, "store")
        events = "".join(json.dumps({"role": "user", "content": f"walrus {i} " + "x" * 200}) + "\n" for i in range(50))
        subprocess.run([annal, "--store", store, "append", "s", "--type", "message.added"], input=events, text=True,
                       check=True, stdout=subprocess.DEVNULL)
        mix = [request(1, "tools/list"), request(2, "server/discover"), "{nonsense", '{"jsonrpc":"2.0","method":"x"}',
               request(3, "tools/call", name="open", arguments={"handle": "s:7"}),
               request(4, "tools/call", name="open", arguments={"handle": "nobody"}),
               request(5, "tools/call", name="list", arguments={}), request(6, "resources/list"),
               request(7, "tools/call", name="search", arguments={"query": "walrus 7", "limit": 1})]
        # Searches and lists are few of them: they take milliseconds.
        plan = (mix[:6] * 16 + mix[6:]) * 1
        answers = sum(line[2:9] != "jsonrpc" or '"id"' in line for line in plan)
        batch = ("\n".join(plan) + "\n").encode()
        server = subprocess.Popen([annal, "--store", store, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        sent, early, began = 0, 0, time.monotonic()
        while sent < count:
            server.stdin.write(batch)
            server.stdin.flush()
            for _ in range(answers):
                assert server.stdout.readline().endswith(b"}\n")
            sent += len(plan)
            if early == 0 and sent >= count / 10:
                early = memory_kb(server.pid)
        late, seconds = memory_kb(server.pid), time.monotonic() - began
        server.stdin.close()
        assert server.wait() == 0
        print(f"{sent} requests, {sent / seconds:.0f} a second, memory {early} kB, at the end {late} kB")
        sys.exit(late > early + 4096)


if __name__ == "__main__":
    main()
