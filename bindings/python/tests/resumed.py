# SPDX-License-Identifier: Apache-2.0
"""The agent of docs/agents.md, killed again and again.

    resumed.py PAGE KILLS SEED DIRECTORY

Children run the first example of the page, and are killed with SIGKILL at random moments. Each job that ends must have
had each effect once, and a session without open calls. Children are forked from here, where no store is ever open.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import libannal as annal

CHECK = """
import libannal as annal, sys
from pathlib import Path
with annal.open("store", create=False) as store:
    session = store.session("job-1")
    types = [event.type for event in session]
    assert types.count("session.created") == 1, types
    assert types.count("tool.called") == types.count("tool.returned") == 5, types
    assert types[-1] == "session.ended" and session.recovery().calls == [], types
    assert session.verify() == []
    assert len({event.data["call_id"] for event in session if event.type == "tool.called"}) == 5
assert [file.read_text() for file in sorted(Path("ledger").iterdir())] == [f"{10 * n}" for n in range(5)]
print(types.count("session.resumed"))
"""


def main() -> None:
    page, kills, seed, directory = sys.argv[1:]
    chance = random.Random(int(seed))
    block = re.findall(r"```python\n(.*?)```", Path(page).read_text(), re.DOTALL)[0]
    example = compile(block, "agents.md", "exec")
    killed = jobs = resumed = 0
    longest: float | None = None  # the duration of the first job, which is not killed
    while killed < int(kills):
        place = Path(directory) / f"job-{jobs}"
        place.mkdir()
        while True:
            began = time.monotonic()
            child = os.fork()
            if child == 0:
                os.chdir(place)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                code = 1
                try:
                    exec(example, {"__name__": "__main__"})
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            until = began + (600 if longest is None else chance.uniform(0, 1.2 * longest))
            status: int | None = None
            while time.monotonic() < until and status is None:
                found, code = os.waitpid(child, os.WNOHANG)
                status = code if found else None
                time.sleep(0.0005)
            if status is None:
                os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
                killed += os.WIFSIGNALED(status)
            if os.WIFEXITED(status):
                assert os.waitstatus_to_exitcode(status) == 0, place
                longest = longest or time.monotonic() - began
                break
        said = subprocess.run([sys.executable, "-c", CHECK], cwd=place, check=True, capture_output=True, text=True)
        resumed += int(said.stdout)
        jobs += 1
    print(f"{killed} kills, {jobs} jobs, {resumed} resumed")


if __name__ == "__main__":
    assert not annal._core._inherited
    main()
