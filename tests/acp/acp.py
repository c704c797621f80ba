#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""acp.py ANNAL [KILLS [FUZZED [SEED]]]: annal acp between a client and agent.py: what is passed on, what is recorded, what
annal answers in place of the agent; KILLS (10) times it is killed with SIGKILL, and FUZZED (300) messages are damaged."""

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

ANNAL = os.path.abspath(sys.argv[1])
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 10
FUZZED = int(sys.argv[3]) if len(sys.argv) > 3 else 300
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
AGENT = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent.py")]
TIMES = 60  # seconds after which a process is stuck


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what)[:3000])


def request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def prompt(number, text, session="fake-1"):
    return request(number, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])


def lines(*messages):
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


BEGIN = [request(0, "initialize", protocolVersion=1, clientCapabilities={}),
         request(1, "session/new", cwd="/w/tides", mcpServers=[])]


def annal(store, *words, status=0):
    done = subprocess.run([ANNAL, "--store", store, *words], capture_output=True, timeout=TIMES)
    check(done.returncode == status, words, done.returncode, done.stderr)
    return done.stdout


def rows(store, sql):
    return [json.loads(line) for line in annal(store, "sql", "--json", sql).splitlines()]


def events(store, like="acp-%"):
    return rows(store, f"SELECT session_id AS s, seq, type, json(data) AS data FROM events WHERE session_id LIKE '{like}'"
                       " ORDER BY session_id, seq")


def passed(store, sent, *agent, status=0, **environment):
    """Run an agent through annal acp; returns stdout and stderr."""
    done = subprocess.run([ANNAL, "--store", store, "acp", "--", *AGENT, *agent], input=sent, capture_output=True,
                          timeout=TIMES, env={**os.environ, **environment})
    check(done.returncode == status, "status", done.returncode, done.stderr)
    return done.stdout, done.stderr


class Client:
    """A client that waits for each answer."""

    def __init__(self, store, *agent, **environment):
        self.process = subprocess.Popen([ANNAL, "--store", store, "acp", "--", *AGENT, *agent], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env={**os.environ, **environment})
        self.number = 0

    def ask(self, method, **params):
        """Returns the answer, and the notifications before it."""
        self.number += 1
        self.process.stdin.write(lines(request(self.number, method, **params)))
        self.process.stdin.flush()
        before = []
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and message.get("id") == self.number:
                return message, before
            if isinstance(message, dict) and "id" in message:
                self.process.stdin.write(lines({"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": {
                    "outcome": "selected", "optionId": "yes"}}}))
                self.process.stdin.flush()
            before.append(message)
        raise AssertionError(f"no answer to {method}")

    def close(self):
        self.process.stdin.close()
        check(self.process.wait(TIMES) == 0, "status")
        self.process.stdout.close()


def bytes_pass_unchanged(directory):
    sent = lines(*BEGIN)[:-1] + b"\r\n\n  \n" + lines(
        prompt(2, "say 3 think call plan fail ask wrong long 9000000 say 1"),
        {"jsonrpc": "2.0", "id": 900, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}},
        prompt(3, "error"), prompt(4, "say 2 stop")) + b"no message\n\xff\n{\"a\":" + b"[" * 500 + b"\n" + b"y" * 8500000 + \
        b'\n{"jsonrpc": "2.0",  "method":"session/cancel","params":{"sessionId":"fake-1"} }'
    copies = [os.path.join(directory, name) for name in ("direct", "through")]
    direct = subprocess.run([*AGENT, "--loads", "--copy", copies[0]], input=sent, capture_output=True, timeout=TIMES)
    store = os.path.join(directory, "store")
    out, err = passed(store, sent, "--loads", "--copy", copies[1])
    check(out == direct.stdout, "what the client reads differs", len(out), len(direct.stdout))
    for copy in copies:
        with open(copy, "rb") as file:
            check(file.read() == sent, "what the agent reads differs", copy)
    check(err.count(b"is longer than 8 MiB") == 2, err)
    wrong = [d for e in events(store, "acp-connection-%") if e["type"] == "import.unreadable" and (d := json.loads(e["data"]))]
    check(len(wrong) == 8, [d["reason"] for d in wrong])
    check(sorted(len(d.get("text", "")) for d in wrong)[-2:] == [65536, 65536], "heads")
    check(any(d.get("base64") == "/w==" for d in wrong) and any(d.get("text") == "not a message" for d in wrong), wrong)


def messages_are_events(directory):
    store = os.path.join(directory, "events")
    client = Client(store)
    client.ask("initialize", protocolVersion=1)
    client.ask("session/new", cwd="/w/tides", mcpServers=[])
    for words in ("say 3 think call plan fail ask wrong say 1 cost", "error", "title say 2 cost stop"):
        client.ask("session/prompt", sessionId="fake-1", prompt=[{"type": "text", "text": words}])
    client.close()
    session = [event for event in events(store) if event["s"] == "acp-fake-1"]
    kinds = [event["type"] for event in session]
    data = [json.loads(event["data"]) for event in session]
    check(kinds[0] == "session.created" and data[0]["working_directory"] == "/w/tides" and data[0]["agent_id"] == "fake", data[0])
    said = [d for kind, d in zip(kinds, data) if kind == "message.added"]
    check([d["role"] for d in said] == ["user", "assistant", "assistant", "assistant", "user", "user", "assistant"], said)
    check(said[1]["content"] == "word0 word1 word2 " and said[2]["content"][0]["thinking"] == "hm, a walrus", said)
    ended = [(kind, d.get("reason")) for kind, d in zip(kinds, data) if kind.startswith("turn.") and kind != "turn.started"]
    check(ended == [("turn.completed", "end_turn"), ("turn.failed", None), ("turn.cancelled", "cancelled")], ended)
    calls = [(kind, d["call_id"], d.get("input"), d.get("output")) for kind, d in zip(kinds, data) if kind.startswith("tool.")]
    check(calls == [("tool.called", "call_2", {"command": "make test"}, None),
                    ("tool.returned", "call_2", None, [{"type": "text", "text": "12 passed"}]),
                    ("tool.called", "call_3", {"command": "make test"}, None),
                    ("tool.failed", "call_3", None, [{"type": "text", "text": "ValueError: walrus"}]),
                    ("tool.called", "asked", {"path": "/tmp/x"}, None)], calls)
    check(kinds.count("plan.updated") == 1 and kinds.count("agent.turn.usage") == 4, kinds)
    (row,) = rows(store, "SELECT total_turns, total_tokens, model, title, cost_microusd AS cost FROM sessions WHERE id = 'acp-fake-1'")
    check(row == {"total_turns": 3, "total_tokens": 60, "model": "fake-1", "title": "Count the walruses", "cost": 1250000}, row)
    found = annal(store, "search", "--json", "walrus")
    check(b'"acp-fake-1"' in found, found)
    annal(store, "verify")


def annal_lists_and_loads_what_it_recorded(directory):
    store = os.path.join(directory, "loads")
    client = Client(store)
    answer, _ = client.ask("initialize", protocolVersion=1)
    able = answer["result"]["agentCapabilities"]
    check(able == {"loadSession": True, "promptCapabilities": {"image": True}, "sessionCapabilities": {"list": {}}}, able)
    client.ask("session/new", cwd="/w/tides", mcpServers=[])
    _, first = client.ask("session/prompt", sessionId="fake-1", prompt=[{"type": "text", "text": "say 2 call plan"}])
    answer, again = client.ask("session/load", sessionId="fake-1", cwd="/w/tides", mcpServers=[])
    check(answer["result"] == {} and again[1:] == first, answer, again)
    client.close()

    client = Client(store, "--refuse", FAKE_SESSION="fake-2")
    client.ask("initialize", protocolVersion=1)
    answer, _ = client.ask("session/load", sessionId="fake-1", cwd="/w/tides", mcpServers=[])
    check(answer["error"]["message"] == "not now", answer)
    for where, count in (({}, 1), ({"cwd": "/w/tides"}, 1), ({"cwd": "/w"}, 0)):
        answer, _ = client.ask("session/list", **where)
        check(len(answer["result"]["sessions"]) == count, where, answer)
        if count > 0:
            (one,) = answer["result"]["sessions"]
            check(one["sessionId"] == "fake-1" and one["cwd"] == "/w/tides" and one["title"] == "say 2 call plan", one)
    answer, replayed = client.ask("session/load", sessionId="fake-1", cwd="/w/tides", mcpServers=[])
    check("sessionId" not in answer["result"] and "configOptions" in answer["result"], answer)
    check(replayed[0]["params"]["update"] == {"sessionUpdate": "user_message_chunk", "content": {
        "type": "text", "text": "say 2 call plan"}}, replayed[0])
    check(replayed[1:] == first, replayed, first)
    answer, updates = client.ask("session/prompt", sessionId="fake-1", prompt=[{"type": "text", "text": "say 1"}])
    check(answer["result"]["stopReason"] == "end_turn" and updates[0]["params"]["sessionId"] == "fake-1", answer, updates)
    answer, _ = client.ask("session/load", sessionId="nobody", cwd="/w", mcpServers=[])
    check(answer["error"]["code"] == -32002, answer)
    client.close()
    (row,) = rows(store, "SELECT count(*) AS n, max(total_turns) AS turns FROM sessions WHERE id NOT LIKE 'acp-connection-%'")
    check(row == {"n": 1, "turns": 2}, row)


def an_agent_that_loads_is_not_recorded_twice(directory):
    store = os.path.join(directory, "repeats")
    for count in (1, 2):
        client = Client(store, "--loads")
        client.ask("initialize", protocolVersion=1)
        client.ask("session/load", sessionId="old", cwd="/w", mcpServers=[])
        client.ask("session/prompt", sessionId="old", prompt=[{"type": "text", "text": "say 1"}])
        client.close()
        (row,) = rows(store, "SELECT total_turns, title FROM sessions WHERE id = 'acp-old'")
        check(row["total_turns"] == count, row)
        texts = [json.loads(e["data"])["content"] for e in events(store, "acp-old") if e["type"] == "message.added"]
        check(texts[:2] == ["an old prompt", "an old answer"] and len(texts) == 2 + 2 * count, texts)


def endings_are_passed_on(directory):
    store = os.path.join(directory, "ends")
    out, _ = passed(store, lines(*BEGIN, prompt(2, "say 2 die 7")), status=7)
    check(out.endswith(b"\nthe end without a line break"), out[-100:])
    texts = [json.loads(e["data"])["content"] for e in events(store) if e["type"] == "message.added"]
    check(texts[1:] == ["word0 word1 "], texts)
    client = Client(store)
    client.ask("initialize", protocolVersion=1)
    client.process.send_signal(signal.SIGTERM)
    check(client.process.wait(TIMES) == 128 + signal.SIGTERM, "status after SIGTERM")
    done = subprocess.run([ANNAL, "--store", store, "acp", "--", "/no/such/agent"], capture_output=True, timeout=TIMES)
    check(done.returncode == 1 and b"start '/no/such/agent': No such file" in done.stderr, done)


def the_newest_requests_wait_for_an_answer(directory):
    store = os.path.join(directory, "unanswered")
    agent = ["sh", "-c", "cat >/dev/null; printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\\n' 2 3 258"]
    subprocess.run([ANNAL, "--store", store, "acp", "--", *agent], check=True, capture_output=True, timeout=TIMES,
                   input=lines(*(request(i, "x/ask") for i in range(2, 259))))
    kinds = [json.loads(e["data"])["kind"] for e in events(store, "acp-connection-%") if e["type"] == "import.record"]
    check(kinds[257:260] == ["unknown", "x/ask answer", "x/ask answer"], kinds[255:])


def nothing_passes_that_is_not_recorded(directory):
    store = os.path.join(directory, "held")
    holder = subprocess.Popen([ANNAL, "--store", store, "append", "acp-fake-1", "--type", "note"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    holder.stdin.write(b"{}\n")
    holder.stdin.flush()
    holder.stdout.readline()
    holder.send_signal(signal.SIGSTOP)
    try:
        done = subprocess.run([ANNAL, "--store", store, "--wait", "1", "acp", "--", *AGENT], input=lines(*BEGIN),
                              capture_output=True, timeout=TIMES)
    finally:
        holder.send_signal(signal.SIGCONT)
        holder.stdin.close()
        holder.wait(TIMES)
        holder.stdout.close()
    check(done.returncode not in (0, 1), done)
    check(b"acp-fake-1" in done.stderr and done.stdout.count(b"\n") <= 1 and b"fake-1" not in done.stdout, done)


def a_full_disk_ends_the_agent(directory):
    store = os.path.join(directory, "full")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000000, 3000000))

    done = subprocess.run([ANNAL, "--store", store, "acp", "--", *AGENT], input=lines(*BEGIN, *[
        prompt(i, "say 1 long 500000") for i in range(2, 22)]), capture_output=True, timeout=TIMES, preexec_fn=limit,
        restore_signals=False)
    check(done.returncode == 3 and b"annal: " in done.stderr, done.returncode, done.stderr)
    passed_on = done.stdout.splitlines()[1:]
    recorded = [json.loads(e["data"]) for e in events(store) if e["type"].startswith("import.")]
    have = {json.dumps(data["extra"]["message"]) if "extra" in data else data["text"] for data in recorded}
    check(2 < len(passed_on) < 60 and all(line.decode() in have for line in passed_on), len(passed_on), len(have))


def what_passed_is_durable_after_a_kill(directory, chance):
    store = os.path.join(directory, "kills")
    for kill in range(KILLS):
        copy = os.path.join(directory, f"copy-{kill}")
        name = f"kill-{kill}"
        client = subprocess.Popen([ANNAL, "--store", store, "acp", "--", *AGENT, "--loads", "--copy", copy],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env={**os.environ, "FAKE_SESSION": name})
        client.stdin.write(lines(*BEGIN, *[prompt(i, f"say {i} call", name) for i in range(2, 40)]))
        client.stdin.flush()
        received = [client.stdout.readline() for _ in range(chance.randrange(1, 200))]
        time.sleep(chance.random() / 50)
        client.kill()
        received += client.stdout.readlines()
        client.wait(TIMES)
        client.stdin.close()
        client.stdout.close()
        with contextlib.suppress(FileNotFoundError), open(copy, "rb") as file:
            received += file.readlines()
        recorded = [json.loads(e["data"]).get("extra") for e in events(store, f"acp-{name}") + events(store, "acp-connection-%")
                    if e["type"] == "import.record"]
        have = {json.dumps(extra["message"], sort_keys=True) for extra in recorded}
        for line in received:
            if line.endswith(b"\n"):
                check(json.dumps(json.loads(line), sort_keys=True) in have, "kill", kill, "lost", line)
    annal(store, "verify")


def damaged(chance, value):
    """A value with one of its parts replaced."""
    odd = [None, True, 0, -1, 1.5, 1e300, 10**30, "", "\0", "x" * 300, "\ud800", [], {}, [[]], {"": None}, "session/prompt", "fake-1"]
    if chance.random() < 0.2 or not isinstance(value, (dict, list)) or not value:
        return chance.choice(odd)
    copy = value.copy()
    key = chance.choice(list(copy)) if isinstance(copy, dict) else chance.randrange(len(copy))
    if isinstance(copy, dict) and chance.random() < 0.2:
        del copy[key]
    else:
        copy[key] = damaged(chance, copy[key])
    return copy


def damaged_messages_pass(directory, chance):
    store = os.path.join(directory, "fuzz")
    whole = subprocess.run([*AGENT, "--loads"], input=lines(*BEGIN, prompt(2, "say 2 think call fail plan say 1")),
                           capture_output=True, timeout=TIMES).stdout.splitlines()
    kinds = [*BEGIN, prompt(2, "a prompt"), *map(json.loads, whole), request(3, "session/load", sessionId="fake-1", cwd="/w"),
             {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "fake-1", "update": {
                 "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": 0.5, "currency": "USD"}}}}]
    kinds = [kind for kind in kinds if kind.get("id") != 0]
    sent = b""
    for _ in range(FUZZED):
        message = chance.choice(kinds)
        for _ in range(chance.randrange(3)):
            message = damaged(chance, message)
        sent += json.dumps(message).encode() + b"\n"
    out, err = passed(store, sent, "--echo")
    check(out == sent, "differs", len(out), len(sent))
    failed = rows(store, "SELECT json(data) AS data FROM events WHERE type = 'import.unreadable'")
    check(failed == [] and b"annal:" not in err, failed, err)
    (row,) = rows(store, "SELECT count(*) AS n FROM event_index WHERE type IN ('import.record', 'import.unreadable')")
    check(row["n"] == 2 * FUZZED + 1, row)
    annal(store, "verify")


def main():
    chance = random.Random(SEED)
    with tempfile.TemporaryDirectory(prefix="annal-acp-") as directory:
        bytes_pass_unchanged(directory)
        messages_are_events(directory)
        annal_lists_and_loads_what_it_recorded(directory)
        an_agent_that_loads_is_not_recorded_twice(directory)
        endings_are_passed_on(directory)
        the_newest_requests_wait_for_an_answer(directory)
        nothing_passes_that_is_not_recorded(directory)
        a_full_disk_ends_the_agent(directory)
        what_passed_is_durable_after_a_kill(directory, chance)
        damaged_messages_pass(directory, chance)
    print(f"annal acp: passed, {KILLS} kills, {FUZZED} damaged messages, seed {SEED}")


main()
