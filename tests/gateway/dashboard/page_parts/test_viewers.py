"""Who looks is asked of a gateway, every two seconds."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_gateway.dashboard.page_parts import viewers as viewers_module
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiAnswer, ApiProblem
from pilotlight_gateway.dashboard.page_parts.viewers import BELIEVED_S, Viewer, Viewers
from tests.gateway.dashboard.site import Site

TOKEN = f"pl_session_{43 * 'x'}"


def viewer(*scopes: str, token: str = TOKEN) -> Viewer:
    return Viewer(token=token, tenant="acme", key="k", scopes=frozenset(scopes), expires_at=0.0)


async def test_a_session_is_believed_for_two_seconds(site: Site) -> None:
    """What is none is not even asked about."""
    found = Viewers(site.api, site.world.clock)
    for no_session in ("", "x", "pl_live_x", TOKEN + "x"):
        assert await found.find(no_session) is None
    assert site.api.asked == []
    site.api.answers["/v1/sessions/current"] = ApiAnswer(
        status=200, body=b'{"tenant": "acme", "key": "k", "scopes": ["read"], "expires_at": 5.0}'
    )
    who = await found.find(TOKEN)
    assert who is not None
    assert (who.tenant, who.scopes, who.operator) == ("acme", frozenset({"read"}), False)
    assert await found.find(TOKEN) is who
    assert len(site.api.asked) == 1
    site.api.answers["/v1/sessions/current"] = ApiAnswer(status=401, body=b"{}")
    site.world.clock.at += BELIEVED_S
    assert await found.find(TOKEN) is None


async def test_streams_of_one_browser_ask_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have their turns at once; a session that has ended has for all of them, and each of two sessions asks."""
    site.api.answers["/v1/sessions/current"] = ApiAnswer(
        status=200, body=b'{"tenant": "acme", "key": "k", "scopes": ["read"], "expires_at": 5.0}'
    )
    found, ask, other = Viewers(site.api, site.world.clock), site.api.ask, f"pl_session_{43 * 'y'}"

    async def slow(method: str, path: str, token: str = "", body: object = None) -> ApiAnswer:
        await asyncio.sleep(0)
        return await ask(method, path, token, body)

    monkeypatch.setattr(site.api, "ask", slow)
    for token in (TOKEN, other):
        assert await found.find(token) is not None
    site.world.clock.at += BELIEVED_S
    site.api.asked.clear()
    seen = await asyncio.gather(*[found.find(token) for token in (TOKEN, other) for _ in range(4)])
    assert None not in seen
    assert len(site.api.asked) == 2
    site.world.clock.at += BELIEVED_S
    site.api.answers["/v1/sessions/current"] = ApiAnswer(status=401, body=b"{}")
    assert set(await asyncio.gather(*[found.find(TOKEN) for _ in range(4)])) == {None}


async def test_guesses_wait_and_viewers_do_not(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that nobody has shown before are asked for a few at a time, and more than may wait are refused."""
    monkeypatch.setattr(viewers_module, "STRANGERS_WAIT", 10)
    found = Viewers(site.api, site.world.clock)
    site.api.answers["/v1/sessions/current"] = ApiAnswer(
        status=200, body=b'{"tenant": "acme", "key": "k", "scopes": ["read"], "expires_at": 5.0}'
    )
    assert await found.find(TOKEN) is not None
    site.world.clock.at += BELIEVED_S
    gate, ask = asyncio.Event(), site.api.ask

    async def slow(method: str, path: str, token: str = "", body: object = None) -> ApiAnswer:
        if token != TOKEN:
            await gate.wait()
        return await ask(method, path, token, body)

    monkeypatch.setattr(site.api, "ask", slow)
    guesses = [asyncio.ensure_future(found.find(f"pl_session_{number:043d}")) for number in range(11)]
    done, _ = await asyncio.wait(guesses, return_when=asyncio.FIRST_COMPLETED)
    (refused,) = done
    assert isinstance(refused.exception(), ApiProblem)
    assert await found.find(TOKEN) is not None, "whoever looks already is let through"
    gate.set()
    await asyncio.wait(guesses)
    assert len(found) == 11


@pytest.mark.parametrize("answer", [ApiAnswer(status=503, body=b"{}"), ApiAnswer(status=200, body=b"{}")])
async def test_where_no_gateway_says_nobody_is_taken_for_logged_out(site: Site, answer: ApiAnswer) -> None:
    """The page says so, and is shown when one does."""
    site.api.answers["/v1/sessions/current"] = answer
    with pytest.raises(ApiProblem):
        await Viewers(site.api, site.world.clock).find(TOKEN)


def test_forms_of_two_sessions_differ() -> None:
    """And nobody finds a token in them."""
    mine, other = viewer("read"), viewer("read", token=f"pl_session_{43 * 'y'}")
    assert mine.csrf != other.csrf
    assert mine.csrf not in TOKEN
    assert mine.audience == other.audience


def test_scopes_count_as_the_api_has_it() -> None:
    """`admin` is all but `operator`."""
    assert viewer("admin").may("read")
    assert not viewer("admin").may("operator")
    assert viewer("operator").may("operator")
    assert viewer("operator").may("read", "operator")
    assert not viewer("invoke").may("read")
