#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real server on loopback, port 0: every test starts from a store of its own.

serve.py ANNAL [name of a test …]
"""

import concurrent.futures
import contextlib
import glob
import gzip
import hashlib
import http.client
import http.server
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import sqlite3
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse
import urllib.request

from openapi import Document

ANNAL = sys.argv[1]
TOKEN = "Bearer "
AT_ONCE = 6
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/serve/openapi.json"),
          encoding="utf-8") as file_:
    DOCUMENT = Document(json.load(file_))
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")


def proc(path):
    """The content of such a file, or nothing if its process has ended."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Server:
    """A store in a directory of its own, and the server over it."""

    def __init__(self, *words):
        self.dir = tempfile.mkdtemp(prefix="annal-serve-")
        self.store = os.path.join(self.dir, "store")
        self.scratch = os.path.join(self.dir, "scratch")
        os.mkdir(self.scratch)
        self.environment = {"TMPDIR": self.scratch}
        self.words = words
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def start(self):
        self.process = subprocess.Popen(
            [ANNAL, "--store", self.store, "serve", "--listen", "127.0.0.1:0", *self.words],
            stdout=subprocess.PIPE, text=True, env=os.environ | self.environment)
        line = self.process.stdout.readline()
        self.port = int(line.rsplit(":", 1)[1].split("/")[0])
        with open(os.path.join(self.store, "serve.token"), encoding="ascii") as file:
            self.token = file.read().split()[-1]

    def stop(self, with_signal=signal.SIGTERM):
        self.process.send_signal(with_signal)
        status = self.process.wait(timeout=20)
        self.process.stdout.close()
        self.process = None
        return status

    def __exit__(self, *_):
        if self.process is not None:
            status = self.stop()
            assert status == 0, f"the server ended with {status}"
        shutil.rmtree(self.dir)

    def annal(self, *words, text=""):
        done = subprocess.run([ANNAL, "--store", self.store, *words], input=text, text=True,
                              capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def append(self, session, count=1, kind="note.added"):
        lines = "".join(json.dumps({"type": kind, "data": {"n": n}}) + "\n" for n in range(count))
        return self.annal("append", session, text=lines)

    def ask(self, path, method="GET", body=None, headers=None, token=True):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {"Authorization": TOKEN + self.token} if token else {}
        connection.request(method, path, body=body, headers={**sent, **(headers or {})})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        kind = (answer.headers["Content-Type"] or "").split(";")[0]
        if path.startswith(("/api/", "/mcp")) and method != "HEAD" and kind.endswith(("json", "html")):
            lines = text.splitlines() if kind.endswith("ndjson") else [text]
            values = map(json.loads, lines) if "json" in kind else [text.decode()]
            DOCUMENT.check_answer(method, path, answer.status, kind, values)
        return answer.status, text, answer.headers

    def get(self, path, status=200, **words):
        got, text, _ = self.ask("/api/v1" + path, **words)
        assert got == status, f"{path}: {got} {text[:300]!r}"
        return json.loads(text)

    def memory(self):
        """In MiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024

    def children(self):
        """Those that run a program of their own already."""
        pids = " ".join(map(proc, glob.glob(f"/proc/{self.process.pid}/task/*/children"))).split()
        words = {int(pid): proc(f"/proc/{pid}/cmdline").split("\0") for pid in pids}
        return [pid for pid in words if words[pid] != [""] and "--listen" not in words[pid]]

    def send(self, path, method="GET", body=""):
        """A request whose answer is not read: the connection."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", self.port))
        client.sendall(f"{method} /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: {TOKEN}"
                       f"{self.token}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        return client

    def stream(self, path, last=None):
        return Stream(self, path, last)


class Stream:
    """Server-sent events, as a client of the protocol reads them."""

    def __init__(self, server, path, last=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        headers = {"Authorization": TOKEN + server.token, "Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = last
        self.connection.request("GET", "/api/v1/stream" + path, headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        self.last = last

    def next(self):
        """The next event, as (event, data); None at the end."""
        event, data = "message", []
        while True:
            line = self.answer.readline().decode()
            if line == "":
                return None
            line = line.rstrip("\n")
            if line == "" and data:
                return event, json.loads("\n".join(data))
            name, _, value = line.partition(": ")
            if name == "event":
                event = value
            elif name == "data":
                data.append(value)
            elif name == "id":
                self.last = value

    def close(self):
        self.answer.close()
        self.connection.close()


def wait_for(condition, seconds=10):
    due = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < due
        time.sleep(0.002)


def seqs(page):
    return [event["seq"] for event in page["events"]]


def test_a_request_without_a_token_is_refused():
    with Server() as server:
        assert os.stat(os.path.join(server.store, "serve.token")).st_mode & 0o777 == 0o600
        server.get("/sessions", status=401, token=False)
        server.get("/sessions", status=401, headers={"Authorization": TOKEN + "0" * 64})
        server.get("/sessions?token=" + server.token, status=401, token=False)
        assert server.ask("/healthz", token=False)[0] == 200
        server.get("/sessions")


def test_other_names_and_origins_are_refused():
    with Server() as server:
        server.get("/sessions", status=421, headers={"Host": "rebound.example"})
        server.get("/sessions", status=403, headers={"Origin": "http://rebound.example"})
        server.get("/sessions", headers={"Origin": f"http://127.0.0.1:{server.port}"})
        server.get("/sessions", headers={"Host": f"localhost:{server.port}"})


def test_a_line_of_tokens_is_whole_or_is_refused():
    with Server() as server:
        server.stop()
        path = os.path.join(server.store, "serve.token")
        for line in ("read " + "r" * 600, "# " + "c" * 600, "read " + "r" * 40 + " " * 600 + "w" * 40):
            with open(path, "w", encoding="ascii") as file:
                file.write("write " + "w" * 40 + "\n" + line + "\n")
            ran = subprocess.run([ANNAL, "--store", server.store, "serve", "--listen", "127.0.0.1:0"], text=True, capture_output=True,
                                 check=False, timeout=60)
            assert ran.returncode != 0 and "line 2 is longer than 511 bytes" in ran.stderr, ran
        for make, says in ((os.mkfifo, "contains no token"), (os.mkdir, "is not a regular file")):
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
            make(path, 0o700)
            ran = subprocess.run([ANNAL, "--store", server.store, "serve", "--listen", "127.0.0.1:0"], text=True, capture_output=True,
                                 check=False, timeout=60)
            assert ran.returncode != 0 and says in ran.stderr, ran
        os.rmdir(path)
        os.close(os.open(path, os.O_CREAT, 0o600))
        for line in ("read " + "r" * 40 + " " + "w" * 40, "admin " + "a" * 40, "READ " + "r" * 40, "read\x0b" + "r" * 40 + " x"):
            with open(path, "w", encoding="ascii") as file:
                file.write(line + "\n")
            ran = subprocess.run([ANNAL, "--store", server.store, "serve", "--listen", "127.0.0.1:0"], text=True, capture_output=True,
                                 check=False, timeout=60)
            assert ran.returncode != 0 and "line 1: expected TOKEN, 'read TOKEN' or 'write TOKEN'" in ran.stderr, ran
        with open(path, "w", encoding="ascii") as file:
            file.write("write " + server.token + "\n")
        server.start()


def test_a_request_with_too_many_parameters_is_answered():
    with Server() as server:
        for query in ("&".join(f"p{i}=v" for i in range(1500)), "&" * 8000, "x=" + "y" * 11000, "=" * 9000):
            assert server.ask("/api/v1/sessions?" + query)[0] in (400, 414), query[:20]
        status, text, _ = server.ask("/api/v1/sessions?" + "&".join(["agent=a"] * 60))
        assert status == 400 and b"given twice" in text, text
        server.get("/sessions")


def raw_answer(server, request):
    """All received bytes, and whether the server closed the connection within five seconds."""
    answer = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
        client.sendall(request)
        try:
            while part := client.recv(65536):
                answer += part
        except TimeoutError:
            return answer, False
    return answer, True


def test_a_head_that_fills_the_buffer_gets_an_answer():
    with Server() as server:
        head = f" HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n".encode()
        for size in (14800, 15900, 16000, 16050):
            for request, status in ((b"GET /" + b"a" * size + head, b"414"), (b"GET /api/v1/sessions" + head + b"X: " + b"a" * (size - 150) + b"\r\n", b"431")):
                answer, closed = raw_answer(server, request + b"\r\n")
                assert closed and answer.startswith(b"HTTP/1.1 " + status) and b'{"error":{"code":"limit"' in answer, (size, answer[:300])
        for count in (180, 200):
            answer, closed = raw_answer(server, b"GET /api/v1/sessions" + head + b"".join(b"x%d: y\r\n" % i for i in range(count)) + b"\r\n")
            assert closed and answer.startswith(b"HTTP/1.1 431") and b'"too many' not in answer and b"too many fields" in answer, answer[:300]
        # What does not fit at all is answered by the library, with the right status.
        for request, status in ((b"GET /?" + b"a=1&" * 5000 + head, b"414"), (b"GET /" + head + b"x: y\r\n" * 1500, b"431")):
            answer, closed = raw_answer(server, request + b"\r\n")
            assert closed and answer.startswith(b"HTTP/1.1 " + status), answer[:300]
        server.get("/sessions")


def test_a_body_without_a_length_is_refused_with_a_message():
    with Server() as server:
        head = f"POST /api/v1/sql HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\nConnection: close\r\n".encode()
        piece = b"10000\r\n" + b"a" * 65536 + b"\r\n"
        answer, closed = raw_answer(server, head + b"Transfer-Encoding: chunked\r\n\r\n" + piece * 20 + b"0\r\n\r\n")
        assert closed and b"HTTP/1.1 413" in answer and b"the body is longer than 1048576 bytes" in answer, answer[:300]
        for coding in (b"gzip", b"identity", b"gzip, chunked"):
            answer, closed = raw_answer(server, head + b"Transfer-Encoding: " + coding + b"\r\n\r\nabc")
            assert closed and answer.startswith(b"HTTP/1.1 400"), answer[:300]
            # libmicrohttpd 1.0 answers some of them by itself.
            assert b"'chunked'" in answer or b"Transfer-Encoding used in request is not supported" in answer, answer[:300]
        server.get("/sessions")


def test_the_page_has_a_strict_policy():
    with Server() as server:
        status, text, headers = server.ask("/", token=False)
        assert status == 200 and b"<html" in text.lower()
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        status, text, _ = server.ask("/", token=False, headers={"If-None-Match": headers["ETag"]})
        assert (status, text) == (304, b"")
        for path in ("/../serve.token", "/%2e%2e/serve.token", "//etc/passwd", "/index.html%00.js"):
            assert server.ask(path, token=False)[0] == 404, path


def test_a_list_in_pages_misses_nothing():
    with Server() as server:
        for name in ("a", "b", "c", "d", "e"):
            server.append(name, 3)
        listed = [json.loads(line) for line in server.annal("ls", "--json").splitlines()]
        for sort in ("activity", "started", "tokens", "cost", "events", "title"):
            seen, cursor = [], ""
            while cursor is not None:
                page = server.get(f"/sessions?limit=2&sort={sort}&cursor={urllib.parse.quote(cursor)}"
                                  if cursor else f"/sessions?limit=2&sort={sort}")
                assert page["total"] == 5
                seen += [row["session_id"] for row in page["sessions"]]
                cursor = page["next"]
            assert sorted(seen) == list("abcde"), (sort, seen)
        one = server.get("/sessions/b")
        ls = next(row for row in listed if row["session_id"] == "b")
        del ls["project"]  # of all sessions, which is too much for a page of them
        assert {key: one[key] for key in ls} == ls
        assert server.get("/sessions?q=C")["total"] == 1
        server.get("/sessions?cursor=x", status=400)
        server.get("/sessions/none", status=404)

        # The usual list is read from an index: it equals the list that is chosen by a filter.
        for name, ts, data in (("guessed", "2026-06-01T00:00:00Z", {"time_from": "of the file"}),
                               ("early", "1969-01-01T00:00:00Z", {}), ("late", "2999-01-01T00:00:00Z", {}),
                               ("below", "2026-05-01T00:00:00Z", {"parent_session_id": "a"}),
                               ("lost", "2026-05-02T00:00:00Z", {"parent_session_id": "none"})):
            server.annal("append", name, text=json.dumps({"type": "session.created", "ts": ts, "data": data}) + "\n")
        server.annal("fork", "b", "fork", "--at", "1")
        server.annal("note", "star", "c")
        assert sum(count for _, count in server.get("/facets")["status"]) == 11
        for tree, total in (("", 11), ("&tree=1", 9)):
            whole = server.get(f"/sessions?agent=*{tree}")
            assert whole["total"] == len(whole["sessions"]) == total, whole["total"]
            assert server.get(f"/sessions?{tree[1:]}") == whole
            seen, cursor = [], ""
            while cursor is not None:
                page = server.get(f"/sessions?limit=2{tree}&cursor=" + urllib.parse.quote(cursor)
                                  if cursor else f"/sessions?limit=2{tree}")
                assert page["total"] == total
                seen += page["sessions"]
                cursor = page["next"]
            assert seen == whole["sessions"]


def test_events_equal_the_output_of_query():
    with Server() as server:
        server.append("s", 5)
        lines = server.annal("query", "s", "--json").splitlines()
        status, text, _ = server.ask("/api/v1/sessions/s/events", headers={"Accept": "application/x-ndjson"})
        assert status == 200 and text.decode().splitlines() == lines
        page = server.get("/sessions/s/events?limit=2")
        assert page["events"] == [json.loads(line) for line in lines[:2]] and page["next"] == 3
        assert seqs(server.get("/sessions/s/events?from=3&to=4")) == [3, 4]
        assert seqs(server.get("/sessions/s/events?order=desc&limit=2")) == [5, 4]
        assert seqs(server.get("/sessions/s/events?type=other.*")) == []
        server.get("/sessions/s/events?from=x", status=400)


def test_a_cut_stream_is_resumed():
    with Server() as server:
        server.append("s", 40)
        stream, seen = server.stream("?session=s"), []
        for cut in range(1, 12):
            seen.append(stream.next()[1]["seq"])
            if cut % 3 == 0:
                stream.close()
                server.append("s", 1)
                stream = server.stream("?session=s", stream.last)
        while len(seen) < 43:
            seen.append(stream.next()[1]["seq"])
        assert seen == list(range(1, 44)), seen
        stream.close()


def test_a_stream_that_is_not_read_holds_a_single_event():
    server = Server()
    # What is freed is free: the sanitizer of addresses would keep it for a while.
    server.environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
    with server:
        server.annal("append", "s", text=('{"type":"a","data":"%s"}\n' % ("x" * 1000000)) * 6)
        stream = server.stream("?session=s")
        for _ in range(6):
            stream.next()
        stream.close()
        before = server.memory()
        slow = [server.send("/stream?session=s") for _ in range(16)]
        wait_for(lambda: len(select.select(slow, [], [], 0)[0]) == len(slow))
        time.sleep(0.3)
        each = (server.memory() - before) / len(slow)
        assert each < 1.6, each
        for client in slow:
            client.close()


def test_an_answer_for_a_client_that_left_is_stopped():
    with Server() as server:
        server.annal("append", "s", text=('{"type":"a","data":"%s"}\n' % ("x" * 1000)) * 20000)
        endless = json.dumps({"sql": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"})
        for words in (("/sessions/s/bundle",), ("/sql", "POST", endless)):
            client = server.send(*words)
            wait_for(server.children)
            for pid in server.children():
                os.kill(pid, signal.SIGSTOP) # so that it does not end by itself
            client.close()
            wait_for(lambda: not server.children())
        wait_for(lambda: not os.listdir(server.scratch))


def test_a_request_whose_client_left_before_its_turn_is_not_run():
    with Server() as server, Server() as other:
        server.append("s", 5)
        other.append("t", 3000)
        bundle = server.ask("/api/v1/sessions/s/bundle")[1]
        clients = []
        for count in (1, 2): # both threads for what takes long wait for these
            clients.append(other.send("/sessions/t/bundle"))
            wait_for(lambda count=count: len(other.children()) == count)
            for pid in other.children():
                os.kill(pid, signal.SIGSTOP)
        client = http.client.HTTPConnection("127.0.0.1", other.port)
        client.request("PUT", "/api/v1/bundle", body=bundle, headers={"Authorization": TOKEN + other.token})
        time.sleep(1.3)
        client.close()
        for first in clients:
            first.close()
        wait_for(lambda: not other.children())
        other.get("/search?q=x")  # its turn is after the upload
        other.get("/sessions/s", status=404)
        assert other.ask("/api/v1/bundle", method="PUT", body=bundle)[0] == 200
        other.get("/sessions/s")


def test_a_journal_that_started_over_is_a_resync():
    with Server() as server:
        server.append("s", 3)
        stream = server.stream("?session=s")
        for _ in range(3):
            stream.next()
        stream.close()
        server.annal("delete", "s", "--yes")
        server.append("s", 5)
        stream = server.stream("?session=s", stream.last)
        assert stream.next()[0] == "resync"
        assert stream.next()[1]["seq"] == 1
        stream.close()


def test_several_sessions_in_one_stream():
    with Server() as server:
        server.append("a", 2)
        server.append("b", 2)
        stream = server.stream("?session=a&session=b")
        seen = [stream.next()[1] for _ in range(3)]
        stream.close()
        server.append("a", 1)
        stream = server.stream("?session=a&session=b", stream.last)
        seen += [stream.next()[1] for _ in range(2)]
        stream.close()
        assert sorted((e["session_id"], e["seq"]) for e in seen) == \
            [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)]


def test_a_cut_stream_of_all_sessions_is_resumed():
    with Server() as server:
        for name in ("a", "b", "c"):
            server.append(name, 3)
        stream, seen = server.stream("?from=1h"), []
        for cut in range(1, 24):
            event = stream.next()[1]
            seen.append((event["session_id"], event["seq"]))
            if cut % 3 == 0 and cut < 22:
                stream.close()
                server.append("abcd"[cut % 4], 2)
                stream = server.stream("?from=1h", stream.last)
        for name in "abcd":
            own = [seq for session, seq in seen if session == name]
            assert own == list(range(1, len(own) + 1)), (name, own)
        stream.close()
        post(server, "/sessions/old/events", '{"type":"a","data":1,"ts":"2020-01-01T00:00:00Z"}')
        stream = server.stream("?from=1h", stream.last)
        assert stream.next()[0] == "resync"
        stream.close()


def test_outline_and_turns_cover_every_event_of_a_session():
    with Server() as server:
        server.annal("import", "claude-code", os.path.join(DATA, "claude-code"))
        session = "7c1d52a0-3f0e-4b52-9a61-0d6c2f4be811"
        server.annal("fork", session, "fork", "--at", "20")
        outline = server.get(f"/sessions/{session}/outline")
        count = server.get(f"/sessions/{session}")["events"]
        assert outline["seq"] == list(range(1, count + 1))
        assert len(outline["type"]) == len(outline["time"]) == len(outline["bytes"]) == count
        assert server.get("/sessions/fork/outline")["seq"] == list(range(1, 21))
        turns = server.get(f"/sessions/{session}/turns")
        prompts = [row[turns["columns"].index("prompt")] for row in turns["rows"]]
        assert prompts[0].startswith("The tide table prints high water"), prompts
        tools = server.get(f"/sessions/{session}/tools")
        assert len(tools["rows"]) == int(server.annal(
            "sql", "--format", "csv",
            f"SELECT count(*) FROM tool_calls WHERE session_id = '{session}'").split()[1])
        usage = server.get(f"/sessions/{session}/usage")
        place = usage["columns"].index("input_tokens")
        assert sum(row[place] for row in usage["rows"]) == server.get(f"/sessions/{session}")["input_tokens"]
        tree = {row["session_id"]: row for row in server.get("/sessions?tree=1")["sessions"]}
        assert "fork" not in tree and tree[session]["tree"]["sessions"] == 2, tree[session]
        costs = {row["session_id"]: row["total_cost_usd"] for row in map(json.loads, server.annal("ls", "--json").splitlines())}
        assert {row["session_id"]: row["total_cost_usd"] for row in server.get("/sessions")["sessions"]} == costs
        assert abs(tree[session]["tree"]["cost_usd"] - sum(
            cost or 0 for name, cost in costs.items() if name == "fork" or name.startswith(session))) < 1e-9, costs
        children = server.get(f"/sessions/{session}/children")["sessions"]
        assert sorted(row["session_id"] for row in children)[-1] == "fork" and len(children) == 2
        proof = server.get(f"/sessions/{session}/events/3/proof")
        assert proof["proved"] and json.loads(proof["line"])["h"] == proof["hash"]
        assert server.get(f"/sessions/{session}/events/2/proof")["hash"] == proof["previous"]
        server.get(f"/sessions/{session}/events/9999/proof", status=404)
        status, page, headers = server.ask(f"/api/v1/sessions/{session}/share?tree=1")
        assert status == 200 and headers["Content-Type"].startswith("text/html")
        printed = server.annal("export", session, "--format", "html", "--tree")
        made = '"made_at":"[^"]*"'
        assert re.sub(made, "", page.decode()).strip() == re.sub(made, "", printed).strip()
        assert ["claude-opus-4-5", 1] in [[name, 1] for name, _ in server.get("/facets")["model"]]


def test_the_index_is_filled_without_a_reader():
    with Server() as server:
        for name in "abcde":
            server.append(name, 3)
        assert server.get("/sessions")["unread"] is None and server.get("/info")["unread"] is None
        server.stop()
        database = os.path.join(server.store, "sessions.db")
        with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # as another program that writes
            server.append("late", 4)
            server.start()
            page = server.get("/sessions")
            assert page["total"] == 5 and page["unread"]["sessions"] == 1 and page["unread"]["of"] == 6, page
            status, _, headers = server.ask("/api/v1/search?q=x")
            assert status == 200 and headers["Annal-Unread"] == "1 of 6"
            server.annal("append", "later", text='{"type":"a","data":1}\n')
            other.execute("ROLLBACK")
            wait_for(lambda: other.execute("SELECT count(*) FROM sessions").fetchone() == (7,))
            wait_for(lambda: server.get("/info")["unread"] is None)
        assert server.get("/sessions")["total"] == 7


def test_long_answers_are_compressed_for_clients_that_accept_it():
    with Server() as server:
        server.append("s", 300)
        plain = server.ask("/api/v1/sessions/s/events")[1]
        for accept, packs in (("gzip, deflate, br", True), ("br;q=0.5, GZIP;q=0.8", True), ("gzip;q=0, br", False),
                              ("br", False)):
            request = urllib.request.Request(f"http://127.0.0.1:{server.port}/api/v1/sessions/s/events", headers={
                "Authorization": TOKEN + server.token, "Accept-Encoding": accept})
            with urllib.request.urlopen(request) as answer:
                got, headers = answer.read(), answer.headers
            assert headers["Content-Encoding"] == ("gzip" if packs else None), accept
            assert headers["Vary"] == "Accept-Encoding" and int(headers["Content-Length"]) == len(got)
            assert (gzip.decompress(got) if packs else got) == plain
            assert not packs or len(got) * 4 < len(plain)
        short = server.ask("/api/v1/info", headers={"Accept-Encoding": "gzip"})
        assert short[2]["Content-Encoding"] is None and json.loads(short[1])["version"]


def test_calls_that_returned_since_are_answered():
    with Server() as server:
        call, result = ({"type": kind, "data": {"call_id": "c", "tool": "Bash"}} for kind in ("tool.called", "tool.returned"))
        note = {"type": "a", "data": 1}
        server.annal("append", "s", text="".join(json.dumps(event) + "\n" for event in (call, note, result, note)))
        seqs_from = {first: [row[0] for row in server.get(f"/sessions/s/tools?from={first}")["rows"]] for first in range(1, 5)}
        assert seqs_from == {1: [1], 2: [1], 3: [1], 4: []}, seqs_from


def test_the_watch_and_what_happened_to_logs_are_answered():
    def line(number):
        return json.dumps({"type": "user", "uuid": f"u{number}", "sessionId": "s-1",
                           "timestamp": "2026-03-01T10:00:00.000Z",
                           "message": {"role": "user", "content": f"number {number}"}}) + "\n"
    with Server() as server, tempfile.TemporaryDirectory() as place:
        log = os.path.join(place, "s-1.jsonl")
        with open(log, "w", encoding="ascii") as file:
            file.write(line(1))
        server.annal("import", "claude-code", place)
        assert server.get("/watch") == {"watch": None, "unread": [], "sources": 0, "bytes": 0}
        with open(log, "a", encoding="ascii") as file:
            file.write(line(2))
        answer = server.get("/watch")
        assert (answer["sources"], answer["bytes"]) == (1, len(line(2))), answer
        assert answer["unread"][0]["path"] == os.path.realpath(log)
        assert server.get("/sessions/s-1")["source_state"] is None
        os.unlink(log)
        with open(os.path.join(place, "s-2.jsonl"), "w", encoding="ascii") as file:
            file.write(line(3).replace("s-1", "s-2"))
        server.annal("import", "claude-code", place)
        row = next(row for row in server.get("/sessions")["sessions"] if row["session_id"] == "s-1")
        assert row["source_state"] == "deleted" and row["source_noticed_at"] > "2026", row
        assert server.get("/watch")["sources"] == 0
        home = dict(os.environ, HOME=place)
        watch = subprocess.Popen([ANNAL, "--store", server.store, "watch"], env=home, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: server.get("/watch")["watch"] is not None)
            assert server.get("/watch")["watch"]["process"] == f"process {watch.pid}"
        finally:
            watch.terminate()
            watch.wait()


def log_of(home, session, *texts):
    place = os.path.join(home, ".claude", "projects", "p")
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, f"{session}.jsonl"), "a", encoding="ascii") as file:
        for text in texts:
            file.write(json.dumps({"type": "user", "uuid": f"u-{text}", "sessionId": session,
                                   "timestamp": "2026-03-01T10:00:00.000Z",
                                   "message": {"role": "user", "content": text}}) + "\n")


def children_of(pid):
    return {int(child) for task in os.listdir(f"/proc/{pid}/task")
            for child in proc(f"/proc/{pid}/task/{task}/children").split()}


def test_logs_of_this_machine_are_found_and_imported_at_the_request_of_a_client_on_it():
    with Server() as server, tempfile.TemporaryDirectory() as home:
        server.stop()
        server.environment["HOME"] = home
        with open(os.path.join(server.store, "serve.token"), "a", encoding="ascii") as file:
            file.write("read " + "r" * 40 + "\n")
        writer = server.token
        server.start()
        server.token = "r" * 40
        for path, method in (("/logs", "GET"), ("/import", "GET"), ("/import", "POST")):
            answer = server.ask("/api/v1" + path, method)
            assert answer[0] == 403 and home not in answer[1].decode(), path
            assert server.ask("/api/v1" + path, method, token=False)[0] == 401
        server.token = writer
        assert server.get("/logs") == {"places": []} and server.get("/info")["imports"]
        log_of(home, "s-1", "one", "two")
        log_of(home, "s-2", "three")
        for header in ({"X-Forwarded-For": "192.0.2.7"}, {"Forwarded": "for=192.0.2.7"}, {"Via": "1.1 proxy"}):
            for path, method in (("/logs", "GET"), ("/import", "POST")):
                status, text, _ = server.ask("/api/v1" + path, method, headers=header)
                assert status == 403 and b"remote" in text and home not in text.decode()
            assert b'"imports":false' in server.ask("/api/v1/info", headers=header)[1]
        assert server.get("/import")["state"] == "none" and server.get("/sessions")["total"] == 0
        place = server.get("/logs")["places"]
        assert [(row["agent"], row["place"], row["logs"]) for row in place] == [
            ("claude-code", os.path.join(home, ".claude", "projects"), 2)], place
        assert server.get("/import", method="POST")["state"] in ("running", "done")
        wait_for(lambda: server.get("/import")["state"] == "done")
        done = server.get("/import")
        assert (done["logs"], done["of"]) == (2, 2) and done["events"] > 2, done
        assert {row["session_id"] for row in server.get("/sessions")["sessions"]} == {"s-1", "s-2"}
        server.stop()
        server.words = ("--read-only",)
        server.start()
        server.token = writer
        server.get("/logs", status=403)
        server.get("/import", status=403, method="POST")


def test_the_server_watches_the_logs_of_agents_and_its_watch_ends_with_it():
    with Server() as server, tempfile.TemporaryDirectory() as home:
        server.stop()
        server.environment["HOME"] = home
        server.words = ("--watch",)
        log_of(home, "s-1", "one")
        server.start()
        wait_for(lambda: server.get("/sessions")["total"] == 1)
        (watch,) = children_of(server.process.pid)
        assert server.get("/watch")["watch"]["process"] == f"process {watch}"
        log_of(home, "s-1", "two")
        wait_for(lambda: "two" in server.ask("/api/v1/sessions/s-1/events")[1].decode())
        second = subprocess.run([ANNAL, "--store", server.store, "watch"], env=dict(os.environ, HOME=home),
                                capture_output=True, text=True, check=False)
        assert second.returncode == 1 and f"process {watch} watches" in second.stderr, second
        assert server.stop() == 0 and not proc(f"/proc/{watch}/cmdline")
        server.start()
        wait_for(lambda: server.get("/watch")["watch"] is not None)
        (watch,) = children_of(server.process.pid)
        server.stop(signal.SIGKILL)
        wait_for(lambda: not proc(f"/proc/{watch}/cmdline"))


def test_state_and_difference_equal_the_output_of_the_command():
    with Server() as server:
        server.annal("import", "claude-code", os.path.join(DATA, "claude-code"))
        session = "7c1d52a0-3f0e-4b52-9a61-0d6c2f4be811"
        for seq in ("0", "12", "40", "30", "41", "12", "49", "7"):
            state = server.get(f"/sessions/{session}/state?seq={seq}")
            printed = json.loads(server.annal("--json", "replay", session, "--at", seq))
            assert state["seq"] == int(seq)
            for name, table in state["tables"].items():
                rows = [dict(zip(table["columns"], row)) for row in table["rows"]]
                assert sorted(map(str, rows)) == sorted(map(str, printed[name])), name
                assert table["total"] == len(rows)
        whole = server.get(f"/sessions/{session}/state")["tables"]
        for rows in (1, 3):
            last = server.get(f"/sessions/{session}/state?rows={rows}")["tables"]
            assert {name: table["rows"] for name, table in last.items()} == \
                {name: table["rows"][-rows:] for name, table in whole.items()}
        assert last["tool_calls"]["total"] > 3
        changes = server.get(f"/sessions/{session}/diff?a=12&b=40")["changes"]
        lines = server.annal("--json", "diff", session, "12", "40").splitlines()
        assert changes == [json.loads(line) for line in lines]
        both = server.get(f"/diff?a={session}&b={session}.agent-b4f1c2d9")
        lines = server.annal("--json", "diff", session, f"{session}.agent-b4f1c2d9").splitlines()
        listed = [json.loads(line) for line in lines]
        printed = [row for row in listed if row["section"] == "tools"]
        assert [dict(zip(both["tools"]["columns"], row)) for row in both["tools"]["rows"]] == \
            [{key: row[key] for key in row if key != "section"} for row in printed]
        server.get(f"/sessions/{session}/state?seq=99999", status=404)


def test_sql_reads_within_limits():
    with Server() as server:
        server.append("s", 3)

        def sql(status=200, **body):
            return server.get("/sql", status, method="POST", body=json.dumps(body))

        answer = sql(sql="SELECT seq, ?1 AS a, ?2 AS b, ?3 AS c FROM events ORDER BY seq",
                     params=["x\"y", 1.5, None], limit=2)
        assert answer["columns"] == ["seq", "a", "b", "c"]
        assert answer["rows"] == [[1, "x\"y", 1.5, None], [2, "x\"y", 1.5, None]]
        assert answer["truncated"] is True
        assert sql(200, sql="SELECT x'00ff'")["rows"] == [["00ff"]]
        assert sql(400, sql="DELETE FROM sessions")["error"]["code"] == "sql"
        assert sql(400, sql=3)["error"]["code"] == "invalid"
        endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
        assert sql(413, sql=endless, timeout_ms=200)["error"]["code"] == "limit"
        assert sql(413, sql="SELECT zeroblob(900000000)")["error"]["code"] == "limit"
        begun = time.monotonic()
        hard = "SELECT instr(hex(zeroblob(4000000)), hex(zeroblob(1000000)) || 'b')"
        assert sql(413, sql=hard, timeout_ms=300)["error"]["code"] == "limit"
        assert time.monotonic() - begun < 12
        with concurrent.futures.ThreadPoolExecutor(4) as askers:
            long = [askers.submit(sql, 413, sql=endless, timeout_ms=2000) for _ in range(4)]
            while not any(asked.running() for asked in long):
                time.sleep(0.01)
            server.get("/search?q=nothing")
            assert not any(asked.done() for asked in long)  # no client waits for them
        printed = [json.loads(line) for line in server.annal("--json", "schema").splitlines()]
        got = server.get("/schema")["tables"]
        assert got == printed, [pair for pair in zip(got, printed) if pair[0] != pair[1]]
        assert server.get("/usage?by=model")["rows"] == []
        server.get("/usage?by=moon", status=400)


def test_a_range_means_the_same_in_every_answer():
    times = ["0001-01-01T12:00:00Z", "2026-10-24T12:00:00Z", "2026-10-25T00:00:00Z", "2026-10-26T12:00:00Z",
             "2099-01-01T12:00:00Z"]
    cases = [("", 5), ("since=2026-10-24Z", 3), ("until=2026-10-25T00:00:00Z", 1), ("since=2026-10-25T00:00:00Z", 2),
             ("since=2026-10-25T00:00:00Z&until=2026-10-26T00:00:00Z", 1), ("since=2099-01-01T00:00:00Z", 1),
             ("since=2026-10-27T00:00:00Z", 0), ("since=0001-01-01T00:00:00Z&until=2026-10-25T00:00:00Z", 2)]
    with Server() as server:
        for name, time_ in enumerate(times):
            server.annal("append", f"s{name}", text=json.dumps(
                {"type": "agent.turn.usage", "ts": time_,
                 "data": {"model": "m", "input_tokens": 10 ** name, "output_tokens": 0, "text": "tide"}}) + "\n")
        for query, count in cases:
            query = query.replace("-24Z", "-24T00:00:00Z")
            assert len(server.get(f"/sessions?{query}")["sessions"]) == count, query
            assert len(server.get(f"/search?q=tide&type=agent.turn.usage&{query}")["hits"]) == count, query
            events = [server.get(f"/sessions/s{name}/events?{query}")["events"] for name in range(len(times))]
            assert sum(map(len, events)) == count, query
            tokens = sum(event["data"]["input_tokens"] for page in events for event in page)
            for by in ("model", "day", "hour", "week", "month", "session"):
                usage = server.get(f"/usage?by={by}&{query}")
                place = usage["columns"].index("input_tokens")
                assert sum(row[place] for row in usage["rows"]) == tokens, (query, by)
            words = [word for part in query.split("&") if part for word in ("--" + part).split("=", 1)]
            assert int(json.loads(server.annal("query", "--count", "--json", *words))["events"]) == count, query
        for path in ("/sessions", "/sessions/s1/events", "/usage", "/search"):
            for wrong in ("until=soon", "since=x", "since=2026-10-26&until=2026-10-25"):
                server.get(f"{path}?q=tide&{wrong}" if path == "/search" else f"{path}?{wrong}", status=400)


def test_days_of_usage_follow_the_requested_zone():
    with Server() as server:
        for time_, tokens in (("2026-10-24T20:00:00Z", 1), ("2026-10-24T23:00:00Z", 10)):
            server.annal("append", "s", text=json.dumps(
                {"type": "agent.turn.usage", "ts": time_,
                 "data": {"model": "m", "input_tokens": tokens, "output_tokens": 0}}) + "\n")

        def days(query):
            answer = server.get(f"/usage?by=day&{query}")
            place = answer["columns"].index("input_tokens")
            return {row[0]: row[place] for row in answer["rows"]}

        assert days("zone=UTC") == {"2026-10-24": 11}
        report = [json.loads(line) for line in server.annal("report", "--json", "--zone", "+02:00").splitlines()]
        assert {row["day"]: row["input_tokens"] for row in report if "day" in row} == days("zone=%2B02:00")
        assert days("zone=%2B02:00") == {"2026-10-24": 1, "2026-10-25": 10}
        assert days("zone=%2B02:00&since=2026-10-25") == {"2026-10-25": 10}
        assert days("zone=-05:30&until=2026-10-25") == {"2026-10-24": 11}
        sql = json.dumps({"sql": "SELECT annal_period(timestamp, 'day') FROM events ORDER BY 1"})
        answer = server.get("/sql?zone=%2B02:00", method="POST", body=sql)
        assert answer["rows"] == [["2026-10-24"], ["2026-10-25"]]
        for wrong in ("Europe/Atlantis", "../etc/passwd", "/etc/passwd", "", "%2B25:00"):
            server.get(f"/usage?by=day&zone={wrong}", status=400)


def test_half_a_pair_is_strict_json_in_every_answer():
    with Server() as server:
        server.annal("append", "s", text='{"type":"message.added","data":{"role":"user","content":"tide \\ud83d"}}\n')
        status, text, _ = server.ask("/api/v1/sessions/s/events", headers={"Accept": "application/x-ndjson"})
        stream = server.stream("?session=s&from=1")
        kind, data = stream.next()
        stream.close()
        assert status == 200
        answers = [text.decode(), json.dumps(data), json.dumps([kind])]
        for path in ("/sessions", "/sessions/s", "/sessions/s/events", "/search?q=tide", "/sessions/s/outline"):
            answers.append(server.ask("/api/v1" + path)[1].decode())
        for answer in answers:
            assert not re.search("ud[89ab]..", answer, re.I), answer
        assert data["data"]["content"] == "tide \ufffd"


def test_search_leads_to_the_event():
    with Server() as server:
        server.annal("append", "s", text='{"type":"message.added","data":{"role":"user",'
                     '"content":"the <b>tide</b> is late"}}\n')
        hits = server.get("/search?q=tide")["hits"]
        assert [(hit["session"], hit["seq"]) for hit in hits] == [("s", 1)]
        assert [part for part in hits[0]["snippet"] if part[1]] == [["tide", True]]
        assert "<b>" in "".join(part[0] for part in hits[0]["snippet"])
        assert server.get("/search?q=nothing")["hits"] == []
        server.annal("append", "t", text='{"type":"note","data":{"text":"a tidy table of tides"}}\n' * 5)
        answer = server.get("/search?q=table+tides")
        assert [(session["session"], session["why"]) for session in answer["sessions"]] == [
            ("t", "table in 5 events, tides in 5; 2 of 2 in event 1"), ("s", "tides in 1 event")]
        assert [(hit["session"], hit["seq"]) for hit in answer["hits"]] == [("t", 1), ("t", 2), ("t", 3), ("s", 1)]
        assert len(server.get("/search?q=table&places=1")["hits"]) == 1
        assert len(server.get("/search?q=table&session=t")["hits"]) == 5
        exact = server.get("/search?q=table+tides&order=events")
        assert len(exact["hits"]) == 5 and exact["sessions"] == []
        server.get("/search?q=", status=400)
        server.annal("append", "u", text='{"type":"session.created","data":{"agent_id":"codex","model":"m7","status":'
                     '"paused","working_directory":"/w/u","title":"A table of sand"}}\n')
        for query in ("agent=codex", "model=m7", "status=paused", "dir=/w/u", "agent=codex&session=u"):
            found = server.get(f"/search?q=table&{query}")
            assert [session["session"] for session in found["sessions"]] == ["u"], query
        for query in ("agent=nobody", "status=ended", "dir=/w/v", "agent=codex&session=t"):
            assert server.get(f"/search?q=table&{query}") == {"hits": [], "sessions": [], "behind_bytes": 0}, query


def test_planted_sql_changes_no_answer():
    plants = [("sessions.db", "ALTER TABLE sessions RENAME TO evil; CREATE VIEW sessions AS SELECT * FROM evil WHERE 0"),
              ("sessions.db", "ALTER TABLE _stamp RENAME TO evil; CREATE VIEW _stamp AS SELECT * FROM evil"),
              ("sessions.db", "CREATE TRIGGER evil AFTER INSERT ON event_index BEGIN DELETE FROM sessions; END"),
              ("sessions.db", "CREATE TABLE evil (a)"),
              ("sessions.db", "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'n AS events', '9 AS events')"),
              ("notes.db", "CREATE TRIGGER evil AFTER INSERT ON notes BEGIN DELETE FROM notes; END"),
              ("notes.db", "ALTER TABLE notes RENAME TO evil; CREATE VIEW notes AS SELECT 9 AS n FROM evil"),
              ("notes.db", "CREATE TABLE evil (a)"),
              ("search.db", "CREATE TRIGGER evil AFTER INSERT ON documents BEGIN DELETE FROM documents; END"),
              ("search.db", "DROP VIEW texts; CREATE VIEW texts (id, text) AS SELECT id, 'evil' FROM documents")]
    with Server() as server:
        count = 0

        def add():
            nonlocal count
            count += 1
            server.annal("append", "s", text=json.dumps({"type": "message.added", "data": {
                "role": "user", "content": "the tide", "n": count}}) + "\n")

        def answers():
            numbers = server.get("/sql", method="POST", body=json.dumps(
                {"sql": "SELECT (SELECT sum(n) FROM notes), (SELECT sum(events) FROM event_counts)"}))["rows"]
            return ([(row["session_id"], row["events"]) for row in server.get("/sessions")["sessions"]], numbers,
                    sorted((hit["seq"], str(hit["snippet"])) for hit in server.get("/search?q=tide&order=newest")["hits"]))

        add()
        os.mkdir(os.path.join(server.store, "packs"))
        with open(os.path.join(server.store, "packs", "notes.sql"), "w", encoding="ascii") as file:
            file.write("-- pack notes   version 1   database notes.db\nCREATE TABLE notes (n INTEGER);\n"
                       "-- on message.added\nINSERT INTO notes VALUES ($n);\n")
        snippet = str([["the ", False], ["tide", True]])
        for database, plant in [("sessions.db", "SELECT 1")] + plants:
            answers()
            database = sqlite3.connect(os.path.join(server.store, database), timeout=20)
            database.executescript(plant)
            add()
            assert answers() == ([("s", count)], [[count * (count + 1) // 2, count]],
                                 [(seq, snippet) for seq in range(1, count + 1)]), (plant, answers())
            database.close()


def post(server, path, body, status=200, **words):
    got, text, _ = server.ask("/api/v1" + path, method="POST", body=body, **words)
    assert got == status, f"{path}: {got} {text[:300]!r}"
    return [json.loads(line) for line in text.splitlines()]


def test_append_answers_as_the_command_does():
    with Server() as server:
        lines = '{"type":"a","data":1,"id":"x"}\n{"type":"b","data":{"n":2}}\n'
        assert post(server, "/sessions/s/events", lines) == [{"seq": 1}, {"seq": 2}]
        assert post(server, "/sessions/s/events", lines.split("\n", maxsplit=1)[0]) == [{"seq": 1}]
        answers = post(server, "/sessions/s/events", '{"type":"a","data":3}\n{"type":"A"}\n{"type":"a"}\n', 400)
        assert answers[0] == {"seq": 3} and "refused" in answers[1] and len(answers) == 2
        one = '{"type":"a","data":4}'
        post(server, "/sessions/s/events", one, 412, headers={"If-Match": '"2"'})
        assert post(server, "/sessions/s/events", one, headers={"If-Match": "3"}) == [{"seq": 4}]
        post(server, "/sessions/s/events", one, 400, headers={"If-Match": "*"})
        assert post(server, "/sessions/new/events?type=t", "[1]\n[2]", headers={"If-Match": "0"}) == \
            [{"seq": 1}, {"seq": 2}]
        assert len(server.annal("query", "s", "--json").splitlines()) == 4
        server.annal("pack", "enable", "agentweaver")
        guarded = '{"type":"backlog.claimed","data":{"project":"x","id":"none"}}'
        printed = subprocess.run([ANNAL, "--store", server.store, "append", "project_x"], input=guarded,
                              text=True, capture_output=True, check=False)
        answers = server.ask("/api/v1/sessions/project_x/events", method="POST", body=guarded)
        assert answers[0] == 422 and answers[1].decode() == printed.stdout
        # What people note on a session is in its row, and its own session is not listed.
        post(server, "/sessions/notes_s/events", '{"type":"note.starred","data":{}}\n'
             '{"type":"note.named","data":{"name":"tide"}}\n{"type":"note.tagged","data":{"tag":"a","event_seq":2}}')
        post(server, "/sessions/notes_s/events", '{"type":"note.starred","data":{}}', 422)
        row = server.get("/sessions/s")
        assert (row["name"], row["starred"], row["tags"], row["notes"]) == ("tide", 1, "a", 0), row
        assert [row["session_id"] for row in server.get("/sessions?starred=1")["sessions"]] == ["s"]
        assert server.get("/sessions?tag=a")["total"] == 1 and server.get("/sessions?tag=b")["total"] == 0
        assert "notes_s" not in [row["session_id"] for row in server.get("/sessions")["sessions"]]
        assert "notes_s" not in server.annal("report", "--json"), "a report lists no session of notes"


def test_a_shared_session_waits_for_its_database():
    with Server() as server:
        server.annal("pack", "enable", "agentweaver")
        with open(f"{server.store}/cluster", "w", encoding="utf-8") as file:
            file.write("postgresql:///fleet?host=/nowhere\n")
        event = '{"type":"project.created","data":{"project":{"id":"shop"}}}'
        answer = post(server, "/sessions/proj_shop/events", event, 503)
        assert "cannot reach the cluster database" in str(answer), answer


def test_the_server_forks_and_verifies_sessions():
    with Server() as server:
        server.append("s", 5)
        fork = post(server, "/sessions/s/fork", '{"at":3,"name":"f"}', 201)[0]
        assert fork == {"session_id": "f", "parent_session_id": "s", "forked_at_seq": 3}
        post(server, "/sessions/s/fork", '{"at":3,"name":"f"}', 409)
        post(server, "/sessions/s/fork", '{"at":99,"name":"g"}', 404)
        post(server, "/sessions/s/fork", '{"name":"../g"}', 400)
        assert seqs(server.get("/sessions/f/events")) == [1, 2, 3]
        assert {row["session_id"]: row["finding_count"] for row in post(server, "/verify", "")} == \
            {"s": 0, "f": 0}
        path = os.path.join(server.store, "events", "s.jsonl")
        with open(path, "r+b") as file:
            text = file.read().replace(b'"n": 1', b'"n": 7')
            file.seek(0)
            file.write(text)
        verified = post(server, "/verify?session=s", "")
        assert verified[0]["findings"][0]["seq"] == 2, verified
        stream = server.stream("?session=s")
        assert [stream.next()[0] for _ in range(3)] == ["append", "damage", "append"]
        stream.close()


def test_a_token_limits_the_rights_of_a_request():
    with Server() as server:
        server.append("s", 1)
        server.stop()
        with open(os.path.join(server.store, "serve.token"), "w", encoding="ascii") as file:
            file.write("# two\nwrite " + "w" * 40 + "\nread " + "r" * 40 + "\n")
        server.start()
        server.get("/sessions")
        assert server.get("/info")["rights"] == "read"
        event = '{"type":"a","data":1}'
        post(server, "/sessions/s/events", event, 403)
        server.token = "w" * 40
        post(server, "/sessions/s/events", event)
        server.stop()
        server.words = ("--read-only",)
        server.start()
        server.token = "w" * 40
        post(server, "/sessions/s/events", event, 403)
        assert server.get("/info")["read_only"] is True
        server.get("/sessions")


def test_acknowledged_events_survive_a_kill():
    with Server() as server:
        got, stop = [], threading.Event()

        def write():
            while not stop.is_set():
                try:
                    got.extend(post(server, "/sessions/s/events", '{"type":"a","data":1}'))
                except (OSError, http.client.HTTPException):
                    return

        threads = [threading.Thread(target=write) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(got) < 20 and any(thread.is_alive() for thread in threads):
            time.sleep(0.01)
        server.stop(signal.SIGKILL)
        stop.set()
        for thread in threads:
            thread.join()
        server.start()
        seen = seqs(server.get("/sessions/s/events?limit=2000"))
        assert got and set(answer["seq"] for answer in got) <= set(seen)
        assert seen == list(range(1, len(seen) + 1))


def test_the_document_names_every_route():
    with Server() as server:
        assert server.get("/openapi.json") == DOCUMENT.text
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/serve/routes.c"),
                  encoding="utf-8") as file:
            routes = re.findall(r'{"([A-Z]+)",\s*(API )?"([^"]+)",', file.read())
        assert len(routes) > 20
        for method, api, path in routes:
            path = ("/api/v1" if api else "") + path.replace("{}", "s")
            assert DOCUMENT.operation(method, path), (method, path)
        server.get("/sessions/s", status=405, method="DELETE")
        server.get("/nothing", status=404)


def test_a_request_that_can_be_read_in_two_ways_is_refused_and_the_connection_ends():
    with Server() as server:
        host = f"Host: 127.0.0.1:{server.port}\r\n"
        second = f"GET /healthz HTTP/1.1\r\n{host}\r\n"
        for framing in (
            f"{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            f"{host}Content-Length: 0\r\nContent-Length: {len(second)}\r\n\r\n",
            f"{host}Host: evil.example\r\n\r\n",
        ):
            with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
                client.sendall(f"POST /api/v1/sql HTTP/1.1\r\n{framing}{second}".encode())
                got = b""
                while piece := client.recv(65536):
                    got += piece
            assert got.startswith(b"HTTP/1.1 400 "), got
            assert got.count(b"HTTP/1.1 ") == 1, got


ZERO = "0" * 16
JSON = {"Content-Type": "application/json"}


def offset_of(seq):
    return f"{seq:016}_{ZERO}"


def stream(server, name, method="GET", body=None, status=200, headers=None):
    got, text, heads = server.ask("/v1/stream/" + name, method, body, headers)
    assert got == status, f"{method} {name}: {got} {text[:300]!r}"
    return text, heads


def producer(seq, epoch=0):
    return JSON | {"Producer-Id": "p", "Producer-Epoch": str(epoch), "Producer-Seq": str(seq)}


def test_a_stream_is_a_session_and_survives_a_kill():
    with Server("--streams") as server:
        stream(server, "s", "PUT", '[1,{"a":\n2}]', 201, JSON)
        stream(server, "s", "PUT", None, 200, JSON)
        stream(server, "s", "PUT", None, 409, {"Content-Type": "text/plain"})
        stream(server, "s", "POST", "[[3]]", 200, producer(0))
        stream(server, "s", "POST", "4", 204, JSON | {"Stream-Seq": "b"})
        server.stop(signal.SIGKILL)
        server.start()
        text, heads = stream(server, "s")
        assert json.loads(text) == [1, {"a": 2}, [3], 4] and heads["Stream-Up-To-Date"] == "true"
        stream(server, "s", "POST", "[[3]]", 204, producer(0))
        stream(server, "s", "POST", "5", 409, producer(2))
        stream(server, "s", "POST", "5", 200, producer(0, 1))
        stream(server, "s", "POST", "6", 403, producer(1))
        stream(server, "s", "POST", "6", 409, JSON | {"Stream-Seq": "a"})
        stream(server, "s", "POST", "6", 204, JSON | {"Stream-Closed": "true"})
        stream(server, "s", "POST", "7", 409, JSON)
        text, heads = stream(server, "s?offset=" + heads["Stream-Next-Offset"])
        assert json.loads(text) == [5, 6] and heads["Stream-Closed"] == "true"
        events = [json.loads(line) for line in server.annal("query", "s").splitlines()]
        assert [event["data"] for event in events if event["type"] == "stream.message"] == [1, {"a": 2}, [3], 4, 5, 6]
        fork = {"Stream-Forked-From": "/v1/stream/s", "Stream-Fork-Offset": offset_of(2)}
        stream(server, "a%2Fb/..", "PUT", "[8]", 201, JSON | fork)
        assert json.loads(stream(server, "a/b%2f..")[0]) == [1, 8]
        stream(server, "s", "DELETE", status=204)
        stream(server, "s", status=410)
        stream(server, "a/b/%2e.", "DELETE", status=204)
        stream(server, "s", status=404)
        assert server.get("/sessions")["sessions"] == []
        # Whoever may append may append this.
        server.annal("append", "bad", "--type", "stream.created", text=r'{"content_type":"text/plain\r\nSet-Cookie: a=1"}')
        assert "Set-Cookie" not in server.ask("/v1/stream/bad")[2]


def test_a_request_that_waits_for_a_stream_is_answered():
    with Server("--streams") as server, concurrent.futures.ThreadPoolExecutor() as pool:
        stream(server, "t", "PUT", " a\r\nb\n", 201, {"Content-Type": "text/plain"})
        waits = [pool.submit(server.ask, "/v1/stream/t?live=long-poll&offset=now") for _ in range(20)]
        live = pool.submit(stream, server, "t?live=sse&offset=-1")
        while not waits[0].done():  # it may ask after the append
            stream(server, "t", "POST", b"\xff", 204, {"Content-Type": "text/plain"})
        stream(server, "t", "POST", None, 204, {"Stream-Closed": "true"})
        answers = [wait.result()[:2] for wait in waits]
        assert all(status == 204 and not text or status == 200 and set(text) == {0xff} for status, text in answers)
        text = live.result()[0]
        assert text.startswith(b"event: data\ndata:  a\ndata:b\n") and text.count(b"event: control") >= 1
        assert b'"streamClosed":true' in text and b"\xff" in text


def test_streams_are_written_with_a_right_and_in_their_place():
    with Server() as server:
        stream(server, "s", "PUT", None, 404)
        server.stop()
        server.words = ("--streams",)
        with open(os.path.join(server.store, "serve.token"), "a", encoding="ascii") as file:
            file.write("read " + "r" * 40 + "\n")
        server.append("agent", 1)
        may_write = server.token
        server.start()
        for method, status in (("PUT", 403), ("POST", 403), ("DELETE", 403), ("GET", 404)):
            stream(server, "s", method, None, status)
        server.token = may_write
        for method, status in (("PUT", 409), ("POST", 404), ("DELETE", 404), ("GET", 404)):
            stream(server, "agent", method, "x" if method.startswith("P") else None, status, {"Content-Type": "text/plain"})
        stream(server, "s", "PUT", "x", 201)
        for offset in ("1", "now2", "", offset_of(9), offset_of(2) + "0", "-2", "%00", "0" * 300):
            stream(server, "s?offset=" + offset, status=400)
        for name, status in (("__ds/subscriptions/x", 404), ("s" * 300, 414), ("%ff" * 70, 414)):
            stream(server, name, "PUT", None, status)
        for bad in ({"Content-Type": "a" * 300}, {"Content-Type": "a\xe9"}, {"Stream-TTL": "1e3"}, {"Stream-TTL": "9" * 19},
                    {"Stream-Expires-At": "soon"}, {"Stream-Fork-Offset": offset_of(1)}):
            stream(server, "new", "PUT", None, 400, bad)
        stream(server, "j", "PUT", None, 201, JSON)
        stream(server, "j", "POST", "[" + "1," * 65536 + "1]", 413, JSON)
        stream(server, "j", "POST", "[1,]", 400, JSON)
        assert stream(server, "j")[0] == b"[]"


def test_two_servers_of_a_store_agree_about_a_stream():
    with Server("--streams") as first, Server("--streams") as second:
        second.stop()
        shutil.rmtree(second.store)
        os.symlink(first.store, second.store)
        second.start()
        stream(first, "s", "PUT", None, 201, JSON)
        for seq in range(6):
            stream((first, second)[seq % 2], "s", "POST", str(seq), 200, producer(seq))
            stream((second, first)[seq % 2], "s", "POST", str(seq), 204, producer(seq))
        stream(second, "s", "POST", None, 204, {"Stream-Closed": "true"})
        stream(first, "s", "POST", "6", 409, producer(6))
        assert json.loads(stream(first, "s")[0]) == list(range(6))
        stream(first, "s", "DELETE", status=204)
        stream(second, "s", "POST", "6", 404, producer(6))
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            puts = [pool.submit(server.ask, f"/v1/stream/n{n // 4}", "PUT", None, JSON)
                    for n in range(32) for server in (first, second)]
            answers = [put.result()[0] for put in puts]
        assert answers.count(201) == 8 and answers.count(200) == 56, answers
        second.stop()
        os.unlink(second.store)


def test_tls_and_a_unix_socket():
    tls = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tls")
    cert, key = os.path.join(tls, "cert.pem"), os.path.join(tls, "key.pem")
    with Server("--cert", cert, "--key", key, "--log", "-") as server:
        context = ssl.create_default_context(cafile=cert)
        url = f"https://localhost:{server.port}/api/v1/info"
        asked = urllib.request.Request(url, headers={"Authorization": TOKEN + server.token})
        with urllib.request.urlopen(asked, context=context) as answer:
            assert json.loads(answer.read())["rights"] == "write"
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            assert connection.getresponse().status != 200
        except (OSError, http.client.HTTPException):
            pass
        connection.close()
    with Server() as server:
        path = os.path.join(server.dir, "socket")
        server.stop()
        server.words = ("--listen", "unix:" + path, "--log", os.path.join(server.dir, "log"))
        server.start()
        assert os.stat(path).st_mode & 0o077 == 0
        for asked, said in ((b"sessions?q=secret", b'"total":0'), (b"info", b'"rights":"write"')):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                client.sendall(b"GET /api/v1/" + asked + b" HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n")
                text = b"".join(iter(lambda: client.recv(65536), b""))
            assert text.startswith(b"HTTP/1.1 200") and said in text, text
        server.stop()
        assert not os.path.exists(path)
        with open(os.path.join(server.dir, "log"), encoding="utf-8") as file:
            line = json.loads(file.readline())
        assert line["path"] == "/api/v1/sessions" and line["status"] == 200 and "secret" not in str(line)


def test_unknown_parameters_methods_and_origins_are_refused():
    with Server() as server:
        server.append("s")
        for path in ("/sessions?fromm=3", "/sessions?limit=0", "/sessions?limit=1&limit=2", "/info?x",
                     "/sessions/s/events?limit=0", "/sessions/s/turns?fro=1"):
            assert server.ask("/api/v1" + path)[0] == 400, path
        assert server.ask("/api/v1/sessions/s/events?type=a&type=b")[0] == 200
        status, _, headers = server.ask("/api/v1/sessions/s/events", method="DELETE")
        assert (status, headers["Allow"]) == (405, "GET, HEAD, POST")
        assert server.ask("/api/v1/info", headers={"Host": "localhost:9001"})[0] == 200
        assert server.ask("/api/v1/info", headers={"Host": "localhost:9001", "Origin": "http://localhost:9001"})[0] == 200
        assert server.ask("/api/v1/info", headers={"Host": "localhost:9001", "Origin": "http://localhost:9002"})[0] == 403
        assert server.ask("/api/v1/info", headers={"Host": "localhost.example:9001"})[0] == 421
        _, plain, headers = server.ask("/app.js")
        assert "Content-Encoding" not in headers
        _, small, headers = server.ask("/app.js", headers={"Accept-Encoding": "gzip"})
        assert headers["Content-Encoding"] == "gzip" and gzip.decompress(small) == plain
        assert server.ask("/app.js", headers={"Accept-Encoding": "gzip", "If-None-Match": headers["ETag"]})[0] == 304


def test_a_socket_of_systemd_is_taken():
    directory = tempfile.mkdtemp(prefix="annal-serve-")
    with socket.socket(socket.AF_INET) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        script = "exec 3<&0; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\" <&-"
        process = subprocess.Popen(["sh", "-c", script, "sh", ANNAL, "--store", directory + "/store", "serve"],
                                   stdin=listener.fileno(), stdout=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        port = listener.getsockname()[1]
        assert f":{port}/" in line, line
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
            assert answer.status == 200
    process.terminate()
    assert process.wait(timeout=20) == 0
    process.stdout.close()
    shutil.rmtree(directory)


def wire(number, value):
    """A field of protobuf: a message or text, or a number of 64 bits."""
    def varint(count):
        out = b""
        while count > 127:
            out, count = out + bytes([count & 127 | 128]), count >> 7
        return out + bytes([count])
    if isinstance(value, int):
        return varint(number << 3 | 1) + value.to_bytes(8, "little")
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def wire_attribute(number, key, value):
    kind = wire(1, value) if isinstance(value, str) else b"\x18" + bytes([value])
    return wire(number, wire(1, key) + wire(2, kind))


def test_agents_ask_by_the_model_context_protocol():
    with Server() as server:
        server.append("s-1", 3)

        def post(message, status=200, path="/mcp", **headers):
            got, text, _ = server.ask(path, method="POST", body=json.dumps(message).encode(), headers=headers)
            assert got == status, (got, text)
            return json.loads(text) if text else None

        def call(name, **arguments):
            return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}

        agreed = post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}})
        assert agreed["result"]["protocolVersion"] == "2025-06-18", agreed
        assert post({"jsonrpc": "2.0", "method": "notifications/initialized"}, 202) is None
        assert "\n:3  " in post(call("open", handle="s-1:3"))["result"]["content"][0]["text"]
        assert post(call("sql", sql="SELECT 7 AS n"))["error"]["code"] == -32602
        assert '{"n":7}' in post(call("sql", sql="SELECT 7 AS n"), path="/mcp?all=1")["result"]["content"][0]["text"]
        assert post([], 400)["error"]["code"] == -32600
        assert server.ask("/mcp", method="POST", body=b"{}", token=False)[0] == 401
        assert server.ask("/mcp", method="POST", body=b"{}", headers={"Origin": "http://evil.example"})[0] == 403
        assert server.ask("/mcp")[0] == 405
        # Without its body, which the server does not read.
        assert server.ask("/mcp", method="POST", headers={"Content-Length": str(2 << 20)})[0] == 413


def test_spans_and_logs_of_open_telemetry_become_sessions():
    with Server() as server:
        def export(path, body, kind, status=200, **headers):
            got, text, answered = server.ask(path, method="POST", body=body,
                                             headers={"Content-Type": kind, **headers})
            assert got == status, (path, got, text)
            assert answered["Content-Type"] == (kind if status != 415 else "application/json")
            if status not in (200, 415) and kind == "application/json":
                assert json.loads(text)["code"] == 3, text
            elif status not in (200, 415): # google.rpc.Status
                assert text[:1] == b"\x08" and text[1] in (3, 8) and text[2:3] == b"\x12", text
            return text

        start = 1772442846 * 10**9
        span = (wire(1, bytes(range(16))) + wire(2, bytes(8)) + wire(5, "chat") + wire(7, start) + wire(8, start + 10**9)
                + wire_attribute(9, "gen_ai.operation.name", "chat") + wire_attribute(9, "gen_ai.system", "openai")
                + wire_attribute(9, "gen_ai.conversation.id", "spoken")
                + wire_attribute(9, "gen_ai.usage.prompt_tokens", 70)
                + wire_attribute(9, "gen_ai.usage.output_tokens", 9))
        body = wire(1, wire(2, wire(2, span)))
        assert export("/v1/traces", body, "application/x-protobuf") == b""
        assert export("/v1/traces", gzip.compress(body), "application/x-protobuf", **{"Content-Encoding": "gzip"}) == b""
        row = server.get("/sessions/spoken")
        assert (row["input_tokens"], row["output_tokens"]) == (70, 9), row
        with open(os.path.join(DATA, "otel-logs", "export.otlp.jsonl"), encoding="utf-8") as file:
            for line in file:
                pretty = json.dumps(json.loads(line), indent=1)
                assert export("/v1/logs", pretty, "application/json") == b"{}"
        assert [server.get("/sessions/" + name)["total_tokens"] for name in ("claude-7", "codex-9")] == [9460, 1290]
        def timed(name, began, ended, **more):
            return {"traceId": "cd" * 16, "spanId": f"{began + ended:016x}", "name": name, "startTimeUnixNano": str(start + began),
                    "endTimeUnixNano": str(start + ended), "attributes": [
                        {"key": "gen_ai.conversation.id", "value": {"stringValue": "nested"}},
                        *({"key": "gen_ai." + key, "value": value} for key, value in more.items())]}
        said = {"stringValue": json.dumps([{"role": "user", "content": "go"}])}
        def structure(**values):
            return {"kvlistValue": {"values": [{"key": key, "value": value if isinstance(value, dict) else {"stringValue": value}}
                                               for key, value in values.items()]}}
        part = structure(type="text", content="Low water.")
        answered_with = {"arrayValue": {"values": [structure(role="assistant", parts={"arrayValue": {"values": [part]}})]}}
        spans = [timed("chat", 1000, 2000, **{"operation.name": {"stringValue": "chat"}, "input.messages": said,
                                              "output.messages": answered_with,
                                              "usage.input_tokens": {"intValue": "5"}}),
                 timed("tool", 2000, 3000, **{"operation.name": {"stringValue": "execute_tool"}}),
                 timed("agent", 1000, 3000, **{"operation.name": {"stringValue": "invoke_agent"}}),
                 timed("", 0, 9) | {"traceId": "xx"}]
        answer = json.loads(export("/v1/traces", json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}),
                                   "application/json"))
        assert answer["partialSuccess"]["rejectedSpans"] == "1", answer
        events = server.get("/sessions/nested/events")["events"]
        said = [event["data"]["content"] for event in events if event["type"] == "message.added"]
        assert said == ["go", [{"type": "text", "content": "Low water."}]], said
        record = {"traceId": "ef" * 16, "eventName": "gen_ai.user.message", "timeUnixNano": str(start),
                  "body": structure(content="Which tide?", role="user")}
        export("/v1/logs", json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}), "application/json")
        assert server.get("/sessions/" + "ef" * 16)["title"] == "Which tide?"
        types = [event["type"] for event in events]
        types = types[types.index("turn.started"):]
        assert types == ["turn.started", "message.added", "message.added", "agent.turn.usage", "tool.called",
                         "tool.returned", "turn.completed"], types
        large = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x" * (9 << 20)}}] * 1}]},
                                  {"scopeLogs": [{"logRecords": [{"traceId": "ab" * 16}]}]}]}
        answer = json.loads(export("/v1/logs", json.dumps(large), "application/json"))
        assert answer["partialSuccess"]["rejectedLogRecords"] == "1", answer
        server.get("/sessions/" + "ab" * 16)
        nested = b""
        for level in range(400):
            nested = wire(5 if level % 2 else 1, nested)
        nested = wire(1, wire(2, wire(2, wire(9, wire(1, "k") + wire(2, nested)))))
        export("/v1/traces", nested, "application/x-protobuf", 400)
        export("/v1/traces", body[:-3], "application/x-protobuf", 400)
        export("/v1/traces", b"no gzip", "application/x-protobuf", 400, **{"Content-Encoding": "gzip"})
        export("/v1/traces", "{", "application/json", 400)
        export("/v1/traces", "", "text/plain", 415)
        many = wire(1, wire(2, b"\x12\0" * 90000))
        answer = export("/v1/traces", gzip.compress(many), "application/x-protobuf", 413, **{"Content-Encoding": "gzip"})
        assert b"more resources, spans and values" in answer, answer
        bomb = gzip.compress(b"\0" * (70 << 20))
        export("/v1/traces", bomb, "application/x-protobuf", 413, **{"Content-Encoding": "gzip"})


