#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""speed.py ANNAL [PART…]: the goals for the speed of shipping, beside the measured values.

    long     a session of 300,000 events to PostgreSQL, beside a bare COPY of the rows
    dense    20,000 sessions of 13 events, 12 of which may change a row of sessions or turns, beside the same; one begins
             every 4 s (if all events had the same time, the server would insert them into one page of an index)
    parquet  the 300,000 events to a lake, on one processor
    lag      5,000 events a second for 20 s: how long after the append an event is in PostgreSQL
    appends  four agents append every 10 ms and wait for the answer, with a shipper beside them and without

PostgreSQL runs here, too, without fsync. Compared cases take turns; a figure is the median of the rounds. SPARE=2 in
the environment doubles the limits, for a shared machine. The exit status is 1 if a goal is missed.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime, timezone

from servers import Annal, Postgres, end, start

SPARE = float(os.environ.get("SPARE", "1"))
LONG, SESSIONS, ROUNDS = 300000, 20000, 5
RATE, LAG_SECONDS = 5000, 20
AGENTS, SLICES, SLICE_SECONDS = 4, 12, 3
TEXT = "as long as most events are that an agent makes"
# All rows, computed again from the events.
AGAIN = """DELETE FROM annal._session_rows; DELETE FROM annal._turn_rows;
SELECT count(annal._fold_again(keys)) FROM (
    SELECT array_agg(key) AS keys FROM (SELECT key, row_number() OVER (ORDER BY key) / 500 AS n FROM annal._heads) AS h
    GROUP BY n) AS h"""
missed = []


def note(what, asked, measured, is_met):
    print(f"{what:42} {asked:>8}  {measured}{'' if is_met else '  NOT MET'}", flush=True)
    if not is_met:
        missed.append(what)


def took(call):
    began = time.monotonic()
    call()
    return time.monotonic() - began


def long_session(annal):
    lines = (json.dumps({"type": "a.b", "id": f"e{n}", "data": {"n": n, "text": TEXT}}) for n in range(LONG))
    annal.run("append", "s1", "--level", "os", input="\n".join(lines) + "\n")
    return LONG


def dense_sessions(annal):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as log:
        for n in range(SESSIONS):
            events = [("session.created", {"title": f"Session {n}", "model": "m-4", "agent_id": "a1"}),
                      ("message.added", {"role": "user", "content": TEXT})]
            for turn in range(5):
                events.append(("turn.started", {"turn_id": f"t{turn}"}))
                events.append(("turn.completed", {"turn_id": f"t{turn}", "input_tokens": 1000, "output_tokens": 20}))
            events.append(("a.b", {"text": TEXT}))
            for second, (kind, data) in enumerate(events):
                at = datetime.fromtimestamp(1790000000 + 4 * n + second, timezone.utc).isoformat()
                print(json.dumps({"s": f"s{n:05}", "at": at, "t": kind, "d": data}), file=log)
        log.flush()
        parts = ["session=$.s", "ts=$.at", "type=$.t", "data=$.d"]
        annal.run("import", "jsonl", log.name, *(word for part in parts for word in ("--map", part)))
    return SESSIONS * 13


