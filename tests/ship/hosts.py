#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hosts.py ANNAL HOSTS TASKS: hosts with stores of their own claim tasks, and are frozen for longer than their lease.

Each task is a session. A host takes its home, works on it and ships it, through a pooler to a PostgreSQL whose primary
is killed once. At the end each task was done once, the tables have no later event of it, and every event that a host
appended is in its store or in the tables. Then the hosts claim tasks of one backlog, whose session they take in turns:
each task is claimed once, by the host that got the answer. Finally they claim as many tasks of a backlog that they
share, and their journals are equal.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from servers import Annal, PostgresPrograms, end, seeded, start, wait_until

LEASE, FREEZE, FAIL_OVER = 2, 3.5, 20
WANTED = 12  # of the tasks that are left: so few that hosts often want the same


CLAIMS = ("SELECT data ->> 'task_id', data -> 'run' ->> 'submitting_user' FROM annal.events"
          " WHERE type = 'backlog.claimed' AND session_id = '{session}'")


def psql(url, sql):
    return subprocess.run(["psql", "-XAt", url, "-c", sql], capture_output=True, text=True).stdout.strip()


class Fleet(PostgresPrograms):
    """A pooler, and PostgreSQL with two standbys, one of which receives each commit before the answer."""

    def __init__(self):
        super().__init__()
        self.servers, self.primary = {}, "p0"
        self.make_data("p0")
        self.start_server("p0")
        self.ask("ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (p1, p2)'")
        for name in ("p1", "p2"):
            self.program("pg_basebackup", "-h", self.dir, "-p", "5430", "-U", "boss", "-D", name, "-R", "-c", "fast")
            self.start_server(name)
        self.ask("SELECT pg_reload_conf()")
        wait_until("the standbys", lambda: self.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state IN"
                                                    " ('sync', 'potential')") == "2")
        self.point_pooler()
        self.pooler = start(["/usr/sbin/pgbouncer", "pooler.ini"], **self.more)
        self.url = f"postgresql:///fleet?host={self.dir}&port=6432&user=boss"
        wait_until("the pooler", lambda: psql(self.url, "SELECT 1") == "1")

    def start_server(self, name):
        words = ["-D", name, "-k", self.dir, "-p", f"543{name[1]}", "-c", f"cluster_name={name}", "-c", "listen_addresses=",
                 "-c", "fsync=off", "-c", "shared_buffers=32MB"]
        self.servers[name] = start([f"{self.bin}/postgres", *words], **self.more)
        wait_until(f"PostgreSQL {name}", lambda: self.ask("SELECT 1", name) == "1")

    def point_pooler(self):
        """To the primary, with as few connections as it gives."""
        with open(f"{self.dir}/pooler.ini", "w", encoding="utf-8") as file:
            print(f"[databases]\nfleet = host={self.dir} port=543{self.primary[1]} dbname=postgres user=boss\n[pgbouncer]\n"
                  f"unix_socket_dir = {self.dir}\nlisten_port = 6432\nauth_type = any\npool_mode = transaction\n"
                  "default_pool_size = 12\nserver_login_retry = 1\nignore_startup_parameters = extra_float_digits", file=file)
        os.chmod(file.name, 0o644)

    def ask(self, sql, name=None):
        return psql(f"postgresql:///postgres?host={self.dir}&port=543{(name or self.primary)[1]}&user=boss", sql)

    def fail_over(self):
        """The primary is killed, p1 takes over, and p2 follows it."""
        end(self.servers.pop(self.primary))
        self.primary = "p1"
        self.ask(f"ALTER SYSTEM SET primary_conninfo = 'host={self.dir} port=5431 user=boss'", "p2")
        self.ask("SELECT pg_reload_conf()", "p2")
        self.ask("SELECT pg_promote()")
        self.point_pooler()
        os.kill(self.pooler.pid, signal.SIGHUP)
        wait_until("the new primary", lambda: psql(self.url, "CREATE TABLE IF NOT EXISTS taken_over ()") == "CREATE TABLE")

    def stop(self):
        for process in (self.pooler, *self.servers.values()):
            end(process)
        shutil.rmtree(self.dir)


