#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fleet.py BUILD [--short] [--hosts N] [--sessions N] [--pool N] [--seconds N] [--rates R,R,…] [--to FILE]
fleet.py BUILD --draw DIRECTORY --from FILE,FILE

Ten thousand hosts ship to one PostgreSQL through a pooler, with the code of the real shipper (fleet.c), at rates that rise
until one is not reached. Prints what each rate costs, which limit it was, then renewals of leases, `annal ship status`, the
size of everything, and what a session costs to read when there are the partitions of many days. BUILD is a release build, for example build/bench. --short is the test: 1,000 hosts, and rates that any
machine reaches. The servers are started in a directory in /tmp (some 5 GB for the long form), with fsync.
"""

import argparse
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from servers import Annal, answers, end, free_port, start, wait_until

PROGRAMS = "/usr/lib/postgresql"
TICKS = os.sysconf("SC_CLK_TCK")

# For each host, 100 old sessions, an active session, and a lease.
PAST = """
INSERT INTO annal._heads (store, session, seq, h, at, file, created_at)
    SELECT 'host' || lpad((n / 100)::text, 5, '0'), 'old-' || n, 1000, n, 1600000, md5(n::text), now()
    FROM generate_series(0, {sessions} - 1) AS n;
INSERT INTO annal._heads (store, session, seq, h, at, file, created_at)
    SELECT 'host' || lpad(n::text, 5, '0'), 'run-' || n || '-0', n * 7919 % 1000, n, 0, md5(n::text), now()
    FROM generate_series(0, {hosts} - 1) AS n;
INSERT INTO annal._session_rows (key, seq, first_at, created_at, updated_at, last_activity_at, ended_at, status, said, words, model,
        turn, turns, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens)
    SELECT key, seq, now(), now(), now(), now(), now(), 'ended',
           jsonb_build_object('title', 'Session ' || key, 'model', 'm-4', 'working_directory', '/home/agent/work/' || key,
                              'git_branch', 'branch-' || key, 'created_at', now()),
           md5(key::text) || md5(session), 'm-4', 'turn-' || md5(key::text), 50, 1000000, 20000, 900000, 50000
    FROM annal._heads;
INSERT INTO annal._homes SELECT 'home-host' || lpad(n::text, 5, '0'), 'host' || lpad(n::text, 5, '0'), NULL, 1, now()
    FROM generate_series(0, {hosts} - 1) AS n;
VACUUM (ANALYZE);
"""

SAMPLE = """SELECT json_build_object(
    'backends', (SELECT count(*) FROM pg_stat_activity WHERE datname = 'fleet' AND pid <> pg_backend_pid()),
    'locks', (SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()),
    'waits', (SELECT json_object_agg(wait, n) FROM (
        SELECT coalesce(wait_event_type || ':' || wait_event, 'running') AS wait, count(*) AS n FROM pg_stat_activity
        WHERE datname = 'fleet' AND state IN ('active', 'idle in transaction') AND pid <> pg_backend_pid() GROUP BY 1) AS w));"""

SIZES = """SELECT name, sum(pg_relation_size(oid)), sum(pg_indexes_size(oid)),
    sum(pg_total_relation_size(oid) - pg_relation_size(oid) - pg_indexes_size(oid)),
    coalesce(sum((SELECT pg_stat_get_live_tuples(oid))), 0), coalesce(sum((SELECT pg_stat_get_dead_tuples(oid))), 0)
