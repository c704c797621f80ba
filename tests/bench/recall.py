#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How well `annal search` finds the right session.

    tests/bench/recall.py ANNAL --locomo FILE [--misses]     LoCoMo: a store for each conversation
    tests/bench/recall.py ANNAL --logs DIR… [--misses]       our questions, over imported logs

A question is typed word for word. Its rank is the rank of the first right session among the first 20 of the answer;
hit@k is the share of questions with a rank of at most k, and MRR the mean of 1/rank (0 without a rank). deja-vu
defines them in the same way (scripts/locomo of vshulcz/deja-vu): the evidence D3:12 makes session 3 a right session; a question without evidence does not count; a turn is "Speaker: text", without captions of
images. ms is the time of the whole command, with its start.

FILE is data/locomo10.json of github.com/snap-research/locomo. Its licence, CC BY-NC 4.0, forbids commercial use,
so it is not part of this repository.
"""
import argparse
import collections
import datetime
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
QUESTIONS = TREE / "tests/data/recall/questions.tsv"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


class Tally:
    def __init__(self):
        self.count, self.first, self.five, self.reciprocal, self.place = 0, 0, 0, 0.0, [0, 0]

    def add(self, rank, place):
        self.count += 1
        self.first += rank == 1
        self.five += 1 <= rank <= 5
        self.reciprocal += 1 / rank if rank else 0
        if place is not None:
            self.place[0] += place
            self.place[1] += 1

    def line(self, name):
        if self.count == 0:
            return f"{name:14} no questions"
        text = (f"{name:14} {self.count:5}   hit@1 {self.first / self.count:6.1%}   hit@5 {self.five / self.count:6.1%}"
                f"   MRR {self.reciprocal / self.count:.3f}")
        return text + (f"   event {self.place[0] / self.place[1]:6.1%}" if self.place[1] else "")


class Bench:
    def __init__(self, options):
        self.options, self.total, self.parts, self.ms = options, Tally(), collections.defaultdict(Tally), []

    def run(self, *args, text=None, wrong=(0,)):
        done = subprocess.run([self.options.annal, *map(str, args)], input=text, capture_output=True, text=True)
        if done.returncode not in wrong:
            sys.exit(f"recall: annal {args[0]}: {done.stderr.strip()}")
        return done.stdout

    def ask(self, store, question):
        """The sessions of the answer, best first, with the seqs of their places."""
        begun = time.monotonic()
        words = question.split()
        text = self.run("search", "--store", store, "--json", "--limit", 20, "--", *words, wrong=(0, 1))
        self.ms.append((time.monotonic() - begun) * 1000)
        found = collections.defaultdict(list)
        for line in text.splitlines():
            hit = json.loads(line)
            found[hit["session_id"]] += [place["seq"] for place in hit.get("places", [hit])]
        return found

    def judge(self, part, store, question, right, seqs=None):
        found = self.ask(store, question)
        rank = next((at for at, session in enumerate(list(found)[:20], 1) if session in right), 0)
        place = None if seqs is None else any(seq in seqs for session in right for seq in found.get(session, [])[:3])
        for tally in (self.total, self.parts[part]):
            tally.add(rank, place)
        if self.options.misses and rank != 1:
            print(f"{rank:3}  {question}  right: {' '.join(sorted(right))}  found: {' '.join(list(found)[:3])}")

    def report(self, what):
        print(what)
        for name in sorted(self.parts):
            print(self.parts[name].line(name))
        print(self.total.line("all"))
        if self.ms:
            self.ms.sort()
            print(f"ms             median {statistics.median(self.ms):.1f}   99 % {self.ms[len(self.ms) * 99 // 100]:.1f}"
                  f"   longest {self.ms[-1]:.1f}")


def when(text):
    try:
        return datetime.datetime.strptime(text, "%I:%M %p on %d %B, %Y")
    except ValueError:
        return datetime.datetime(2023, 5, 1, 10)


def locomo(bench):
    with open(bench.options.locomo, encoding="utf-8") as file:
        samples = json.load(file)
    for sample in samples:
        with tempfile.TemporaryDirectory() as folder:
            store = folder + "/store"
            talk = sample["conversation"]
            for name, turns in talk.items():
                if not re.fullmatch(r"session_\d+", name) or not isinstance(turns, list):
                    continue
                begin = when(talk.get(name + "_date_time", ""))
                lines = [json.dumps({"type": "message.added",
                                     "ts": (begin + datetime.timedelta(minutes=at)).isoformat() + "Z",
                                     "data": {"role": "user", "content": f"{turn['speaker']}: {turn['text']}"}})
                         for at, turn in enumerate(turns) if turn.get("text")]
                bench.run("append", "--store", store, "--level", "os", name, text="\n".join(lines) + "\n")
            bench.run("search", "--store", store, "--rebuild")
            for qa in sample["qa"]:
                right = {"session_" + number for number in re.findall(r"D(\d+):\d+", str(qa.get("evidence")))}
                if right:
                    bench.judge(CATEGORIES[qa["category"]], store, qa["question"], right)
    bench.report("LoCoMo")


def logs(bench):
    with tempfile.TemporaryDirectory() as folder:
        store = folder + "/store"
        for path in bench.options.logs:
            # 1: a log that is cut short or of no known kind is left out
            bench.run("import", "auto", path, "--store", store, wrong=(0, 1))
        bench.run("search", "--store", store, "--rebuild")
        there = set(bench.run("sql", "SELECT id FROM sessions", "--store", store, "--format", "csv").split())
        left_out = 0
        for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
            if not line or line.startswith("#"):
                continue
            part, session, seqs, question = line.split("\t")
            if session not in there:
                left_out += 1
                continue
            bench.judge(part, store, question, {session}, {int(seq) for seq in seqs.split(",")})
        bench.report(f"our questions, {len(there)} sessions"
                     + (f"; {left_out} questions are about logs that are not here" if left_out else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("annal")
    parser.add_argument("--locomo")
    parser.add_argument("--logs", nargs="+", default=[])
    parser.add_argument("--misses", action="store_true", help="print each question without rank 1")
    options = parser.parse_args()
    if not options.locomo and not options.logs:
        parser.error("give --locomo FILE, --logs DIR, or both")
    if options.locomo:
        locomo(Bench(options))
    if options.logs:
        logs(Bench(options))


main()
