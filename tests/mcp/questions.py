#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""questions.py ANNAL QUESTIONS LOGS...: answer questions about real logs with nothing but the tools of annal mcp.

The first call of a question is search with its query. If the answer does not contain the words of QUESTIONS, the second call
opens the right session, or the events around its best place, as QUESTIONS says. A question is answered in two calls if the
right session is in the first answer, and the words are in its part of this answer, or in the second. Prints what each needed,
and compares what a client reads: the descriptions of the three tools and of all (--all), and the bytes of the answers and of the
JSON that the verbs search, show and query print for the same calls."""

import json
import re
import subprocess
import sys
import tempfile

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Client:
    def __init__(self, annal, store, *words):
        self.process = subprocess.Popen([annal, "--store", store, "mcp", *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.bytes = 0

    def request(self, method, **params):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        self.bytes += len(line.encode())
        return json.loads(line)["result"]

    def call(self, name, **arguments):
        return self.request("tools/call", name=name, arguments=arguments)["content"][0]["text"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def flat(annal, store, query, opened):
    """The bytes that tools return which print the verbs of the command."""
    words = [["search", "--json", *query.split()]]
    if opened is not None and ":" in opened:
        session, seqs = opened.split(":")
        words.append(["query", "--json", session, "--seq", seqs.replace("-", "..")])
    elif opened is not None:
        words.append(["show", "--json", opened])
    return sum(len(subprocess.run([annal, "--store", store, *verb], capture_output=True, check=True).stdout) for verb in words)


def contains(text, words):
    plain = text.replace("**", "").lower()
    return all(word.lower() in plain for word in words)


def answer(client, query, then, session, words):
    """How many calls were needed: 1 or 2; 0 if two were not enough. Whether the right session was the first. The opened handle."""
    found = client.call("search", query=query)
    sessions = re.findall(r"^\d+\. (\S+)", found, re.MULTILINE)
    if not any(name.startswith(session) for name in sessions):
        return 0, False, None
    first = sessions[0].startswith(session)
    block = re.split(r"^\d+\. ", found, flags=re.MULTILINE)[1 + next(
        i for i, name in enumerate(sessions) if name.startswith(session))]
    places = [int(place) for place in re.findall(r"^ {3}:(\d+) ", block, re.MULTILINE)]
    if contains(block, words):
        return 1, first, None
    whole = next(name for name in sessions if name.startswith(session))
    handle = whole if then == "session" else f"{whole}:{max(1, places[0] - 3)}-{places[0] + 20}"
    opened = client.call("open", handle=handle)
    return (2 if contains(opened, words) else 0), first, handle


def main():
    annal, questions, logs = sys.argv[1], sys.argv[2], sys.argv[3:]
    with tempfile.TemporaryDirectory(prefix="annal-questions-") as directory:
        store = f"{directory}/store"
        for log in logs:
            subprocess.run([annal, "--store", store, "import", "auto", log], check=False, capture_output=True)
        client = Client(annal, store)
        small = len(json.dumps(client.request("tools/list")))
        client.bytes = 0
        answered, first, asked, others = 0, 0, 0, 0
        with open(questions, encoding="utf-8") as file:
            for line in file:
                if line.startswith("#") or not line.strip():
                    continue
                query, then, session, _, words, question = line.rstrip("\n").split("\t")
                calls, is_first, opened = answer(client, query, then, session, words.split("|"))
                others += flat(annal, store, query, opened)
                asked, answered, first = asked + 1, answered + (calls > 0), first + is_first
                print(f"{calls or '-'}  {'first' if is_first else '     '}  {question}")
        read = client.bytes
        client.close()
        client = Client(annal, store, "--all")
        every = len(json.dumps(client.request("tools/list")))
        client.close()
    print(f"{answered} of {asked} in two calls; the right session first in {first}; {read / asked:.0f} bytes a question")
    print(f"the same calls with the verbs' JSON: {others / asked:.0f} bytes a question")
    print(f"descriptions of tools: {small} bytes; with --all {every} bytes")
    sys.exit(answered < asked * 28 / 30)


if __name__ == "__main__":
    main()
