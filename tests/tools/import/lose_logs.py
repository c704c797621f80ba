#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lose_logs.py ANNAL KILLS SEED DATA...: no agent loses a log while annal watch runs, however often it is killed.

A home directory gets the logs of DATA (folders named like the kinds), each where its agent keeps it. One `annal import`
must find and copy all of them. Then logs are extended, cut, rewritten, replaced, moved and deleted, while `annal watch`
runs and is killed KILLS times; before each tenth start, a watch runs that may not write, as on a full disk. A content
that stood for STOOD seconds beside a running watch must be in the store: some generation begins with its bytes, and
equals, by SHA-256, a content that the log had at some moment. Databases and logs that are directories are deleted at
the end, and their restored rows and files are compared.

STOOD_MS and PAUSE_MS are milliseconds: how long a content stands, and the pause between two changes.
"""
import hashlib, json, os, random, shutil, signal, sqlite3, subprocess, sys, tempfile, threading, time

STOOD = float(os.environ.get("STOOD_MS", "200")) / 1000
PAUSE = float(os.environ.get("PAUSE_MS", "200")) / 1000  # between two changes
KEPT_LINES = 4  # lines that no change removes: an import leaves out a file without any line of the agent's own
BYTES_MAX = 96 << 10  # larger logs are imported and restored, but not changed: every content is kept in memory

# Folder of DATA, end of the name of a file in it, and its place in a home directory. {}: the name; {stem}: without end.
PLACES = [
    ("claude-code", ".jsonl", ".claude/projects/-home-ada-tides/{}"),
    ("codex", ".jsonl", ".codex/sessions/2026/03/04/{}"),
    ("gemini-cli", ".json", ".gemini/tmp/tides/chats/session-{}"),
    ("gemini-cli", ".jsonl", ".gemini/tmp/tides/chats/session-{}"),
    ("pi", ".jsonl", ".pi/agent/sessions/--home-ada-tides--/{}"),
    ("qwen-code", ".jsonl", ".qwen/projects/-home-ada-tides/chats/{}"),
    ("copilot-cli", ".jsonl", ".copilot/session-state/{stem}/events.jsonl"),
    ("copilot-chat", ".json", ".config/Code/User/workspaceStorage/w1/chatSessions/{}"),
    ("copilot-chat", ".jsonl", ".config/Code/User/workspaceStorage/w1/chatSessions/{}"),
    ("droid", ".jsonl", ".factory/sessions/-home-ada-tides/{}"),
    ("dsh", ".jsonl", ".dsh/sessions/{}"),
    ("amp", ".json", ".local/share/amp/threads/{}"),
    ("mini-swe-agent", ".traj.json", ".config/mini-swe-agent/{}"),
    ("inspect", ".json", "inspect-logs/{}"),
    ("inspect", ".eval", "inspect-logs/{}"),
    ("aider", ".md", ".{}"),
    ("opencode", "opencode.db.sql", ".local/share/opencode/opencode.db"),
    ("goose", "sessions.db.sql", ".local/share/goose/sessions/sessions.db"),
    ("crush", "crush.db.sql", ".crush/crush.db"),
    ("cursor", "state.vscdb.sql", ".config/Cursor/User/globalStorage/state.vscdb"),
    ("zed", "threads.db.sql", ".local/share/zed/threads/threads.db"),
]
DIRECTORIES = [
    ("cline/1772442846000", ".cline/data/tasks/1772442846000"),
    ("openhands/tides", ".openhands/conversations/tides"),
    ("kimi/session_3f0c2d1e", ".kimi/sessions/w1/session_3f0c2d1e"),
]


def sha(content):
    return hashlib.sha256(content).hexdigest()


class Log:
    """A file that is changed, with every content that it had."""

    def __init__(self, path):
        self.path = path
        self.lines = open(path, "rb").read().splitlines(keepends=True)
        self.is_lines = path.endswith(".jsonl")
        self.stands = []  # [path, content, from, until]
        self.at_moments = {}  # path: the hashes of all contents
        self.begin(b"".join(self.lines))

    def begin(self, content):
        self.at_moments.setdefault(self.path, set()).add(sha(content))
        self.stands.append([self.path, content, time.monotonic(), None])

    def end(self):
        if self.stands and self.stands[-1][3] is None:
            self.stands[-1][3] = time.monotonic()

    def moment(self, content):
        self.at_moments.setdefault(self.path, set()).add(sha(content))

    def content(self):
        return b"".join(self.lines)


class Lost:
    def __init__(self, annal, seed):
        self.annal, self.random = annal, random.Random(seed)
        self.root = tempfile.mkdtemp(prefix="annal-lose-")
        self.home = os.path.join(self.root, "home")
        self.env = {"PATH": os.environ["PATH"], "HOME": self.home, "INSPECT_LOG_DIR": self.home + "/inspect-logs"}
        self.logs, self.files, self.databases, self.directories = [], [], [], []
        self.count, self.alive, self.kills, self.full = 0, [], 0, 0
        self.ended = False

    def run(self, *args, allowed=(0,)):
        done = subprocess.run([self.annal, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env)
        if done.returncode not in allowed:
            sys.exit("annal %s: status %d\n%s" % (" ".join(args), done.returncode, done.stderr.decode()))
        return done.stdout.decode()

    # ---- The home directory ----

    def place(self, source, place):
        target = os.path.join(self.home, place)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.exists(target) or os.path.getsize(source) == 0:
            return
        if source.endswith(".sql"):
            database = sqlite3.connect(target)
            database.executescript(open(source, encoding="utf-8").read())
            database.commit()
            database.close()
            self.databases.append(target)
        else:
            shutil.copyfile(source, target)
            self.files.append(target)

    def fill(self, folders):
        for folder in folders:
            for kind, end, place in PLACES:
                of_kind = os.path.join(folder, kind)
                for name in sorted(os.listdir(of_kind)) if os.path.isdir(of_kind) else []:
                    if name.endswith(end) and os.path.isfile(os.path.join(of_kind, name)):
                        shown = name[8:] if name.startswith("session-") and "session-{}" in place else name
                        self.place(os.path.join(of_kind, name), place.format(shown, stem=name[:-len(end)]))
            for name, place in DIRECTORIES:
                target = os.path.join(self.home, place)
                if os.path.isdir(os.path.join(folder, name)) and not os.path.exists(target):
                    shutil.copytree(os.path.join(folder, name), target)
                    self.directories.append(target)

    def copies(self):
        return [json.loads(line) for line in self.run("source", "ls", "--json").splitlines()]

    def check_import(self):
        begun = time.monotonic()
        self.run("import", allowed=(0, 1))
        took = time.monotonic() - begun
        known = {copy["path"] for copy in self.copies()}
        missing = [path for path in self.files + self.databases if path not in known]
        missing += [path for path in self.directories if not any(name.startswith(path) for name in known)]
        print("import: %d logs, %d databases, %d directories in %.1f s; not copied: %s"
              % (len(self.files), len(self.databases), len(self.directories), took, missing or "none"))
        return len(missing)

    # ---- The changes ----

    def more(self, log):
        self.count += 1
        line = self.random.choice(log.lines).rstrip()
        if line[-1:] == b"}":
            return line[:-1] + b',"lose_logs":%d}\n' % self.count
        return b'{"lose_logs":%d}\n' % self.count

    def shorten(self, log):
        """Other lines of the log; of a document, the same value with other spaces."""
        self.count += 1
        if not log.is_lines:
            return [log.content().rstrip() + b"\n" + b" " * (self.count % 4000) + b"\n"]
        first = log.lines[:KEPT_LINES]
        kept = [line for line in log.lines[KEPT_LINES:] if self.random.random() < 0.6]
        return first + kept[:400] + [self.more(log)]

    def append(self, log):
        lines = [self.more(log) for _ in range(self.random.randrange(1, 4))]
        with open(log.path, "ab", buffering=0) as file:
            file.write(b"".join(lines))
        log.lines += lines

    def cut(self, log):
        log.lines = log.lines[:max(KEPT_LINES, int(len(log.lines) * self.random.random()))]
        os.truncate(log.path, len(log.content()))

    def rewrite(self, log):
        before, lines = log.content(), self.shorten(log)
        after = b"".join(lines)
        log.moment(after + before[len(after):])
        with open(log.path, "r+b", buffering=0) as file:
            file.write(after)
            file.truncate()
        log.lines = lines

    def replace(self, log):
        log.lines = self.shorten(log)
        other = os.path.join(self.root, "other")
        with open(other, "wb") as file:
            file.write(log.content())
        os.rename(other, log.path)

    def move(self, log):
        self.count += 1
        top, name = os.path.split(log.path)
        stem, end = name.split(".", 1)
        moved = os.path.join(top, "%s-moved%d.%s" % (stem.split("-moved")[0], self.count, end))
        os.rename(log.path, moved)
        log.path = moved

    def delete(self, log):
        os.unlink(log.path)

    def change(self, log):
        gone = not os.path.exists(log.path)
        changes = [self.append] * 4 + [self.cut, self.rewrite, self.replace, self.move, self.delete]
        if not log.is_lines:
            changes = [self.rewrite, self.replace, self.replace, self.move, self.delete]
        if "/session-state/" in log.path:
            changes = [change for change in changes if change != self.move]
        log.end()
        change = self.replace if gone else self.random.choice(changes)
        change(log)
        if change != self.delete:
            log.begin(log.content())

    # ---- The watch, which is killed ----

    def start(self, *options, err=subprocess.DEVNULL):
        return subprocess.Popen([self.annal, "watch", *options], stdout=subprocess.DEVNULL, stderr=err, env=self.env)

    def fill_disk(self):
        """Let a watch run that finds no free space."""
        process = self.start("--keep-free", "1000000000")
        try:
            process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.full += 1

    def watch(self, kills):
        while True:
            last = self.kills >= kills
            if self.kills % 10 == 9:
                self.fill_disk()
            process = self.start(err=subprocess.PIPE)
            while True:
                line = process.stderr.readline()
                if line == b"" or b"following" in line:
                    break
            begun = time.monotonic()
            drain = threading.Thread(target=process.stderr.read)
            drain.start()
            if last:
                while not self.ended:
                    time.sleep(0.05)
                self.alive.append((begun, time.monotonic()))
                process.send_signal(signal.SIGTERM)
            else:
                time.sleep(self.random_kill.uniform(0.1, 1.5))
                self.alive.append((begun, time.monotonic()))
                process.kill()
                self.kills += 1
            process.wait()
            drain.join()
            if last:
                return

    def lose(self, kills):
        self.random_kill = random.Random(self.random.random())
        small = [path for path in self.files if os.path.getsize(path) <= BYTES_MAX]
        self.logs = [Log(path) for path in small if path.endswith((".json", ".jsonl"))]
        keeper = threading.Thread(target=self.watch, args=(kills,))
        keeper.start()
        changes = 0
        while self.kills < kills and keeper.is_alive():
            self.change(self.random.choice(self.logs))
            changes += 1
            time.sleep(self.random.uniform(0.02, 2 * PAUSE))
        time.sleep(3)
        for log in self.logs:
            log.end()
        self.ended = True
        keeper.join()
        print("changes: %d in %d logs; kills of the watch: %d; times without space: %d"
              % (changes, len(self.logs), self.kills, self.full))

    # ---- What is restored ----

    def restore(self, session, path, generation, to):
        self.run("source", "restore", session, "--log", path, "--generation", str(generation), "--to", to)

    def generations(self):
        """Restore every generation. Yield its path and its bytes."""
        to = os.path.join(self.root, "restored")
        changed = {path for log in self.logs for path in log.at_moments}
        done = set()
        for session in sorted({session for copy in self.copies() for session in copy["sessions"]}):
            for line in self.run("source", "generations", session, "--json").splitlines():
                copy = json.loads(line)
                key = (copy["path"], copy["sessions"][0], copy["generation"])
                if copy["path"] not in changed or key in done:
                    continue
                done.add(key)
                self.restore(session, copy["path"], copy["generation"], to)
                yield copy["path"], open(to, "rb").read()
                os.unlink(to)

    def stood(self, begun, ended):
        """The longest time for which a content stood while one watch ran."""
        return max(min(ended, until) - max(begun, since) for since, until in self.alive)

    def check_generations(self):
        kept, wrong, restored, missing, asked = {}, 0, 0, 0, 0
        moments = {}
        for log in self.logs:
            for path, hashes in log.at_moments.items():
                moments.setdefault(path, set()).update(hashes)
        for path, content in self.generations():
            restored += 1
            kept.setdefault(path, []).append(content)
            if sha(content) not in moments[path]:
                wrong += 1
                print("WRONG: %s, %d bytes: the log never had this content" % (path, len(content)))
        for log in self.logs:
            for path, content, begun, ended in log.stands:
                if self.stood(begun, ended) < STOOD:
                    continue
                asked += 1
                if not any(other.startswith(content) for other in kept.get(path, [])):
                    missing += 1
                    print("MISSING: %s, %d bytes, stood for %.0f ms"
                          % (path, len(content), 1000 * self.stood(begun, ended)))
        print("contents that stood for %.0f ms: %d, not restored: %d; generations restored: %d, wrong: %d"
              % (STOOD * 1000, asked, missing, restored, wrong))
        return missing + wrong

    def rows(self, path):
        database = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
        tables = [name for name, in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' "
                                                     "AND name NOT LIKE 'sqlite_%'")]
        found = {(name, repr(row)) for name in tables for row in database.execute('SELECT * FROM "%s"' % name)}
        database.close()
        return found

    def check_others(self):
        """Delete databases and directories, restore them, and compare."""
        faults = restored = 0
        copies = self.copies()
        for path in self.databases:
            before, to = self.rows(path), os.path.join(self.root, "restored.db")
            sessions = {session for copy in copies if copy["path"] == path for session in copy["sessions"]}
            faults += not sessions
            os.unlink(path)
            for session in sorted(sessions):
                self.run("source", "restore", session, "--log", path, "--to", to)
                rows = self.rows(to)
                restored += 1
                if not rows or rows - before:
                    faults += 1
                    print("WRONG: session %s of %s has rows that the database had not" % (session, path))
                os.unlink(to)
        for copy in copies:
            if not any(copy["path"].startswith(path) for path in self.directories) or not os.path.exists(copy["path"]):
                continue
            path, before = copy["path"], {}
            names = [os.path.join(top, name) for top, _, names in os.walk(path) for name in names] or [path]
            before = {name: open(name, "rb").read() for name in names}
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
            self.run("source", "restore", copy["sessions"][0], "--log", path)
            restored += 1
            after = {name: open(name, "rb").read() for name in names if os.path.exists(name)}
            lost = [name for name in after if after[name] != before[name]]
            if lost or not after:
                faults += 1
                print("WRONG: %s: %s" % (path, lost or "no file was restored"))
        print("sessions of databases, and directories, that were deleted: %d restored, %d wrong" % (restored, faults))
        return faults


def main():
    annal, kills, seed, folders = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    lost = Lost(annal, seed)
    try:
        lost.fill([os.path.abspath(folder) for folder in folders])
        faults = lost.check_import()
        lost.lose(kills)
        faults += lost.check_generations()
        faults += lost.check_others()
        lost.run("verify")
    finally:
        lost.ended = True
        if os.environ.get("KEEP") is None:
            shutil.rmtree(lost.root, ignore_errors=True)
    sys.exit(faults > 0)


main()