def test_an_uploaded_span_of_another_session_counts_once():
    def traces(conversation):
        return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{
            "traceId": "cd" * 16, "spanId": "ab" * 8, "name": "chat", "startTimeUnixNano": "1772442846000000000",
            "endTimeUnixNano": "1772442847000000000", "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                {"key": "gen_ai.conversation.id", "value": {"stringValue": conversation}},
                {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "70"}}]}]}]}]})
    with Server() as server:
        path = os.path.join(server.dir, "spans.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(traces("filed") + "\n")
        server.annal("import", "otel", path)
        for conversation in ("served", "repeated"):
            status, text, _ = server.ask("/v1/traces", method="POST", body=traces(conversation),
                                         headers={"Content-Type": "application/json"})
            assert status == 200, text
        assert [server.get("/sessions/" + name)["input_tokens"] for name in ("filed", "served", "repeated")] == [70, None, None]


def test_a_bundle_goes_to_another_store_in_pieces():
    with Server() as server, Server() as other:
        server.append("s", 200)
        server.annal("fork", "s", "f", "--at", "100")
        path = "/api/v1/sessions/f/bundle"
        status, whole, headers = server.ask(path)
        assert status == 200 and int(headers["Content-Length"]) == len(whole)
        status, part, answered = server.ask(path, headers={"Range": "bytes=1000-", "If-Range": headers["ETag"]})
        assert status == 206 and whole[1000:] == part
        assert answered["Content-Range"] == f"bytes 1000-{len(whole) - 1}/{len(whole)}"
        assert server.ask(path, headers={"Range": "bytes=-10"})[1] == whole[-10:]
        assert server.ask(path, headers={"Range": "bytes=99999999-"})[0] == 416
        assert server.ask(path, headers={"Range": "bytes=0-9", "If-Range": '"other"'})[1] == whole

        def put(body, query="", status=200, **headers):
            got, text, _ = other.ask("/api/v1/bundle" + query, method="PUT", body=body, headers=headers)
            assert got == status, (got, text)
            return json.loads(text)

        put(whole[:-100], status=422)
        half = len(whole) // 2
        assert put(whole[:half], "?upload=u", 202, **{"Content-Range": f"bytes 0-{half - 1}/{len(whole)}"}) == \
            {"received": half}
        put(whole[:9], "?upload=u", 409, **{"Content-Range": f"bytes 0-8/{len(whole)}"})
        other.stop(signal.SIGKILL)
        other.start()
        assert other.get("/bundle?upload=u") == {"received": half}
        done = put(whole[half:], "?upload=u", **{"Content-Range": f"bytes {half}-{len(whole) - 1}/{len(whole)}"})
        assert len(done["imported"]) >= 1, done
        assert other.get("/sessions/f/events") == server.get("/sessions/f/events")
        assert not os.path.exists(os.path.join(other.store, "serve.uploads"))
        put(whole)
        put(b"no bundle", "?upload=../x", 400)
        for part in ("bytes 0-8", "bytes 9-8/99", "bytes 0-8/8", "bytes -1-8/99", "bytes 0-8/99x", "bytes 0-8/9223372036854775808",
                     "bytes 18446744073709551616-18446744073709551617/18446744073709551618", "bytes 00-8/99", "bytes  0-8/99", ""):
            put(b"123456789", "?upload=u", 400, **{"Content-Range": part})
        for part in ("bytes=9-8", f"bytes={len(whole)}-", "bytes=9223372036854775806-9223372036854775807"):
            assert server.ask(path, headers={"Range": part})[0] == 416, part
        for part in ("bytes=-0", "bytes=--1", "bytes=-18446744073709551615", "bytes=0-18446744073709551615", "bytes=0-1,3-4",
                     "bytes=0x1-", "bytes=", "bytes=-", "BYTES=0-1", "bytes= 0-1"):
            status, text, _ = server.ask(path, headers={"Range": part})
            assert status == 200 and text == whole, part


def test_an_upload_without_room_on_the_disk_is_refused_before_it_starts():
    with Server() as server:
        status, text, _ = server.ask("/api/v1/bundle?upload=large", method="PUT", body=b"x" * 10,
                                     headers={"Content-Range": f"bytes 0-9/{2**62}"})
        assert status == 507 and b"has no space for 4611686018427387904 more bytes" in text, (status, text)


def test_an_upload_does_not_follow_links_of_the_store():
    with Server() as server:
        uploads, aside = os.path.join(server.store, "serve.uploads"), os.path.join(server.dir, "aside")
        os.mkdir(aside)
        part = {"Content-Range": "bytes 0-8/99"}

        def put():
            return server.ask("/api/v1/bundle?upload=u", method="PUT", body=b"123456789", headers=part)[0]
        os.symlink(aside, uploads)
        with open(os.path.join(aside, "u"), "wb") as file:
            file.write(b"mine")
        assert put() == 507
        assert server.get("/bundle?upload=u") == {"received": 0}
        os.unlink(uploads)
        os.mkdir(uploads)
        os.symlink(os.path.join(aside, "u"), os.path.join(uploads, "u"))
        assert put() == 507
        os.unlink(os.path.join(uploads, "u"))
        os.mkfifo(os.path.join(uploads, "u"))
        assert put() == 409
        with open(os.path.join(aside, "u"), "rb") as file:
            assert file.read() == b"mine"


def journal(store, session):
    with open(os.path.join(store, "events", session + ".jsonl"), "rb") as file:
        return file.read()


def artifacts(store):
    return sorted(os.path.join(os.path.relpath(at, store), name)
                  for at, _, names in os.walk(os.path.join(store, "artifacts")) for name in names)


def move(server, store, *words, status=0):
    done = subprocess.run([ANNAL, "--store", store, *words, f"http://127.0.0.1:{server.port}", "--token-file",
                           os.path.join(server.store, "serve.token")], text=True, capture_output=True, check=False)
    assert done.returncode == status, done
    return json.loads(done.stdout) if "--json" in words else done.stderr


def make_session(server, store, artifact_bytes):
    """A fork with an artifact, in a store that has no server."""
    def annal(*words, **more):
        subprocess.run([ANNAL, "--store", store, *words], check=True, capture_output=True, **more)
    annal("append", "s", input=b'{"type":"a","data":1}\n{"type":"a","data":2}\n')
    annal("fork", "s", "--at", "1", "f")
    content = os.path.join(server.dir, "content")
    with open(content, "wb") as file:
        file.write(os.urandom(artifact_bytes))
    annal("artifact", "put", "f", content)


def test_a_session_is_pushed_and_pulled_with_its_artifacts():
    with Server() as server:
        here, third = os.path.join(server.dir, "here"), os.path.join(server.dir, "third")
        make_session(server, here, 3000)
        bundle = os.path.join(server.dir, "bundle")
        subprocess.run([ANNAL, "--store", here, "export", "f", "--format", "bundle", "--to", bundle], check=True)
        with open(bundle, "rb") as file:
            content = file.read()
        half, name = len(content) // 2, "push-" + hashlib.sha256(content).hexdigest()[:32]
        got, text, _ = server.ask("/api/v1/bundle?upload=" + name, method="PUT", body=content[:half],
                                  headers={"Content-Range": f"bytes 0-{half - 1}/{len(content)}"})
        assert got == 202, text
        assert move(server, here, "push", "f", "--json", "--to")["sent"] == len(content) - half
        assert move(server, here, "push", "f", "--json", "--to")["already_there"]
        assert move(server, third, "pull", "f", "--json", "--from")["added"] == 2
        assert move(server, third, "pull", "f", "--json", "--from")["already_there"] == 2
        for store in (server.store, third):
            assert artifacts(store) == artifacts(here)
            assert [journal(store, name) for name in "sf"] == [journal(here, name) for name in "sf"]
        assert "there is no session 'none'" in move(server, third, "pull", "none", "--from", status=1)
        server.annal("append", "f", text='{"type":"a","data":"there"}\n')
        subprocess.run([ANNAL, "--store", here, "append", "f"], input=b'{"type":"a","data":"here"}\n', check=True,
                       capture_output=True)
        before = journal(here, "f"), journal(server.store, "f")
        assert "already exists with other content" in move(server, here, "push", "f", "--to", status=1)
        assert "already exists with other content" in move(server, here, "pull", "f", "--from", status=1)
        assert before == (journal(here, "f"), journal(server.store, "f"))


def test_a_pull_killed_after_its_download_is_resumed():
    with Server() as server:
        server.append("s", 200)
        bundle, ranges = server.ask("/api/v1/sessions/s/bundle")[1], []

        class Slow(http.server.BaseHTTPRequestHandler):
            """A server that sends a bundle, and first is not seen to end."""

            def do_GET(self):  # pylint: disable=invalid-name
                ranges.append(self.headers["Range"])
                begin = int(ranges[-1][6:-1]) if ranges[-1] else 0
                self.send_response(206 if begin else 200)
                self.send_header("ETag", '"x"')
                self.send_header("Content-Length", str(len(bundle) - begin + (begin == 0)))
                self.end_headers()
                self.wfile.write(bundle[begin:])
                if begin == 0:
                    self.rfile.read(1)  # until the client has ended

            def log_message(self, *_):
                pass

        third = os.path.join(server.dir, "third")
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow) as slow:
            threading.Thread(target=slow.serve_forever, args=(0.02,), daemon=True).start()
            words = [ANNAL, "--store", third, "pull", "s", "--from", f"http://127.0.0.1:{slow.server_port}"]
            with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
                while sum(map(os.path.getsize, glob.glob(third + "/.importing-*/bundle"))) < len(bundle):
                    time.sleep(0.01)
                process.kill()
            subprocess.run(words, check=True, capture_output=True, timeout=20)
            slow.shutdown()
        assert ranges == [None, f"bytes={len(bundle) - 1}-"]
        assert journal(third, "s") == journal(server.store, "s")


