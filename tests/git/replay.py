#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""replay.py ANNAL COUNT KIND=PATH...: annal blame and annal log name the sessions that wrote the lines of a repository.

Up to COUNT edits of the logs are replayed, in the order of their times, into a new repository, each as a commit. The
text that a file had before an edit is a commit without a session. For each line that git blame gives to the commit of
an edit, annal blame must name the event of that edit, or no event: of the edits with lines in the last commit, at least
95 % must be named by most of their lines, and no line may have a wrong session. annal log must give each commit its
session.
"""
import json, os, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "handoff"))
from roundtrip import run


def pick(item, *names):
    return next((item[name] for name in names if isinstance(item.get(name), str)), None)


def hunks(patch):
    """The hunks of a patch of Codex: path, old lines, new lines; old is None for a new file."""
    path, old, new, adds = None, [], [], False
    for line in patch.split("\n") + ["*** End"]:
        if line.startswith(("*** ", "@@")):
            if path and (old or new):
                yield path, None if adds else "\n".join(old) + "\n", "\n".join(new) + "\n"
            old, new = [], []
            for word, is_new in (("*** Update File: ", False), ("*** Add File: ", True)):
                if line.startswith(word):
                    path, adds = line[len(word):], is_new
            if line.startswith(("*** Delete File: ", "*** End")):
                path = None
        elif line[:1] in ("+", " ", "-", ""):
            new += [line[1:]] if line[:1] != "-" else []
            old += [line[1:]] if line[:1] != "+" else []


def edits_of(call):
    """The changes of a call: path, old text (None: the whole file), new text."""
    given = call["data"].get("input")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            pass
    if isinstance(given, str):
        return list(hunks(given)) if "*** Begin Patch" in given else []
    if not isinstance(given, dict):
        return []
    path = pick(given, "file_path", "path", "filePath")
    found = []
    for item in given["edits"] if isinstance(given.get("edits"), list) else [given]:
        old, new = pick(item, "old_string", "oldText"), pick(item, "new_string", "newText")
        content = pick(item, "content", "file_text")
        if path and new is not None and old:
            found.append((path, old, new))
        elif path and content is not None and old is None and call["data"]["tool"].lower().startswith("write"):
            found.append((path, None, content))
    for text in given.values() if not found else []:
        if isinstance(text, str) and "*** Begin Patch" in text:
            found += hunks(text[text.index("*** Begin Patch"):])
    return found


def git(repository, *words, **more):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
           "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
    return subprocess.run(["git", "-C", repository, *words], check=True, env=env, stdout=subprocess.PIPE, **more).stdout.decode()


def commit(repository, path, text, message):
    place = os.path.join(repository, path)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "w", newline="", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)
    git(repository, "add", "-f", "--", path)
    git(repository, "commit", "-q", "--allow-empty", "-m", message)
    return git(repository, "rev-parse", "HEAD").strip()


def replay(repository, calls):
    """Replay the edits; return the call of each commit."""
    texts, made = {}, {}
    for call in calls:
        for path, old, new in edits_of(call):
            path = os.path.normpath(path.lstrip("/"))
            if path.startswith("..") or "\0" in path + new:
                continue
            text = texts.get(path, "")
            if old is not None and old not in text:
                text += ("\n" if text and not text.endswith("\n") else "") + old
                commit(repository, path, text, "before")
            text = new if old is None else text.replace(old, new, 1)
            if text != texts.get(path):
                texts[path] = text
                made[commit(repository, path, text, "edit")] = call
    return made, texts


def refuses(annal, store, repository):
    """Missing files, lines of no session, and wrong ranges are refused, and no option reaches git."""
    with open(os.path.join(repository, "own"), "w") as file:
        file.write("a line that no session wrote\n")
    for words in (["blame", "own"], ["blame", "gone"], ["blame", "own:1-2"], ["log", "--git", "gone..HEAD"], ["log", "--git=--output=made"]):
        status = subprocess.run([annal, *words, "--store", store], cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode
        if status != 1 or os.path.exists(os.path.join(repository, "made")):
            print("annal %s: exit status %d" % (" ".join(words), status))
            return False
    return True


def main():
    annal, most = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    os.environ["GIT_CONFIG_GLOBAL"] = "/dev/null"
    with tempfile.TemporaryDirectory() as room:
        store, repository = os.path.join(room, "store"), os.path.join(room, "repository")
        for arg in sys.argv[3:]:
            run(annal, store, "import", *arg.split("=", 1))
        rows = run(annal, store, "sql", "--json", "SELECT e.session_id, e.seq, e.timestamp, e.data FROM events e JOIN tool_calls t "
                   "USING (session_id, seq) WHERE e.type = 'tool.called' AND t.status <> 'failed' ORDER BY e.timestamp, e.session_id, e.seq")
        calls = [json.loads(row) for row in rows.splitlines()]
        for call in calls:
            call["data"] = json.loads(call["data"]) if isinstance(call["data"], str) else call["data"]
        calls = [call for call in calls if isinstance(call["data"], dict) and edits_of(call)][:most]
        git(room, "init", "-q", repository)
        if not refuses(annal, store, repository):
            return 1
        made, texts = replay(repository, calls)
        lines = {"right": 0, "other event": 0, "other session": 0, "none": 0}
        votes, strays = {}, []
        for path in texts:
            blame = git(repository, "blame", "-l", "-s", "--", path).splitlines()
            done = subprocess.run([annal, "blame", os.path.join(repository, path), "--json", "--store", store], stdout=subprocess.PIPE)
            said = {}
            for row in map(json.loads, done.stdout.decode().splitlines()):
                for n in range(row["first_line"], row["last_line"] + 1):
                    said[n] = row
            for n, line in enumerate(blame, 1):
                call = made.get(line[:40].lstrip("^")) or made.get(line.split()[0].lstrip("^"))
                row = said.get(n)
                if call is None:
                    if row is not None and len(line.split(") ", 1)[-1].strip()) > 4:
                        lines["not of an edit"] = lines.get("not of an edit", 0) + 1
                        if os.environ.get("VERBOSE") == "2":
                            strays.append("%s:%d before, said %s:%d: %s" % (path, n, row["session_id"], row["seq"], line[-80:]))
                    continue
                what = "none" if row is None else "right" if (row["session_id"], row["seq"]) == (call["session_id"], call["seq"]) \
                    else "other event" if row["session_id"] == call["session_id"] else "other session"
                lines[what] += 1
                vote = votes.setdefault((call["session_id"], call["seq"]), {})
                vote[what] = vote.get(what, 0) + 1
                if what.startswith("other"):
                    strays.append("%s:%d %s: %s" % (path, n, what, line[-80:]))
        named = sum(1 for vote in votes.values() if vote.get("right", 0) > sum(n for what, n in vote.items() if what.startswith("other")))
        unknown = sum(1 for vote in votes.values() if set(vote) == {"none"})
        log = subprocess.run([annal, "log", "--git", "HEAD", "--json", "--store", store], cwd=repository, stdout=subprocess.PIPE).stdout.decode()
        commits = {"right": 0, "other": 0, "none": 0}
        for row in map(json.loads, log.splitlines()):
            call = made.get(row["commit"])
            if call is not None and row["of_lines"] > 0:
                commits["none" if row["session_id"] is None else "right" if row["session_id"] == call["session_id"] else "other"] += 1
        print("%d edits, %d commits, %d files; %d edits have lines left: %d named (%.1f %%), %d by no line" % (
            len(calls), len(made), len(texts), len(votes), named, 100.0 * named / len(votes), unknown))
        print("lines: %s; commits of annal log: %s" % (lines, commits))
        if os.environ.get("VERBOSE"):
            print("\n".join(strays))
        if named < 0.95 * len(votes) or lines["other session"] > 0 or commits["other"] > 0 or commits["right"] < 0.95 * sum(commits.values()):
            print("\n".join(strays[:20]))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
