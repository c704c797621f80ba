#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""golden.py COMMAND DATA [--write]

Imports the logs of each kind below DATA, and the events of golden.jsonl, and exports every session in each format of
text. Each export has the SHA-256 that golden.txt lists; --write writes that list.
"""
import concurrent.futures, hashlib, os, pathlib, re, shutil, sqlite3, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).parent
SELECTS = sorted(path.stem for path in (HERE.parents[2] / "tools/export").glob("*.sql"))
FORMATS = {"markdown": [], "otlp": [], **{name: ["--tree"] for name in SELECTS}}
MORE = {**FORMATS, "full": ["--full"], "html": []}  # of golden.jsonl


def run(*words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def copy(data, kind, to):
    """The logs of a kind, all of the same time, and databases made from their SQL."""
    shutil.copytree(data / kind, to / kind)
    for path in sorted((to / kind).rglob("*")):
        if path.name.endswith(".sql"):
            database = sqlite3.connect(path.with_suffix(""))
            database.executescript(path.read_text())
            database.close()
            path.unlink()
    for path in (to / kind).rglob("*"):
        os.utime(path, (1772445600, 1772445600))


def exported(words, ids, what):
    """What a command prints for sessions. If it is not UTF-8, the message names the session."""
    out = run(*words, *ids).stdout
    try:
        return out.decode()
    except UnicodeDecodeError as error:
        if len(ids) > 1:
            for session in ids:
                exported(words, [session], what)
        sys.exit(f"{what}, session {' '.join(ids)}: {error}: {out[max(0, error.start - 60):error.end]}")


def normal(text, directory, name):
    """An export without what differs from run to run: the directory, the host, the time and the version."""
    text = text.replace(str(directory), "DIR").replace(os.uname().nodename, "HOST")
    text = re.sub(r'(started_at"?: ?)[0-9.]+', r"\1NOW", text)
    text = re.sub(r'("name":"annal","version":)"[^"]*"', r"\1VERSION", text)
    text = re.sub(r"(source|path)\.[0-9a-f]{16}", r"\1.ID", text)  # hashes of a path
    if name == "html":
        text = "".join(re.findall(r"<script type=\"application/(?:json|x-ndjson)\".*?</script>", text, re.S))
        text = re.sub(r'"annal":"[^"]*","made_at":"[^"]*"', "", text)
    return text


def exports(command, directory, store, formats):
    """Each export of a store: its name and its text."""
    kind = store.rpartition(".")[2]
    select = "SELECT id FROM sessions ORDER BY id"
    ids = run(command, "sql", select, "--store", store, "--format", "csv").stdout.decode().splitlines()[1:]
    for name, options in formats.items():
        words = [command, "export", "--store", store, "--format", "markdown" if name == "full" else name, *options]
        if name == "html":
            for session in ids[:1]:
                yield f"{name} {session}", normal(exported(words, [session], f"{kind}: {name}"), directory, name)
        else:
            yield name, normal(exported(words, ids, f"{kind}: {name}"), directory, name)


def at(command, directory, store, session, last):
    for seq in range(1, last, 7):
        for name in ("markdown", "otlp"):
            words = [command, "export", "--store", store, "--format", name, "--at", str(seq)]
            yield f"{name} {session} to {seq}", normal(exported(words, [session], f"golden: {name}"), directory, name)


def imported(command, data, directory, kind):
    store = str(directory / ("store." + kind))
    copy(data, kind, directory)
    run(command, "import", "auto", str(directory / kind), "--store", store)
    return [(kind, *each) for each in exports(command, directory, store, FORMATS)]


def appended(command, directory):
    store = str(directory / "store.golden")
    sessions = {}
    for line in (HERE / "golden.jsonl").read_text().splitlines():
        session, event = line.split(" ", 1)
        sessions[session] = sessions.get(session, "") + event + "\n"
    for session, events in sessions.items():
        subprocess.run([command, "append", session, "--store", store], input=events.encode(), check=True,
                       stdout=subprocess.DEVNULL)
        for each in at(command, directory, store, session, events.count("\n")):
            yield ("golden", *each)
    for each in exports(command, directory, store, MORE):
        yield ("golden", *each)


def main():
    command, data = sys.argv[1], pathlib.Path(sys.argv[2])
    directory = pathlib.Path(tempfile.mkdtemp())
    kinds = sorted(path.name for path in data.iterdir() if path.name not in ("copies", "recall"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        lines = sum(pool.map(lambda kind: imported(command, data, directory, kind), kinds), [])
    lines += appended(command, directory)
    shutil.rmtree(directory)
    listed = "".join(f"{hashlib.sha256(text.encode()).hexdigest()} {kind} {name} {len(text.encode())}\n"
                     for kind, name, text in lines)
    if "--texts" in sys.argv:  # to compare two commands by hand
        to = pathlib.Path(sys.argv[-1])
        to.mkdir()
        for kind, name, text in lines:
            (to / f"{kind} {name}".replace("/", "_")).write_text(text)
    if "--write" in sys.argv:
        (HERE / "golden.txt").write_text(listed)
    wanted, made = (HERE / "golden.txt").read_text().splitlines(), listed.splitlines()
    wrong = [line for line in made if line not in wanted] + [line for line in wanted if line not in made]
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(f"{len(wrong)} lines differ: golden.py COMMAND DATA --texts DIRECTORY writes the exports" if wrong else 0)


main()
