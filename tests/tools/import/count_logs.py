#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""count_logs.py COMMAND DIRECTORY...

Imports each log below DIRECTORY/<kind>/ into a store of its own, counts without our importers what a person looks at
first, and compares it with the tables:

  title    the title in the log, or words of the user
  calls    calls of tools, how many of them have a result, and how many failed
  end      how the last turn ended: completed, failed, cancelled or running; left out where the log does not say
  tokens   input, output, read from and written to a cache
  cost     what the log says, else by the list of prices, for each model and day
  times    the first and the last time of its lines

Prints a table with how many logs agree, and what differs. The exit status is 1 if anything does.
"""
import fnmatch, json, os, re, shutil, subprocess, sys, tempfile

from audit_import import at, logs_of, number, plain, read

COLUMNS = ("title", "calls", "results", "failed", "end", "tokens", "cost", "times")


class Count:
    """Counts of one log."""

    def __init__(self):
        self.own_title, self.said = None, []
        self.calls, self.results, self.failed = set(), set(), set()
        self.end = None
        # day, model, input, output, from cache, to cache, cost or None[, to the cache of an hour, tier, searches]
        self.used = []
        self.times = []

    def tokens(self):
        return tuple(sum(number(u[i]) for u in self.used) for i in range(2, 6))

    def cost(self, prices):
        """In dollars; None where nothing is known of it."""
        known = [u[6] if u[6] is not None else priced(u, prices) for u in self.used]
        known = [k for k in known if k is not None]
        return sum(known) if known else None


def priced(used, prices):
    day, model = used[0], (used[1] or "").split("/")[-1]
    hour, tier, searches = used[7:] if len(used) > 7 else (0, "", 0)
    fit = [p for p in prices if fnmatch.fnmatchcase(model, p["model"]) and p["since"] <= day
           and p["tier"] == tier and p["above"] <= used[2]]
    if not fit:
        return None
    price = max(fit, key=lambda p: (len(p["model"]), p["since"], p["above"]))
    kinds = [price["input"], price["output"], price["cache_read"], price["cache_write"], price["cache_write_1h"]]
    each = [price["input"] if k is None else k for k in kinds]
    amounts = [used[2] - used[4] - used[5], used[3], used[4], used[5] - hour, hour]
    return sum(a * e for a, e in zip(amounts, each)) / 1e6 + searches * 0.01


def text_of(content):
    if isinstance(content, str):
        return content
    return "\n".join(b["text"] for b in content or [] if isinstance(b, dict) and isinstance(b.get("text"), str))


# ---- The kinds ----

def count_claude_code(records):
    count, best, ids = Count(), {}, {r.get("uuid") for r in records if isinstance(r, dict)}
    for r in records:
        if not isinstance(r, dict):
            continue
        kind, message = r.get("type"), r.get("message") or {}
        content = message.get("content")
        blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
        if r.get("timestamp"):
            count.times.append(r["timestamp"])
        if kind == "custom-title":
            count.own_title = r.get("customTitle")
        if kind == "ai-title" or kind == "summary" and r.get("leafUuid") in ids:
            count.own_title = r.get("aiTitle") or r.get("summary")
        for b in blocks:
            if b.get("type") == "tool_use":
                count.calls.add(b["id"])
            if b.get("type") == "tool_result":
                count.results.add(b["tool_use_id"])
                if b.get("is_error"):
                    count.failed.add(b["tool_use_id"])
        if at(r, "message", "usage"):
            key = str([r.get("sessionId"), r.get("agentId"), message.get("id"), r.get("requestId")])
            if key not in best or best[key][1]["output_tokens"] < message["usage"]["output_tokens"]:
                best[key] = (r, message["usage"])
        if kind == "user" and not r.get("isMeta"):
            count.said.append(text_of(content))
            command = COMMAND.search(count.said[-1])
            if command:
                count.said.append(" ".join(part.strip() for part in command.groups(default="") if part.strip()))
        if not r.get("isSidechain") and kind in ("user", "assistant", "system"):
            claude_end(count, r, kind, content, blocks)
    for r, u in best.values():
        cached, written = number(u.get("cache_read_input_tokens")), number(u.get("cache_creation_input_tokens"))
        count.used.append((r["timestamp"][:10], r["message"].get("model"), number(u.get("input_tokens")) + cached + written,
                           number(u.get("output_tokens")), cached, written, None,
                           number(at(u, "cache_creation", "ephemeral_1h_input_tokens")), claude_tier(u),
                           number(at(u, "server_tool_use", "web_search_requests"))))
    return count


COMMAND = re.compile(r"<command-name>(.*?)</command-name>(?:.*?<command-args>(.*?)</command-args>)?", re.S)


def claude_tier(usage):
    tier = "fast" if usage.get("speed") == "fast" else usage.get("service_tier")
    return "" if tier in (None, "standard") else tier


def claude_end(count, r, kind, content, blocks):
    types = {b.get("type") for b in blocks}
    text = text_of(content)
    if kind == "assistant" and r.get("isApiErrorMessage"):
        count.end = "failed"
    elif kind == "assistant":
        reason = r["message"].get("stop_reason")
        done = reason in ("end_turn", "stop_sequence") or reason is None and types == {"text"}
        count.end = "completed" if done else "running"
    elif kind == "system" and r.get("subtype") == "api_error":
        count.end = "failed"
    elif kind == "user" and text.startswith("[Request interrupted by user"):
        count.end = "cancelled"
    elif kind == "user" and not r.get("isMeta"):
        if not text.startswith(("<local-command", "<command-name", "<bash-")):
            count.end = "running"


FAILED_CALL = re.compile(r"aborted( by user after .*)?$|execution error: |tool call error: |exec_command failed( for|:) |"
                         r"write_stdin failed: |apply_patch verification failed: |unsupported (custom tool )?call: |"
                         r"failed to parse function arguments: |failed in sandbox .* with execution error: |"
                         r"Script (failed|terminated)\nWall time |Script error:\n|(exec command |patch )?rejected by user$|"
                         r"patch rejected: |Wall time: .* seconds\naborted by user|collab (spawn|tool) failed: |"
                         r"agent with id \S+ (not found|is closed)$|unable to (locate|read|process) image at `", re.S)
EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.M)


def inner_code(text):
    """Exit code of a command that a script ran and printed as an object, or None."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError):
        return None
    code = value.get("exit_code") if isinstance(value, dict) else None
    return code if isinstance(code, int) else None


