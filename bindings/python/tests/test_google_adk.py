# SPDX-License-Identifier: Apache-2.0
"""The session service of Google's ADK."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import libannal as annal

pytest.importorskip("google.adk")

from google.adk.errors import StaleSessionError  # noqa: E402
from google.adk.errors.already_exists_error import AlreadyExistsError  # noqa: E402
from google.adk.errors.session_not_found_error import SessionNotFoundError  # noqa: E402
from google.adk.events.event import Event  # noqa: E402
from google.adk.events.event_actions import EventActions  # noqa: E402
from google.adk.sessions.base_session_service import GetSessionConfig  # noqa: E402
from google.genai import types  # noqa: E402

from libannal.google_adk import AnnalSessionService  # noqa: E402


@pytest.fixture
def service(store: annal.Store) -> AnnalSessionService:
    return AnnalSessionService(store)


def said(**changes: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text="hello")])
    actions = EventActions(state_delta={key.replace("__", ":"): value for key, value in changes.items()})
    return Event(author="user", content=content, actions=actions)


def test_a_session_is_what_was_appended(path: Path) -> None:
    async def main() -> None:
        with annal.open(path) as store:
            service = AnnalSessionService(store)
            session = await service.create_session(app_name="a/b", user_id="u 1", session_id=" s1 ", state={"k": 1})
            assert (session.id, session.state) == ("s1", {"k": 1})
            await service.append_event(session, said(k=2, temp__x=3))
            assert session.state == {"k": 2, "temp:x": 3}
            await service.append_event(session, Event(author="agent", partial=True))
            blob = types.Part.from_bytes(data=b"\x00\xff", mime_type="image/png")
            await service.append_event(session, Event(author="agent", content=types.Content(parts=[blob])))
        with annal.open(path) as store:
            service = AnnalSessionService(store)
            found = await service.get_session(app_name="a/b", user_id="u 1", session_id="s1")
            session.state.pop("temp:x")
            assert found == session
            assert await service.get_session(app_name="a/b", user_id="u 2", session_id="s1") is None
            config = GetSessionConfig(num_recent_events=1)
            found = await service.get_session(app_name="a/b", user_id="u 1", session_id="s1", config=config)
            assert found and [event.author for event in found.events] == ["agent"]

    asyncio.run(main())


def test_state_of_the_app_and_of_the_user(service: AnnalSessionService) -> None:
    async def main() -> None:
        one = await service.create_session(app_name="app", user_id="u1", state={"app:a": 1, "user:b": 2, "c": 3})
        await service.append_event(one, said(app__d=4, user__e=5))
        two = await service.create_session(app_name="app", user_id="u1")
        other = await service.create_session(app_name="app", user_id="u2")
        assert two.state == {"app:a": 1, "app:d": 4, "user:b": 2, "user:e": 5}
        assert other.state == {"app:a": 1, "app:d": 4}
        assert await service.get_user_state(app_name="app", user_id="u1") == {"b": 2, "e": 5}
        listed = (await service.list_sessions(app_name="app")).sessions
        assert {session.id for session in listed} == {one.id, two.id, other.id}
        assert [session.id for session in (await service.list_sessions(app_name="app", user_id="u2")).sessions] == [
            other.id
        ]
        await service.delete_session(app_name="app", user_id="u1", session_id=one.id)
        assert await service.get_session(app_name="app", user_id="u1", session_id=one.id) is None
        assert await service.get_user_state(app_name="app", user_id="u1") == {"b": 2, "e": 5}

    asyncio.run(main())


def test_state_that_a_dead_process_did_not_copy_is_copied_later(path: Path) -> None:
    async def main() -> None:
        with annal.open(path) as store:
            service = AnnalSessionService(store)
            service._pass_on = lambda *_: None  # type: ignore[method-assign]
            session = await service.create_session(app_name="app", user_id="u", session_id="s")
            await service.append_event(session, said(user__a=1))
        for _ in range(2):
            with annal.open(path) as store:
                service = AnnalSessionService(store)
                found = await service.get_session(app_name="app", user_id="u", session_id="s")
                assert found and found.state == {"user:a": 1}
                (user,) = (each for each in store if each.id.startswith("google-adk-user"))
                assert [event.type for event in user].count("state.changed") == 1

    asyncio.run(main())


def test_stale_and_duplicate_sessions_are_refused(service: AnnalSessionService) -> None:
    async def main() -> None:
        session = await service.create_session(app_name="app", user_id="u", session_id="s")
        with pytest.raises(AlreadyExistsError):
            await service.create_session(app_name="app", user_id="u", session_id="s")
        stale = session.model_copy(deep=True)
        await service.append_event(session, said(a=1))
        with pytest.raises(StaleSessionError, match="modified in storage"):
            await service.append_event(stale, said(a=2))
        both = [session, session.model_copy(deep=True)]
        done = await asyncio.gather(*(service.append_event(held, said(b=1)) for held in both), return_exceptions=True)
        assert sorted(isinstance(one, StaleSessionError) for one in done) == [False, True]
        await service.delete_session(app_name="app", user_id="u", session_id="s")
        await service.delete_session(app_name="app", user_id="u", session_id="s")
        with pytest.raises(SessionNotFoundError):
            await service.append_event(session, said(a=3))

    asyncio.run(main())