def beside_copy(program, name, make):
    """Both into the same empty tables. The store is in memory, where 20,000 sessions are created quickly."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        annal, server = Annal(program, directory + "/store"), Postgres()
        try:
            made, ship_s, rows_s, copy_s, again_s = make(annal), [], [], [], []
            schema = annal.run("ship", "schema")
            for _ in range(ROUNDS):
                server.ask("DROP SCHEMA IF EXISTS annal CASCADE")
                server.ask(schema)
                began = time.monotonic()
                rows_s.append(json.loads(annal.run("ship", server.url, "--as", "h1", "--json"))["rows_seconds"])
                ship_s.append(time.monotonic() - began - rows_s[-1])
                events = int(server.ask("SELECT count(*) FROM annal._events"))
                if events < made:
                    sys.exit(f"FAILED: {name}: {events} events arrived, not {made}")
                server.ask(f"COPY (SELECT * FROM annal._events) TO '{server.dir}/rows' (FORMAT binary)")
                again_s.append(took(lambda: server.ask(AGAIN)))
                server.ask("TRUNCATE annal._events")
                copy_s.append(took(lambda: server.ask(rf"\copy annal._events FROM '{server.dir}/rows' (FORMAT binary)")))
        finally:
            server.stop()
    ratio = statistics.median(c / s for c, s in zip(copy_s, ship_s))
    each = ", ".join(f"{c / s:.2f}" for c, s in zip(copy_s, ship_s))
    note(f"{name}: COPY / shipping", "0.8", f"{ratio:.2f} ({each})", ratio >= 0.8 / SPARE)
    note(f"{name}: shipped in, copied in", "", f"{statistics.median(ship_s):.2f} s, {statistics.median(copy_s):.2f} s", True)
    both = statistics.median(s + r for s, r in zip(ship_s, rows_s))
    note(f"{name}: shipped and rows made in", "", f"{both:.2f} s", True)
    note(f"{name}: rows made again, events/s", "", f"{events / statistics.median(again_s):,.0f}", True)


def parquet(program):
    with tempfile.TemporaryDirectory() as directory:
        annal = Annal(program, directory + "/store")
        events, wall, cpu = long_session(annal), [], []
        core = str(max(os.sched_getaffinity(0)))
        for n in range(ROUNDS):
            words = ["taskset", "-c", core, annal.program, "ship", f"file://{directory}/lake{n}", "--as", "h1"]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            wall.append(took(lambda: subprocess.run(words, env=annal.environment, check=True, capture_output=True)))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        annal.check(f"file://{directory}/lake0", events, "Parquet")
        rate, busy = events / statistics.median(wall), events / statistics.median(cpu)
    note("to Parquet, events/s on one processor", "100,000", f"{rate:,.0f}; {busy:,.0f} a second of its time", busy * SPARE >= 100000)


class Agent:
    """annal append, which answers each line."""

    def __init__(self, annal, session, level):
        self.process = annal.start("append", session, "--level", level, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def say(self, line):
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def lag(program):
    line = (json.dumps({"type": "a.b", "data": {"text": TEXT}}) + "\n").encode()
    with tempfile.TemporaryDirectory() as directory:
        annal, server = Annal(program, directory + "/store"), Postgres()
        try:
            annal.run("append", "first", input='{"type":"t","data":1}\n')
            annal.run("ship", server.url, "--as", "h1")
            follower = annal.start("ship", server.url, "--as", "h1", "--follow", stderr=subprocess.DEVNULL)
            psql = start([server.bin + "/psql", "-XAtq", server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            agents = [Agent(annal, f"s{n}", "batch") for n in range(AGENTS)]
            for agent in agents:
                threading.Thread(target=agent.process.stdout.read, daemon=True).start()
            sent_at, seen, lags, began = [], 0, [], time.monotonic()
            while len(sent_at) < RATE * LAG_SECONDS or seen < len(sent_at):
                due = min(RATE * LAG_SECONDS, int((time.monotonic() - began) * RATE)) - len(sent_at)
                for agent in agents if due >= AGENTS else []:
                    agent.say(line * (due // AGENTS))
                    sent_at += [time.monotonic()] * (due // AGENTS)
                psql.stdin.write(b"SELECT sum(seq) - 1 FROM annal._heads;\n")
                psql.stdin.flush()
                seen = int(psql.stdout.readline())
                if seen < len(sent_at):
                    lags.append(time.monotonic() - sent_at[seen])
                time.sleep(0.01)
            writing = sent_at[-1] - began
            for agent in agents:
                agent.stop()
            for process in follower, psql:
                end(process)
        finally:
            server.stop()
    lags.sort()
    note(f"lag at {len(sent_at) / writing:,.0f} events/s", "1 s",
         f"median {statistics.median(lags):.2f} s, at most {lags[-1]:.2f} s", lags[-1] <= SPARE)


def appends(program):
    """An event of 1 KB every 10 ms, durable before the next, for a slice of time."""
    line = (json.dumps({"type": "a.b", "data": {"text": "x" * 1000}}) + "\n").encode()
    with tempfile.TemporaryDirectory() as directory:
        annal, server = Annal(program, directory + "/store"), Postgres()
        annal.run("append", "first", input='{"type":"t","data":1}\n')
        agents = [Agent(annal, f"s{n}", "sync") for n in range(AGENTS)]

        def append_on(agent, until, times):
            while time.monotonic() < until:
                began = time.monotonic()
                agent.say(line)
                agent.process.stdout.readline()
                times.append(time.monotonic() - began)
                time.sleep(0.01)

        def measure():
            times, until = [], time.monotonic() + SLICE_SECONDS
            threads = [threading.Thread(target=append_on, args=(agent, until, times)) for agent in agents]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return times

        medians, shippers = [], 0
        try:
            measure()
            for n in range(SLICES):
                pair = {}
                for beside in (n % 2 == 0, n % 2 != 0):
                    annal.run("ship", server.url, "--as", "h1")
                    follower = annal.start("ship", server.url, "--as", "h1", "--follow", stderr=subprocess.DEVNULL) if beside else None
                    time.sleep(0.5)
                    pair[beside] = statistics.median(measure())
                    shippers += beside
                    end(follower)
                medians.append((pair[True], pair[False]))
            for agent in agents:
                agent.stop()
        finally:
            server.stop()
    slower = statistics.median(w / wo for w, wo in medians) - 1
    note("appends, slower with a shipper", "5 %", f"{slower * 100:+.1f} % ({statistics.median(w for w, _ in medians) * 1000:.2f} ms, "
         f"{statistics.median(wo for _, wo in medians) * 1000:.2f} ms; {SLICES} pairs)", slower <= 0.05 * SPARE)


def main():
    program, *chosen = sys.argv[1:]
    parts = {"long": lambda: beside_copy(program, "one long session", long_session),
             "dense": lambda: beside_copy(program, "many short sessions", dense_sessions),
             "parquet": lambda: parquet(program), "lag": lambda: lag(program), "appends": lambda: appends(program)}
    print(f"{'':42} {'asked':>8}  measured")
    for name in chosen or parts:
        parts[name]()
    print("load of the machine at the end:", *os.getloadavg())
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
