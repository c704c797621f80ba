# SPDX-License-Identifier: Apache-2.0
"""An exporter of OpenTelemetry's SDK that writes spans into a store, without a network (the extra "opentelemetry").

    from libannal.opentelemetry import AnnalSpanExporter

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(AnnalSpanExporter(store)))

The events are the same as of `annal import otel`: a span of a tool is a call and its result; a span of a model is the
messages of its input that are new, its answer, and its tokens; a span of an agent is a turn. Others are import.record.
A session is the one in gen_ai.conversation.id or session.id, else the trace. Each event has an id, so that a span that
is exported again is stored once.

If an adapter of this package worked in the trace, its session has the messages, calls and turns already. Then the spans
are import.record events of that session; their tokens count if the framework does not report them to the adapter.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import StatusCode, format_span_id, format_trace_id

from ._errors import Conflict, Error, Invalid
from ._event import Draft
from ._json import dumps, loads
from ._names import name
from ._session import Session
from ._store import Store

_CLASSES = {
    **dict.fromkeys(("execute_tool", "tool"), "tool"),
    **dict.fromkeys(("chat", "text_completion", "generate_content", "call_llm", "llm", "generation"), "model"),
    **dict.fromkeys(("invoke_agent", "agent"), "agent"),
}
_CACHED = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cached_input_tokens")


class AnnalSpanExporter(SpanExporter):
    """Spans as events of a store, durable when `export()` returns. The caller keeps the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._asked: dict[str, set[bytes]] = {}  # by session: its messages

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write spans; `FAILURE` if a span cannot be written, as after an error of the disk."""
        try:
            with self._lock:
                for span in spans:
                    self._write(span)
        except Error:
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Everything that was exported is durable already."""
        return True

    def _session(self, attributes: Mapping[str, Any], trace: str) -> Session:
        given = str(attributes.get("gen_ai.conversation.id") or attributes.get("session.id") or trace)
        try:
            return self.store.session(given)
        except Invalid:
            return self.store.session(name("otel", given))

    def _write(self, span: ReadableSpan) -> None:
        context = span.get_span_context()
        if context is None:
            return
        attributes = dict(span.attributes or {})
        trace, key = format_trace_id(context.trace_id), format_span_id(context.span_id)
        told, counts_tokens = self.store._told_traces.get(context.trace_id, (None, False))
        session = self._session(attributes, trace) if told is None else self.store.session(told)
        extra = _span(span, attributes, trace, key)
        if told is None:
            found = self._events(span, attributes, f"{trace}.{key}", extra, session)
        else:
            begin, end = _times(span)
            found = [("import.record", {"kind": span.name, "extra": extra}, "begins", begin)]
            usage = {} if counts_tokens or _kind(attributes) != "model" else _usage(attributes)
            if usage:
                found.append(("agent.turn.usage", usage, "usage", end))
        drafts = [Draft(type_, data, id=f"{trace}.{key}.{suffix}", ts=ts) for type_, data, suffix, ts in found]
        try:
            session.append_many(drafts)
        except Conflict:  # some of them exist: append one after the other
            for draft in drafts:
                try:
                    session.append_many([draft])
                except Conflict:
                    pass  # the span was exported before, with other content

    def _events(
        self, span: ReadableSpan, attributes: dict[str, Any], key: str, extra: dict[str, Any], session: Session
    ) -> list[tuple[str, dict[str, Any], str, int]]:
        begin, end = _times(span)
        failed = span.status.status_code == StatusCode.ERROR
        kind = _kind(attributes)
        took = (end - begin) // 1000
        if kind == "tool":
            call = attributes.get("gen_ai.tool.call.id", key)
            called = {
                "call_id": call,
                "tool": attributes.get("gen_ai.tool.name", span.name),
                "input": _value(attributes, "gen_ai.tool.call.arguments", "input.value"),
                "extra": extra,
            }
            returned = {
                "call_id": call,
                "success": not failed,
                "output": _value(attributes, "gen_ai.tool.call.result", "output.value"),
                "duration_ms": took,
            }
            ended = "tool.failed" if failed else "tool.returned"
            return [("tool.called", called, "begins", begin), (ended, returned, "ends", end)]
        if kind == "agent":
            done: dict[str, Any] = {"turn_id": key, "timing": {"totalMs": took}}
            if failed:
                done["error"] = span.status.description or "error"
            ended = "turn.failed" if failed else "turn.completed"
            started = {"turn_id": key, "status": "running", "extra": extra}
            return [("turn.started", started, "begins", begin), (ended, done, "ends", end)]
        if kind != "model":
            return [("import.record", {"kind": span.name, "extra": extra}, "begins", begin)]

        answer = {
            "id": key,
            "role": "assistant",
            "content": _value(attributes, "gen_ai.output.messages", "output.value") or "",
            "model": _model(attributes),
            "extra": extra,
        }
        found = [*self._new(attributes, session, key, begin), ("message.added", answer, "begins", end)]
        usage = _usage(attributes)
        if usage:
            found.append(("agent.turn.usage", {"message_id": key, **usage}, "usage", end))
        return found

    def _new(
        self, attributes: dict[str, Any], session: Session, key: str, ts: int
    ) -> list[tuple[str, dict[str, Any], str, int]]:
        """The messages of a model's input that are new to the session."""
        messages = _value(attributes, "gen_ai.input.messages")
        if not isinstance(messages, list):
            return []
        asked = self._messages(session)
        found = []
        for place, message in enumerate(messages):
            if not isinstance(message, dict):
                continue
            content = message.get("parts", message.get("content", ""))
            added = {"id": f"{key}.in.{place}", "role": message.get("role", "user"), "content": content}
            said = dumps([added["role"], content])
            if said not in asked:
                asked.add(said)
                found.append(("message.added", added, f"in.{place}", ts))
        return found

    def _messages(self, session: Session) -> set[bytes]:
        """The messages that a session has."""
        found = self._asked.get(session.id)
        if found is None:
            if len(self._asked) >= 256:
                self._asked.pop(next(iter(self._asked)))
            found = self._asked[session.id] = set()
            for event in session:
                if event.type == "message.added":
                    found.add(dumps([event.data.get("role"), event.data.get("content")]))
        return found