def long_test_a_push_and_a_pull_that_are_killed_go_on():
    with Server() as server:
        random.seed(1)
        here, third = os.path.join(server.dir, "here"), os.path.join(server.dir, "third")
        make_session(server, here, 40 << 20)
        killed = 0
        for verb, option, store in (("push", "--to", here), ("pull", "--from", third)):
            for _ in range(25):
                process = subprocess.Popen([ANNAL, "--store", store, verb, "f", option,
                                            f"http://127.0.0.1:{server.port}", "--token-file",
                                            os.path.join(server.store, "serve.token")], stdout=subprocess.DEVNULL)
                time.sleep(random.uniform(0, 1.2))
                process.kill()
                killed += process.wait() != 0
            move(server, store, verb, "f", option)
        for store in (server.store, third):
            assert artifacts(store) == artifacts(here)
            assert [journal(store, name) for name in "sf"] == [journal(here, name) for name in "sf"]
        print(f"killed {killed} of 50")
        assert killed > 20


def test_open_gives_the_token_to_the_browser_and_to_no_other_user():
    server = Server("--open")
    opened = os.path.join(server.dir, "opened")
    with open(os.path.join(server.dir, "xdg-open"), "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\necho \"$1\" >{opened}.new; mv {opened}.new {opened}; sleep 2\n")
    os.chmod(file.name, 0o755)
    server.environment |= {"PATH": server.dir + ":" + os.environ["PATH"], "XDG_RUNTIME_DIR": server.dir}
    with server:
        while not os.path.exists(opened):
            time.sleep(0.01)
        with open(opened, encoding="ascii") as file:
            page = file.read().strip()
        assert page.startswith(server.dir + "/annal-") and stat.S_IMODE(os.stat(page).st_mode) == 0o600
        with open(page, encoding="ascii") as file:
            assert f'url=http://127.0.0.1:{server.port}/#token={server.token}"' in file.read()
        assert server.stop() == 0 and not os.path.exists(page)


