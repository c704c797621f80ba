#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutate.py [--check] [--list] [--jobs N] [--part I/N] [NAME…]: check that the tests notice mistakes in the product.

Each mutation of mutations.txt is one small mistake: a sync that is left out, a field that is one off, a check that is
skipped, a lock that is not taken, a status that is lost. The script makes the mistake in a copy of the tree in
build/mutate/tree, builds the test programs, and runs the suites of the mutation until one fails. The exit status is 1
if none does.

Only a part of tests/check_long.sh finds a mutation with `long: PART` instead of `short: SUITES`: the output names it,
and --long runs the part in the copy. --check only checks that each mutation still fits the tree: CTest runs that.
CCACHE and TMPDIR are taken from the environment; without TMPDIR the stores of the tests are in /dev/shm, where syncs
cost nothing.
"""
import argparse, os, re, signal, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TREE = os.path.join(ROOT, "build", "mutate", "tree")
KINDS = ("sync", "format", "check", "lock", "status")
SCRIPTS = {"serve": "annal_command"}  # suites that are not C programs, and what they run
FILES = {"commands": "commands", "cases": "pack_cases"}  # folders whose files are suites, and how CTest names them
HANGS_AFTER = 300  # seconds: no suite in the list takes a tenth of it


class Misfit(Exception):
    """A mutation whose lines the tree does not have."""


def fail(text):
    sys.exit(f"mutate.py: {text}")


# ---- The list ----


def read_mutations():
    """[{name, kind, file, short or long, hunks: [[old, new]]}]: the head of mutations.txt has the form."""
    found = []
    for block in re.split(r"^== ", open(os.path.join(HERE, "mutations.txt")).read(), flags=re.M)[1:]:
        lines = block.split("\n")
        mutation = {"name": lines[0].strip(), "hunks": []}
        hunks = mutation["hunks"]
        for line in lines[1:]:
            if line.startswith("-"):
                if not hunks or hunks[-1][1]:  # after lines that begin with +
                    hunks.append(["", ""])
                hunks[-1][0] += line[1:] + "\n"
            elif line.startswith("+") and hunks:
                hunks[-1][1] += line[1:] + "\n"
            elif ": " in line:
                key, value = line.split(": ", 1)
                mutation[key] = value.strip()
            elif line.strip() and not line.startswith("#"):
                fail(f"{mutation['name']}: what is '{line}'?")
        found.append(mutation)
    names = [mutation["name"] for mutation in found]
    for name in names:
        if names.count(name) > 1:
            fail(f"two mutations have the name '{name}'")
    return found


def mutated(mutation, root):
    """The text of the mutation's file, with the mistake."""
    name = mutation["name"]
    if mutation.get("kind") not in KINDS or ("short" in mutation) == ("long" in mutation) or not mutation["hunks"]:
        fail(f"{name}: it needs a kind ({', '.join(KINDS)}), either short: or long:, and lines that are changed")
    text = open(os.path.join(root, mutation["file"])).read()
    for old, new in mutation["hunks"]:
        if text.count(old) != 1:
            raise Misfit(f"{name}: {mutation['file']} has these lines {text.count(old)} times and not once; write them as they are today:\n{old}")
        text = text.replace(old, new)
    return text


def suites_of(mutations):
    return sorted({suite for mutation in mutations for suite in mutation.get("short", "").split()})


def known_suites():
    """The names of all suites, read from the source; CTest knows them only after a configuration."""
    names = set()
    for folder, _, files in os.walk(os.path.join(ROOT, "tests")):
        for name in files:
            if match := re.fullmatch(r"test_([a-z0-9_]+)\.c", name):
                program = os.path.relpath(folder, os.path.join(ROOT, "tests")).split(os.sep)[0]
                names.add(f"{program}.{match.group(1)}")
            elif name.endswith(".test"):
                names.add(f"{FILES.get(os.path.basename(folder))}.{name[:-5]}")
    return names


def check(mutations):
    known, misfits = known_suites(), []
    for mutation in mutations:
        try:
            mutated(mutation, ROOT)
        except Misfit as why:
            misfits.append(str(why))
        for suite in mutation.get("short", "").split():
            program, _, name = suite.partition(".")
            if program in ("power", "faults"):
                program = "crash"
            if suite not in SCRIPTS and not suite.startswith("power.quick_") and f"{program}.{name}" not in known:
                misfits.append(f"{mutation['name']}: there is no suite '{suite}'\n")
    if misfits:
        fail("\n".join(misfits))


# ---- The copy of the tree ----


def run(words, **more):
    """Everything in a session of its own, so that what hangs ends with all that it started."""
    process = subprocess.Popen(words, cwd=TREE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True, env={**os.environ, **more.pop("env", {})})
    try:
        output, _ = process.communicate(timeout=more.pop("timeout", None))
    except BaseException as why:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(why, subprocess.TimeoutExpired):
            return None, ""
        raise
    return process.returncode, output