def _times(span: ReadableSpan) -> tuple[int, int]:
    return (span.start_time or 0) // 1000, (span.end_time or span.start_time or 0) // 1000


def _kind(attributes: Mapping[str, Any]) -> str | None:
    what = attributes.get("gen_ai.operation.name") or attributes.get("openinference.span.kind")
    return _CLASSES.get(str(what or "").lower())


def _model(attributes: Mapping[str, Any]) -> Any:
    return attributes.get("gen_ai.response.model", attributes.get("gen_ai.request.model"))


def _usage(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The tokens of a span of a model; {} if it has none."""
    tokens = {side: int(attributes.get(f"gen_ai.usage.{side}_tokens", 0)) for side in ("input", "output")}
    if not any(tokens.values()):
        return {}
    usage: dict[str, Any] = {"model": _model(attributes)}
    usage.update((f"{side}_tokens", count) for side, count in tokens.items())
    cached = next((int(attributes[each]) for each in _CACHED if each in attributes), None)
    if cached is not None:
        usage["cached_input_tokens"] = cached
    return usage


def _value(attributes: dict[str, Any], *names: str) -> Any:
    """The first of these attributes: its JSON value, if it is JSON."""
    value = next((attributes[each] for each in names if each in attributes), None)
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return loads(value.encode())
        except ValueError:
            pass
    return value


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _span(span: ReadableSpan, attributes: dict[str, Any], trace: str, key: str) -> dict[str, Any]:
    """A span with the names of OTLP's JSON."""
    data: dict[str, Any] = {
        "traceId": trace,
        "spanId": key,
        "name": span.name,
        "startTimeUnixNano": str(span.start_time or 0),
        "endTimeUnixNano": str(span.end_time or 0),
        "attributes": {key: _plain(value) for key, value in attributes.items()},
    }
    if span.parent is not None:
        data["parentSpanId"] = format_span_id(span.parent.span_id)
    if span.status.status_code != StatusCode.UNSET:
        data["status"] = {"code": span.status.status_code.name, "message": span.status.description}
    if span.events:
        data["events"] = [
            {
                "name": event.name,
                "timeUnixNano": str(event.timestamp),
                "attributes": {key: _plain(value) for key, value in (event.attributes or {}).items()},
            }
            for event in span.events
        ]
    return data