FROM (SELECT oid, CASE WHEN relname LIKE 'events\\_%' THEN '_events' ELSE relname END AS name FROM pg_class
      WHERE relnamespace = 'annal'::regnamespace AND relkind = 'r') AS t GROUP BY name ORDER BY 2 DESC"""


class Servers:
    """PostgreSQL and PgBouncer, which do not run as root."""

    def __init__(self, pool, clients, memory):
        self.bin = sorted(os.listdir(PROGRAMS), key=int)[-1]
        self.dir = tempfile.mkdtemp(prefix="annal-fleet-", dir=os.environ.get("ANNAL_TEST_SERVERS", "/tmp"))
        user = pwd.getpwnam("postgres")
        self.user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"] if os.geteuid() == 0 else []
        if self.user:
            os.chown(self.dir, user.pw_uid, user.pw_gid)
        self.port, self.pool_port = free_port(), free_port()
        self.log = open(f"{self.dir}/log", "w")
        self.call("initdb", "-D", f"{self.dir}/data", "-A", "trust", "-U", "boss", "-E", "UTF8", "--locale=C.UTF-8")
        self.postgres = self.run("postgres", "-D", f"{self.dir}/data", "-k", self.dir, "-p", str(self.port), "-c",
                                 "listen_addresses=127.0.0.1", "-c", "max_connections=100", "-c", f"shared_buffers={memory}", "-c",
                                 "max_wal_size=4GB", "-c", "shared_preload_libraries=pg_stat_statements", "-c",
                                 "pg_stat_statements.track_planning=on")
        wait_until("PostgreSQL", lambda: answers(self.port))
        wait_until("PostgreSQL", lambda: self.psql("SELECT 1", "postgres", check=False) == "1")
        self.psql("CREATE DATABASE fleet", "postgres")
        with open(f"{self.dir}/pooler.ini", "w") as out:
            out.write(f"""[databases]
