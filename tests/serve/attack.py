#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random requests after the OpenAPI document, right and wrong: attack.py ANNAL [SECONDS [SEED]]

The server must answer each as the document says, never with a status of its own failure, and still answer at the end.
"""

import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

from openapi import Document

ANNAL = sys.argv[1]
SECONDS = int((sys.argv + ["", "10"])[2] or 10) if len(sys.argv) > 2 else 10
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
TEXTS = ["", "s", "f", "none", "now", "2h", "2026-01-01", "0", "1", "-1", "99999999999999999999", "18446744073709551615",
         "9223372036854775807", "1e9", "%", "*", "[", "'", '"', "' OR 1=1 --", "../../etc/passwd", "\0", "\n", "\u202e",
         "<script>alert(1)</script>", "a" * 300, "a" * 9000, "é", "\U0001f30a", ":", "'x:y", "1:", "null", "{}", "a b"]
BODIES = [b"", b"{", b"{}", b"[]", b"null", b'{"sql":"SELECT 1"}', b'{"sql":"SELECT * FROM events","limit":0}',
          b'{"sql":"PRAGMA journal_mode=DELETE"}', b'{"sql":"ATTACH \'/tmp/x\' AS y"}', b'{"sql":"SELECT load_extension(\'x\')"}',
          b'{"sql":"SELECT ?1","params":[{}]}', b'{"sql":"SELECT 1; SELECT 2"}', b'{"name":"x","at":-1}', b'{"name":5}',
          b'{"type":"a","data":1}', b'{"type":"a","data":1}\n' * 50, b'{"type":"a","data":' + b"[" * 600 + b"]" * 600 + b"}",
          b"\xff\xfe", b"\0" * 100, b"{" * 5000, b'{"resourceSpans":[{}]}', b'{"resourceSpans":[[],1,null,{"scopeSpans":[{"spans":[{}]}]}]}',
          b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[{}]}]}]}]}', b"\x0a\x02\x12\x00", b"\x0a\xff\xff\xff\xff\x0f"]
KINDS = ["application/json", "application/x-protobuf", "application/x-ndjson", "text/plain", ""]
BAD = {500, 502, 504}


def value_for(schema, rng):
    if rng.random() < 0.4:
        return rng.choice(TEXTS)
    if "enum" in schema:
        return str(rng.choice(schema["enum"]))
    if schema.get("type") == "integer":
        return str(rng.choice([0, 1, 2, 5, 1000, 2**31, 2**63]))
    return rng.choice(["s", "f", "2h", "note.*", "5"])


def make(document, rng):
    template, methods = rng.choice(sorted(document.text["paths"].items()))
    method, operation = rng.choice(sorted(methods.items()))
    path, query, headers = template, [], {}
    for parameter in operation.get("parameters", []):
        parameter = document.schema(parameter)
        value = value_for(parameter["schema"], rng)
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", urllib.parse.quote(value, safe="") or "s")
        elif rng.random() < 0.5 and parameter["in"] == "query":
            query += [(parameter["name"], value)] * rng.choice([1, 1, 1, 3])
        elif rng.random() < 0.3 and value.isascii() and value.isprintable():
            headers[parameter["name"]] = value
    if operation["operationId"] == "stream":
        return None
    path += "?" + urllib.parse.urlencode(query) if query else ""
    if rng.random() < 0.05:
        method = rng.choice(["DELETE", "PATCH", "OPTIONS", "HEAD", "BREW"])
    if rng.random() < 0.05:
        path = rng.choice(["/..//", "/%", "/%00", "//x", "/api/v1/", "/api/v1/sessions//", "/?", "/assets/..%2f..%2f"])
    body = rng.choice(BODIES) if method in ("post", "put") else None
    if body is not None:
        headers["Content-Type"] = rng.choice(KINDS)
    if rng.random() < 0.2:
        headers["Accept"] = "application/x-ndjson"
    return method.upper(), path, body, headers


def raw(port, rng):
    """Bytes that are not HTTP, or half a request."""
    texts = [b"GET / HTTP/1.1\r\n", b"GET " + b"/" * 20000, b"\0" * 1000, b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 500,
             b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"POST /v1/logs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
             b"POST /v1/logs HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
             b"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"]
    with socket.create_connection(("127.0.0.1", port), timeout=2) as client:
        client.sendall(rng.choice(texts))
        if rng.random() < 0.5:
            client.settimeout(0.05)
            try:
                client.recv(100)
            except OSError:
                pass


def attack(document, port, token, rng):
    counts, end = {}, time.monotonic() + SECONDS
    while time.monotonic() < end:
        if rng.random() < 0.05:
            raw(port, rng)
            continue
        made = make(document, rng)
        if made is None:
            continue
        method, path, body, headers = made
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request(method, path, body=body, headers={"Authorization": "Bearer " + token, **headers})
            answer = connection.getresponse()
            text = answer.read()
        except (ValueError, BrokenPipeError, ConnectionResetError):
            continue
        finally:
            connection.close()
        counts[answer.status] = counts.get(answer.status, 0) + 1
        assert answer.status not in BAD, (made, answer.status, text[:300])
        kind = (answer.headers["Content-Type"] or "").split(";")[0]
        if path.startswith("/api/") and kind.endswith("json") and method not in ("HEAD",) and "%2F" not in path:
            lines = text.splitlines() if kind.endswith("ndjson") else [text]
            try:
                document.check_answer(method, urllib.parse.unquote(path), answer.status, kind, map(json.loads, lines))
            except AssertionError as error:
                raise AssertionError(f"{made}: {error}") from error
    return counts


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "../../tools/serve/openapi.json"), encoding="utf-8") as file:
        document = Document(json.load(file))
    directory = tempfile.mkdtemp(prefix="annal-attack-")
    store = os.path.join(directory, "store")
    subprocess.run([ANNAL, "--store", store, "import", "claude-code", os.path.join(here, "../data/claude-code")],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run([ANNAL, "--store", store, "append", "s"], input=b'{"type":"note.added","data":{"a":"<b>"}}\n' * 20,
                   check=True, stdout=subprocess.DEVNULL)
    server = subprocess.Popen([ANNAL, "--store", store, "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline().rsplit(":", 1)[1].split("/")[0])
        with open(os.path.join(store, "serve.token"), encoding="ascii") as file:
            token = file.read().strip()
        print(f"seed {SEED}")
        counts = attack(document, port, token, random.Random(SEED))
        print(f"{sum(counts.values())} answers: {dict(sorted(counts.items()))}")
        assert server.poll() is None, "the server ended"
    finally:
        server.terminate()
        status = server.wait(timeout=30)
        shutil.rmtree(directory)
    sys.exit(status)


if __name__ == "__main__":
    main()
