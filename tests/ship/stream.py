#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stream.py ANNAL ROUNDS NATS_SERVER: a stream on three servers, while shippers, servers and the network fail.

A tail follows all the time. After each fault it must have printed every event of every session once and in order, and
so must a tail that begins then. The servers drop repeats for two seconds only, so that the stream has some.
"""

import base64
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from servers import Annal, Proxy, answers, end, free_port, seeded, start, wait_until

SESSIONS = 4
WINDOW_S = 2


class Cluster:
    def __init__(self, program, directory, size):
        self.program, self.directory = program, directory
        self.ports = [free_port() for _ in range(size)]
        self.routes = [free_port() for _ in range(size)]
        self.monitors = [free_port() for _ in range(size)]
        self.processes = [None] * size
        for i in range(size):
            self.restart(i)
        wait_until("the cluster has a leader", lambda: self.leader_of_all() is not None)

    def restart(self, i):
        words = [self.program, "-a", "127.0.0.1", "-p", str(self.ports[i]), "-m", str(self.monitors[i]), "-js",
                 "-sd", f"{self.directory}/{i}", "--server_name", f"n{i}"]
        if len(self.ports) > 1:
            words += ["--cluster_name", "c", "--cluster", f"nats://127.0.0.1:{self.routes[i]}",
                      "--routes", ",".join(f"nats://127.0.0.1:{port}" for port in self.routes)]
        self.processes[i] = start(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until("a server", lambda: answers(self.ports[i]))

    def ask(self, what):
        for i, process in enumerate(self.processes):
            if process.poll() is None:
                try:
                    return json.load(urllib.request.urlopen(f"http://127.0.0.1:{self.monitors[i]}/{what}", timeout=2))
                except OSError:
                    pass
        return {}

    def request(self, subject, value=None):
        """A request to JetStream, and its answer."""
        body = json.dumps(value) if value is not None else ""
        with socket.create_connection(("127.0.0.1", self.ports[0])) as client, client.makefile("rb") as lines:
            client.sendall(f'CONNECT {{"verbose":false}}\r\nSUB i 1\r\nPUB $JS.API.{subject} i {len(body)}\r\n{body}\r\n'.encode())
            for line in lines:
                if line.startswith(b"MSG "):
                    answer = json.loads(lines.read(int(line.split()[-1])))
                    break
        if "error" in answer:
            sys.exit(f"FAILED: {subject}: {answer}")
        return answer

    def leader_of_all(self):
        if len(self.ports) == 1:
            return "n0"
        meta = self.ask("jsz").get("meta_cluster", {})
        return meta.get("leader") if meta.get("cluster_size", 0) == len(self.ports) else None

    def leader_of_stream(self):
        for account in self.ask("jsz?streams=true").get("account_details", []):
            for stream in account.get("stream_detail", []):
                if stream["name"] == "ANNAL":
                    leader = stream.get("cluster", {}).get("leader")
                    return int(leader[1:]) if leader else 0
        return 0


class Scene:
    def __init__(self, program, nats_server, directory, size):
        self.random = seeded()
        self.directory = directory
        self.cluster = Cluster(nats_server, directory, size)
        self.proxies = [Proxy(port) for port in self.cluster.ports]
        self.url = "nats://" + ",".join(f"127.0.0.1:{proxy.port}" for proxy in self.proxies)
        self.annal = Annal(program, directory + "/store")
        self.cluster.request("STREAM.CREATE.ANNAL", {
            "name": "ANNAL", "subjects": ["annal.events.*"], "storage": "file", "num_replicas": size, "max_msgs": -1,
            "duplicate_window": WINDOW_S * 1000000000})
        self.last = {f"s{i}": 0 for i in range(SESSIONS)}
        self.shipper = self.second = None
        self.append()
        self.annal.run("ship", self.url, "--as", "h1", "--wait", "30")
        with open(directory + "/tail", "w") as output:
            self.tail = self.annal.start("tail", "--from", self.url, "--follow", stdout=output, stderr=subprocess.DEVNULL)
        self.output = open(directory + "/tail")
        self.seen = dict.fromkeys(self.last, 0)
        self.rest = ""

    def append(self):
        for session in self.random.sample(sorted(self.last), 2):
            count = self.random.randint(1, 100)
            self.annal.append(session, self.last[session] + 1, count)
            self.last[session] += count

    def ship(self, batch="30"):
        return self.annal.start("ship", self.url, "--as", "h1", "--batch", batch, "--timeout", "1", "--follow",
                                stderr=subprocess.DEVNULL)

    def some(self, most):
        time.sleep(self.random.random() * most)

    # ---- Faults ----

    def shipper_killed(self):
        self.some(0.3)
        end(self.shipper)

    def leader_killed(self):
        leader = self.cluster.leader_of_stream()
        end(self.cluster.processes[leader])
        self.append()
        self.some(3)
        self.cluster.restart(leader)

    def server_stopped(self):
        """SIGSTOP: it is connected, and silent."""
        process = self.random.choice(self.cluster.processes)
        process.send_signal(signal.SIGSTOP)
        self.append()
        self.some(3)
        process.send_signal(signal.SIGCONT)

    def network_cut(self):
        for proxy in self.proxies:
            proxy.left = self.random.randint(0, 20000)
        self.some(0.3)
        for proxy in self.proxies:
            proxy.mode = "cut"
        self.append()
        self.some(0.5)

    def network_stalled(self):
        for proxy in self.proxies:
            proxy.mode = "stall"
        self.append()
        self.some(2)

    def two_shippers(self):
        self.second = self.ship("7")
        self.append()
        self.some(0.6)
        end(self.second)

    def shipper_killed_before_its_heads_moved(self):
        """All of its batch is in the stream; and it is sent again when the servers do not drop it any more."""
        for proxy in self.proxies:
            proxy.trap, proxy.trapped = b"PUB $KV.ANNAL_HEADS.", False
        self.append()
        wait_until("a head is to move", lambda: any(proxy.trapped for proxy in self.proxies))
        end(self.shipper)
        for proxy in self.proxies:
            proxy.trap = None
        time.sleep(WINDOW_S + 1)

    # ---- What must hold ----

    def take(self, lines, seen, name):
        for line in lines:
            event = json.loads(line)
            session, seq = event["session_id"], event["seq"]
            if event["store"] != "h1" or event["data"]["n"] != seq or seq != seen[session] + 1:
                sys.exit(f"FAILED: {name}: after event {seen[session]} of {session}: {line}")
            seen[session] = seq

    def has_caught_up(self, name):
        self.rest += self.output.read()
        lines = self.rest.split("\n")
        self.rest = lines.pop()
        self.take(lines, self.seen, name)
        if self.tail.poll() is not None:
            sys.exit(f"FAILED: {name}: the tail ended")
        return self.seen == self.last

    def round(self, fault):
        name = fault.__name__.replace("_", " ")
        self.shipper = self.ship()
        self.append()
        fault()
        for proxy in self.proxies:
            proxy.mode, proxy.left = "pass", None
        end(self.shipper)
        self.annal.run("ship", self.url, "--as", "h1", "--batch", "30", "--wait", "60")
        wait_until(f"{name}: the tail has {self.seen} of {self.last}", lambda: self.has_caught_up(name), 60)
        again = dict.fromkeys(self.last, 0)
        self.take(self.annal.run("tail", "--from", self.url).splitlines(), again, name + ", from the beginning")
        if again != self.last:
            sys.exit(f"FAILED: {name}: from the beginning it has {again} of {self.last}")


def try_long_event(scene):
    """Larger than a message may be."""
    text = "x" * 2500000
    scene.annal.run("append", "long", input=json.dumps({"type": "t", "data": {"n": 1, "text": text}}) + "\n")
    scene.annal.run("ship", scene.url, "--as", "h1", "--session", "long", "--wait", "30")
    got = [json.loads(line) for line in scene.annal.run("tail", "--from", scene.url, "long").splitlines()]
    if len(got) != 1 or got[0]["data"]["text"] != text:
        sys.exit("FAILED: a long event is another one in the stream")
    scene.last["long"] = scene.seen["long"] = 0
    scene.last["long"] = 1
    wait_until("the tail has the long event", lambda: scene.has_caught_up("long event"))


def check_repeats(scene):
    more = scene.cluster.request("STREAM.INFO.ANNAL")["state"]["messages"] - sum(scene.last.values())
    if more <= 0:
        sys.exit("FAILED: no event was in the stream twice")
    print(f"{more} events were in the stream again", flush=True)


def try_gap(scene):
    """The stream lost an event: a running tail has received it, and a new tail reports the gap."""
    scene.annal.append("gap", 1, 3)
    scene.last["gap"], scene.seen["gap"] = 3, 0
    scene.annal.run("ship", scene.url, "--as", "h1", "--wait", "30")
    wait_until("the tail has the session", lambda: scene.has_caught_up("gap"))
    last = scene.cluster.request("STREAM.INFO.ANNAL")["state"]["last_seq"]
    for seq in range(last - 20, last + 1):  # it may exist twice
        headers = base64.b64decode(scene.cluster.request("STREAM.MSG.GET.ANNAL", {"seq": seq})["message"]["hdrs"])
        if b"Annal-Session: gap\r" in headers and b"Annal-Seq: 2\r" in headers:
            scene.cluster.request("STREAM.MSG.DELETE.ANNAL", {"seq": seq})

    def is_said():
        """The tail reads one of three copies of the stream, and that copy may lose the event a moment later."""
        nonlocal answer
        out, err, status = tail(scene, "gap")
        answer = ([json.loads(line)["seq"] for line in out.splitlines()], err, status)
        return answer[0] != [1, 2, 3]

    answer = None
    wait_until("the stream lost an event", is_said)
    if answer[0] != [1, 3] or "events 2 to 2 are not in the stream" not in answer[1] or answer[2] != 1:
        sys.exit(f"FAILED: gap: {answer}")


def try_deleted_stream(scene):
    """Its heads stay, and are of another stream."""
    scene.annal.run("append", "quiet", input='{"type":"t","data":{"n":1}}\n')
    scene.last["quiet"] = 1
    scene.seen["quiet"] = 0
    scene.annal.run("ship", scene.url, "--as", "h1", "--wait", "30")
    scene.cluster.request("STREAM.DELETE.ANNAL")
    scene.append()
    scene.annal.run("ship", scene.url, "--as", "h1", "--wait", "30")
    wait_until("the tail goes on after the stream was deleted", lambda: scene.has_caught_up("deleted stream"))
    again = dict.fromkeys(scene.last, 0)
    scene.take(scene.annal.run("tail", "--from", scene.url).splitlines(), again, "deleted stream, from the beginning")
    if again != scene.last:
        sys.exit(f"FAILED: deleted stream: from the beginning it has {again} of {scene.last}")


def try_lost_stream(scene):
    """All servers lose everything: what is in the journals is sent again, and the tail skips what it had."""
    for i, process in enumerate(scene.cluster.processes):
        end(process)
        shutil.rmtree(f"{scene.cluster.directory}/{i}")
    for i in range(len(scene.cluster.processes)):
        scene.cluster.restart(i)
    wait_until("the cluster has a leader", lambda: scene.cluster.leader_of_all() is not None)
    scene.append()
    scene.annal.run("ship", scene.url, "--as", "h1", "--wait", "60")
    wait_until("the tail goes on with a new stream", lambda: scene.has_caught_up("lost stream"))


def publish(scene, messages):
    """Messages as anyone may send them: headers of an event, and a text."""
    with socket.create_connection(("127.0.0.1", scene.cluster.ports[0])) as client:
        client.sendall(b'CONNECT {"verbose":false,"headers":true}\r\n')
        for headers, text in messages:
            lines = "NATS/1.0\r\n" + "".join(f"Annal-{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
            client.sendall(f"HPUB annal.events.1 {len(lines)} {len(lines) + len(text)}\r\n{lines}{text}\r\n".encode())
        client.sendall(b"PING\r\n")
        while b"PONG" not in client.recv(4096):
            pass


def sent(session, seq, **more):
    return {"Store": "x", "Session": session, "Seq": seq, "H": f"{seq:016x}", "H-Before": f"{seq - 1:016x}"} | more


def tail(scene, *words):
    process = scene.annal.start("tail", "--from", scene.url, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate()
    return out, err, process.returncode


def try_strange_messages(scene):
    """Messages that are not events, or cannot be, are skipped with one warning."""
    good = '{"type":"t"}'
    bad = [({"Part": "1/2305843009213693952"}, good), ({"Part": "0/1"}, good), ({"Part": "2/1"}, good), ({"Part": "1"}, good),
           ({"Part": "-1/1"}, good), ({"Part": "1/10001"}, good), ({"Seq": "0"}, good), ({"Seq": "-1"}, good),
           ({"Seq": "18446744073709551615"}, good), ({"Seq": "1x"}, good), ({"Seq": "01"}, good), ({"H": "1"}, good),
           ({"H": "zzzzzzzzzzzzzzzz"}, good), ({"H-Before": "0x00000000000000"}, good), ({"Session": "../x"}, good),
           ({"Session": ""}, good), ({"Session": "y" * 201}, good), ({"Store": ""}, good), ({"Store": "s" * 5000}, good),
           ({}, ""), ({}, "{}"), ({}, "x"), ({}, "[1]"), ({}, '{"a":1'), ({}, '{"a":1}\n{"store":"h1"}'), ({}, '{"a":"\x1b[2J"}'),
           ({}, '{"a":' + "[" * 100000)]
    publish(scene, [(sent(f"x{i}", 1) | headers, text) for i, (headers, text) in enumerate(bad)])
    out, err, status = tail(scene)
    if '"store":"x"' in out or '"store":"h1"' not in out or "\x1b" in out + err or status != 0:
        sys.exit(f"FAILED: strange messages: {status}: {out[:200]}")
    if err.count("is not an event that annal shipped") != 1:
        sys.exit(f"FAILED: strange messages: {err[:500]}")


def try_many_gaps(scene):
    """No more than 10,000 events wait for others; and all are printed."""
    count = 30000
    publish(scene, ((sent("holes", 2 * i), '{"n":%d}' % i) for i in range(1, count + 1)))
    out, err, status = tail(scene, "holes")
    got = [json.loads(line)["n"] for line in out.splitlines()]
    if got != list(range(1, count + 1)) or status != 1 or err.count("arrived before the events that they continue") != 1:
        sys.exit(f"FAILED: many gaps: {status}: {len(got)} events: {err[:500]}")


def try_many_parts(scene):
    """Parts that never become whole do not fill the memory."""
    publish(scene, ((sent("parts", i, Part="1/10000"), '{"n":1') for i in range(1, 4001)))
    out, err, _ = tail(scene, "parts")
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    if out != "" or "arrived before the events that they continue" not in err or most > 800:
        sys.exit(f"FAILED: many parts: {most} MiB: {out[:200]}: {err[:500]}")


def try_long_name(scene):
    """The name of a store: HOST:PATH, unless --as gives another."""
    path = f"{scene.directory}/" + "/".join([chr(ord("a") + i) * 200 for i in range(5)])
    os.makedirs(path)
    annal = Annal(scene.annal.program, path + "/store")
    for session in ("one", "two"):
        annal.append(session, 1, 3)
    for events in (6, 0):
        sent = json.loads(annal.run("ship", scene.url, "--wait", "30", "--json"))["events"]
        if sent != events:
            sys.exit(f"FAILED: a store with a long name: {sent} events were sent, not {events}")
    got = [json.loads(line) for line in annal.run("tail", "--from", scene.url, "one", "two").splitlines()]
    if sorted((event["session_id"], event["seq"]) for event in got) != [(s, n) for s in ("one", "two") for n in (1, 2, 3)]:
        sys.exit(f"FAILED: a store with a long name: {len(got)} events are in the stream")


def main():
    program, rounds, nats_server = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with tempfile.TemporaryDirectory() as directory:
        scene = Scene(program, nats_server, directory, int(os.environ.get("SERVERS") or 3))
        faults = [scene.shipper_killed, scene.leader_killed, scene.two_shippers, scene.network_cut, scene.network_stalled,
                  scene.server_stopped, scene.shipper_killed_before_its_heads_moved]
        for i in range(rounds):
            scene.round(faults[i] if i < len(faults) else scene.random.choice(faults))
        check_repeats(scene)
        try_long_event(scene)
        try_gap(scene)
        try_deleted_stream(scene)
        try_lost_stream(scene)
        end(scene.tail)
        try_strange_messages(scene)
        try_many_gaps(scene)
        try_many_parts(scene)
        try_long_name(scene)
        for process in scene.cluster.processes:
            end(process)
        print(f"{sum(scene.last.values())} events were followed, each once, through {rounds} faults of {len(scene.proxies)} servers")


main()
