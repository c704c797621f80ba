# SPDX-License-Identifier: Apache-2.0
"""The core reads content of frameworks: titles, turns, messages, calls, tokens, ends, search."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import libannal as annal


def told(store: annal.Store, session: str) -> dict[str, Any]:
    """The rows of a session in the tables."""
    (row,) = store.sql(
        "SELECT agent_id, title, total_turns, input_tokens, output_tokens, status FROM sessions WHERE id = ?1", session
    ).dicts()
    turns = [status for (status,) in store.sql("SELECT status FROM turns WHERE session_id = ?1 ORDER BY seq", session)]
    calls = list(store.sql("SELECT tool, status FROM tool_calls WHERE session_id = ?1 ORDER BY seq", session))
    said = list(
        store.sql(
            "SELECT data->>'$.role', data->>'$.content' FROM events"
            " WHERE session_id = ?1 AND type = 'message.added' ORDER BY seq",
            session,
        )
    )
    return {**row, "turns": turns, "calls": calls, "said": said}


def hits(store: annal.Store, word: str) -> list[str]:
    return sorted(hit.type for hit in store.search(word))


ASKED, ANSWERED = "How far does the pelican fly today, and why?", "The pelican flies as far as the heron does."


def test_openai_agents(path: Path) -> None:
    pytest.importorskip("agents")
    from agents import Agent, RunConfig, Runner, function_tool
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
    from openai.types.responses.response_reasoning_item import ResponseReasoningItem, Summary

    from libannal.openai_agents import AnnalSession

    class Scripted(Model):
        async def get_response(self, *arguments: Any, **options: Any) -> ModelResponse:
            given = options["input"]
            answered = isinstance(given, list) and any(item.get("type") == "function_call_output" for item in given)
            text = ResponseOutputText(annotations=[], text=ANSWERED, type="output_text")
            message = ResponseOutputMessage(
                id="m1", content=[text], role="assistant", status="completed", type="message"
            )
            thought = ResponseReasoningItem(
                id="rs1", type="reasoning", summary=[Summary(text="Look it up.", type="summary_text")]
            )
            call = ResponseFunctionToolCall(
                call_id="call_1", name="distance", arguments='{"bird":"cormorant"}', type="function_call", id="fc1"
            )
            return ModelResponse(output=[message] if answered else [thought, call], usage=Usage(), response_id=None)

        def stream_response(self, *arguments: Any, **options: Any) -> Any:
            raise NotImplementedError

    @function_tool
    def distance(bird: str) -> str:
        return f"{bird}: 40 leagues"

    async def run(store: annal.Store, text: str) -> list[Any]:
        agent = Agent(name="birds", model=Scripted(), tools=[distance])
        session = AnnalSession("user", store)
        await Runner.run(agent, text, session=session, run_config=RunConfig(tracing_disabled=True))
        return list(await session.get_items())

    with annal.open(path) as store:
        items = asyncio.run(run(store, ASKED))
        assert [item.get("type", item.get("role")) for item in items] == [
            "user",
            "reasoning",
            "function_call",
            "function_call_output",
            "message",
        ]
        assert items[0] == {"content": ASKED, "role": "user"}
        assert items[1]["summary"] == [{"text": "Look it up.", "type": "summary_text"}] and "role" not in items[1]
        assert items[2]["name"] == "distance" and items[2]["arguments"] == '{"bird":"cormorant"}'
        assert not {"tool", "input", "item"} & {name for item in items for name in item}
    with annal.open(path) as store:
        id_ = annal.name("openai-agents", "user")
        found = told(store, id_)
        assert found["agent_id"] == "openai-agents" and found["title"] == ASKED
        assert found["turns"] == ["completed"] and found["calls"] == [("distance", "returned")]
        assert [role for role, _ in found["said"]] == ["user", "assistant", "assistant"]
        assert hits(store, "pelican") == ["message.added", "message.added"]
        assert hits(store, "leagues") == ["tool.returned"] and hits(store, "cormorant") == ["tool.called", "tool.returned"]
        assert asyncio.run(AnnalSession("user", store).get_items()) == items

        session = AnnalSession("user", store)
        asyncio.run(session.add_items([{"role": "user", "content": "no"}]))
        asyncio.run(session.pop_item())
        assert told(store, id_)["turns"] == ["completed", "rolled_back"]


def test_items_of_openai_come_back_unchanged(path: Path) -> None:
    pytest.importorskip("agents")
    from libannal.openai_agents import AnnalSession

    items: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}], "id": "msg_7"},
        {"role": "user", "content": "x", "id": None},
        {"role": "user", "content": "x", "id": "~mine"},
        {"role": "user", "content": "x", "item": True},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "tool": "mine"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}", "input": 1},
        {"type": "custom_tool_call", "call_id": "c3", "name": "g", "input": "text"},
        {"type": "shell_call", "call_id": "c4", "action": {"commands": ["ls"]}},
        {"type": "function_call_output", "call_id": "c1", "output": "y" * 200_000},
        {"type": "function_call_output", "call_id": "c4", "output": [{"type": "input_text", "text": "b"}]},
        {"type": "reasoning", "id": "r", "summary": [], "content": [], "encrypted_content": "e"},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "s"}], "role": "assistant"},
        {"type": "web_search_call", "id": "w", "action": {"query": "q"}, "status": "completed"},
        {"type": "item_reference", "id": "i"},
        {},
    ]
    for level in ("sync", "batch"):
        with annal.open(path) as store:
            session = AnnalSession(f"user {level}", store, level=level)
            asyncio.run(session.add_items(items))
            assert asyncio.run(session.get_items()) == items
        with annal.open(path) as store:
            session = AnnalSession(f"user {level}", store)
            assert asyncio.run(session.get_items()) == items
            for item in reversed(items):
                assert asyncio.run(session.pop_item()) == item


def test_items_of_an_earlier_version_are_read(store: annal.Store) -> None:
    pytest.importorskip("agents")
    from libannal.openai_agents import AnnalSession

    old = store.session(annal.name("openai-agents", "user"))
    old.append("session.named", {"name": ["openai-agents", "user"]})
    old.append("item.added", {"role": "user", "content": "old"})
    session = AnnalSession("user", store)
    asyncio.run(session.add_items([{"role": "assistant", "content": "new"}]))
    assert [item["content"] for item in asyncio.run(session.get_items())] == ["old", "new"]  # type: ignore[typeddict-item]


def graph(saver: Any) -> Any:
    from langchain_core.messages import AIMessage, ToolMessage
    from langgraph.graph import END, START, MessagesState, StateGraph

    def model(state: Any) -> dict[str, Any]:
        used = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120, "input_token_details": {"cache_read": 60}}
        if isinstance(state["messages"][-1], ToolMessage):
            return {"messages": [AIMessage(ANSWERED, usage_metadata=used, id=f"ai-{len(state['messages'])}")]}  # type: ignore[arg-type]
        call = {"name": "distance", "args": {"bird": "cormorant"}, "id": f"call_{len(state['messages'])}"}
        return {"messages": [AIMessage("", tool_calls=[call], usage_metadata=used, id=f"ai-{len(state['messages'])}")]}  # type: ignore[arg-type, list-item]

    def tools(state: Any) -> dict[str, Any]:
        last: Any = state["messages"][-1]
        text = f"{last.tool_calls[0]['args']['bird']}: 40 leagues " * 5
        return {"messages": [ToolMessage(text, tool_call_id=last.tool_calls[0]["id"])]}

    def after(state: Any) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", tools)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", after)
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=saver)


def test_langgraph(path: Path) -> None:
    pytest.importorskip("langgraph")
    from libannal.langgraph import AnnalSaver

    thread: Any = {"configurable": {"thread_id": "t"}}
    with annal.open(path) as store:
        before = graph(AnnalSaver(store)).invoke({"messages": [("user", ASKED)]}, thread)["messages"]
        assert graph(AnnalSaver(store)).get_state(thread).values["messages"] == before
    with annal.open(path) as store:
        id_ = annal.name("langgraph", "t")
        found = told(store, id_)
        assert found["agent_id"] == "langgraph" and found["title"] == ASKED
        assert (found["input_tokens"], found["output_tokens"]) == (200, 40)
        assert found["turns"] == ["completed"] and found["calls"] == [("distance", "returned")]
        assert found["said"] == [("user", ASKED), ("assistant", ANSWERED)]
        assert hits(store, "pelican") == ["message.added", "message.added"]
        assert hits(store, "leagues") == ["tool.returned"] and hits(store, "cormorant") == ["tool.called", "tool.returned"]
        # A checkpoint refers to the text.
        journal = b"".join(event.json for event in store.session(id_))
        assert journal.count(b"flies as far") == 1  # and in base64 in what the task wrote

        saver = AnnalSaver(store)
        assert graph(saver).get_state(thread).values["messages"] == before
        history = list(graph(saver).get_state_history(thread))
        assert [len(state.values.get("messages", [])) for state in history] == [4, 3, 2, 1, 0]
        saver.copy_thread("t", "copy")
        graph(saver).invoke({"messages": [("user", "And the gull?")]}, {"configurable": {"thread_id": "copy"}})
        again = graph(AnnalSaver(store)).get_state({"configurable": {"thread_id": "copy"}}).values["messages"]
        assert again[:4] == before and len(again) == 8
        saver.delete_thread("t")
        assert graph(AnnalSaver(store)).get_state({"configurable": {"thread_id": "copy"}}).values["messages"] == again
        assert told(store, annal.name("langgraph", "copy"))["turns"] == ["completed", "completed"]


def test_langgraph_keeps_messages_that_json_cannot_say(store: annal.Store) -> None:
    pytest.importorskip("langgraph")
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.base import empty_checkpoint

    from libannal.langgraph import AnnalSaver

    odd: list[Any] = [
        HumanMessage([{"type": "image", "data": b"\x00\xff"}], id="h1"),
        AIMessage("x" * 100, id="a1", tool_calls=[{"name": "f", "args": {"set": {1, 2}}, "id": "c"}]),
        {"role": "user", "content": {"any": float("nan")}},
        {"role": "user", "content": "no id, " * 20},
        {"role": "user", "content": "no id, " * 20},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "d", "function": {"name": "g", "arguments": "{}"}}]},
    ]
    saver = AnnalSaver(store)
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for count in range(1, len(odd) + 1):
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": odd[:count]}
        checkpoint["channel_versions"] = {"messages": count}
        config = saver.put(config, checkpoint, {}, {"messages": count})
        saver.put_writes(config, [("messages", odd[count - 1])], f"task {count}")
    for reader in (saver, AnnalSaver(store)):
        found = [item.checkpoint["channel_values"]["messages"] for item in reader.list(config_of("t"))]
        assert [str(messages) for messages in found] == [str(odd[:count]) for count in range(len(odd), 0, -1)]
    assert told(store, annal.name("langgraph", "t"))["calls"] == [("f", "called"), ("g", "called")]


def config_of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def test_claude_agent(path: Path) -> None:
    pytest.importorskip("claude_agent_sdk")
    from libannal.claude_agent import AnnalSessionStore

    key: Any = {"project_key": "/home/me", "session_id": "5f4c"}
    used = {"input_tokens": 10, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 10, "output_tokens": 5}

    def line(uuid: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
        message = {"role": kind, "content": content, **more}
        return {"type": kind, "uuid": uuid, "sessionId": "5f4c", "cwd": "/home/me", "message": message}

    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "fly cormorant"}}
    entries = [
        {"type": "mode", "mode": "normal"},
        line("u1", "user", ASKED),
        line("u2", "assistant", [{"type": "thinking", "thinking": "hm"}], id="msg_1", model="claude-x", usage=used),
        line("u3", "assistant", [{"type": "text", "text": "So:"}, call], id="msg_1", model="claude-x", usage={**used, "output_tokens": 9}),
        line("u4", "user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "40 leagues"}]),
        line("u5", "assistant", [{"type": "text", "text": ANSWERED}], id="msg_2", model="claude-x", usage=used, stop_reason="end_turn"),
    ]
    with annal.open(path) as store:
        for entry in entries:
            asyncio.run(AnnalSessionStore(store).append(key, [entry]))  # type: ignore[list-item]
        asyncio.run(AnnalSessionStore(store).append({**key, "subpath": "sub"}, entries))  # type: ignore[typeddict-item, arg-type]
    with annal.open(path) as store:
        assert asyncio.run(AnnalSessionStore(store).load(key)) == entries
        id_ = annal.name("claude-agent", "/home/me", "5f4c")
        sub = annal.name("claude-agent", "/home/me", "5f4c", "sub")
        assert asyncio.run(AnnalSessionStore(store).load({**key, "subpath": "sub"})) == entries  # type: ignore[typeddict-item]
        for session in (id_, sub):
            found = told(store, session)
            assert found["title"] == ASKED and (found["input_tokens"], found["output_tokens"]) == (200, 14)
            assert found["turns"] == ["completed"] and found["calls"] == [("Bash", "returned")]
            assert [role for role, _ in found["said"]] == ["user", "assistant", "assistant", "assistant"]
        assert store.sql("SELECT parent_session_id FROM sessions WHERE id = ?1", sub)[0] == (id_,)
        assert hits(store, "pelican") == ["message.added"] * 4 and hits(store, "leagues") == ["tool.returned"] * 2


def test_a_transcript_has_the_events_of_the_vectors(store: annal.Store) -> None:
    """meaning.json holds for the Node package, too."""
    pytest.importorskip("claude_agent_sdk")
    from libannal.claude_agent import AnnalSessionStore

    vectors = json.loads((Path(__file__).parent / "meaning.json").read_text())
    for number, vector in enumerate(vectors["claude-agent"]):
        sessions, key = AnnalSessionStore(store), {"project_key": "p", "session_id": f"s{number}"}
        for lines in vector["appends"]:
            asyncio.run(sessions.append(key, lines))  # type: ignore[arg-type]
        session = store.session(annal.name("claude-agent", "p", f"s{number}"))
        assert [[event.type, event.data] for event in session.events(2)] == vector["events"]


def test_what_the_node_package_wrote_is_read(store: annal.Store) -> None:
    pytest.importorskip("agents")
    pytest.importorskip("langgraph")
    from libannal.langgraph import _Thread
    from libannal.openai_agents import AnnalSession

    items = store.session(annal.name("openai-agents", "node"))
    items.append("session.named", {"name": ["openai-agents", "node"]})
    names = {"call_id": "callId", "tool": "name", "input": "arguments"}
    items.append("tool.called", {"call_id": "c", "tool": "f", "input": "{}", "type": "function_call", "item": names})
    items.append("message.added", {"id": "~1", "role": "assistant", "content": [], "type": "reasoning", "item": {"role": None}})
    session: Any = AnnalSession("node", store)
    assert asyncio.run(session.get_items()) == [
        {"callId": "c", "name": "f", "arguments": "{}", "type": "function_call"},
        {"type": "reasoning", "content": []},
    ]
    thread = _Thread(store.session("t"), ("langgraph", "t"))
    thread.session.append_many([thread.naming(), ("message.added", {"id": "m", "role": "user", "content": 'a "b"\n'})])
    thread.refresh()
    assert thread.unpack(["WyI=", [2, 0, "json"], "Il0="]) == json.dumps(['a "b"\n']).encode()


def test_google_adk(path: Path) -> None:
    pytest.importorskip("google.adk")
    from google.adk.events.event import Event
    from google.genai import types

    from libannal.google_adk import AnnalSessionService

    used = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=100, candidates_token_count=15, thoughts_token_count=5, cached_content_token_count=60
    )
    call = types.FunctionCall(id="c1", name="distance", args={"bird": "cormorant"})
    returned = types.FunctionResponse(id="c1", name="distance", response={"result": "40 leagues"})
    events = [
        Event(author="user", content=types.Content(role="user", parts=[types.Part(text=ASKED)])),
        Event(author="birds", content=types.Content(role="model", parts=[types.Part(text="So:"), types.Part(function_call=call)]), usage_metadata=used, model_version="gemini-x"),
        Event(author="birds", content=types.Content(role="user", parts=[types.Part(function_response=returned)])),
        Event(author="birds", content=types.Content(role="model", parts=[types.Part(text=ANSWERED)]), usage_metadata=used, model_version="gemini-x"),
    ]

    async def main() -> None:
        with annal.open(path) as store:
            service = AnnalSessionService(store)
            session = await service.create_session(app_name="app", user_id="u", session_id="s")
            for event in events:
                await service.append_event(session, event)
        with annal.open(path) as store:
            found = await AnnalSessionService(store).get_session(app_name="app", user_id="u", session_id="s")
            assert found is not None and [event.model_dump() for event in found.events] == [event.model_dump() for event in events]

    asyncio.run(main())
    with annal.open(path) as store:
        rows = told(store, annal.name("google-adk", "app", "u", "s"))
        assert rows["agent_id"] == "app" and rows["title"] == ASKED
        assert (rows["input_tokens"], rows["output_tokens"]) == (200, 40)
        assert rows["turns"] == ["completed"] and rows["calls"] == [("distance", "returned")]
        assert rows["said"] == [("user", ASKED), ("assistant", "So:"), ("assistant", ANSWERED)]
        assert hits(store, "pelican") == ["message.added"] * 2 and hits(store, "leagues") == ["tool.returned"]


def test_pydantic_ai(path: Path) -> None:
    pytest.importorskip("pydantic_ai_harness")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models.test import TestModel
    from pydantic_ai_harness.step_persistence import StepPersistence, continue_run

    from libannal.pydantic_ai import AnnalStepStore

    async def main() -> None:
        with annal.open(path) as store:
            steps = AnnalStepStore(store)
            agent = Agent(TestModel(), name="birds", capabilities=[StepPersistence(store=steps, agent_name="birds")])

            @agent.tool_plain
            def distance(bird: str) -> str:
                if not store.sql("SELECT 1 FROM dangling"):
                    raise AssertionError("the call is recorded before it runs")
                return "40 leagues"

            await agent.run(ASKED)
            (first,) = await steps.list_runs()
            history: list[ModelMessage] = await continue_run(steps, run_id=first.run_id)
            await agent.run("And the gull?", message_history=history)
        with annal.open(path) as store:
            found = told(store, annal.name("pydantic-ai", first.run_id))
            assert found["agent_id"] == "birds" and found["title"] == ASKED and found["status"] == "ended"
            assert found["turns"] == ["completed"] and found["calls"] == [("distance", "returned")]
            assert found["input_tokens"] > 0 and [role for role, _ in found["said"]] == ["user", "assistant"]
            # The history of the second run contains it.
            assert hits(store, "pelican") == ["message.added", "snapshot.saved"]
            assert await continue_run(AnnalStepStore(store), run_id=first.run_id) == history
            (second,) = [run for run in await AnnalStepStore(store).list_runs() if run.run_id != first.run_id]
            other = told(store, annal.name("pydantic-ai", second.run_id))
            assert other["title"] == "And the gull?" and len(other["said"]) == 2

    asyncio.run(main())


def test_a_failed_run_of_pydantic_ai_has_ended_as_failed(store: annal.Store) -> None:
    pytest.importorskip("pydantic_ai_harness")
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel
    from pydantic_ai_harness.step_persistence import StepPersistence

    from libannal.pydantic_ai import AnnalStepStore

    agent = Agent(TestModel(), capabilities=[StepPersistence(store=AnnalStepStore(store))])

    @agent.tool_plain
    def broken() -> str:
        raise RuntimeError("no wings")

    with pytest.raises(RuntimeError):
        asyncio.run(agent.run(ASKED))
    (session,) = store.sessions()
    found = told(store, session)
    assert found["status"] == "failed" and found["turns"] == ["failed"] and found["calls"] == [("broken", "failed")]


def test_an_exporter_beside_an_adapter_counts_nothing_twice(store: annal.Store) -> None:
    pytest.importorskip("opentelemetry.sdk")
    pytest.importorskip("langgraph")
    pytest.importorskip("agents")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    from libannal.langgraph import AnnalSaver
    from libannal.openai_agents import AnnalSession
    from libannal.opentelemetry import AnnalSpanExporter

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(AnnalSpanExporter(store)))
    tracer = provider.get_tracer("test")
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.output.messages": f'[{{"role":"assistant","parts":[{{"type":"text","content":"{ANSWERED}"}}]}}]',
    }
    with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
        graph(AnnalSaver(store)).invoke({"messages": [("user", ASKED)]}, config_of("t"))
        for _ in range(2):
            with tracer.start_as_current_span("chat", attributes=chat):
                pass

    async def openai() -> None:
        session = AnnalSession("user", store)
        with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
            await session.get_items()
            with tracer.start_as_current_span("chat", attributes=chat):
                await session.add_items([{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWERED}])

    asyncio.run(openai())
    thread, items = annal.name("langgraph", "t"), annal.name("openai-agents", "user")
    assert store.sessions() == [thread, items]
    assert told(store, thread)["input_tokens"] == 200 and len(told(store, thread)["said"]) == 2
    # The SDK tells its sessions no tokens: the spans do.
    assert told(store, items)["input_tokens"] == 100 and len(told(store, items)["said"]) == 2
    assert store.query(types="turn.started").count() == 2
    assert store.query(types="import.record", sessions=thread).count() == 3