def copy_tree():
    """Files that did not change keep their time, so that they are not compiled again."""
    os.makedirs(TREE, exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                            stdout=subprocess.PIPE).stdout.split(b"\0")
    wanted = {os.fsdecode(name) for name in listed if name and os.path.isfile(os.path.join(ROOT, os.fsdecode(name)))}
    for name in wanted:
        source, copy = os.path.join(ROOT, name), os.path.join(TREE, name)
        content = open(source, "rb").read()
        if not os.path.isfile(copy) or open(copy, "rb").read() != content:
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            open(copy, "wb").write(content)
        os.chmod(copy, os.stat(source).st_mode)
    for folder, folders, files in os.walk(TREE):
        folders[:] = [name for name in folders if os.path.relpath(os.path.join(folder, name), TREE) != "build"]
        for name in files:
            if os.path.relpath(os.path.join(folder, name), TREE) not in wanted:
                os.remove(os.path.join(folder, name))
    duckdb = os.path.join(TREE, "build", "duckdb")  # some tests need it
    if not os.path.lexists(duckdb):
        os.makedirs(os.path.dirname(duckdb), exist_ok=True)
        os.symlink(os.path.join(ROOT, "build", "duckdb"), duckdb)


def build(suites, jobs):
    programs = sorted({SCRIPTS.get(suite, f"test_{suite.split('.')[0]}").replace("test_pack_cases", "annal_command") for suite in suites})
    return run(["cmake", "--build", "--preset", "dev", "-j", str(jobs), "--target", *programs])


def run_suites(suites, jobs, *more, limit=HANGS_AFTER):
    """(names of those that failed, what was printed); None for one that hangs."""
    names = "|".join(re.escape(suite) for suite in suites)
    environment = {} if "TMPDIR" in os.environ or not os.access("/dev/shm", os.W_OK) else {"TMPDIR": "/dev/shm"}
    status, output = run(["ctest", "--preset", "dev", "--no-tests=error", "-j", str(jobs), "-R", f"^({names})$", *more],
                         env=environment, timeout=limit)
    if "Not Run" in output or "No tests were found" in output:
        fail(f"not all of these suites are there: {' '.join(suites)}\n{output[-2000:]}")
    if status is None:
        return [None], output
    return re.findall(r"^\s*\d+ - (\S+) \(", output, flags=re.M), output


def prepare(mutations, jobs):
    """Build the tree without a mistake: there every suite passes, or it would find anything."""
    suites = suites_of(mutations)
    copy_tree()
    if not suites:
        return
    print("building the tree without a mistake", flush=True)
    status, output = run(["cmake", "--preset", "dev", "-D", "CMAKE_COMPILE_WARNING_AS_ERROR=OFF"])
    if status == 0:
        status, output = build(suites, jobs)
    if status != 0:
        fail(f"the tree does not build:\n{output[-4000:]}")
    failed, output = run_suites(suites, jobs, "--verbose", limit=None)
    for line in sorted(set(re.findall(r"SKIPPED: .*", output))):
        print(f"{line} (this test finds no mistake)", flush=True)
    if failed:
        fail(f"without a mistake these fail already: {' '.join(str(name) for name in failed)}\n{output[-4000:]}")


# ---- One of them ----


def try_short(mutation, jobs):
    suites = mutation["short"].split()
    status, output = build(suites, jobs)
    if status != 0:
        return False, f"DOES NOT COMPILE:\n{output[-2000:]}"
    failed, output = run_suites(suites, jobs, "--stop-on-failure")
    if not failed:
        return False, "NOT FOUND"
    if failed[0] is None:
        return True, "found: a suite hangs"
    test = re.search(r":[FE]:[^:\n]*:(\w+):\d+:", output)
    return True, f"found by {failed[0]}" + (f": {test.group(1)}" if test else "")


def try_long(mutation):
    status, output = run(["tests/check_long.sh", mutation["long"]])
    return (True, f"found by check-long {mutation['long']}") if status == 1 else (False, f"NOT FOUND\n{output[-2000:]}")


def try_one(mutation, jobs, long_too):
    """(whether it is found or left to a long part, the line to print)"""
    if "long" in mutation and not long_too:
        return True, f"left to check-long {mutation['long']}"
    path = os.path.join(TREE, mutation["file"])
    before, after = open(path).read(), mutated(mutation, TREE)
    open(path, "w").write(after)
    try:
        return try_long(mutation) if "long" in mutation else try_short(mutation, jobs)
    finally:
        open(path, "w").write(before)


def choose(mutations, names, part):
    if names:
        mutations = [m for m in mutations if any(name in m["name"] or name == m["kind"] for name in names)]
    index, count = (int(number) for number in part.split("/"))
    return mutations[(index - 1) * len(mutations) // count : index * len(mutations) // count]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only look whether each mutation fits the tree")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    parser.add_argument("--long", action="store_true", help="run the parts of check-long for those that are left to it, too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how much to do at once")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="only the I-th of N parts of the list")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only mutations of this kind, or that have this in their name")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("mutate.py: stopped"))
    mutations = choose(read_mutations(), args.names, args.part)
    if not mutations:
        fail("there is no such mutation")
    check(mutations)
    if args.list:
        for mutation in mutations:
            print(f"{mutation['kind']:7} {mutation['name']}")
        return 0
    if args.check:
        print(f"{len(mutations)} mutations fit the tree")
        return 0
    prepare(mutations, args.jobs)
    well = 0
    for mutation in mutations:
        began = time.monotonic()
        good, said = try_one(mutation, args.jobs, args.long)
        well += good
        print(f"{mutation['kind']:7} {mutation['name']}: {said} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{well} of {len(mutations)} mutations are found, or left to check-long by name")
    return 0 if well == len(mutations) else 1


sys.exit(main())
