"""extension.py EXTENSION ANNAL: the loadable extension in Python's sqlite3 and in the sqlite3 shell."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

EXTENSION, ANNAL = (os.path.abspath(path) for path in sys.argv[1:3])
SHELL = shutil.which("sqlite3")


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="annal-extension-")
        self.store = os.path.join(self.dir, "store")
        os.environ["ANNAL_STORE"] = self.store

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def annal(self, *words, stdin=""):
        done = subprocess.run([ANNAL, *words], input=stdin, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def append(self, session, *events):
        lines = (json.dumps({"type": type, "data": data}, separators=(",", ":")) for type, data in events)
        return self.annal("append", session, stdin="\n".join(lines) + "\n")

    def connect(self, name=":memory:", **options):
        db = sqlite3.connect(name, **options)
        db.enable_load_extension(True)
        db.load_extension(EXTENSION)
        self.addCleanup(db.close)
        return db

    def shell(self, sql, name=":memory:"):
        return subprocess.run([SHELL, name], input=f".load {EXTENSION}\n{sql}\n", capture_output=True, text=True)

    def fill(self, sessions=4, events=40):
        """Sessions with events of five types; each data says where it stands."""
        types = ["tool.called", "tool.returned", "message.added", "note.added", "turn.started"]
        for s in range(sessions):
            rows = ((types[(n * 7 + s) % 5], {"s": s, "n": n + 1}) for n in range(events))
            self.append(f"s{s}", *rows)


class Tables(Case):
    def test_events_has_every_event_with_its_payload(self):
        self.fill(3, 10)
        db = self.connect()
        self.assertEqual(db.execute("SELECT count(*), count(data), sum(data->>'n' = seq) FROM events").fetchone(),
                         (30, 30, 30))
        self.append("s0", ("note.added", {"n": 11}))
        self.assertEqual(db.execute("SELECT max(seq) FROM events WHERE session_id = 's0'").fetchone(), (11,))

    def test_the_shell_gives_the_same(self):
        self.fill(2, 5)
        for name in ":memory:", os.path.join(self.store, "sessions.db"):
            done = self.shell("SELECT session_id, seq, data FROM events WHERE seq = 5 ORDER BY session_id;", name)
            self.assertEqual((done.stderr, done.stdout),
                             ("", 's0|5|{"s":0,"n":5}\ns1|5|{"s":1,"n":5}\n'))

    def test_the_store_is_that_of_the_main_database_else_the_default(self):
        self.fill(1, 3)
        self.annal("reindex")
        os.environ["ANNAL_STORE"] = os.path.join(self.dir, "other")
        self.append("t", ("note.added", {}))
        main = os.path.join(self.store, "sessions.db")
        self.assertEqual(self.connect(main).execute("SELECT count(*) FROM events").fetchone(), (3,))
        self.assertEqual(self.connect().execute("SELECT count(*) FROM events").fetchone(), (1,))
        del os.environ["ANNAL_STORE"]
        os.environ["XDG_DATA_HOME"] = os.path.join(self.dir, "data")
        self.addCleanup(os.environ.pop, "XDG_DATA_HOME")
        self.append("u", ("note.added", {}), ("note.added", {}))
        self.assertEqual(self.connect().execute("SELECT count(*) FROM events").fetchone(), (2,))

    def test_any_store_by_name(self):
        self.fill(1, 3)
        db = self.connect()
        db.execute(f"CREATE VIRTUAL TABLE temp.x USING annal_events('{self.store}')")
        self.assertEqual(db.execute("SELECT count(data) FROM x").fetchone(), (3,))
        db.execute("DROP TABLE x")
        for wrong, why in (("", "takes the directory"), ("'/nowhere/it''s'", "no store at /nowhere/it's")):
            with self.assertRaisesRegex(sqlite3.OperationalError, why):
                db.execute(f"CREATE VIRTUAL TABLE temp.x USING annal_events({wrong})")

    def test_a_missing_store_is_said(self):
        with self.assertRaisesRegex(sqlite3.OperationalError, "there is no store at"):
            self.connect().execute("SELECT * FROM events")


class Questions(Case):
    """Whatever is asked, events answers like a plain table with the same rows."""

    def constraint(self, rnd):
        texts = {"session_id": ["s0", "s1", "s2", "s3", "07", "S1", 7, 7.0, None, b"s1", ""],
                 "type": ["tool.called", "note.added", "message.added", "TOOL.CALLED", "zzz", 5, None],
                 "timestamp": [*rnd.choices(self.times, k=4), "2026", None, 2026, "9999"]}
        column = rnd.choice(["session_id", "type", "timestamp", "seq", "seq"])
        values = texts.get(column, [0, 1, 5, 12, 40, 41, -1, "5", "x", 5.0, 5.5, None, b"5", 2**63 - 1, "12 "])
        kind = rnd.randrange(9)
        if kind == 0:
            picked = rnd.choices(values, k=rnd.randrange(0, 6))
            self.values += picked
            return f"{column} IN ({', '.join('?' * len(picked))})"
        if kind == 1:
            self.values += [rnd.choice(values), rnd.choice(values)]
            return f"{column} BETWEEN ? AND ?"
        if kind == 2:
            self.values.append(rnd.choice(["tool.*", "*.added", "s[0-2]", "*", "2026*", "", "TOOL.*", "5"]))
            return f"{column} GLOB ?"
        if kind == 3:
            self.values.append(rnd.choice(["tool.%", "TOOL%", "%added", "s_", "%", "1%", ""]))
            return f"{column} {rnd.choice(['', 'NOT '])}LIKE ?"
        if kind == 4:
            return f"{column} IN (SELECT {rnd.choice(['a', 'b', 'c'])} FROM others)"
        if kind == 5:
            return rnd.choice([f"{column} IS NULL", f"{column} IS NOT NULL", "data->>'n' % 3 = 1", "id IS NULL"])
        if kind == 6:
            literal = rnd.choice(values)
            literal = "NULL" if literal is None else "x'35'" if isinstance(literal, bytes) else repr(literal)
            return f"{column} {rnd.choice(['=', '<', '>=', '!='])} {literal}"
        self.values.append(rnd.choice(values))
        collate = rnd.choice(["", "", "", " COLLATE NOCASE"])
        return f"{column} {rnd.choice(['=', '=', '<', '<=', '>', '>=', 'IS'])} ?{collate}"

    def question(self, rnd):
        self.values = []
        terms = [self.constraint(rnd) for _ in range(rnd.randrange(0, 5))]
        where = "".join(term + (rnd.choice([" AND ", " AND ", " OR "]) if i + 1 < len(terms) else "")
                        for i, term in enumerate(terms)) or "1"
        order = rnd.sample(["session_id", "seq", "timestamp", "type"], 4)
        order = ", ".join(c + rnd.choice(["", " DESC"]) for c in order[: rnd.randrange(1, 5)])
        order += ", session_id, seq"
        limit = rnd.choice(["", "", " LIMIT 3", " LIMIT 5 OFFSET 4", " LIMIT -1 OFFSET 2", " LIMIT 0"])
        columns = rnd.choice(["session_id, seq", "*", "data, seq, session_id", "type, timestamp, session_id, seq"])
        if rnd.randrange(6) == 0:
            return f"SELECT type, count(*), min(data) FROM {{0}} WHERE {where} GROUP BY type ORDER BY type DESC{limit}"
        if rnd.randrange(8) == 0:
            return f"SELECT DISTINCT session_id, type FROM {{0}} WHERE {where} ORDER BY type, session_id{limit}"
        if rnd.randrange(6) == 0:
            on = rnd.choice(["o.a = e.session_id", "o.b = e.seq", "o.c = e.session_id", "o.b = e.session_id",
                             "o.a = e.seq", "o.c = e.seq"])
            return (f"SELECT o.*, e.session_id, e.seq, e.data FROM others AS o {rnd.choice(['', 'LEFT '])}JOIN {{0}} AS e "
                    f"ON {on} ORDER BY o.rowid, e.session_id, e.seq{limit}")
        return f"SELECT {columns} FROM {{0}} WHERE {where} ORDER BY {order}{limit}"

    def test_events_answers_like_a_plain_table(self):
        self.fill()
        self.append("07", ("note.added", {"n": 1}), ("tool.called", {"n": 2}))
        seed = random.randrange(1 << 30)
        rnd = random.Random(seed)
        db = self.connect()
        db.execute("CREATE TABLE plain AS SELECT * FROM events")
        db.execute("CREATE TABLE typed (session_id TEXT, seq INTEGER, timestamp TEXT, type TEXT, id TEXT, data TEXT)")
        db.execute("INSERT INTO typed SELECT * FROM plain")
        db.execute("CREATE TABLE others (a TEXT, b INTEGER, c)")
        db.executemany("INSERT INTO others VALUES (?, ?, ?)",
                       [("s1", 7, "5"), ("5", 5, "s2"), ("note.added", 1, 7), ("07", 40, 7.0), (None, None, b"s1")])
        self.times = [row[0] for row in db.execute("SELECT timestamp FROM plain")]
        for _ in range(1500):
            sql = self.question(rnd)
            values = self.values if "?" in sql else []
            got = db.execute(sql.format("events"), values).fetchall()
            plain = db.execute(sql.format("typed"), values).fetchall()
            self.assertEqual(got, plain, f"seed {seed}: {sql} {values}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
