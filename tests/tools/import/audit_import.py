#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""audit_import.py COMMAND DIRECTORY [--mutants N]

Imports each log below DIRECTORY/<kind>/, and $ANNAL_TEST_DATA/<kind>/ where there is one, into a store of its own and proves,
without our importers:

  every scalar of the log is a value in some event, or stands in one that holds what could not be read;
  the tokens of all sessions are those that are counted here by hand;
  every line is accounted for, and a second import adds nothing.

With --mutants N the same (but for tokens) of N logs made from each: members dropped, renamed, put in another order or given
values of another type, lines moved, doubled and cut. ANNAL_TEST_SEED makes others.
"""
import json, os, random, re, shutil, subprocess, sys, tempfile

KINDS = ("amp atif autogen claude-code cline codex copilot-chat copilot-cli crush cursor droid dsh gemini-cli goose "
         "inspect kimi langgraph lionagi mini-swe-agent openai-agents opencode openhands otel pi qwen-code swe-agent "
         "tau-bench zed").split()


class Number(str):
    """A number with the text that the log has for it."""


class Pairs(list):
    """An object, with members that it has twice."""


def parse(text):
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=Pairs)


def scalars(value):
    if isinstance(value, Pairs):
        for _, member in value:
            yield from scalars(member)
    elif isinstance(value, list):
        for item in value:
            yield from scalars(item)
    elif isinstance(value, (str, bool)) or value is None:
        yield type(value).__name__, value


def values_of(text):
    """The scalars of a log, and the lines of it that are no JSON."""
    try:
        return set(scalars(parse(text))), []
    except (ValueError, RecursionError):
        pass
    found, unread = set(), []
    for line in text.split("\n"):
        line = line.strip(" \t\r")
        if not line:
            continue
        try:
            found.update(scalars(parse(line)))
        except (ValueError, RecursionError):
            unread.append(line)
    return found, unread


# ---- Tokens, by hand: input (cache included), output ----

def plain(text):
    records = []
    try:
        whole = json.loads(text)
        return whole if isinstance(whole, list) else [whole]
    except ValueError:
        for line in text.split("\n"):
            try:
                records.append(json.loads(line))
            except ValueError:
                pass
    return records


def at(value, *path):
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def number(value):
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def tokens_claude_code(records):
    best = {}
    for r in records:
        usage = at(r, "message", "usage")
        if usage:
            key = str([at(r, "sessionId"), at(r, "agentId"), at(r, "message", "id"), at(r, "requestId")])
            if key not in best or best[key]["output_tokens"] < usage["output_tokens"]:
                best[key] = usage
    return (sum(number(u.get(n)) for u in best.values()
                for n in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")),
            sum(number(u.get("output_tokens")) for u in best.values()))


def tokens_codex(records):
    totals = [at(r, "payload", "info", "total_token_usage") for r in records if at(r, "payload", "type") == "token_count"]
    totals = [t for t in totals if t]
    peaks = [t for i, t in enumerate(totals)
             if i + 1 == len(totals) or totals[i + 1]["total_tokens"] < t["total_tokens"]]
    return sum(t["input_tokens"] for t in peaks), sum(t["output_tokens"] for t in peaks)


def tokens_gemini_cli(records):
    last = {}
    for r in records:
        for m in (r.get("messages") or at(r, "$set", "messages") or [r]):
            if at(m, "tokens"):
                last[m["id"]] = m["tokens"]
    return (sum(number(t.get("input")) + number(t.get("tool")) for t in last.values()),
            sum(number(t.get("output")) + number(t.get("thoughts")) for t in last.values()))


def tokens_pi(records):
    usages = [u for u in (at(r, "message", "usage") for r in records) if u]
    return (sum(number(u.get(n)) for u in usages for n in ("input", "cacheRead", "cacheWrite")),
            sum(number(u.get("output")) for u in usages))


def tokens_opencode(records):
    infos = [at(m, "info") or m for r in records for m in (r.get("messages") or [])]
    tokens = [i["tokens"] for i in infos if at(i, "tokens")]
    return (sum(number(t.get("input")) + number(at(t, "cache", "read")) + number(at(t, "cache", "write")) for t in tokens),
            sum(number(t.get("output")) + number(t.get("reasoning")) for t in tokens))


def tokens_mini_swe_agent(records):
    usages = [at(m, "extra", "response", "usage") for r in records for m in r.get("messages") or []]
    usages = [u for u in usages if u]
    return sum(number(u.get("prompt_tokens")) for u in usages), sum(number(u.get("completion_tokens")) for u in usages)


def tokens_swe_agent(records):
    stats = [at(r, "info", "model_stats") or {} for r in records]
    return sum(number(s.get("tokens_sent")) for s in stats), sum(number(s.get("tokens_received")) for s in stats)


def tokens_copilot_cli(records):
    usages = [at(m, "usage") or {} for r in records if at(r, "type") == "session.shutdown"
              for m in (at(r, "data", "modelMetrics") or {}).values()]
    return sum(number(u.get("inputTokens")) for u in usages), sum(number(u.get("outputTokens")) for u in usages)


def tokens_qwen_code(records):
    usages = [u for u in (at(r, "usageMetadata") for r in records) if u]
    return (sum(number(u.get("promptTokenCount")) for u in usages),
            sum(number(u.get("totalTokenCount")) - number(u.get("promptTokenCount")) for u in usages))


def tokens_droid(records):
    return 0, 0


def tokens_amp(records):
    usages = [u for u in (at(m, "usage") for r in records for m in r.get("messages") or []) if u]
    return sum(number(u.get("totalInputTokens")) for u in usages), sum(number(u.get("outputTokens")) for u in usages)


def tokens_copilot_chat(records):
    return 0, 0


def tokens_atif(records):
    sums = [0, 0]
    for r in records:
        for t in [r] + (r.get("subagent_trajectories") or []):
            steps = [at(s, "metrics") or {} for s in t.get("steps") or [] if not s.get("is_copied_context")]
            last = t.get("final_metrics") or {}
            for i, (one, total) in enumerate((("prompt_tokens", "total_prompt_tokens"), ("completion_tokens", "total_completion_tokens"))):
                sums[i] += sum(number(m.get(one)) for m in steps) if any(steps) else number(last.get(total))
    return sums[0], sums[1]


def tokens_dsh(records):
    seed = max([number(r.get("seedLength")) for r in records] or [0])
    usages = [at(r, "data", "usage") or {} for r in records if at(r, "type") == "assistant/message" and number(r.get("seq")) >= seed]
    return (sum(number(u.get(n)) for u in usages for n in ("inputTokens", "cacheReadTokens", "cacheWriteTokens")),
            sum(number(u.get("outputTokens")) for u in usages))


def tokens_inspect(records):
    usages = [u for r in records for s in r.get("samples") or [] for u in (s.get("model_usage") or {}).values()]
    return (sum(number(u.get("total_tokens")) - number(u.get("output_tokens")) for u in usages),
            sum(number(u.get("output_tokens")) for u in usages))


def tokens_kimi(records):
    used = [at(r, "message", "payload", "token_usage") or at(r, "message", "payload", "event", "payload", "token_usage")
            for r in records if not at(r, "message", "payload", "agent_id")]
    used = [{n: number(u.get(o)) for n, o in (("inputOther", "input_other"), ("inputCacheRead", "input_cache_read"),
                                              ("inputCacheCreation", "input_cache_creation"), ("output", "output"))}
            for u in used if u] + [r["usage"] for r in records if r.get("type") == "usage.record" and r.get("usage")]
    return (sum(u["inputOther"] + u["inputCacheRead"] + u["inputCacheCreation"] for u in used), sum(u["output"] for u in used))


def tokens_none(records):
    return 0, 0


TOKENS = {"claude-code": tokens_claude_code, "codex": tokens_codex, "copilot-cli": tokens_copilot_cli, "gemini-cli":
          tokens_gemini_cli, "pi": tokens_pi, "opencode": tokens_opencode, "mini-swe-agent": tokens_mini_swe_agent,
          "swe-agent": tokens_swe_agent, "tau-bench": tokens_none, "qwen-code": tokens_qwen_code, "droid":
          tokens_droid, "amp": tokens_amp, "copilot-chat": tokens_copilot_chat, "atif": tokens_atif, "dsh":
          tokens_dsh, "inspect": tokens_inspect, "kimi": tokens_kimi}


# ---- One log ----

class Audit:
    def __init__(self, command):
        self.command, self.logs, self.scalars, self.faults = command, 0, 0, []
        self.counted = 0
        self.folder = tempfile.mkdtemp(prefix="annal-audit-")

    def run(self, *words):
        return subprocess.run([self.command, "--store", self.folder + "/store", *words], capture_output=True,
                              check=False)

    def fail(self, path, what):
        self.faults.append(f"{path}: {what}")
        print(f"{path}: {what}", file=sys.stderr)

    def import_once(self, kind, path):
        ran = self.run("import", kind, path, "--recheck", "--json")
        # A changed log may have nothing left that its importer knows.
        empty = b"was found in the log" in ran.stderr and path.startswith(self.folder)
        if ran.returncode != 0 and not (ran.returncode == 1 and empty):
            self.fail(path, f"exit status {ran.returncode}: {ran.stderr.decode(errors='replace').strip()}")
            return None
        return json.loads(ran.stdout)

    def check(self, kind, path, texts, count_tokens):
        shutil.rmtree(self.folder + "/store", ignore_errors=True)
        self.logs += 1
        report = self.import_once(kind, path)
        if report is None:
            return
        if report["imported"] + report["skipped"] != report["lines"]:
            self.fail(path, f"not every line is accounted for: {report}")
        unfinished = any(s["reason"] == "unfinished" for s in report["skips"])
        again = self.import_once(kind, path)
        if again is not None and again["events"] != 0:
            self.fail(path, f"a second import adds {again['events']} events")
        self.check_values(path, texts, unfinished)
        if count_tokens and kind in TOKENS:
            self.check_tokens(kind, path, texts)

    def check_values(self, path, texts, unfinished):
        have, held = set(), []
        for line in self.run("query", "--raw").stdout.decode("utf-8", "surrogatepass").split("\n"):
            if line:
                event = dict(parse(line))
                have.update(scalars(event.get("data")))
                have.update(scalars(parse(json.dumps(event["session_id"]))))
                if event["type"] == "import.unreadable":
                    held.append(dict(event["data"]).get("text") or "")
        parts, held = [h for h in held if h], "\n".join(held)
        for text in texts:
            want, unread = values_of(text)
            self.scalars += len(want)
            lost = [v for v in want - have if v[0] not in ("bool", "NoneType") and str(v[1]) not in held
                    and json.dumps(v[1])[1:-1] not in held]
            if unfinished:
                unread = unread[:-1]
            # In a truncated document, the text before its first item is a record of its own.
            lost += [("line", u) for u in unread if u not in held and len(u) < 1000
                     and not any(u.endswith(h) for h in parts)]
            if lost:
                self.fail(path, f"{len(lost)} values are lost, such as {str(lost[0])[:300]}")

    def check_tokens(self, kind, path, texts):
        ran = self.run("sql", "--format", "csv",
                       "SELECT coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0) FROM sessions")
        said = ran.stdout.decode().strip().split("\n")[-1]
        want = "%d,%d" % TOKENS[kind]([r for t in texts for r in plain(t)])
        self.counted += 1
        if said != want:
            self.fail(path, f"tokens are {said}, counted by hand {want}")


# ---- Random variants of logs ----

def mutate(value, rng, depth=0):
    if isinstance(value, dict):
        members = [(k, mutate(v, rng, depth + 1)) for k, v in value.items()]
        roll = rng.random()
        if members and roll < 0.06:
            members.pop(rng.randrange(len(members)))
        elif members and roll < 0.10:
            i = rng.randrange(len(members))
            members[i] = (members[i][0] + "V2", members[i][1])
        elif members and roll < 0.14:
            i = rng.randrange(len(members))
            members[i] = (members[i][0], rng.choice([None, True, 17, "odd text", [], {}, ["x", {"y": 2.50}], {"z": "w"}]))
        elif roll < 0.18:
            members.append((f"new{rng.randrange(100)}", {"value": f"new value {rng.randrange(10 ** 9)}"}))
        elif roll < 0.4:
            rng.shuffle(members)
        return dict(members)
    if isinstance(value, list):
        return [mutate(v, rng, depth + 1) for v in value]
    return value


def mutant_of(text, is_lines, rng):
    if not is_lines:
        return json.dumps(mutate(json.loads(text), rng), indent=1)
    lines = []
    for line in text.split("\n"):
        try:
            line = json.dumps(mutate(json.loads(line), rng))
        except ValueError:
            pass
        roll = rng.random()
        if roll < 0.02:
            lines.append(line[:len(line) // 2])
        elif roll < 0.04 and lines:
            lines.insert(rng.randrange(len(lines)), line)
        else:
            lines.append(line)
            if roll > 0.98:
                lines.append(line)
    return "\n".join(lines) + "\n"


def audit_mutants(audit, kind, path, text, count):
    is_lines = is_lines_of(text)
    for n in range(count):
        rng = random.Random(f"{os.environ.get('ANNAL_TEST_SEED', '')}{os.path.basename(path)} {n}")
        name = os.path.join(audit.folder, os.path.basename(path))
        made = mutant_of(text[:400000] if is_lines else text, is_lines, rng)
        with open(name, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(made)
        before = len(audit.faults)
        audit.check(kind, name, [made], False)
        if len(audit.faults) > before:
            shutil.copy(name, f"{tempfile.gettempdir()}/mutant-{n}-{os.path.basename(path)}")


def is_lines_of(text):
    try:
        json.loads(text)
        return False
    except ValueError:
        return True


def logs_of(folder):
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            files = [os.path.join(at_, f) for at_, _, fs in os.walk(path) for f in fs if f.endswith(".json")]
            if files:
                yield path, files
            else:
                yield from logs_of(path)
        elif re.search(r"\.(jsonl?|traj)$", name):
            yield path, [path]


def read(path):
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        return file.read().lstrip("\ufeff")


def main():
    words = sys.argv[1:]
    mutants = int(words.pop(words.index("--mutants") + 1)) if "--mutants" in words else 0
    words = [w for w in words if w != "--mutants"]
    audit = Audit(words[0])
    for top, count in ((words[1], mutants), (os.environ.get("ANNAL_TEST_DATA", "/nowhere"), 0)):
        for kind in KINDS:
            folder = os.path.join(top, kind)
            for path, files in logs_of(folder) if os.path.isdir(folder) else []:
                texts = [read(f) for f in files]
                audit.check(kind, path, texts, True)
                if count and files == [path] and texts[0]:
                    audit_mutants(audit, kind, path, texts[0], count)
    shutil.rmtree(audit.folder)
    print(f"{audit.logs} logs, {audit.scalars} different values, tokens of {audit.counted} counted, "
          f"{len(audit.faults)} faults")
    return 1 if audit.faults or audit.logs == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
