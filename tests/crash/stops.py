#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stops.py ANNAL [--rounds 300] [--seed 1] [--stores 8] [--seconds 20] [--spare 100]: stop processes with SIGSTOP.

In each of several stores at once, eight processes work: writers with a pipe or one command after another, to their own
and to shared sessions, guarded appends, a continuous import, a tail, readers. In every round one of them gets SIGSTOP
at a random moment, for --seconds; in the meantime other commands run in that store, one after another, each with a
limit. No command may be blocked for longer than its limit and --spare milliseconds. A command that gives up at its
limit must name the stopped process, or another process of the store that holds the resource, since that process may
itself wait for the stopped process. Then SIGCONT; at the end every acknowledged event exists and verify finds no
damage.

A command is blocked while it waits for a lock or for the disk. Time in which it computes or waits for a processor
(/proc/PID/schedstat) does not count, unless --strict says so: that needs an idle machine and --pace 8, since the
workers alone keep two cores busy. Without --wait a command has the limit of 10 s; most are given --wait 1.
"""
import argparse
import collections
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

LINE = '{"type":"turn.started","data":{"n":%d,"text":"%s"}}\n'
SHARED = 3


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("annal")
    parser.add_argument("--rounds", type=int, default=300, help="stops in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stores", type=int, default=8, help="how many at once")
    parser.add_argument("--seconds", type=float, default=20, help="how long a process is stopped")
    parser.add_argument("--spare", type=int, default=100, help="milliseconds beyond the limit")
    parser.add_argument("--pace", type=float, default=1,
                        help="how many times longer the workers pause; from 6 on two cores are not busy all the time")
    parser.add_argument("--strict", action="store_true", help="count all the time, also that of a busy machine")
    parser.add_argument("--keep", action="store_true", help="leave the stores where they are")
    return parser.parse_args()


class Worker(threading.Thread):
    """A process that works, and is started again when it ends."""

    def __init__(self, store, number, kind):
        super().__init__(daemon=True)
        self.store, self.number, self.kind = store, number, kind
        self.lock = threading.Lock()
        self.process = None
        self.pids = set()  # that it had until now
        self.over = False
        self.count = 0
        self.answered = collections.Counter()  # session -> acknowledged events
        self.failures = collections.Counter()
        self.random = random.Random((store.options.seed, store.number, number).__repr__())

    def start_process(self, *words, **pipes):
        with self.lock:
            if self.over:
                return None
            self.process = subprocess.Popen([self.store.options.annal, *words], env=self.store.env,
                                            stderr=subprocess.PIPE, text=True, **pipes)
            self.pids.add(self.process.pid)
            return self.process

    def stop(self):
        """The pid that was stopped, or None if no process runs at this moment."""
        with self.lock:
            if self.process is None or self.process.poll() is not None:
                return None
            self.process.send_signal(signal.SIGSTOP)
            return self.process.pid

    def go_on(self, pid):
        with self.lock:
            if self.process is not None and self.process.pid == pid and self.process.poll() is None:
                self.process.send_signal(signal.SIGCONT)

    def end(self):
        with self.lock:
            self.over = True
            if self.process is not None and self.process.poll() is None:
                self.process.send_signal(signal.SIGCONT)
                if self.kind in ("tail", "follow"):
                    self.process.terminate()

    def line(self):
        self.count += 1
        return LINE % (self.count, "x" * self.random.choice((10, 200, 5000)))

    def pause(self, seconds):
        time.sleep(seconds * self.store.options.pace)

    def session(self):
        return "shared%d" % self.random.randrange(SHARED) if self.number % 2 else "own%d" % self.number

    def run(self):
        while not self.over:
            try:
                getattr(self, "run_" + self.kind)()
            except (BrokenPipeError, ValueError):
                pass
        if self.process is not None:
            self.process.wait()

    def note(self, err):
        if err.strip():
            self.failures[re.sub(r"[0-9]+", "N", err.strip().splitlines()[0])[:150]] += 1

    def run_pipe(self):
        session = self.session()
        process = self.start_process("append", session, "--wait", "2", stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE)
        if process is None:
            return
        for _ in range(self.random.randrange(20, 200)):
            if self.over:
                break
            process.stdin.write(self.line())
            process.stdin.flush()
            answer = process.stdout.readline()
            if '"seq"' not in answer:
                break
            self.answered[session] += 1
            self.pause(self.random.choice((0, 0.005, 0.02, 0.1)))
        process.stdin.close()
        for answer in process.stdout:
            self.answered[session] += '"seq"' in answer
        self.note(process.stderr.read())
        process.wait()

    def run_short(self):
        session = self.session()
        process = self.start_process("append", session, "--wait", "1", stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE)
        if process is None:
            return
        out, err = process.communicate(self.line())
        self.answered[session] += out.count('"seq"')
        self.note(err)
        self.pause(self.random.random() * 0.3)

    def run_claim(self):
        """Guarded: an append that asks the tables."""
        process = self.start_process("backlog", "add", "shop", "task %d" % self.count, "--wait", "1",
                                     stdout=subprocess.DEVNULL)
        if process is None:
            return
        self.count += 1
        self.note(process.communicate()[1])
        self.pause(self.random.random() * 0.3)

    def run_follow(self):
        log = os.path.join(self.store.dir, "agent%d.jsonl" % self.number)
        with open(log, "a", encoding="utf8"):
            pass
        process = self.start_process("import", "jsonl", log, "--follow", "--map", "session=.s", "--map", "type=.t",
                                     stdout=subprocess.DEVNULL)
        if process is None:
            return
        while not self.over and process.poll() is None:
            with open(log, "a", encoding="utf8") as file:
                for _ in range(self.random.randrange(1, 20)):
                    self.count += 1
                    file.write(json.dumps({"s": "import%d" % self.number, "t": "turn.started", "n": self.count}) + "\n")
            self.pause(self.random.random() * 0.5)
        self.note(process.stderr.read())
        process.wait()

    def run_tail(self):
        process = self.start_process("tail", "--all", "--follow", "--from", "now", "--cursor", "c%d" % self.number,
                                     stdout=subprocess.PIPE)
        if process is None:
            return
        for _ in process.stdout:
            if self.over:
                break
        self.note(process.stderr.read())
        process.wait()

    def run_read(self):
        words = self.random.choice((("ls",), ("query", "shared0", "--count"), ("sql", "SELECT count(*) FROM event_index"),
                                    ("snapshot", "take", "shared0"), ("checkpoint",), ("search", "xxxxxxxxxx"),
                                    ("reindex", "--wait", "2"), ("verify", "shared1"), ("convert", "own0", "--format", "jsonl")))
        process = self.start_process(*words, stdout=subprocess.DEVNULL)
        if process is None:
            return
        self.note(process.communicate()[1])
        self.pause(self.random.random() * 0.3)


KINDS = ("pipe", "pipe", "short", "short", "claim", "follow", "tail", "read")

PROBES = (
    ("ls",), ("cat", "shared0"), ("doctor",), ("show", "shared0"), ("query", "shared0", "--count"),
    ("sql", "SELECT count(*) FROM sessions"), ("stats",), ("replay", "shared1", "--json"), ("tail", "shared1", "--last", "2"),
    ("search", "xxxxxxxxxx"), ("verify", "shared0"), ("backlog", "ls", "shop"), ("append", "probe"),
    ("append", "shared0"), ("append", "own0"), ("backlog", "add", "shop", "probe"), ("fork", "shared1", "--at", "1"),
    ("snapshot", "take", "shared0"), ("checkpoint",), ("export", "shared1"), ("delete", "--yes", "probe"), ("pack", "list"),
)


class Store(threading.Thread):
    def __init__(self, options, number, top, rounds, report):
        super().__init__()
        self.options, self.number, self.rounds, self.report = options, number, rounds, report
        self.dir = os.path.join(top, "store%d" % number)
        os.mkdir(self.dir)
        self.env = dict(os.environ, ANNAL_STORE=os.path.join(self.dir, "store"))
        self.random = random.Random((options.seed, number).__repr__())
        self.probes = 0
        self.workers = []

    def command(self, *words, data="", timeout=120):
        """Exit status, both outputs, seconds, and for how many of them it neither ran nor wanted to."""
        with tempfile.TemporaryFile("w+", dir=self.dir) as to, tempfile.TemporaryFile("w+", dir=self.dir) as out, \
                tempfile.TemporaryFile("w+", dir=self.dir) as err:
            to.write(data)
            to.seek(0)
            begun = time.monotonic()
            process = subprocess.Popen([self.options.annal, *words], env=self.env, stdin=to, stdout=out, stderr=err)
            with os.fdopen(os.pidfd_open(process.pid)) as ended:
                in_time = select.select([ended], [], [], timeout)[0]
            took = time.monotonic() - begun
            if not in_time:
                process.kill()
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            with open("/proc/%d/schedstat" % process.pid, encoding="ascii") as file:
                delayed = int(file.read().split()[1]) / 1e9
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            return (process.returncode, out.read(), err.read() + ("" if in_time else " KILLED"), took,
                    took - delayed - usage.ru_utime - usage.ru_stime)

    def probe(self, stopped, where):
        words = list(self.random.choice(PROBES))
        limit = 10
        if self.random.random() < 0.9:
            limit = self.random.choice((1, 1, 1, 2))
            words += ["--wait", str(limit)]
        data = ""
        if words[0] == "append":
            data = LINE % (0, "probe")
        elif words[0] == "fork":
            self.probes += 1
            words.insert(4, "fork%d" % self.probes)
        status, _, err, took, blocked = self.command(*words, data=data)
        self.report.took(words, limit, took, blocked)
        beyond = took if self.options.strict else blocked
        if (beyond - limit) * 1000 > self.options.spare:
            self.report.late("%s: %s took %.2f s, %.2f s of it blocked, with a limit of %d s, status %d: %s" %
                             (where, " ".join(words), took, blocked, limit, status, err.strip()[-300:]))
        if "KILLED" in err:
            self.report.late("%s: %s did not end" % (where, " ".join(words)))
        # A tenth of a second of its limit is for its work; a finding of doctor is not a refusal.
        if blocked >= limit - 0.1 and status != 0 and err.strip():
            self.check_named(stopped, where, words, err.strip())
        if status < 0:
            self.report.late("%s: %s died by signal %d" % (where, " ".join(words), -status))

    def check_named(self, stopped, where, words, err):
        named = {int(pid) for pid in re.findall(r"process ([0-9]+)", err)}
        if stopped in named:
            self.report.named()
        elif named & set().union(*(worker.pids for worker in self.workers)):
            self.report.other_named(words, err)
        else:
            self.report.late("%s: %s names no process that it waited for: %s" % (where, " ".join(words), err[-300:]))

    def run(self):
        try:
            self.play()
        except Exception as error:  # so that make fails
            self.report.late("store %d: %r" % (self.number, error))

    def play(self):
        for i in range(SHARED):
            self.command("append", "shared%d" % i, data=LINE % (0, "first"))
        self.command("append", "own0", data=LINE % (0, "first"))
        for pack in ("teams", "agentweaver"):
            self.command("pack", "enable", pack)
        self.command("project", "create", "shop")
        workers = self.workers = [Worker(self, i, kind) for i, kind in enumerate(KINDS)]
        for worker in workers:
            worker.start()
        time.sleep(1)
        for number in range(self.rounds):
            time.sleep(self.random.random() * 0.5)
            worker = self.random.choice(workers)
            pid = worker.stop()
            while pid is None:
                time.sleep(0.001 * self.random.random())
                worker = self.random.choice(workers)
                pid = worker.stop()
            where = "store %d, round %d, %s stopped" % (self.number, number, worker.kind)
            until = time.monotonic() + self.options.seconds
            while time.monotonic() < until:
                self.probe(pid, where)
                time.sleep(self.random.random() * 0.2)
            worker.go_on(pid)
            self.report.stopped(worker.kind)
        for worker in workers:
            worker.end()
        for worker in workers:
            worker.join(30)
            if worker.is_alive():
                self.report.late("store %d: %s did not end" % (self.number, worker.kind))
        self.check(workers)

    def check(self, workers):
        expected = collections.Counter()
        for worker in workers:
            expected.update(worker.answered)
            self.report.failures(worker.kind, worker.failures)
        for session, count in expected.items():
            status, out, err, _, _ = self.command("query", session, "--count")
            if status != 0 or int(out) < count:
                self.report.late("store %d: %s has %s events, and %d were acknowledged: %s" %
                                 (self.number, session, out.strip(), count, err.strip()))
        status, out, err, _, _ = self.command("verify")
        if status != 0:
            self.report.late("store %d: verify: %s%s" % (self.number, out.strip()[-500:], err.strip()[-500:]))


class Report:
    def __init__(self):
        self.lock = threading.Lock()
        self.bad = []
        self.times = []
        self.commands = collections.Counter()
        self.waited = collections.Counter()
        self.stops = collections.Counter()
        self.why = collections.Counter()
        self.right_name = 0
        self.other_name = collections.Counter()

    def late(self, sentence):
        with self.lock:
            self.bad.append(sentence)
            print("stops: " + sentence, flush=True)

    def took(self, words, limit, took, blocked):
        with self.lock:
            self.commands[words[0]] += 1
            if blocked >= limit - 0.1:
                self.waited[words[0]] += 1
            self.times.append((took, blocked, limit))

    def named(self):
        with self.lock:
            self.right_name += 1

    def other_named(self, words, err):
        with self.lock:
            self.other_name[(words[0], re.sub(r"[0-9]+", "N", err)[:200])] += 1

    def stopped(self, kind):
        with self.lock:
            self.stops[kind] += 1

    def failures(self, kind, failures):
        with self.lock:
            for sentence, count in failures.items():
                self.why[(kind, sentence)] += count

    @staticmethod
    def print_times(what, times):
        if times:
            times.sort()
            at = lambda part: 1000 * times[min(len(times) - 1, int(part * len(times)))]
            print("stops: %d commands %s, in ms: median %.0f, 90 %% %.0f, 99 %% %.0f, most %.0f" %
                  (len(times), what, at(0.5), at(0.9), at(0.99), at(1)))

    def print(self):
        print("stops: %d stops: %s" % (sum(self.stops.values()),
                                       ", ".join("%s %d" % pair for pair in self.stops.most_common())))
        print("stops: %d commands meanwhile, of which %d waited as long as their limit: %s" %
              (len(self.times), sum(self.waited.values()), ", ".join("%s %d" % pair for pair in self.waited.most_common())))
        self.print_times("took", [took for took, _, _ in self.times])
        self.print_times("were blocked", [blocked for _, blocked, _ in self.times])
        self.print_times("took beyond their limit", [took - limit for took, _, limit in self.times if took > limit])
        self.print_times("were blocked beyond it", [blocked - limit for _, blocked, limit in self.times if blocked > limit])
        print("stops: %d refusals name who was stopped, %d another process that has what they waited for" %
              (self.right_name, sum(self.other_name.values())))
        for (verb, sentence), count in self.other_name.most_common(20):
            print("stops: %d times %s names another one: %s" % (count, verb, sentence))
        for (kind, sentence), count in self.why.most_common(20):
            print("stops: %d times %s: %s" % (count, kind, sentence))
        print("stops: %s" % ("%d findings" % len(self.bad) if self.bad else "nothing found"))


def main():
    options = parse()
    top = tempfile.mkdtemp(prefix="annal-stops-")
    report = Report()
    print("stops: seed %d" % options.seed, flush=True)
    try:
        share = [options.rounds // options.stores + (i < options.rounds % options.stores) for i in range(options.stores)]
        stores = [Store(options, i, top, share[i], report) for i in range(options.stores) if share[i] > 0]
        for store in stores:
            store.start()
        for store in stores:
            store.join()
        report.print()
    finally:
        if options.keep:
            print("stops: the stores are in " + top)
        else:
            shutil.rmtree(top, ignore_errors=True)
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main())
