#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py BIN [--accept] [--only TEXT] FILE…: run files of commands, and compare what they print.

test_commands.c starts it; BIN has the `annal` of annal.c. docs/testing.md, "Tests of the command", has the form of a
file. Each case runs in a directory of its own, in a shell: the commands before the first case, then its own. With
--accept the files receive the output that differs, and keep lines with a pattern that fits. With --only, only cases with
TEXT in their names run.
"""
import os, re, shlex, shutil, signal, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(HERE), "data")
DAYS = "|".join(time.strftime("%Y-%m-%d", time.gmtime(time.time() + day * 86400)) for day in (-1, 0, 1))
NOW = re.compile(rf"\b(?:{DAYS})[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)?")
SECONDS = re.compile(r"\b\d{10}\.\d{1,6}\b")
TODAY = re.compile(rf"\b(?:{DAYS})\b")
# For a command that runs beside others: start it, send it a line and print its answer, close its input and wait for its end;
# and a command without the rights of root, for files that its user may not open.
SHELL = """set -o pipefail
start() { mkfifo in out; annal "$@" <in >out & exec {to}>in {from}<out; }
tell() { local line; printf '%s\\n' "$1" >&$to; IFS= read -r line <&$from; printf '%s\\n' "$line"; }
finish() { exec {to}>&- {from}<&-; wait $!; }
nobody() { chmod 755 . ..; AS_NOBODY=1 "$@"; }"""
CONTROL = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}


class Step:
    """A command, its standard input, and the lines from first to last of the file that it should print."""

    def __init__(self, line):
        self.line, self.command, self.input, self.first, self.last, self.got = line, "", "", 0, 0, None


def read(lines):
    """[(name, [step])]; the name of the first is None: what each case begins with."""
    cases, step = [(None, [])], None
    for at, line in enumerate(lines):
        if line.startswith("== "):
            cases.append((line[3:], []))
            step = None
        elif line.startswith("$ "):
            step = Step(at)
            step.command, step.first, step.last = line[2:], at + 1, at + 1
            cases[-1][1].append(step)
        elif line.startswith("#"):
            step = None
        elif step and line[:2] in ("> ", "< ", ">", "<") and step.last == step.first == at:
            if line[0] == ">":
                step.command += "\n" + line[2:]
            else:
                step.input += line[2:] + "\n"
            step.first = step.last = at + 1
        elif step and line:
            step.last = at + 1
        elif line:
            sys.exit(f"line {at + 1}: what is '{line}'?")
    return cases


def now_or(match):
    return "[now]" if abs(float(match.group()) - time.time()) < 86400 else match.group()


def plain(text, place):
    text = SECONDS.sub(now_or, text)
    return TODAY.sub("[today]", NOW.sub("[now]", text.replace(place, "[dir]").replace(DATA, "[data]")))


def lines_of(path, mark):
    """The output of a command, as lines of a test file."""
    text = open(path, "rb").read().decode(errors="backslashreplace").translate(CONTROL)
    if not text:
        return []
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += " (no-eol)"
    else:
        lines.pop()
    if mark:
        return [mark + line for line in lines]
    return ["\\" + line if re.match(r"[$<>] |[<>]$|[#\\]|[!=]+ |\.\.\.$|\[\d+\]$", line) else line for line in lines]


def matcher(line):
    return re.compile(".*".join(map(re.escape, line.split("[..]"))))


def matches(wanted, got):
    """Whether lines fit; `...` fits any number of lines of stdout, and no other output: an error or a status is named."""
    reach = {0}
    for line in wanted:
        if line == "...":
            for at, new in enumerate(got):
                if at in reach and not re.match(r"! |\[\d+\]$", new):
                    reach.add(at + 1)
        else:
            fits = matcher(line).fullmatch
            reach = {at + 1 for at in reach if at < len(got) and fits(got[at])}
        if not reach:
            return False
    return len(got) in reach


def accepted(wanted, got):
    """The new lines of the file: a line with a pattern stays where it fits."""
    patterns = [line for line in wanted if "[..]" in line]
    return [next((line for line in patterns if matcher(line).fullmatch(new)), new) for new in got]


def run_cases(cases, place, bin_folder):
    """Run the steps of all cases by one shell, which puts what they print into files."""
    script = [SHELL]
    for number, (_, steps) in enumerate(cases):
        base = f"{place}/{number}"
        os.makedirs(base)
        quoted = shlex.quote(base)
        script.append(f"( mkdir {quoted}.d && cd {quoted}.d || exit; export ANNAL_STORE={quoted}.d/store")
        for at, step in enumerate(steps):
            step.base = f"{base}/{at}"
            open(step.base, "w").write(f"{{ {step.command}\n}}\n")  # bash replaces itself by the last command of a list
            if step.input:
                open(step.base + ".in", "w").write(step.input)
            source = f"{quoted}/{at}.in" if step.input else "/dev/null"
            script.append(f". {quoted}/{at} <{source} >{quoted}/{at}.out 2>{quoted}/{at}.err; echo $? >{quoted}/{at}.status")
        script.append(")")
    open(f"{place}/script", "w").write("\n".join(script))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "XDG_DATA_HOME", "ANNAL_STORE")}
    environment.update(PATH=f"{bin_folder}:{os.environ['PATH']}", HOME="/nowhere", LC_ALL="C.UTF-8", TZ="UTC", DATA=DATA)
    # Python ignores SIGPIPE, and so would the commands.
    os.waitpid(os.posix_spawnp("bash", ["bash", f"{place}/script"], environment, setsigdef=[signal.SIGPIPE]), 0)
    for number, (_, steps) in enumerate(cases):
        for step in steps:
            if not os.path.exists(step.base + ".status"):
                step.got = ["[the shell ended]"]
                continue
            status = open(step.base + ".status").read().strip()
            got = lines_of(step.base + ".out", "") + lines_of(step.base + ".err", "! ")
            step.got = [plain(line, f"{place}/{number}.d") for line in got]
            while step.got and not step.got[-1]:
                step.got.pop()
            if status != "0":
                step.got.append(f"[{status}]")


def run_file(path, bin_folder, accept, only):
    """Returns how many cases ran, and how many failed."""
    text = open(path).read()
    lines = text.split("\n")
    first, *cases = read(lines)
    cases = [(name, read(lines)[0][1] + steps) for name, steps in cases if only in name]
    place = f"{os.environ.get('TMPDIR', '/tmp')}/commands-{os.getpid()}"
    run_cases(cases, place, bin_folder)
    failed, changes = set(), {}
    for name, steps in cases:
        for step in steps:
            wanted = [plain(line, place) for line in lines[step.first:step.last]]
            if not matches(wanted, step.got):
                failed.add(name)
                changes.setdefault(step.first, (step.last, accepted(lines[step.first:step.last], step.got)))
    new = list(lines)
    for first, (last, got) in sorted(changes.items(), reverse=True):
        new[first:last] = got
    if changes and accept:
        open(path, "w").write("\n".join(new))
    elif changes:
        import difflib

        print("\n".join(difflib.unified_diff(lines, new, path, "printed", lineterm="", n=6)))
        print("Failed: " + ", ".join(sorted(failed)))
    shutil.rmtree(place)
    return len(cases), 0 if accept else len(failed)


def main():
    bin_folder, *words = sys.argv[1:]
    only = words.pop(words.index("--only") + 1) if "--only" in words else ""
    files = [word for word in words if not word.startswith("--")]
    ran, failed = map(sum, zip(*(run_file(path, bin_folder, "--accept" in words, only) for path in files)))
    print(f"{100 * (ran - failed) // max(ran, 1)}%: Checks: {ran}, Failures: {failed}, Errors: 0")
    sys.exit(failed > 0 or ran == 0)


main()
