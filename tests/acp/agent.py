#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""agent.py [--loads] [--echo] [--copy FILE]: an agent of the Agent Client Protocol for tests, which does what its prompts ask for.

A prompt is words: `say N` answers in N chunks, `think` thinks, `call` calls a tool that works, `fail` one that does not,
`plan` shows a plan, `cost` tells what the session cost so far, `title` gives it a title, `ask` asks for permission and
waits for the answer, `wrong` writes lines that are not messages, `long N` writes a line of N bytes, `die N` ends the agent
with status N, `error` answers with an error, `stop` ends the turn as cancelled. --loads: it can list and load sessions.
--refuse: it refuses the first new session. --echo: it writes what it reads. --copy: it copies what it reads into FILE. The
id of its session is $FAKE_SESSION, or fake-1."""

import json
import os
import sys

out = sys.stdout.buffer
count = 0


def send(message):
    out.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
    out.flush()


def update(session, update_kind, **members):
    send({"jsonrpc": "2.0", "method": "session/update",
          "params": {"sessionId": session, "update": {"sessionUpdate": update_kind, **members}}})


def text(words):
    return {"type": "text", "text": words}


def say(session, number):
    for i in range(number):
        update(session, "agent_message_chunk", content=text(f"word{i} "), messageId=f"m{count}")


def call(session, works):
    global count
    count += 1
    name = f"call_{count}"
    update(session, "tool_call", toolCallId=name, title="Run the tests", kind="execute", status="pending")
    update(session, "tool_call_update", toolCallId=name, rawInput={"command": "make test"})
    update(session, "tool_call_update", toolCallId=name, status="in_progress")
    update(session, "tool_call_update", toolCallId=name, status="completed" if works else "failed",
           content=[{"type": "content", "content": text("12 passed" if works else "ValueError: walrus")}])


def ask(session):
    send({"jsonrpc": "2.0", "id": 900, "method": "session/request_permission",
          "params": {"sessionId": session, "toolCall": {"toolCallId": "asked", "title": "Delete", "kind": "delete",
                                                        "rawInput": {"path": "/tmp/x"}},
                     "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]}})
    return read_line()


def act(session, words):
    """Returns why the turn ended."""
    global count
    count += 1
    reason, i = "end_turn", 0
    while i < len(words):
        word = words[i]
        number = int(words[i + 1]) if i + 1 < len(words) and words[i + 1].isdigit() else 0
        if word == "say":
            say(session, number)
        elif word == "think":
            update(session, "agent_thought_chunk", content=text("hm, "))
            update(session, "agent_thought_chunk", content=text("a walrus"))
        elif word in ("call", "fail"):
            call(session, word == "call")
        elif word == "plan":
            update(session, "plan", entries=[{"content": "count walruses", "priority": "high", "status": "pending"}])
        elif word == "cost":
            update(session, "usage_update", used=100, size=1000, cost={"amount": 0.25 * count, "currency": "USD"})
        elif word == "title":
            update(session, "session_info_update", title="Count the walruses")
        elif word == "ask":
            ask(session)
        elif word == "wrong":
            out.write(b"not a message\n\xff\xfe\n\n{\"half\": \n[1,2]\n")
            out.flush()
        elif word == "long":
            out.write(b"x" * number + b"\n")
            out.flush()
        elif word == "die":
            out.write(b"the end without a line break")
            out.flush()
            os._exit(number)
        elif word == "stop":
            reason = "cancelled"
        elif word == "error":
            raise ValueError("the model is tired")
        i += 1
    return reason


def answer(message, loads):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        able = {"loadSession": True, "sessionCapabilities": {"list": {}}} if loads else {"promptCapabilities": {"image": True}}
        return {"protocolVersion": 1, "agentCapabilities": able, "agentInfo": {"name": "fake", "version": "1"}, "authMethods": []}
    if method == "session/new" and "--refuse" in sys.argv:
        sys.argv.remove("--refuse")
        raise ValueError("not now")
    if method == "session/new":
        return {"sessionId": os.environ.get("FAKE_SESSION", "fake-1"), "configOptions": [
            {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "fake-1", "options": []}]}
    if method == "session/load" and loads:
        update(params["sessionId"], "user_message_chunk", content=text("an old prompt"))
        update(params["sessionId"], "agent_message_chunk", content=text("an old answer"))
        return {}
    if method == "session/list" and loads:
        return {"sessions": [{"sessionId": "own-1", "cwd": "/own"}]}
    if method == "session/prompt":
        words = " ".join(block.get("text", "") for block in params["prompt"]).split()
        return {"stopReason": act(params["sessionId"], words), "usage": {"totalTokens": 30, "inputTokens": 20, "outputTokens": 10}}
    raise KeyError(method)


def read_line():
    line = sys.stdin.buffer.readline()
    if "--copy" in sys.argv:
        with open(sys.argv[sys.argv.index("--copy") + 1], "ab") as copy:
            copy.write(line)
    if "--echo" in sys.argv:
        out.write(line)
        out.flush()
    return line


def main():
    loads = "--loads" in sys.argv
    while line := read_line():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if "--echo" in sys.argv or not isinstance(message, dict) or "method" not in message or "id" not in message:
            continue
        try:
            send({"jsonrpc": "2.0", "id": message["id"], "result": answer(message, loads)})
        except (KeyError, ValueError) as error:
            send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": str(error)}})


main()
