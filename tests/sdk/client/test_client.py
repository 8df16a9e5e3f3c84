"""A Client: which platform it talks to, which one is the default, and how calls are cancelled by their id."""

from __future__ import annotations

import pytest

import pilotlight
from pilotlight import Client, gpu_function
from pilotlight.client import default_client
from pilotlight.definitions.errors import Misuse, NotConfigured, UnknownCall
from pilotlight_core.model.ids import CLIENT_CALL_ID
from tests.sdk.scripted import KEY, ScriptedPlatform, answer, event, problem, problem_document, result, stream

GREET = "/v1/functions/client.greet/calls"


@gpu_function(app="client")
def greet(name: str) -> str:
    return name


def test_another_client_replaces_the_configured_one(platform: ScriptedPlatform) -> None:
    """`options(client=)` sends with its key."""
    platform.will("POST", GREET, stream(result("there")))

    with Client(url=platform.url, api_key="another") as client:
        assert greet.options(client=client).remote("Ada") == "there"
    assert platform.requests[0].headers["authorization"] == "Bearer another"


def test_a_callers_id_is_sent_and_cancels(platform: ScriptedPlatform) -> None:
    """`cancel` takes the id of `options(id=)`."""
    platform.will("POST", GREET, stream(event("error", problem_document("cancelled"))))
    own = pilotlight.call_id()
    platform.will("DELETE", f"/v1/calls/{own}", answer({"id": own, "cancelled": True}, 202))

    assert pilotlight.cancel(own) is True
    with pytest.raises(pilotlight.Cancelled):
        greet.options(id=own).remote("Ada")
    assert platform.asked(GREET)[0].call["id"] == own


def test_a_malformed_address_is_refused() -> None:
    """Nothing is sent."""
    for url in ("localhost:8470", "ftp://x"):
        with pytest.raises(Misuse, match="expected http"):
            Client(url=url, api_key=KEY)


def test_without_a_configuration_there_is_no_default_client(
    platform: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the missing variable, and an earlier client is kept."""
    before = default_client()
    monkeypatch.delenv("PILOTLIGHT_API_KEY")
    with pytest.raises(NotConfigured, match="PILOTLIGHT_API_KEY not set"):
        default_client()
    monkeypatch.setenv("PILOTLIGHT_API_KEY", KEY)
    assert default_client() is before


def test_the_default_client_follows_the_configuration(
    platform: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one client until an address or key changes."""
    platform.will("POST", GREET, stream(result("x")))
    before = default_client()
    assert default_client() is before
    monkeypatch.setenv("PILOTLIGHT_API_KEY", "another")
    greet.remote("Ada")
    assert default_client() is not before
    assert platform.requests[0].headers["authorization"] == "Bearer another"


def test_a_client_shows_its_address_and_no_key() -> None:
    """A client may be printed into a log."""
    with Client(url="http://127.0.0.1:9/", api_key="pl_live_secret") as client:
        assert repr(client) == "Client(url='http://127.0.0.1:9')"


def test_ids_for_calls_are_fresh_and_valid() -> None:
    """`options(id=)` accepts each."""
    first, second = pilotlight.call_id(), pilotlight.call_id()
    assert first != second
    assert CLIENT_CALL_ID.fullmatch(first)


async def test_cancelling_an_unknown_call_is_an_error(platform: ScriptedPlatform) -> None:
    """Cancelling a call that has ended returns False."""
    platform.will("DELETE", "/v1/calls/cid_gone0000", problem("unknown_call"))
    platform.will("DELETE", "/v1/calls/cid_done0000", answer({"id": "cid_done0000", "cancelled": False}))
    with pytest.raises(UnknownCall):
        await pilotlight.cancel.aio("cid_gone0000")
    assert await pilotlight.cancel.aio("cid_done0000") is False
