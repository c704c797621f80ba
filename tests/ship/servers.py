# SPDX-License-Identifier: Apache-2.0
"""Shared code of the shipping tests: the command, servers that end with the test, and a failing network."""

import ctypes
import glob
import json
import os
import pwd
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def start(words, **more):
    return subprocess.Popen(words, preexec_fn=_die_with_parent, **more)


def end(process):
    if process is not None and process.poll() is None:
        process.kill()
    if process is not None:
        process.wait()


def wait_until(what, is_so, seconds=60):
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            sys.exit(f"FAILED: {what}: not after {seconds} s")
        time.sleep(0.02)


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


class Annal:
    """The command, with a store of its own."""

    def __init__(self, program, store, **environment):
        self.program = program
        libraries = glob.glob("build/duckdb/node_modules/@duckdb/*/libduckdb.so")
        self.environment = {**os.environ, "ANNAL_STORE": store, **environment}
        if libraries:
            self.environment.setdefault("ANNAL_DUCKDB", os.path.abspath(libraries[0]))

    def run(self, *words, input=None, status=0):
        done = subprocess.run([self.program, *words], input=input, env=self.environment, capture_output=True, text=True)
        if done.returncode != status:
            sys.exit(f"FAILED: annal {' '.join(words)}: exit status {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout

    def start(self, *words, **more):
        return start([self.program, *words], env=self.environment, **more)

    def append(self, session, first, count):
        lines = "".join(f'{{"type":"t","data":{{"n":{n}}}}}\n' for n in range(first, first + count))
        self.run("append", session, "--level", "batch", input=lines)

    def check(self, url, events, what):
        got = json.loads(self.run("ship", "check", url, "--as", "h1", "--json"))
        want = {"events": events, "behind": 0, "dropped": 0, "sound": True}
        if got != want:
            sys.exit(f"FAILED: {what}: {got}, not {want}")


class Proxy(threading.Thread):
    """A failing network, between its own port and the port of a server."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.mode, self.left = server, "pass", None
        self.trap, self.trapped = None, False  # what has these bytes does not pass, and everything is cut
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pairs = {}
        self.start()

    def _cut(self, end):
        other = self.pairs.pop(end, None)
        if other is not None:
            self.pairs.pop(other, None)
            other.close()
        end.close()

    def _join(self):
        client, _ = self.listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self.server), 1)
        except OSError:
            client.close()
            return
        self.pairs[client], self.pairs[server] = server, client

    def _pass(self, end):
        try:
            piece = end.recv(512 if self.mode == "slow" else 16384)
            if self.trap is not None and self.trap in piece:
                piece, self.trapped = b"", True
            if piece and self.left is not None:
                if len(piece) >= self.left:
                    self.pairs[end].sendall(piece[: self.left])
                    piece, self.left = b"", None
                else:
                    self.left -= len(piece)
            if piece:
                self.pairs[end].sendall(piece)
        except OSError:
            piece = b""
        if not piece:
            self._cut(end)

    def run(self):
        while True:
            if self.mode == "cut":
                for end in list(self.pairs):
                    if end in self.pairs:
                        self._cut(end)
            watched = [] if self.mode == "stall" else list(self.pairs)
            ready, _, _ = select.select([self.listener, *watched], [], [], 0.02)
            for end in ready:
                if end is self.listener:
                    self._join()
                elif end in self.pairs:
                    self._pass(end)
            if self.mode == "slow":
                time.sleep(0.001)


class PostgresPrograms:
    """Programs of PostgreSQL, in a directory of their own, not as root."""

    def __init__(self):
        self.bin = os.path.dirname(max(glob.glob("/usr/lib/postgresql/*/bin/initdb")))
        self.dir = tempfile.mkdtemp(prefix="annal-pg-", dir=os.environ.get("ANNAL_TEST_SERVERS", "/tmp"))
        self.more = {"cwd": self.dir, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.dir, user.pw_uid, user.pw_gid)
            self.more.update(user=user.pw_uid, group=user.pw_gid, extra_groups=[])

    def program(self, name, *words):
        subprocess.run([f"{self.bin}/{name}", *words], check=True, **self.more)

    def make_data(self, directory):
        self.program("initdb", "-D", directory, "-N", "-A", "trust", "-U", "boss", "-E", "UTF8", "--locale=C.UTF-8")


class Postgres(PostgresPrograms):
    """A server on a socket."""

    def __init__(self):
        super().__init__()
        self.make_data("data")
        words = ["-D", "data", "-k", self.dir, "-c", "listen_addresses=", "-c", "fsync=off"]
        self.process = start([self.bin + "/postgres", *words], **self.more)
        self.url = f"postgresql:///postgres?host={self.dir}&user=boss"
        wait_until("PostgreSQL", lambda: self.ask("SELECT 1") == "1")

    def ask(self, sql):
        done = subprocess.run([self.bin + "/psql", "-XAt", self.url, "-c", sql], capture_output=True, text=True)
        return done.stdout.strip()

    def stop(self):
        end(self.process)
        shutil.rmtree(self.dir)


class Bucket:
    """moto as a server with the protocol of S3: it looks at signatures, and keeps everything in memory."""

    def __init__(self):
        self.port = free_port()
        self.process = None
        self.restart()

    def restart(self):
        import boto3

        end(self.process)
        # After these four requests every one needs a valid signature.
        self.process = start(
            [os.path.join(os.path.dirname(sys.executable), "moto_server"), "-H", "127.0.0.1", "-p", str(self.port)],
            env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "4"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until("the bucket", lambda: answers(self.port))
        first = {"endpoint_url": self.address(), "region_name": "eu-central-1", "aws_access_key_id": "x", "aws_secret_access_key": "x"}
        iam = boto3.client("iam", **first)
        iam.create_user(UserName="shipper")
        key = iam.create_access_key(UserName="shipper")["AccessKey"]
        allow = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
        iam.put_user_policy(UserName="shipper", PolicyName="all", PolicyDocument=json.dumps(allow))
        boto3.client("s3", **first).create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        self.key, self.secret = key["AccessKeyId"], key["SecretAccessKey"]
        self.client = boto3.client("s3", **{**first, "aws_access_key_id": self.key, "aws_secret_access_key": self.secret})

    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def environment(self, port):
        return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "eu-central-1",
                "AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}

    def objects(self):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="lake")
        return {item["Key"]: item["ETag"] for page in pages for item in page.get("Contents", [])}


class Mirror:
    """A directory that has what a bucket has; only what changed is read again, as the entity tags say."""

    def __init__(self, bucket, directory):
        self.bucket, self.directory, self.tags = bucket, directory, {}

    def update(self):
        now = self.bucket.objects()
        for name in [name for name in self.tags if self.tags[name] != now.get(name)]:
            os.unlink(os.path.join(self.directory, name))
        for name in now:
            if self.tags.get(name) != now[name]:
                path = os.path.join(self.directory, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(self.bucket.client.get_object(Bucket="lake", Key=name)["Body"].read())
        self.tags = now


def seeded():
    seed = int(os.environ.get("ANNAL_TEST_SEED") or 1)
    print(f"seed {seed} (ANNAL_TEST_SEED sets another)", flush=True)
    return random.Random(seed)