def codex_failed(output):
    if isinstance(output, dict) and isinstance(output.get("success"), bool):
        return not output["success"]
    inner = [inner_code(b.get("text")) for b in output if isinstance(b, dict)] if isinstance(output, list) else []
    text = output if isinstance(output, str) else text_of(output) or at(output, "content") or ""
    try:
        code = at(json.loads(text), "metadata", "exit_code")
    except ValueError:
        code = None
    said = EXIT_CODE.search(text.split("\nOutput:")[0][:2000])
    if code is None and said:
        code = int(said[1])
    if code is None and any(c is not None for c in inner):
        code = next((c for c in inner if c), 0)
    return bool(code) if code is not None else True if FAILED_CALL.match(text) else None


def count_codex(records):
    count, before, model, ended, waiting, marked = Count(), {}, None, {}, set(), False
    head = (records[0].get("payload") or {}) if records else {}
    copied = bool(head.get("forked_from_id"))  # a fork begins with lines of its parent
    for r in records:
        kind, p = r.get("type"), r.get("payload") or {}
        what = p.get("type")
        copied = copied and not (p.get("turn_id") or "") > head.get("id", "")
        if copied and r is not records[0]:
            before = at(p, "info", "total_token_usage") or before if what == "token_count" else before
            continue
        if r.get("timestamp"):
            count.times.append(r["timestamp"])
        if kind == "session_meta" and p.get("timestamp"):
            count.times.append(p["timestamp"])
        if kind == "turn_context":
            model = p.get("model")
        if what == "thread_name_updated":
            count.own_title = p.get("thread_name")
        if what == "user_message" or kind == "response_item" and p.get("role") == "user":
            count.said.append(p.get("message") or text_of(p.get("content")))
        if kind == "response_item" and (what or "").endswith("_call"):
            call = p.get("call_id") or p.get("id") or len(count.calls)
            count.calls.add(call)
            if what == "web_search_call":
                count.results.add(call)
        if kind == "response_item" and (what or "").endswith("_output"):
            count.results.add(p["call_id"])
            failed = codex_failed(p.get("output"))
            if failed or failed is None and ended.get(p["call_id"]):
                count.failed.add(p["call_id"])
            if failed is None and p["call_id"] not in ended:
                waiting.add(p["call_id"])
        if what in ("exec_command_end", "patch_apply_end", "mcp_tool_call_end"):
            result = p.get("result") or {}
            ended[p.get("call_id")] = (bool(p.get("exit_code")) or p.get("success") is False or "Err" in result
                                       or bool(at(result, "Ok", "isError")))
            if ended[p.get("call_id")] and p.get("call_id") in waiting:
                count.failed.add(p["call_id"])
        marked = marked or what == "task_started"
        if what == "user_message" and not marked:
            count.end = "running"
        count.end = {"task_started": "running", "task_complete": "completed", "turn_aborted": "cancelled"}.get(what, count.end)
        total = at(p, "info", "total_token_usage") if what == "token_count" else None
        if total and total != before:
            if number(total["total_tokens"]) < number(before.get("total_tokens")):
                before = {}
            names = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens")
            count.used.append((r["timestamp"][:10], model, *(number(total.get(n)) - number(before.get(n)) for n in names), None))
            before = total
    return count