class Host:
    """Runs in a process of its own until every task is done."""

    def __init__(self, program, directory, name, url, tasks):
        self.annal = Annal(program, f"{directory}/{name}")
        self.accepted = open(f"{directory}/{name}.accepted", "w", encoding="utf-8")
        self.name, self.target, self.tasks = name, [url, "--as", name, "--timeout", "3"], tasks
        self.random, self.count = random.Random(name), 0

    def run(self, *words, input=None):
        return subprocess.run([self.annal.program, *words], input=input, env=self.annal.environment,
                              capture_output=True, text=True)

    def append(self, task, kind):
        self.count += 1
        event = {"type": kind, "id": f"{self.name}-{self.count}", "data": self.name}
        if self.run("append", task, input=json.dumps(event) + "\n").returncode == 0:
            print(task, event["id"], file=self.accepted, flush=True)

    def take(self, task):
        got = self.run("home", "take", task, *self.target, "--for", str(LEASE))
        if "annal pull" in got.stderr and "late-" not in got.stderr:
            self.run("pull", task, "--from", self.target[0])
            got = self.run("home", "take", task, *self.target, "--for", str(LEASE))
        elif "late-" in got.stderr:
            self.run("delete", "--yes", task)
        return got.returncode == 0

    def work(self, task):
        if not self.take(task):
            return
        if '"task.done"' not in self.run("cat", task).stdout:
            self.append(task, "task.worked")
            time.sleep(self.random.random() * 0.3)
            self.append(task, "task.done")
        self.run("ship", *self.target, "--session", task)
        self.run("home", "release", task, *self.target)

    def run_all(self):
        left = {f"task-{n}" for n in range(self.tasks)}
        self.run("append", "begun", input='{"type":"host.begun","data":null}\n')
        while left:
            self.work(self.random.choice(sorted(left)[:WANTED]))
            left -= set(psql(self.target[0], "SELECT session_id FROM annal.events WHERE type = 'task.done'").split())
        self.run("ship", *self.target)


class Claimant(Host):
    """Claims tasks of the backlog until none is ready. A claim is certain when it was shipped."""

    def run_all(self):
        self.run("pack", "enable", "agentweaver")
        while not self.claim():
            time.sleep(self.random.random() * 0.2)

    def claim(self):
        if not self.take("proj_shop"):
            return False
        claimed = self.run("backlog", "claim", "shop", "--user", self.name, "--json")
        shipped = self.run("ship", *self.target, "--session", "proj_shop").returncode == 0
        self.run("home", "release", "proj_shop", *self.target)
        if claimed.returncode == 0 and shipped:
            print(json.loads(claimed.stdout)["data"]["task_id"], file=self.accepted, flush=True)
        return "is not ready" in claimed.stderr


class Sharer(Host):
    """Claims tasks of a backlog that all hosts share, and the leases of their runs. The answer of the command is certain."""

    def run_all(self):
        self.run("pack", "enable", "agentweaver")
        self.run("home", "join", self.target[0])
        while psql(self.target[0], CLAIMS.format(session="proj_yard")).count("|") < self.tasks:
            claimed = self.run("backlog", "claim", "yard", "--user", self.name, "--json")
            if claimed.returncode == 0:
                task = json.loads(claimed.stdout)["data"]["task_id"]
                print(task, file=self.accepted, flush=True)
                self.run("lease", "claim", f"yard-{task}", self.name, "--for", "86400000")
            self.run("lease", "claim", f"yard-t{self.random.randint(1, self.tasks)}", self.name, "--for", "86400000")


def freeze(chance, processes):
    """Stop some hosts with all that they run, each for longer than its lease."""
    frozen = [p for p in processes if p.poll() is None and chance.random() < 0.5]
    for process in frozen:
        os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(FREEZE)
    for process in frozen:
        os.killpg(process.pid, signal.SIGCONT)
    time.sleep(chance.random() * 2)
    return len(frozen)


def ids_of(program, store):
    lines = Annal(program, store).run("export").splitlines()
    return {event["id"]: event["session"] for event in map(json.loads, lines) if "id" in event}


def check(program, directory, server, hosts, tasks):
    worked = "SELECT count(*) FROM annal.events WHERE type = 'task.done' AND session_id NOT LIKE '%.late-%'"
    if server.ask(worked) != str(tasks):
        sys.exit(f"FAILED: {server.ask(worked)} tasks were done, not {tasks}")
    after = server.ask("SELECT count(*) FROM annal._events AS e JOIN annal._events AS d ON d.key = e.key AND d.seq < e.seq"
                       " JOIN annal._heads AS h ON h.key = e.key WHERE d.type = 'task.done' AND session NOT LIKE '%.late-%'")
    if after != "0":
        sys.exit(f"FAILED: {after} events come after their task was done: a fenced host shipped them")
    there = set(server.ask("SELECT id FROM annal._events WHERE id IS NOT NULL").split())
    late = 0
    for name in hosts:
        here = ids_of(program, f"{directory}/{name}")
        for line in open(f"{directory}/{name}.accepted", encoding="utf-8"):
            task, event = line.split()
            late += event not in there or ".late-" in here.get(event, "")
            if event not in there and event not in here:
                sys.exit(f"FAILED: event {event} of {task} is neither in store {name} nor in the tables")
        Annal(program, f"{directory}/{name}").run("verify")
    return late


