#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bucket.py ANNAL ROUNDS: a lake in a bucket, while shippers, the network and the server fail.

After each fault the shipper continues by itself; then the lake equals the journal: DuckDB reads each event once and
unchanged. After the first fault of each kind, and every tenth, the command's own check agrees; it reads the whole lake.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import duckdb

from servers import Annal, Bucket, Mirror, Proxy, end, seeded

URL = "s3://lake/some/where"


class Scene:
    def __init__(self, program, directory):
        self.random = seeded()
        self.bucket = Bucket()
        self.proxy = Proxy(self.bucket.port)
        self.scratch = directory + "/scratch"
        os.mkdir(self.scratch)
        self.annal = Annal(program, directory + "/store", TMPDIR=self.scratch, **self.bucket.environment(self.proxy.port))
        self.mirror = Mirror(self.bucket, directory + "/mirror")
        self.events, self.shipper, self.second = 0, None, None

    def append(self):
        count = self.random.randint(1, 150)
        self.annal.append("s1", self.events + 1, count)
        self.events += count

    def ship(self):
        return self.annal.start("ship", URL, "--as", "h1", "--batch", "40", "--timeout", "1", "--follow",
                                stderr=subprocess.DEVNULL)

    def some(self, most):
        time.sleep(self.random.random() * most)

    # ---- Faults ----

    def shipper_killed(self):
        self.some(0.4)
        end(self.shipper)

    def network_cut(self):
        self.proxy.left = self.random.randint(0, 20000)
        self.some(0.3)
        self.proxy.mode = "cut"
        self.some(0.5)

    def network_stalled(self):
        self.some(0.2)
        self.proxy.mode = "stall"
        time.sleep(0.8)
        self.some(1)

    def network_slow(self):
        self.proxy.mode = "slow"
        self.some(0.5)

    def two_shippers(self):
        self.second = self.ship()
        self.some(0.6)
        end(self.second)

    def compacted(self):
        """A run removes the files that the previous run replaced; the shipper may create new files in the meantime."""
        words = ["ship", "compact", URL, "--as", "h1", "--today", "--keep", "0", "--json"]
        while json.loads(self.annal.run(*words))["made"]:
            pass

    def server_lost_with_everything(self):
        end(self.bucket.process)
        self.append()
        time.sleep(1.5)
        self.begin_empty()

    def server_killed_during_an_upload(self):
        """It has a part of a request; and it, too, loses everything."""
        self.proxy.left = self.random.randint(0, 20000)
        self.append()
        until = time.monotonic() + 2
        while self.proxy.left is not None and time.monotonic() < until:
            time.sleep(0.001)
        self.begin_empty()

    def server_stopped(self):
        """SIGSTOP: it is connected, and silent."""
        self.some(0.3)
        self.bucket.process.send_signal(signal.SIGSTOP)
        self.append()
        time.sleep(1 + 2 * self.random.random())
        self.bucket.process.send_signal(signal.SIGCONT)
        self.some(0.5)

    def begin_empty(self):
        self.proxy.mode = "cut"  # until the bucket has its user
        self.bucket.restart()
        self.annal.environment.update(self.bucket.environment(self.proxy.port))
        end(self.shipper)  # its keys are no longer valid

    # ---- What must hold ----

    def read(self):
        self.mirror.update()
        return duckdb.sql(
            "SELECT count(*), count(DISTINCT session_id || ' ' || seq), count(*) FILTER (data <> '{\"n\":' || seq || '}') "
            f"FROM read_parquet('{self.mirror.directory}/some/where/*/*/*.parquet')").fetchall()[0]

    def round(self, fault, whole):
        self.append()
        self.shipper = self.ship()
        self.some(0.3)
        self.append()
        fault()
        self.proxy.mode, self.proxy.left = "pass", None
        end(self.shipper)
        self.annal.run("ship", URL, "--as", "h1", "--batch", "1000", "--wait", "20")
        name = fault.__name__.replace("_", " ")
        if whole:
            self.annal.check(URL, self.events, name)
        got, want = self.read(), (self.events, self.events, 0)
        if got != want:
            sys.exit(f"FAILED: {name}: DuckDB reads {got}, not {want}")
        if os.listdir(self.scratch):
            sys.exit(f"FAILED: {name}: left in TMPDIR: {os.listdir(self.scratch)}")


def refuse(scene):
    environment = scene.annal.environment
    scene.annal.environment = {**environment, "AWS_SECRET_ACCESS_KEY": "other"}
    scene.annal.run("ship", URL, "--as", "h1", status=3)
    scene.annal.environment = environment


def pull(scene):
    """Another host gets a session back, with the journal that it had."""
    here = scene.annal.environment["ANNAL_STORE"]
    other = Annal(scene.annal.program, here + ".other", **scene.bucket.environment(scene.proxy.port))
    name = sorted(os.listdir(f"{here}/events"))[0]
    other.run("pull", name.split(".")[0], "--from", URL, "--store-name", "h1")
    with open(f"{here}/events/{name}", "rb") as a, open(f"{here}.other/events/{name}", "rb") as b:
        if a.read() != b.read():
            sys.exit(f"FAILED: {name} was pulled, and is another journal")


def main():
    with tempfile.TemporaryDirectory() as directory:
        scene = Scene(sys.argv[1], directory)
        faults = [scene.shipper_killed, scene.network_cut, scene.network_stalled, scene.network_slow, scene.two_shippers, scene.compacted,
                  scene.server_stopped, scene.server_killed_during_an_upload, scene.server_lost_with_everything]
        for i in range(int(sys.argv[2])):
            scene.round(faults[i] if i < len(faults) else scene.random.choice(faults), i < len(faults) or i % 10 == 9)
            if (i + 1) % 20 == 0:
                print(f"{i + 1} faults", flush=True)
        refuse(scene)
        pull(scene)
        print(f"{scene.events} events are in the bucket once, after {sys.argv[2]} faults")


main()