def test_metrics_are_open_metrics():
    with Server() as server:
        post(server, "/sessions/s/events", '{"type":"a","data":1}')
        status, text, headers = server.ask("/metrics")
        assert status == 200 and headers["Content-Type"].startswith("application/openmetrics-text")
        lines = text.decode().splitlines()
        assert lines[-1] == "# EOF" and "annal_appended_events_total 1" in lines
        buckets = [int(line.split()[1]) for line in lines if line.startswith("annal_sync_seconds_bucket")]
        assert buckets == sorted(buckets) and buckets[-1] >= 1
        assert server.ask("/metrics", token=False)[0] == 401


def test_metrics_report_the_lag_of_shippers():
    """Shippers with unreachable targets; each has a name without its password."""
    with Server() as server:
        post(server, "/sessions/s/events", '{"type":"a","data":1}')
        targets = {"postgresql://boss:se?cret@127.0.0.1:1/fleet?connect_timeout=1": "postgresql://127.0.0.1:1/fleet",
                   "postgresql:///mini?password=secret&host=/a": "postgresql:///mini?host=/a",
                   "postgresql:///mini?host=/b&user=me&port=1": "postgresql:///mini?host=/b&port=1"}
        shippers = [subprocess.Popen([ANNAL, "--store", server.store, "ship", target, "--as", "h1", "--follow"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for target in targets]
        for name in targets.values():
            wait_for(lambda name=name: f'annal_ship_away{{target="{name}"}} 1' in server.ask("/metrics")[1].decode())
        assert 'annal_ship_silent_seconds{target="postgresql:///mini?host=/a"} ' in server.ask("/metrics")[1].decode()
        assert "cret" not in server.ask("/metrics")[1].decode()
        for shipper in shippers:
            shipper.kill()
            shipper.wait()
        wait_for(lambda: "annal_ship" not in server.ask("/metrics")[1].decode())


def main():
    tests = {name[5:]: fn for name, fn in globals().items() if name.startswith("test_")}
    names = sys.argv[2:] or list(tests)
    tests |= {name[10:]: fn for name, fn in globals().items() if name.startswith("long_test_")}
    failed, lock = [], threading.Lock()

    def run(name):
        begun = time.monotonic()
        try:
            tests[name]()
        except Exception:  # pylint: disable=broad-except
            with lock:
                failed.append(name)
                print(f"{name}: FAILED\n{traceback.format_exc()}")
            return
        with lock:
            print(f"{name}: {time.monotonic() - begun:.2f} s")

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(run, names))
    everything = {operation["operationId"] for methods in DOCUMENT.text["paths"].values()
                  for operation in methods.values()}
    missing = everything - DOCUMENT.answered - {"stream", "getMetrics", "getHealth", "getBundle", "exportTraces", "exportLogs"}
    if not sys.argv[2:] and missing:
        failed.append("document")
        print(f"no test asks {sorted(missing)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
