# SPDX-License-Identifier: Apache-2.0
"""A session service of Google's Agent Development Kit (the extra "google-adk").

    from libannal.google_adk import AnnalSessionService

    runner = Runner(agent=agent, app_name="shop", session_service=AnnalSessionService(store))

A session of ADK is a session of the store. The content of its events is told as messages, calls of tools, their results,
tokens and turns of the core pack; an event with only a change of the state is an event of its own. State of
the app or the user (keys that begin with "app:" or "user:") is stored a second time, in a session of the app or the
user, after the event that changes it: if a process dies in between, the next process that opens the session completes
it. Keys that begin with "temp:" are not stored.
"""

from __future__ import annotations

import time
import uuid
from typing import Any, cast

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.errors import StaleSessionError
from google.adk.events.event import Event as AdkEvent
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session as AdkSession
from google.adk.sessions.state import State
from pydantic_core import to_jsonable_python

from ._await import in_thread
from ._errors import Conflict
from ._event import Draft, Event
from ._json import dumps, loads, loads_object
from ._meaning import Telling, Told, Whole
from ._named import Folded, Named, delete
from ._store import Level, Store

_ADDED, _CREATED, _CHANGED = "adk.event", "adk.session", "state.changed"


def _parts(changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Split a change of the state by its owner: the app, the user, the session."""
    app, user, own = {}, {}, {}
    for key, value in changes.items():
        if key.startswith(State.APP_PREFIX):
            app[key.removeprefix(State.APP_PREFIX)] = value
        elif key.startswith(State.USER_PREFIX):
            user[key.removeprefix(State.USER_PREFIX)] = value
        elif not key.startswith(State.TEMP_PREFIX):
            own[key] = value
    return app, user, own


class _Shared(Folded):
    """The state of an app or a user, and the events from which it was computed."""

    def reset(self) -> None:
        self.state: dict[str, Any] = {}
        self.origins: set[str] = set()

    def apply(self, event: Event) -> None:
        if event.type == _CHANGED and event.data["from"] not in self.origins:
            self.origins.add(event.data["from"])
            self.state.update(event.data["set"])


class _Session(Told):
    """A session: its events, its state, and its changes of the app's and the user's state."""

    agent = "google-adk"

    def reset(self) -> None:
        super().reset()
        self.events: list[Whole] = []
        self.state: dict[str, Any] = {}
        self.updated = 0.0
        self.shared: list[tuple[str, dict[str, Any], dict[str, Any]]] = []  # not known to be passed on yet
        self._created = ""

    def apply(self, event: Event) -> None:
        self.hear(event)
        data = event.data
        added = self.whole(event, _ADDED)
        if event.type == _CREATED:
            changes, self.updated, self._created = data["state"], data["time"], data["id"]
        elif added is not None:
            data = data["extra"]["value"] if added.is_told else data
            changes, self.updated = (data.get("actions") or {}).get("state_delta") or {}, data["timestamp"]
            self.events.append(added)
        else:
            return
        app, user, own = _parts(changes)
        self.state.update(own)
        if app or user:
            self.shared.append((f"{self._created}:{event.seq}:{data['id']}", app, user))


class AnnalSessionService(BaseSessionService):
    """Sessions in a store; the effect of a method is durable when it returns. The caller keeps the store.

    `append_event()` raises `StaleSessionError` if the session object differs from the store: another caller has
    appended. With `level="batch"` it does not wait for the disk, and events are durable within the store's batch_ms.
    """

    def __init__(self, store: Store, *, level: Level = "sync") -> None:
        self.store = store
        self._sessions = Named(store, "google-adk", _Session, level)
        self._apps = Named(store, "google-adk-app", _Shared, level)
        self._users = Named(store, "google-adk-user", _Shared, level)

    def _find(self, app_name: str, user_id: str, session_id: str) -> _Session | None:
        """The session, up to date, with its changes of the app and the user passed on, or None."""
        session = cast(_Session, self._sessions.get(app_name, user_id, session_id.strip()))
        with session.lock:
            if not session.refresh():
                return None
            self._pass_on(app_name, user_id, session)
        return session

    def _pass_on(self, app_name: str, user_id: str, session: _Session) -> None:
        while session.shared:
            origin, *changes = session.shared[0]
            for shared, change in zip((self._apps.get(app_name), self._users.get(app_name, user_id)), changes):
                if change:
                    self._change(cast(_Shared, shared), origin, change)
            session.shared.pop(0)

    @staticmethod
    def _change(shared: _Shared, origin: str, change: dict[str, Any]) -> None:
        with shared.lock:
            shared.refresh()
            if origin not in shared.origins:
                shared.append(Draft(_CHANGED, {"from": origin, "set": change}))

    @staticmethod
    def _state_of(shared: Folded) -> dict[str, Any]:
        with shared.lock:
            shared.refresh()
            return _copy(cast(_Shared, shared).state)

    def _state(self, app_name: str, user_id: str, own: dict[str, Any]) -> dict[str, Any]:
        merged = _copy(own)
        for prefix, shared in (
            (State.APP_PREFIX, self._apps.get(app_name)),
            (State.USER_PREFIX, self._users.get(app_name, user_id)),
        ):
            merged.update((prefix + key, value) for key, value in self._state_of(shared).items())
        return merged

    def _answer(self, app_name: str, user_id: str, session_id: str, session: _Session) -> AdkSession:
        """The session as an object of ADK, without events."""
        found = AdkSession(
            app_name=app_name,
            user_id=user_id,
            id=session_id.strip(),
            state=self._state(app_name, user_id, session.state),
            last_update_time=session.updated,
        )
        found._storage_update_marker = str(session.seq)
        return found

    def _create(self, app_name: str, user_id: str, state: dict[str, Any] | None, session_id: str | None) -> AdkSession:
        session_id = (session_id or "").strip() or uuid.uuid4().hex
        kept = {key: value for key, value in (state or {}).items() if not key.startswith(State.TEMP_PREFIX)}
        session = cast(_Session, self._sessions.get(app_name, user_id, session_id))
        with session.lock:
            exists = session.refresh()
            if not exists:
                try:
                    created = Draft(
                        _CREATED, {"id": uuid.uuid4().hex, "state": to_jsonable_python(kept), "time": time.time()}
                    )
                    born = Draft("session.created", {"agent_id": app_name})
                    session.session._report([session.naming(), born, created], expected_seq=0)
                except Conflict:
                    exists = True
            if exists:
                raise AlreadyExistsError(f"Session with id {session_id} already exists.")
            session.refresh()
            self._pass_on(app_name, user_id, session)
            return self._answer(app_name, user_id, session_id, session)

    def _get(
        self, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None
    ) -> AdkSession | None:
        session = self._find(app_name, user_id, session_id)
        if session is None:
            return None
        with session.lock:
            answer = self._answer(app_name, user_id, session_id, session)
            events = session.events
            if config is not None and config.num_recent_events is not None:
                events = events[len(events) - min(config.num_recent_events, len(events)) :]
            found = [_adk_event(event) for event in events]
        if config is not None and config.after_timestamp is not None:
            found = [event for event in found if event.timestamp >= config.after_timestamp]
        answer.events = found
        return answer

    def _list(self, app_name: str, user_id: str | None) -> ListSessionsResponse:
        found = []
        for app, user, session_id in self._sessions.all():
            if app == app_name and user_id in (None, user):
                session = self._find(app, user, session_id)
                if session is not None:
                    with session.lock:
                        found.append(self._answer(app, user, session_id, session))
        found.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=found)

    def _delete(self, app_name: str, user_id: str, session_id: str) -> None:
        session = self._find(app_name, user_id, session_id)
        if session is not None:
            with session.lock:
                delete(self.store, session.session)

    def _append(self, held: AdkSession, event: AdkEvent) -> str:
        """Append an event if the caller's session object is current; returns its new marker."""
        session = self._find(held.app_name, held.user_id, held.id)
        if session is None:
            raise SessionNotFoundError(f"Session {held.id} not found.")
        with session.lock:
            marker = held._storage_update_marker
            current = session.updated <= held.last_update_time if marker is None else str(session.seq) == marker
            if current:
                try:
                    session.append(*_drafts(session, event), expected_seq=session.seq)
                except Conflict:
                    current = False
            if not current:
                raise StaleSessionError(
                    f"Session {held.id} was modified in storage since it was read: get it again."
                )
            session.refresh()
            self._pass_on(held.app_name, held.user_id, session)
            return str(session.seq)

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> AdkSession:
        """Create a session. Raises `AlreadyExistsError`."""
        return await in_thread(self._create, app_name, user_id, state, session_id)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> AdkSession | None:
        """The session, with the events that `config` selects, or None."""
        return await in_thread(self._get, app_name, user_id, session_id, config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """The sessions of an app, or of a single user of it, without their events; the oldest first."""
        return await in_thread(self._list, app_name, user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session permanently. Its changes of the app's and the user's state stay."""
        await in_thread(self._delete, app_name, user_id, session_id)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state of a user, with keys that lack "user:"."""
        return await in_thread(self._state_of, self._users.get(app_name, user_id))

    async def append_event(self, session: AdkSession, event: AdkEvent) -> AdkEvent:
        """Append an event, and apply its change of the state. Partial events are not stored.

        Raises `SessionNotFoundError` and `StaleSessionError`; then nothing was stored.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        marker = await in_thread(self._append, session, event)
        session._storage_update_marker = marker
        session.last_update_time = event.timestamp
        return self._commit_event_to_session(session, event)


def _adk_event(added: Whole) -> AdkEvent:
    if added.is_told:
        return AdkEvent.model_validate_json(dumps(added.read(), stable=False))
    return AdkEvent.model_validate_json(added.event.json)


def _drafts(session: _Session, event: AdkEvent) -> list[Draft]:
    """An event of ADK as events of the core pack."""
    content = event.model_dump_json(exclude_none=True).encode()
    used = event.usage_metadata
    parts = event.content.parts if event.content is not None else None
    if not parts and used is None and not event.error_code:
        return [Draft(_ADDED, content)]
    value, telling = loads_object(content), Telling(session)
    role = "user" if event.author == "user" else "assistant"
    if role == "user" and any(part.text for part in parts or ()):
        telling.ask()
    said = {"id": event.id[:8], "role": role, "content": None}
    for place, part in enumerate(parts or ()):
        path = ("content", "parts", place)
        if part.text and not part.thought:
            telling.add("message.added", dict(said), content=(*path, "text"))
        elif part.function_call is not None:
            call = part.function_call
            moved = {"input": (*path, "function_call", "args")} if call.args is not None else {}
            call_id = call.id or f"{event.id}.{place}"
            telling.call(call_id, call.name or "", dict.fromkeys(moved), **moved)
        elif part.function_response is not None and part.function_response.id:
            returned = part.function_response
            moved = {"output": (*path, "function_response", "response")} if returned.response is not None else {}
            failed = set(returned.response or ()) == {"error"}
            telling.result(str(returned.id), failed, dict.fromkeys(moved), **moved)
    if used is not None:
        output = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
        tokens = {"input_tokens": used.prompt_token_count or 0, "output_tokens": output}
        tokens["cached_input_tokens"] = used.cached_content_token_count or 0
        telling.usage(event.model_version, tokens)
    if event.error_code:
        telling.answer(f"{event.error_code}: {event.error_message or ''}")
    elif role == "assistant" and parts and event.is_final_response():
        telling.answer()
    return telling.drafts(_ADDED, value)


def _copy(state: dict[str, Any]) -> dict[str, Any]:
    return cast(dict[str, Any], loads(dumps(state, stable=False)))