fleet = host={self.dir} port={self.port} user=boss
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.pool_port}
listen_backlog = 4096
unix_socket_dir =
auth_type = any
admin_users = boss
pool_mode = transaction
default_pool_size = {pool}
max_client_conn = {clients + 100}
log_connections = 0
log_disconnections = 0
""")
        self.pooler = start([*self.user, "prlimit", f"--nofile={clients + 1000}", shutil.which("pgbouncer"), "-q",
                             f"{self.dir}/pooler.ini"], stdout=self.log, stderr=self.log)
        wait_until("PgBouncer", lambda: answers(self.pool_port))

    def run(self, program, *words):
        return start([*self.user, f"{PROGRAMS}/{self.bin}/bin/{program}", *words], stdout=self.log, stderr=self.log, cwd=self.dir)

    def call(self, *words):
        if self.run(*words).wait() != 0:
            sys.exit(f"FAILED: {words[0]}: see {self.dir}/log")

    def psql(self, sql, database="fleet", check=True, pooled=False):
        done = subprocess.run(["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.pool_port if pooled else
                               self.port), "-U", "boss", database], input=sql, capture_output=True, text=True)
        if check and done.returncode != 0:
            sys.exit(f"FAILED: {sql}: {done.stderr}")
        return done.stdout.strip()

    def rows(self, sql, **more):
        return [line.split("|") for line in self.psql(sql, **more).splitlines()]

    def url(self):
        return f"postgresql://boss@127.0.0.1:{self.pool_port}/fleet"

    def close(self):
        end(self.pooler)
        self.postgres.terminate()
        self.postgres.wait()
        self.log.close()
        shutil.rmtree(self.dir)


def stat_of(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()


def seconds_of(pid):
    return sum(map(int, stat_of(pid)[11:13])) / TICKS


def seconds_of_server(postmaster):
    """For all its processes, also those that have ended."""
    seconds = sum(map(int, stat_of(postmaster)[11:15])) / TICKS
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if stat_of(pid)[1] == str(postmaster):
                seconds += seconds_of(pid)
        except OSError:
            pass
    return seconds


def idle_seconds():
    with open("/proc/stat") as stat:
        return sum(map(int, stat.readline().split()[4:6])) / TICKS


class Watch(threading.Thread):
    """The load of the servers: samples twice a second, and sums since take()."""

    def __init__(self, servers, load):
        super().__init__(daemon=True)
        self.servers, self.load, self.over = servers, load, False
        self.take()
        self.start()

    def sums(self):
        wal, commits = self.servers.rows("SELECT pg_current_wal_lsn() - '0/0', xact_commit FROM pg_stat_database "
                                         "WHERE datname = 'fleet'")[0]
        return {"at": time.monotonic(), "wal": int(wal), "commits": int(commits), "idle": idle_seconds(),
                "postgres_cpu": seconds_of_server(self.servers.postgres.pid), "pooler_cpu": seconds_of(self.servers.pooler.pid),
                "load_cpu": seconds_of(self.load)}

    def take(self):
        """The figures since the last call."""
        now, before = self.sums(), getattr(self, "before", None)
        self.before, seen = now, getattr(self, "seen", [])
        self.seen = []
        if before is None:
            return None
        seconds = now.pop("at") - before["at"]
        self.before = {**now, "at": time.monotonic()}
        rates = {f"{name}_s": (now[name] - before[name]) / seconds for name in now}
        waits = {}
        for sample in seen:
            for wait, count in (sample["waits"] or {}).items():
                waits[wait] = waits.get(wait, 0) + count / len(seen)
        most = lambda name: max((sample[name] for sample in seen), default=0)
        return {**rates, "backends": most("backends"), "locks": most("locks"), "waiting": most("waiting"),
                "waits": dict(sorted(waits.items(), key=lambda item: -item[1]))}

    def run(self):
        while not self.over:
            sample = json.loads(self.servers.psql(SAMPLE))
            pools = self.servers.rows("SHOW POOLS", database="pgbouncer", pooled=True)
            sample["waiting"] = sum(int(row[3]) for row in pools if row[0] == "fleet")
            self.seen.append(sample)
            time.sleep(0.5)


def limit_of(step, pool):
    """Describe what was missing in the last step."""
    cores = os.cpu_count()
    waits = ", ".join(f"{wait} {count:.1f}" for wait, count in list(step["waits"].items())[:3])
    return (f"PostgreSQL used {step['postgres_cpu_s']:.2f} of {cores} cores, the pooler {step['pooler_cpu_s']:.2f}, the hosts "
            f"{step['load_cpu_s']:.2f}; idle {step['idle_s']:.2f}. Of {pool} server connections: {waits}; "
            f"{step['waiting']} hosts waited for one")


COLUMNS = (("events/s", "events_s", ".0f", 1), ("batches/s", "batches_s", ".0f", 1), ("batch p99 ms", "batch_p99_ms", ".0f", 1),
           ("lag p50 ms", "lag_p50_ms", ".0f", 1), ("lag p99 ms", "lag_p99_ms", ".0f", 1),
           ("rows p99 ms", "rows_p99_ms", ".0f", 1), ("row calls/s", "row_calls_s", ".0f", 1), ("hosts", "connected", "d", 1),
           ("backends", "backends", "d", 1), ("waiting", "waiting", "d", 1), ("locks", "locks", "d", 1),
           ("WAL MB/s", "wal_s", ".1f", 1e6), ("cores", "postgres_cpu_s", ".2f", 1), ("pooler", "pooler_cpu_s", ".2f", 1),
           ("away", "away", "d", 1))


def print_step(step):
    print(" ".join(f"{step[name] / unit if unit != 1 else step[name]:{max(len(title), 8)}{form}}" for title, name, form, unit in COLUMNS),
          flush=True)


def ship(servers, options):
    words = [f"{options.build}/tests/ship/fleet", "ship", servers.url(), str(options.hosts), str(options.seconds), *options.rates.split(",")]
    load = start(words, stdout=subprocess.PIPE, text=True)
    first = json.loads(load.stdout.readline() or sys.exit("FAILED: fleet"))
    print(f"{first['connected']:,} hosts connected in {first['seconds']:.1f} s")
    print(" ".join(f"{title:>{max(len(title), 8)}}" for title, *_ in COLUMNS))
    servers.psql("SELECT pg_stat_statements_reset()")
    watch, steps = Watch(servers, load.pid), []
    for line in load.stdout:
        seen = {**json.loads(line), **watch.take()}
        if "rate" not in seen:
            continue
        steps.append(seen)
        print_step(steps[-1])
        if not steps[-1]["reached"] or len(steps) == len(options.rates.split(",")):
            break
    watch.over = True
    watch.join()
    if load.wait() != 0:
        sys.exit("FAILED: fleet")
    reached = [step for step in steps if step["reached"]]
    best = reached[-1] if reached else steps[-1]
    print(f"at {best['events_s']:,.0f} events/s: {best['wal_s'] / best['events_s']:.0f} bytes of WAL and "
          f"{best['postgres_cpu_s'] / best['events_s'] * 1e6:.0f} µs of PostgreSQL an event, "
          f"{best['postgres_cpu_s'] / best['batches_s'] * 1e3:.2f} ms a batch")
    if steps[-1]["reached"] and steps[-1]["lag_p50_ms"] > 1000:
        print(f"limit: {max(step['batches_s'] for step in steps):,.0f} batches/s; beyond that batches grow, and events wait: "
              f"{limit_of(steps[-1], options.pool)}")
    if not steps[-1]["reached"]:
        print(f"limit: {steps[-1]['rate']:,.0f} events/s were not reached: {limit_of(steps[-1], options.pool)}")
    return first, steps


def statements(servers):
    """The time of the server, by statement."""
    print("\nms planned   ms run   calls   statement")
    for planned, run, calls, text in servers.rows("""
            SELECT round((total_plan_time / calls)::numeric, 3), round((total_exec_time / calls)::numeric, 3), calls,
                   left(regexp_replace(query, '\\s+', ' ', 'g'), 70)
            FROM pg_stat_statements WHERE calls > 0 ORDER BY total_plan_time + total_exec_time DESC LIMIT 12"""):
        print(f"{planned:>10} {run:>8} {calls:>7}   {text}")


def check_whole(servers):
    """The heads say how many events there are, each once and in order."""
    events, gaps = servers.rows("""
        SELECT sum(n), count(*) FILTER (WHERE n <> last - first + 1 OR last <> h.seq)
        FROM (SELECT key, count(*) AS n, min(seq) AS first, max(seq) AS last FROM annal._events GROUP BY key) AS e
             LEFT JOIN annal._heads AS h USING (key)""")[0]
    if gaps != "0":
        sys.exit(f"FAILED: {gaps} sessions have gaps, or another head")
    print(f"whole: {int(events):,} events, as the heads say")
    return int(events)


def renew(servers, options):
    done = subprocess.run([f"{options.build}/tests/ship/fleet", "renew", servers.url(), str(min(options.hosts, options.pool)), "5"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: renewals: {done.stderr}")
    result = json.loads(done.stdout)
    print(f"leases: {result['renewals_s']:,.0f} renewals/s, p99 {result['p99_ms']:.1f} ms; {options.hosts:,} homes of 30 s need "
          f"{options.hosts / 10:,.0f}/s")
    return result


def status(servers, options):
    """annal ship status of a host with a session of its own and those that the target has, among the homes of all."""
    annal = Annal(f"{options.build}/tools/annal", f"{servers.dir}/store")
    annal.append("s1", 1, 1)
    begun = time.monotonic()
    lines = annal.run("ship", "status", servers.url(), "--as", "host00000", "--json").splitlines()
    seconds = time.monotonic() - begun
    want = 1 + int(servers.psql("SELECT count(*) FROM annal._heads WHERE store = 'host00000'"))
    if len(lines) != want:
        sys.exit(f"FAILED: annal ship status shows {len(lines)} sessions, not {want}")
    asked = servers.rows("EXPLAIN (ANALYZE, BUFFERS, FORMAT json) SELECT session, seq, h, at FROM annal._heads WHERE store = 'host00000'")
    plan = json.loads("".join(line[0] for line in asked))[0]
    pages = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
    print(f"annal ship status: {len(lines)} sessions in {seconds * 1000:.0f} ms; its heads: {pages} pages, "
          f"{plan['Execution Time']:.1f} ms")
    return {"seconds": seconds, "pages": pages, "ms": plan["Execution Time"], "sessions": len(lines)}


def sizes(servers):
    result = {}
    print("\ntable            rows         heap    indexes      TOAST  bytes/row  dead rows")
    for name, heap, indexes, toast, live, dead in servers.rows("VACUUM ANALYZE;" + SIZES):
        whole = int(heap) + int(indexes) + int(toast)
        each = whole / int(live) if int(live) > 0 else 0
        print(f"{name:<14} {int(live):>11,} {int(heap) / 1e6:>9.1f} MB {int(indexes) / 1e6:>7.1f} MB {int(toast) / 1e6:>7.1f} MB "
              f"{each:>9.0f} {int(dead):>9,}")
        result[name] = {"rows": int(live), "heap": int(heap), "indexes": int(indexes), "toast": int(toast)}
    return result


DAYS = """SELECT format('CREATE TABLE annal.%I PARTITION OF annal._events FOR VALUES FROM (%L) TO (%L)',
    'events_' || to_char(day, 'YYYYMMDD'), day, day + 1)