def count_pi(records):
    count = Count()
    for r in records:
        message = r.get("message") or {}
        role = message.get("role")
        if r.get("timestamp"):
            count.times.append(r["timestamp"])
        if role == "user":
            count.said.append(text_of(message.get("content")))
            count.end = "running"
        if role == "assistant":
            count.calls |= {b["id"] for b in message["content"] if b.get("type") == "toolCall"}
            count.end = {"stop": "completed", "error": "failed", "aborted": "cancelled"}.get(message.get("stopReason"), "running")
            u = message.get("usage") or {}
            cached, written = number(u.get("cacheRead")), number(u.get("cacheWrite"))
            count.used.append((r["timestamp"][:10], message.get("model"), number(u.get("input")) + cached + written,
                               number(u.get("output")), cached, written, at(u, "cost", "total")))
        if role == "toolResult":
            count.results.add(message["toolCallId"])
            if message.get("isError"):
                count.failed.add(message["toolCallId"])
    return count


def count_gemini_cli(records):
    count, last = Count(), {}
    for r in records:
        count.times += [r["startTime"]] if r.get("startTime") else []
        for m in r.get("messages") or at(r, "$set", "messages") or [r]:
            if m.get("id"):
                last[m["id"]] = m
    for m in last.values():
        count.times.append(m["timestamp"])
        if m.get("type") == "user":
            count.said.append(text_of(m.get("content")))
            count.end = "running"
        if m.get("type") == "gemini":
            count.end = "running" if m.get("toolCalls") else "completed"
        for c in m.get("toolCalls") or []:
            count.calls.add(c["id"])
            if c.get("status") != "executing":
                count.results.add(c["id"])
            output = str(at((c.get("result") or [{}])[0], "functionResponse", "response", "output"))
            if c.get("status") in ("error", "cancelled") or re.search(r"\nExit Code: -?[1-9]", output):
                count.failed.add(c["id"])
        t = m.get("tokens")
        if t:
            count.used.append((m["timestamp"][:10], m.get("model"), number(t.get("input")) + number(t.get("tool")),
                               number(t.get("output")) + number(t.get("thoughts")), number(t.get("cached")), 0, None))
    return count


def count_opencode(records):
    count = Count()
    for m in (m for r in records for m in r.get("messages") or []):
        info = m["info"]
        if info["role"] == "user":
            count.said.append("\n".join(p.get("text", "") for p in m["parts"]))
            count.end = "running"
            continue
        count.end = {"stop": "completed"}.get(info.get("finish"), "running")
        for p in (p for p in m["parts"] if p["type"] == "tool"):
            count.calls.add(p["callID"])
            if at(p, "state", "status") in ("completed", "error"):
                count.results.add(p["callID"])
            if at(p, "state", "status") == "error" or at(p, "state", "metadata", "exit"):
                count.failed.add(p["callID"])
        t, cache = info.get("tokens") or {}, at(info, "tokens", "cache") or {}
        cached, written = number(cache.get("read")), number(cache.get("write"))
        count.used.append(("", info.get("modelID"), number(t.get("input")) + cached + written,
                           number(t.get("output")) + number(t.get("reasoning")), cached, written, info.get("cost") or None))
    count.own_title = at(records[0], "info", "title")
    return count


