#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""resume.py ANNAL MODULES KIND=PATH...: the agents themselves resume what annal handoff wrote.

MODULES is a node_modules directory with the packages of package.json. Each agent runs in a home directory of its own
with the command that annal printed, a prompt, and a server on the loopback interface in the place of its model. The
request that the server gets must contain all texts, calls and results of the session, in order. roundtrip.py says what
a session contains.
"""
import http.server, json, os, re, shlex, subprocess, sys, tempfile, threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from roundtrip import as_input, as_output, conversation, run


class Model(http.server.BaseHTTPRequestHandler):
    """Keeps the longest request, and answers that it cannot."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("utf-8", "replace")
        self.server.longest = max(self.server.longest, body, key=len)
        self.answer(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "no model", "code": 400}})

    def do_GET(self):
        self.answer(200, {"data": [], "models": []})

    def answer(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def asked(body):
    """The request of any of the four interfaces as texts, calls and results, in order."""
    items = []

    def content(value, thoughts=False):
        for block in [value] if isinstance(value, (str, dict)) else value or []:
            kind = block.get("type") if isinstance(block, dict) else "text"
            if kind == "tool_use":
                items.append(("call", block["name"], as_input(block["input"])))
            elif kind == "tool_result":
                items.append(("result", as_output(block.get("content"))))
            elif isinstance(block, dict) and "functionCall" in block:
                items.append(("call", block["functionCall"]["name"], as_input(block["functionCall"].get("args"))))
            elif isinstance(block, dict) and "functionResponse" in block:
                items.append(("result", as_output([block])))
            else:
                text = block if isinstance(block, str) else block.get("text")
                items.append(("text", text)) if isinstance(text, str) else None

    for message in body.get("input") or body.get("messages") or body.get("contents") or []:
        kind = message.get("type")
        if kind in ("function_call", "custom_tool_call"):
            items.append(("call", message["name"], as_input(message.get("arguments", message.get("input")))))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            items.append(("result", as_output(message["output"])))
        elif message.get("role") == "tool":
            items.append(("result", as_output(message["content"])))
        else:
            content(message.get("content") or message.get("parts"))
            for call in message.get("tool_calls") or []:
                items.append(("call", call["function"]["name"], as_input(call["function"]["arguments"])))
    return items


# Claude Code gives its model old calls under the new name of the tool.
RENAMED = {"Task": "Agent"}


def squeeze(text):
    """A text as agents send it: they replace or drop half surrogate pairs."""
    return re.sub(r"\s+", " ", re.sub("[\ud800-\udfff\ufffd]", "", text)).strip()


def doubles(text):
    """JSON as programs in JavaScript read it: every number is a double."""
    return json.loads(text, parse_int=float)


def missing(items, request, longest):
    """Find the first call or text that the request lacks, or has in another order, or the first shorter result that it lacks."""
    at, wanted = 0, []
    results = [squeeze(item[1]) for item in request if item[0] == "result"]
    for item in items:
        if item[0] == "call":
            wanted.append(item[:3])
            if item[3] is not None and len(item[3][0]) < longest and not any(squeeze(item[3][0]) in text for text in results):
                return ["result", item[3][0]]
        elif item[1] == "text":
            wanted.append(item[1:])
    for item in wanted:
        while at < len(request):
            other = request[at]
            if item[0] == "text" and other[0] == "text" and squeeze(item[1]) in squeeze(other[1]):
                break
            if item[0] == "call" and other[0] == "call" and other[1] in (item[1], RENAMED.get(item[1])) and doubles(other[2]) == doubles(item[2]):
                at += 1
                break
            at += 1
        else:
            return item
    return None


def write(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(value if isinstance(value, str) else json.dumps(value))


def prepare(target, home, project, url, modules):
    """Settings that put the server in the place of the model; the words of the agent's command, and its variables."""
    binary = lambda name: os.path.join(modules, name)
    if target == "claude-code":
        return {"claude": [binary("@anthropic-ai/claude-agent-sdk-linux-x64/claude")]}, ["-p", "hi"], {
            "ANTHROPIC_API_KEY": "sk-ant-none", "ANTHROPIC_BASE_URL": url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    if target == "codex":
        write(home + "/.codex/config.toml", 'model_provider = "none"\nmodel = "gpt-5.5"\n[model_providers.none]\nname = "none"\n'
              'base_url = "%s/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\nrequest_max_retries = 0\nstream_max_retries = 0\n' % url)
        return {"codex": [binary("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"), "exec",
                          "--skip-git-repo-check"]}, ["hi"], {"OPENAI_API_KEY": "none"}
    if target == "gemini-cli":
        write(home + "/.gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}})
        return {"gemini": ["node", binary(".bin/gemini"), "--skip-trust"]}, ["-p", "hi"], {
            "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}
    if target == "opencode":
        write(project + "/opencode.json", {"provider": {"none": {
            "npm": "@ai-sdk/openai-compatible", "name": "none", "options": {"baseURL": url + "/v1", "apiKey": "none"},
            "models": {"m": {"name": "m", "limit": {"context": 9000000, "output": 1000}}}}}})
        return {"opencode": [binary("opencode-linux-x64/bin/opencode")]}, ["run", "-m", "none/m", "hi"], {}
    write(home + "/.pi/agent/models.json", {"providers": {"none": {
        "baseUrl": url + "/v1", "apiKey": "none", "api": "openai-completions", "models": [{
            "id": "m", "name": "m", "reasoning": False, "input": ["text", "image"], "contextWindow": 9000000, "maxTokens": 1000,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}})
    return {"pi": ["node", binary(".bin/pi"), "--provider", "none", "--model", "m"]}, ["-p", "hi"], {}


def resume(annal, modules, store, session, target, room):
    home, project = os.path.join(room, "home"), os.path.join(room, "project")
    os.makedirs(home)
    os.makedirs(project)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.longest = "{}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": room, "LANG": "C.UTF-8"}
    agents, prompt, more = prepare(target, home, project, "http://127.0.0.1:%d" % server.server_port, modules)
    args = ["--to-path", project + "/session.json"] if target == "opencode" else []
    said = json.loads(run(annal, store, "handoff", session, "--to", target, "--directory", project, "--json", *args, env=env))
    output = b""
    for command in said["resume"].split(" && ")[1:]:
        words = shlex.split(command)
        words = agents[words[0]] + (prompt if target == "opencode" and "--session" in words else []) + words[1:] \
            + (prompt if target != "opencode" else [])
        try:
            output = subprocess.run(words, cwd=project, env={**env, **more}, stdin=subprocess.DEVNULL, timeout=120,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        except subprocess.TimeoutExpired as late:
            output = late.stdout or b"did not end in 120 s"
    server.shutdown()
    server.server_close()
    return asked(json.loads(server.longest)), output.decode("utf-8", "replace")


def main():
    annal, modules, args = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    targets = os.environ.get("TARGETS", "claude-code codex gemini-cli opencode pi").split()
    faults, counts = 0, {target: [0, 0] for target in targets}
    with tempfile.TemporaryDirectory() as room:
        for n, arg in enumerate(args):
            kind, path = arg.split("=", 1)
            store = os.path.join(room, "store%d" % n)
            run(annal, store, "import", kind, path)
            ids = [json.loads(line)["id"] for line in run(annal, store, "sql", "--json", "SELECT id FROM sessions "
                   "WHERE parent_session_id IS NULL ORDER BY id").splitlines()]
            for session in ids:
                items, _ = conversation(annal, store, session)
                if not any(item[:2] == ["user", "text"] for item in items):
                    continue
                for target in targets:
                    request, output = resume(annal, modules, store, session, target, os.path.join(room, "%s-%d-%s" % (target, n, session)))
                    wanted = items
                    if target == "gemini-cli":  # it gives such texts of its user to no model
                        wanted = [i for i in items if i[0] != "user" or not i[2].strip().startswith(("/", "?", "<session_context>"))]
                    if target == "codex":  # it skips a line with half a surrogate pair
                        wanted = [[*i[:3], None] if i[0] == "call" and i[3] and re.search("[\ud800-\udfff]", i[3][0]) else i for i in items]
                    lost = missing(wanted, request, 1000 if target == "gemini-cli" else 1e9)  # it masks old long results itself
                    counts[target][0] += 1
                    counts[target][1] += len(items)
                    if lost is not None:
                        print("%s, session %s: %s gave its model no %.300r\n  %d items asked; %s" % (
                            path, session, target, lost, len(request), output[-600:].replace("\n", "\n  ")))
                        faults += 1
    for target in targets:
        print("%s: %d sessions, %d texts, images and calls" % (target, *counts[target]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