FROM (SELECT (now() AT TIME ZONE 'UTC')::date - n AS day FROM generate_series(1, {count} - 2) AS n) AS days
WHERE to_regclass('annal.events_' || to_char(day, 'YYYYMMDD')) IS NULL
\\gexec
"""


def partitions(servers, options):
    """The cost of a session of 1,000 events, and of a batch of one event, while days are added: the median of five runs."""
    annal = Annal(f"{options.build}/tools/annal", f"{servers.dir}/days")
    url = f"postgresql://boss@127.0.0.1:{servers.port}/fleet"
    a_turn = '{"type":"turn.started","data":{}}\n'

    def half(run):
        times = []
        for n in range(5):
            begun = time.monotonic()
            run(n)
            times.append((time.monotonic() - begun) * 1000)
        return sorted(times)[2]

    def ask(sql):
        lines = servers.psql(f"\\timing on\n{f'{sql};' * 5}").splitlines()
        return sorted(float(line.split()[1]) for line in lines if line.startswith("Time:"))[2]

    annal.append("long", 1, 1000)
    annal.append("shared", 1, 1)
    annal.run("ship", url, "--as", "days")
    annal.run("home", "share", "shared", url)
    results = []
    print("\npartitions    pull ms   check ms   shared ms   batch ms  events() ms  events ms  tool_calls ms")
    for count in (2, 90, 365, 1000):
        servers.psql(DAYS.format(count=count))
        for n in range(5):
            annal.append(f"short-{n}", 1, 1)
        result = {
            "pull_ms": half(lambda n: annal.run("pull", "long", "--from", url, "--store", f"{servers.dir}/pulled-{count}-{n}")),
            "check_ms": half(lambda n: annal.run("ship", "check", url, "--as", "days", "--session", "long")),
            "shared_ms": half(lambda n: annal.run("append", "shared", input=a_turn)),
            "batch_ms": half(lambda n: annal.run("ship", url, "--as", "days", "--session", f"short-{n}")),
            "function_ms": ask("SELECT count(*) FROM annal.session_events('long', 'days')"),
            "events_ms": ask("SELECT count(*) FROM annal.events WHERE session_id = 'long' AND store = 'days'"),
            "calls_ms": ask("SELECT count(*) FROM annal.tool_calls WHERE session_id = 'long' AND store = 'days'")}
        results.append({"partitions": count, **result})
        print(f"{count:>10} " + " ".join(f"{value:>10.1f}" for value in result.values()), flush=True)
    return results


def draw(options):
    """Pictures of docs/scale.md, from what was measured: of 10,000 hosts, and of few, whose batches are larger."""
    results = []
    for name in options.measured.split(","):
        with open(name) as file:
            results.append(json.load(file))

    def picture(name, title, x_label, y_label, points):
        with open(f"{options.draw}/{name}.svg", "w") as out:
            subprocess.run([f"{options.build}/tests/ship/draw", title, x_label, y_label], text=True, stdout=out, check=True,
                           input="".join(f"{x} {y} {line}\n" for x, y, line in points))

    os.makedirs(options.draw, exist_ok=True)
    steps = results[0]["steps"]
    picture("lag", f"{results[0]['options']['hosts']:,} hosts: how old events are when they are committed", "events a second, of all hosts",
            "seconds", [(step["rate"], step[name] / 1000, line) for name, line in
                        (("lag_p50_ms", "half of them"), ("lag_p99_ms", "99 of 100"), ("batch_p50_ms", "a batch takes"))
                        for step in steps if step[name] > 0])
    picture("cost", "PostgreSQL: what larger batches save", "events of a batch", "microseconds of processor an event",
            [(step["events_s"] / step["batches_s"], step["postgres_cpu_s"] / step["events_s"] * 1e6, f"{result['options']['hosts']:,} hosts")
             for result in results for step in sorted(result["steps"], key=lambda step: step["events_s"] / step["batches_s"])])
    rows = {name: size["rows"] and (size["heap"] + size["indexes"] + size["toast"]) / size["rows"] for name, size in
            results[0]["sizes"].items()}
    each = {"events": rows["_events"], "rows of turns": rows["_turn_rows"] / 20, "rows of sessions": rows["_session_rows"] / 1000,
            "heads": rows["_heads"] / 1000}
    picture("bytes", "Bytes in PostgreSQL: a session has 1,000 events and 50 turns", "events", "GB",
            [(events, events * size / 1e9, line) for line, size in each.items() for events in (1e6, 1e7, 1e8, 1e9)])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--hosts", type=int)
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--pool", type=int, default=20)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--rates")
    parser.add_argument("--to")
    parser.add_argument("--draw")
    parser.add_argument("--from", dest="measured")
    options = parser.parse_args()
    if options.draw:
        return draw(options)
    usual = (1000, 10000, 6, "50,100") if options.short else (10000, 1000000, 120, "200,400,800,1600,3200")
    for name, value in zip(("hosts", "sessions", "seconds", "rates"), usual):
        if getattr(options, name) is None:
            setattr(options, name, value)
    if shutil.which("pgbouncer") is None or not os.path.isdir(PROGRAMS):
        print("SKIPPED: fleet: install the packages postgresql and pgbouncer")
        return
    servers = Servers(options.pool, options.hosts, "128MB" if options.short else "1GB")
    try:
        Annal(f"{options.build}/tools/annal", "none")
        servers.psql(subprocess.run([f"{options.build}/tools/annal", "ship", "schema"], capture_output=True, text=True, check=True).stdout)
        servers.psql("CREATE EXTENSION pg_stat_statements")
        servers.psql(PAST.format(sessions=options.sessions, hosts=options.hosts))
        connecting, steps = ship(servers, options)
        if not options.short:
            statements(servers)
        result = {"options": vars(options), "connecting": connecting, "steps": steps, "events": check_whole(servers),
                  "leases": renew(servers, options), "status": status(servers, options), "sizes": sizes(servers)}
        if not options.short:
            result["partitions"] = partitions(servers, options)
        if options.to:
            with open(options.to, "w") as out:
                json.dump(result, out, indent=1)
        if options.short and not all(step["reached"] for step in steps):
            sys.exit("FAILED: a rate that every machine reaches was not reached")
    finally:
        servers.close()


if __name__ == "__main__":
    main()