def check_claims(server, directory, hosts, tasks, session):
    claims = server.ask(CLAIMS.format(session=session)).split()
    if len(claims) != tasks or len({claim.split("|")[0] for claim in claims}) != tasks:
        sys.exit(f"FAILED: {tasks} tasks have these claims: {claims}")
    for name in hosts:
        for task in open(f"{directory}/{name}.accepted", encoding="utf-8").read().split():
            if f"{task}|{name}" not in claims:
                sys.exit(f"FAILED: {name} got the answer that it has {task}: {claims}")


def check_leases(server, tasks):
    leases = server.ask("SELECT count(*), count(DISTINCT session_id) FROM annal.events WHERE type = 'lease.claimed'").split("|")
    if leases[0] != leases[1] or int(leases[0]) < tasks:
        sys.exit(f"FAILED: leases and runs that were claimed: {leases}, of {tasks}")


def check_journals(program, directory, hosts):
    """The next append writes bytes that were decided and not written yet."""
    journals = set()
    for name in hosts:
        annal = Annal(program, f"{directory}/{name}")
        annal.run("append", "proj_yard", input='{"type":"note","id":"last","data":null}\n')
        annal.run("verify")
        with open(f"{directory}/{name}/events/proj_yard.jsonl", "rb") as file:
            journals.add(file.read())
    if len(journals) != 1:
        sys.exit("FAILED: the journals of a session that is shared differ")


def play(scene, server, chance, words, hosts):
    """Run the hosts of a scene to their end; how often one was frozen."""
    begun, frozen = time.monotonic(), 0
    processes = [start([*words, name, server.url, scene], process_group=0) for name in hosts]
    try:
        while any(process.poll() is None for process in processes):
            frozen += freeze(chance, processes)
            if server.primary == "p0" and time.monotonic() - begun > FAIL_OVER:
                server.fail_over()
            if time.monotonic() - begun > 1200:
                sys.exit("FAILED: not done after 20 minutes")
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if any(process.returncode for process in processes):
        sys.exit("FAILED: a host ended")
    return frozen


def main():
    program, count, tasks = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    if len(sys.argv) > 4:
        kind = {"tasks": Host, "claims": Claimant, "shared": Sharer}[sys.argv[7]]
        kind(program, sys.argv[4], sys.argv[5], sys.argv[6], tasks).run_all()
        return
    chance, server, begun = seeded(), Fleet(), time.monotonic()
    hosts = [f"h{n}" for n in range(count)]
    try:
        with tempfile.TemporaryDirectory() as directory:
            first, claims = Annal(program, f"{directory}/first"), tasks // 4
            first.run("pack", "enable", "agentweaver")
            for project, count_of in (("shop", claims), ("yard", tasks)):
                first.run("project", "create", project)
                for n in range(1, count_of + 1):
                    first.run("backlog", "add", project, "mend the pump")
                    first.run("backlog", "commit", project, f"t{n}")
            first.run("ship", server.url, "--as", "first")
            words = [sys.executable, os.path.abspath(__file__), program, str(count), str(tasks), directory]
            frozen = play("tasks", server, chance, words, hosts)
            late, middle = check(program, directory, server, hosts, tasks), time.monotonic()
            print(f"{count} hosts, {tasks} tasks, frozen {frozen} times: each done once, {late} late events kept, "
                  f"{middle - begun:.0f} s")
            frozen = play("claims", server, chance, words, hosts)
            check_claims(server, directory, hosts, claims, "proj_shop")
            last = time.monotonic()
            print(f"{count} hosts, {claims} tasks of one backlog, frozen {frozen} times: each claimed once, {last - middle:.0f} s")
            frozen = play("shared", server, chance, words, hosts)
            shared = time.monotonic()
            check_claims(server, directory, hosts, tasks, "proj_yard")
            check_leases(server, tasks)
            check_journals(program, directory, hosts)
            print(f"{count} hosts, {tasks} tasks of one backlog that they share, frozen {frozen} times: each claimed once, and its run, "
                  f"{shared - last:.0f} s")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
