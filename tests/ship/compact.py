#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compact.py ANNAL SECONDS: a lake is compacted while shippers ship, and readers read all the time.

Readers use the statements of docs/ship.md. Every answer is a state that the lake had: as many events as the last of
each session says, none twice, and never fewer than before.
"""

import json
import re
import subprocess
import sys
import tempfile
import threading
import time

import chdb
import duckdb

from servers import Annal, end, seeded

SESSIONS = 3
failures = []


def documented(engine):
    """The statements of the section about compaction, the last of which asks something else."""
    text = open("docs/ship.md").read().split("### Compaction")[1].split("###")[0]
    return [block for block in re.findall(r"```sql\n(.*?)```", text, re.S) if ("read_parquet" in block) == (engine == "duckdb")][0]


def ask_duckdb(lake):
    sql = documented("duckdb").replace("/mnt/lake", lake)
    sql = sql.replace("SELECT store, type, count(*)", "SELECT session_id, count(*), count(DISTINCT seq), max(seq)")
    connection = duckdb.connect()
    *before, last = [statement for statement in sql.split(";") if statement.strip()]
    for statement in before:
        connection.execute(statement)
    return connection.execute(last).fetchall()


def ask_clickhouse(lake):
    sql = documented("clickhouse").replace("/mnt/lake", lake)
    sql = sql.replace("extract(_path, 'store=([^/]*)') AS store, type, count()", "session_id, count(), uniqExact(seq), max(seq)")
    sql = sql.replace("GROUP BY store, type", "GROUP BY session_id").rstrip().rstrip(";")
    return [tuple(row) for row in map(json.loads, str(chdb.query(sql, "JSONCompactEachRow")).splitlines())]


def read_on(name, ask, lake, ends, answers):
    seen = {}
    while not ends.is_set():
        try:
            rows = ask(lake)
        except Exception as error:  # any: a reader must never fail
            failures.append(f"{name}: {error}")
            return
        for session, count, distinct, last in rows:
            last, count, distinct = int(last), int(count), int(distinct)
            if not count == distinct == last >= seen.get(session, 0):
                failures.append(f"{name}: {session}: {count} rows, {distinct} events, the last is {last}, before {seen.get(session)}")
            seen[session] = last
        answers[name] = answers.get(name, 0) + 1
    answers[name + " saw"] = sum(seen.values())


def main():
    chance = seeded()
    with tempfile.TemporaryDirectory() as directory:
        lake, events, last = directory + "/lake", 0, [0] * SESSIONS
        url = "file://" + lake
        annal = Annal(sys.argv[1], directory + "/store")
        ends, answers, runs, merged = threading.Event(), {}, 0, 0

        def append():
            nonlocal events
            which, count = chance.randrange(SESSIONS), chance.randint(1, 60)
            annal.append(f"s{which}", last[which] + 1, count)
            last[which] += count
            events += count

        for _ in range(SESSIONS * 3):
            append()
        annal.run("ship", url, "--as", "h1", "--batch", "15")
        readers = [threading.Thread(target=read_on, args=(name, ask, lake, ends, answers))
                   for name, ask in (("DuckDB", ask_duckdb), ("ClickHouse", ask_clickhouse))]
        for reader in readers:
            reader.start()
        until = time.monotonic() + float(sys.argv[2])
        while time.monotonic() < until and not failures:
            append()
            shipper = annal.start("ship", url, "--as", "h1", "--batch", "15", stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            compactor = annal.start("ship", "compact", url, "--as", "h1", "--today", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if chance.random() < 0.3:
                time.sleep(chance.random() * 0.2)
                end(chance.choice((shipper, compactor)))
            shipper.wait()
            compactor.wait()
            runs += 1
        annal.run("ship", url, "--as", "h1")
        time.sleep(2)
        ends.set()
        for reader in readers:
            reader.join()
        if failures:
            sys.exit("FAILED: " + "; ".join(failures[:3]))
        annal.check(url, events, "after compaction")
        for ask in ask_duckdb, ask_clickhouse:
            got = sum(int(row[1]) for row in ask(lake))
            if got != events:
                sys.exit(f"FAILED: {ask.__name__}: {got} events, not {events}")
        done = json.loads(annal.run("ship", "compact", url, "--as", "h1", "--today", "--keep", "0", "--json"))
        print(f"{events} events, {runs} runs, {answers}, {done}")


main()