KINDS = {"claude-code": count_claude_code, "codex": count_codex, "gemini-cli": count_gemini_cli, "opencode": count_opencode,
         "pi": count_pi}


# ---- The tables ----

class Store:
    def __init__(self, command):
        self.command, self.folder = command, tempfile.mkdtemp(prefix="annal-count-")

    def run(self, *words):
        return subprocess.run([self.command, "--store", self.folder + "/store", *words], capture_output=True, check=True,
                              text=True).stdout

    def sql(self, query):
        return [json.loads(line) for line in self.run("sql", "--json", query).splitlines()]

    def take(self, kind, path):
        shutil.rmtree(self.folder + "/store", ignore_errors=True)
        self.run("import", kind, path)


TABLES = """
SELECT (SELECT title FROM sessions ORDER BY id LIMIT 1) AS title,
       (SELECT count(*) FROM tool_calls) AS calls, (SELECT count(*) FROM tool_calls WHERE status <> 'called') AS results,
       (SELECT count(*) FROM tool_calls WHERE status = 'failed') AS failed,
       (SELECT t.status FROM turns t WHERE session_id = (SELECT min(id) FROM sessions) ORDER BY sequence DESC LIMIT 1) AS end,
       (SELECT min(created_at) FROM sessions) AS first, (SELECT max(last_activity_at) FROM sessions) AS last,
       sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cached_input_tokens) AS cached,
       sum(cache_write_tokens) AS written, sum(cost_microusd) / 1e6 AS cost FROM usage_costs"""


def words(text):
    return " ".join((text or "").split()).rstrip("\u2026").strip()


def is_title(count, title):
    if count.own_title:
        return words(count.own_title).startswith(words(title)) and title is not None
    said = [words(re.sub(r"<[^>]*>", " ", s)) for s in count.said]
    return title is None and not any(said) or title is not None and any(words(title) in s for s in said)


def same_time(said, counted):
    """To the millisecond, however many digits they have."""
    a, b = ((t or "").rstrip("Z").ljust(20, ".").ljust(23, "0")[:23] for t in (said, counted))
    return a == b


def compare(count, row, prices):
    """By column: None if they agree or the log says nothing, else both."""
    cost = count.cost(prices)
    times = sorted(count.times)
    pairs = {"calls": (len(count.calls), row["calls"]), "results": (len(count.results & count.calls), row["results"]),
             "failed": (len(count.failed & count.calls), row["failed"]), "end": (count.end, row["end"]),
             "tokens": (count.tokens(), tuple(row[n] or 0 for n in ("input", "output", "cached", "written")))}
    wrong = {name: pair for name, pair in pairs.items() if pair[0] != pair[1] and pair[0] is not None}
    if not is_title(count, row["title"]):
        wrong["title"] = (count.own_title or count.said[:2], row["title"])
    if (cost is None) != (row["cost"] is None) or cost is not None and abs(cost - row["cost"]) > 1e-4 * max(1, cost):
        wrong["cost"] = (cost, row["cost"])
    if times and not (same_time(row["first"], times[0]) and same_time(row["last"], times[-1])):
        wrong["times"] = ((times[0], times[-1]), (row["first"], row["last"]))
    return wrong


def main():
    store, found, differ = Store(sys.argv[1]), {}, []
    for kind, count in KINDS.items():
        logs = [path for top in sys.argv[2:] if os.path.isdir(os.path.join(top, kind))
                for path, _ in logs_of(os.path.join(top, kind)) if os.path.getsize(path) > 0]
        right = dict.fromkeys(COLUMNS, 0)
        for path in logs:
            store.take(kind, path)
            prices = store.sql("SELECT * FROM list_prices")
            wrong = compare(count(plain(read(path))), store.sql(TABLES)[0], prices)
            differ += [f"{path}: {name}: counted {a!r:.200}, tables {b!r:.200}" for name, (a, b) in wrong.items()]
            for name in COLUMNS:
                right[name] += name not in wrong
        found[kind] = (len(logs), right)
    shutil.rmtree(store.folder)
    print(f"{'kind':12} {'logs':>4} " + " ".join(f"{name:>7}" for name in COLUMNS))
    for kind, (logs, right) in found.items():
        print(f"{kind:12} {logs:4} " + " ".join(f"{right[name]:7}" for name in COLUMNS))
    print("\n".join(differ))
    return 1 if differ or not any(logs for logs, _ in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
