#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""roundtrip.py ANNAL [--keep DIR] KIND=PATH...: a session that annal handoff wrote is the session in the store.

Each log is imported; each of its sessions is written for each agent, imported again into another store, and compared
with the first: texts, images, calls, results, and their order. Both are read from `annal export`, without the SELECTs
of the handoff. The things that a target cannot carry are counted here, too; the command must say the same numbers.
"""
import hashlib, json, os, subprocess, sys, tempfile

TARGETS = {"claude-code", "codex", "gemini-cli", "opencode", "pi"}
NO_THOUGHTS = {"claude-code", "codex"}
NO_FAILURES = {"codex"}
THOUGHTS = ("thinking", "reasoning", "redacted_thinking", "thought")


def run(annal, store, *args, status=0, env=None):
    done = subprocess.run([annal, *args, "--store", store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    if done.returncode not in (status, 1 if args[0] == "import" else status):
        sys.exit("%s: status %d\n%s" % (" ".join(args), done.returncode, done.stderr.decode()))
    return done.stdout.decode("utf-8", "replace")


def block_text(block):
    if isinstance(block, str):
        return block
    for name in ("text", "thinking"):
        if isinstance(block.get(name), str):
            return block[name]
    summary = block.get("summary")
    return summary[0].get("text") if isinstance(summary, list) and summary else None


def image_bytes(block):
    source, inline = block.get("source"), block.get("inlineData")
    url = block.get("image_url") or block.get("url") or ""
    return (source or {}).get("data") or (inline or {}).get("data") or block.get("data") \
        or (url.split(";base64,", 1)[1] if ";base64," in url else None)


def as_input(given):
    if isinstance(given, str):
        try:
            parsed = json.loads(given)
        except ValueError:
            parsed = None
        given = parsed if isinstance(parsed, dict) else {"input": given}
    return json.dumps({} if given is None else given if isinstance(given, dict) else {"input": given}, sort_keys=True)


def canonical(text):
    """A text that is a JSON object may be written with other spaces."""
    try:
        return json.dumps(json.loads(text), sort_keys=True) if text[:1] == "{" else text
    except ValueError:
        return text


def as_output(given):
    if given is None or isinstance(given, str):
        return canonical(given or "")
    if isinstance(given, dict):
        return json.dumps(given, sort_keys=True)
    texts = []
    for block in given:
        response = block.get("functionResponse", {}).get("response") if isinstance(block, dict) else None
        if response is not None:
            text = response.get("output", response.get("error"))
            text = text if isinstance(text, str) else json.dumps(response, sort_keys=True)
        else:
            text = block_text(block)
        texts += [text] if text is not None else []
    return canonical("\n".join(texts))


def conversation(annal, store, session):
    """The items of a session in order, and what is not among them."""
    events = [json.loads(line) for line in run(annal, store, "export", session, "--raw").splitlines()]
    back = {}
    for event in events:
        turn = event["data"].get("turn_id") if isinstance(event["data"], dict) else None
        if event["type"] in ("turn.rolled_back", "turn.abandoned"):
            back[turn] = True
        elif event["type"] == "turn.restored":
            back[turn] = False
    items, calls, early = [], {}, {}
    left = {"instructions": 0, "orphans": 0, "thoughts": 0, "hidden": 0, "back": 0, "failures": 0, "open": 0, "other": 0}
    for event in events:
        data, kind = event["data"], event["type"]
        gone = isinstance(data, dict) and back.get(data.get("turn_id"), False)
        if gone and kind in ("message.added", "tool.returned", "tool.failed"):
            left["back"] += 1
        if kind == "message.added" and not gone:
            if data["role"] in ("system", "developer"):
                left["instructions"] += 1
                continue
            who = "assistant" if data["role"] == "assistant" else "user"
            content = data["content"] if isinstance(data["content"], list) else [data["content"]]
            for block in content:
                text = block_text(block)
                name = block.get("type", "") if isinstance(block, dict) else ""
                if isinstance(block, dict) and ("functionCall" in block or "functionResponse" in block):
                    continue
                if name in THOUGHTS:
                    left["thoughts" if text and text.strip() else "hidden"] += 1
                elif isinstance(block, dict) and image_bytes(block) and who == "user":
                    items.append([who, "image", hashlib.sha256(image_bytes(block).encode()).hexdigest()])
                elif text is None:
                    left["other"] += 1
                elif text.strip(" \t\r\n"):
                    items.append([who, "text", text])
        elif kind == "tool.called" and not gone:
            name = data.get("tool") or "unknown"
            for sign in ".:/ ":
                name = name.replace(sign, "_")
            item = ["call", name, as_input(data.get("input")), early.pop(data["call_id"], None)]
            items.append(item)
            calls[data["call_id"]] = item
        elif kind in ("tool.returned", "tool.failed") and not gone:
            failed = kind == "tool.failed" or data.get("success") is False
            result = [as_output(data.get("output")), failed]
            call = calls.get(data["call_id"])
            if call is None:
                early[data["call_id"]] = result
            elif call[3] is None:
                call[3] = result
            else:
                left["orphans"] += 1
    left["orphans"] += len(early)
    for item in items:
        if item[0] == "call" and item[3] is not None:
            left["failures"] += item[3][1]
        elif item[0] == "call":
            left["open"] += 1
    return items, left


def plain(items, target):
    return [[*i[:3], i[3] and i[3][0]] if i[0] == "call" and target in NO_FAILURES else i for i in items]


def say_difference(first, second):
    for i, (one, other) in enumerate(zip(first, second)):
        if one != other:
            return "item %d: %.300r is %.300r" % (i, one, other)
    return "%d items became %d" % (len(first), len(second))


def check_left(left, said, target):
    """Compare the counts of the command with the counts made here."""
    names = {"instructions of the program": "instructions", "results without a call": "orphans", "thoughts": "thoughts",
             "thoughts that only their provider can read": "hidden", "blocks other than texts, thoughts and images": "other",
             "marks that a call failed; the texts of the results stay": "failures",
             "messages and results of turns that were taken back": "back"}
    counts = {entry["what"]: entry["n"] for entry in said}
    for what, name in names.items():
        if name == "thoughts" and target not in NO_THOUGHTS or name == "failures" and target not in NO_FAILURES:
            continue
        if counts.get(what, 0) != left[name]:
            return "says %d %s, found %d" % (counts.get(what, 0), what, left[name])
    return None


def refusals(annal, room):
    """A refused handoff writes nothing; a target may be a file of the user."""
    store, home = os.path.join(room, "store"), os.path.join(room, "home")
    os.makedirs(home)
    env = {**os.environ, "HOME": home, "CODEX_HOME": os.path.join(room, "codex")}
    env.pop("CLAUDE_CONFIG_DIR", None)
    for name, text in (("none", '{"type":"note","data":{}}'), ("one", '{"type":"message.added","data":{"id":"1","role":"user","content":"hi"}}')):
        subprocess.run([annal, "append", name, "--store", store], input=text.encode(), check=True, stdout=subprocess.PIPE)
    taken, own, bad = (os.path.join(room, name) for name in ("taken", "own.sql", "bad.sql"))
    for path, text in ((taken, "mine"), (bad, "x AS (SELECT 1) SELECT 1"), (own, "-- base: ~/.mine\n"
                       "x AS (SELECT 1) SELECT 'path' AS what, -1 AS n, base || id || '.txt' AS text FROM task UNION ALL "
                       "SELECT 'resume', 0, cd || 'mine ' || id FROM task UNION ALL "
                       "SELECT 'line', i, text FROM conversation ORDER BY n")):
        with open(path, "w") as file:
            file.write(text)
    run(annal, store, "handoff", "none", "--to", "pi", status=1, env=env)
    run(annal, store, "handoff", "gone", "--to", "pi", status=1, env=env)
    run(annal, store, "handoff", "one", "--to", "nobody", status=2, env=env)
    run(annal, store, "handoff", "one", "--to", bad, status=1, env=env)
    run(annal, store, "handoff", "one", "--to", "pi", "--to-path", taken, status=1, env=env)
    run(annal, store, "handoff", "one", "--to", "pi", "--directory", os.path.join(room, "gone"), status=1, env=env)
    if open(taken).read() != "mine" or os.listdir(home):
        return "a refused handoff wrote something"
    said = json.loads(run(annal, store, "handoff", "one", "--to", own, "--directory", room, "--json", env=env))
    if said["path"] != "%s/.mine/%s.txt" % (home, said["session_id"]) or open(said["path"]).read() != '"hi"\n' \
            or os.stat(said["path"]).st_mode & 0o77 or said["resume"] != "cd '%s' && mine %s" % (room, said["session_id"]):
        return "a target of the user: %r" % said
    said = json.loads(run(annal, store, "handoff", "one", "--to", "codex", "--json", env=env))
    if not said["path"].startswith(room + "/codex/sessions/"):
        return "CODEX_HOME: %r" % said
    os.makedirs(home + "/.gemini")
    with open(home + "/.gemini/projects.json", "w") as file:
        json.dump({"projects": {room: "my-room"}}, file)
    said = json.loads(run(annal, store, "handoff", "one", "--to", "gemini-cli", "--directory", room, "--json", env=env))
    return None if said["path"].startswith(home + "/.gemini/tmp/my-room/chats/session-") else "projects.json: %r" % said


def main():
    annal = os.path.abspath(sys.argv[1])
    args = sys.argv[2:]
    keep = args.pop(1) if args[0] == "--keep" else None
    args = args[1:] if keep else args
    faults, pairs, count, items_all, open_all, carried = 0, set(), 0, 0, 0, {}
    with tempfile.TemporaryDirectory() as room:
        room = os.path.realpath(keep or room)
        os.makedirs(room + "/refusals", exist_ok=True)
        fault = refusals(annal, room + "/refusals")
        if fault:
            sys.exit(fault)
        for n, arg in enumerate(args):
            kind, path = arg.split("=", 1)
            store = os.path.join(room, "from%d" % n)
            run(annal, store, "import", kind, path)
            ids = [json.loads(line)["id"] for line in run(annal, store, "sql", "--json", "SELECT id FROM sessions ORDER BY id").splitlines()]
            for session in ids:
                items, left = conversation(annal, store, session)
                if not items:
                    continue
                items_all += len(items)
                open_all += left["open"]
                for target in sorted(TARGETS):
                    to = os.path.join(room, "%s-%d-%s.%s" % (target, n, session, "json" if target == "opencode" else "jsonl"))
                    said = json.loads(run(annal, store, "handoff", session, "--to", target, "--to-path", to, "--directory", room, "--json"))
                    again = os.path.join(room, "to-%s-%d-%s" % (target, n, session))
                    run(annal, again, "import", target, to)
                    back, _ = conversation(annal, again, said["session_id"])
                    fault = check_left(left, said["left_out"], target)
                    if plain(items, target) != plain(back, target):
                        fault = say_difference(plain(items, target), plain(back, target))
                    if fault:
                        print("%s, session %s, to %s: %s" % (path, session, target, fault))
                        faults += 1
                    pairs.add((kind, target))
                    count += 1
                    for entry in said["left_out"]:
                        carried[entry["what"]] = carried.get(entry["what"], 0) + entry["n"]
    print("%d handoffs, %d pairs of kinds, %d items, %d calls without a result: %d differ" % (count, len(pairs), items_all, open_all, faults))
    for what in sorted(carried):
        print("  left out: %d %s" % (carried[what], what))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
