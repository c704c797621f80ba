#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""containerfile.py FILE STAGE >steps.sh: what an engine would do for a stage (1 is the first), as a script for a fresh root.

The tree is in /src, what a stage before has made is where that stage has left it.
"""

import json
import re
import shlex
import sys


def steps(path: str, stage: int) -> list[str]:
    text = re.sub(r"^#.*\n", "", open(path).read(), flags=re.M)
    text = re.sub(r"\\\n", " ", text)
    out, user, where, environment = ["set -eux"], "root", "/", {}
    entry: list[str] = []
    seen = 0
    for line in filter(None, map(str.strip, text.splitlines())):
        word, rest = line.split(None, 1)
        if word == "FROM":
            seen += 1
        elif seen != stage:
            continue
        elif word == "RUN":
            inner = f"cd {shlex.quote(where)} && " + "".join(
                f"export {name}={shlex.quote(value)}; " for name, value in environment.items()) + rest
            out.append(f"setpriv --reuid={user} --regid={user} --init-groups sh -euc {shlex.quote(inner)}")
        elif word == "COPY" and rest.startswith("--from="):
            _, source, target = rest.split()
            out.append(f"cp -a {source} {target}")
        elif word == "COPY":
            out.append(f"test -d {rest.split()[1]}")
        elif word == "WORKDIR":
            where = rest
            out.append(f"mkdir -p {where}")
        elif word == "USER":
            user = rest
        elif word == "ENV":
            name, value = rest.split("=", 1)
            environment[name] = value
        elif word in ("ENTRYPOINT", "CMD"):
            entry += json.loads(rest)
        elif word not in ("VOLUME", "EXPOSE"):
            sys.exit(f"{path}: this test does not know {word}")
    words = " ".join(map(shlex.quote, entry))
    exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in environment.items())
    if not entry:
        return out
    # What the image does by itself, and with an event.
    run = f"{exports}cd {where}; {words} >/dev/null; echo '{{}}' | {entry[0]} append s1 --type a; {entry[0]} verify"
    out.append(f"setpriv --reuid={user} --regid={user} --init-groups sh -euc {shlex.quote(run)}")
    out.append(f"test \"$(stat -c %U /store/events/s1.jsonl)\" = {user} && test {user} != root")
    return out


print("\n".join(steps(sys.argv[1], int(sys.argv[2]))))
