# SPDX-License-Identifier: Apache-2.0
"""The exporter of OpenTelemetry's SDK."""

from __future__ import annotations

import json

import pytest

import libannal as annal

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402
from opentelemetry.trace import Status, StatusCode  # noqa: E402

from libannal.opentelemetry import AnnalSpanExporter  # noqa: E402


def test_spans_become_the_events_of_a_session(store: annal.Store) -> None:
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(AnnalSpanExporter(store)))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("test")
    asked = [{"role": "user", "parts": [{"type": "text", "content": "How much is 1 + 2?"}]}]
    talk = {"gen_ai.conversation.id": "talk-1"}
    with tracer.start_as_current_span("agent", attributes={**talk, "gen_ai.operation.name": "invoke_agent"}):
        for _ in range(2):  # the second call of the model repeats the input
            with tracer.start_as_current_span("chat", attributes=talk) as chat:
                chat.set_attribute("gen_ai.operation.name", "chat")
                chat.set_attribute("gen_ai.request.model", "m1")
                chat.set_attribute("gen_ai.input.messages", json.dumps(asked))
                chat.set_attribute("gen_ai.output.messages", '[{"role":"assistant","parts":[]}]')
                chat.set_attribute("gen_ai.usage.input_tokens", 12)
                chat.set_attribute("gen_ai.usage.output_tokens", 3)
        with tracer.start_as_current_span("tool", attributes=talk) as tool:
            tool.set_attribute("gen_ai.operation.name", "execute_tool")
            tool.set_attribute("gen_ai.tool.name", "add")
            tool.set_attribute("gen_ai.tool.call.id", "c1")
            tool.set_attribute("gen_ai.tool.call.arguments", '{"a":1,"b":2}')
            tool.set_status(Status(StatusCode.ERROR, "no"))
    with tracer.start_as_current_span("GET /"):
        pass

    session = store.session("talk-1")
    assert [event.type for event in session] == [
        "message.added",
        "message.added",
        "agent.turn.usage",
        "message.added",
        "agent.turn.usage",
        "tool.called",
        "tool.failed",
        "turn.started",
        "turn.completed",
    ]
    assert session[0].data["content"] == asked[0]["parts"] and session[0].data["role"] == "user"
    assert session[2].data["input_tokens"] == 12 and session[2].data["model"] == "m1"
    assert session[5].data["input"] == {"a": 1, "b": 2} and session[6].data["success"] is False
    (other,) = (each for each in store if each.id != "talk-1")
    assert other[0].type == "import.record" and other[0].data["extra"]["name"] == "GET /"
    assert store.sql("SELECT tool, status FROM tool_calls")[0] == ("add", "failed")

    # Spans that another exporter exports again are stored once.
    spans, before = kept.get_finished_spans(), [len(each) for each in store]
    assert AnnalSpanExporter(store).export(spans) == SpanExportResult.SUCCESS
    assert [len(each) for each in store] == before


def test_a_conversation_may_have_any_name(store: annal.Store) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(AnnalSpanExporter(store)))
    with provider.get_tracer("test").start_as_current_span("x", attributes={"session.id": "user 42/é"}):
        pass
    assert store.sessions() == [annal.name("otel", "user 42/é")]


def test_an_error_is_a_failure_of_the_export(store: annal.Store) -> None:
    provider, kept = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    with provider.get_tracer("test").start_as_current_span("x"):
        pass
    store.close()
    assert AnnalSpanExporter(store).export(kept.get_finished_spans()) == SpanExportResult.FAILURE
